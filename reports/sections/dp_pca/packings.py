r"""Hard instances for private PCA, and how large the error on them must be.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Theorems 5.3 and 5.4. The appendix with their proofs is not what is
followed here: the instances below are made for the rates that the theorems state, with
the constants that the proof below gives (the theorems name none).

An instance is a *packing*: M laws P_1, ..., P_M of a row, with second-moment matrices
whose first eigenvectors v_1, ..., v_M are pairwise at least rho apart, in the sine of
their angle, while for any two of them samples can be coupled so that each row differs
with probability at most p.

Error of any (epsilon, delta)-DP estimator of v from n rows, for replaced rows. Let
A_j = {the estimate is nearer than rho/2 to v_j}: disjoint events, since the sine of the
angle is a metric on lines. Write Q_j for the law of the output under P_j, and K ~ at
most Bin(n, p) for the number of rows that differ in the coupling; with k = ceil(n p),
P(K > k) <= 1/2, as the median of the binomial law is at most k. By group privacy,
for datasets that differ in at most k rows, P(A | S) >= e^(-k epsilon) P(A | S') -
delta', delta' = delta (1 - e^(-k epsilon))/(e^epsilon - 1). So for i != j

    Q_i(A_j) >= e^(-k epsilon) (Q_j(A_j) - 1/2) - delta'.

Sum over j != i, where the left side is at most 1 - Q_i(A_i), and average over i; then
the mean e of 1 - Q_i(A_i) is at least

.. math:: \frac{(M - 1)(e^{-k\epsilon}/2 - \delta')}{1 + (M - 1) e^{-k\epsilon}},

and the expected sine is at least e rho/2 on average over the M laws, hence for the
worst of them. (The argument is that of Barber and Duchi, *Privacy and statistical
risk*, 2014, section 3.)

Directions. On the unit sphere of R^m there are M = ceil(e^(m/8)) vectors with entries
1/sqrt m or -1/sqrt m and pairwise inner products at most 1/2: two uniformly random ones
have more than that with probability at most e^(-m/8) (Hoeffding), so as long as there
are fewer, not all others are excluded. `sign_packing` finds some.

**Two packings**: Gaussian rows, and rows that are rarely heavy.

`GaussianPacking`, for Theorem 5.3: N(0, lambda_2 I + (lambda_1 - lambda_2) v v^T) with
v = cos(t) e_1 + sin(t) (0, u), u from a sign packing in R^(d-1) and t <= pi/4. Then
c = v.v' = cos^2 t + sin^2 t u.u' is at least cos(2t) >= 0 and at most 1 - sin^2(t)/2,
so the squared sine 1 - c^2 is at least rho^2 = sin^2(t) (1 - sin^2(t)/4) and at most
sin^2(2t). The Kullback-Leibler divergence of two of them is

    (lambda_1 - lambda_2)^2/(2 lambda_1 lambda_2) (1 - c^2).

Rows can be coupled to differ with probability p = total variation <= sqrt(KL/2)
(Pinsker). For k epsilon about log M, that is sin(t) about kappa sqrt(lambda_2/lambda_1)
d/(n epsilon).

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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import atan, ceil, exp, expm1, sin, sqrt
from typing import ClassVar, Self

import numpy as np

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import (
    Checked,
    Fraction,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

_ATTEMPTS = 1000  # per direction
_GRID = 200


def identification_error(
    size: int, count: int, changed: float, epsilon: float, delta: float = 0.0
) -> float:
    """Return how often, on average, any private estimate is not nearest to its law.

    ``size``: M >= 2, the number of laws. ``count``: n, the number of rows. ``changed``:
    p in (0, 1]: rows of two laws can be coupled to differ with this probability.
    ``epsilon``, ``delta``: of the estimator.

    It is >= 0, and at most 1/2.
    """
    others = check_count("size", size, minimum=2) - 1
    groups = ceil(check_count("count", count) * check_positive("changed", changed))
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta, allow_zero=True)
    factor = exp(-groups * epsilon)
    lost = delta * (1 - factor) / expm1(epsilon) if epsilon < 700 else 0.0
    return max(0.0, others * (factor / 2 - lost) / (1 + others * factor))


def sign_packing(dimension: int, size: int, *, rng: np.random.Generator) -> Array:
    """Return unit vectors, entries of one size, with inner products at most 1/2.

    ``dimension``: m. ``size``: how many; ceil(e^(m/8)) exist, and a few can be found.

    Raises `InputError` if so many are not found.
    """
    m, size = check_count("dimension", dimension), check_count("size", size)
    found: Array = np.empty((0, m))
    for _ in range(_ATTEMPTS * size):
        if len(found) == size:
            return found
        vector = (2.0 * rng.integers(2, size=m) - 1) / sqrt(m)
        if (found @ vector <= 0.5 + 1e-12).all():
            found = np.concatenate([found, vector[np.newaxis]], dtype=np.float64)
    raise InputError(
        f"size must be at most what is found in {m} dimensions, {len(found)}, got "
        f"{size}"
    )


@dataclass(frozen=True, kw_only=True)
class Packing(Checked, ABC):
    """Laws of a row whose first eigenvectors private estimates cannot tell apart."""

    dimension: int  # d >= 2
    # first, second: lambda_1 > lambda_2 > 0
    first: Positive = 2.0
    second: Positive = 1.0

    varied: ClassVar[str]
    """The parameter that is chosen for the largest error."""
    grid: ClassVar[Array]
    """The values of it among which it is chosen."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "dimension", check_count("dimension", self.dimension, minimum=2)
        )
        if self.first <= self.second:
            raise InputError(
                f"first must be > second, {self.second!r}, got {self.first!r}"
            )

    @classmethod
    def hardest(
        cls,
        dimension: int,
        count: int,
        epsilon: float,
        delta: float = 0.0,
        **others: float,
    ) -> Self:
        """Return the one of a fine grid on which the error is largest.

        ``count``, ``epsilon``, ``delta``: see `error`. ``**others``: all parameters but
        the one that is varied.
        """
        return max(
            (
                cls(dimension=dimension, **others, **{cls.varied: float(value)})
                for value in cls.grid
            ),
            key=lambda packing: packing.error(count, epsilon, delta),
        )

    @property
    def size(self) -> int:
        """M = ceil(e^((d - 1)/8)), and at least 2: so many directions exist."""
        return max(2, ceil(exp((self.dimension - 1) / 8)))

    @property
    @abstractmethod
    def angle(self) -> float:
        """t, of every first eigenvector with e_1; at most pi/4."""

    @property
    @abstractmethod
    def changed(self) -> float:
        """p: rows of two laws can be coupled to differ with this probability."""

    @abstractmethod
    def covariance(self, direction: Array) -> Array:
        """Return E[x x^T] for a direction u, shape (d - 1,) -> (d, d)."""

    @abstractmethod
    def draw(self, direction: Array, count: int, *, rng: np.random.Generator) -> Array:
        """Return rows of the law of a direction u, shape (count, d)."""

    @property
    def separation(self) -> float:
        """Rho: the least sine between two first eigenvectors."""
        square = sin(self.angle) ** 2
        return sqrt(square * (1 - square / 4))

    def component(self, direction: Array) -> Array:
        """Return the first eigenvector, cos(t) e_1 + sin(t) (0, u), shape (d,)."""
        return np.concatenate([[np.cos(self.angle)], sin(self.angle) * direction])

    def error(self, count: int, epsilon: float, delta: float = 0.0) -> float:
        """Return a lower bound for the expected sine, on average over the laws.

        ``count``: n. ``epsilon``, ``delta``: of the estimator, under REPLACE_ONE.
        """
        missed = identification_error(self.size, count, self.changed, epsilon, delta)
        return missed * self.separation / 2


@dataclass(frozen=True, kw_only=True)
class GaussianPacking(Packing):
    """N(0, lambda_2 I + (lambda_1 - lambda_2) v v^T), for Theorem 5.3.

    ``dimension``, ``first``, ``second``: see `Packing`.
    """

    sine: float  # sin(t), in (0, 1/sqrt 2]

    varied: ClassVar[str] = "sine"
    grid: ClassVar[Array] = np.geomspace(1e-8, sqrt(0.5) * (1 - 1e-12), _GRID)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < check_positive("sine", self.sine) <= sqrt(0.5):
            raise InputError(f"sine must be in (0, 1/sqrt 2], got {self.sine!r}")

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

    ``dimension``, ``first``, ``second``: see `Packing`.
    """

    share: Fraction  # p in (0, 1), of the heavy rows
    # g > 0: what heavy rows add to fourth moments, in units of lambda_1^2
    weight: Positive = 1.0

    varied: ClassVar[str] = "share"
    grid: ClassVar[Array] = np.geomspace(1e-9, 0.5, _GRID)

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
