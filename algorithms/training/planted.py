r"""DP-SGD with the mistakes that are made of it; every claim here is false.

Each is `dpaudit.algorithms.training.dp_sgd.DPSGD` but for one thing, with the noise of
an accountant that does not know of it.

- `BatchClippedSGD` clips the sum over a batch to C, and not every gradient. One row far
  away turns the sum around: it moves by 2 C. (All rows are in its batches, so that few
  releases show it.)
- `MeanBatchSGD` divides a sum by the size that the batch happens to have, and adds
  noise for a batch of the expected size. Where there are few rows, one of them moves
  the mean by C, and the noise is for C/B.
- `FixedBatchSGD` reads the rows in turn, once, with the noise that suffices for secret
  Poisson samples. A row is in one step for certain, without amplification:
  mu = 1/sigma. Weights that are a sum over all steps hide which step it was; where
  steps are so large that a step forgets those before, the last one shows it.
- `rule_of_thumb` takes sigma = q sqrt(T)/epsilon, which leaves out log(1/delta).
- `PrivateCountSGD` divides by q times the number of rows, which is private under
  ADD_REMOVE: the weights are larger by a factor where there are fewer rows, and so is
  their noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import cycle
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Pair, Relation, UnsupportedError
from dpaudit.algorithms.shared.bases import Rng, Values
from dpaudit.algorithms.shared.batches import Batches, Drawing, PoissonBatches
from dpaudit.algorithms.training.dp_sgd import DPSGD
from dpaudit.arrays import Array
from dpaudit.validation import Count, check_length

__all__ = [
    "BatchClippedSGD",
    "FixedBatchSGD",
    "MeanBatchSGD",
    "PrivateCountSGD",
    "rule_of_thumb",
]

_MANY = 409  # rows, so that one more is in the last of ten batches


@dataclass(frozen=True, kw_only=True)
class _Planted(DPSGD):
    """What keeps the constructor's noise and has no known likelihood."""

    relation: ClassVar[Relation] = Relation.ADD_REMOVE  # type: ignore[misc]

    _noise_for: ClassVar[Mapping[str, Any]] = {}
    """What steps it hides, where they are not those of `DPSGD.calibrated`."""

    @classmethod
    def planted(cls, epsilon: float, delta: float) -> Self:
        """Return the mistake, with the noise of `DPSGD.calibrated` and its claim."""
        right = DPSGD.calibrated(epsilon, delta, **cls._noise_for)
        parts = {each.name: getattr(right, each.name) for each in fields(right)}
        del parts["relation"]
        return cls(**parts | {"batches": cls._batches(_poisson(right))})

    @staticmethod
    def _batches(right: PoissonBatches) -> Batches:
        return right

    def transcript_loss(
        self, transcript: Values, data: ArrayLike, other: ArrayLike
    ) -> Array:
        raise UnsupportedError(f"no likelihood is known for {type(self).__name__}")


@dataclass(frozen=True, kw_only=True)
class BatchClippedSGD(_Planted):
    """Sums clipped as a whole, with noise for ten steps on all rows."""

    _noise_for: ClassVar[Mapping[str, Any]] = {
        "rows": 100,
        "batch_size": 100,
        "iterations": 10,
        "learning_rate": 0.01,
    }

    def summed(self, rows: Array, weights: Array) -> Array:
        lengths = self.gradient_lengths(rows, weights)
        # Of sums of numbers up to 1e300, in a unit in which squares are finite.
        unit = np.maximum(lengths.max(axis=1, initial=0.0), 1.0)[:, np.newaxis]
        sums = ((lengths / unit)[:, np.newaxis] @ rows[..., :-1])[:, 0]
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        shrunk = self.clip_norm / np.where(norms > 0, norms, 1.0)
        return np.asarray(sums * np.minimum(unit, shrunk))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row, and beside it one far away that pulls the other way.

        Not so far that the weights, which are small, could be on its side for good: it
        has no gradient there.
        """
        row = super().worst_case(dimension).neighbour
        far = -100 * row
        far[0, -1] = 1.0
        return Pair(row, np.vstack([row, far]), self.relation)


@dataclass(frozen=True, kw_only=True)
class MeanBatchSGD(_Planted):
    """Means over the batch that was drawn; rows with x = 0 are not counted."""

    def summed(self, rows: Array, weights: Array) -> Array:
        sums = super().summed(rows, weights)
        sizes = np.count_nonzero(rows[..., -1], axis=-1)
        expected = self.denominator(0)
        return sums * (expected / np.maximum(sizes, 1))[..., np.newaxis]


@dataclass(frozen=True)
class RowsInTurn(Batches):
    """Every k-th row, from the first on, then from the second on, and so forth.

    B is a public number.
    """

    epoch: Count
    batch_size: float

    least_rows: ClassVar[int] = 0
    counts_rows: ClassVar[bool] = False

    def size_for(self, count: int) -> float:
        return self.batch_size

    def drawing(self, rows: Array, rng: Rng) -> Drawing:
        firsts = cycle(range(self.epoch))
        return lambda trials: rows[next(firsts) :: self.epoch]


@dataclass(frozen=True, kw_only=True)
class FixedBatchSGD(_Planted):
    """Batches of fixed rows, with noise for random ones of ten large steps."""

    _noise_for: ClassVar[Mapping[str, Any]] = {"iterations": 10, "learning_rate": 10.0}

    @staticmethod
    def _batches(right: PoissonBatches) -> Batches:
        return RowsInTurn(round(1 / right.rate), right.batch_size)

    def transcript_loss(
        self, transcript: Values, data: ArrayLike, other: ArrayLike
    ) -> Array:
        steps = transcript["steps"]
        total = np.zeros(len(steps))
        for sign, each in ((1, data), (-1, other)):
            drawing = self.batches.drawing(self.rows(each), np.random.default_rng())
            weights = np.zeros(steps[:, 0].shape)
            for noisy in steps.swapaxes(0, 1):
                away = noisy - self.summed(drawing(len(steps)), weights)
                total -= sign * np.sum(away**2, axis=1) / (2 * self.noise_scale(0) ** 2)
                weights += self.learning_rate / self.denominator(0) * noisy
        return total

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return rows of length 1 with either label, and one more in the last batch.

        The many keep the weights where none of their gradients is clipped, so that a
        step leads back to where they agree.
        """
        row = super().worst_case(dimension).neighbour
        assert isinstance(self.batches, RowsInTurn)  # of everything that is planted
        rows = np.repeat(row, _MANY, axis=0)
        rows[:, 0] = 1.0
        rows[:, -1] = np.where(np.arange(_MANY) // self.batches.epoch % 2, -1.0, 1.0)
        return Pair(rows, np.vstack([rows, row]), self.relation)


@dataclass(frozen=True)
class _CountedBatches(PoissonBatches):
    """Poisson samples, with q n for a denominator."""

    def size_for(self, count: int) -> float:
        return self.rate * max(count, 1)


@dataclass(frozen=True, kw_only=True)
class PrivateCountSGD(_Planted):
    """A number of rows for a public number."""

    @staticmethod
    def _batches(right: PoissonBatches) -> Batches:
        return _CountedBatches(rate=right.rate, batch_size=right.batch_size)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return one row of zeros, and two: nothing but their number moves anything."""
        rows = np.zeros((2, check_length(dimension, 2, minimum=2)))
        return Pair(rows[:1], rows, self.relation)


def rule_of_thumb(epsilon: float, delta: float) -> DPSGD:
    """Return `DPSGD` with sigma = q sqrt(T)/epsilon, held to (epsilon, delta)."""
    right = DPSGD.calibrated(epsilon, delta)
    multiplier = _poisson(right).rate * sqrt(right.iterations) / epsilon
    return DPSGD(claim=right.claim, batches=right.batches, multiplier=multiplier)


def _poisson(right: DPSGD) -> PoissonBatches:
    assert isinstance(right.batches, PoissonBatches)  # of every calibration
    return right.batches
