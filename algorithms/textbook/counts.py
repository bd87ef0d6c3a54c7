r"""Counting queries, and the mechanisms that add noise to them one by one.

Rows are people, entries in [0, 1] (others are clipped, each row by itself): column j
says whether, or how far, a person counts for query j. The answers are the column sums.

Under REPLACE_ONE, each answer moves by at most 1, in any direction: the row
(1, 0, 1) replaced by (0, 1, 0) moves three answers by -1, 1, -1. Conversely any two
vectors of non-negative integers that differ by at most 1 everywhere are the answers of
two neighbours (`neighbours_with`). This is the neighbourhood for which the literature
states, and refutes, report-noisy-max and the sparse vector technique.

**The truncated geometric mechanism** of the DP-Sniper suite, with its logarithm.
Sources: Balcer, Vadhan, *Differential privacy on finite computers*, JPC 2019, Algorithm
4.8 (GeoSample) and Theorem 4.7, for at most n people; Bichsel et al., *DP-Sniper*, IEEE
S&P 2021 (n = 5).

1. k = ceil(log(2/epsilon)), a = 2^k/(2^k + 1).
2. c = the number of people, at most n, whose bit is 1.
3. Output z in {0, ..., n} with P(Z <= z) = a^(c - z)/(1 + a) for z < c, and
   1 - a^(z - c + 1)/(1 + a) for c <= z < n.

Step 3 is two-sided geometric noise, P(noise = m) proportional to a^|m|, clamped to the
range: every probability is a rational number with a known denominator, which is why
the algorithm exists.

True epsilon. Clamping moves no mass between {Z <= c} and {Z > c}, and for neighbours c
and c + 1 the loss is -log a on the one and log a on the other: both atoms and clamped
tails are multiplied by a for every unit of distance. So the mechanism is, on every
worst pair, randomised response at

.. math:: -\log a = \log(1 + 2^{-k})

exactly. With the logarithm to base 2, 2^-k <= epsilon/2 and the claim holds with room
to spare. **The suite takes the natural logarithm**: then 2^-k can be as large as
(epsilon/2)^(log 2), and the claim fails for small epsilon. At epsilon = 0.1, k is 3 in
place of 5, and the true epsilon is log(9/8) = 0.1178.

**Noisy histograms**, right and wrong. Source: Ding, Wang, Wang, Zhang, Kifer,
*Detecting violations of differential privacy*, CCS 2018, Algorithms 9 and 10 (here for
five bins, as in DP-Sniper).

1. x = the sum of the rows, each clipped to l1 norm 1; for one-hot rows, a histogram.
2. NoisyHist1 outputs x_j + Lap(1/epsilon) for every bin.
   NoisyHist2 outputs x_j + Lap(epsilon): the scale is upside down.

True epsilon. Under ADD_REMOVE the l1 sensitivity is 1, so by the argument at the head
of `dpaudit.algorithms.textbook.sums` the true epsilon is one over the scale:
**epsilon for NoisyHist1, 1/epsilon for NoisyHist2** (10 where 0.1 is claimed; the claim
of NoisyHist2 holds for epsilon >= 1). Both are attained, on {y_1 <= x_1}.

**PrefixSum: running totals of noisy counts.** Source: Wang, Ding, Wang, Kifer, Zhang,
*Proving differential privacy with shadow execution*, PLDI 2019; ten queries in
DP-Sniper.

1. Output x_1 + noise_1, then that plus x_2 + noise_2, and so on, noise Lap(1/epsilon).

True epsilon. Totals and increments determine each other, so the release is k answers
with independent Lap(1/epsilon) noise. Where one person moves one answer by 1 (the
setting of the source) that is exactly epsilon-DP. Under REPLACE_ONE with counts a
person moves all k by 1, the l1 sensitivity is k, and by the argument at the head of
`dpaudit.algorithms.textbook.sums` the true epsilon is **k epsilon**, attained on
{all increments <= 0} for the answers (0, ..., 0) against (1, ..., 1). At epsilon = 0.1
and k = 10 it is 1.0: the claim is false under this relation.
"""

from abc import ABC
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import ceil, log, log1p
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.textbook import base
from dpaudit.arrays import Array
from dpaudit.validation import Count, check_length, check_matrix

__all__ = ["NoisyHist1", "NoisyHist2", "PrefixSum", "TruncatedGeometric"]


@dataclass(frozen=True)
class CountingMechanism(base.PureTextbookMechanism, ABC):
    """A mechanism on column sums of rows in [0, 1]^k, under REPLACE_ONE."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def answers(self, data: ArrayLike) -> Array:
        """Return the column sums of the clipped rows, shape (k,)."""
        return check_matrix("data", data, min_rows=1).clip(0.0, 1.0).sum(axis=0)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return pairs worth auditing: the worst case, then the usual patterns."""
        worst = self.worst_case()
        return (worst, *count_patterns(worst.data.shape[1]))


@dataclass(frozen=True)
class FixedQueriesMechanism(CountingMechanism, ABC):
    """A counting mechanism whose privacy depends on how many columns there are."""

    _: KW_ONLY
    queries: Count = 10

    def answers(self, data: ArrayLike) -> Array:
        answers = super().answers(data)
        if len(answers) != self.queries:
            raise InputError(
                f"data must have {self.queries} columns, got {len(answers)}"
            )
        return answers


def neighbours_with(first: Sequence[int], second: Sequence[int]) -> Pair:
    """Return neighbours whose answers are these, non-negative integers 1 apart at most.

    The common rows are stairs: row i counts for the queries with more than i common
    votes. The row that is replaced comes last.

    Examples
    --------
    >>> pair = neighbours_with([2, 0], [1, 1])
    >>> pair.data
    array([[1., 0.],
           [1., 0.]])
    >>> pair.neighbour
    array([[1., 0.],
           [0., 1.]])
    """
    one, two = np.array(first), np.array(second)
    if one.shape != two.shape or min(*one, *two) < 0 or np.abs(one - two).max() > 1:
        raise InputError(
            "answers of neighbours are non-negative and 1 apart at most, "
            f"got {first} and {second}"
        )
    common = np.minimum(one, two)
    stairs = np.arange(common.max())[:, np.newaxis] < common
    data, neighbour = (np.vstack([stairs, [x - common]]) for x in (one, two))
    return Pair(data, neighbour, Relation.REPLACE_ONE)


def count_patterns(queries: int) -> tuple[Pair, ...]:
    """Return the patterns of answers that are usually tried on counting mechanisms.

    Source: Ding et al., *Detecting violations of differential privacy*, CCS 2018,
    Table 3: one answer moves; all move together; one against the rest; half against
    half.
    """
    half = queries // 2
    ones, zeros = [1] * queries, [0] * queries
    against = [[2, *zeros[1:]], [0] + [2] * (queries - 1)]
    halves = ones[:half] + zeros[half:], zeros[:half] + ones[half:]
    patterns = (
        (ones, [0, *ones[1:]]),
        (ones, [2, *ones[1:]]),
        (ones, zeros),
        (ones, [2] * queries),
        *((ones, other) for other in against),
        halves,
    )
    return tuple(neighbours_with(*pattern) for pattern in patterns)


@dataclass(frozen=True)
class TruncatedGeometric(base.OneLoss):
    """A count in {0, ..., people}, with clamped geometric noise.

    Releases are whole numbers as floats, shape (). Rows are bits: scalars, clipped to
    [0, 1] and rounded; a count beyond `people` is reduced to it.

    Parameters
    ----------
    people : int
        Public bound n on the count, >= 1.
    """

    _: KW_ONLY
    people: Count = 5

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    @property
    def true_epsilon(self) -> float:
        """log(1 + 2^-k) with k = ceil(log(2/epsilon)), exactly."""
        return log1p(2.0 ** -ceil(log(2 / self.epsilon)))

    def distribution(self, count: int) -> Array:
        """Return the probabilities of 0, ..., people on that count."""
        distances = np.abs(np.arange(self.people + 1) - count)
        masses = np.exp(-self.true_epsilon * distances)
        masses[1:-1] *= -np.expm1(-self.true_epsilon)  # the ends have clamped tails
        return masses / (1 + np.exp(-self.true_epsilon))

    def answers(self, data: ArrayLike) -> Array:
        """Return the count, shape ()."""
        bits = np.rint(base.check_scalars(data).clip(0.0, 1.0))
        return np.minimum(bits.sum(), float(self.people))

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        up_to = np.cumsum(self.distribution(int(answers)))[:-1]
        return np.searchsorted(up_to, rng.random(size), side="right").astype(np.float64)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        near, far = (np.abs(releases - self.answers(rows)) for rows in (data, other))
        return np.asarray(self.true_epsilon * (far - near))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return counts 0 and 1: attained on {Z = 0} and on {Z > 0}."""
        base.check_dimension(dimension, 1)
        return Pair([0.0], [0.0, 1.0], self.relation)


@dataclass(frozen=True)
class _NoisyHistogram(base.LaplaceNoise, ABC):
    """Releases have the shape (k,) of the rows."""

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    @property
    def true_epsilon(self) -> float:
        """One over the scale of the noise, exactly."""
        return 1 / self.scale

    def answers(self, data: ArrayLike) -> Array:
        rows = check_matrix("data", data)
        return (rows / np.abs(rows).sum(axis=1, keepdims=True).clip(1.0)).sum(axis=0)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a person of the first of `dimension` bins (default 5), added."""
        bins = check_length(dimension, 5)
        first, empty = np.eye(1, bins), np.zeros((1, bins))
        return Pair(empty, np.vstack([empty, first]), self.relation)


@dataclass(frozen=True)
class NoisyHist1(_NoisyHistogram):
    """A histogram with noise Lap(1/epsilon): correct, and exactly epsilon-DP."""


@dataclass(frozen=True)
class NoisyHist2(_NoisyHistogram):
    """A histogram with noise Lap(epsilon): exactly (1/epsilon)-DP."""

    @property
    def scale(self) -> float:
        """Epsilon, where 1/epsilon is needed."""
        return self.epsilon


@dataclass(frozen=True)
class PrefixSum(FixedQueriesMechanism, base.LaplaceNoise):
    """Running totals of noisy counts; releases have shape (queries,).

    Examples
    --------
    >>> PrefixSum(0.1).true_epsilon
    1.0
    """

    @property
    def true_epsilon(self) -> float:
        """Queries times epsilon, exactly."""
        return self.queries * self.epsilon

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        increments = super()._sample(answers, size, rng=rng)
        return np.cumsum(increments, axis=1, out=increments)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        increments = np.diff(releases, axis=1, prepend=0.0)
        return super().privacy_loss(increments, data, other)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return all answers 0 against all 1: attained on {all increments <= 0}."""
        queries = base.check_dimension(dimension, self.queries)
        return neighbours_with([0] * queries, [1] * queries)
