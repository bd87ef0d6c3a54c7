r"""Stacks of frames: matrices with orthonormal columns, shape (size, d, k).

The uniform law on frames is the only one that no rotation of R^d changes (Haar's). The
frame Q of a normal matrix G = QR has it, if R has a positive diagonal: Q is then
unique, hence moves with G under rotations, which do not change the law of G (Mezzadri,
*How to generate random matrices from the classical compact groups*, Notices of the AMS
54, 2007). In the same way a frame Q together with normal columns gives a uniform frame
of the orthogonal complement, because only the components of the normal columns in that
complement are left.
"""

import numpy as np

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array

__all__ = [
    "deflated_frames",
    "orthonormalise",
    "uniform_complements",
    "uniform_frames",
]


def uniform_frames(size: int, d: int, k: int, *, rng: Rng) -> Array:
    """Return independent uniform frames, shape (size, d, k); 0 <= k <= d.

    Examples
    --------
    >>> v = uniform_frames(5, 3, 2, rng=np.random.default_rng(0))
    >>> np.allclose(v.swapaxes(-2, -1) @ v, np.eye(2))
    True
    """
    return orthonormalise(rng.standard_normal((size, d, k)))


def uniform_complements(frames: Array, *, rng: Rng) -> Array:
    """Return for each frame a uniform one of its orthogonal complement.

    Shape (size, d, k) -> (size, d, d - k); k may be 0, or d.
    """
    size, d, k = frames.shape
    columns = rng.standard_normal((size, d, d - k))
    return orthonormalise(np.concatenate([frames, columns], axis=-1))[..., k:]


def deflated_frames(frames: Array, directions: Array) -> Array:
    """Return frames of what is left of the spans when one direction is taken away.

    Parameters
    ----------
    frames : ndarray, shape (size, d, q)
        q >= 1.
    directions : ndarray, shape (size, q)
        Unit vectors: coordinates, in the frames, of what is taken away.

    Returns
    -------
    ndarray, shape (size, d, q - 1)
        Orthonormal columns in the span, orthogonal to the direction.

    Notes
    -----
    Columns two to q of F H, where H is the Householder reflection that exchanges the
    first basis vector and minus or plus the direction, whichever is further from it:
    no digits are lost.
    """
    normals = directions.copy()
    normals[:, 0] += np.where(normals[:, 0] < 0, -1.0, 1.0)
    along = (frames @ normals[..., np.newaxis]) / (1 + np.abs(directions[:, :1, None]))
    return np.asarray(frames[..., 1:] - along * normals[:, np.newaxis, 1:])


def orthonormalise(matrices: Array) -> Array:
    """Return the Q of QR decompositions whose R has a positive diagonal.

    Parameters
    ----------
    matrices : ndarray, shape (..., d, k)
        Of rank k <= d.

    Returns
    -------
    ndarray, shape (..., d, k)

    Examples
    --------
    >>> orthonormalise(np.array([[-3.0], [4.0]]))
    array([[-0.6],
           [ 0.8]])
    """
    q, r = np.linalg.qr(matrices)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)[..., np.newaxis, :]
    return np.asarray(q * np.where(diagonal < 0, -1.0, 1.0))
