r"""Subspaces as orthonormal bases: how they move, how far apart, and a basis of each.

Source of retractions: Maunu, Yu, Lerman, *Stochastic and private nonconvex
outlier-robust PCA*, MSML 2022, section 2.2: P_O(D, r)(M) is the matrix with orthonormal
columns that is nearest to M in Frobenius norm (the orthogonal Procrustes problem). With
the singular value decomposition M = U S W^T it is U W^T (Fan, Hoffman 1955), for M of
full rank the polar factor M (M^T M)^(-1/2), and then it is the only one.

A subspace has many bases. `settle` picks the one nearest to E, the first r columns of
the identity: argmin ||V R - E||_F over rotations R is R = U W^T, where V^T E = U S W^T
(orthogonal Procrustes again). It depends on the subspace alone wherever that is
possible: if the subspace holds a direction orthogonal to all of E, more than one basis
is nearest.

Source of geodesics: Edelman, Arias, Smith, *The geometry of algorithms with
orthogonality constraints*, SIAM J. Matrix Anal. Appl. 1998, Theorem 2.3; used in the
former, section 2.1. For a tangent H (D x r, V^T H = 0) with the thin singular value
decomposition H = U S W^T,

    Exp_V(H) = V W cos(S) W^T + U sin(S) W^T.

It turns the subspace by the angles S. The polar retraction of V + H, whose columns have
V^T V + H^T H = W (I + S^2) W^T, is V W (I + S^2)^(-1/2) W^T + U S (I + S^2)^(-1/2) W^T:
the same with the angles arctan S, so the two agree up to ||H||^3/3.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.parts import Geometry, Space
from dpaudit.arrays import Array
from dpaudit.subspace import principal_angles

__all__ = ["Geodesic", "Polar", "settle", "squared_distance"]

_LEAST_RATIO = 1e-4  # of eigenvalues of M^T M, for rounding to stay below 1e-11


def polar(matrices: Array) -> Array:
    """Return the nearest matrices with orthonormal columns, shape (..., D, r).

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

    Shape (..., D, r), orthonormal columns.

    Examples
    --------
    >>> settle(np.array([[-0.6], [0.8]]))
    array([[ 0.6],
           [-0.8]])
    """
    r = bases.shape[-1]
    left, _, right = np.linalg.svd(bases[..., :r, :].swapaxes(-2, -1))
    return np.asarray(bases @ (left @ right))


def to_tangent(bases: Array, directions: Array) -> Array:
    """Return (I - V V^T) H, the part of H that turns the subspace, (..., D, r)."""
    along = bases @ (bases.swapaxes(-2, -1) @ directions)
    return np.asarray(directions - along)


def geodesic_step(bases: Array, tangents: Array) -> Array:
    """Return Exp_V(H), the end of the geodesic from V that starts along H, (..., D, r).

    V^T H must be 0 (`to_tangent`).

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


def squared_distance(basis: ArrayLike, other: ArrayLike) -> Array:
    """Return d_r^2 = 1 - cos(the largest principal angle) of bases, shape (...).

    Examples
    --------
    >>> float(squared_distance([[1.0], [0.0]], [[0.6], [0.8]]).round(12))
    0.4
    """
    # 1 - cos t = 2 sin^2(t/2) keeps its digits at small angles.
    half = principal_angles(basis, other)[..., -1] / 2
    return np.asarray(2 * np.sin(half) ** 2)


@dataclass(frozen=True)
class Polar(Geometry):
    """Steps of V to the polar retraction of V + H; points and states are bases."""

    space: ClassVar[Space] = "subspaces"

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        bases = polar(state + step)
        return bases, bases


@dataclass(frozen=True)
class Geodesic(Geometry):
    """Steps of V to the end of the geodesic along the tangential part of H."""

    space: ClassVar[Space] = "subspaces"

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        bases = geodesic_step(state, to_tangent(state, step))
        return bases, bases
