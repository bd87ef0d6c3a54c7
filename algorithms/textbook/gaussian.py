r"""The Gaussian mechanism on a sum of scalars, classical and analytic.

Sources: Dwork, Roth, *The algorithmic foundations of differential privacy*, 2014,
Theorem A.1; Balle, Wang, *Improving the Gaussian mechanism for differential privacy*,
ICML 2018, Theorem 8.

1. x = the sum of the rows, each clipped to [0, sensitivity].
2. Output x + N(0, sigma^2).

Calibrations: `Gaussian.calibrated` takes the smallest sigma for (epsilon, delta),
`Gaussian.from_mu` that for mu-GDP, `Gaussian.classical` the constant
sqrt(2 log(1.25/delta)) sensitivity/epsilon, which is proven for epsilon < 1 only (and
fails at large epsilon). `Gaussian.under_noised` multiplies the smallest sigma by a
factor and keeps the claim.

True epsilon. Under ADD_REMOVE a row shifts the mean by at most the sensitivity, so all
pairs are dominated by N(mu, 1) against N(0, 1) with mu = sensitivity/sigma, which is
the worst pair itself; its exact profile is in `dpaudit.gaussian`. The true epsilon is
its inverse at the claim's delta. A Gaussian law has unbounded loss, so no finite
epsilon holds at delta = 0, which is what a mu-GDP claim is asked at.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import Array
from dpaudit.algorithms.textbook.sums import BoundedSum
from dpaudit.checked import Positive
from dpaudit.claims import NO_LOSS, ApproxDP, Claim, GaussianDP
from dpaudit.gaussian import classical_mu, gaussian_mu
from dpaudit.neighbours import Pair
from dpaudit.validation import check_positive

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(BoundedSum):
    """The sum of scalar rows, with Gaussian noise.

    Releases are scalars, shape (). Rows are scalars, shape (n,) or (n, 1).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.
    claim : Claim
        What is promised.
    sensitivity : float
        Rows are clipped to [0, sensitivity].

    Examples
    --------
    >>> round(Gaussian.calibrated(1.0, 1e-5).true_epsilon, 6)
    1.0
    >>> round(Gaussian.under_noised(1.0, 1e-5, factor=0.5).true_epsilon, 3)
    2.155
    """

    _: KW_ONLY
    sigma: Positive
    claim: Claim

    @classmethod
    def calibrated(
        cls, epsilon: float = 1.0, delta: float = 1e-5, *, sensitivity: float = 1.0
    ) -> "Gaussian":
        """Return the mechanism at the smallest sigma that is (epsilon, delta)-DP."""
        return cls.under_noised(epsilon, delta, factor=1.0, sensitivity=sensitivity)

    @classmethod
    def from_mu(cls, mu: float, *, sensitivity: float = 1.0) -> "Gaussian":
        """Return the mechanism at the smallest sigma that is mu-GDP."""
        sensitivity = check_positive("sensitivity", sensitivity)
        claim = GaussianDP(mu)
        return cls(sigma=sensitivity / mu, claim=claim, sensitivity=sensitivity)

    @classmethod
    def classical(
        cls, epsilon: float = 1.0, delta: float = 1e-5, *, sensitivity: float = 1.0
    ) -> "Gaussian":
        """Return the mechanism at the sigma of Theorem A.1, whatever epsilon is."""
        sensitivity = check_positive("sensitivity", sensitivity)
        return cls(
            sigma=sensitivity / classical_mu(epsilon, delta),
            claim=ApproxDP(epsilon, delta),
            sensitivity=sensitivity,
        )

    @classmethod
    def under_noised(
        cls,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        factor: float = 0.5,
        sensitivity: float = 1.0,
    ) -> "Gaussian":
        """Return a mechanism at `factor` times the noise that its claim needs."""
        sensitivity = check_positive("sensitivity", sensitivity)
        smallest = sensitivity / gaussian_mu(epsilon, delta)
        return cls(
            sigma=check_positive("factor", factor) * smallest,
            claim=ApproxDP(epsilon, delta),
            sensitivity=sensitivity,
        )

    @property
    def mu(self) -> float:
        """The exact mu: sensitivity/sigma."""
        return self.sensitivity / self.sigma

    @property
    def true_epsilon(self) -> float:
        """The smallest true epsilon at the claim's delta; inf where that is 0."""
        delta = self.claim.parameters.get("delta", 0.0)
        return GaussianDP(self.mu).epsilon(delta)

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        releases = rng.standard_normal(size)
        releases *= self.sigma
        releases += answers
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, linear in the release, shape (size,)."""
        mean, other_mean = self.answers(data), self.answers(other)
        slope = (mean - other_mean) / self.sigma**2
        return np.asarray((releases - (mean + other_mean) / 2) * slope)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP with mu the distance of the means in standard deviations."""
        shift = float(abs(self.answers(pair.data) - self.answers(pair.neighbour)))
        return GaussianDP(shift / self.sigma) if shift > 0 else NO_LOSS
