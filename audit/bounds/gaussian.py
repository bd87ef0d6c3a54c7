r"""A sound lower bound on the mu of Gaussian DP, from the counts of one event.

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
suggests. For a statement about epsilon, use `dpaudit.audit.bounds.joint`.

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
Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, Definition 2.6.
Nasr et al., *Tight auditing of differentially private machine learning*, USENIX
Security 2023 (mu from the counts of one event by Clopper and Pearson's limits).
"""

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.audit.bounds.certificate import Piece
from dpaudit.audit.bounds.clopper_pearson import lower_proportion, upper_proportion
from dpaudit.audit.bounds.joint import MOST_RELEASES
from dpaudit.audit.bounds.laws import Binomial, Law
from dpaudit.audit.bounds.ordering import Contrast, Rectangle, lower_bound
from dpaudit.audit.bounds.result import Bound, Counts, check_level

__all__ = ["gaussian", "gaussian_contrasts", "mu_lower"]

# How far the segments may lie above the curve, as a share of the confidence interval
# for p, which is some eight standard errors wide.
_GAP = 1e-3
_NEARLY_ZERO = 1e-4  # of the upper limit for q
_NEARLY_ONE = 1 - 1e-9
_MOST_PIECES = 32


def gaussian(
    counts: Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    two_sided: bool = False,
) -> Bound:
    """Return the exact lower bound on mu of a mechanism that claims mu-GDP.

    Parameters
    ----------
    counts : Counts
        Of an event fixed before these releases were drawn.
    delta : float
        In [0, 1): where the bound is also expressed as an epsilon; it does not enter
        the test.
    confidence : float
        In (0, 1).
    two_sided : bool
        False: the event was meant, beforehand, to be more frequent on D. True: either
        direction counts, at half the error each.

    Returns
    -------
    Bound
        With parameter ``"mu"``. Beyond 1e9 releases a side, from Clopper and
        Pearson's limits, and the method says so.

    Raises
    ------
    InputError
        If an argument is outside what is allowed.

    Examples
    --------
    >>> bound = gaussian(Counts(691, 1000, 309, 1000), delta=1e-5)
    >>> bound.parameter, round(bound.value, 2), round(bound.epsilon, 1)
    ('mu', 0.9, 3.9)
    """
    delta, confidence, alpha = check_level(delta, confidence)
    exact = max(counts.releases, counts.releases_neighbour) <= MOST_RELEASES
    lower = _from_counts if exact else _simple
    if two_sided:
        value = max(lower(side, alpha / 2) for side in (counts, counts.swapped))
    else:
        value = lower(counts, alpha)
    method = "gaussian" if exact else "gaussian, clopper-pearson"
    return Bound(method, "mu", value, delta, confidence, counts.to_dict())


def gaussian_contrasts() -> list[Contrast]:
    """Return mu as read off (p, q) on the null's boundary."""
    return [Contrast(ndtri, ndtri)]


def _simple(counts: Counts, alpha: float) -> float:
    p = lower_proportion(counts.hits, counts.releases, alpha / 2)
    q = upper_proportion(counts.hits_neighbour, counts.releases_neighbour, alpha / 2)
    return max(0.0, float(ndtri(p) - ndtri(q))) if p > 0 and q < 1 else 0.0


def _from_counts(counts: Counts, alpha: float) -> float:
    laws = Binomial(counts.releases), Binomial(counts.releases_neighbour)
    return mu_lower(laws, (counts.hits, counts.hits_neighbour), alpha)


def mu_lower(laws: tuple[Law, Law], hits: tuple[int, int], alpha: float) -> float:
    """Return the exact lower bound on mu from two independent counts.

    Parameters
    ----------
    laws : (Law, Law)
        Of the counts on D and on D', indexed by the event's probability.
    hits : (int, int)
    alpha : float
    """
    return lower_bound(*laws, *hits, gaussian_contrasts(), _boundary, alpha)


def _boundary(mu: float, box: Rectangle) -> list[Piece]:
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
    ends = np.minimum(ends, box.p_high)
    lower = zip(q[:-1].tolist(), starts.tolist(), strict=True)
    upper = zip(q[1:].tolist(), ends.tolist(), strict=True)
    return list(zip(lower, upper, strict=True))
