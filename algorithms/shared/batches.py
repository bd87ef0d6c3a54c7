r"""Which rows a step reads, and by which public number their sum is divided.

- `AllRows`: every step reads all N, and N is public.
- `PoissonBatches`: every row is in a batch with probability q, independently. This is
  what privacy amplification needs (`dpaudit.algorithms.shared.subsampling`), and the
  size of a batch is random: nothing but q is public, so a sum is divided by a public
  number, whatever the size of the batch that it is over.
- `WithReplacement`: B places, each filled with one of the N rows, uniformly. A row can
  be there twice; this is what Maunu, Yu, Lerman, MSML 2022, section 3.3, say. Without a
  B of its own it is theirs, max(N sqrt(epsilon/(4 T)), 1) of section 5.1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit import InputError, Relation
from dpaudit.algorithms.shared.bases import Replaced, Rng
from dpaudit.algorithms.shared.batch_mixtures import (
    BatchNumbers,
    multinomial_numbers,
    poisson_numbers,
)
from dpaudit.algorithms.shared.subsampling import noise_multiplier
from dpaudit.arrays import Array
from dpaudit.validation import Checked, Count, Positive, check_count, check_positive

__all__ = ["AllRows", "Batches", "PoissonBatches", "RandomBatches", "WithReplacement"]

Indices: TypeAlias = NDArray[np.intp]

Drawing: TypeAlias = Callable[[int], Array]
"""From a number of trials to rows, (N, D) for all or (trials, B, D), drawn afresh."""


class Batches(Checked, ABC):
    """Which rows a step reads."""

    least_rows: ClassVar[int] = 1
    counts_rows: ClassVar[bool] = True
    """Whether what is done depends on N, which is public under REPLACE_ONE only."""

    @abstractmethod
    def size_for(self, count: int) -> float:
        """Return the B by which a sum is divided, unless there are too few rows."""

    @abstractmethod
    def drawing(self, rows: Array, rng: Rng) -> Drawing:
        """Return what draws batches of rows of shape (N, D), or (trials, N, D)."""

    def check_relation(self, relation: Relation) -> None:
        """Raise `InputError` if what is done depends on an N that is private."""
        if self.counts_rows and relation is Relation.ADD_REMOVE:
            raise InputError(
                f"relation must be replace-one, where the number of rows is public, "
                f"with {self!r}"
            )


class RandomBatches(Batches):
    """Secret random batches."""

    @abstractmethod
    def numbers(self, counts: Indices) -> BatchNumbers:
        """Return how often each distinct row is in a batch."""


@dataclass(frozen=True)
class AllRows(Batches):
    """All rows in every step."""

    def size_for(self, count: int) -> float:
        return count

    def drawing(self, rows: Array, rng: Rng) -> Drawing:
        return lambda trials: rows


@dataclass(frozen=True, kw_only=True)
class PoissonBatches(RandomBatches):
    """Poisson samples with a public denominator.

    Parameters
    ----------
    rate : float
        q in (0, 1], with which every row is in a batch.
    batch_size : float
        B > 0: a public number by which sums are divided.
    """

    rate: Annotated[float, partial(check_positive, largest=1.0)]
    batch_size: Positive

    least_rows: ClassVar[int] = 0
    counts_rows: ClassVar[bool] = False

    @classmethod
    def of_rows(
        cls, rows: int, batch_size: int | None, epsilon: float, iterations: int
    ) -> Self:
        """Return batches of so many of about `rows` rows on average; both public.

        By default they are as many as the paper's rule says for epsilon and T steps.
        """
        rows = check_count("rows", rows)
        if batch_size is None:
            batch_size = published_batch_size(epsilon, iterations, rows)
        batch_size = check_count("batch_size", batch_size, maximum=rows)
        return cls(rate=batch_size / rows, batch_size=float(batch_size))

    def __str__(self) -> str:
        return f"Poisson samples of rate {self.rate:g}"

    def noise_multiplier(
        self,
        epsilon: float,
        delta: float,
        *,
        relation: Relation,
        replaced: Replaced,
        **options: Any,
    ) -> float:
        """Return the least noise of steps on such batches, over the length of a term.

        As `dpaudit.algorithms.shared.subsampling.noise_multiplier`; how the terms of
        a row and of its replacement lie is looked at under REPLACE_ONE only.
        """
        return noise_multiplier(
            float(epsilon),
            float(delta),
            rate=self.rate,
            replaced=replaced if relation is Relation.REPLACE_ONE else None,
            **options,
        )

    def size_for(self, count: int) -> float:
        return self.batch_size

    def drawing(self, rows: Array, rng: Rng) -> Drawing:
        count, padded = rows.shape[-2], padded_with_zeros(rows)

        return lambda trials: taken(
            padded, poisson_batches(count, self.rate, trials, rng=rng)
        )

    def numbers(self, counts: Indices) -> BatchNumbers:
        return poisson_numbers(counts, self.rate)


@dataclass(frozen=True, kw_only=True)
class WithReplacement(RandomBatches):
    """Batches of independent uniform rows.

    Parameters
    ----------
    batch_size : int, optional
        B. Default: the share of the rows there are, rounded, and at least 1.
    share : float
        > 0; looked at if there is no `batch_size`. From 1 on, a batch has N rows.
    """

    batch_size: Count | None = None
    share: Positive = 1.0

    @classmethod
    def as_published(
        cls, epsilon: float, iterations: int, batch_size: int | None = None
    ) -> Self:
        """Return batches of that size, or of the paper's share, sqrt(epsilon/(4 T))."""
        epsilon = check_positive("epsilon", epsilon)
        share = sqrt(epsilon / (4 * check_count("iterations", iterations)))
        return cls(batch_size=batch_size, share=share)

    def size_for(self, count: int) -> int:
        if self.batch_size is None:
            return min(max(round(count * self.share), 1), count)
        if self.batch_size > count:
            raise InputError(
                f"batch_size must be at most the number of rows, {count}, "
                f"got {self.batch_size}"
            )
        return self.batch_size

    def drawing(self, rows: Array, rng: Rng) -> Drawing:
        count = rows.shape[-2]
        size = self.size_for(count)
        return lambda trials: taken(rows, rng.integers(count, size=(trials, size)))

    def numbers(self, counts: Indices) -> BatchNumbers:
        return multinomial_numbers(counts, self.size_for(int(counts.sum())))


def published_batch_size(epsilon: float, iterations: int, rows: int) -> int:
    """Return max(N sqrt(epsilon/(4 T)), 1), rounded, and at most N."""
    batches = WithReplacement.as_published(epsilon, iterations)
    return batches.size_for(check_count("rows", rows))


def poisson_batches(count: int, rate: float, size: int, *, rng: Rng) -> Indices:
    """Draw `size` batches of N rows, each row in each with probability q in (0, 1].

    What is returned has the shape (size, longest): the numbers of the rows in each
    batch, in order, and then N as often as is needed to fill up.
    """
    cells = count * size
    if rate == 1:
        hits = np.arange(cells)
    elif (flips := getattr(rng, "flips", None)) is not None:
        # A generator that follows a mechanism draw by draw wants independent flips of
        # this shape, true with probability q, and not what is quickest with others.
        hits = np.flatnonzero(flips(rate, (size, count)))
    else:
        # The gaps between the successes of a Bernoulli process are geometric.
        hits = np.empty(0, dtype=np.int64)
        last = -1
        while last < cells:
            expected = (cells - last) * rate
            some = int(expected + 4 * sqrt(expected) + 8)
            gaps = np.minimum(rng.geometric(rate, some), cells + 1)
            more = last + np.cumsum(gaps)
            hits = np.concatenate([hits, more])
            last = int(more[-1])
        hits = hits[hits < cells]
    owner, row = np.divmod(hits, max(count, 1))
    lengths = np.bincount(owner, minlength=size)
    places = np.arange(len(hits)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    batches = np.full((size, int(lengths.max(initial=0))), count, dtype=np.intp)
    batches[owner, places] = row
    return batches


def padded_with_zeros(rows: Array) -> Array:
    """Return rows and one of zeros, with which `poisson_batches` fills up."""
    zeros = np.zeros((*rows.shape[:-2], 1, rows.shape[-1]))
    return np.concatenate([rows, zeros], axis=-2)


def taken(rows: Array, batches: Indices) -> Array:
    """Return the rows of each batch, shape (trials, B, D).

    Rows are the same for all trials, (N, D), or each trial's own, (trials, N, D);
    batches are their numbers, (trials, B).
    """
    if rows.ndim == 2:
        return np.asarray(rows[batches])
    return np.asarray(rows[np.arange(len(rows))[:, np.newaxis], batches])
