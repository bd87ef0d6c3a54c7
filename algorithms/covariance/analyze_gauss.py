r"""AnalyzeGauss: the second-moment matrix plus symmetric i.i.d. Gaussian noise.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, Algorithm 1.

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
"""

from dataclasses import dataclass

from dpaudit.algorithms.covariance.gaussian_perturbation import GaussianPerturbation
from dpaudit.claims import ApproxDP
from dpaudit.gaussian import classical_mu
from dpaudit.neighbours import Relation
from dpaudit.validation import check_positive

__all__ = ["AnalyzeGauss"]


@dataclass(frozen=True, kw_only=True)
class AnalyzeGauss(GaussianPerturbation):
    """A + E with the upper triangle of E i.i.d. N(0, sigma^2).

    Parameters
    ----------
    sigma : float
        Standard deviation of every entry of the upper triangle.
    claim, relation, row_norm
        See `SecondMomentMechanism`.

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

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> "AnalyzeGauss":
        """Return Algorithm 1 to the letter, with the paper's claim."""
        # The paper's sensitivity is 1 for unit rows, whatever the relation.
        sensitivity = check_positive("row_norm", row_norm) ** 2
        return cls(
            sigma=sensitivity / classical_mu(epsilon, delta),
            claim=ApproxDP(epsilon, delta),
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )
