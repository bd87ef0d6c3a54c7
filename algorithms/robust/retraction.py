r"""Back to orthonormal columns: the polar factor, and a basis that the subspace names.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 2.2: P_O(D, r)(M) is the matrix with orthonormal columns that is nearest
to M in Frobenius norm (the orthogonal Procrustes problem). With the singular value
decomposition M = U S W^T it is U W^T (Fan, Hoffman 1955), for M of full rank the polar
factor M (M^T M)^(-1/2), and then it is the only one.

A subspace has many bases. `settle` picks the one nearest to E, the first r columns of
the identity: argmin ||V R - E||_F over rotations R is R = U W^T, where V^T E = U S W^T
(orthogonal Procrustes again). It depends on the subspace alone wherever that is
possible: if the subspace holds a direction orthogonal to all of E, more than one basis
is nearest.
"""

import numpy as np

from dpaudit.algorithms.robust.glad import Array

__all__ = ["polar", "settle"]

_LEAST_RATIO = 1e-4  # of eigenvalues of M^T M, for rounding to stay below 1e-11


def polar(matrices: Array) -> Array:
    """Return the nearest matrices with orthonormal columns.

    Parameters
    ----------
    matrices : ndarray, shape (..., D, r)
        r <= D.

    Returns
    -------
    ndarray, shape (..., D, r)

    Examples
    --------
    >>> polar(np.array([[3.0], [4.0]]))
    array([[0.6],
           [0.8]])
    """
    if matrices.shape[-1] == 1:
        length = np.linalg.norm(matrices, axis=-2, keepdims=True)
        if np.all(length > 0):
            return np.asarray(matrices / length)
    # For tall matrices the r x r Gram matrix is much less work than an SVD.
    gram = matrices.swapaxes(-2, -1) @ matrices
    values, vectors = np.linalg.eigh(gram)
    if np.all(values[..., 0] > _LEAST_RATIO * values[..., -1]):
        root = vectors / np.sqrt(values)[..., np.newaxis, :]
        return np.asarray(matrices @ (root @ vectors.swapaxes(-2, -1)))
    left, _, right = np.linalg.svd(matrices, full_matrices=False)
    return np.asarray(left @ right)


def settle(bases: Array) -> Array:
    """Return the basis of each subspace that is nearest to the identity's columns.

    Parameters
    ----------
    bases : ndarray, shape (..., D, r)
        Orthonormal columns.

    Returns
    -------
    ndarray, shape (..., D, r)
        Of the same spans.

    Examples
    --------
    >>> settle(np.array([[-0.6], [0.8]]))
    array([[ 0.6],
           [-0.8]])
    """
    r = bases.shape[-1]
    left, _, right = np.linalg.svd(bases[..., :r, :].swapaxes(-2, -1))
    return np.asarray(bases @ (left @ right))
