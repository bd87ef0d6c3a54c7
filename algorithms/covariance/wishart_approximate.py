r"""Wishart noise with many degrees of freedom: approximate DP, positive definite.

Source: Sheffet, *Old techniques in differentially private linear regression*, ALT 2019
(additive Wishart noise); the calibration is dpaudit's.

1. E ~ W_d(s I, k), k = d + excess.
2. Output A + E, which is positive definite.

As published: s = row_norm^2 and excess = floor(28 log(4/delta)/epsilon^2), for
(epsilon, delta). Privacy depends on k - d and s alone, in every dimension, and
`dpaudit.algorithms.covariance.wishart_accountant` knows it exactly under either
relation. The published claim is very loose for small epsilon: at (1, 1e-3), 232 degrees
beyond d where 16 do. It is false for large ones, where hardly a degree beyond d is
left: under either relation it holds at epsilon = 4 and fails at 6 for delta of 1e-1,
1e-3, 1e-5 and 1e-9.

Which of the many (excess, s) with the same privacy? `calibrated` takes the first excess
at which noise in one dimension is within 5 % of Gaussian noise (a few thousand), which
in d dimensions leaves the spread of E, s sqrt(k d (d + 1)) in Frobenius norm, within a
further factor sqrt(1 + d/excess) (docs/choosing.md#degrees-of-wishart-noise says why).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import exp, floor, log, sqrt
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import ApproxDP, Claim, InputError, Pair, Relation
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism, wishart
from dpaudit.algorithms.covariance.wishart_accountant import (
    LARGEST_EPSILON,
    MAX_EXCESS,
    neighbours_delta,
    pair_delta,
    pair_profile,
)
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import Positive, check_count, check_fraction, check_positive

__all__ = ["WishartApproximate"]

# What may be asked of chi-square tails, and of the quadrature.
_LEAST_DELTA = {Relation.ADD_REMOVE: 1e-300, Relation.REPLACE_ONE: 1e-12}
_SPREAD = 1.05
_ROUNDING = 1e-9  # eigenvalues of A - A' below this share of the largest are none


@dataclass(frozen=True, kw_only=True)
class WishartApproximate(SecondMomentMechanism):
    """A + E with E ~ W_d(scale I, d + excess).

    Parameters
    ----------
    excess : int
        Degrees of freedom beyond the dimension, >= 1.
    scale : float
        Variance of each entry of the Gaussian matrix whose Gram matrix E is.

    Examples
    --------
    >>> mechanism = WishartApproximate.as_published(epsilon=1.0, delta=1e-3)
    >>> mechanism.degrees(54)
    286
    >>> WishartApproximate.calibrated(1.0, 1e-3, scale=1.0).degrees(54)
    70
    """

    excess: Annotated[int, partial(check_count, maximum=MAX_EXCESS)]
    scale: Positive

    sensitivity_norm = "nuclear"

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the published degrees and scale.

        Refused is an epsilon so large that no degree of freedom is left beyond d: the
        release then has no finite privacy loss to speak of.
        """
        epsilon = check_positive("epsilon", epsilon)
        numerator = 28 * log(4 / check_fraction("delta", delta))
        excess = floor(numerator / epsilon**2)
        if excess < 1:
            raise InputError(
                f"epsilon must be at most {sqrt(numerator):.6g} at delta = {delta:g} "
                "for the published rule to leave a degree of freedom beyond d, "
                f"got {epsilon!r}"
            )
        made = cls(excess=excess, scale=1.0, claim=ApproxDP(epsilon, delta), **fields)
        return replace(made, scale=made.row_norm**2)

    @hands_on()
    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, scale: float | None = None, **fields: Any
    ) -> Self:
        """Return the mechanism at degrees and scale proven to be (epsilon, delta)-DP.

        With a given scale, at the fewest degrees; by default at those of
        `efficient_excess`, with the smallest scale. Refused are a scale for which 10
        million degrees are not enough, and a delta below 1e-300, or below 1e-12 under
        REPLACE_ONE.
        """
        epsilon = check_positive("epsilon", epsilon)
        delta = check_fraction("delta", delta)
        made = cls(excess=1, scale=1.0, claim=ApproxDP(epsilon, delta), **fields)
        square, relation = made.row_norm**2, made.relation
        if scale is None:
            excess = efficient_excess(epsilon, delta)
            shift = largest_shift(epsilon, delta, excess=excess, relation=relation)
            scale = square / shift
        else:
            shift = square / check_positive("scale", scale)
            excess = smallest_excess(epsilon, delta, shift=shift, relation=relation)
        return replace(made, excess=excess, scale=scale)

    def degrees(self, dimension: int) -> int:
        """Return the degrees of freedom for rows of length `dimension`."""
        return dimension + self.excess

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        degrees = self.degrees(dimension)
        return wishart(size, dimension, degrees=degrees, scale=self.scale, rng=rng)

    def in_support(self, releases: Array, data: ArrayLike) -> NDArray[np.bool_]:
        """Say whether release - A is positive definite, shape (size,)."""
        return np.linalg.eigvalsh(releases - self.statistic(data))[:, 0] > 0

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, infinite off one support and NaN off both."""
        mean, other_mean = self.statistic(data), self.statistic(other)
        here, log_determinant = _log_determinant(releases - mean)
        there, log_on_other = _log_determinant(releases - other_mean)
        loss = (self.excess - 1) / 2 * (log_determinant - log_on_other)
        loss += np.trace(mean - other_mean) / (2 * self.scale)
        off = [~here & ~there, ~there, ~here]
        return np.select(off, [np.nan, np.inf, -np.inf], loss)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the pair with the largest delta at the claim's epsilon.

        ADD_REMOVE: as everywhere. REPLACE_ONE: the worse of the `canonical_pairs`, of
        that dimension; which one that is depends on the degrees and on epsilon (0 where
        the claim has none), and no other pair is worse
        (`dpaudit.algorithms.covariance.wishart_accountant`). Where both deltas are
        below 1e-14, quadrature may take the one for the other.
        """
        return self._corners(dimension)[0]

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case first.

        Under REPLACE_ONE there are two: a basis vector replaces another one, or a row
        of zeros.
        """
        return self._corners(None)

    def _corners(self, dimension: int | None) -> tuple[Pair, ...]:
        full = super().worst_case(dimension)
        if self.relation is Relation.ADD_REMOVE or not full.data.any():
            return (full,)
        lone = Pair(np.zeros_like(full.data), full.neighbour, self.relation)
        epsilon = self.claim.parameters.get("epsilon", 0.0)
        shift = self.row_norm**2 / self.scale
        apart, alone = (
            pair_delta(epsilon, excess=self.excess, gained=shift, lost=lost)
            for lost in (shift, 0.0)
        )
        return (full, lone) if apart >= alone else (lone, full)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the exact profile of a pair, at many points and the claim's epsilon.

        It is not known for a replaced row where quadrature does not settle: for very
        few degrees.
        """
        values = np.linalg.eigvalsh(self._difference(pair.data, pair.neighbour))
        values[np.abs(values) <= _ROUNDING * np.abs(values).max()] = 0.0
        claimed = self.claim.parameters.get("epsilon")
        return pair_profile(
            excess=self.excess,
            gained=max(float(values[-1]), 0.0) / self.scale,
            lost=max(-float(values[0]), 0.0) / self.scale,
            knots=() if claimed is None else (claimed,),
        )


def _log_determinant(matrices: Array) -> tuple[NDArray[np.bool_], Array]:
    """Say which matrices are positive definite, and return log |det|."""
    values = np.linalg.eigvalsh(matrices)
    return values[:, 0] > 0, np.log(np.abs(values)).sum(axis=-1)


@cache
def largest_shift(
    epsilon: float, delta: float, *, excess: int, relation: Relation
) -> float:
    """Return the largest c at which `neighbours_delta` is within the budget.

    It errs downwards, by about one part in 1e9.
    """
    epsilon = _check_epsilon(epsilon)
    delta = _check_delta(delta, relation)

    from scipy.optimize import brentq  # slow to import

    def log_ratio(log_shift: float) -> float:
        shift = exp(log_shift)
        found = neighbours_delta(epsilon, excess=excess, shift=shift, relation=relation)
        return log(max(float(found), 5e-324)) - log(delta)

    high = 0.0
    while log_ratio(high) <= 0:
        high += 1.0
    low = high - 1.0
    while log_ratio(low) > 0:
        low -= 1.0
    root: Any = brentq(log_ratio, low, high, xtol=1e-11)
    return exp(root - 1e-9)


@cache
def smallest_excess(
    epsilon: float, delta: float, *, shift: float, relation: Relation
) -> int:
    """Return the fewest degrees of freedom beyond d that are within the budget."""
    epsilon = _check_epsilon(epsilon)
    delta = _check_delta(delta, relation)

    def enough(excess: int) -> bool:
        found = neighbours_delta(epsilon, excess=excess, shift=shift, relation=relation)
        return bool(found <= delta)

    return _first(
        enough,
        f"epsilon = {epsilon:g} and delta = {delta:g} take more than {MAX_EXCESS} "
        f"degrees of freedom at a shift of {shift:g}: take a larger scale",
    )


@cache
def efficient_excess(epsilon: float, delta: float) -> int:
    """Return the fewest degrees beyond d whose noise is nearly as small as Gaussian's.

    A release lets one see the chi-square variable G, of deviation sqrt(2 (excess + 1)),
    beside the shift c. The least deviation per shift that Gaussian noise must have for
    the same budget under ADD_REMOVE is 1/mu; chi-square noise tends to it from above as
    the excess grows, in every budget that we tried. Returned is the first excess (found
    by doubling and bisection) at which it is at most 5 % larger.
    """
    limit = _SPREAD / gaussian_mu(_check_epsilon(epsilon), delta)
    shift = partial(largest_shift, epsilon, delta, relation=Relation.ADD_REMOVE)

    def enough(excess: int) -> bool:
        return sqrt(2 * (excess + 1)) / shift(excess=excess) <= limit

    return _first(
        enough,
        f"epsilon = {epsilon:g} and delta = {delta:g} take more than {MAX_EXCESS} "
        "degrees of freedom",
    )


_check_epsilon = partial(check_positive, "epsilon", largest=LARGEST_EPSILON)


def _check_delta(delta: float, relation: Relation) -> float:
    delta, least = check_fraction("delta", delta), _LEAST_DELTA[relation]
    if delta < least:
        raise InputError(
            f"delta must be at least {least:g} under {relation}, as arithmetic is not "
            f"trusted with less, got {delta!r}"
        )
    return delta


def _first(enough: Callable[[int], bool], otherwise: str) -> int:
    """Return the first count at which a predicate turns (and stays) true."""
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MAX_EXCESS:
            raise InputError(otherwise)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
