"""Random symmetric matrices, many at a time.

Each function returns an array of shape (size, d, d) and touches no more memory than
that plus the normals it is made of. Their distributions are tested for goodness of
fit, and their throughput against bare NumPy in ``benchmarks/``.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["symmetric_gaussian", "wishart"]

Array = NDArray[np.float64]


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
    size: int,
    dimension: int,
    *,
    off_diagonal: float,
    diagonal: float,
    rng: np.random.Generator,
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


def wishart(
    size: int,
    dimension: int,
    *,
    degrees: int,
    scale: float,
    rng: np.random.Generator,
) -> Array:
    """Draw Wishart matrices Z Z^T, Z having `degrees` columns N(0, scale I).

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
    factors = rng.standard_normal((size, dimension, degrees))
    factors *= np.sqrt(scale)
    # NumPy hands a product of an array with its own transpose to BLAS syrk.
    return np.asarray(factors @ factors.swapaxes(-2, -1))
