r"""Neighbouring data on which DP-PCA, or two-stage PCA, shows one row best.

A step finds a scale from the first part of its rows and a mean from the second
(`dpaudit.algorithms.streaming.minibatch_pca`). In the first part rows are 0, but for
one in each group, a multiple of e_1, which sets the group's eigenvalue. In the second
they are sqrt(M) e_1, all in one bin. u is a unit vector orthogonal to what is known of
the components before the step. The pairs that both mechanisms have:

- `far_row`: in the second part, a row R (e_1 + h u), scaled to R, becomes R (e_1 - h
  u): its gradient is beyond the windows, to opposite sides.
- `two_bins`: a group's eigenvalue moves from one bin to another, which are about level,
  so that the loss of its choice is near epsilon. The choice shows in the release: some
  rows of the second part are far beyond all windows on one side, and turn the mean
  further where windows are wider.
- `near_threshold`: likewise, a group leaves the only bin that has a chance to be shown,
  so that bottom becomes more likely.
- `far_from_zero`: a far row where gradients lie 2^44 bins from 0.

**DP-PCA.** All rows but one are multiples of e_1, so that w is near e_1 before the last
batch, which is where one differs, and the entries of a gradient but the first are 0
without noise. Those of the groups are sqrt(kappa) e_1: the eigenvalue is
(kappa w_1)^2/(2 b). A far row's gradient is far above the windows of the entries after
the first, or far below: their means move by all that they can, sqrt((d - 1)/d) of the
sensitivity, and so does w_T. h is small where R may be large, so that w_1 has the last
word even in the first batch. Where windows are balls, it is the direction of the
gradient from their centre that counts, so h = 3 and M is far below R^2: the mean moves
by 0.95 of the sensitivity. (With one batch only, whose w is random, h = 1.)
`far_from_zero` is for items that may be any matrices: those of the last batch are
-I/eta_T but for a few, which takes w back, and what is left of w_T is noise, and where
a far row moves the mean.

**Two-stage PCA.** The first half has rows R e_1, ..., R e_k, fewer of each than of the
one before, so that V is near (e_1, ..., e_k). In the second half the groups'
eigenvalues are in the middle of a bin, M = R^2/100 and h = 3: the mean moves by 0.95 of
what it can, and the window is of the size M, or less. Where a bin is not shown, V is
released, and else what is half way from e_1 to u. One more pair is `two_directions`: in
the first half, e_1 becomes e_2, where there are as many of either, and nothing else.
The second half is 0, so that V is released: its first column says how both diagonal
entries compare, of which noise has the deviation 2 sigma and the row moves the
difference by 2 R^2: all that it can.

`oblique_pair` is for the forms of Oja's algorithm.
"""

from dataclasses import dataclass
from math import ceil, exp, floor, log, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.shared.bases import enough_rows
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_length

__all__ = ["far_row", "far_row_of_a_half"]

_MANY = 1e4  # by how much the signal of a step exceeds what there was before
_FAR = 1.5  # by how much a far row passes its windows
_TURN = 4.0  # how far rows turn the mean, in deviations of its noise
_BINS_AWAY = 2.0**44  # how far from 0 the last gradients are
_BEFORE = 2.0**8  # by how much those of batches before exceed them
_TILT, _BOUNDED_TILT = 0.01, 0.5  # h, without a row norm and with one
_PATIENCE = 8  # by how much batches may be larger so that there are two
_STEEP, _SMALL = 3.0, 0.01  # h where windows are balls, and the most of M/R^2
_EVEN = 50  # rows of either direction


def scale_rows(size: int, share: float) -> int:
    """Return how many items of a batch the scale is estimated from.

    At least 2, which have a difference, and not all.
    """
    return max(2, int(share * size))


@dataclass(frozen=True, eq=False)
class _Scene:
    """Data on which no step fails, and where things are in the last batch."""

    rows: Array  # written to by what makes a pair of them
    places: NDArray[np.intp]  # in each group of the scale's, the row that is not 0
    second: int  # where the rows begin that the mean is of
    far: Array  # R (e_1 + h u), scaled to R

    def pair(self, place: int, row: Array) -> Pair:
        """Return these rows, and the same with one replaced."""
        other = self.rows.copy()
        other[place] = row
        return Pair(self.rows, other, Relation.REPLACE_ONE)

    def far_row(self) -> Pair:
        """Return a far row, the last one, that changes sides."""
        mirrored = -self.far
        mirrored[0] = self.far[0]
        self.rows[-1] = self.far
        return self.pair(len(self.rows) - 1, mirrored)

    def two_bins(self, mechanism: Any, length: int) -> Pair:
        """Return two bins of groups, and one that moves to the fuller one.

        The other bin is behind by noise; its scale is larger, by 2^8, and windows by
        2^4. Gradients have that length.
        """
        groups = len(self.places)
        behind = max(1, round(groups / 2 - mechanism.scale_finder.noise.scale))
        self.rows[self.places[behind:], 0] /= 4  # the fourth root of 2^8
        turning = _turning(mechanism, self.rows.shape[1], length)
        turning = min((len(self.rows) - self.second) // 3, turning)
        self.rows[-turning:] = self.far
        return self.pair(int(self.places[0]), self.rows[self.places[-1]])


def _turning(mechanism: Any, dimension: int, length: int) -> int:
    """Return how many rows turn a mean of gradients of that length."""
    return ceil(_TURN * sqrt(dimension) / mechanism.mean.split.noise(length).mu)


def _shown(mechanism: Any, length: int) -> int:
    """Return how many rows a bin of gradients has that is shown nearly always."""
    counts = mechanism.mean.split.noise(length).counts
    return int(counts.threshold + 10 * counts.scale) + 2


def oblique_pair(
    dimension: int, *, count: int, unit: float, matrices: bool = False
) -> Pair:
    """Return rows at e_1, and one half-way to e_2, or to -e_2 on the other side.

    For d = 1 the last one is at e_1 or zero. All have the squared length `unit`; as
    matrices they are x x^T.
    """
    rows = np.zeros((count, dimension))
    rows[:, 0] = sqrt(unit)
    other = rows.copy()
    if dimension > 1:
        rows[-1, :2] = sqrt(0.5 * unit)
        other[-1, :2] = rows[-1, :2] * (1, -1)
    else:
        other[-1] = 0
    if matrices:
        rows, other = (each[:, :, None] * each[:, None] for each in (rows, other))
    return Pair(rows, other, Relation.REPLACE_ONE)


# DP-PCA


def far_row(mechanism: Any, dimension: int | None = None) -> Pair:
    """Return a far row of the last batch's second part that changes sides."""
    k = mechanism.rank
    d = check_length(dimension, max(3, k + 1), minimum=max(2, k))
    return _batches(mechanism, d)[0].far_row()


def batch_pairs(mechanism: Any) -> tuple[Pair, ...]:
    """Return the other pairs of a `MinibatchPCA`."""
    d = max(3, mechanism.rank + 1)
    bins = _batches(mechanism, d)[0].two_bins(mechanism, d)
    pairs = bins, _near_threshold(mechanism, d)
    if mechanism.row_norm is not None:
        return pairs
    return *pairs, _far_from_zero(mechanism, d)


def _batches(mechanism: Any, dimension: int) -> tuple[_Scene, int, float]:
    """Return the rows that the pairs have in common.

    Also where the last batch begins, and kappa.
    """
    wanted = _shown(mechanism, dimension)
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
    rows = np.zeros((enough_rows(size * steps), dimension))
    starts = size * np.arange(steps)
    places = 2 * members * np.arange(groups) + 1
    rows[(starts[:, np.newaxis] + places).reshape(-1), 0] = sqrt(kappa)
    second = starts[:, np.newaxis] + np.arange(part, size)
    rows[second.reshape(-1), 0] = sqrt(signal)
    start = int(starts[-1])
    row = np.full(dimension, tilt / sqrt(dimension - 1))
    row[0] = 1.0
    row = row * far * (1 - 1e-9) / np.linalg.norm(row)
    return _Scene(rows, start + places, start + part, row), start, kappa


def _two_batches(mechanism: Any, size: int) -> tuple[int, int]:
    """Return the size of two batches of at least `size`, after one of which w is known.

    If they had to be far larger, that of one batch. And how many they are.
    """
    least = sqrt(2 * mechanism.batch_constant)  # log n for two batches
    if least > log(2 * _PATIENCE * size):
        return size, 1
    double = max(size, ceil(exp(least) / 2) + 1)
    return double, mechanism.batches(2 * double)[1]


def _near_threshold(mechanism: Any, dimension: int) -> Pair:
    """Return a bin at the threshold that loses a group; all others have their own."""
    made, _, kappa = _batches(mechanism, dimension)
    finder, k = mechanism.scale_finder, len(made.places)
    full = min(k - 1, int(finder.noise.threshold))
    # Eigenvalues are quadratic in kappa: each is a bin and a half below the last.
    below = 0.75 / finder.bins_per_octave * np.arange(1, k - full + 1)
    made.rows[made.places[full:], 0] = np.sqrt(kappa * np.exp2(-below))
    return made.pair(int(made.places[0]), made.rows[made.places[-1]] / 2)


def _far_from_zero(mechanism: Any, dimension: int) -> Pair:
    """Return matrices whose gradients are far from 0, and one beyond all windows.

    In the entries but the second it is beyond them on one side, and on the other in
    the neighbour. In the second entry a few others are, which w_T turns to.
    """
    made, start, _ = _batches(mechanism, dimension)
    count, size = len(made.rows), mechanism.batches(len(made.rows))[0]
    part = made.second - start
    back = 1 / float(mechanism.step_sizes.sizes(count // size)[-1])
    # The groups' eigenvalues are such that a bin has the width back/_BINS_AWAY.
    unit = mechanism.scale_factor / (2 * (part // 2 // len(made.places)))
    kappa = back / _BINS_AWAY / float(mechanism.mean.tail.width(unit))
    items = np.zeros((count, dimension, dimension))
    second = np.arange(count) % size >= part
    items[second, 0, 0] = _BEFORE * back
    items[~second, 0, 0] = np.where(made.rows[~second, 0], kappa, 0.0)
    items[made.second :] = -back * np.eye(dimension)
    turning = min((size - part) // 3, _turning(mechanism, dimension, dimension))
    items[made.second : made.second + turning, 1, 0] = back
    far = np.where(np.arange(dimension) == 1, 0.0, back)
    other = items.copy()
    items[-1, :, 0] += far
    other[-1, :, 0] -= far
    return Pair(items, other, Relation.REPLACE_ONE)


# Two-stage PCA


def far_row_of_a_half(mechanism: Any, dimension: int | None = None) -> Pair:
    """Return a far row of the second half that changes sides."""
    k = mechanism.rank
    d = check_length(dimension, max(3, k + 1), minimum=k + 1)
    return _halves(mechanism, d).far_row()


def half_pairs(mechanism: Any) -> tuple[Pair, ...]:
    """Return a pair in the first half of a `TwoStagePCA`, and others in the second."""
    k = mechanism.rank
    d = max(3, k + 1)
    return (
        _two_directions(mechanism, d),
        _halves(mechanism, d).two_bins(mechanism, d * k),
        _near_half_threshold(mechanism, d),
        _halves(mechanism, d, 1 / _BINS_AWAY).far_row(),
    )


def _halves(mechanism: Any, dimension: int, nearness: float = 1.0) -> _Scene:
    """Return the rows that the pairs have in common.

    The largest size of a window is the share `nearness` of M.
    """
    k, norm, finder = mechanism.rank, mechanism.row_norm, mechanism.scale_finder
    share, window = mechanism.scale_share, mechanism.mean.tail
    wanted = _shown(mechanism, dimension * k)
    half = ceil(max(2 * finder.groups() / share, wanted / (1 - share)))
    part = scale_rows(half, share)
    groups = min(finder.groups(), part // 2)
    rows = np.zeros((enough_rows(2 * half), dimension))
    # Rows of direction j are from (j/k)^(1/2) of the half on: fewer and fewer.
    directions = np.floor(k * (np.arange(half) / half) ** 2).astype(int)
    rows[np.arange(half), directions] = norm
    signal = _SMALL * norm**2
    rows[half + part :, 0] = sqrt(signal)
    members = part // 2 // groups
    size = float(window.size(1.0, half - part, dimension * k))
    bins = finder.bins_per_octave
    label = floor(2 * bins * log2(nearness * signal / size))
    eigenvalue = 2.0 ** ((label + 0.5) / bins)
    # A group's eigenvalue is (x_1^2 w_1)^2/(2 b), and w_1 is near 1.
    places = half + 2 * members * np.arange(groups, dtype=np.intp) + 1
    rows[places, 0] = (2 * members * eigenvalue) ** 0.25
    return _Scene(rows, places, half + part, _leaning(dimension, k, _STEEP, norm))


def _leaning(dimension: int, k: int, slope: float, norm: float) -> Array:
    """Return e_1 + slope u, scaled to a norm."""
    row = np.zeros(dimension)
    row[k:] = slope * (1 / sqrt(dimension - k))
    row[0] = 1.0
    return np.asarray(row * (norm * (1 - 1e-9) / np.linalg.norm(row)))


def _two_directions(mechanism: Any, dimension: int) -> Pair:
    """Return a row of the first half that turns from e_1 to e_2."""
    rows = np.zeros((4 * _EVEN, dimension))
    rows[1:_EVEN, 0] = rows[_EVEN : 2 * _EVEN - 1, 1] = mechanism.row_norm
    one, other = rows.copy(), rows
    one[0, 0] = other[0, 1] = mechanism.row_norm
    return Pair(one, other, Relation.REPLACE_ONE)


def _near_half_threshold(mechanism: Any, dimension: int) -> Pair:
    """Return a bin at the threshold that loses a group; all others have their own."""
    made = _halves(mechanism, dimension)
    finder, groups = mechanism.scale_finder, len(made.places)
    full = min(groups - 1, int(finder.noise.threshold))
    # Each of the others is in the bin next to the last one's.
    below = np.arange(1, groups - full + 1) / finder.bins_per_octave
    made.rows[made.places[full:], 0] *= 2.0 ** (-below / 4)
    made.rows[made.second :] = _leaning(
        dimension, mechanism.rank, 1.0, sqrt(_SMALL) * mechanism.row_norm
    )
    lonely = made.rows[made.places[-1]] * 2.0 ** (-1 / finder.bins_per_octave / 4)
    return made.pair(int(made.places[0]), lonely)
