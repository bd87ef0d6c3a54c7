r"""Neighbouring data on which the forms of DP-PCA show one row best.

All rows but one are multiples of e_1, so that w is near e_1 before the last batch, and
the entries of a gradient but the first are 0 without noise. In the first part of a
batch rows are 0, but for one in each group, sqrt(kappa) e_1: the group's eigenvalue is
(kappa w_1)^2/(2 b). In the second part they are sqrt(M) e_1, all in one bin.

- `far_row`: in the second part of the last batch, a row R (e_1 + h u), scaled to R, is
  replaced by R (e_1 - h u), with a unit vector u orthogonal to e_1. Its gradient is
  far above the windows of the entries after the first, or far below: their means move
  by all that they can, sqrt((d - 1)/d) of the sensitivity, and so does w_T. h is small
  where R may be large, so that w_1 has the last word even in the first batch. Where
  windows are balls, it is the direction of the gradient from their centre that counts,
  so h = 3 and M is far below R^2: the mean moves by 0.95 of the sensitivity. (With one
  batch only, whose w is random, h = 1.)
- `two_bins`: in the first part of the last batch, a group's eigenvalue moves from one
  bin to another, which are about level, so that the loss of its choice is near epsilon.
  The choice shows in w_T: some rows of the second part are far beyond all windows on
  one side, and turn w_T further where windows are wider.
- `near_threshold`: likewise, a group leaves the only bin that has a chance to be
  shown, so that bottom becomes more likely.
- `far_from_zero`, where items may be any matrices: those of the last batch are -I/eta_T
  but for a few, so that its gradients lie 2^44 bins from 0 and take w back, and what
  is left of w_T is noise, and where a far row moves the mean.
"""

from dataclasses import dataclass, replace
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.streaming.minibatch_pca import MinibatchPCA, scale_rows
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair
from dpaudit.validation import check_length

__all__ = ["ShownByPairs"]


_MANY = 1e4  # by how much the signal of a step exceeds what there was before
_FAR = 1.5  # by how much a far row passes its windows
_TURN = 4.0  # how far those rows turn w_T, in deviations of its noise
_BINS_AWAY = 2.0**44  # how far from 0 the last gradients are
_BEFORE = 2.0**8  # by how much those of batches before exceed them
_TILT, _BOUNDED_TILT = 0.01, 0.5  # h, without a row norm and with one
_PATIENCE = 8  # by how much batches may be larger so that there are two
_STEEP, _SMALL = 3.0, 0.01  # h where windows are balls, and the most of M/R^2


@dataclass(frozen=True, eq=False)
class Scene:
    """Data on which no step fails, and where things are in the last batch.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    start, second : int
        Where the last batch begins, and its second part.
    places : ndarray of int, shape (k,)
        In each of its groups, the row that is not 0.
    kappa : float
        So that these are sqrt(kappa) e_1.
    far, tilt : float
        R, the largest length of a row, and h.
    """

    rows: Array
    start: int
    second: int
    places: NDArray[np.intp]
    kappa: float
    far: float
    tilt: float

    def oblique(self) -> Array:
        """Return R (e_1 + h u), scaled to R."""
        d = self.rows.shape[1]
        row = np.full(d, self.tilt / sqrt(d - 1))
        row[0] = 1.0
        return np.asarray(row * self.far * (1 - 1e-9) / np.linalg.norm(row))

    def with_scales(self, factors: Array) -> "Scene":
        """Return the same with other kappas in the last batch, by these factors."""
        rows = self.rows.copy()
        rows[self.places, 0] = np.sqrt(self.kappa * factors)
        return replace(self, rows=rows)

    def pair(self, place: int, row: Array) -> Pair:
        """Return these rows, and the same with one replaced."""
        other = self.rows.copy()
        other[place] = row
        return Pair(self.rows, other, "replace-one")


def scene(mechanism: MinibatchPCA, dimension: int) -> Scene:
    """Return the rows that the pairs have in common."""
    counts = mechanism.mean.split.noise(dimension).counts
    wanted = int(counts.threshold + 10 * counts.scale) + 2
    # The number of batches follows from that of the rows, and it from their needs.
    steps, share, window = 1, mechanism.scale_share, mechanism.mean.tail
    while True:
        zeta = mechanism.scale_finder.zeta / (2 * steps)
        groups = mechanism.scale_finder.groups(zeta)
        size = ceil(max(2 * groups / share, wanted / (1 - share)))
        if mechanism.batch_size is not None:
            size, steps = mechanism.batch_size, 2
            break
        needed = mechanism.batches(size * steps)[1]
        if needed <= steps:
            break
        steps += 1
    if not window.separable and mechanism.batch_size is None and steps == 1:
        size, steps = _two_batches(mechanism, size)
        groups = mechanism.scale_finder.groups(
            mechanism.scale_finder.zeta / (2 * steps)
        )
    part = scale_rows(size, share)
    groups = min(groups, part // 2)
    rates = mechanism.step_sizes.sizes(steps)
    if mechanism.row_norm is None:
        signal = _MANY / float(rates.min())
        far, tilt = 1e3 * sqrt(signal), _TILT
    else:
        signal, far = mechanism.row_norm**2, mechanism.row_norm
        tilt = _BOUNDED_TILT
    if not window.separable:
        signal, tilt = min(signal, _SMALL * far**2), _STEEP if steps > 1 else 1.0
    # The largest eigenvalue of a group is (kappa w_1)^2/(2 b), and |w_1| <= 1.
    members = part // 2 // groups
    unit = mechanism.scale_factor / (2 * members)
    reach = float(window.size(unit, size - part, dimension, zeta))
    aside = far**2 * tilt / (1 + tilt**2)
    aside /= sqrt(dimension - 1) if window.separable else 1.0
    kappa = min(aside / _FAR / reach, signal)
    rows = np.zeros((size * steps, dimension))
    starts = size * np.arange(steps)
    places = 2 * members * np.arange(groups) + 1
    rows[(starts[:, np.newaxis] + places).reshape(-1), 0] = sqrt(kappa)
    second = starts[:, np.newaxis] + np.arange(part, size)
    rows[second.reshape(-1), 0] = sqrt(signal)
    start = int(starts[-1])
    return Scene(rows, start, start + part, start + places, kappa, far, tilt)


def _two_batches(mechanism: MinibatchPCA, size: int) -> tuple[int, int]:
    """Return the size of two batches of at least `size`, after one of which w is known.

    If they had to be far larger, that of one batch. And how many they are.
    """
    least = sqrt(2 * mechanism.batch_constant)  # log n for two batches
    if least > log(2 * _PATIENCE * size):
        return size, 1
    double = max(size, ceil(exp(least) / 2) + 1)
    return double, mechanism.batches(2 * double)[1]


def far_row(mechanism: MinibatchPCA, dimension: int | None) -> Pair:
    """Return a far row of the last batch's second part that changes sides.

    The default d is the larger one of 3 and k + 1; at least 2 and k.
    """
    made = scene(mechanism, _dimension(mechanism, dimension))
    row = made.oblique()
    rows = made.rows.copy()
    rows[-1] = row
    mirrored = -row
    mirrored[0] = row[0]
    return replace(made, rows=rows).pair(len(rows) - 1, mirrored)


def two_bins(mechanism: MinibatchPCA, dimension: int) -> Pair:
    """Return two bins of groups, and one that moves to the fuller one.

    The other bin is behind by noise; its scale is larger, by 2^8, and windows by 2^4.
    """
    made = scene(mechanism, dimension)
    k = len(made.places)
    behind = max(1, round(k / 2 - mechanism.scale_finder.noise.scale))
    factors = np.ones(k)
    factors[behind:] = 2.0**-4
    moved = made.with_scales(factors)
    rest = len(moved.rows) - moved.second
    wanted = _TURN * sqrt(dimension) / mechanism.mean.split.noise(dimension).mu
    moved.rows[-min(rest // 3, ceil(wanted)) :] = moved.oblique()
    return moved.pair(int(made.places[0]), moved.rows[made.places[-1]])


def near_threshold(mechanism: MinibatchPCA, dimension: int) -> Pair:
    """Return a bin at the threshold that loses a group; all others have their own."""
    made = scene(mechanism, dimension)
    k = len(made.places)
    finder = mechanism.scale_finder
    full = min(k - 1, int(finder.noise.threshold))
    factors = np.ones(k)
    # Eigenvalues are quadratic in kappa: each is a bin and a half below the last.
    factors[full:] = np.exp2(
        -0.75 / finder.bins_per_octave * np.arange(1, k - full + 1)
    )
    moved = made.with_scales(factors)
    return moved.pair(int(made.places[0]), moved.rows[made.places[-1]] / 2)


def far_from_zero(mechanism: MinibatchPCA, dimension: int) -> Pair:
    """Return matrices whose gradients are far from 0, and one beyond all windows.

    In the entries but the second it is beyond them on one side, and on the other in
    the neighbour. In the second entry a few others are, which w_T turns to.
    """
    made = scene(mechanism, dimension)
    count, size = len(made.rows), mechanism.batches(len(made.rows))[0]
    part = made.second - made.start
    back = 1 / float(mechanism.step_sizes.sizes(count // size)[-1])
    # The groups' eigenvalues are such that a bin has the width back/_BINS_AWAY.
    unit = mechanism.scale_factor / (2 * (part // 2 // len(made.places)))
    kappa = back / _BINS_AWAY / float(mechanism.mean.tail.width(unit))
    items = np.zeros((count, dimension, dimension))
    second = np.arange(count) % size >= part
    items[second, 0, 0] = _BEFORE * back
    items[~second, 0, 0] = np.where(made.rows[~second, 0], kappa, 0.0)
    items[made.second :] = -back * np.eye(dimension)
    wanted = _TURN * sqrt(dimension) / mechanism.mean.split.noise(dimension).mu
    turning = made.second + np.arange(min((size - part) // 3, ceil(wanted)))
    items[turning, 1, 0] = back
    far = np.where(np.arange(dimension) == 1, 0.0, back)
    other = items.copy()
    items[-1, :, 0] += far
    other[-1, :, 0] -= far
    return Pair(items, other, "replace-one")


class ShownByPairs(MinibatchPCA):
    """A form of DP-PCA with the pairs above."""

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a far-away row of the last batch that changes sides.

        See `far_row`. The default d is the larger one of 3 and k + 1; at least 2, and
        more of them show sqrt((d - 1)/d) of the privacy of the mean. It is seen by the
        first component; others differ by noise.
        """
        return far_row(self, dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, a row that moves a bin of the scale, and others."""
        d = _dimension(self)
        pairs = self.worst_case(), two_bins(self, d), near_threshold(self, d)
        if self.row_norm is not None:
            return pairs
        return *pairs, far_from_zero(self, d)


def _dimension(mechanism: MinibatchPCA, asked: int | None = None) -> int:
    k = mechanism.rank
    return check_length(asked, max(3, k + 1), minimum=max(2, k))
