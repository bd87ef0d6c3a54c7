r"""How much noise: as two papers print it, and as a proof needs it.

A deviation here is that of one coordinate of a symmetric matrix (`pack`), on one noisy
sum of which at most `uses` show any one row (where they show it with weights,
the squares of these add up to so much at most).

`CalibratedNoise`, ratio sqrt 2: one sum moves by at most sqrt 2 R^2 if a row of norm at
most R is replaced (REPLACE_ONE), so `uses` of them together, in one long vector, move
by sqrt(2 uses) R^2; with deviation sqrt(2 uses) R^2/mu they are mu-GDP. Off the
diagonal a noise matrix then has the deviation sqrt(uses) R^2/mu.

`PublishedNodeNoise`, ratio 1: section 2.3.2 of Dwork et al., N(0, 50 log^3(m/delta)/
epsilon^2) for each entry of the triangle of each node. log^3 is the cube of the natural
logarithm.

`PublishedStepNoise`, ratio 1: Algorithm 1 of Dwork et al., which Algorithm 3 uses anew
in each step, N(0, 2 log(1.25/delta)/epsilon^2).

**Coordinates** are symmetric matrices as vectors in which their noise is isotropic.
Noise on a symmetric matrix has independent entries, sd s above the diagonal and rho s
on it: rho = sqrt 2 for the Gaussian orthogonal ensemble (GOE), rho = 1 for the
triangles of Dwork et al. With the entries above the diagonal multiplied by rho, every
coordinate has the deviation rho s, and the Euclidean length of a vector is

- rho = sqrt 2: the Frobenius norm of the matrix;
- rho = 1: the l2 norm of its upper triangle.

If a row of norm at most R is replaced, x x^T moves by at most sqrt 2 R^2 in either, and
by R^2 if it is replaced by zero (`dpaudit.algorithms.covariance.second_moment`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from math import isqrt, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.checked import Checked, Fraction, Positive
from dpaudit.gaussian import classical_mu

__all__ = [
    "CalibratedNoise",
    "PublishedNodeNoise",
    "PublishedNoise",
    "PublishedStepNoise",
    "coordinates",
    "pack",
    "pack_rows",
    "unpack",
]


def coordinates(dimension: int) -> int:
    """Return d (d + 1)/2."""
    return dimension * (dimension + 1) // 2


@cache
def _layout(
    dimension: int, ratio: float
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """Return rows, columns, places of the entries, weights, and their inverses."""
    rows, columns = np.triu_indices(dimension)
    place = np.empty((dimension, dimension), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    weights = np.where(rows == columns, 1.0, ratio)
    return rows, columns, place.ravel(), weights, 1 / weights


def pack(matrices: Array, ratio: float) -> Array:
    """Return the coordinates of symmetric matrices, (..., d, d) -> (..., q)."""
    rows, columns, _, weights, _ = _layout(matrices.shape[-1], ratio)
    return np.asarray(matrices[..., rows, columns] * weights)


def pack_rows(rows: Array, ratio: float) -> Array:
    """Return the coordinates of x x^T for each row x, (n, d) -> (n, q)."""
    first, second, _, weights, _ = _layout(rows.shape[-1], ratio)
    products = rows[..., first] * rows[..., second]
    products *= weights
    return np.asarray(products)


def unpack(vectors: Array, ratio: float) -> Array:
    """Return the symmetric matrices with these coordinates, (..., q) -> (..., d, d)."""
    dimension = (isqrt(8 * vectors.shape[-1] + 1) - 1) // 2
    _, _, place, _, inverse = _layout(dimension, ratio)
    flat = np.take(vectors * inverse, place, axis=-1)
    return np.asarray(flat.reshape(*vectors.shape[:-1], dimension, dimension))


@dataclass(frozen=True)
class CalibratedNoise(Checked):
    """The least GOE noise that makes all sums together mu-GDP.

    Parameters
    ----------
    mu : float
        > 0.

    Examples
    --------
    >>> CalibratedNoise(2.0).deviation(uses=8, length=200, row_norm=1.0)
    2.0
    """

    mu: Positive

    ratio: ClassVar[float] = sqrt(2)
    """Deviation on the diagonal over that above it."""

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return the deviation of a coordinate, sqrt(2 uses) R^2/mu.

        Parameters
        ----------
        uses : float
            How many noisy sums show one row, at most; where they show it with weights,
            the sum of the squares of these.
        length : int
            m, the number of rows at most.
        row_norm : float
            R.
        """
        return sqrt(2 * uses) * row_norm**2 / self.mu


@dataclass(frozen=True)
class PublishedNoise(Checked, ABC):
    """Noise of one deviation in all entries of a triangle, as a paper prints it.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims.
    """

    epsilon: Positive
    delta: Fraction

    ratio: ClassVar[float] = 1.0

    @abstractmethod
    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return the deviation of a coordinate, see `CalibratedNoise`."""


@dataclass(frozen=True)
class PublishedNodeNoise(PublishedNoise):
    """Section 2.3.2: what it prints for a node.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims for the whole sequence.

    Examples
    --------
    >>> noise = PublishedNodeNoise(1.0, 1e-5)
    >>> round(noise.deviation(uses=4, length=8, row_norm=1.0), 1)
    354.3
    """

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return sqrt(50 log^3(m/delta)) R^2/epsilon, whatever `uses` is."""
        return sqrt(50 * log(length / self.delta) ** 3) * row_norm**2 / self.epsilon


@dataclass(frozen=True)
class PublishedStepNoise(PublishedNoise):
    """Algorithm 1: what it prints for one step.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims for one step.

    Examples
    --------
    >>> noise = PublishedStepNoise(1.0, 1e-5)
    >>> round(noise.deviation(uses=8, length=8, row_norm=1.0), 4)
    4.8448
    """

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return sqrt(2 log(1.25/delta)) R^2/epsilon, whatever `uses` is."""
        return row_norm**2 / classical_mu(self.epsilon, self.delta)
