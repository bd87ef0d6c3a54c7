r"""The set H = {P : 0 <= P <= I, tr P = r} of REAPER, projections onto it, and steps.

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

from dpaudit.algorithms.robust.parts import Geometry, Space
from dpaudit.arrays import Array

__all__ = ["Entropic", "Euclidean", "Renormalised"]

_LEAST_LOG = -700.0


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

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(state + step)
        matrices = _composed(clipped_eigenvalues(values, n_components), vectors)
        return matrices, matrices


@dataclass(frozen=True)
class Entropic(Geometry):
    """Mirror descent with the von Neumann entropy, projected onto H."""

    space: ClassVar[Space] = "matrices"

    def begin(self, points: Array) -> Array:
        values, vectors = np.linalg.eigh(points)
        # A random P_0 may be singular up to rounding.
        floor = np.exp(_LEAST_LOG)
        return _composed(np.log(np.maximum(values, floor)), vectors)

    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(state + step)
        logs = self._projected(values, n_components)
        return _composed(logs, vectors), _composed(np.exp(logs), vectors)

    def _projected(self, values: Array, n_components: int) -> Array:
        return bregman_logs(values, n_components)


@dataclass(frozen=True)
class Renormalised(Entropic):
    """Mirror descent as printed, without the cap at 1."""

    def _projected(self, values: Array, n_components: int) -> Array:
        return renormalised_logs(values, n_components)


def _composed(values: Array, vectors: Array) -> Array:
    """Return matrices of these eigenvalues and eigenvectors, shape (..., D, D)."""
    scaled = vectors * values[..., np.newaxis, :]
    return np.asarray(scaled @ vectors.swapaxes(-2, -1))
