r"""Steps along geodesics of the Grassmannian.

Source: Edelman, Arias, Smith, *The geometry of algorithms with orthogonality
constraints*, SIAM J. Matrix Anal. Appl. 1998, Theorem 2.3; used in Maunu, Yu, Lerman,
MSML 2022, section 2.1. For a tangent H (D x r, V^T H = 0) with the thin singular value
decomposition H = U S W^T,

    Exp_V(H) = V W cos(S) W^T + U sin(S) W^T.

It turns the subspace by the angles S. The polar retraction of V + H, whose columns have
V^T V + H^T H = W (I + S^2) W^T, is V W (I + S^2)^(-1/2) W^T + U S (I + S^2)^(-1/2) W^T:
the same with the angles arctan S, so the two agree up to ||H||^3/3.
"""

import numpy as np

from dpaudit.algorithms.robust.glad import Array

__all__ = ["geodesic_step", "to_tangent"]


def to_tangent(bases: Array, directions: Array) -> Array:
    """Return (I - V V^T) H, the part of H that turns the subspace.

    Parameters
    ----------
    bases, directions : ndarray, shape (..., D, r)
        Orthonormal columns; anything.
    """
    along = bases @ (bases.swapaxes(-2, -1) @ directions)
    return np.asarray(directions - along)


def geodesic_step(bases: Array, tangents: Array) -> Array:
    """Return Exp_V(H), the end of the geodesic from V that starts along H.

    Parameters
    ----------
    bases : ndarray, shape (..., D, r)
        Orthonormal columns.
    tangents : ndarray, shape (..., D, r)
        V^T H = 0; see `to_tangent`.

    Returns
    -------
    ndarray, shape (..., D, r)
        Orthonormal columns, up to rounding.

    Examples
    --------
    A quarter of a turn:

    >>> start, along = np.eye(2)[:, :1], np.pi / 2 * np.eye(2)[:, 1:]
    >>> geodesic_step(start, along).round(12)
    array([[0.],
           [1.]])
    """
    left, angles, right = np.linalg.svd(tangents, full_matrices=False)
    across = right.swapaxes(-2, -1)
    near = (bases @ across) * np.cos(angles)[..., np.newaxis, :]
    far = left * np.sin(angles)[..., np.newaxis, :]
    return np.asarray((near + far) @ right)
