"""Random symmetric matrices, many at a time.

Each function returns an array of shape (size, d, d) and touches no more memory than
that plus the normals it is made of. Their distributions are tested for goodness of
fit, and their throughput against bare NumPy in ``benchmarks/``.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array

__all__ = ["symmetric_gaussian", "symmetric_laplace", "wishart"]


@cache
def _triangle_layout(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each entry of a flat d x d matrix lies in its upper triangle.

    The second array holds the positions of the diagonal within the triangle.
    """
    rows, columns = np.triu_indices(dimension)
    place = np.empty((dimension, dimension), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place.ravel(), np.flatnonzero(rows == columns)


def symmetric_gaussian(
    size: int, dimension: int, *, off_diagonal: float, diagonal: float, rng: Rng
) -> Array:
    """Draw symmetric matrices with independent Gaussian upper triangles.

    Parameters
    ----------
    size, dimension : int
        How many matrices, and their d.
    off_diagonal, diagonal : float
        Standard deviations of the entries above and on the diagonal.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, d, d)
    """
    place, on_diagonal = _triangle_layout(dimension)
    scale = np.full(dimension * (dimension + 1) // 2, off_diagonal)
    scale[on_diagonal] = diagonal
    triangle = rng.standard_normal((size, len(scale)))
    triangle *= scale
    return np.take(triangle, place, axis=1).reshape(size, dimension, dimension)


def symmetric_laplace(size: int, dimension: int, *, scale: float, rng: Rng) -> Array:
    """Draw symmetric matrices with i.i.d. Laplace upper triangles, shape (size, d, d).

    Parameters
    ----------
    size, dimension : int
        How many matrices, and their d.
    scale : float
        Mean absolute value of the entries on and above the diagonal.
    rng : numpy.random.Generator
    """
    place, _ = _triangle_layout(dimension)
    triangle = rng.laplace(scale=scale, size=(size, dimension * (dimension + 1) // 2))
    return np.take(triangle, place, axis=1).reshape(size, dimension, dimension)


def wishart(
    size: int, dimension: int, *, degrees: int, scale: float, rng: Rng
) -> Array:
    """Draw Wishart matrices Z Z^T, Z having `degrees` columns N(0, scale I).

    Of Z with many columns only its triangular factor is drawn (Bartlett 1933).

    Parameters
    ----------
    size, dimension : int
        How many matrices, and their d.
    degrees : int
        Degrees of freedom, >= 1; the matrix is singular below d.
    scale : float
        Variance of each entry of Z.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, d, d)
        Exactly symmetric, positive semi-definite.
    """
    if degrees <= 2 * dimension:
        factors = rng.standard_normal((size, dimension, degrees))
    else:
        factors = _bartlett_factors(size, dimension, degrees, rng)
    factors *= np.sqrt(scale)
    # NumPy hands a product of an array with its own transpose to BLAS syrk.
    return np.asarray(factors @ factors.swapaxes(-2, -1))


def _bartlett_factors(size: int, dimension: int, degrees: int, rng: Rng) -> Array:
    """Draw the Cholesky factors of W_d(I, degrees), shape (size, d, d).

    Independent entries: standard normal below the diagonal, and on it the roots of
    chi-squares with degrees, degrees - 1, ... degrees of freedom.
    """
    factors = np.zeros((size, dimension, dimension))
    rows, columns = np.tril_indices(dimension, -1)
    factors[:, rows, columns] = rng.standard_normal((size, len(rows)))
    on_diagonal = np.arange(dimension)
    squares = rng.chisquare(degrees - on_diagonal, size=(size, dimension))
    factors[:, on_diagonal, on_diagonal] = np.sqrt(squares)
    return factors
