r"""PrivateHistogram: noisy counts of bins that are not listed beforehand.

Source: Karwa, Vadhan, *Finite sample differentially private confidence intervals*, ITCS
2018, Lemma 2.3; it is the histogram of Algorithms 4 and 5 in Liu et al., NeurIPS 2022.
(Stability based histograms are due to Bun, Nissim, Stemmer, ITCS 2016.)

1. c_k = the number of rows in bin k, for countably many bins k.
2. Non-empty bins: c_k + Lap(b), and 0 if that is below a threshold T.
3. Empty bins: 0, without noise. That is what makes step 2 finite, and needs T.

In the papers frequencies c_k/n are released, which is the same: the relation is
REPLACE_ONE, so n is public. A value v lies in bin floor(v/width). All non-empty bins
are released, and the claim is about all of them; the array that `release` returns is a
window on them, the `bins` consecutive bins from `first` on. (In doubles a value lies in
the bin floor(v/width) as rounded: 2^53 bins from 0 that is not the bin of its
neighbours in the reals, but it is one bin still, a function of that value alone. So
what follows holds for doubles as well.)

**Theorem.** For b = 2/epsilon and T = 1 + b log(1/(2 delta)), or T = 1 if that is less,
the release is (epsilon, delta)-DP under REPLACE_ONE, and both numbers are attained.

Proof. One row moves from a bin i to a bin j; the counts of D and D' are c, c - 1 in i
and c', c' + 1 in j, all other bins have the same law. A bin that is not empty on either
side is a function of its count plus Lap(b), so its loss is at most 1/b = epsilon/2 in
absolute value. A bin whose count is 1 on one side and 0 on the other is 0 there, and
here something else with probability q = P(1 + Lap(b) >= T) <= e^(-(T - 1)/b)/2 <=
delta: the loss is infinite with probability q and log(1 - q) < 0 otherwise, seen from
the side that has the row, and -log(1 - q) = l seen from the other. By case, with D
first, what exceeds e^epsilon times the law of D' is

- c >= 2, c' >= 1: nothing, the losses add up to at most epsilon;
- c = 1, c' >= 1: q, as all other losses are at most log(1 - q) + epsilon/2 < epsilon;
- c >= 2, c' = 0: the loss is at most l + epsilon/2 and always finite. It exceeds
  epsilon only if l > epsilon/2, and then at most 1 - e^(epsilon/2 - l) = 1 -
  e^(epsilon/2) (1 - q) <= q is above;
- c = 1, c' = 0: q, as all other losses are log(1 - q) + l = 0.

The same holds with D' first. QED. Attained: epsilon by full bins, where both noisy
counts are on the far sides of the counts with probability 1/4; delta by a lonely row
that moves to an empty bin, the last case, where delta(e) = q for all e >= 0.

The paper has T = 1 + b log(2/delta) (`as_published`), which costs delta/4 only: its
threshold is higher by b log 4 than it must be.
"""

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, Pair, Profile, Relation, UnsupportedError
from dpaudit.algorithms.shared.bases import Batched, Rng, drawn_in_parts, enough_rows
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.algorithms.textbook.base import check_dimension, check_scalars
from dpaudit.arrays import Array
from dpaudit.validation import (
    Checked,
    Count,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

__all__ = ["PrivateHistogram", "UnthresholdedHistogram"]

_CHUNK = 2**18  # counts that get their noise together


@dataclass(frozen=True, kw_only=True)
class PrivateHistogram(Batched[ArrayLike], Checked):
    """Noisy counts of the bins from `first` on, of a histogram with no end.

    Releases have shape (bins,); empty bins, and bins that are not shown, are exactly 0.
    Rows are values, shape (n,) or (n, 1).

    Parameters
    ----------
    noise : CountNoise
    claim : Claim
        What is promised for *all* bins together.
    width : float
        A value v is in bin floor(v/width). With 1, whole numbers are bins' labels.
    first : int
        The number of the first bin that a release shows.
    bins : int
        How many a release shows.

    Examples
    --------
    >>> mechanism = PrivateHistogram.calibrated(1.0, 1e-5, bins=4)
    >>> values = np.repeat([0.5, 2.0, 3.7, 99.0], [400, 1, 300, 700])
    >>> mechanism.release(values, rng=np.random.default_rng(0)).round()
    array([399.,   0.,   0., 300.])
    """

    noise: CountNoise
    claim: Claim
    width: Positive = 1.0
    first: Annotated[int, partial(check_count, minimum=-(2**53), maximum=2**53)] = 0
    bins: Count = 5

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the smallest noise and threshold proven above."""
        noise = CountNoise.calibrated(epsilon, delta)
        return cls(noise=noise, claim=ApproxDP(epsilon, delta), **fields)

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the threshold of the paper."""
        noise = CountNoise.as_published(epsilon, delta)
        return cls(noise=noise, claim=ApproxDP(epsilon, delta), **fields)

    def counts(self, data: ArrayLike) -> Array:
        """Return how many rows each of the bins has, shape (bins,); not private."""
        with np.errstate(over="ignore"):
            labels = np.floor(check_scalars(data) / self.width) - self.first
        inside = labels[(labels >= 0) & (labels < self.bins)].astype(np.intp)
        return np.bincount(inside, minlength=self.bins).astype(np.float64)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        counts = self.counts(data)
        kept = np.flatnonzero(counts)

        def some(number: int) -> Array:
            releases = np.zeros((number, self.bins))
            exact = np.broadcast_to(counts[kept], (number, len(kept)))
            noisy = self.noise.noisy(exact, rng=rng)
            releases[:, kept] = np.where(noisy > -np.inf, noisy, 0.0)
            return releases

        width = _CHUNK // max(1, len(kept))
        return drawn_in_parts(size, (self.bins,), width, some)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss of what a release shows, shape (size,)."""
        here, there = (
            self.noise.log_density(np.asarray(releases), self.counts(rows))
            for rows in (data, other)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(here.sum(axis=1) - there.sum(axis=1))

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the exact profile, the constant q, of a lonely row that moves.

        That is known where both bins, one empty, are shown, and for no other pair.
        """
        one, two = self.counts(pair.data), self.counts(pair.neighbour)
        moved = sorted(zip(one[one != two], two[one != two], strict=True))
        escape = self.noise.escape
        if moved != [(0, 1), (1, 0)] or escape >= 1:
            raise UnsupportedError(
                "the exact profile is known for a row that is alone in its bin and "
                "moves to an empty one, both of them shown"
            )
        return Profile((0.0,), (escape,))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row that moves from one full bin to another; rows have length 1."""
        check_dimension(dimension, 1)
        return self._moved(2, 0, 1)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case; a lonely row, beside a full bin, that moves; far away.

        The last is a row of the full bin that moves to one 2^60 bins off.
        """
        return self._moved(2, 0, 1), self._moved(1, 1, 2), self._moved(1, 0, 2**60)

    @property
    def budget(self) -> BudgetTree:
        return BudgetTree.of_claim(
            "private-histogram",
            self.claim,
            note=f"Lap({self.noise.scale:.4g}) on counts, threshold "
            f"{self.noise.threshold:.4g}",
        )

    def _moved(self, full: int, source: int, target: int) -> Pair:
        """Return a row that moves between bins, the first ones of which are full.

        They have so many rows that they are shown nearly always.
        """
        rows = int(max(0.0, self.noise.threshold) + 10 * self.noise.scale) + 2
        common = np.arange(enough_rows(full * rows)) // rows
        middles = (np.array([*common, source]) + self.first + 0.5) * self.width
        other = middles.copy()
        other[-1] = (target + self.first + 0.5) * self.width
        return Pair(middles, other, self.relation)


@dataclass(frozen=True, kw_only=True)
class UnthresholdedHistogram(PrivateHistogram):
    """A planted bug: a private histogram that shows every bin that is not empty.

    Whether a lonely row is there is then visible in every release: private at no
    epsilon, and at no delta < 1. An audit must refute it: do not use it.
    """

    @hands_on()
    @classmethod
    def planted(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the noise that is right, and no threshold."""
        noise = CountNoise(2 / check_positive("epsilon", epsilon), -np.inf)
        claim = ApproxDP(epsilon, check_fraction("delta", delta))
        return cls(noise=noise, claim=claim, **fields)

    @property
    def true_epsilon(self) -> float:
        """Infinite, at every delta < 1."""
        return inf

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a lonely row that moves to an empty bin; rows have length 1."""
        check_dimension(dimension, 1)
        return self._moved(1, 1, 2)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and a row that moves between full bins."""
        return self._moved(1, 1, 2), self._moved(2, 0, 1)
