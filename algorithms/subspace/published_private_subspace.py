r"""PrivateSubspace as published, whose claim is false.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, Algorithm 2; the steps are
those of `dpaudit.algorithms.subspace.private_subspace`.

For rows in the unit ball and parameters epsilon', delta', the noise of the eigengap g
has scale 2/epsilon', and the upper triangle of E is i.i.d. with standard deviation

.. math:: \frac{1 + \sqrt{2 \log(1/\delta')}}
               {\epsilon' \, |g - 2 (1 + \log(1/\delta')/\epsilon')|}.

Theorem 11 there promises (2 epsilon', 2 delta').

**The claim is false.** The paper squares the denominator, which hides its sign; here
the absolute value stands for that. But the denominator is the certified gap less 2: if
it is not positive, nothing is certified and the noise means nothing. An eigengap near 0
makes it about -2 (1 + log(1/delta')/epsilon'), which leaves a deviation of at most
(1 + sqrt(2 log(1/delta')))/(2 log(1/delta')): 0.35 for delta' <= 1e-3, whatever
epsilon' is. On the pair of `worst_case` one row turns the projector by sqrt 2 at such a
gap, 5.9 standard deviations at a promise of (1, 1e-5).

Where the denominator is positive, the noise is enough for common parameters. The proof
there bounds the movement of the projector by 2/(alpha - 2), for which the noise would
be too small by half. But for alpha > 2 the bound of
`dpaudit.algorithms.subspace.perturbation` is less than 1/(sqrt 2 (alpha - 2)) under
ADD_REMOVE and sqrt 2/(alpha - 2) under REPLACE_ONE, so given g the release is mu-GDP
with mu = epsilon'/(1 + sqrt(2 log(1/delta'))) over sqrt 2 or times sqrt 2. That is
(epsilon', delta')-DP under ADD_REMOVE for all delta' <= 0.01 and epsilon' <= 10, and
under REPLACE_ONE for 1e-5 <= delta' <= 0.01 and epsilon' <= 1. To return bottom where
the denominator is not positive would repair it there.
"""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.subspace.private_subspace import NoisyProjector
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.claims import ApproxDP
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_fraction, check_positive

__all__ = ["PublishedPrivateSubspace"]


@dataclass(frozen=True, kw_only=True)
class PublishedPrivateSubspace(NoisyProjector):
    """Algorithm 2 to the letter: noise that is wrong where nothing is certified.

    Parameters
    ----------
    numerator : float
        The deviation of E times the absolute value of g - margin, in the unit of A.

    Examples
    --------
    At a gap of 1, for epsilon' = 1 and delta' = 1e-6:

    >>> mechanism = PublishedPrivateSubspace.as_published(2.0, 2e-6, n_components=1)
    >>> float(mechanism.projector_scale(1.0).round(3))
    0.219
    """

    numerator: Positive

    diagonal_ratio = 1.0

    @hands_on("n_components", "relation", "row_norm")
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return Algorithm 2 at epsilon/2 and delta/2, with the claim of Theorem 11."""
        epsilon = check_positive("epsilon", epsilon)
        delta = check_fraction("delta", delta)
        stage_epsilon, log_term = epsilon / 2, log(2 / delta)
        claim = ApproxDP(epsilon, delta)
        made = cls(gap_scale=1.0, margin=0.0, numerator=1.0, claim=claim, **fields)
        unit = made.row_norm**2
        return replace(
            made,
            gap_scale=unit * 2 / stage_epsilon,
            margin=unit * 2 * (1 + log_term / stage_epsilon),
            numerator=unit * (1 + sqrt(2 * log_term)) / stage_epsilon,
        )

    def projector_scale(self, gaps: ArrayLike) -> Array:
        # At a difference of 0, which has probability 0, the result is infinite and the
        # release is NaN.
        with np.errstate(divide="ignore"):
            return np.asarray(self.numerator / np.abs(np.asarray(gaps) - self.margin))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair of small gaps where one row exchanges the k-th direction.

        Two rows at each of the first k - 1 basis vectors; the k-th direction is the
        k-th basis vector on one side and the next one on the other. ADD_REMOVE: a full
        row joins one of half its square, gaps 1/2. REPLACE_ONE: one full row replaces
        another, gaps 1. The default d is k + 1, the least.
        """
        k, dimension = self.n_components, self.check_dimension(dimension)
        basis = self.row_norm * np.eye(dimension)
        heavy = np.repeat(basis[: k - 1], 2, axis=0)
        if self.relation is Relation.ADD_REMOVE:
            data = np.vstack([heavy, basis[k - 1] / sqrt(2)])
            return Pair(data, np.vstack([data, basis[k]]), self.relation)
        data, other = (np.vstack([heavy, basis[j]]) for j in (k - 1, k))
        return Pair(data, other, self.relation)
