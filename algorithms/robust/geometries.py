r"""Where steps of descents lead: between subspaces, and between matrices.

**Subspaces** as orthonormal bases: how they move, how far apart, and a basis of each.

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

**The set H** = {P : 0 <= P <= I, tr P = r} of REAPER, projections onto it, and steps.

H is the convex hull of the projectors of rank r (Fillmore, Williams 1971), also called
the Fantope. Both projections keep eigenvectors and move eigenvalues: the distances are
unitarily invariant, and by von Neumann's trace inequality nothing nearer has other
eigenvectors. What is left is a problem in the eigenvalues.

*Frobenius norm*, of a symmetric M with eigenvalues l_i (Vu, Cho, Lei, Rohe, *Fantope
projection and selection*, NeurIPS 2013, Lemma 4.1):

.. math:: p_i = \min(\max(l_i - \theta, 0), 1), \quad {\textstyle\sum_i} p_i = r.

The sum is a falling piecewise linear function of theta, which bends at l_i and l_i - 1.
Its values at all bends follow from the sorted bends by running sums, so theta is found
exactly, without iteration. (The paper names the water-filling of Lerman, McCoy, Tropp,
Zhang, FoCM 2015, for this step. That solves weighted least squares over H, a step of
`dpaudit.algorithms.robust.ggd`, and is not this projection.)

*Bregman*, for the von Neumann entropy tr(P log P): of Y = exp(M), argmin over H of
tr(P log P - P log Y - P + Y) (Warmuth, Kuzmin, *Randomized online PCA algorithms with
regret bounds that are logarithmic in the dimension*, JMLR 2008):

.. math:: p_i = \min(1, c y_i), \quad {\textstyle\sum_i} p_i = r.

By the KKT conditions the capped ones are the largest; if k of them are, c = (r - k)/
(sum of the rest), and the least k < r for which c times the largest of the rest is at
most 1 is the one. All is computed from logarithms, so that nothing over- or underflows.
The paper says that this projection "just corresponds to trace renormalization"; that is
`renormalised_logs`, and it is true where no eigenvalue is to be capped, never with
P = V V^T at the optimum.

*Steps* (Maunu, Yu, Lerman, MSML 2022, appendix A, Algorithms 1 and 2). With the step
S = -eta times a subgradient, symmetric:

- `Euclidean`, gradient descent: P' = the Frobenius projection of P + S onto H;
- `Entropic`, mirror descent with the von Neumann entropy: P' = the Bregman projection
  of exp(log P + S) onto H. The state is log P, and it is never exponentiated before the
  projection has capped it at 0: an eigenvalue may be e^-1000 and grow again.
- `Renormalised`, Algorithm 2 as printed: P' = r Y/tr Y, Y = exp(log P + S), without the
  cap, so P' may have eigenvalues > 1 and is then outside H.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.parts import Geometry, Space
from dpaudit.arrays import Array
from dpaudit.subspace import principal_angles

__all__ = [
    "Entropic",
    "Euclidean",
    "Geodesic",
    "Polar",
    "Renormalised",
    "settle",
    "squared_distance",
]

_LEAST_LOG = -700.0
_LEAST_RATIO = 1e-4  # of eigenvalues of M^T M, for rounding to stay below 1e-11


def polar(matrices: Array) -> Array:
    """Return the nearest matrices with orthonormal columns, shape (..., D, r)."""
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
    """
    left, angles, right = np.linalg.svd(tangents, full_matrices=False)
    across = right.swapaxes(-2, -1)
    near = (bases @ across) * np.cos(angles)[..., np.newaxis, :]
    far = left * np.sin(angles)[..., np.newaxis, :]
    return np.asarray((near + far) @ right)


def squared_distance(basis: ArrayLike, other: ArrayLike) -> Array:
    """Return d_r^2 = 1 - cos(the largest principal angle) of bases, shape (...)."""
    # 1 - cos t = 2 sin^2(t/2) keeps its digits at small angles.
    half = principal_angles(basis, other)[..., -1] / 2
    return np.asarray(2 * np.sin(half) ** 2)


@dataclass(frozen=True)
class Polar(Geometry):
    """Steps of V to the polar retraction of V + H; points and states are bases."""

    space: ClassVar[Space] = "subspaces"

    def moved(self, state: Array, step: Array, rank: int) -> tuple[Array, Array]:
        bases = polar(state + step)
        return bases, bases


@dataclass(frozen=True)
class Geodesic(Geometry):
    """Steps of V to the end of the geodesic along the tangential part of H."""

    space: ClassVar[Space] = "subspaces"

    def moved(self, state: Array, step: Array, rank: int) -> tuple[Array, Array]:
        bases = geodesic_step(state, to_tangent(state, step))
        return bases, bases


def clipped_eigenvalues(values: Array, n_components: int) -> Array:
    """Return min(max(l - theta, 0), 1) with the theta at which they sum up to r.

    The l have the shape (..., D), in any order; r is from 1 to D.
    """
    count = values.shape[-1]
    bends = np.concatenate([values, values - 1], axis=-1)
    order = np.argsort(-bends, axis=-1, kind="stable")
    bends = np.take_along_axis(bends, order, axis=-1)
    # As theta falls, the sum grows once theta is below l, until it is below l - 1.
    slopes = np.cumsum(np.where(order < count, 1.0, -1.0), axis=-1)
    gains = -np.diff(bends, axis=-1) * slopes[..., :-1]
    sums = np.cumsum(gains, axis=-1)
    # The last bend has the sum D >= r, up to rounding.
    place = np.minimum(
        np.sum(sums < n_components, axis=-1, keepdims=True), 2 * count - 2
    )
    upper = np.take_along_axis(bends, place, axis=-1)
    before = np.take_along_axis(sums - gains, place, axis=-1)
    slope = np.take_along_axis(slopes, place, axis=-1)
    theta = upper - (n_components - before) / np.maximum(slope, 1)
    # Once more from the values that are neither 0 nor 1, without the running sums.
    shifted = values - theta
    free = (shifted > 0) & (shifted < 1)
    capped = np.sum(shifted >= 1, axis=-1, keepdims=True)
    number = np.sum(free, axis=-1, keepdims=True)
    total = np.sum(np.where(free, shifted, 0.0), axis=-1, keepdims=True)
    excess = (total - (n_components - capped)) / np.maximum(number, 1)
    return np.clip(shifted - np.where(number > 0, excess, 0.0), 0.0, 1.0)


def bregman_logs(values: Array, n_components: int) -> Array:
    """Return log min(1, c exp(w)) with the c at which they sum up to r, shape (..., D).

    The w are ascending; r is from 1 to D.
    """
    # rest[..., k]: log of the sum of all but the k largest; top[..., k]: the next.
    rest = np.logaddexp.accumulate(values, axis=-1)[..., ::-1][..., :n_components]
    top = values[..., ::-1][..., :n_components]
    scales = np.log(np.arange(n_components, 0, -1.0)) - rest
    fits = np.asarray(scales + top <= 0)
    fits[..., -1] = True  # exp(top) is part of the rest.
    least = np.argmax(fits, axis=-1)[..., np.newaxis]
    scale = np.take_along_axis(scales, least, axis=-1)
    return np.minimum(values + scale, 0.0)


def renormalised_logs(values: Array, n_components: int) -> Array:
    """Return log(r exp(w)/sum exp(w)): the paper's projection, without the cap.

    The w have the shape (..., D), ascending. Results may be > 0: eigenvalues > 1.
    """
    total = np.logaddexp.accumulate(values, axis=-1)[..., -1:]
    return np.asarray(values + (np.log(n_components) - total))


@dataclass(frozen=True)
class Euclidean(Geometry):
    """Gradient descent, projected onto H in Frobenius norm."""

    space: ClassVar[Space] = "matrices"

    def moved(self, state: Array, step: Array, rank: int) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(state + step)
        matrices = _composed(clipped_eigenvalues(values, rank), vectors)
        return matrices, matrices


@dataclass(frozen=True)
class Entropic(Geometry):
    """Mirror descent with the von Neumann entropy, projected onto H."""

    space: ClassVar[Space] = "matrices"
    projected = staticmethod(bregman_logs)

    def begin(self, points: Array) -> Array:
        values, vectors = np.linalg.eigh(points)
        # A random P_0 may be singular up to rounding.
        floor = np.exp(_LEAST_LOG)
        return _composed(np.log(np.maximum(values, floor)), vectors)

    def moved(self, state: Array, step: Array, rank: int) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(state + step)
        logs = self.projected(values, rank)
        return _composed(logs, vectors), _composed(np.exp(logs), vectors)


@dataclass(frozen=True)
class Renormalised(Entropic):
    """Mirror descent as printed, without the cap at 1."""

    projected = staticmethod(renormalised_logs)


def _composed(values: Array, vectors: Array) -> Array:
    """Return matrices of these eigenvalues and eigenvectors, shape (..., D, D)."""
    scaled = vectors * values[..., np.newaxis, :]
    return np.asarray(scaled @ vectors.swapaxes(-2, -1))
