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

and the largest expected sine over the M laws is at least e rho/2. (The argument is that
of Barber and Duchi, *Privacy and statistical risk*, 2014, section 3.)

Directions. On the unit sphere of R^m there are M = ceil(e^(m/8)) vectors with entries
1/sqrt m or -1/sqrt m and pairwise inner products at most 1/2: two uniformly random ones
have more than that with probability at most e^(-m/8) (Hoeffding), so as long as there
are fewer, not all others are excluded. `sign_packing` finds some.

The instances are in `dpaudit.algorithms.streaming.hard_instances`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, exp, expm1, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from dpaudit.checked import Checked, Positive
from dpaudit.errors import InputError
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_positive,
)

__all__ = [
    "Packing",
    "identification_error",
    "sign_packing",
]

Array = NDArray[np.float64]

_ATTEMPTS = 1000  # per direction


def identification_error(
    size: int, count: int, changed: float, epsilon: float, delta: float = 0.0
) -> float:
    """Return how often, on average, any private estimate is not nearest to its law.

    Parameters
    ----------
    size : int
        M >= 2, the number of laws.
    count : int
        n, the number of rows.
    changed : float
        p in (0, 1]: rows of two laws can be coupled to differ with this probability.
    epsilon, delta : float
        Of the estimator.

    Returns
    -------
    float
        >= 0, and at most 1/2.

    Examples
    --------
    >>> round(identification_error(2**20, 1000, 0.001, 1.0), 3)
    0.5
    """
    others = check_count("size", size, minimum=2) - 1
    groups = ceil(check_count("count", count) * check_positive("changed", changed))
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta, allow_zero=True)
    factor = exp(-groups * epsilon)
    lost = delta * (1 - factor) / expm1(epsilon) if epsilon < 700 else 0.0
    return max(0.0, others * (factor / 2 - lost) / (1 + others * factor))


def sign_packing(dimension: int, size: int, *, rng: np.random.Generator) -> Array:
    """Return unit vectors with entries of one size and inner products at most 1/2.

    Parameters
    ----------
    dimension : int
        m.
    size : int
        How many; ceil(e^(m/8)) exist, and a few can be found.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, m)

    Raises
    ------
    InputError
        If so many are not found.

    Examples
    --------
    >>> sign_packing(1, 2, rng=np.random.default_rng(0)).T
    array([[ 1., -1.]])
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
    """Laws of a row whose first eigenvectors private estimates cannot tell apart.

    Parameters
    ----------
    dimension : int
        d >= 2.
    first, second : float
        lambda_1 > lambda_2 > 0.
    """

    dimension: int
    first: Positive = 2.0
    second: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "dimension", check_count("dimension", self.dimension, minimum=2)
        )
        if self.first <= self.second:
            raise InputError(
                f"first must be > second, {self.second!r}, got {self.first!r}"
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
        """Return a lower bound for the largest expected sine over the laws.

        Parameters
        ----------
        count : int
            n.
        epsilon, delta : float
            Of the estimator, under REPLACE_ONE.
        """
        missed = identification_error(self.size, count, self.changed, epsilon, delta)
        return missed * self.separation / 2
