"""What the mechanisms share that add symmetric Gaussian noise to A.

The upper triangle of the noise is independent, N(0, sigma^2) above the diagonal and
N(0, (diagonal_ratio sigma)^2) on it. For a difference S of two second-moment matrices
let W = S weighted by 1/2 off the diagonal and by 1/diagonal_ratio^2 on it. Then
<S, W>, summed over all entries, counts every off-diagonal entry of the triangle once,
and

- the Mahalanobis distance of the two laws is sqrt(<S, W>)/sigma: the pair is mu-GDP
  with that mu, and no smaller one (a Gaussian shift);
- the privacy loss of a release Y is <Y - (A + A')/2, W>/sigma^2 with S = A - A'.

A subclass states in which norm that distance is bounded, and by which factor.
"""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.covariance.noise import symmetric_gaussian
from dpaudit.algorithms.covariance.second_moment import (
    Array,
    SecondMomentMechanism,
    second_moment_sensitivity,
)
from dpaudit.checked import Positive
from dpaudit.claims import NO_LOSS, ApproxDP, Claim, GaussianDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation

__all__ = ["GaussianPerturbation"]


@dataclass(frozen=True, kw_only=True)
class GaussianPerturbation(SecondMomentMechanism, ABC):
    """A + symmetric Gaussian noise.

    Parameters
    ----------
    sigma : float
        Standard deviation of the entries above the diagonal.
    claim, relation, row_norm
        See `SecondMomentMechanism`.
    """

    sigma: Positive

    diagonal_ratio: ClassVar[float]
    """Standard deviation on the diagonal, in units of sigma."""

    distance_per_norm: ClassVar[float]
    """sqrt(<S, W>) over the norm of S named by `sensitivity_norm`."""

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Self:
        """Return the mechanism at the smallest sigma that is (epsilon, delta)-DP."""
        mu = gaussian_mu(epsilon, delta)
        return cls._at(mu, ApproxDP(epsilon, delta), relation, row_norm)

    @classmethod
    def from_mu(
        cls,
        mu: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Self:
        """Return the mechanism at the smallest sigma that is mu-GDP."""
        return cls._at(mu, GaussianDP(mu), relation, row_norm)

    @classmethod
    def _at(
        cls, mu: float, claim: Claim, relation: Relation | str, row_norm: float
    ) -> Self:
        sensitivity = second_moment_sensitivity(
            cls.sensitivity_norm, relation, row_norm
        )
        return cls(
            sigma=cls.distance_per_norm * sensitivity.value / mu,
            claim=claim,
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )

    def noise(self, size: int, dimension: int, *, rng: np.random.Generator) -> Array:
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
