r"""Bounds from the counts of one event: three tests of one null.

Clopper and Pearson
-------------------
One event, fixed beforehand, has probability p on D and q on D'. Each proportion gets
an exact one-sided limit at level alpha/2: p >= p_low and q <= q_high hold together
with probability at least 1 - alpha, by the union bound. On that occasion two of the
four half-planes that (epsilon, delta)-DP implies give

.. math:: \epsilon \ge \log\frac{p_{low} - \delta}{q_{high}}, \qquad
          \epsilon \ge \log\frac{1 - q_{high} - \delta}{1 - p_{low}},

and the larger counts: both follow from the same two limits, so nothing more is split.
The event is meant to be more frequent on D; where the direction is not known before
the counts are seen, both are paid for (``two_sided=True``, alpha/2 each).

Joint
-----
(epsilon, delta)-DP says p <= g(q) with

    g(q) = min(e^eps q + delta, 1 - e^-eps (1 - q - delta), 1),

and the same with p and q exchanged. The null tested is the larger set {p <= g(q)},
which grows with epsilon. Both counts enter one test with the whole alpha, and both of
g's sides (the second is the first for complements) at once: nothing is split. The proof
is in `dpaudit.audit.bounds.ordering`, the certified maximisation over the nuisance
parameter in `dpaudit.audit.bounds.certificate`. Coverage is at least 1 - alpha for
every (p, q) and every sample size; there is no prior and no approximation.

Sampling error enters once, as sqrt(var_p + var_q), where Clopper and Pearson's limits
add two standard errors at half the alpha: about as tight as the joint credible region
of Zanella-Beguelin et al., whose Bayesian guarantee is replaced by a frequentist one.

Counts of more than 1e9 releases a side are bounded by Clopper and Pearson's limits
instead, and the method says so.

Gaussian
--------
The null tested is "the mechanism is mu-GDP". It says that every event obeys

.. math:: p \le g_\mu(q) = \Phi(\Phi^{-1}(q) + \mu)

(Dong, Roth, Su 2022), hence so does the one event whose releases were counted, whatever
the law of the releases is. The set {p <= g_mu(q)} increases with mu, and g_mu is
increasing: the exact test of `dpaudit.audit.bounds.ordering` applies as it stands. Only
the boundary is now curved: it is replaced from above by segments. For a concave g the
gap between a chord over [q, q + h] and g is at most h (g'(q) - g'(q + h)) / 4 (the
height of the triangle that the two tangents form with the chord), so chords lifted by
that much lie above the curve, and the null that is tested only grows.

The bound refutes mu-GDP claims. Its translation to epsilon at a delta is that of the
mu-GDP Gaussian mechanism, and says nothing about a mechanism that claims (epsilon,
delta)-DP only: such a mechanism need not be mu-GDP for any mu that its epsilon
suggests. For a statement about epsilon, use `joint`.

Refused
-------
Two popular shortcuts are not offered, because their error is not bounded by alpha:

- mu from the scores' means and standard deviations, or from a fit of two Gaussians: the
  claim bounds events, not moments, and scores of a mu-GDP mechanism need not be
  Gaussian;
- the largest of many thresholds' bounds, each at the full alpha: the maximum of many
  confidence bounds is not one. A threshold may be chosen on other releases
  (`dpaudit.audit.bounds.fixed_scores`).

References
----------
Clopper, Pearson, *The use of confidence or fiducial limits illustrated in the case of
the binomial*, Biometrika 1934.
Jagielski, Ullman, Oprea, *Auditing differentially private machine learning*,
NeurIPS 2020 (the same bound for the first half-plane).
Zanella-Beguelin et al., *Bayesian estimation of differential privacy*, ICML 2023.
Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, Definition 2.6.
Nasr et al., *Tight auditing of differentially private machine learning*, USENIX
Security 2023 (mu from the counts of one event by Clopper and Pearson's limits).
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.bounds.certificate import Piece
from dpaudit.audit.bounds.laws import BinomialCount, lower_proportion, upper_proportion
from dpaudit.audit.bounds.ordering import Contrast, Nulls, Rectangle
from dpaudit.audit.bounds.result import Bound, Counts, check_level

__all__ = ["clopper_pearson", "epsilon_nulls", "gaussian", "joint", "mu_nulls"]

_MOST_RELEASES = 10**9
_REVERSED = "; the event was seen more often on D', which only a two-sided bound counts"
# How far the segments may lie above the curve, as a share of the confidence interval
# for p, which is some eight standard errors wide.
_GAP = 1e-3
_NEARLY_ZERO = 1e-4  # of the upper limit for q
_NEARLY_ONE = 1 - 1e-9
_MOST_PIECES = 32


def clopper_pearson(
    counts: Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    two_sided: bool = False,
) -> Bound:
    """Return the epsilon bound with alpha split over the two proportions.

    Parameters
    ----------
    counts : Counts
        Of an event fixed before these releases were drawn.
    delta : float
        In [0, 1).
    confidence : float
        In (0, 1).
    two_sided : bool
        False: the event was meant, beforehand, to be more frequent on D. True: either
        direction counts, at half the error each.

    Returns
    -------
    Bound

    Raises
    ------
    InputError
        If an argument is outside what is allowed.

    Examples
    --------
    >>> print(clopper_pearson(Counts(900, 1000, 100, 1000)))
    epsilon >= 1.98971 at delta 0 with 95 % confidence (clopper-pearson)
    """
    return _bound(
        "clopper-pearson",
        "epsilon",
        _simple_epsilon,
        counts,
        delta,
        confidence,
        two_sided,
    )


def joint(
    counts: Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    two_sided: bool = False,
) -> Bound:
    """Return the exact joint lower bound on epsilon at `delta`.

    The arguments are those of `clopper_pearson`.

    Examples
    --------
    >>> bound = joint(Counts(900, 1000, 100, 1000))
    >>> bound.method, bound.parameter, round(bound.value, 2)
    ('joint', 'epsilon', 2.04)
    """
    if _are_too_many(counts):
        return clopper_pearson(
            counts, delta=delta, confidence=confidence, two_sided=two_sided
        )
    return _bound(
        "joint", "epsilon", _exact_epsilon, counts, delta, confidence, two_sided
    )


def gaussian(
    counts: Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    two_sided: bool = False,
) -> Bound:
    """Return the exact lower bound on mu of a mechanism that claims mu-GDP.

    The arguments are those of `clopper_pearson`, but delta is where the bound is also
    expressed as an epsilon, and does not enter the test. The parameter is ``"mu"``.
    Beyond 1e9 releases a side it is from Clopper and Pearson's limits, and the method
    says so.

    Examples
    --------
    >>> bound = gaussian(Counts(691, 1000, 309, 1000), delta=1e-5)
    >>> bound.parameter, round(bound.value, 2), round(bound.epsilon, 1)
    ('mu', 0.9, 3.9)
    """
    method, lower = "gaussian", _exact_mu
    if _are_too_many(counts):
        method, lower = "gaussian, clopper-pearson", _simple_mu
    return _bound(method, "mu", lower, counts, delta, confidence, two_sided)


def _bound(
    method: str,
    parameter: str,
    lower: Callable[[Counts, float, float], float],
    counts: Counts,
    delta: float,
    confidence: float,
    two_sided: bool,
) -> Bound:
    """Return the bound that `lower` gives of (counts, delta, alpha)."""
    delta, confidence, alpha = check_level(delta, confidence)
    sides = (counts, counts.swapped) if two_sided else (counts,)
    value = max(lower(side, delta, alpha / len(sides)) for side in sides)
    rates = (
        counts.hits / counts.releases,
        counts.hits_neighbour / counts.releases_neighbour,
    )
    if two_sided:
        method += ", two-sided"
    elif value == 0 and rates[0] < rates[1]:
        method += _REVERSED
    return Bound(method, parameter, value, delta, confidence, counts.to_dict())


def _are_too_many(counts: Counts) -> bool:
    return max(counts.releases, counts.releases_neighbour) > _MOST_RELEASES


def _limits(counts: Counts, alpha: float) -> tuple[float, float]:
    """Return limits for p, from below, and for q, from above."""
    return (
        lower_proportion(counts.hits, counts.releases, alpha / 2),
        upper_proportion(counts.hits_neighbour, counts.releases_neighbour, alpha / 2),
    )


def _simple_epsilon(counts: Counts, delta: float, alpha: float) -> float:
    p, q = _limits(counts, alpha)
    best = 0.0
    for larger, smaller in ((p, q), (1 - q, 1 - p)):
        if larger > delta:
            best = max(best, math.log((larger - delta) / smaller))
    return best


def _simple_mu(counts: Counts, delta: float, alpha: float) -> float:
    p, q = _limits(counts, alpha)
    return max(0.0, float(ndtri(p) - ndtri(q))) if p > 0 and q < 1 else 0.0


def _exact_epsilon(counts: Counts, delta: float, alpha: float) -> float:
    return _exact(epsilon_nulls(delta), counts, alpha)


def _exact_mu(counts: Counts, delta: float, alpha: float) -> float:
    return _exact(mu_nulls(), counts, alpha)


def _exact(nulls: Nulls, counts: Counts, alpha: float) -> float:
    laws = BinomialCount(counts.releases), BinomialCount(counts.releases_neighbour)
    return nulls.lower_bound(laws, (counts.hits, counts.hits_neighbour), alpha)


def epsilon_nulls(delta: float) -> Nulls:
    """Return (epsilon, delta)-DP for growing epsilon.

    Epsilon is read off the polygon's two sides, and off its corner, where both sides
    hold with equality; their sum, (1 + p - q - 2 delta) = e^eps (1 - (p - q)), involves
    p - q alone.
    """

    def log_excess(p: Array) -> Array:
        return np.log(np.maximum(p - delta, 0.0))

    def minus_log_misses(p: Array) -> Array:
        return -np.log1p(-p)

    def minus_log_excess_misses(q: Array) -> Array:
        return -np.log(np.maximum(1 - q - delta, 0.0))

    def from_difference(difference: Array) -> Array:
        excess = np.maximum(1 + difference - 2 * delta, 0.0)
        return np.log(excess) - np.log1p(-np.minimum(difference, 1.0))

    def boundary(epsilon: float, box: Rectangle) -> list[Piece]:
        """Return the part of p = g(q) that dominates the null within the box."""
        ratio = np.exp(epsilon)

        def curve(q: float) -> float:
            return float(min(ratio * q + delta, 1 - (1 - q - delta) / ratio, 1.0))

        def inverse(p: float) -> float:
            return float(max((p - delta) / ratio, 1 - delta - ratio * (1 - p), 0.0))

        start = max(box.q_low, inverse(box.p_low))
        if start > box.q_high:
            return []
        # Beyond the end p stays at p_high (at most 1), and larger q are dominated.
        end = max(start, min(box.q_high, inverse(box.p_high)))
        corner = (1 - delta) / (1 + ratio)
        stops = [start, *([corner] if start < corner < end else []), end]
        points = [(q, min(curve(q), box.p_high)) for q in stops]
        return list(pairwise(points))

    contrasts = [
        Contrast(log_excess, np.log),
        Contrast(minus_log_misses, minus_log_excess_misses),
        Contrast(np.asarray, np.asarray, from_difference),
    ]
    return Nulls(contrasts, boundary)


def mu_nulls() -> Nulls:
    """Return mu-GDP for growing mu."""
    return Nulls([Contrast(ndtri, ndtri)], _above_the_curve)


def _above_the_curve(mu: float, box: Rectangle) -> list[Piece]:
    """Return segments on or above p = g_mu(q) that dominate the null within the box."""

    def curve(q: float) -> float:
        return min(float(ndtr(ndtri(q) + mu)), box.p_high)

    start = max(box.q_low, float(ndtr(ndtri(box.p_low) - mu)))
    if start > box.q_high:
        return []
    end = max(start, min(box.q_high, float(ndtr(ndtri(box.p_high) - mu))))
    if end == 0:
        return [((0.0, 0.0), (0.0, 0.0))]
    pieces: list[Piece] = []
    # Near 0 the curve is too steep to be followed: up to a q that has hardly any hits,
    # it is bounded by its value there, at q = 0.
    least = min(_NEARLY_ZERO * box.q_high, end)
    if start < least:
        start = least
        pieces.append(((0.0, curve(start)), (0.0, curve(start))))
    if end > _NEARLY_ONE:
        # Likewise near 1, where it is bounded by its end.
        end = max(start, _NEARLY_ONE)
        pieces.append(((end, box.p_high), (end, box.p_high)))
    if start == end:
        return [*pieces, ((start, curve(start)), (start, curve(start)))]
    return pieces + _segments(mu, start, end, box)


def _segments(mu: float, start: float, end: float, box: Rectangle) -> list[Piece]:
    number = 1
    while True:
        x = np.linspace(ndtri(start), ndtri(end), number + 1)
        q, p = ndtr(x), ndtr(x + mu)
        slope = np.exp(-mu * x - mu * mu / 2)
        lift = np.diff(q) * -np.diff(slope) / 4
        if number >= _MOST_PIECES or lift.max() <= _GAP * (box.p_high - box.p_low):
            break
        number *= 2
    starts, ends = np.minimum(p[:-1] + lift, box.p_high), p[1:] + lift
    # A segment that leaves the box ends where it does: larger q are dominated.
    rise = np.maximum(ends - starts, np.finfo(float).tiny)
    within = np.minimum((box.p_high - starts) / rise, 1.0)
    stops = q[:-1] + within * np.diff(q)
    ends = np.minimum(ends, box.p_high)
    lower = zip(q[:-1].tolist(), starts.tolist(), strict=True)
    upper = zip(stops.tolist(), ends.tolist(), strict=True)
    return list(zip(lower, upper, strict=True))
