"""What audits cost that are short, and what the rarest violations take.

`python -m benchmarks.costs` prints it; these are no benchmarks for asv. Times are
processor times of the second audit in a process, of mechanisms of which nothing is
known but their releases, and which keep their claims.
"""

import math
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.arrays import Array
from dpaudit.audit import Budget, audit
from dpaudit.audit.assertions import Auditor
from dpaudit.audit.bounds import fixed_scores
from dpaudit.reports.bench.cost import CostCase, memory_alone
from dpaudit.reports.bench.limits import growth

_ATOM, _SCALE, _CONFIDENCE = 1.5e-3, 1.2, 0.999
_FALSE = ApproxDP(1.0, 1e-5)


@dataclass(frozen=True)
class Noisy:
    """The sum of rows with Laplace noise on each number, drawn as one array."""

    scale: float = 1.0
    raw: float = 0.0  # how often there is none

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return releases, shape (size, d)."""
        total = data.sum(axis=0)
        noise = rng.laplace(scale=self.scale, size=(size, len(total)))
        if self.raw:
            noise[rng.random(size) < self.raw] = 0.0
        return np.asarray(total + noise)

    def __call__(self, data: Array, rng: np.random.Generator) -> Array:
        """Return one release."""
        return self.draw(data, 1, rng=rng)[0]


def pair_of(columns: int) -> Pair:
    """Return one row of zeros, and another one of norm 1 beside it."""
    rows = np.zeros((2, columns))
    rows[0] = 1 / columns
    return Pair(rows[1:], rows)


def audited(columns: int, releases: int, seed: int) -> None:
    """Audit sums of so many numbers."""
    budget = Budget(releases)
    audit(Noisy(), pair=pair_of(columns), claim=PureDP(1.0), budget=budget, seed=seed)


def processor_time(columns: int, releases: int, seed: int) -> float:
    """Return the processor time of such an audit, in seconds."""
    audited(columns, min(releases, 1000), seed)  # imports, and warms the caches
    started = time.process_time()
    audited(columns, releases, seed)
    return time.process_time() - started


def asserted(releases: int, seed: int) -> float:
    """Return the processor time of an assertion at its default budget, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        budgets = {"quick": releases, "standard": releases}
        auditor = Auditor(budgets, lambda record: None, lambda: Path(folder))
        for _ in range(2):
            started = time.process_time()
            auditor.assert_dp(
                lambda data, rng: data.sum() + rng.laplace(),
                pair=pair_of(1),
                claim=PureDP(1.0),
                seed=seed,
            )
    return time.process_time() - started


def bounded(size: int, seed: int) -> float:
    """Return the processor time of the bound from so many scores, in milliseconds."""
    rng = np.random.default_rng(seed)
    sides = rng.laplace(1.0, size=size), rng.laplace(size=size)
    times = []
    for _ in range(21):
        started = time.process_time()
        fixed_scores(*sides, rng=np.random.default_rng(seed))
        times.append(1000 * (time.process_time() - started))
    return median(times)


def rare_atom(seeds: int, seed: int) -> float:
    """Return the median releases that refute over the least that could.

    Once in `_ATOM` the sum is told as it is; else there is more noise than is needed.
    ``seeds``: how many runs.
    """
    limit = -math.log(1 - _CONFIDENCE) / (2 * growth(*_laws(), [(1.0, 1e-5)]))
    found = []
    for each in range(seed, seed + seeds):
        result = audit(
            Noisy(_SCALE, _ATOM),
            pair=pair_of(1),
            claim=_FALSE,
            confidence=_CONFIDENCE,
            budget=math.ceil(15 * limit),
            seed=each,
        )
        found.append(result.samples if result.refuted else math.inf)
    return median(found) / limit


def _laws() -> tuple[Array, Array]:
    """Return cells of the two laws: the atoms, one of each, and the noise."""
    edges = np.linspace(-12.0, 13.0, 1501)
    below = np.clip(np.stack([edges, edges - 1]) / _SCALE, -700, 700)
    reached = np.where(below < 0, np.exp(below) / 2, 1 - np.exp(-below) / 2)
    reached[:, 0], reached[:, -1] = 0.0, 1.0
    cells = (1 - _ATOM) * np.diff(reached, axis=1)
    return np.append(cells[0], [_ATOM, 0]), np.append(cells[1], [0, _ATOM])


def _alone(repetitions: int, size: int) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(("standard", "full"), (repetitions, size))


CASES = {
    "few releases": CostCase(
        ("one number", 0.25, "s"), partial(processor_time, 1), _alone(5, 200)
    ),
    "many releases": CostCase(
        ("one number", 0.45, "s"), partial(processor_time, 1), _alone(5, 100_000)
    ),
    "several numbers": CostCase(
        ("d = 20", 1.0, "s"), partial(processor_time, 20), _alone(3, 20_000)
    ),
    "many numbers": CostCase(
        ("d = 500", 1.5, "s"), partial(processor_time, 500), _alone(3, 1000)
    ),
    "many numbers, memory": CostCase(
        ("d = 500", 300.0, "MB"), partial(memory_alone, audited, 500), _alone(1, 1000)
    ),
    "assert_dp": CostCase(("one number", 3.0, "s"), asserted, _alone(3, 20_000)),
    "fixed_scores": CostCase(("Laplace", 5.0, "ms"), bounded, _alone(1, 1000)),
    "rare atom": CostCase(("1.5e-3", 3.0, "times"), rare_atom, _alone(1, 21)),
}
