"""Study F: what it costs to record an execution.

Time: a recorded execution over a plain one with an ordinary generator, in one run.
Memory: the peak of a process that records many noisy values on one dataset and replays
them on its neighbour, so that it holds two executions.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.reports.bench.cost import peak_resident
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.reports.words import count

__all__ = ["Replaying"]

_GAUSS, _SGD = "replay-overhead, AnalyzeGauss", "replay-overhead, DP-SGD"
_MEMORY = "replay-memory"
_LARGEST_RATIO, _LARGEST_MEGABYTES = 3.0, 500.0
_ROWS, _COLUMNS = 10_000, 50
_ROUNDS, _RATE, _STEPS = 15, 0.05, 200
_LONG = 1_000_000  # noisy values from which on the memory has a target

_SIZES = {
    "quick": {_GAUSS: (1, _ROWS), _SGD: (1, _ROWS), _MEMORY: (1, 20_000)},
    "standard": {_GAUSS: (3, _ROWS), _SGD: (3, _ROWS), _MEMORY: (1, 200_000)},
    "full": {_GAUSS: (5, _ROWS), _SGD: (5, _ROWS), _MEMORY: (1, _LONG)},
}
"""Repetitions; rows of the data, or noisy values."""

_CHILD = """
import sys
from dpaudit.reports.bench.replaying import record_and_tell_memory
record_and_tell_memory(int(sys.argv[1]), int(sys.argv[2]))
"""


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
        if unit.case == _MEMORY:
            return {"measured": replay_memory(size, unit.seed)}
        gauss = unit.case == _GAUSS
        mechanism = AnalyzeGauss.calibrated(1.0, 1e-5) if gauss else dp_sgd
        return {"measured": overhead(mechanism, size, unit.seed)}

    def tables(self, profile: str, records: Records) -> list[Table]:
        found = self.by_case(records, "measured")
        rows = []
        for case, subject, target, unit_name in (
            (_GAUSS, f"d = {_COLUMNS}", _LARGEST_RATIO, "times"),
            (_SGD, f"d = {_COLUMNS}, {_STEPS} steps", _LARGEST_RATIO, "times"),
            (_MEMORY, "noisy scalars", _LARGEST_MEGABYTES, "MB"),
        ):
            if case in found:
                size = _SIZES[profile][case][1]
                measured = median(found[case])
                enough = case != _MEMORY or size >= _LONG
                row = Row.of(
                    measured <= target if enough else None,
                    Figure("case", case, "cost", case),
                    Figure("subject", subject, "subject", subject),
                    Figure("size", size, "rows, or values", count(size)),
                    Figure(
                        "measured", measured, "measured", f"{measured:.1f} {unit_name}"
                    ),
                    Figure("target", target, "target", f"{target:g} {unit_name}"),
                    Figure("unit", unit_name),
                )
                rows.append(row)
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
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(values), str(seed)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(done.stdout))


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
