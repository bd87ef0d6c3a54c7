r"""Symmetric Gaussian noise on the second-moment matrix A: two kinds.

The upper triangle of the noise is independent, N(0, sigma^2) above the diagonal and
N(0, (diagonal_ratio sigma)^2) on it. For a difference S of two second-moment matrices
let W = S weighted by 1/2 off the diagonal and by 1/diagonal_ratio^2 on it. Then
<S, W>, summed over all entries, counts every off-diagonal entry of the triangle once,
and

- the Mahalanobis distance of the two laws is sqrt(<S, W>)/sigma: the pair is mu-GDP
  with that mu, and no smaller one (a Gaussian shift);
- the privacy loss of a release Y is <Y - (A + A')/2, W>/sigma^2 with S = A - A'.

A subclass states in which norm that distance is bounded, and by which factor:
`AnalyzeGauss` and `GOEGaussian` are two.

**AnalyzeGauss**: symmetric i.i.d. noise. Source:
Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for privacy-preserving
principal component analysis*, STOC 2014, Algorithm 1.

1. E symmetric, upper triangle with diagonal i.i.d. N(0, s^2).
2. Output A + E.

As published, s = sqrt(2 ln(1.25/delta))/epsilon, the classical calibration at
sensitivity 1, and the text says both 'addition or removal' and 'differ in exactly one
row'. Under ADD_REMOVE the claim holds for every epsilon < 1 with room to spare, and
fails from about epsilon = 7.5 (delta 1e-3) or 8.4 (1e-5): the constant is proven for
epsilon <= 1 only. Under REPLACE_ONE the sensitivity of the upper triangle is sqrt 2,
not 1, and the claim fails in part: at (1, 1e-5) the true delta is 3.74e-5.
`AnalyzeGauss.calibrated` replaces the constant by the analytic one for the stated
relation.

Privacy. The release is a bijection of its upper triangle, a Gaussian vector with
covariance s^2 I whose mean moves by at most `sensitivity` (proved in
`dpaudit.algorithms.covariance.second_moment`), so it is mu-GDP with
mu = sensitivity/s, tightly; (epsilon, delta) follow from `dpaudit.gaussian`.

**GOE Gaussian**: rotation-invariant noise. This is dpaudit's own baseline for
approximate differential privacy.

1. E from the Gaussian orthogonal ensemble: symmetric, independent entries, N(0, s^2)
   above the diagonal and N(0, 2 s^2) on it.
2. Output A + E.

Privacy. In the upper triangle the log-density of E is -||E||_F^2/(4 s^2) plus a
constant, since an off-diagonal entry counts twice in the Frobenius norm and has half
the variance of a diagonal one. So the Mahalanobis distance between the laws on
neighbours is ||A - A'||_F/(sqrt 2 s), and the release is mu-GDP, tightly, with
mu = 1/(sqrt 2 s) under ADD_REMOVE and 1/s under REPLACE_ONE (Frobenius sensitivities 1
and sqrt 2, proved in `dpaudit.algorithms.covariance.second_moment`).

Utility. AnalyzeGauss needs s = 1/mu off the diagonal where this needs 1/(sqrt 2 mu):
the spectral norm of the noise is smaller by sqrt 2 at the same privacy, because no
direction is protected more than the worst one.
"""

from abc import ABC
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.noise import symmetric_gaussian
from dpaudit.algorithms.covariance.second_moment import (
    SecondMomentMechanism,
    second_moment_sensitivity,
)
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import GaussianCalibrated, hands_on
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.claims import NO_LOSS, ApproxDP, Claim, GaussianDP
from dpaudit.gaussian import classical_mu
from dpaudit.neighbours import Pair

__all__ = ["AnalyzeGauss", "GOEGaussian", "GaussianPerturbation"]


@dataclass(frozen=True, kw_only=True)
class GaussianPerturbation(SecondMomentMechanism, GaussianCalibrated, ABC):
    """A + symmetric Gaussian noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of the entries above the diagonal.
    """

    sigma: Positive

    diagonal_ratio: ClassVar[float]
    """Standard deviation on the diagonal, in units of sigma."""

    distance_per_norm: ClassVar[float]
    """sqrt(<S, W>) over the norm of S named by `sensitivity_norm`."""

    @classmethod
    def _at(cls, mu: float, claim: Claim, **fields: Any) -> Self:
        made = cls(sigma=1.0, claim=claim, **fields)
        norm, relation = cls.sensitivity_norm, made.relation
        bound = second_moment_sensitivity(norm, relation, made.row_norm)
        return replace(made, sigma=cls.distance_per_norm * bound.value / mu)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        return symmetric_gaussian(
            size,
            dimension,
            off_diagonal=self.sigma,
            diagonal=self.diagonal_ratio * self.sigma,
            rng=rng,
        )

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: linear in the release, shape (size,)."""
        mean, other_mean = self.statistic(data), self.statistic(other)
        weights = self._weighted(mean - other_mean) / self.sigma**2
        offset = np.vdot(weights, (mean + other_mean) / 2)
        return releases.reshape(len(releases), -1) @ weights.ravel() - offset

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP with mu the Mahalanobis distance of the two means."""
        difference = self.statistic(pair.data) - self.statistic(pair.neighbour)
        square = np.vdot(difference, self._weighted(difference))
        mu = float(np.sqrt(square)) / self.sigma
        return GaussianDP(mu) if mu > 0 else NO_LOSS

    def _weighted(self, difference: Array) -> Array:
        weights = np.full(difference.shape, 0.5)
        np.fill_diagonal(weights, 1 / self.diagonal_ratio**2)
        return weights * difference


@dataclass(frozen=True, kw_only=True)
class AnalyzeGauss(GaussianPerturbation):
    """A + E with the upper triangle of E i.i.d. N(0, sigma^2).

    Parameters
    ----------
    sigma : float
        Standard deviation of every entry of the upper triangle.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = AnalyzeGauss.calibrated(epsilon=1.0, delta=1e-5)
    >>> round(mechanism.sigma, 4)
    3.7306
    >>> mechanism.release(np.eye(3), rng=np.random.default_rng(0)).shape
    (3, 3)
    """

    sensitivity_norm = "upper-triangle"
    distance_per_norm = 1.0
    diagonal_ratio = 1.0

    @hands_on("relation", "row_norm")
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return Algorithm 1 to the letter, with the paper's claim."""
        mu = classical_mu(epsilon, delta)
        made = cls(sigma=1.0, claim=ApproxDP(epsilon, delta), **fields)
        # The paper's sensitivity is 1 for unit rows, whatever the relation.
        return replace(made, sigma=made.row_norm**2 / mu)


@dataclass(frozen=True, kw_only=True)
class GOEGaussian(GaussianPerturbation):
    """A + E with E from the Gaussian orthogonal ensemble.

    Parameters
    ----------
    sigma : float
        Standard deviation above the diagonal; on it, sqrt(2) times as much.

    Examples
    --------
    >>> mechanism = GOEGaussian.calibrated(epsilon=1.0, delta=1e-5)
    >>> round(mechanism.sigma, 4)
    2.638
    """

    sensitivity_norm = "frobenius"
    distance_per_norm = 1 / sqrt(2)
    diagonal_ratio = sqrt(2)
