r"""Which rows a step reads, and what that says about its noise: two kinds of batches.

`PoissonBatches`: the corrected mechanisms. Every row is in a batch with a public
probability, sums are divided by a public number, and the claim is under either
relation; the proofs are in `dpaudit.algorithms.robust.subsampling`.

`PublishedBatches`: Maunu, Yu, Lerman, MSML 2022, sections 3.3 and 5.1: B rows drawn
with replacement, and noise on the mean with the variance (B/N)^2 T log(1/delta)/
(epsilon^2 N^2), too small by (B/N)^2 (`dpaudit.algorithms.robust.published_ggd`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.robust.batch_mixtures import (
    BatchNumbers,
    multinomial_numbers,
    poisson_numbers,
)
from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.subsampling import (
    padded_with_zeros,
    poisson_batches,
    taken,
    with_replacement,
)
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = [
    "PoissonBatches",
    "PublishedBatches",
    "check_batch",
    "drawn_with_replacement",
    "published_batch_size",
]

Batches = Callable[[int], Array]
"""From a number of trials to the rows of a batch for each, (trials, B, D)."""


@dataclass(frozen=True, kw_only=True)
class PoissonBatches:
    """Poisson samples with a public denominator; a part of a mechanism.

    Parameters
    ----------
    sigma : float
        Standard deviation of every entry of the noise on the sum of the terms.
    rate : float
        q in (0, 1], with which every row is in a batch.
    batch_size : float
        B > 0: a public number by which sums are divided.
    relation : Relation
    """

    sigma: float
    rate: float
    batch_size: float
    relation: Relation = Relation.REPLACE_ONE

    _least_rows: ClassVar[int] = 0

    def check_batches(self) -> None:
        """Raise if a number is not allowed."""
        for name in ("sigma", "rate", "batch_size"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        if self.rate > 1:
            raise InputError(f"rate must be at most 1, got {self.rate!r}")
        object.__setattr__(self, "relation", Relation.parse(self.relation))

    def noise_scale(self, count: int) -> float:
        """Return sigma."""
        return self.sigma

    def denominator(self, count: int) -> float:
        """Return B."""
        return self.batch_size

    def batch_numbers(self, counts: NDArray[np.intp]) -> BatchNumbers:
        """Return how often each distinct row is in a batch."""
        return poisson_numbers(counts, self.rate)

    def batches(self, rows: Array, rng: np.random.Generator) -> Batches:
        """Return what draws batches, filled up with zeros, which add nothing."""
        count, padded = rows.shape[-2], padded_with_zeros(rows)

        def draw(trials: int) -> Array:
            return taken(padded, poisson_batches(count, self.rate, trials, rng=rng))

        return draw


@dataclass(frozen=True, kw_only=True)
class PublishedBatches:
    """Batches with replacement and the noise of the print; a part of a mechanism.

    Parameters
    ----------
    unit : float
        sqrt(T log(1/delta))/epsilon: sigma on the mean is B/N^2 times that.
    batch_size : int, optional
        B. Default: `published_batch_size` for the claim's epsilon and the rows there
        are.
    """

    unit: float
    batch_size: int | None = None

    if TYPE_CHECKING:

        @property
        def claim(self) -> Claim:
            """The promise."""
            ...

        @property
        def iterations(self) -> int:
            """T."""
            ...

    def check_batches(self) -> None:
        """Raise if a number is not allowed."""
        object.__setattr__(self, "unit", check_nonnegative("unit", self.unit))
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)

    @staticmethod
    def unit_for(epsilon: float, delta: float, iterations: int) -> float:
        """Return sqrt(T log(1/delta))/epsilon."""
        log_term = log(1 / check_fraction("delta", delta))
        iterations = check_count("iterations", iterations)
        return sqrt(iterations * log_term) / check_positive("epsilon", epsilon)

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    def batch_size_for(self, count: int) -> int:
        """Return B for `count` rows."""
        if self.batch_size is not None:
            return self.batch_size
        epsilon = self.claim.parameters["epsilon"]
        return published_batch_size(epsilon, self.iterations, count)

    def check_rows(self, count: int) -> None:
        """Raise if a batch is larger than the data."""
        check_batch(self.batch_size_for(count), count)

    def noise_scale(self, count: int) -> float:
        """Return sigma on the sum, for `count` rows."""
        return (self.batch_size_for(count) / count) ** 2 * self.unit

    def denominator(self, count: int) -> float:
        """Return B for `count` rows."""
        return float(self.batch_size_for(count))

    def batch_numbers(self, counts: NDArray[np.intp]) -> BatchNumbers:
        """Return how often each distinct row is in a batch."""
        return multinomial_numbers(counts, self.batch_size_for(int(counts.sum())))

    def batches(self, rows: Array, rng: np.random.Generator) -> Batches:
        """Return what draws batches."""
        return drawn_with_replacement(rows, self.batch_size_for(rows.shape[-2]), rng)


def drawn_with_replacement(
    rows: Array, batch_size: int, rng: np.random.Generator
) -> Batches:
    """Return what draws batches of rows, each row independent of the others."""

    def draw(trials: int) -> Array:
        batches = with_replacement(rows.shape[-2], batch_size, trials, rng=rng)
        return taken(rows, batches)

    return draw


def check_batch(batch_size: int, count: int) -> None:
    """Raise if a batch is larger than the data."""
    if batch_size > count:
        raise InputError(
            f"batch_size must be at most the number of rows, {count}, got {batch_size}"
        )


def published_batch_size(epsilon: float, iterations: int, rows: int) -> int:
    """Return max(N sqrt(epsilon/(4 T)), 1), rounded, and at most N.

    Examples
    --------
    >>> published_batch_size(0.8, 2000, 2000)
    20
    """
    epsilon = check_positive("epsilon", epsilon)
    share = sqrt(epsilon / (4 * check_count("iterations", iterations)))
    rows = check_count("rows", rows)
    return min(max(round(rows * share), 1), rows)
