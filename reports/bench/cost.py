"""Study E: what the engine costs beside the releases that it asks for.

Time: an audit of a vectorised mechanism in 400 dimensions, whose draws are timed
inside the audit; the engine's own share is what is left. And processor time of audits
of mechanisms that cost next to nothing: of a black box's first 200 releases a side, and
of 100,000 of the Laplace mechanism. Memory: the peak of a process that does nothing but
audit a hundred million releases.

Study F: what it costs to record an execution.

Time: a recorded execution over a plain one with an ordinary generator, in one run.
Memory: the peak of a process that records many noisy values on one dataset and replays
them on its neighbour, so that it holds two executions. And what whole replays take, in
processor time and memory: of DP-SGD over secret batches, and of noise on many numbers.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from timeit import timeit
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.arrays import Array
from dpaudit.audit import Budget, audit, replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.claims import GaussianDP
from dpaudit.neighbours import Pair
from dpaudit.reports.bench.peer_bounds import timed
from dpaudit.reports.bench.study import NOTES, Figure, Records, Study, TargetRow, Unit
from dpaudit.reports.bench.subjects import BlackBox
from dpaudit.reports.experiment import Record, declarations
from dpaudit.reports.words import count

_DIMENSION = 20
_COLUMNS = 50
_ROUNDS, _RATE, _STEPS = 15, 0.05, 200
_FEATURES, _MANY_STEPS, _LOW_RATE = 30, 100, 0.01
_ANALYZE_GAUSS = AnalyzeGauss.calibrated(1.0, 1e-5)


@dataclass(frozen=True)
class CostCase:
    """One thing that is measured, and the most that it should take."""

    target: tuple[str, float, str]  # of what, how much, and its unit
    measure: Callable[[int, int], float]  # from a size and a seed to what is measured
    # by profile: repetitions, and releases a side, rows or values
    sizes: Mapping[str, tuple[int, int]]
    least: int = 0  # the size from which on there is a target

    def row(self, case: str, size: int, values: list[float], names: Any) -> TargetRow:
        """Return a line; `names`: heading of the subject, key, heading of the size."""
        subject, target, unit = self.target
        measured = median(values) * (100 if unit == "%" else 1)
        shown = f"{measured:.{2 if unit == 's' else 1}f} {unit}"
        return TargetRow.of(
            measured <= target if size >= self.least else None,
            Figure("case", case, "cost", case),
            Figure("subject", subject, names[0], subject),
            Figure(names[1], size, names[2], count(size)),
            Figure("measured", measured, "measured", shown),
            Figure("target", target, "target", f"{target:g} {unit}"),
            Figure("unit", unit),
        )


class Costs(Study):
    """What some cases take, each beside the most that it should."""

    parallel = False
    cases: ClassVar[Mapping[str, CostCase]]
    names: ClassVar[tuple[str, str, str]]

    def units(self, profile: str) -> list[Unit]:
        return [
            Unit(self.name, case, index, ((self.names[1], each.sizes[profile][1]),))
            for case, each in self.cases.items()
            if profile in each.sizes
            for index in range(each.sizes[profile][0])
        ]

    def measure(self, unit: Unit) -> Record:
        size = unit.option(self.names[1])
        return {"measured": self.cases[unit.case].measure(size, unit.seed)}

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        found = self.by_case(records, "measured")
        return [
            each.row(case, each.sizes[profile][1], found[case], self.names)
            for case, each in self.cases.items()
            if case in found
        ]


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

    ``black_box``: whether it is known as a function only, and refutes no claim.
    ``releases``: a side.
    """
    mechanism: Any = Laplace(1.0)
    subject = BlackBox(mechanism) if black_box else mechanism
    settings = {"pair": mechanism.worst_case(), "claim": mechanism.claim}
    few, all_of_them = (Budget(most, stop=black_box) for most in (400, releases))
    audit(subject, **settings, budget=few)  # imports, and warms the caches
    return timed(partial(audit, subject, **settings, budget=all_of_them, seed=seed))[1]


def engine_share(releases: int, seed: int) -> float:
    """Return the engine's own share of the time of an audit.

    ``releases``: a side.
    """
    mechanism = _Timed.calibrated(1.0, 1e-5)
    pair = mechanism.worst_case(_DIMENSION)
    audit(mechanism, pair=pair, budget=1000)  # imports, and warms the caches
    _Timed.seconds = 0.0
    started = time.perf_counter()
    audit(mechanism, pair=pair, budget=Budget(releases, stop=False), seed=seed)
    whole = time.perf_counter() - started
    return (whole - _Timed.seconds) / whole


def memory_alone(work: Callable[..., None], *given: Any) -> float:
    """Return the peak memory of a process that calls a function, in MB."""
    code = (
        f"from {__name__} import peak_resident\n"
        f"from {work.__module__} import {work.__name__} as work\n"
        f"work(*{given!r})\nprint(peak_resident())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def audited(releases: int, seed: int) -> None:
    """Audit the Laplace mechanism."""
    mechanism: Any = Laplace(1.0)
    audit(mechanism, budget=Budget(releases, stop=False), seed=seed)


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


def dp_sgd(
    data: Array, rng: np.random.Generator, steps: int = _STEPS, rate: float = _RATE
) -> Array:
    """Return the mean of rows by noisy gradient descent, batches drawn by Poisson.

    As people write it: examples are clipped one by one, and noise is added to the sum.
    """
    rows, columns = data.shape
    point = np.zeros(columns)
    for _ in range(steps):
        batch = data[rng.random(rows) < rate]
        gradients = point - batch
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        clipped = gradients / np.maximum(1.0, norms)
        noisy = clipped.sum(axis=0) + rng.normal(0, 1.5, size=columns)
        point = point - 0.1 * noisy / (rate * rows)
    return point


def long_dp_sgd(data: Array, rng: np.random.Generator) -> Array:
    """Return the same after fewer steps, over smaller batches."""
    return dp_sgd(data, rng, _MANY_STEPS, _LOW_RATE)


def noisy_sum(data: Array, rng: np.random.Generator) -> Array:
    """Return the sum of rows with normal noise."""
    return np.asarray(data.sum(axis=0) + rng.normal(0, 2.0, size=data.shape[1]))


def pair_for(subject: str, size: int, seed: int) -> Pair:
    """Return so many rows, one of them replaced, or two of so many numbers, and one."""
    if subject == "noisy_sum":
        rows = np.zeros((2, size))
        rows[0, :10] = 0.3
        return Pair(rows, rows[1:])
    rows = np.random.default_rng(seed).standard_normal((size, _FEATURES))
    other = rows.copy()  # the step goes by the number of rows
    other[-1] += 1.0
    return Pair(rows, other)


def replay_time(subject: str, size: int, seed: int) -> float:
    """Return the processor time of the replay of a function here, in seconds."""
    replayed("noisy_sum", 9, seed)  # imports
    return timed(partial(replayed, subject, size, seed))[1]


def replayed(subject: str, size: int, seed: int) -> None:
    """Replay a function here."""
    pair = pair_for(subject, size, seed)
    replay(globals()[subject], pair=pair, claim=GaussianDP(1.0), seed=seed)


def overhead(mechanism: Any, rows: int, seed: int) -> float:
    """Return the time of a recorded execution over that of a plain one.

    ``mechanism``: of rows of unit length.
    """
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((rows, _COLUMNS))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    one, _ = ways_to_draw(mechanism)
    plain, recorded = (lambda: one(data, rng)), (lambda: execute(mechanism, data, seed))
    seconds = [
        (timeit(plain, number=1), timeit(recorded, number=1)) for _ in range(_ROUNDS)
    ]
    quickest = [min(column) for column in zip(*seconds, strict=True)]
    return quickest[1] / quickest[0]


def recorded(values: int, seed: int) -> None:
    """Record noisy scalars, and replay them."""

    def noisy_sums(data: Array, rng: np.random.Generator) -> int:
        total = data.sum()
        return sum(total + rng.laplace(scale=values) > 0 for _ in range(values))

    here = execute(noisy_sums, np.ones((3, 1)), seed)
    script = here.tape.observations
    there = execute(noisy_sums, np.ones((4, 1)), seed, script=script)
    assert len(there.tape.observations) == len(script) == values


def _declared(study: str) -> dict[str, CostCase]:
    """Return the cases that ``goals.toml`` has of a study."""
    declared = declarations(Path(__file__).with_name("goals.toml"))[study]
    here, found = {f"@{name}": each for name, each in globals().items()}, {}
    for case, told in declared.items():
        target = told["subject"], told["target"], told["unit"]
        given = [here.get(each, each) for each in told.get("given", ())]
        measure = partial(globals()[told["measure"]], *given)
        found[case] = CostCase(target, measure, told["sizes"], told.get("least", 0))
    return found


class Cost(Costs):
    """The engine's own time, and its memory."""

    name = "cost"
    title = "Cost of the engine"
    cases: ClassVar = _declared("cost")
    names = ("mechanism", "releases", "releases a side")
    note = NOTES["cost"]


class Replaying(Costs):
    """The time and the memory of recorded executions."""

    name = "replay"
    title = "Cost of a recorded execution"
    cases: ClassVar = _declared("replay")
    names = ("subject", "size", "rows, or values")
    note = NOTES["replay"]
