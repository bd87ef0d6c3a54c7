r"""Hard instances for private PCA: Gaussian rows, and rows that are rarely heavy.

Source of the rates: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and
differentially private PCA*, NeurIPS 2022, Theorems 5.3 and 5.4. What a packing is, and
what it proves: `dpaudit.algorithms.streaming.lower_bounds`; its letters are used here.

`GaussianPacking`, for Theorem 5.3: N(0, lambda_2 I + (lambda_1 - lambda_2) v v^T) with
v = cos(t) e_1 + sin(t) (0, u), u from a sign packing in R^(d-1) and t <= pi/4. Then
c = v.v' = cos^2 t + sin^2 t u.u' is at least cos(2t) >= 0 and at most 1 - sin^2(t)/2,
so the squared sine 1 - c^2 is at least rho^2 = sin^2(t) (1 - sin^2(t)/4) and at most
sin^2(2t). The Kullback-Leibler divergence of two of them is

    (lambda_1 - lambda_2)^2/(2 lambda_1 lambda_2) (1 - c^2).

Rows can be coupled to differ with probability p = total variation <= sqrt(KL/2)
(Pinsker). For k epsilon about log M, that is sin(t) about kappa sqrt(lambda_2/lambda_1)
d/(n epsilon). Without privacy, Fano's inequality gives the sampling term.

`HeavyPacking`, for Theorem 5.4: with probability 1 - p the row is sqrt(d)
Sigma_0^(1/2) s with s uniform on the sphere and Sigma_0 = lambda_2 I + (lambda_1 -
lambda_2) e_1 e_1^T; with probability p it is sqrt(h/2) (e_1 + (0, u)). In the plane of
the two vectors the second-moment matrix is (1 - p) Sigma_0 + (p h/2) (1 1; 1 1), so v
is at the angle t = arctan(p h/((1 - p) (lambda_1 - lambda_2)))/2 from e_1, and
elsewhere all eigenvalues are (1 - p) lambda_2. With h = lambda_1 sqrt(g/p), ||E[A^2]||
<= (d + g) lambda_1^2 (A.3) and E[(z^T A u)^2] <= (3 + g) lambda_1^2 for unit u and z
(gamma), but ||A|| may be h (A.2: M about sqrt(g/p)). Two of the laws differ in the
heavy rows only, so p is also the probability for the coupling. For p about log(M)/(n
epsilon) that is sin(t) about kappa sqrt(p).
"""

from dataclasses import dataclass, replace
from math import atan, log, sin, sqrt

import numpy as np

from dpaudit.algorithms.streaming.lower_bounds import Array, Packing
from dpaudit.checked import Fraction, Positive
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_positive

__all__ = ["GaussianPacking", "HeavyPacking"]

_GRID = 200


@dataclass(frozen=True, kw_only=True)
class GaussianPacking(Packing):
    """N(0, lambda_2 I + (lambda_1 - lambda_2) v v^T), for Theorem 5.3.

    Parameters
    ----------
    sine : float
        sin(t), in (0, 1/sqrt 2].
    dimension, first, second
        See `Packing`.

    Examples
    --------
    >>> packing = GaussianPacking(dimension=20, sine=0.1)
    >>> packing.size, round(packing.separation, 4), round(packing.changed, 4)
    (11, 0.0999, 0.0704)
    >>> hardest = GaussianPacking.hardest(100, 10_000, 0.1)
    >>> round(hardest.error(10_000, 0.1), 6)
    0.003227
    """

    sine: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < check_positive("sine", self.sine) <= sqrt(0.5):
            raise InputError(f"sine must be in (0, 1/sqrt 2], got {self.sine!r}")

    @classmethod
    def hardest(
        cls,
        dimension: int,
        count: int,
        epsilon: float,
        *,
        first: float = 2.0,
        second: float = 1.0,
    ) -> "GaussianPacking":
        """Return the one of a fine grid of angles on which the error is largest."""
        grid = np.geomspace(1e-8, sqrt(0.5) * (1 - 1e-12), _GRID)
        some = cls(dimension=dimension, first=first, second=second, sine=0.5)
        return max(
            (replace(some, sine=float(sine)) for sine in grid),
            key=lambda packing: packing.error(count, epsilon),
        )

    @property
    def angle(self) -> float:
        """The t whose sine is given."""
        return float(np.arcsin(self.sine))

    @property
    def divergence(self) -> float:
        """The largest Kullback-Leibler divergence between two laws."""
        shape = (self.first - self.second) ** 2 / (2 * self.first * self.second)
        return shape * sin(2 * self.angle) ** 2

    @property
    def changed(self) -> float:
        """Pinsker's bound for the total variation."""
        return min(1.0, sqrt(self.divergence / 2))

    def sampling_error(self, count: int) -> float:
        """Return a lower bound for the expected sine of *any* estimator (Fano)."""
        count = check_count("count", count)
        told = (count * self.divergence + log(2)) / log(self.size)
        return max(0.0, 1 - told) * self.separation / 2

    def covariance(self, direction: Array) -> Array:
        v = self.component(direction)
        spike = (self.first - self.second) * np.outer(v, v)
        return np.asarray(self.second * np.eye(self.dimension) + spike)

    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        v = self.component(direction)
        rows = sqrt(self.second) * rng.standard_normal((count, self.dimension))
        spike = sqrt(self.first - self.second) * rng.standard_normal(count)
        return np.asarray(rows + spike[:, np.newaxis] * v)


@dataclass(frozen=True, kw_only=True)
class HeavyPacking(Packing):
    """A bounded law with rare heavy rows towards one direction, for Theorem 5.4.

    Parameters
    ----------
    share : float
        p in (0, 1), of the heavy rows.
    weight : float
        g > 0: what heavy rows add to fourth moments, in units of lambda_1^2.
    dimension, first, second
        See `Packing`.

    Examples
    --------
    >>> packing = HeavyPacking(dimension=20, share=0.01)
    >>> round(packing.separation, 4), round(packing.heavy, 2)
    (0.0994, 20.0)
    """

    share: Fraction
    weight: Positive = 1.0

    @classmethod
    def hardest(
        cls,
        dimension: int,
        count: int,
        epsilon: float,
        delta: float = 0.0,
        *,
        first: float = 2.0,
        second: float = 1.0,
        weight: float = 1.0,
    ) -> "HeavyPacking":
        """Return the one of a fine grid of shares on which the error is largest."""
        grid = np.geomspace(1e-9, 0.5, _GRID)
        some = cls(
            dimension=dimension, first=first, second=second, share=0.5, weight=weight
        )
        return max(
            (replace(some, share=float(share)) for share in grid),
            key=lambda packing: packing.error(count, epsilon, delta),
        )

    @property
    def heavy(self) -> float:
        """h: the squared length of a heavy row."""
        return self.first * sqrt(self.weight / self.share)

    @property
    def angle(self) -> float:
        """The t of the two by two matrix above."""
        gap = (1 - self.share) * (self.first - self.second)
        return atan(self.share * self.heavy / gap) / 2

    @property
    def changed(self) -> float:
        """P itself: the laws have all but their heavy rows in common."""
        return self.share

    def covariance(self, direction: Array) -> Array:
        row = self._heavy_row(direction)
        scales = np.full(self.dimension, self.second)
        scales[0] = self.first
        common = (1 - self.share) * np.diag(scales)
        return np.asarray(common + self.share * np.outer(row, row))

    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        rows = rng.standard_normal((count, self.dimension))
        rows *= sqrt(self.dimension) / np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= sqrt(self.second)
        rows[:, 0] *= sqrt(self.first / self.second)
        rows[rng.random(count) < self.share] = self._heavy_row(direction)
        return rows

    def _heavy_row(self, direction: Array) -> Array:
        return sqrt(self.heavy / 2) * np.concatenate([[1.0], direction])
