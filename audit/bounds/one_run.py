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

The p-value and the bound
-------------------------
Call the right side f(v, eps). For delta > 0 it does not grow with eps throughout. But
(e, delta)-DP implies (eps, delta)-DP for every eps >= e, as P(S) <= e^e Q(S) +
delta <= e^eps Q(S) + delta. So

.. math:: F(v, e) = \min_{\epsilon \ge e} f(v, \epsilon)

bounds P(W >= v), too, and F falls with v. So F(W, e) is a p-value against
(e, delta)-DP: let v be the least number with F(v, e) <= alpha; then P(F(W, e) <= alpha)
= P(W >= v) <= F(v, e) <= alpha. F grows with e, hence the largest eps with f(W, eps) <=
alpha, which is the largest e with F(W, e) <= alpha, is a bound: it is at least the
truth e_0 just if F(W, e_0) <= alpha, with probability alpha at most. A claim is
rejected just if the bound reaches its epsilon.

The same holds with the minimum over any set of epsilons that is fixed beforehand. Here
they are the multiples of 2^-17 up to 50, so p-value and bound agree to the last digit,
and each falls short of what is proven above by less than 2^-17 in epsilon. All of them
count, though few are looked at: the first term of f grows with eps and the second
falls, so from the ends a < b of an interval follows

.. math:: f(\epsilon) \ge f_1(a) + f_2(b), \quad a \le \epsilon \le b,

and intervals that cannot hold what is sought are left out. (The second term falls,
since each of its parts does: (1 - q) P(Bin(j, q) = w), as a function of q, falls where
w <= (j + 1) q, and the likeliest w, the whole part of (j + 1) q, is there.)

Where delta m is not small, `dpaudit.audit.bounds.guess_tails` bounds P(W >= v) by less.
The smaller of two bounds is one: so the larger of the two lower bounds on epsilon is
returned, and the smaller p-value. The same theorem bounds mu of Gaussian DP.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, expit

from dpaudit.arrays import Array
from dpaudit.audit.bounds.guess_tails import (
    LARGEST,
    PER_UNIT,
    approx_curve,
    gaussian_curve,
    largest,
    tail,
)
from dpaudit.audit.bounds.result import Bound, check_level
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_nonnegative

__all__ = ["one_run", "one_run_p_value"]

Integers: TypeAlias = NDArray[np.intp]

_EXACT_MODES = 1000
_BLOCK_RATIO = 1.01


def one_run(
    *,
    correct: int,
    guesses: int,
    canaries: int,
    delta: float = 0.0,
    confidence: float = 0.95,
    gaussian: bool = False,
) -> Bound:
    """Return the lower bound on epsilon, or mu, from the guesses of one run.

    Parameters
    ----------
    correct, guesses, canaries : int
        0 <= correct <= guesses <= canaries. Each canary was included by an independent
        fair coin. With delta > 0, and for mu, the number of guesses was fixed before
        the run.
    delta : float
        In [0, 1). For mu it is where the bound is also expressed as an epsilon.
    confidence : float
        In (0, 1).
    gaussian : bool
        Whether to bound mu, of a mechanism that claims Gaussian DP.

    Returns
    -------
    Bound

    Raises
    ------
    InputError
        If an argument is outside what is allowed.

    Notes
    -----
    The largest parameter, of the multiples of 2^-17 up to 50, with a p-value of at most
    alpha; the module's docstring proves that it may be reported.

    Examples
    --------
    >>> print(one_run(correct=950, guesses=1000, canaries=1000, delta=1e-5))
    epsilon >= 2.70177 at delta 1e-05 with 95 % confidence (one-run)
    >>> bound = one_run(correct=174, guesses=200, canaries=1000, gaussian=True)
    >>> bound.parameter, round(bound.value, 2)
    ('mu', 0.61)
    """
    delta, confidence, alpha = check_level(delta, confidence)
    observed = correct, guesses, canaries = _checked(correct, guesses, canaries)
    counts = {"correct": correct, "guesses": guesses, "canaries": canaries}
    if gaussian:
        value = largest(*observed, gaussian_curve, alpha, 0) / PER_UNIT
        return Bound("one-run", "mu", value, delta, confidence, counts)
    guessed = _Guesses(*observed, delta)

    def may_hold_more(floor: Array, high: Integers, seen: "_Seen") -> NDArray[np.bool_]:
        return (floor <= alpha) & (high > seen.largest(alpha))

    found = max(guessed.look(0, may_hold_more).largest(alpha), 0)
    if delta > 0:
        found = largest(*observed, approx_curve(delta), alpha, found)
    return Bound("one-run", "epsilon", found / PER_UNIT, delta, confidence, counts)


def one_run_p_value(
    *,
    correct: int,
    guesses: int,
    canaries: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    mu: float | None = None,
) -> float:
    """Return a p-value against (epsilon, delta)-DP, or mu-GDP, from one run's guesses.

    It is at most 1 - confidence just if `one_run` reaches the parameter at that
    confidence (for 0, where a bound says nothing, it may be smaller). Beyond 50 it is
    1.

    Parameters
    ----------
    correct, guesses, canaries : int
        As for `one_run`.
    epsilon, mu : float
        >= 0; one of them.
    delta : float
        In [0, 1), for epsilon.

    Examples
    --------
    >>> one_run_p_value(correct=10, guesses=10, canaries=10, epsilon=0.0) == 2**-10
    True
    """
    delta, _, _ = check_level(delta, 0.5)
    if (epsilon is None) is (mu is None):
        raise InputError(f"epsilon or mu is needed, got {epsilon!r} and {mu!r}")
    name, parameter = ("mu", mu) if epsilon is None else ("epsilon", epsilon)
    parameter = check_nonnegative(name, parameter)
    observed = _checked(correct, guesses, canaries)
    first = math.ceil(min(parameter, LARGEST + 1) * PER_UNIT)
    if first > LARGEST * PER_UNIT:
        return 1.0
    if mu is not None:
        return tail(*observed, gaussian_curve, first)
    guessed = _Guesses(*observed, delta)

    def may_hold_less(floor: Array, high: Integers, seen: "_Seen") -> NDArray[np.bool_]:
        return floor < seen.least

    found = min(1.0, guessed.look(first, may_hold_less).least)
    return min(found, tail(*observed, approx_curve(delta), first)) if delta else found


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


@dataclass
class _Seen:
    """Places on the grid of epsilons that were looked at, with f there."""

    places: Integers
    values: Array

    @property
    def least(self) -> float:
        return float(self.values.min())

    def largest(self, alpha: float) -> int:
        """Return the largest place where f is at most alpha, or -1."""
        return int(self.places[self.values <= alpha].max(initial=-1))

    def add(self, places: Integers, values: Array) -> None:
        self.places = np.concatenate([self.places, places])
        self.values = np.concatenate([self.values, values])


@dataclass(frozen=True)
class _Guesses:
    """What was observed, and f of the module's docstring as a function of epsilon."""

    correct: int
    guesses: int
    canaries: int
    delta: float

    def fair(self, places: Integers) -> Array:
        """Return the first term of f, which grows, at places on the grid."""
        if self.correct == 0:
            return np.ones(len(places))
        # By the wrong guesses, which are few where q is hard to tell from 1.
        wrong = self.guesses - self.correct + 1
        return np.asarray(betaincc(wrong, self.correct, _wrong(places)))

    def leaks(self, places: Integers) -> Array:
        """Return the second term of f, which falls, at places on the grid."""
        if self.delta == 0:
            return np.zeros(len(places))
        wrong = _wrong(places)
        modes = _sum_of_modes(self.guesses, wrong)
        return self.delta * wrong * (modes + self.canaries - self.guesses)

    def look(
        self,
        first: int,
        worthwhile: Callable[[Array, Integers, _Seen], NDArray[np.bool_]],
    ) -> _Seen:
        """Look at places on the grid, from `first` on.

        The intervals between them are halved as long as that is worthwhile, by the
        least that f can be inside, their upper ends, and what was seen elsewhere.
        """
        ends = np.array([first, LARGEST * PER_UNIT])
        fair, leaks = self.fair(ends), self.leaks(ends)
        seen = _Seen(ends, fair + leaks)
        low, high, fair, leaks = ends[:1], ends[1:], fair[:1], leaks[1:]
        while True:
            open_ = (high - low > 1) & worthwhile(fair + leaks, high, seen)
            if not open_.any():
                return seen
            low, high, fair, leaks = (x[open_] for x in (low, high, fair, leaks))
            middle = (low + high) // 2
            fair_there, leaks_there = self.fair(middle), self.leaks(middle)
            seen.add(middle, fair_there + leaks_there)
            low, high = np.append(low, middle), np.append(middle, high)
            fair = np.append(fair, fair_there)
            leaks = np.append(leaks_there, leaks)


def _wrong(places: Integers) -> Array:
    """Return 1 - q at places on the grid."""
    return np.asarray(expit(-places / PER_UNIT))


def _sum_of_modes(number: int, wrong: Array) -> Array:
    """Return sum_(j < number) max_w P(Bin(j, q) = w) for 1 - q = wrong, or a bit more.

    The terms decrease, so beyond the first thousand blocks take their first term.
    """
    from scipy.stats import binom  # slow to import

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
    p = wrong[:, np.newaxis]
    # The likeliest number of wrong guesses; 1 - q <= 1/2 where epsilon >= 0.
    modes = binom.pmf(np.floor((first + 1) * p), first, p)
    return np.asarray(np.minimum(modes, 1.0) @ sizes)
