r"""GOE Gaussian: the second-moment matrix plus rotation-invariant Gaussian noise.

This is dpaudit's own baseline for approximate differential privacy.

1. E from the Gaussian orthogonal ensemble: symmetric, independent entries, N(0, s^2)
   above the diagonal and N(0, 2 s^2) on it.
2. Output A + E.

Privacy. In the upper triangle the log-density of E is -||E||_F^2/(4 s^2) plus a
constant, since an off-diagonal entry counts twice in the Frobenius norm and has half
the variance of a diagonal one. So the Mahalanobis distance between the laws on
neighbours is ||A - A'||_F/(sqrt 2 s), and the release is mu-GDP, tightly, with
mu = 1/(sqrt 2 s) under ADD_REMOVE and 1/s under REPLACE_ONE (Frobenius sensitivities 1
and sqrt 2, proved in `dpaudit.algorithms.second_moment`).

Utility. AnalyzeGauss needs s = 1/mu off the diagonal where this needs 1/(sqrt 2 mu):
the spectral norm of the noise is smaller by sqrt 2 at the same privacy, because no
direction is protected more than the worst one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.noise import symmetric_gaussian
from dpaudit.algorithms.second_moment import (
    NO_LOSS,
    Array,
    SecondMomentMechanism,
    second_moment_sensitivity,
)
from dpaudit.claims import ApproxDP, Claim, GaussianDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_positive

__all__ = ["GOEGaussian"]


@dataclass(frozen=True, kw_only=True)
class GOEGaussian(SecondMomentMechanism):
    """A + E with E from the Gaussian orthogonal ensemble.

    Parameters
    ----------
    sigma : float
        Standard deviation above the diagonal; on it, sqrt(2) times as much.
    claim, relation, row_norm
        See `SecondMomentMechanism`.

    Examples
    --------
    >>> mechanism = GOEGaussian.calibrated(epsilon=1.0, delta=1e-5)
    >>> round(mechanism.sigma, 4)
    2.638
    """

    sigma: float

    sensitivity_norm = "frobenius"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", check_positive("sigma", self.sigma))

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> "GOEGaussian":
        """Return the mechanism at the smallest sigma that is (epsilon, delta)-DP."""
        return cls(
            sigma=cls._sigma(gaussian_mu(epsilon, delta), relation, row_norm),
            claim=ApproxDP(epsilon, delta),
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )

    @classmethod
    def from_mu(
        cls,
        mu: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> "GOEGaussian":
        """Return the mechanism at the smallest sigma that is mu-GDP."""
        return cls(
            sigma=cls._sigma(check_positive("mu", mu), relation, row_norm),
            claim=GaussianDP(mu),
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )

    @classmethod
    def _sigma(cls, mu: float, relation: Relation | str, row_norm: float) -> float:
        sensitivity = second_moment_sensitivity(
            cls.sensitivity_norm, relation, row_norm
        )
        return sensitivity.value / (float(np.sqrt(2)) * mu)

    def noise(self, size: int, dimension: int, *, rng: np.random.Generator) -> Array:
        return symmetric_gaussian(
            size,
            dimension,
            off_diagonal=self.sigma,
            diagonal=np.sqrt(2) * self.sigma,
            rng=rng,
        )

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: linear in the release, shape (size,)."""
        mean, other_mean = self.statistic(data), self.statistic(other)
        weights = (mean - other_mean) / (2 * self.sigma**2)
        offset = np.vdot(weights, (mean + other_mean) / 2)
        return releases.reshape(len(releases), -1) @ weights.ravel() - offset

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP with mu the Mahalanobis distance of the two means."""
        difference = self._difference(pair.data, pair.neighbour)
        mu = float(self.sensitivity.measure(difference)) / (np.sqrt(2) * self.sigma)
        return GaussianDP(mu) if mu > 0 else NO_LOSS
