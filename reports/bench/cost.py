"""Study E: what the engine costs beside the releases that it asks for.

Time: an audit of a vectorised mechanism in 400 dimensions, whose draws are timed
inside the audit; the engine's own share is what is left. And processor time of audits
of mechanisms that cost next to nothing: of a black box's first 200 releases a side, and
of 100,000 of the Laplace mechanism. Memory: the peak of a process that does nothing but
audit a hundred million releases.

Study F: what it costs to record an execution.

Time: a recorded execution over a plain one with an ordinary generator, in one run.
Memory: the peak of a process that records many noisy values on one dataset and replays
them on its neighbour, so that it holds two executions.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.arrays import Array
from dpaudit.audit import Budget, audit
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.reports.bench.subjects import BlackBox
from dpaudit.reports.words import count

__all__ = ["Cost", "Replaying"]

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
        found = {
            case: median(each)
            for case, each in self.by_case(records, "measured").items()
        }
        names = ("mechanism", "releases", "releases a side")
        rows = []
        for case, target in _TARGETS.items():
            if case in found:
                releases = _RELEASES[profile][case][1]
                measured = found[case] * (100 if case == _SHARE else 1)
                enough = case != _SHARE or releases >= _LONG
                row = _row(case, measured, *target, releases, names, enough=enough)
                rows.append(row)
        note = (
            "The share is that of an audit's wall-clock time which is not spent on "
            "drawing its releases; short audits have a larger one, and no target."
        )
        return [Table(self.title, tuple(rows), note)]


def _row(
    case: str,
    measured: float,
    subject: str,
    target: float,
    unit: str,
    size: int,
    names: tuple[str, str, str],
    *,
    enough: bool,
) -> Row:
    """Return a line; `names`: heading of the subject, key and heading of the size."""
    shown = f"{measured:.{2 if unit == 's' else 1}f} {unit}"
    return Row.of(
        measured <= target if enough else None,
        Figure("case", case, "cost", case),
        Figure("subject", subject, names[0], subject),
        Figure(names[1], size, names[2], count(size)),
        Figure("measured", measured, "measured", shown),
        Figure("target", target, "target", f"{target:g} {unit}"),
        Figure("unit", unit),
    )


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
    settings = {"pair": mechanism.worst_case(), "claim": mechanism.claim}
    few, all_of_them = (Budget(most, stop=black_box) for most in (400, releases))
    audit(subject, **settings, budget=few)  # imports, and warms the caches
    started = time.process_time()
    audit(subject, **settings, budget=all_of_them, seed=seed)
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
    audit(mechanism, pair=pair, budget=1000)  # imports, and warms the caches
    _Timed.seconds = 0.0
    started = time.perf_counter()
    audit(mechanism, pair=pair, budget=Budget(releases, stop=False), seed=seed)
    whole = time.perf_counter() - started
    return (whole - _Timed.seconds) / whole, whole


def peak_memory(releases: int, seed: int) -> float:
    """Return the peak resident memory of an audit in a process of its own, in MB."""
    return _alone("audit_and_tell_memory", releases, seed)


def _alone(work: str, *arguments: int) -> float:
    """Return what a function of this module prints in a process of its own."""
    code = f"from {__name__} import {work}; {work}(*{arguments})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def audit_and_tell_memory(releases: int, seed: int) -> None:
    """Audit the Laplace mechanism, and print this process's peak memory in MB."""
    mechanism: Any = Laplace(1.0)
    audit(mechanism, budget=Budget(releases, stop=False), seed=seed)
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


_GAUSS, _SGD = "replay-overhead, AnalyzeGauss", "replay-overhead, DP-SGD"
_REPLAYED = "replay-memory"
_LARGEST_RATIO, _LARGEST_MEGABYTES = 3.0, 500.0
_ROWS, _COLUMNS = 10_000, 50
_ROUNDS, _RATE, _STEPS = 15, 0.05, 200
_VALUES = 1_000_000  # noisy values from which on the memory has a target

_SIZES = {
    "quick": {_GAUSS: (1, _ROWS), _SGD: (1, _ROWS), _REPLAYED: (1, 20_000)},
    "standard": {_GAUSS: (3, _ROWS), _SGD: (3, _ROWS), _REPLAYED: (1, 200_000)},
    "full": {_GAUSS: (5, _ROWS), _SGD: (5, _ROWS), _REPLAYED: (1, _VALUES)},
}
"""Repetitions; rows of the data, or noisy values."""


class Replaying(Study):
    """The time and the memory of recorded executions."""

    name = "replay"
    title = "Cost of a recorded execution"
    parallel = False

    def units(self, profile: str) -> list[Unit]:
        return [
            Unit(self.name, case, index, (("size", size),))
            for case, (repetitions, size) in _SIZES[profile].items()
            for index in range(repetitions)
        ]

    def measure(self, unit: Unit) -> Record:
        size = unit.option("size")
        if unit.case == _REPLAYED:
            return {"measured": replay_memory(size, unit.seed)}
        gauss = unit.case == _GAUSS
        mechanism = AnalyzeGauss.calibrated(1.0, 1e-5) if gauss else dp_sgd
        return {"measured": overhead(mechanism, size, unit.seed)}

    def tables(self, profile: str, records: Records) -> list[Table]:
        targets = {
            _GAUSS: (f"d = {_COLUMNS}", _LARGEST_RATIO, "times"),
            _SGD: (f"d = {_COLUMNS}, {_STEPS} steps", _LARGEST_RATIO, "times"),
            _REPLAYED: ("noisy scalars", _LARGEST_MEGABYTES, "MB"),
        }
        found = {
            case: median(each)
            for case, each in self.by_case(records, "measured").items()
        }
        names = ("subject", "size", "rows, or values")
        rows = [
            _row(
                *(case, found[case], *targets[case], size, names),
                enough=case != _REPLAYED or size >= _VALUES,
            )
            for case, (_, size) in _SIZES[profile].items()
            if case in found
        ]
        note = (
            "A ratio is the time of a recorded execution over that of a plain one, of "
            "the quickest of several in turns. The memory is that of a process which "
            "holds two executions; it has a target where they are long."
        )
        return [Table(self.title, tuple(rows), note)]


def dp_sgd(data: Array, rng: np.random.Generator) -> Array:
    """Return the mean of rows by noisy gradient descent, batches drawn by Poisson.

    As people write it: examples are clipped one by one, and noise is added to the sum.
    """
    rows, columns = data.shape
    point = np.zeros(columns)
    for _ in range(_STEPS):
        batch = data[rng.random(rows) < _RATE]
        gradients = point - batch
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients / np.maximum(1.0, norms)
        noisy = clipped.sum(axis=0) + rng.normal(0, 1.5, size=columns)
        point = point - 0.1 * noisy / (_RATE * rows)
    return point


def overhead(mechanism: Any, rows: int, seed: int) -> float:
    """Return the time of a recorded execution over that of a plain one.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Of rows of unit length.
    rows : int
    seed : int
    """
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((rows, _COLUMNS))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    one, _ = ways_to_draw(mechanism)
    plain, recorded = (lambda: one(data, rng)), (lambda: execute(mechanism, data, seed))
    seconds = [(_timed(plain), _timed(recorded)) for _ in range(_ROUNDS)]
    quickest = [min(column) for column in zip(*seconds, strict=True)]
    return quickest[1] / quickest[0]


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def replay_memory(values: int, seed: int) -> float:
    """Return the peak memory of a record and a replay in a process of its own, in MB.

    Parameters
    ----------
    values : int
        Noisy scalars that the code looks at.
    seed : int
    """
    return _alone("record_and_tell_memory", values, seed)


def record_and_tell_memory(values: int, seed: int) -> None:
    """Record noisy scalars, replay them, and print this process's peak memory in MB."""

    def noisy_sums(data: Array, rng: np.random.Generator) -> int:
        total = data.sum()
        return sum(total + rng.laplace(scale=values) > 0 for _ in range(values))

    here = execute(noisy_sums, np.ones((3, 1)), seed)
    script = here.tape.observations
    there = execute(noisy_sums, np.ones((4, 1)), seed, script=script)
    assert len(there.tape.observations) == len(script) == values
    print(json.dumps(peak_resident()))
