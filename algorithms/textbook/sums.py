r"""A sum of clipped scalars, with Laplace noise and with Gaussian noise.

Rows are scalars in [0, sensitivity] (others are clipped, each row by itself). Under
ADD_REMOVE a row moves the sum by at most the sensitivity, and a row of the largest
size, added to one of size 0, by exactly that.

**The Laplace mechanism**, and what all mechanisms with Laplace noise share. Source:
Dwork, McSherry, Nissim, Smith, *Calibrating noise to sensitivity in private data
analysis*, TCC 2006.

1. x = the sum of the rows, each clipped to [0, sensitivity].
2. Output x + Lap(sensitivity/epsilon).

True epsilon. Independent Lap(b) noise on answers a or a' has the loss
(|y - a'|_1 - |y - a|_1)/b, which is at most |a - a'|_1/b by the triangle inequality,
with equality exactly where every y_j lies beyond a_j, seen from a'_j: an event of
probability at least 2^-k under a. So the pure epsilon of a pair is |a - a'|_1/b, and
the true epsilon is the l1 sensitivity over b. Under ADD_REMOVE a row moves the sum by
at most the sensitivity, and the claim is exact. `Laplace.under_noised` multiplies the
noise by a factor < 1 and keeps the claim: its true epsilon is epsilon/factor.

Privacy profile of one shift, r = |a - a'|/b: the loss exceeds e < r on the far side of
a point, and with P(Y <= a + t) of the Laplace law,

.. math:: \delta(e) = 1 - e^{(e - r)/2}, \quad 0 \le e \le r.

`LaplaceParallel`: 20 Laplace mechanisms at epsilon/20 each (Bichsel, Steffen,
Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021). The release is one answer, 20 times,
with independent noise; by the argument above its true epsilon is the l1 distance 20
over the scale 20/epsilon: the claim is exact. It is attained on {all values <= 0} for
the sums 0 and 1.

**The Gaussian mechanism**, classical and analytic. Sources: Dwork,
Roth, *The algorithmic foundations of differential privacy*, 2014, Theorem A.1; Balle,
Wang, *Improving the Gaussian mechanism for differential privacy*, ICML 2018, Theorem 8.

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

from abc import ABC
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.textbook import base
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, GaussianDP
from dpaudit.claims.profile import lost
from dpaudit.gaussian import classical_mu, gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Count, Positive, check_positive

__all__ = ["Gaussian", "Laplace", "LaplaceParallel"]


@dataclass(frozen=True)
class BoundedSum(base.TextbookMechanism, ABC):
    """A mechanism on the sum of scalar rows, shape (n,) or (n, 1), under ADD_REMOVE.

    Rows are clipped to [0, sensitivity]. Releases are scalars, shape ().
    """

    _: KW_ONLY
    sensitivity: Positive = 1.0

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def answers(self, data: ArrayLike) -> Array:
        """Return the sum of the clipped rows, shape ()."""
        return np.asarray(base.check_scalars(data).clip(0.0, self.sensitivity).sum())

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row of the largest size, added; rows have length 1."""
        base.check_dimension(dimension, 1)
        return Pair([0.0], [0.0, self.sensitivity], self.relation)


@dataclass(frozen=True)
class Laplace(BoundedSum, base.LaplaceNoise):
    """The sum of scalar rows, with Laplace noise.

    Parameters
    ----------
    noise_factor : float
        What the scale that the claim needs is multiplied by; 1 is correct.

    Examples
    --------
    >>> Laplace(0.5).scale, Laplace.under_noised(0.5, factor=0.25).true_epsilon
    (2.0, 2.0)
    """

    epsilon: float = 1.0
    _: KW_ONLY
    noise_factor: Positive = 1.0

    @classmethod
    def under_noised(
        cls, epsilon: float = 1.0, *, factor: float = 0.5, sensitivity: float = 1.0
    ) -> "Laplace":
        """Return a mechanism at `factor` times the noise that its claim needs."""
        factor = check_positive("factor", factor)
        return cls(epsilon, sensitivity=sensitivity, noise_factor=factor)

    @property
    def scale(self) -> float:
        return self.noise_factor * self.sensitivity / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """epsilon/noise_factor: the sensitivity over the scale."""
        return self.epsilon / self.noise_factor


@dataclass(frozen=True)
class LaplaceParallel(BoundedSum, base.LaplaceNoise):
    """Copies of the Laplace mechanism that share epsilon: exactly epsilon-DP.

    Releases have shape (copies,).
    """

    _: KW_ONLY
    copies: Count = 20

    @property
    def scale(self) -> float:
        return self.copies * self.sensitivity / self.epsilon

    def answers(self, data: ArrayLike) -> Array:
        """Return the sum of the clipped rows, repeated, shape (copies,)."""
        return np.full(self.copies, super().answers(data))


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
        return cls._at(mu, GaussianDP(mu), sensitivity)

    @classmethod
    def classical(
        cls, epsilon: float = 1.0, delta: float = 1e-5, *, sensitivity: float = 1.0
    ) -> "Gaussian":
        """Return the mechanism at the sigma of Theorem A.1, whatever epsilon is."""
        mu = classical_mu(epsilon, delta)
        return cls._at(mu, ApproxDP(epsilon, delta), sensitivity)

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
        mu, claim = gaussian_mu(epsilon, delta), ApproxDP(epsilon, delta)
        return cls._at(mu, claim, sensitivity, check_positive("factor", factor))

    @classmethod
    def _at(
        cls, mu: float, claim: Claim, sensitivity: float, factor: float = 1.0
    ) -> "Gaussian":
        sensitivity = check_positive("sensitivity", sensitivity)
        sigma = factor * (sensitivity / mu)
        return cls(sigma=sigma, claim=claim, sensitivity=sensitivity)

    @property
    def mu(self) -> float:
        """The exact mu: sensitivity/sigma."""
        return self.sensitivity / self.sigma

    @property
    def true_epsilon(self) -> float:
        """The smallest true epsilon at the claim's delta; inf where that is 0."""
        delta = self.claim.parameters.get("delta", 0.0)
        return GaussianDP(self.mu).epsilon_at(delta)

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        releases = rng.standard_normal(size)
        releases *= self.sigma
        releases += answers
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, linear in the release, shape (size,)."""
        mean, other_mean = self.answers(data), self.answers(other)
        slope = (mean - other_mean) / self.sigma / self.sigma
        return np.asarray((releases - (mean + other_mean) / 2) * slope)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP with mu the distance of the means in standard deviations."""
        shift = float(abs(self.answers(pair.data) - self.answers(pair.neighbour)))
        return lost(GaussianDP, shift / self.sigma)
