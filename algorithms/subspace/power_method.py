r"""The private power method: subspace iteration with noise in every step.

Source: Hardt, Price, *The noisy power method: a meta algorithm with applications*,
NeurIPS 2014; as a mechanism for rows, and with constants, in Imtiaz, Sarwate,
*Symmetric matrix perturbation for differentially-private principal component
analysis*, ICASSP 2016, section 3 ('PPM').

1. V_0: an orthonormal basis of a uniformly random k-dimensional subspace.
2. For l = 1, ..., L: Y_l = A V_(l-1) + G_l, and V_l R_l = Y_l is a QR decomposition.
3. Output V_L.

The entries of G_l are i.i.d., normal (`PowerMethod`) or Laplace (`LaplacePowerMethod`,
for pure differential privacy). L is public. The diagonal of R_l is positive, which
makes V_l a continuous function of Y_l; then V_0 = qr(Gaussian) is Haar distributed.

Sensitivity. Given V (d x k, orthonormal columns), let S = A - A' for neighbours with
rows in the unit ball; everything scales with the square of `row_norm`. For x the row
that was added, or x in place of y:

- ADD_REMOVE: ||S V||_F = ||x|| ||V^T x|| <= 1, attained at a unit x in the span of V.
- REPLACE_ONE, k >= 2: ||S V||_F <= ||S||_F <= sqrt 2, attained at orthonormal x and y
  in the span of V.
- REPLACE_ONE, k = 1: -y y^T <= S <= x x^T in the Loewner order, so ||S v|| <= ||S||_2
  <= 1, attained at x = v and y orthogonal to it.
- The sum of the absolute entries of S V is at most sqrt(d k) ||S V||_F by
  Cauchy-Schwarz. That is attained under ADD_REMOVE, at x = (1, ..., 1)/sqrt d and a V
  with V^T x = (1, ..., 1)/sqrt k; under REPLACE_ONE for k = 1, at x = v =
  (1, ..., 1)/sqrt d, and for k >= 2 where d and k are even.

Privacy. Y_1, ..., Y_L are an adaptive composition: V_(l-1) is a function of the step
before, so the bounds above hold at every step whatever came before. The start does not
depend on the data, and V_L is a function of the last step. With Delta the bound in
Frobenius norm:

- normal entries of deviation sigma: every step is (Delta/sigma)-GDP and the whole
  mu-GDP with mu = sqrt(L) Delta/sigma (Dong, Roth, Su, *Gaussian differential privacy*,
  Corollary 3.3);
- Laplace entries of scale b: every step is (sqrt(d k) Delta/b)-DP, as its entries move
  by at most sqrt(d k) Delta in sum, the whole L times that. The scale of the noise
  depends on d, which is public.

For the transcript (V_0, Y_1, ..., Y_L) the first is tight: if d = k then ||S V||_F =
||S||_F whatever V is, so the privacy loss on the worst pair is that of N(mu, 1) against
N(0, 1) exactly. For V_L alone it is an upper bound.

As published the deviation is sqrt(4 k L log(1/delta))/epsilon, and the Laplace scale
2 k L sqrt(d)/epsilon. Both promises hold, with noise to spare: over the calibrated
noise it is, whatever L and the row norm are,

- normal: sqrt(4 k log(1/delta)) mu(epsilon, delta)/(epsilon Delta), where
  mu(epsilon, delta) is `dpaudit.gaussian.gaussian_mu`; at (1, 1e-5) this is
  1.82 sqrt k under ADD_REMOVE, 1.29 sqrt k under REPLACE_ONE (1.82 for k = 1);
- Laplace: 2 sqrt(k)/Delta, which is 2 sqrt k under ADD_REMOVE, and under REPLACE_ONE
  sqrt(2 k) for k >= 2 and 2 for k = 1.

(For the normal noise this is below 1 where epsilon is very large; at k = 1 the promise
is proven up to epsilon = 24.5 at delta 1e-3, 36.0 at 1e-5, and fails for the transcript
beyond.) Hardt and Price also scale their noise by the largest entry of V, for
neighbours that differ in one entry of A; for rows that would be too little, and it is
not done here.

Utility. More steps leave less of the random start, whose part outside the principal
subspace shrinks by lambda_(k+1)/lambda_k a step; but the noise of every step grows, as
sqrt L or as L. The default L = 4 suits spectra that drop by a factor of a few.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, Pair, PureDP, Relation
from dpaudit.algorithms.covariance.second_moment import full_row_pair
from dpaudit.algorithms.shared.bases import Rng, Values, end_of, transcribed
from dpaudit.algorithms.shared.constructors import (
    GaussianCalibrated,
    PureCalibrated,
    hands_on,
)
from dpaudit.algorithms.subspace.base import (
    SubspaceMechanism,
    orthonormalise,
    uniform_frames,
)
from dpaudit.algorithms.subspace.perturbation import gap_sensitivity, turned_pair
from dpaudit.arrays import Array
from dpaudit.validation import (
    Count,
    Positive,
    check_count,
    check_fraction,
    check_length,
    check_positive,
)

__all__ = ["LaplacePowerMethod", "PowerMethod"]

DEFAULT_ITERATIONS = 4


@dataclass(frozen=True, kw_only=True)
class NoisyPowerMethod(SubspaceMechanism, ABC):
    """The power method with some noise in every step.

    Parameters
    ----------
    iterations : int
        L, at least 1.
    """

    iterations: Count = DEFAULT_ITERATIONS

    @property
    def step_sensitivity(self) -> float:
        """Delta, of one product A V over all orthonormal V, in Frobenius norm."""
        twice = self.relation is Relation.REPLACE_ONE and self.n_components > 1
        return (sqrt(2) if twice else 1) * self.row_norm**2

    @abstractmethod
    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        """Return the noise of one step in `size` trials, shape (size, d, k)."""

    @abstractmethod
    def deviation(self, dimension: int) -> float:
        """Return the standard deviation of every entry of the noise."""

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        return end_of(self._walk(moment, size, rng))

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return the ``start``, V_0, and the ``steps`` of `size` independent runs.

        These are Y_1, ..., Y_L, shape (size, L, d, k). From the same state of `rng`,
        `draw` returns the orthonormalised last ones.
        """
        size = check_count("size", size, minimum=0)
        return transcribed(self._walk(self.moment(data), size, rng))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair that the last step shows, or for d = k all of them.

        d > k: `dpaudit.algorithms.subspace.perturbation.turned_pair` with a gap of a
        few deviations of the noise, enough for the iteration to find the subspace that
        one row turns. d = k, where nothing is worse for the transcript: a row at a
        basis vector joins a zero row, or replaces another basis vector (a zero row
        where d = 1). The default d is k + 1, the least in which the space moves and
        not only its basis.
        """
        k = self.n_components
        dimension = check_length(dimension, k + 1, minimum=k)
        if dimension > k:
            gap = 4 * gap_sensitivity(self.relation) * self.deviation(dimension)
            return turned_pair(k, dimension, gap, self.relation, self.row_norm)
        return full_row_pair(dimension, self.relation, self.row_norm)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst cases for d = k + 1, and for d = k."""
        return self.worst_case(), self.worst_case(self.n_components)

    def _walk(self, moment: Array, size: int, rng: Rng) -> Iterator[list[Array]]:
        """Yield V_0 twice, then each noisy product and the V that it leads to."""
        basis = uniform_frames(size, len(moment), self.n_components, rng=rng)
        yield [basis, basis]
        for _ in range(self.iterations):
            noisy = self.noise(size, len(moment), rng=rng)
            noisy += moment @ basis
            basis = orthonormalise(noisy)
            yield [noisy, basis]


@dataclass(frozen=True, kw_only=True)
class PowerMethod(NoisyPowerMethod, GaussianCalibrated):
    """The power method with normal noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of every entry of the noise.

    Examples
    --------
    >>> mechanism = PowerMethod.calibrated(1.0, 1e-5, n_components=2, iterations=3)
    >>> round(mechanism.sigma, 4)
    6.4616
    """

    sigma: Positive

    @classmethod
    def _at(cls, mu: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(sigma=1.0, claim=claim, **fields)
        return replace(made, sigma=sqrt(made.iterations) * made.step_sensitivity / mu)

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism as Imtiaz and Sarwate compare it, with their claim."""
        epsilon = check_positive("epsilon", epsilon)
        log_term = log(1 / check_fraction("delta", delta))
        made = cls(sigma=1.0, claim=ApproxDP(epsilon, delta), **fields)
        root = sqrt(4 * (made.n_components * made.iterations) * log_term)
        return replace(made, sigma=made.row_norm**2 * root / epsilon)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        noise = rng.standard_normal((size, dimension, self.n_components))
        noise *= self.sigma
        return noise

    def deviation(self, dimension: int) -> float:
        return self.sigma

    def step_means(self, transcript: Values, data: ArrayLike) -> Values:
        """Return A V_0, ..., A V_(L-1) for A of `data`, shape (size, L, d, k)."""
        start, steps = transcript["start"], transcript["steps"]
        later = orthonormalise(steps[:, :-1])
        bases = np.concatenate([start[:, np.newaxis], later], axis=1)
        return {"steps": self.moment(data) @ bases}

    @property
    def step_scales(self) -> dict[str, float]:
        return {"steps": self.sigma}


@dataclass(frozen=True, kw_only=True)
class LaplacePowerMethod(NoisyPowerMethod, PureCalibrated):
    """The power method with Laplace noise, for pure differential privacy.

    Parameters
    ----------
    unit_scale : float
        Scale of every entry of the noise, over sqrt(d).
    """

    unit_scale: Positive

    @classmethod
    def _at(cls, epsilon: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(unit_scale=1.0, claim=claim, **fields)
        length = made.iterations * sqrt(made.n_components) * made.step_sensitivity
        return replace(made, unit_scale=length / epsilon)

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, **fields: Any) -> Self:
        """Return the mechanism as Imtiaz and Sarwate compare it, with their claim."""
        epsilon = check_positive("epsilon", epsilon)
        made = cls(unit_scale=1.0, claim=PureDP(epsilon), **fields)
        length = made.row_norm**2 * 2 * (made.n_components * made.iterations)
        return replace(made, unit_scale=length / epsilon)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        scale = self.unit_scale * sqrt(dimension)
        return rng.laplace(scale=scale, size=(size, dimension, self.n_components))

    def deviation(self, dimension: int) -> float:
        return sqrt(2 * dimension) * self.unit_scale
