r"""Propose, test, release: a noisy projector, as corrected and as published.

**PrivateSubspace**: a principal subspace by propose, test, release on the eigengap.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, Algorithm 2.

1. gamma = lambda_k - lambda_(k+1), the eigengap of A; P, the projector onto the top k
   eigenvectors.
2. g = gamma + Laplace noise.
3. W = P + E, E symmetric Gaussian with a standard deviation that g sets.
4. Output the space of the top k eigenvectors of W.

k < d, since there is no lambda_(d+1) (and nothing to hide in the whole space). The
release is an orthonormal basis; the entry of a column that is largest in absolute value
is positive.

As published the noise is wrong where the eigengap is small, and the claim is false: see
below. Here, with m the sensitivity of the gap (1 under ADD_REMOVE, 2 under REPLACE_ONE,
for rows in the unit ball), epsilon = e1 + e2 and delta = d1 + d2, steps 2 and 3 read

2. g = gamma + Lap(m/e1).
3. alpha = g - (m/e1) log(1/(2 d1)). If alpha <= m, the output is bottom (NaN). Else
   E is from the Gaussian orthogonal ensemble, N(0, s^2) above the diagonal and
   N(0, 2 s^2) on it, s = Delta(alpha)/(sqrt 2 mu(e2, d2)), where Delta is
   `perturbation.projector_sensitivity` and mu is `dpaudit.gaussian.gaussian_mu`.

Proof of (epsilon, delta)-DP, for g and W together. Let D and D' be neighbours, p and p'
the densities of g on them, T an event and T_g what it asks of W (or of bottom) given g.
Let B be the set of g whose alpha is greater than gamma(D).

- P(g in B | D) = P(Lap(m/e1) > (m/e1) log(1/(2 d1))) = d1 (at most, if d1 > 1/2).
- p(g) <= e^e1 p'(g), by the Laplace mechanism.
- For g not in B either bottom is certain on D and D' alike; or m < alpha <= gamma(D),
  and the projectors lie within Delta(alpha) of each other. That needs the certificate
  on one of the two datasets only. Then W is a Gaussian shift with
  Mahalanobis distance ||P - P'||_F/(sqrt 2 s) <= mu(e2, d2), as s is the same for both,
  so P(T_g | D, g) <= e^e2 P(T_g | D', g) + d2.

Together P(T | D) <= d1 + d2 + integral of e^e1 p'(g) e^e2 P(T_g | D', g) dg
= e^epsilon P(T | D') + delta. The same with D and D' exchanged. QED.

Budget. The gap gets the share r of both epsilon and delta (`gap_share`). With
c = log(1/(2 r delta)) the noise is about proportional to
1/((gamma - m c/(r epsilon)) (1 - r)), so r = sqrt(m c/(epsilon gamma)) is best for a
gap gamma; a public guess of gamma may set it. The default 1/10 is best for a gap of
100 m c/epsilon; it costs 1/9 more noise than larger gaps would need, and below a gap of
about 10 m c/epsilon (131 at (1, 1e-5), ADD_REMOVE) the output is bottom.

Utility. For large gaps s is about m/(2 gamma mu), where the noise that `GOEGaussian`
puts on A turns its eigenvectors as s = 1/(sqrt 2 gamma mu) (ADD_REMOVE) or
1/(gamma mu) (REPLACE_ONE) would: better by sqrt 2 under ADD_REMOVE in the limit, and
no worse under REPLACE_ONE.

**PublishedPrivateSubspace** is Algorithm 2 with the same steps, whose claim is false.
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

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, InputError, Pair, Relation
from dpaudit.algorithms.covariance.second_moment import symmetric_gaussian
from dpaudit.algorithms.shared.bases import Rng, Values, orient
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.subspace.base import SubspaceMechanism
from dpaudit.algorithms.subspace.perturbation import (
    gap_sensitivity,
    projector_sensitivity,
    turned_pair,
)
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.subspace import top_components
from dpaudit.validation import (
    Nonnegative,
    Positive,
    check_count,
    check_fraction,
    check_length,
    check_positive,
)

__all__ = ["NoisyProjector", "PrivateSubspace", "PublishedPrivateSubspace"]


@dataclass(frozen=True, kw_only=True)
class NoisyProjector(SubspaceMechanism, ABC):
    """The top k eigenvectors of P + E, with noise E that follows a noisy eigengap.

    Parameters
    ----------
    gap_scale : float
        Scale of the Laplace noise on the eigengap, in the unit of A.
    margin : float
        What is taken off the noisy eigengap, in the unit of A.
    """

    gap_scale: Positive
    margin: Nonnegative

    diagonal_ratio: ClassVar[float]
    """Standard deviation of E on the diagonal, in units of that above it."""

    @abstractmethod
    def projector_scale(self, gaps: ArrayLike) -> Array:
        """Return the deviation of E above its diagonal, for noisy eigengaps.

        NaN stands for bottom.
        """

    def moment(self, data: ArrayLike) -> Array:
        """Return A for the clipped rows, which are longer than k, shape (d, d)."""
        moment = super().moment(data)
        if len(moment) == self.n_components:
            raise InputError(
                "n_components must be less than the length of a row, "
                f"{len(moment)}, or there is no eigengap; got {self.n_components}"
            )
        return moment

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        _, projectors = self._noisy(moment, size, rng)
        bases = np.full((*projectors.shape[:2], self.n_components), np.nan)
        there = np.isfinite(projectors).all(axis=(-2, -1))
        top = top_components(projectors[there], self.n_components)
        bases[there] = orient(top)
        return bases

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return what the proof releases in `size` independent runs.

        ``gap``: g in the unit of A; ``projector``: W, shape (size, d, d), NaN for
        bottom. From the same state of `rng`, `draw` returns bases of the top k
        eigenvectors of W.
        """
        size = check_count("size", size, minimum=0)
        gaps, projectors = self._noisy(self.moment(data), size, rng)
        return {"gap": gaps, "projector": projectors}

    def _noisy(self, moment: Array, size: int, rng: Rng) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(moment)
        cut = len(values) - self.n_components
        gap = values[cut] - values[cut - 1]
        gaps = gap + rng.laplace(scale=self.gap_scale, size=size)
        ratio = self.diagonal_ratio
        noisy = symmetric_gaussian(size, len(values), 1.0, ratio, rng=rng)
        noisy *= self.projector_scale(gaps)[:, np.newaxis, np.newaxis]
        noisy += vectors[:, cut:] @ vectors[:, cut:].T
        return gaps, noisy

    def check_dimension(self, dimension: int | None) -> int:
        """Return the length of a row, by default the least, k + 1, or raise."""
        least = self.n_components + 1
        return check_length(dimension, least, minimum=least)


@dataclass(frozen=True, kw_only=True)
class PrivateSubspace(NoisyProjector):
    """Propose, test, release as corrected: bottom unless the eigengap is certified.

    Parameters
    ----------
    mu : float
        Privacy of W given the noisy eigengap, as that of N(mu, 1) against N(0, 1).

    Examples
    --------
    >>> mechanism = PrivateSubspace.calibrated(1.0, 1e-5, n_components=1)
    >>> round(mechanism.gap_scale, 4), round(mechanism.margin, 4)
    (10.0, 131.2236)
    >>> rows = np.repeat(np.eye(3)[:1], 1000, axis=0)
    >>> mechanism.release(rows, rng=np.random.default_rng(0)).round(2).T
    array([[1., 0., 0.]])
    >>> mechanism.release(rows[:50], rng=np.random.default_rng(0)).T
    array([[nan, nan, nan]])
    """

    mu: Positive

    diagonal_ratio = sqrt(2)

    @hands_on("n_components", "relation", "row_norm")
    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, gap_share: float = 0.1, **fields: Any
    ) -> Self:
        """Return the mechanism at the smallest proven noise for a split of the budget.

        The gap's share is that of epsilon and of delta that is spent on the eigengap.
        """
        epsilon = check_positive("epsilon", epsilon)
        delta = check_fraction("delta", delta)
        share = check_fraction("gap_share", gap_share)
        mu = gaussian_mu((1 - share) * epsilon, (1 - share) * delta)
        claim = ApproxDP(epsilon, delta)
        made = cls(gap_scale=1.0, margin=0.0, mu=mu, claim=claim, **fields)
        unit = made.row_norm**2
        scale = gap_sensitivity(made.relation) * unit / (share * epsilon)
        margin = scale * max(0.0, log(1 / (2 * share * delta)))
        return replace(made, gap_scale=scale, margin=margin)

    def projector_scale(self, gaps: ArrayLike) -> Array:
        certified = (np.asarray(gaps) - self.margin) / self.row_norm**2
        return projector_sensitivity(certified, self.relation) / (sqrt(2) * self.mu)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose gap is twice the margin, changed where P turns far.

        See `dpaudit.algorithms.subspace.perturbation.turned_pair`. The default d is
        k + 1, the least.
        """
        return self._turned_pair(2 * self.margin, dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and the same where bottom is as likely as not."""
        certain = gap_sensitivity(self.relation) * self.row_norm**2 + self.margin
        return self.worst_case(), self._turned_pair(certain, None)

    def _turned_pair(self, gap: float, dimension: int | None) -> Pair:
        k, dimension = self.n_components, self.check_dimension(dimension)
        return turned_pair(k, dimension, gap, self.relation, self.row_norm)


@dataclass(frozen=True, kw_only=True)
class PublishedPrivateSubspace(NoisyProjector):
    """Algorithm 2 to the letter: noise that is wrong where nothing is certified.

    Parameters
    ----------
    numerator : float
        The deviation of E times the absolute value of g - margin, in the unit of A.
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
