r"""The mean of clipped rows, released with noise: the centre of a private PCA.

The query is the sum S = sum_i x_i over rows of norm at most R (`row_norm`), each
clipped by itself. Under REPLACE_ONE the number of rows n is public and the mean is S/n.
Under ADD_REMOVE it is not, so it is released with the sum:

1. q(D) = (S, c n), with the weight c = R d^(-1/4).
2. Release q(D) + Z with Z spherical, i.e. of the same law in every direction.
3. The mean is the first d entries over the last one, projected onto the ball of radius
   R (where the mean of the rows lies); this is post-processing.

Sensitivity in l2. ADD_REMOVE: one row moves q by (x, c), so by at most
sqrt(R^2 + c^2) = R sqrt(1 + d^(-1/2)). REPLACE_ONE: by x - y, at most 2 R. Both are
attained.

The weight. With noise of standard deviation s per entry the mean errs by about
(Z_1 - m Z_2/c)/n, m the mean itself: a mean square of s^2 (d + ||m||^2/c^2)/n^2, where
s is proportional to sqrt(R^2 + c^2). For ||m|| = R, the worst case, that is least at
c = R d^(-1/4), and the count then costs a factor (1 + d^(-1/2))^2 over a public n.

Privacy. `GaussianMean`: Z ~ N(0, s^2 I). The laws on neighbours are a spherical
Gaussian and its shift by at most the sensitivity, so the release is mu-GDP, tightly,
with mu = sensitivity/s (Dong, Roth, Su 2022, Theorem 1).

`LaplaceMean`: Z has the density proportional to exp(-||z||/s). By the triangle
inequality ||y - q'|| - ||y - q|| <= ||q - q'||, so the loss is at most sensitivity/s
everywhere, and comes arbitrarily close to it on a cone around the direction of
q - q': the release is epsilon-DP, tightly, with epsilon = sensitivity/s. Z is a
direction, uniform on the sphere, times a length with the Gamma(D, s) law, D the number
of entries: the density in polar coordinates is r^(D-1) exp(-r/s).

Sources: Chaudhuri, Monteleoni, Sarwate, *Differentially private empirical risk
minimization*, JMLR 2011, Algorithm 1 (that noise); Hardt, Talwar, *On the geometry of
differential privacy*, STOC 2010, section 4 (it is the K-norm mechanism of the unit
ball). The weight is ours.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.second_moment import OnClippedRows
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import GaussianCalibrated, PureCalibrated
from dpaudit.arrays import Array
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.claims.profile import lost
from dpaudit.gram import RowSum, row_sum
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Positive, check_count, check_length

__all__ = ["GaussianMean", "LaplaceMean"]


@dataclass(frozen=True, kw_only=True)
class MeanMechanism(OnClippedRows):
    """The sum of clipped rows, and their number if it is private, plus noise."""

    _least: ClassVar[str]

    lost: ClassVar[type[GaussianDP | PureDP]]
    """What a distance between answers costs, in units of the noise's scale."""

    def scale(self, dimension: int) -> float:
        """Return the s of the noise for rows of that length."""
        return self.sensitivity(dimension) / getattr(self, self._least)

    @abstractmethod
    def noise(self, size: int, entries: int, scale: float, rng: Rng) -> Array:
        """Return spherical noise vectors, shape (size, entries)."""

    def sensitivity(self, dimension: int) -> float:
        """Return the l2 sensitivity of the query for rows of that length."""
        if self.relation is Relation.REPLACE_ONE:
            return 2 * self.row_norm
        return float(np.hypot(self.row_norm, self._count_weight(dimension)))

    def answers(self, data: ArrayLike) -> Array:
        """Return the exact query, shape (d + 1,), or (d,) under REPLACE_ONE."""
        return self._query(row_sum(data, row_norm=self.row_norm))

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        return self.draw_from(row_sum(data, row_norm=self.row_norm), size, rng=rng)

    def draw_from(self, sums: RowSum, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the sum of rows that are clipped already."""
        query = self._query(sums)
        size = check_count("size", size, minimum=0)
        scale = self.scale(len(sums.total))
        return query + self.noise(size, len(query), scale, rng)

    def mean(self, release: Array, *, n_rows: int | None = None) -> Array:
        """Return the mean that one release tells of, shape (d,).

        The number of rows is needed under REPLACE_ONE, where it is public.
        """
        if self.relation is Relation.REPLACE_ONE:
            mean = release / max(check_count("n_rows", n_rows, minimum=0), 1)
        else:
            count = release[-1] / self._count_weight(len(release) - 1)
            mean = release[:-1] / max(count, 1.0)
        return mean * min(1.0, self.row_norm / max(float(np.linalg.norm(mean)), 1e-300))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair at which the sensitivity is attained (default d = 2).

        A row of the largest norm joins a zero row, or replaces its opposite.
        """
        dimension = check_length(dimension, 2)
        row = np.zeros((1, dimension))
        row[0, 0] = self.row_norm
        if self.relation is Relation.ADD_REMOVE:
            return Pair(0 * row, np.vstack([0 * row, row]), self.relation)
        return Pair(-row, row, self.relation)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP or pure DP at the distance of the answers over the scale."""
        moved = np.linalg.norm(self.answers(pair.data) - self.answers(pair.neighbour))
        distance = float(moved) / self.scale(pair.data.shape[1])
        return lost(self.lost, distance)

    def _count_weight(self, dimension: int) -> float:
        return self.row_norm * dimension**-0.25

    def _query(self, sums: RowSum) -> Array:
        if self.relation is Relation.REPLACE_ONE:
            return sums.total
        return np.append(sums.total, self._count_weight(len(sums.total)) * sums.n_rows)


@dataclass(frozen=True, kw_only=True)
class GaussianMean(MeanMechanism, GaussianCalibrated):
    """The query plus spherical Gaussian noise, which is mu-GDP."""

    mu: Positive
    lost = GaussianDP

    def noise(self, size: int, entries: int, scale: float, rng: Rng) -> Array:
        return scale * rng.standard_normal((size, entries))

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: linear in the release, shape (size,)."""
        mean, other_mean = self.answers(data), self.answers(other)
        scale = self.scale(np.shape(data)[1])
        return (releases - (mean + other_mean) / 2) @ (mean - other_mean) / scale**2


@dataclass(frozen=True, kw_only=True)
class LaplaceMean(MeanMechanism, PureCalibrated):
    """The query plus noise of density proportional to exp(-||z||/s), epsilon-DP."""

    epsilon: Positive
    lost = PureDP

    def noise(self, size: int, entries: int, scale: float, rng: Rng) -> Array:
        directions = rng.standard_normal((size, entries))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions * rng.gamma(entries, scale, size=(size, 1))

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, a difference of two distances, shape (size,)."""
        near, far = (
            np.linalg.norm(releases - self.answers(rows), axis=1)
            for rows in (data, other)
        )
        return (far - near) / self.scale(np.shape(data)[1])
