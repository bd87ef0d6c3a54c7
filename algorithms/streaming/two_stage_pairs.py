r"""Neighbouring data on which two-stage PCA shows one row best, in either half.

The first half has rows R e_1, ..., R e_k, fewer of each than of the one before, so that
V is near (e_1, ..., e_k). In the second half the rows that the scale is of are 0, but
for one in each group, a multiple of e_1: the group's eigenvalue is in the middle of a
bin. All others are sqrt(M) e_1 for M = R^2/100, with gradients in one bin. u is a unit
vector orthogonal to e_1, ..., e_k.

- `far_row`: in the second half, R (e_1 + 3 u), scaled to R, becomes R (e_1 - 3 u): its
  gradient is beyond the window, to opposite sides, and the mean moves by 0.95 of what
  it can. The window is of the size M, or less.
- `two_directions`: in the first half, e_1 becomes e_2, where there are as many of
  either, and nothing else. The second half is 0, so that V is released: its first
  column says how both diagonal entries compare, of which noise has the deviation
  2 sigma and the row moves the difference by 2 R^2: all that it can.
- `two_bins`: a group's eigenvalue moves from one bin to another, which are about level.
  Some rows are beyond all windows on one side, and turn the mean further where windows
  are wider.
- `near_threshold`: likewise, a group leaves the only bin that has a chance to be shown.
  If it is not, V is released, and else what is half way from e_1 to u.
- `far_from_zero`: `far_row` where gradients are 2^44 bins from 0.
"""

from dataclasses import dataclass
from math import ceil, floor, log2, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.minibatch_pca import scale_rows
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair
from dpaudit.validation import check_length

__all__ = ["far_row", "named_pairs"]

_SMALL = 0.01  # M/R^2
_STEEP = 3.0
_TURN = 4.0  # how far rows turn the mean, in deviations of its noise
_BINS_AWAY = 2.0**44
_EVEN = 50  # rows of either direction


class TwoStages(Protocol):
    """What the pairs ask of the mechanism."""

    @property
    def rank(self) -> int:
        """K."""

    @property
    def row_norm(self) -> float:
        """R."""

    @property
    def scale_finder(self) -> TopEigenvalue:
        """Step 2."""

    @property
    def mean(self) -> MeanEstimation:
        """Step 3."""

    @property
    def scale_share(self) -> float:
        """S."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Data on which no step fails.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    places : ndarray of int, shape (groups,)
        In each group of the scale's, the row that is not 0.
    mean : int
        Where the rows begin that the mean is of.
    aside : ndarray, shape (d,)
        u.
    """

    rows: Array
    places: NDArray[np.intp]
    mean: int
    aside: Array

    def pair(self, place: int, row: Array) -> Pair:
        """Return these rows, and the same with one replaced."""
        other = self.rows.copy()
        other[place] = row
        return Pair(self.rows, other, "replace-one")

    def oblique(self, slope: float, norm: float) -> Array:
        """Return e_1 + slope u, scaled to a norm."""
        row = slope * self.aside
        row[0] = 1.0
        return np.asarray(row * (norm * (1 - 1e-9) / np.linalg.norm(row)))


def scene(mechanism: TwoStages, dimension: int, nearness: float = 1.0) -> Scene:
    """Return the rows that the pairs have in common.

    Parameters
    ----------
    mechanism : TwoStages
    dimension : int
    nearness : float
        The largest size of a window is this share of M.
    """
    k, norm, finder = mechanism.rank, mechanism.row_norm, mechanism.scale_finder
    share, window = mechanism.scale_share, mechanism.mean.tail
    counts = mechanism.mean.split.noise(dimension * k).counts
    wanted = int(counts.threshold + 10 * counts.scale) + 2
    half = ceil(max(2 * finder.groups() / share, wanted / (1 - share)))
    part = scale_rows(half, share)
    groups = min(finder.groups(), part // 2)
    rows = np.zeros((2 * half, dimension))
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
    aside = np.zeros(dimension)
    aside[k:] = 1 / sqrt(dimension - k)
    return Scene(rows, places, half + part, aside)


def far_row(mechanism: TwoStages, dimension: int | None = None) -> Pair:
    """Return a far row of the second half that changes sides.

    The default d is the larger one of 3 and k + 1; at least k + 1.
    """
    return _far(mechanism, scene(mechanism, _dimension(mechanism, dimension)))


def two_directions(mechanism: TwoStages) -> Pair:
    """Return a row of the first half that turns from e_1 to e_2."""
    rows = np.zeros((4 * _EVEN, _dimension(mechanism)))
    rows[1:_EVEN, 0] = rows[_EVEN : 2 * _EVEN - 1, 1] = mechanism.row_norm
    one, other = rows.copy(), rows
    one[0, 0] = other[0, 1] = mechanism.row_norm
    return Pair(one, other, "replace-one")


def two_bins(mechanism: TwoStages) -> Pair:
    """Return two bins of groups, and one that moves to the fuller one.

    The other bin is behind by noise; its scale is larger, by 2^8, and windows by 2^4.
    """
    d = _dimension(mechanism)
    made = scene(mechanism, d)
    groups = len(made.places)
    behind = max(1, round(groups / 2 - mechanism.scale_finder.noise.scale))
    made.rows[made.places[behind:], 0] /= 4  # the fourth root of 2^8
    rest = len(made.rows) - made.mean
    wanted = _TURN * sqrt(d) / mechanism.mean.split.noise(d * mechanism.rank).mu
    far = made.oblique(_STEEP, mechanism.row_norm)
    made.rows[-min(rest // 3, ceil(wanted)) :] = far
    return made.pair(int(made.places[0]), made.rows[made.places[-1]])


def near_threshold(mechanism: TwoStages) -> Pair:
    """Return a bin at the threshold that loses a group; all others have their own."""
    made = scene(mechanism, _dimension(mechanism))
    finder, groups = mechanism.scale_finder, len(made.places)
    full = min(groups - 1, int(finder.noise.threshold))
    # Each of the others is in the bin next to the last one's.
    below = np.arange(1, groups - full + 1) / finder.bins_per_octave
    made.rows[made.places[full:], 0] *= 2.0 ** (-below / 4)
    made.rows[made.mean :] = made.oblique(1.0, sqrt(_SMALL) * mechanism.row_norm)
    lonely = made.rows[made.places[-1]] * 2.0 ** (-1 / finder.bins_per_octave / 4)
    return made.pair(int(made.places[0]), lonely)


def far_from_zero(mechanism: TwoStages) -> Pair:
    """Return the pair of `far_row`, where a bin is 2^-44 of a gradient wide."""
    return _far(mechanism, scene(mechanism, _dimension(mechanism), 1 / _BINS_AWAY))


def named_pairs(mechanism: TwoStages) -> tuple[Pair, ...]:
    """Return a pair in the first half, and those in the second but the first."""
    return (
        two_directions(mechanism),
        two_bins(mechanism),
        near_threshold(mechanism),
        far_from_zero(mechanism),
    )


def _far(mechanism: TwoStages, made: Scene) -> Pair:
    made.rows[-1] = made.oblique(_STEEP, mechanism.row_norm)
    return made.pair(len(made.rows) - 1, made.oblique(-_STEEP, mechanism.row_norm))


def _dimension(mechanism: TwoStages, asked: int | None = None) -> int:
    k = mechanism.rank
    return check_length(asked, max(3, k + 1), minimum=k + 1)
