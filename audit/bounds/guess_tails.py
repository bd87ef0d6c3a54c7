r"""How often guesses about many canaries are right, if a trade-off curve is kept.

m canaries, each included by its own fair coin; r guesses, a number fixed beforehand,
made of one release alone; W of them right. The mechanism keeps a trade-off curve in
each canary: with g = 1 - f, for every event B of the release and the two values of one
coin, the others given,

.. math:: P(B | 1) \le g(P(B | 0)) \quad\text{and}\quad P(B | 0) \le g(P(B | 1)),

g concave, rising, g(0) >= 0. So (epsilon, delta)-DP has g(y) = min(delta + e^eps y,
1 - e^-eps (1 - delta - y)), and mu-GDP has g(y) = Phi(mu + Phi^-1(y)).

One inequality for each number of right guesses
-----------------------------------------------
Let p_j = P(W = j), and for each k

.. math:: A_k = \sum_{j \ge k} \frac{j}{m} p_j, \qquad
          B_k = \sum_{j \ge k} \frac{r - j}{m} p_j.

Then A_(k+1) <= g(B_k). Proof: fix coin i, and the other coins s. Whether i is guessed
as 1 while at least k guesses about the others are right is an event of the release,
and likewise for 0. Let x be the probability that i is guessed right, and y that it is
guessed wrong, in this case; each is half a sum over the two values of the coin, so x <=
(g(a) + g(b)) / 2 with y = (a + b) / 2, and x <= g(y) as g is concave. For the same
reason this holds for the means of x and y over s and i. The mean of x is E[number of
right guesses i with at least k right ones among the others] / m = E[W; W > k] / m =
A_(k+1), and that of y is E[r - W; W >= k] / m = B_k. QED (Mahloujifar, Melis,
Chaudhuri, *Auditing f-differential privacy in one run*, ICML 2025, have this
inequality, and a recursion as below.)

The largest tail
----------------
Suppose P(W >= v) = tau. Let v = k_0 > k_1 > ... > k_T = 0, and

.. math:: a_0 = \frac{v}{m} \tau, \quad b_0 = \frac{r - v}{m} \tau, \quad n_0 = \tau,
    \qquad b_i = g^{-1}(a_{i-1}), \quad
    a_i = a_{i-1} + \frac{k_i}{r - k_i} (b_i - b_{i-1}), \quad
    n_i = n_{i-1} + \frac{m}{r - k_i} (b_i - b_{i-1}),

with g^-1(x) the least y at which g(y) >= x. Then n_T <= 1. So where n_T > 1, no
mechanism that keeps the curve has P(W >= v) = tau.

Proof. Write A_i, B_i, N_i for A, B and P(W >= .) at k_i. From k_(i-1) to k_i an
outcome j >= k_i adds (r - j) p_j / m to B, (j / (r - j)) times that to A, and
(m / (r - j)) times that to N; so A_i - A_(i-1) >= u_i (B_i - B_(i-1)) with
u_i = k_i / (r - k_i), and N_i - N_(i-1) >= w_i (B_i - B_(i-1)) with w_i = m / (r -
k_i). And B_i >= B_(k_(i-1) - 1) >= g^-1(A_(i-1)). Solved for the B's,

    A_i >= (A_0 - u_1 B_0) + sum_(0<j<i) (u_j - u_(j+1)) B_j + u_i B_i,

where no factor of B_j is negative, as u falls with i; and N_i likewise. All j >= v, so
A_0 >= a_0, and B_0 <= b_0 because A_0 + B_0 = (r / m) tau. By induction B_i >= b_i and
A_i >= a_i for i >= 1, hence 1 = N_T >= n_T. QED

n_T falls with the parameter of the curve, because g^-1 does. And it grows with tau, at
least in proportion (g^-1 is convex, and 0 at 0). So with `tail`, the least tau at which
n_T > 1, P(W >= v) < tail(v), unless that is 1. It is a p-value: let V be the v at which
it is alpha at most; then P(W in V) <= P(W >= min V) <= alpha. And the largest parameter
at which it is alpha at most is a bound: it reaches the truth only if the tail at the
truth is alpha at most.

The k_i may skip numbers, which costs little and saves time: all are used next to v.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit.arrays import Array

__all__ = ["PER_UNIT", "Curve", "approx_curve", "gaussian_curve", "largest", "tail"]

PER_UNIT = 2**17
"""Parameters that are looked at are multiples of one over this, up to `LARGEST`."""
LARGEST = 50
"""At epsilon 50, or mu 50, a thousand right guesses are no surprise."""

Curve: TypeAlias = Callable[[Array, Array], Array]
"""g^-1 of the parameters, and of the probabilities in [0, 1], of the same shape."""

_EACH, _COARSER = 256, 64  # steps of one, then of such a share of the distance
_SECTIONS = 64
_ROUNDING = 1e-9
_LEAST = -300.0  # the decimal logarithm of the smallest p-value that is told


def gaussian_curve(mu: Array, x: Array) -> Array:
    """Return g^-1 of mu-GDP."""
    return np.asarray(ndtr(ndtri(x) - mu))


def approx_curve(delta: float) -> Curve:
    """Return g^-1 of (epsilon, delta)-DP for one delta."""

    def curve(epsilon: Array, x: Array) -> Array:
        below = np.exp(-epsilon) * (x - delta)
        above = 1 - delta - np.exp(np.minimum(epsilon, 700.0)) * (1 - x)
        return np.maximum(np.maximum(below, above), 0.0)

    return curve


def largest(
    correct: int, guesses: int, canaries: int, curve: Curve, alpha: float, least: int
) -> int:
    """Return the largest parameter with a tail of at most alpha, over 1 / `PER_UNIT`.

    Or `least`, below which nothing is looked for.
    """

    def excluded(places: NDArray[np.int64]) -> NDArray[np.bool_]:
        level = np.full(len(places), alpha)
        return _excluded(correct, guesses, canaries, curve, places, level)

    low, high = least, LARGEST * PER_UNIT + 1
    if not excluded(np.array([low + 1])).all():
        return low
    while high - low > 1:
        places = np.linspace(low, high, _SECTIONS + 2)[1:-1].astype(np.int64)
        places = np.unique(np.maximum(places, low + 1))
        # Those that are excluded come first.
        count = int(np.argmin(np.append(excluded(places), False)))
        ends = [low, *places.tolist(), high]
        low, high = ends[count], ends[count + 1]
    return low


def tail(correct: int, guesses: int, canaries: int, curve: Curve, place: int) -> float:
    """Return the largest P(W >= correct) at a parameter, rounded up a little."""
    low, high = _LEAST, 0.0
    if not _excluded(correct, guesses, canaries, curve, np.array([place]), np.ones(1)):
        return 1.0
    while high - low > 1e-11:
        between = np.linspace(low, high, _SECTIONS)
        places = np.full(_SECTIONS, place)
        excluded = _excluded(correct, guesses, canaries, curve, places, 10**between)
        first = int(np.argmax(excluded))
        if not first:
            return float(10**low)
        low, high = between[first - 1], between[first]
    return float(10**high)


def _excluded(
    correct: int,
    guesses: int,
    canaries: int,
    curve: Curve,
    places: NDArray[np.int64],
    tau: Array,
) -> NDArray[np.bool_]:
    """Say where P(W >= correct) = tau is impossible, because n_T > 1."""
    parameter = places / PER_UNIT
    a, b, mass = tau * correct / canaries, tau * (guesses - correct) / canaries, tau
    for k in _numbers(correct):
        further = curve(parameter, np.minimum(a, 1.0))
        more, b = further - b, further
        a = a + k / (guesses - k) * more
        mass = mass + canaries / (guesses - k) * more
        if not k % 32 and (mass > 1 + _ROUNDING).all():
            break
    return np.asarray(mass > 1 + _ROUNDING)


def _numbers(correct: int) -> list[int]:
    """Return k_1 > ... > k_T = 0."""
    found, k = [], correct
    while k > 0:
        k = max(0, k - max(1, (correct - k - _EACH) // _COARSER))
        found.append(k)
    return found
