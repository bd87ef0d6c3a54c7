r"""TopEigenvalue: how large the largest eigenvalue of a covariance is, roughly.

Source: Liu et al., NeurIPS 2022, Algorithm 4 and Theorem 6.1. The constants of its
listing are not given there as numbers; they are parameters here.

For vectors g_1, ..., g_m in R^d with mean mu and covariance H:

1. h_i = g_(2i) - g_(2i-1). The mean cancels, and **the covariance of h_i is 2 H**.
2. Split them, in order, into k = ceil(C1 log(1/(delta zeta))/epsilon) groups of b; k
   is at least 4, or no bin could have the rows that it needs at large epsilon.
3. lambda^(j) = the largest eigenvalue of (1/(2 b)) sum h h^T over group j. The 2 is
   what undoes the doubling, so that lambda^(j) is about ||H||.
4. A private histogram of the k numbers with the bins {0} and [2^(i/r), 2^((i+1)/r)),
   i = 0, +-1, ...: r = 4 in the paper, whose estimate is then within a factor of
   sqrt 2; the default here is r = 1.
5. If no bin is left, output bottom (NaN). Else the left edge of the fullest.

If there are fewer than k differences every one is a group. Vectors that are left over
are not used. lambda^(j) that overflow have the bin [infinity, infinity).

**Privacy.** (epsilon, delta)-DP under REPLACE_ONE, exactly what the histogram costs
(`dpaudit.algorithms.streaming.private_histogram`). Proof: k is public. A row that is
replaced is in one difference and in one group, because both are made by position; so
one of k numbers changes, and the histogram is one of k rows of which one is replaced.
The rest is done to its output. Under ADD_REMOVE all differences behind the row would
change. (Nothing is summed over groups, so the proof is one of doubles as well, wherever
the rows are: rounding is part of the map from a group to its number.)

When it is bottom, and how far off the scale may be: docs/streaming.md#what-is-bottom.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, InputError, Pair, Relation
from dpaudit.algorithms.shared.bases import Batched, Rng, drawn_in_parts, enough_rows
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.moments import FixedGradients, Gradients
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise, SparseCounts
from dpaudit.arrays import Array
from dpaudit.validation import (
    Checked,
    Count,
    Fraction,
    Positive,
    check_fraction,
    check_length,
    check_matrix,
)

__all__ = ["TopEigenvalue"]

_CHUNK = 2**20  # counts that get their noise together
_LEAST = 4  # groups


@dataclass(frozen=True, kw_only=True)
class TopEigenvalue(Batched[ArrayLike], Checked):
    """A power of 2^(1/r) near the largest eigenvalue of the covariance of the rows.

    Rows have the shape (m, d), releases are numbers >= 0, shape (); NaN is bottom.

    Parameters
    ----------
    noise : CountNoise
        Of the histogram.
    claim : ApproxDP
        What is promised; epsilon and delta also decide the number of groups.
    group_constant : float
        C1 > 0; more groups make bottom rarer, and each of them smaller.
    bins_per_octave : int
        r >= 1.
    zeta : float
        In (0, 1): how likely a failure may be, by the paper's analysis.

    Examples
    --------
    >>> mechanism = TopEigenvalue.calibrated(1.0, 1e-6)
    >>> mechanism.groups(), round(mechanism.noise.threshold, 2)
    (93, 27.24)
    >>> rng = np.random.default_rng(0)
    >>> rows = 10 + 3.5 * rng.standard_normal((20_000, 2))
    >>> float(mechanism.release(rows, rng=rng))
    8.0
    >>> float(mechanism.release(rows[:40], rng=rng))
    nan
    """

    noise: CountNoise
    claim: ApproxDP
    group_constant: Positive = 5.0
    bins_per_octave: Count = 1
    zeta: Fraction = 0.01

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.claim.parameters["delta"])

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise and threshold for the promise."""
        noise = CountNoise.calibrated(epsilon, delta)
        return cls(noise=noise, claim=ApproxDP(epsilon, delta), **fields)

    @hands_on("group_constant", "zeta")
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the histogram and the bins of the paper."""
        noise, claim = CountNoise.as_published(epsilon, delta), ApproxDP(epsilon, delta)
        return cls(noise=noise, claim=claim, bins_per_octave=4, **fields)

    def groups(self, zeta: float | None = None) -> int:
        """Return k, for another probability of failure than the mechanism's own."""
        zeta = self.zeta if zeta is None else zeta
        epsilon, delta = self.claim.parameters.values()
        tries = -log(delta) - log(zeta)
        return max(_LEAST, ceil(self.group_constant * tries / epsilon))

    def group_values(self, vectors: Gradients, zeta: float | None = None) -> Array:
        """Return lambda^(1), ..., lambda^(k), shape (trials, k); not private.

        There are at least 2 vectors, and k is less than `groups` says if there are
        fewer differences.
        """
        if vectors.count < 2:
            raise InputError(
                f"data must have at least 2 rows to take a difference of, got "
                f"{vectors.count}"
            )
        differences = vectors.count // 2
        k = min(self.groups(zeta), differences)
        size = differences // k
        parts = [
            _largest_eigenvalues(part, size)
            for part in vectors.parts(2 * size * k, multiple=2 * size)
        ]
        return np.concatenate(parts, axis=1)

    def estimate(
        self, vectors: Gradients, *, zeta: float | None = None, rng: Rng
    ) -> Array:
        """Return the release of every trial, shape (trials,), NaN for bottom."""
        return self._release(self._counts(vectors, zeta), rng)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        counts = self._counts(FixedGradients(check_matrix("data", data)), None)
        width = _CHUNK // len(counts.counts)
        return drawn_in_parts(
            size, (), width, lambda number: self._release(counts.repeated(number), rng)
        )

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return two bins of groups, and one that moves to the fuller one.

        The other is ahead by noise, and with it the loss is near epsilon, in about one
        release of forty. Rows are multiples of e_1; the bins differ by a factor of
        2^20. The default d is 1: rows enter through one eigenvalue a group.
        """
        d = check_length(dimension, 1)
        k = enough_rows(self.groups())
        scales = np.full(k, 2.0**10)
        scales[: max(1, round(k / 2 - 2 * self.noise.scale))] = 1.0
        return self._pair(scales, 2.0**10, d)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case; the fullest bin at the threshold; far-away rows.

        The second loses a row, and all other groups have bins of their own. The third
        is the worst case about a mean that is 2^40 from 0.
        """
        k = enough_rows(self.groups())
        full = min(k - 1, int(self.noise.threshold))
        scales = np.exp2(10.0 + np.arange(k) * (400 / k))
        scales[: full + 1] = 1.0
        worst = self.worst_case()
        return (
            worst,
            self._pair(scales, 2.0**5, 1),
            Pair(worst.data + 2.0**40, worst.neighbour + 2.0**40, self.relation),
        )

    @property
    def budget(self) -> BudgetTree:
        """What is spent: the histogram of the groups' eigenvalues."""
        return BudgetTree.of_claim(
            "top-eigenvalue",
            self.claim,
            note=f"histogram of {self.groups()} groups, Lap({self.noise.scale:.4g}), "
            f"threshold {self.noise.threshold:.4g}",
        )

    def _counts(self, vectors: Gradients, zeta: float | None) -> SparseCounts:
        with np.errstate(divide="ignore"):
            octaves = np.log2(self.group_values(vectors, zeta))
        return SparseCounts.of(np.floor(self.bins_per_octave * octaves))

    def _release(self, counts: SparseCounts, rng: Rng) -> Array:
        labels = self.noise.fullest(counts, rng=rng)
        return np.asarray(np.exp2(labels / self.bins_per_octave))

    def _pair(self, scales: Array, other: float, dimension: int) -> Pair:
        """Return groups of one difference each, the first of which has another scale.

        The lambda^(j) are at the geometric centres of their bins, where rounding does
        not matter.
        """
        rows = np.zeros((2 * len(scales), dimension))
        rows[1::2, 0] = np.sqrt(2) * scales * 2 ** (0.25 / self.bins_per_octave)
        neighbour = rows.copy()
        neighbour[1, 0] *= other / scales[0]
        return Pair(rows, neighbour, self.relation)


def _largest_eigenvalues(vectors: Array, size: int) -> Array:
    """Return the largest eigenvalue of (1/(2 b)) sum h h^T for each group, (trials, k).

    b is the size of a group; the vectors have shape (trials, 2 b k, d). It is infinite
    where that overflows.
    """
    trials, _, d = vectors.shape
    with np.errstate(over="ignore", invalid="ignore"):
        steps = vectors[:, 1::2] - vectors[:, ::2]
        steps = steps.reshape(trials, -1, size, d)
        transposed = steps.swapaxes(-2, -1)
        # Both products have the same eigenvalues, but for zeros.
        product = transposed @ steps if d <= size else steps @ transposed
    finite = np.isfinite(product).all(axis=(-2, -1))
    product[~finite] = 0.0
    largest = np.linalg.eigvalsh(product)[..., -1] / (2 * size)
    # Rounding may leave a little less than 0 of a matrix that is 0.
    return np.where(finite, np.maximum(largest, 0.0), np.inf)
