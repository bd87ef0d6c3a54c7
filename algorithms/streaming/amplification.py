r"""How much noise shuffled rows need: amplification by shuffling, in numbers.

Sources: Feldman, McMillan, Talwar, *Hiding among the clones: a simple and nearly
optimal analysis of privacy amplification by shuffling*, FOCS 2021 (FMT), Theorem 3.1;
Kairouz, Oh, Viswanath, *The composition theorem for differential privacy*, ICML 2015.

Setting. n people in a uniformly random order; step t sees the t-th of them, x, and all
outputs before, z, and outputs a draw from R_t(z, x). The outputs of all steps are
published, the order is not. In FMT each R_t(z, .) is a *local randomiser*, epsilon_0-DP
for every z: it may depend on earlier outputs in any way, as a step of Oja's algorithm
does. D and D' differ in one person, x_1 on D and x_1' on D'.

Step 1: the clones (FMT, Theorem 3.1, proof). Let P = R_t(z, x_1), P' = R_t(z, x_1') and
q = 1/(1 + e^epsilon_0). A pair that is epsilon_0-DP both ways round is a randomised
response (Kairouz, Oh, Viswanath): there are laws Q_0, Q_1 with

    P = (1 - q) Q_0 + q Q_1,      P' = q Q_0 + (1 - q) Q_1.

Any other person's law is at least e^-epsilon_0 max(P, P'), hence at least e^-epsilon_0
(Q_0 + Q_1)/2: it is Q_0 or Q_1 with probability e^-epsilon_0/2 each, and something of
its own otherwise. Which of the three a person uses can be drawn beforehand, by the same
law at every step and for every z. The views on D and on D' follow from the *numbers* of
people that use Q_0 and Q_1: put those labels and the people with a law of their own
in random order, and run the steps. With C ~ Bin(n - 1, e^-epsilon_0), A ~ Bin(C, 1/2),
E ~ Bernoulli(1 - q), all that differs is

    (A + E, C - A + 1 - E) on D   against   (A + 1 - E, C - A + E) on D',

and by symmetry one direction is enough. Given C = c, with b(a) = P(Bin(c, 1/2) = a),
the number a of Q_0 has probability (1 - q) b(a - 1) + q b(a) on D, q b(a - 1) + (1 - q)
b(a) on D', and b(a - 1)/b(a) = a/(c + 1 - a) grows in a. So the excess over e^epsilon
is that of the event a >= m(c), where m(c) is the least a with ((1 - q) - e^epsilon q) a
> (e^epsilon (1 - q) - q) (c + 1 - a):

    delta_1 = E_C[((1 - q) - e^epsilon q) P(Bin(C, 1/2) >= m(C) - 1)
                  - (e^epsilon (1 - q) - q) P(Bin(C, 1/2) >= m(C))]

for epsilon < epsilon_0, and 0 beyond. `shuffled_delta` sums that; C's far tails are
added in full.

Step 2: normal noise. Its randomisers are N(g, s^2 I) with all g(z, x) within r of a
centre g_0(z) that earlier outputs determine; they are not epsilon_0-DP for any
epsilon_0. Let p be the density of N(g_0, s^2 I). Replace the density of N(g, s^2 I) by
one between e^(-epsilon_0/2) p and e^(epsilon_0/2) p: cut it off above, raise it below,
and put what is missing where there is room (there is: the upper bound has mass
e^(epsilon_0/2)). Any two of these are epsilon_0-DP for each other. What was cut is
delta_0 = delta(epsilon_0/2) of N(r/s, 1) against N(0, 1) (`gaussian_delta`); what was
raised is e^(-epsilon_0/2) delta_0 at most; so that is how far, in total variation, each
randomiser was moved. Step by step, for the same order and the same outputs before, so
all n steps together are moved by n delta_0 at most, on D and on D', and

    delta = delta_1(epsilon; epsilon_0, n) + (1 + e^epsilon) n delta_0.

(FMT treat (epsilon_0, delta_0) randomisers in Theorem 3.8, with a similar term.)

Range. FMT's Theorem 3.1 says that for epsilon_0 <= log(n/(16 log(4/delta_1)))

    epsilon <= log(1 + (e^epsilon_0 - 1)/(e^epsilon_0 + 1)
                       (8 sqrt(e^epsilon_0 log(4/delta_1)/n) + 8 e^epsilon_0/n)).

`amplified_multiplier` keeps to that range of epsilon_0, and so of epsilon: up to
`largest_epsilon`, which grows with n towards log(3 + 1/(2 log(4/delta_1))), about 1.1.
Within it the exact sum of step 1 serves (it holds for every epsilon_0), which allows a
larger epsilon_0 than the closed form does. The split delta_1 = delta/2 is not tuned:
noise depends on the logarithms of both halves.
"""

from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = [
    "amplified_multiplier",
    "closed_form_epsilon",
    "fewest_rows",
    "largest_epsilon",
    "largest_local_epsilon",
    "shuffled_delta",
]

_TAIL = 1e-6  # of the delta that is asked for


def shuffled_delta(
    epsilon: float, local_epsilon: float, count: int, *, tail: float = 1e-15
) -> float:
    """Return an upper bound for delta at `epsilon`, for shuffled pure randomisers.

    Parameters
    ----------
    epsilon : float
        >= 0, of all outputs together.
    local_epsilon : float
        epsilon_0 > 0, of each randomiser.
    count : int
        n, the number of people.
    tail : float
        Probability of the far values of C that is not summed, but added.

    Examples
    --------
    >>> shuffled_delta(0.5, 0.5, 10)
    0.0
    >>> round(shuffled_delta(0.1, 1.0, 1000), 6)
    0.000353
    """
    from scipy.stats import binom  # slow to import

    epsilon = check_nonnegative("epsilon", epsilon)
    local = check_positive("local_epsilon", local_epsilon)
    others = check_count("count", count) - 1
    tail = check_fraction("tail", tail)
    if epsilon >= local:
        return 0.0
    odds = 1 / (1 + exp(local))
    gain = (1 - odds) - exp(epsilon) * odds
    loss = exp(epsilon) * (1 - odds) - odds
    share = exp(-local)
    low = int(binom.ppf(tail / 2, others, share))
    high = int(binom.isf(tail / 2, others, share))
    c = np.arange(low, high + 1)
    least = np.floor(loss * (c + 1) / (gain + loss)) + 1
    excess = gain * binom.sf(least - 2, c, 0.5) - loss * binom.sf(least - 1, c, 0.5)
    return min(1.0, tail + float(binom.pmf(c, others, share) @ np.maximum(excess, 0.0)))


def closed_form_epsilon(local_epsilon: float, count: int, delta: float) -> float:
    """Return FMT's bound for epsilon at `delta`; `inf` beyond its range.

    Parameters
    ----------
    local_epsilon : float
        epsilon_0 > 0.
    count : int
        n.
    delta : float
        delta_1.

    Examples
    --------
    >>> round(closed_form_epsilon(1.0, 10_000, 1e-6), 4)
    0.214
    """
    local = check_positive("local_epsilon", local_epsilon)
    count = check_count("count", count)
    if local > largest_local_epsilon(count, delta):
        return inf
    share = exp(local) / count
    root = 8 * sqrt(share * log(4 / check_fraction("delta", delta)))
    return log1p(expm1(local) / (exp(local) + 1) * (root + 8 * share))


def largest_local_epsilon(count: int, delta: float) -> float:
    """Return the largest epsilon_0 of FMT's theorem; not positive where n is too small.

    Examples
    --------
    >>> round(largest_local_epsilon(10_000, 1e-6), 4)
    3.7163
    """
    count, delta = check_count("count", count), check_fraction("delta", delta)
    return log(count / (16 * log(4 / delta)))


def largest_epsilon(count: int, delta: float) -> float:
    """Return the largest epsilon for which noise can be proven; 0 if there is none.

    Parameters
    ----------
    count : int
        n.
    delta : float
        Of the whole mechanism.

    Examples
    --------
    >>> [round(largest_epsilon(n, 1e-5), 3) for n in (200, 1000, 10_000, 10**6)]
    [0.0, 0.837, 1.082, 1.111]
    """
    half = check_fraction("delta", delta) / 2
    local = largest_local_epsilon(count, half)
    return closed_form_epsilon(local, count, half) if local > 0 else 0.0


def fewest_rows(epsilon: float, delta: float) -> int:
    """Return the least n with epsilon <= `largest_epsilon`.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> fewest_rows(0.5, 1e-5)
    421
    """
    epsilon = check_positive("epsilon", epsilon)
    reach = log(3 + 1 / (2 * log(8 / check_fraction("delta", delta))))
    if epsilon >= reach:
        raise InputError(
            f"epsilon must be in (0, {reach:.4g}) at delta = {delta:g}: beyond, "
            "amplification by shuffling is not proven for any number of rows, got "
            f"{epsilon!r}"
        )
    low, high = 1, 2
    while largest_epsilon(high, delta) < epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if largest_epsilon(middle, delta) < epsilon:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=256)
def amplified_multiplier(epsilon: float, delta: float, count: int) -> float:
    """Return the noise per step that makes shuffled normal randomisers private.

    Parameters
    ----------
    epsilon, delta : float
        The promise for all steps together, delta < 1.
    count : int
        n, the number of people and of steps.

    Returns
    -------
    float
        Standard deviation of the noise per coordinate, in units of the diameter 2 r of
        the ball of means: the smaller of what amplification allows and what suffices
        without it (each person is in one step, so that step's (epsilon, delta) is
        that of all).

    Raises
    ------
    InputError
        If epsilon is beyond `largest_epsilon`.

    Examples
    --------
    >>> round(amplified_multiplier(0.5, 1e-6, 100_000), 3)
    1.155
    """
    epsilon = check_positive("epsilon", epsilon)
    largest = largest_epsilon(count, delta)
    if epsilon > largest:
        where = f"with n = {count} and delta = {delta:g}"
        least = 16 * log(8 / delta)
        raise InputError(
            f"epsilon must be in (0, {largest:.4g}], which is what amplification by "
            f"shuffling is proven for {where}, got {epsilon!r}"
            if largest
            else f"epsilon must be in the proven range, which is empty {where}: n must "
            f"be more than {least:.4g}, got epsilon = {epsilon!r}"
        )
    local = _local_epsilon(epsilon, delta / 2, count)
    moved = delta / (2 * (1 + exp(epsilon)) * count)
    amplified = 1 / (2 * gaussian_mu(local / 2, moved))
    return min(amplified, 1 / gaussian_mu(epsilon, delta))


def _local_epsilon(epsilon: float, delta: float, count: int) -> float:
    """Return the largest epsilon_0 in range that is shown to be good enough."""

    def holds(local: float) -> bool:
        return shuffled_delta(epsilon, local, count, tail=_TAIL * delta) <= delta

    # epsilon_0 = epsilon needs no amplification.
    low, high = epsilon, max(epsilon, largest_local_epsilon(count, delta))
    if holds(high):
        return high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
