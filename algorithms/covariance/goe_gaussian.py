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
and sqrt 2, proved in `dpaudit.algorithms.covariance.second_moment`).

Utility. AnalyzeGauss needs s = 1/mu off the diagonal where this needs 1/(sqrt 2 mu):
the spectral norm of the noise is smaller by sqrt 2 at the same privacy, because no
direction is protected more than the worst one.
"""

from dataclasses import dataclass
from math import sqrt

from dpaudit.algorithms.covariance.gaussian_perturbation import GaussianPerturbation

__all__ = ["GOEGaussian"]


@dataclass(frozen=True, kw_only=True)
class GOEGaussian(GaussianPerturbation):
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

    sensitivity_norm = "frobenius"
    distance_per_norm = 1 / sqrt(2)
    diagonal_ratio = sqrt(2)
