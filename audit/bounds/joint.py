r"""The exact joint bound on epsilon from the counts of one event.

One event, fixed beforehand, has probability p on D and q on D'. (epsilon, delta)-DP
says p <= g(q) with

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

References
----------
Zanella-Beguelin et al., *Bayesian estimation of differential privacy*, ICML 2023.
"""

from itertools import pairwise

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.bounds.certificate import Piece
from dpaudit.audit.bounds.clopper_pearson import clopper_pearson
from dpaudit.audit.bounds.laws import Binomial, Law
from dpaudit.audit.bounds.ordering import Contrast, Rectangle, lower_bound
from dpaudit.audit.bounds.result import Bound, Counts, check_level

__all__ = ["MOST_RELEASES", "epsilon_lower", "joint", "joint_contrasts"]

MOST_RELEASES = 10**9


def joint(
    counts: Counts,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    two_sided: bool = False,
) -> Bound:
    """Return the exact joint lower bound on epsilon at `delta`.

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
    >>> bound = joint(Counts(900, 1000, 100, 1000))
    >>> bound.method, bound.parameter, round(bound.value, 2)
    ('joint', 'epsilon', 2.04)
    """
    delta, confidence, alpha = check_level(delta, confidence)
    if max(counts.releases, counts.releases_neighbour) > MOST_RELEASES:
        return clopper_pearson(
            counts, delta=delta, confidence=confidence, two_sided=two_sided
        )
    if two_sided:
        sides = (counts, counts.swapped)
        value = max(_from_counts(side, delta, alpha / 2) for side in sides)
    else:
        value = _from_counts(counts, delta, alpha)
    return Bound("joint", "epsilon", value, delta, confidence, counts.to_dict())


def _from_counts(counts: Counts, delta: float, alpha: float) -> float:
    laws = Binomial(counts.releases), Binomial(counts.releases_neighbour)
    return epsilon_lower(laws, (counts.hits, counts.hits_neighbour), delta, alpha)


def epsilon_lower(
    laws: tuple[Law, Law], hits: tuple[int, int], delta: float, alpha: float
) -> float:
    """Return the exact lower bound on epsilon from two independent counts.

    Parameters
    ----------
    laws : (Law, Law)
        Of the counts on D and on D', indexed by the event's probability.
    hits : (int, int)
    delta, alpha : float
    """

    def boundary(epsilon: float, box: Rectangle) -> list[Piece]:
        return _boundary(epsilon, delta, box)

    return lower_bound(*laws, *hits, joint_contrasts(delta), boundary, alpha)


def joint_contrasts(delta: float) -> list[Contrast]:
    """Return epsilon as read off the polygon's two sides, and off its corner.

    At the corner both sides hold with equality; their sum,
    (1 + p - q - 2 delta) = e^eps (1 - (p - q)), involves p - q alone.
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

    return [
        Contrast(log_excess, np.log),
        Contrast(minus_log_misses, minus_log_excess_misses),
        Contrast(np.asarray, np.asarray, from_difference),
    ]


def _boundary(epsilon: float, delta: float, box: Rectangle) -> list[Piece]:
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
