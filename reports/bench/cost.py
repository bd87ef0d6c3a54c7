"""Study E: what the engine costs beside the releases that it asks for.

Time: an audit of a vectorised mechanism in 400 dimensions, whose draws are timed
inside the audit; the engine's own share is what is left. And processor time of audits
of mechanisms that cost next to nothing: of a black box's first 200 releases a side, and
of 100,000 of the Laplace mechanism. Memory: the peak of a process that does nothing but
audit a hundred million releases.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.algorithms.textbook import Laplace
from dpaudit.audit import audit
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.reports.bench.subjects import BlackBox
from dpaudit.reports.words import count

__all__ = ["Cost", "peak_resident"]

_SHARE, _MEMORY = "engine's share of the time", "peak memory"
_FIRST, _MANY = "processor time of the first releases", "processor time of many"
_DIMENSION = 20
_LONG = 1_000_000  # releases a side from which on the share has a target
_TARGETS = {
    _SHARE: (f"AnalyzeGauss, d = {_DIMENSION}", 15.0, "%"),
    _FIRST: ("Laplace, black box", 0.5, "s"),
    _MANY: ("Laplace", 0.4, "s"),
    _MEMORY: ("Laplace", 500.0, "MB"),
}
"""Of each case the mechanism, the most that it should take, and the unit."""

_SECONDS = {_FIRST: (5, 200), _MANY: (5, 100_000)}
_RELEASES = {
    "quick": {_MEMORY: (1, 200_000)},
    "standard": {_SHARE: (1, 100_000), **_SECONDS, _MEMORY: (1, 5_000_000)},
    "full": {_SHARE: (3, 1_000_000), **_SECONDS, _MEMORY: (1, 50_000_000)},
}
"""Repetitions, and releases a side."""

_CHILD = """
import sys
from dpaudit.reports.bench.cost import audit_and_tell_memory
audit_and_tell_memory(int(sys.argv[1]), int(sys.argv[2]))
"""


class Cost(Study):
    """The engine's own time, and its memory."""

    name = "cost"
    title = "Cost of the engine"
    parallel = False

    def units(self, profile: str) -> list[Unit]:
        return [
            Unit(self.name, case, index, (("releases", releases),))
            for case, (repetitions, releases) in _RELEASES[profile].items()
            for index in range(repetitions)
        ]

    def measure(self, unit: Unit) -> Record:
        releases = unit.option("releases")
        if unit.case == _MEMORY:
            return {"measured": peak_memory(releases, unit.seed)}
        if unit.case in _SECONDS:
            seconds = processor_time(unit.case == _FIRST, releases, unit.seed)
            return {"measured": seconds}
        share, seconds = engine_share(releases, unit.seed)
        return {"measured": share, "seconds": seconds}

    def tables(self, profile: str, records: Records) -> list[Table]:
        found = self.by_case(records, "measured")
        rows = []
        for case, (subject, target, unit_name) in _TARGETS.items():
            if case in found:
                releases = _RELEASES[profile][case][1]
                scale = 100 if case == _SHARE else 1
                measured = scale * median(found[case])
                digits = 2 if unit_name == "s" else 1
                shown = f"{measured:.{digits}f} {unit_name}"
                has_target = case != _SHARE or releases >= _LONG
                row = Row.of(
                    measured <= target if has_target else None,
                    Figure("case", case, "cost", case),
                    Figure("subject", subject, "mechanism", subject),
                    Figure("releases", releases, "releases a side", count(releases)),
                    Figure("measured", measured, "measured", shown),
                    Figure("target", target, "target", f"{target:g} {unit_name}"),
                    Figure("unit", unit_name),
                )
                rows.append(row)
        note = (
            "The share is that of an audit's wall-clock time which is not spent on "
            "drawing its releases; short audits have a larger one, and no target."
        )
        return [Table(self.title, tuple(rows), note)]


class _Timed(AnalyzeGauss):
    """Adds up the seconds that its draws take."""

    seconds = 0.0

    def draw(
        self, data: ArrayLike, size: int, *, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        started = time.perf_counter()
        try:
            return super().draw(data, size, rng=rng)
        finally:
            _Timed.seconds += time.perf_counter() - started


def processor_time(black_box: bool, releases: int, seed: int) -> float:
    """Return the processor time of an audit of a fast mechanism, in seconds.

    Parameters
    ----------
    black_box : bool
        Whether it is known as a function only, and refutes no claim.
    releases : int
        A side.
    seed : int
    """
    mechanism: Any = Laplace(1.0)
    subject = BlackBox(mechanism) if black_box else mechanism
    settings: dict[str, Any] = {
        "pair": mechanism.worst_case(),
        "claim": mechanism.claim,
        "stop_when_refuted": black_box,
    }
    audit(subject, **settings, max_samples=400)  # imports, and warms the caches
    started = time.process_time()
    audit(subject, **settings, max_samples=releases, seed=seed)
    return time.process_time() - started


def engine_share(releases: int, seed: int) -> tuple[float, float]:
    """Return the engine's own share of the time of an audit, and that time.

    Parameters
    ----------
    releases : int
        A side.
    seed : int
    """
    mechanism = _Timed.calibrated(1.0, 1e-5)
    pair = mechanism.worst_case(_DIMENSION)
    audit(mechanism, pair=pair, max_samples=1000)  # imports, and warms the caches
    _Timed.seconds = 0.0
    started = time.perf_counter()
    audit(
        mechanism, pair=pair, max_samples=releases, stop_when_refuted=False, seed=seed
    )
    whole = time.perf_counter() - started
    return (whole - _Timed.seconds) / whole, whole


def peak_memory(releases: int, seed: int) -> float:
    """Return the peak resident memory of an audit in a process of its own, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(releases), str(seed)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(done.stdout))


def audit_and_tell_memory(releases: int, seed: int) -> None:
    """Audit the Laplace mechanism, and print this process's peak memory in MB."""
    mechanism: Any = Laplace(1.0)
    audit(mechanism, max_samples=releases, stop_when_refuted=False, seed=seed)
    print(json.dumps(peak_resident()))


def peak_resident() -> float:
    """Return the peak resident memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux ru_maxrss starts at the size of the parent, which may be larger.
        found = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)
        if found is not None:
            return int(found[1]) * 1024 / 1e6
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
