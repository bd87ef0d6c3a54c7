r"""The epsilon bound of Clopper and Pearson's two intervals.

One event, fixed beforehand, has probability p on D and q on D'. Each proportion gets
an exact one-sided limit at level alpha/2: p >= p_low and q <= q_high hold together
with probability at least 1 - alpha, by the union bound. On that occasion two of the
four half-planes that (epsilon, delta)-DP implies give

.. math:: \epsilon \ge \log\frac{p_{low} - \delta}{q_{high}}, \qquad
          \epsilon \ge \log\frac{1 - q_{high} - \delta}{1 - p_{low}},

and the larger counts: both follow from the same two limits, so nothing more is split.
The event is meant to be more frequent on D; whoever does not know the direction
before seeing the counts pays for both (``two_sided=True``, alpha/2 each).

References
----------
Clopper, Pearson, *The use of confidence or fiducial limits illustrated in the case of
the binomial*, Biometrika 1934.
Jagielski, Ullman, Oprea, *Auditing differentially private machine learning*,
NeurIPS 2020 (the same bound for the first half-plane).
"""

import math

from scipy.special import betainccinv, betaincinv

from dpaudit.audit.bounds.result import Bound, Counts, check_level

__all__ = ["clopper_pearson", "lower_proportion", "upper_proportion"]


def lower_proportion(count: int, total: int, alpha: float) -> float:
    """Return Clopper and Pearson's lower limit, exceeded with probability <= alpha."""
    return float(betaincinv(count, total - count + 1, alpha)) if count else 0.0


def upper_proportion(count: int, total: int, alpha: float) -> float:
    """Return Clopper and Pearson's upper limit, undercut with probability <= alpha."""
    # 1 minus the limit of the misses would lose the digits of a small limit.
    if count == total:
        return 1.0
    return float(betainccinv(count + 1, total - count, alpha))


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
    delta, confidence, alpha = check_level(delta, confidence)
    if two_sided:
        sides = (counts, counts.swapped)
        value = max(_lower(side, delta, alpha / 2) for side in sides)
    else:
        value = _lower(counts, delta, alpha)
    return Bound(
        "clopper-pearson", "epsilon", value, delta, confidence, counts.to_dict()
    )


def _lower(counts: Counts, delta: float, alpha: float) -> float:
    p = lower_proportion(counts.hits, counts.releases, alpha / 2)
    q = upper_proportion(counts.hits_neighbour, counts.releases_neighbour, alpha / 2)
    best = 0.0
    for larger, smaller in ((p, q), (1 - q, 1 - p)):
        if larger > delta:
            best = max(best, math.log((larger - delta) / smaller))
    return best
