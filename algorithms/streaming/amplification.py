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

That holds for every epsilon_0 > 0, and for every epsilon: FMT's Theorem 3.1 has a range
of epsilon_0, but only its closed form needs it, and the sum of step 1 does not.
`amplified_multiplier` takes the epsilon_0 at which the noise is least: a larger one
asks for less noise at the same delta_0, and leaves less of delta for it.

Without amplification. Each person is in one step only, so what makes one step
(epsilon, delta)-DP makes all of them so: the multiplier 1/mu(epsilon, delta)
(`gaussian_mu`). It is what is left where rows are few or epsilon is large.
"""

from functools import lru_cache
from math import exp, inf

import numpy as np

from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = ["amplified_multiplier"]

_TAIL = 1e-6  # of the delta that is asked for
_PLAIN = 30.0  # an epsilon beyond which amplification is not tried
_POINTS, _ZOOMS = 17, 3  # of the search for epsilon_0


def shuffled_delta(
    epsilon: float, local_epsilon: float, count: int, *, tail: float = 1e-15
) -> float:
    """Return an upper bound for delta at `epsilon` >= 0, for shuffled pure randomisers.

    Each of the n is epsilon_0-DP. Far values of C, whose probability is `tail`, are not
    summed, but added.
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
        without it.

    Examples
    --------
    >>> round(amplified_multiplier(0.5, 1e-6, 100_000), 3)
    1.154
    """
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta)
    count = check_count("count", count)
    plain = 1 / gaussian_mu(epsilon, delta)
    if epsilon > _PLAIN:
        return plain

    def left(local: float) -> float:
        return delta - shuffled_delta(epsilon, local, count, tail=_TAIL * delta)

    def needed(local: float) -> float:
        moved = left(local) / ((1 + exp(epsilon)) * count)
        return 1 / (2 * gaussian_mu(local / 2, moved)) if moved > 0 else inf

    # Which epsilon_0 leave anything: at epsilon nothing is spent.
    low, high = epsilon, 2 * epsilon
    while left(high) > 0:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > 0 else (low, middle)
    # Any of them will do; the search is for the best.
    start, end = epsilon, low
    for _ in range(_ZOOMS):
        tried = np.linspace(start, end, _POINTS)
        noise = [needed(float(local)) for local in tried]
        best = int(np.argmin(noise))
        start, end = tried[max(best - 1, 0)], tried[min(best + 1, _POINTS - 1)]
    return min(*noise, plain)
