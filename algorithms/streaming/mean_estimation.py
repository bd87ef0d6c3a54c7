r"""MeanEstimation: the mean of vectors near each other, wherever they are.

Source: Liu et al., NeurIPS 2022, Algorithm 5 and Lemma 6.2.

For vectors g_1, ..., g_m in R^d, and a scale Lambda of the largest eigenvalue of their
covariance that is public, or private already:

1. In each coordinate a private histogram of the m numbers, with bins of the width
   tau = 2^(1/4) K sqrt(Lambda) log^a(25). If no bin is left in some coordinate, or
   Lambda is not a positive number, output bottom (NaN); likewise if a fullest bin is
   2^53 or more from 0, where bins are narrower than doubles are apart.
2. Truncate each coordinate to l +- W, W = 3 K sqrt(Lambda) log^a(m d/zeta), where l is
   the left edge of the fullest bin.
3. Output the mean of the truncated vectors + N(0, s^2 I), s = Delta/mu.

(K, a) is the tail of Assumption A.4. Its proofs need K >= 1 or so, and a = 1 for
Gaussian rows; then no vector is truncated with probability 1 - zeta, and W is far wider
than need be, with noise to match. Here K is a parameter to be tuned; privacy does not
depend on it.

**Sensitivity.** Given the bins, one row replaced moves each coordinate of the mean by
at most 2 W/m, and the mean by at most Delta = 2 W sqrt(d)/m in l2 norm. It is attained
by a row that is above all windows and replaces one below.

**In doubles**, wherever the vectors are, the sensitivity is the same to the last bit.
(The mean of truncated vectors as they are, far from 0, is not: a sum of 2000 numbers
near 10^13 sqrt(Lambda) is rounded so that one row may move it by twice as much.)

- The bin of a number g is floor(g/tau), as rounded, a function of g alone: a row that
  is replaced moves from one bin to one other, as in the proof of the histogram.
- Given the bins, g becomes a whole number c(g) of steps W/L from the edge, the nearest
  to L (g - l)/W as rounded, truncated to +-L for L the largest power of 2 with m L <=
  2^53. It is a function of g, of the bins and of Lambda alone, so rounding in it is
  part of a map that each row goes through by itself; and sums of m such numbers are
  whole numbers of at most 2^53, which are exact in every order. One row replaced moves
  the sum by 2 L at most in each coordinate, by 2 L sqrt d in l2 norm.
- The noise, of deviation 2 L sqrt d/mu, comes next. What follows, times W/(m L) plus l,
  is done to the noisy sum, l and W, which are outputs: it may round as it likes. (That
  noise itself is made of doubles is another matter, as it is everywhere here.)
- To refuse a bin is a function of its number, an output of the histogram.

**Other windows.** Steps 1 and 2 are those of `dpaudit.algorithms.streaming.windows`: a
box about the left edge (`Tail`) or a ball about the middle of a bin (`Ball`), where all
of this holds with the ball's 2 W for 2 W sqrt d, and 2 L for 2 L sqrt d.

`as_published` shares this: the paper speaks of real numbers, and of those it is the
same mechanism, up to a rounding of W/(2 L) in each row.

**Privacy.** (epsilon, delta)-DP under REPLACE_ONE, all noisy counts included: see
`dpaudit.algorithms.streaming.mean_budget`. There are the split of the budget, the
print's and ours, and what is wrong with the paper's constant 8; and the claim of
`as_published` is proven for the epsilon < 0.9 of Lemma 6.2. (Under ADD_REMOVE the mean
alone would need m to be hidden.)
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, Pair, Relation
from dpaudit.algorithms.shared.bases import Batched, Rng, drawn_in_parts, enough_rows
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.mean_budget import (
    CalibratedSplit,
    PublishedSplit,
    Split,
    SplitWithConstant8,
)
from dpaudit.algorithms.streaming.moments import FixedGradients, Gradients
from dpaudit.algorithms.streaming.thresholded_counts import SparseCounts
from dpaudit.algorithms.streaming.windows import DEFAULT_TAIL, Window
from dpaudit.arrays import Array
from dpaudit.validation import Checked, Positive, check_length, check_matrix

__all__ = ["MeanEstimation", "mean_with_constant_8"]

_CHUNK = 2**20  # counts, or numbers of releases, that are made together
_LAST_BIN = 2.0**53  # from there on doubles do not tell a bin from its neighbours
_FAR_BIN = 5 * 2.0**49


@dataclass(frozen=True, kw_only=True)
class MeanEstimation(Batched[ArrayLike], Checked):
    """The noisy mean of truncated vectors, rows of shape (m, d), or bottom.

    Releases have shape (d,); bottom is NaN throughout.

    Parameters
    ----------
    split : Split
        How the budget is divided.
    tail : Window
        What bins and windows are.
    eigenvalue : float
        Lambda > 0. In DP-PCA the private estimate of each batch takes its place.

    Examples
    --------
    >>> mechanism = MeanEstimation.calibrated(1.0, 1e-6)
    >>> rng = np.random.default_rng(0)
    >>> rows = [50.0, -20.0] + rng.standard_normal((4000, 2))
    >>> mechanism.release(rows, rng=rng).round(1)
    array([ 50., -20.])
    >>> mechanism.release(rows[:100], rng=rng)
    array([nan, nan])
    """

    split: Split
    tail: Window = DEFAULT_TAIL
    eigenvalue: Positive = 1.0

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    @hands_on()
    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, uses: int = 1, **fields: Any
    ) -> Self:
        """Return the mechanism at the smallest noise that is proven for a split.

        That is what so many uses of the same rows promise altogether.
        """
        return cls(split=CalibratedSplit(epsilon, delta, uses=uses), **fields)

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the split of the paper, and the constant 12."""
        return cls(split=PublishedSplit(epsilon, delta), **fields)

    @property
    def claim(self) -> Claim:
        """The promise of the split, for all its uses together."""
        return ApproxDP(self.split.epsilon, self.split.delta)

    @property
    def budget(self) -> BudgetTree:
        return self.split.budget("mean-estimation")

    def deviation(
        self,
        eigenvalue: ArrayLike,
        count: int,
        dimension: int,
        zeta: float | None = None,
    ) -> Array:
        """Return s for estimates of Lambda, of their shape."""
        reach = self.tail.size(eigenvalue, count, dimension, zeta)
        return np.asarray(reach * (self._ratio(dimension) / count))

    def estimate(
        self,
        vectors: Gradients,
        eigenvalues: Array,
        *,
        zeta: float | None = None,
        rng: Rng,
    ) -> Array:
        """Return the release of every trial with its own Lambda, shape (trials, d).

        Where Lambda is not a finite number > 0, it is bottom.
        """
        d = vectors.dimension
        usable = (eigenvalues > 0) & np.isfinite(eigenvalues)
        scales = np.where(usable, eigenvalues, 1.0)[:, np.newaxis]
        widths = self.tail.width(scales)
        reach = self.tail.size(scales, vectors.count, d, zeta)
        counts = self._counts(vectors, widths)
        labels = self.split.noise(d).counts.fullest(counts, rng=rng).reshape(-1, d)
        centres = _centres(labels, widths, reach)
        centres[~usable] = np.nan
        totals = np.zeros(centres.shape)
        for part in vectors.parts():
            places = centres[:, np.newaxis], reach[:, np.newaxis]
            inside = _steps(self.tail, part, *places, vectors.count)
            totals += inside.sum(axis=1)
        return self._noisy(totals, centres, reach, vectors.count, rng)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        rows = check_matrix("data", data, min_rows=1)
        count, d = rows.shape
        noise = self.split.noise(d)
        width = self.tail.width(self.eigenvalue)
        reach = self.tail.size(self.eigenvalue, count, d)
        counts = self._counts(FixedGradients(rows), np.array([[width]]))

        def some(number: int) -> Array:
            repeated = counts.repeated(number)
            labels = noise.counts.fullest(repeated, rng=rng).reshape(-1, d)
            centres = _centres(labels, width, reach)
            totals = _totals(self.tail, rows, centres, reach)
            return self._noisy(totals, centres, reach, count, rng)

        return drawn_in_parts(size, (d,), _CHUNK // len(counts.counts), some)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return zero rows, and one that jumps from below all windows to above them.

        The mean moves by its full sensitivity. The default d is 1: its privacy is the
        same in all dimensions, but needs more rows in higher ones.
        """
        d = check_length(dimension, 1)
        counts = self.split.noise(d).counts
        rows = np.zeros((enough_rows(counts.threshold + 10 * counts.scale) + 2, d))
        rows[-1] = -2 * self.tail.size(self.eigenvalue, len(rows), d)
        return Pair(rows, np.concatenate([rows[:-1], -rows[-1:]]), self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case; full bins at the threshold; the worst case far away.

        The second loses a row, and all other rows are alone in their bins; d = 3. The
        third is where doubles are hardly closer to each other than bins are wide.
        """
        counts = self.split.noise(3).counts
        full = enough_rows(counts.threshold)
        width = float(self.tail.width(self.eigenvalue))
        rows = np.zeros((full + 10, 3))
        rows[full:] = width * (np.arange(10.0, 20.0)[:, np.newaxis] + 0.5)
        neighbour = rows.copy()
        neighbour[0] = width * 30.5
        worst, shift = self.worst_case(), width * _FAR_BIN
        return (
            worst,
            Pair(rows, neighbour, self.relation),
            Pair(worst.data + shift, worst.neighbour + shift, self.relation),
        )

    def _counts(self, vectors: Gradients, widths: Array) -> SparseCounts:
        """Count the bins of every coordinate of every trial; widths are (trials, 1)."""
        parts = []
        for part in vectors.parts():
            labels = self.tail.labels(part, widths[:, np.newaxis])
            columns = np.ascontiguousarray(labels.swapaxes(1, 2))
            parts.append(SparseCounts.of(columns.reshape(-1, part.shape[1])))
        return SparseCounts.joined(parts)

    def _ratio(self, dimension: int) -> float:
        """Return the deviation of the noise on a sum of vectors in units of W."""
        return self.tail.diameter(dimension) / self.split.noise(dimension).mu

    def _noisy(
        self, totals: Array, centres: Array, reach: Array, count: int, rng: Rng
    ) -> Array:
        """Return releases for whole numbers of steps, which nothing has rounded yet."""
        steps = _steps_to_the_end(count)
        releases = rng.standard_normal(totals.shape)
        releases *= steps * self._ratio(totals.shape[1])
        releases += totals
        releases *= reach / (steps * count)
        releases += centres
        return releases


def mean_with_constant_8(epsilon: float, delta: float) -> MeanEstimation:
    """Return a planted bug: two thirds of the noise that the promise needs."""
    split = SplitWithConstant8(epsilon, delta, histogram_share=0.05)
    return MeanEstimation(split=split)


def _centres(labels: Array, widths: Array, reach: Array) -> Array:
    """Return the centres of the windows that were found, shape (trials, d).

    NaN throughout a trial if none was in a coordinate, or doubles cannot tell the bin
    from its neighbours, or there is no window.
    """
    found = (np.abs(labels) < _LAST_BIN).all(axis=1, keepdims=True)
    found = found & (0 < reach) & (reach < np.inf)
    return np.where(found, labels, np.nan) * widths


def _steps_to_the_end(count: int) -> float:
    """Return L, the largest power of 2 with m L <= 2^53."""
    return 2.0 ** (53 - (count - 1).bit_length())


def _steps(
    window: Window, vectors: Array, centres: Array, reach: Array, count: int
) -> Array:
    """Return truncated vectors as whole numbers of steps, whose sums are exact."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inside = vectors - centres
        inside /= reach
    return window.steps(inside, _steps_to_the_end(count))


def _totals(window: Window, rows: Array, centres: Array, reach: Array) -> Array:
    """Return the sums of steps of the same rows, for each trial's centre."""
    d, totals = rows.shape[1], np.empty(centres.shape)
    length = 1 if window.separable else d
    for first in range(0, d, length):
        group = slice(first, first + length)
        # A value is the sum in a window that many releases share.
        values, place = np.unique(
            np.nan_to_num(centres[:, group]), axis=0, return_inverse=True
        )
        sums = np.empty(values.shape)
        for total, centre in zip(sums, values, strict=True):
            inside = _steps(window, rows[:, group], centre, reach, len(rows))
            inside.sum(axis=0, out=total)
        totals[:, group] = sums[place.reshape(-1)]
    return totals
