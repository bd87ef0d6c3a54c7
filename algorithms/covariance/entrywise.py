r"""Independent noise on the entries of the second-moment matrix A: Gaussian, Laplace.

**Gaussian noise**, of two kinds. The upper triangle of the noise is independent, N(0,
sigma^2) above the diagonal and N(0, (diagonal_ratio sigma)^2) on it. For a difference S
of two second-moment matrices let W = S weighted by 1/2 off the diagonal and by
1/diagonal_ratio^2 on it. Then <S, W>, summed over all entries, counts every
off-diagonal entry of the triangle once, and

- the Mahalanobis distance of the two laws is sqrt(<S, W>)/sigma: the pair is mu-GDP
  with that mu, and no smaller one (a Gaussian shift);
- the privacy loss of a release Y is <Y - (A + A')/2, W>/sigma^2 with S = A - A'.

A subclass states in which norm that distance is bounded, and by which factor:
`AnalyzeGauss` and `GOEGaussian` are two.

**AnalyzeGauss**: symmetric i.i.d. noise. Source: Dwork, Talwar, Thakurta, Zhang,
*Analyze Gauss: optimal bounds for privacy-preserving principal component analysis*,
STOC 2014, Algorithm 1.

1. E symmetric, upper triangle with diagonal i.i.d. N(0, s^2).
2. Output A + E.

As published, s = sqrt(2 ln(1.25/delta))/epsilon, the classical calibration at
sensitivity 1. Under ADD_REMOVE the claim holds for every epsilon < 1; under REPLACE_ONE
the sensitivity of the upper triangle is sqrt 2, not 1, and it fails in part
(docs/findings.md#analyze-gauss-for-a-replaced-row). `AnalyzeGauss.calibrated` replaces
the constant by the analytic one for the stated relation.

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

**LaplaceCovariance**: the second-moment matrix plus i.i.d. Laplace noise, pure DP.

The Laplace mechanism (Dwork, McSherry, Nissim, Smith, TCC 2006) on the upper triangle
of A, a common baseline. The sensitivity for replaced rows is dpaudit's: the triangle
inequality's d + 1 is too large, by a factor of up to sqrt(2).

1. E symmetric, its upper triangle i.i.d. Laplace of scale b: diagonal and off-diagonal
   entries once each.
2. Output A + E.

Privacy. b = Delta/epsilon, Delta being the l1 sensitivity of the triangle, makes the
release epsilon-DP. The loss of a pair reaches the l1 norm of its difference over b (on
all releases far out in the right quadrant), so that is the pair's exact pure epsilon.

Sensitivity, for rows in the unit ball. Write T(S) for the sum of |S_ij| over i <= j,

.. math:: T(S) = \tfrac{1}{2} \Big( \sum_{ij} |S_{ij}| + \sum_i |S_{ii}| \Big).

**ADD_REMOVE**: T(x x^T) = (||x||_1^2 + ||x||_2^2)/2 <= (d + 1)/2, attained where all
entries of a unit x are of the same size.

**REPLACE_ONE**: the largest T(x x^T - y y^T) is 1 for d = 1, and for d >= 2

.. math:: \Delta_d = \sqrt{\frac{(d + 2)^2}{4} + h_1 h_2}, \qquad
          h_1 = \lceil d/2 \rceil, \; h_2 = \lfloor d/2 \rfloor ,

which is sqrt(5) for d = 2 and about d/sqrt(2) for large d.

Proof. x x^T - y y^T = alpha u u^T - beta v v^T with orthonormal u, v and alpha, beta in
[0, 1] (Weyl: it has an eigenvalue of each sign at most, and none above 1 in size). T is
a norm, so it is largest at a corner of that square: one row alone gives (d + 1)/2, so
let S = u u^T - v v^T. Let G_1 be the i with |u_i| >= |v_i|, G_2 the others, h_1 and h_2
their numbers, h_1 >= h_2 without loss. Flipping the signs of the i-th entries of u and
v together leaves T as it is; make u_i >= 0 on G_1 and v_i >= 0 on G_2. Then the block
S_11 has no negative entry and S_22 no positive one, so that, 1 being a vector of ones,

.. math:: 2 T(S) = 1^T S_{11} 1 + \mathrm{tr} S_{11} - 1^T S_{22} 1 - \mathrm{tr} S_{22}
                   + 2 \sum |S_{12}| .

Let m_1, m_2, n be the Frobenius norms of S_11, S_22, S_12. The sums of the blocks are
at most h_1 m_1, h_2 m_2 and sqrt(h_1 h_2) n. tr S_11 = -tr S_22 =: t, and S_11 is one
semi-definite matrix of rank one minus another, so t is at most its one positive
eigenvalue: t <= m_1, and t <= m_2 alike. So 2t <= 2 kappa m_1 + 2 (1 - kappa) m_2 for
every kappa in [0, 1]. As m_1^2 + m_2^2 + 2 n^2 = ||S||_F^2 = 2, Cauchy and Schwarz give

.. math:: (2 T)^2 \le 2 \left[ (h_1 + 2\kappa)^2 + (h_2 + 2 - 2\kappa)^2
                              + 2 h_1 h_2 \right] .

If h_1 - h_2 <= 2, kappa = (2 + h_2 - h_1)/4 makes the squares equal, and the bound is
(d + 2)^2 + 4 h_1 h_2, largest for parts as even as they can be. If h_1 - h_2 >= 3,
kappa = 0 gives 2 d^2 + 8 h_2 + 8 <= 2 d^2 + 4 d - 4, less than (d + 2)^2 + d^2 - 1,
which is what the even parts give at least.

Attained: u and v constant on each of the two parts. On such vectors the form
2 T is that of the 2 x 2 matrix with h_1 + 1 and -(h_2 + 1) on its diagonal and
sqrt(h_1 h_2) off it, in the basis of the normalised indicators; the difference of its
eigenvalues is sqrt((d + 2)^2 + 4 h_1 h_2), at its eigenvectors.
"""

from abc import ABC
from dataclasses import dataclass, replace
from math import atan2, cos, sin, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.second_moment import (
    SecondMomentMechanism,
    second_moment_sensitivity,
    symmetric_gaussian,
    symmetric_laplace,
)
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import (
    GaussianCalibrated,
    PureCalibrated,
    hands_on,
)
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.claims.profile import lost
from dpaudit.gaussian import classical_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Positive, check_count, check_length, check_norm

__all__ = ["AnalyzeGauss", "GOEGaussian", "GaussianPerturbation", "LaplaceCovariance"]


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
    def _at(cls, mu: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(sigma=1.0, claim=claim, **fields)
        norm, relation = cls.sensitivity_norm, made.relation
        bound = second_moment_sensitivity(norm, relation, made.row_norm)
        return replace(made, sigma=cls.distance_per_norm * bound.value / mu)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        on_diagonal = self.diagonal_ratio * self.sigma
        return symmetric_gaussian(size, dimension, self.sigma, on_diagonal, rng=rng)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: linear in the release, shape (size,)."""
        mean, other_mean = self.statistic(data), self.statistic(other)
        weights = self._weighted(mean - other_mean) / self.sigma / self.sigma
        offset = np.vdot(weights, (mean + other_mean) / 2)
        return releases.reshape(len(releases), weights.size) @ weights.ravel() - offset

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP with mu the Mahalanobis distance of the two means."""
        moved = self._difference(pair.data, pair.neighbour) / self.sigma
        return lost(GaussianDP, sqrt(np.vdot(moved, self._weighted(moved))))

    def _weighted(self, difference: Array) -> Array:
        weights = np.full(difference.shape, 0.5)
        np.fill_diagonal(weights, 1 / self.diagonal_ratio**2)
        return weights * difference


@dataclass(frozen=True, kw_only=True)
class AnalyzeGauss(GaussianPerturbation):
    """A + E with the upper triangle of E i.i.d. N(0, sigma^2).

    Examples
    --------
    >>> mechanism = AnalyzeGauss.calibrated(epsilon=1.0, delta=1e-5)
    >>> round(mechanism.sigma, 4)
    3.7306
    """

    sensitivity_norm = "upper-triangle"
    distance_per_norm = 1.0
    diagonal_ratio = 1.0

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return Algorithm 1 to the letter, with the paper's claim."""
        mu = classical_mu(epsilon, delta)
        made = cls(sigma=1.0, claim=ApproxDP(epsilon, delta), **fields)
        # The paper's sensitivity is 1 for unit rows, whatever the relation.
        return replace(made, sigma=made.row_norm**2 / mu)


@dataclass(frozen=True, kw_only=True)
class GOEGaussian(GaussianPerturbation):
    """A + E, E from the Gaussian orthogonal ensemble: diagonals of sqrt(2) sigma."""

    sensitivity_norm = "frobenius"
    distance_per_norm = 1 / sqrt(2)
    diagonal_ratio = sqrt(2)


def triangle_sensitivity(
    dimension: int, relation: Relation | str, row_norm: float = 1.0
) -> float:
    """Return the exact l1 sensitivity of the upper triangle of A with its diagonal."""
    dimension = check_count("dimension", dimension)
    square = check_norm("row_norm", row_norm) ** 2
    if Relation.parse(relation) is Relation.ADD_REMOVE or dimension == 1:
        return square * (dimension + 1) / 2
    return square * sqrt((dimension + 2) ** 2 / 4 + dimension**2 // 4)


@dataclass(frozen=True, kw_only=True)
class LaplaceCovariance(SecondMomentMechanism, PureCalibrated):
    """A + E with E symmetric, its upper triangle i.i.d. Laplace.

    Parameters
    ----------
    epsilon : float
        The l1 sensitivity over the scale of the noise, in every dimension.
    """

    epsilon: Positive

    sensitivity_norm = "upper-triangle-l1"

    def scale(self, dimension: int) -> float:
        """Return the scale of the noise for rows of length `dimension`."""
        sensitivity = triangle_sensitivity(dimension, self.relation, self.row_norm)
        return sensitivity / self.epsilon

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        return symmetric_laplace(size, dimension, scale=self.scale(dimension), rng=rng)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        near, far = (
            np.abs(np.triu(releases - self.statistic(rows))).sum(axis=(-2, -1))
            for rows in (data, other)
        )
        return np.asarray((far - near) / self.scale(releases.shape[-1]))

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of a pair, which its loss attains."""
        difference = np.triu(self._difference(pair.data, pair.neighbour))
        loss = float(np.abs(difference).sum()) / self.scale(len(difference))
        return lost(PureDP, loss)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair at which the sensitivity is attained (default d = 2).

        ADD_REMOVE: a row whose entries are all of the same size joins a zero row.
        REPLACE_ONE: the eigenvectors at the end of the proof in the module docstring.
        """
        dimension = check_length(dimension, 2)
        zero, flat = np.zeros(dimension), np.full(dimension, 1 / sqrt(dimension))
        if self.relation is Relation.ADD_REMOVE:
            return Pair([zero], [zero, self.row_norm * flat], self.relation)
        if dimension == 1:
            return Pair([zero], [self.row_norm * flat], self.relation)
        part = np.arange(dimension) < (dimension + 1) // 2
        one, two = part / sqrt(part.sum()), ~part / sqrt((~part).sum())
        angle = atan2(2 * sqrt(dimension**2 // 4), dimension + 2) / 2
        first = cos(angle) * one + sin(angle) * two
        second = cos(angle) * two - sin(angle) * one
        return Pair([self.row_norm * first], [self.row_norm * second], self.relation)
