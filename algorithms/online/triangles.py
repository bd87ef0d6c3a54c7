r"""Symmetric matrices as vectors in which their noise is isotropic.

Noise on a symmetric matrix has independent entries, sd s above the diagonal and rho s
on it: rho = sqrt 2 for the Gaussian orthogonal ensemble (GOE), rho = 1 for the
triangles of Dwork et al. With the entries above the diagonal multiplied by rho, every
coordinate has the deviation rho s, and the Euclidean length of a vector is

- rho = sqrt 2: the Frobenius norm of the matrix;
- rho = 1: the l2 norm of its upper triangle.

If a row of norm at most R is replaced, x x^T moves by at most sqrt 2 R^2 in either, and
by R^2 if it is replaced by zero (`dpaudit.algorithms.covariance.second_moment`).
"""

from functools import cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = ["coordinates", "pack", "pack_rows", "unpack"]


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
