r"""The one-run bound: many canaries, each included by its own fair coin, one release.

Each of m canaries is included by an independent fair coin S_i = 1 or -1. From the one
release, and nothing else, an attacker guesses the coins of r canaries and abstains on
the others; v guesses are right. If the mechanism is (epsilon, delta)-DP with respect to
adding or removing one canary, then with q = e^eps / (1 + e^eps)

.. math:: P(W \ge v) \le P(\mathrm{Bin}(r, q) \ge v) + \frac{\delta}{1 + e^\epsilon}
          \Big(\sum_{j<r} \max_w P(\mathrm{Bin}(j, q) = w) + m - r\Big).

Proof
-----
Let T be the vector of guesses, a function of the release. Reveal S_1, S_2, ... in
order. Given the coins A revealed so far, let P and Q be the laws of T for S_i = 1 and
S_i = -1, the other coins averaged; they satisfy the (epsilon, delta) inequalities.
Given T = t as well, a guess t_i = 1 is right with probability P(t) / (P(t) + Q(t)) <= q
+ h_i with

    h_i = (P(t) - e^eps Q(t))_+ / ((P(t) + Q(t)) (1 + e^eps)),

and likewise with P and Q exchanged for t_i = -1. T has the law (P + Q)/2, so for any A,
E[h_i] <= (delta/2 + delta/2) / (1 + e^eps) (*).

Let u_i(w) be the probability that w right guesses so far, and fair play at success
rate q on the guesses that follow coordinate i, reach v. Revealing coordinate i with a
guess changes the conditional mean of u_i(W_i) - u_(i-1)(W_(i-1)) by at most
h_i (u_i(w + 1) - u_i(w)) = h_i P(Bin(r_i, q) = v - 1 - w), where r_i guesses follow;
without a guess nothing changes. Summing over i and taking means,

    P(W >= v) <= u_0(0) + sum_i E[h_i max_w P(Bin(r_i, q) = w)].

The maximum decreases in r_i, and r_i >= max(0, r - i), so (*) gives the claim. QED

With delta = 0 the argument is conditional on T = t throughout: there r may depend on
the release. With delta > 0, r must be fixed before the release (which canaries are
guessed may always depend on it).

Relation to the literature
--------------------------
The setting, and the bound for delta = 0, are Steinke, Nasr and Jagielski's. For
delta > 0 their Theorem 5.2 is commonly computed as P(Bin >= v) + 2 m delta
max_i (P(Bin >= v - i) - P(Bin >= v))/i. That expression is not a bound for every v: let
guesses be uniform with probability 1 - l, and otherwise uniform over the vectors with
at least one right guess. This is (0, l/(2^m - 1))-DP, and for m = 4, l = 0.15 (delta
0.01) P(W >= 1) = 0.9469, above the expression's 0.9425. No violation at the small
p-values that matter for refutations is known; the bound above is proven for all, and
smaller there when all canaries are guessed.

References
----------
Steinke, Nasr, Jagielski, *Privacy auditing with one (1) training run*, NeurIPS 2023.
"""

import math

import numpy as np
from scipy.special import bdtrc, expit
from scipy.stats import binom

from dpaudit.audit.bounds.result import Bound, check_level
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_nonnegative

__all__ = ["one_run", "one_run_p_value"]

_EXACT_MODES = 1000
_BLOCK_RATIO = 1.01
_HALVINGS = 60
_LARGEST = 50.0  # at epsilon 50 a thousand right guesses have p-value 1


def one_run(
    *,
    correct: int,
    guesses: int,
    canaries: int,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Bound:
    """Return the lower bound on epsilon from the guesses of one run.

    Parameters
    ----------
    correct, guesses, canaries : int
        0 <= correct <= guesses <= canaries. Each canary was included by an independent
        fair coin. With delta > 0 the number of guesses was fixed before the run.
    delta : float
        In [0, 1).
    confidence : float
        In (0, 1).

    Returns
    -------
    Bound

    Raises
    ------
    InputError
        If an argument is outside what is allowed.

    Notes
    -----
    Any epsilon whose p-value is at most alpha may be reported, however it was found:
    the largest probability of v right guesses under (epsilon, delta)-DP grows with
    epsilon and falls with v, and the p-value is an upper bound of it.

    Examples
    --------
    >>> print(one_run(correct=950, guesses=1000, canaries=1000, delta=1e-5))
    epsilon >= 2.70178 at delta 1e-05 with 95 % confidence (one-run)
    """
    delta, confidence, alpha = check_level(delta, confidence)
    correct, guesses, canaries = _checked(correct, guesses, canaries)
    low, high = 0.0, _LARGEST
    if _p_value(correct, guesses, canaries, 0.0, delta) <= alpha:
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if _p_value(correct, guesses, canaries, middle, delta) <= alpha:
                low = middle
            else:
                high = middle
    counts = {"correct": correct, "guesses": guesses, "canaries": canaries}
    return Bound("one-run", "epsilon", low, delta, confidence, counts)


def one_run_p_value(
    *,
    correct: int,
    guesses: int,
    canaries: int,
    epsilon: float,
    delta: float = 0.0,
) -> float:
    """Return a p-value against (epsilon, delta)-DP from the guesses of one run.

    Parameters
    ----------
    correct, guesses, canaries : int
        As for `one_run`.
    epsilon : float
        >= 0.
    delta : float
        In [0, 1).

    Examples
    --------
    >>> one_run_p_value(correct=10, guesses=10, canaries=10, epsilon=0.0) == 2**-10
    True
    """
    delta, _, _ = check_level(delta, 0.5)
    epsilon = check_nonnegative("epsilon", epsilon)
    return _p_value(*_checked(correct, guesses, canaries), epsilon, delta)


def _checked(correct: int, guesses: int, canaries: int) -> tuple[int, int, int]:
    canaries = check_count("canaries", canaries)
    guesses = check_count("guesses", guesses)
    correct = check_count("correct", correct, minimum=0)
    if not correct <= guesses <= canaries:
        raise InputError(
            "correct <= guesses <= canaries is required, got "
            f"{correct} correct, {guesses} guesses, {canaries} canaries"
        )
    return correct, guesses, canaries


def _p_value(
    correct: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> float:
    success = float(expit(epsilon))
    fair = 1.0 if correct == 0 else float(bdtrc(correct - 1, guesses, success))
    if delta == 0:
        return fair
    leaks = _sum_of_modes(guesses, success) + canaries - guesses
    return min(1.0, fair + delta * float(expit(-epsilon)) * leaks)


def _sum_of_modes(number: int, success: float) -> float:
    """Return sum_(j < number) max_w P(Bin(j, success) = w), or slightly more.

    The terms decrease, so beyond the first thousand blocks take their first term.
    """
    starts = list(range(min(number, _EXACT_MODES)))
    while starts[-1] + 1 < number:
        following = starts[-1] + 1
        if following >= _EXACT_MODES:
            following = max(following, math.ceil(starts[-1] * _BLOCK_RATIO))
        if following >= number:
            break
        starts.append(following)
    first = np.array(starts)
    sizes = np.diff(first, append=number)
    modes = binom.pmf(np.floor((first + 1) * success), first, success)
    return float(np.sum(sizes * np.minimum(modes, 1.0)))
