r"""How outcomes are ordered, and the exact bound that an ordering gives.

The bound
---------
Let T(k, m) be any statistic, fixed before the counts. For nested nulls N(theta),
increasing in theta, put

    pi(theta; k, m) = gamma + sup { P_(p,q)(T >= T(k, m)) : (p, q) in N(theta) and C },

where C is a confidence set for (p, q), computed from the counts at level 1 - gamma. pi
is a p-value against N(theta): at a true (p, q) in N(theta), pi <= alpha needs either
that C misses (p, q), or that P_(p,q)(T >= T_observed) <= alpha - gamma, and the second
has probability at most alpha - gamma (Berger, Boos 1994). And because neither T nor C
depends on theta, **pi increases in theta**. So any theta with pi(theta) <= alpha,
however found, is a valid lower bound: if it exceeded the truth theta0, then pi(theta0)
<= alpha too, an event of probability at most alpha under N(theta0). Without C this is
Buehler's bound, the largest valid one that is non-decreasing in T (Buehler 1957; Lloyd,
Kabaila 2003). In place of pi, a certified upper bound of it is used, which keeps the
argument.

The ordering
------------
T is itself an approximate lower confidence limit, so the level alpha contour of the
test is one of its contours. With score limits l_p <= c_p for p and c_q <= u_q for q,
and increasing a, b, h such that theta = h(a(p) - b(q)) on the null's boundary,

    T = h(a(c_p) - b(c_q) - sqrt((a(c_p) - a(l_p))^2 + (b(u_q) - b(c_q))^2))

(the method of variance estimates recovery: Zou, Donner 2008). T increases in k: with
A = a(c_p) and L = a(l_p), the argument of h has the derivative
A' - (A - L)(A' - L')/sqrt(...), and (A - L)/sqrt(...) is in [0, 1], so it is at least
min(A', L') >= 0. Likewise T decreases in m. So {T >= t} is an up-set, as
`dpaudit.audit.bounds.certificate` needs. A maximum of several such T's, one per
supporting line of a polygon, is one too.

References
----------
Buehler, *Confidence intervals for the product of two binomial parameters*, JASA 1957.
Lloyd, Kabaila, *On the optimality and limitations of Buehler bounds*, ANZJS 2003.
Berger, Boos, *P values maximized over a confidence set for the nuisance parameter*,
JASA 1994.
Zou, Donner, *Construction of confidence limits about effect measures: a general
approach*, Statistics in Medicine 2008.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri

from dpaudit.arrays import Array
from dpaudit.audit.bounds.certificate import Piece, Region, supremum
from dpaudit.audit.bounds.laws import Integers, Law

__all__ = ["Contrast", "Nulls", "Rectangle"]


@dataclass(frozen=True)
class Contrast:
    """A way to read theta off (p, q): theta = h(a(p) - b(q)).

    Parameters
    ----------
    a, b, h : callable
        Increasing and vectorised; infinite values are allowed.
    """

    a: Callable[[Array], Array]
    b: Callable[[Array], Array]
    h: Callable[[Array], Array] = np.asarray


@dataclass(frozen=True)
class Rectangle:
    """A confidence set for (p, q), a rectangle."""

    p_low: float
    p_high: float
    q_low: float
    q_high: float


_Curve: TypeAlias = Callable[[float, Rectangle], list[Piece]]

_BOX_SHARE = 1e-3  # of alpha that the confidence set costs
_WINDOW_SHARE = 1e-6
_ERROR_SHARE = 1e-4  # of alpha, for the interpolation
_SLACK = 1e-9  # rounding of T
_CLOSE = 2e-3  # in standard deviations, how near to alpha the bound stops
_MOST_STEPS = 60
_LARGEST = 200.0  # no counts that fit into memory show more


@dataclass(frozen=True)
class Nulls:
    """Nested nulls {p <= g(q)}, increasing in theta >= 0.

    Parameters
    ----------
    contrasts : list of Contrast
        One per supporting line of a null.
    boundary : callable
        (theta, box) -> pieces that cover the part of the null's boundary which
        dominates N(theta) and the box; empty if these do not meet.
    """

    contrasts: list[Contrast]
    boundary: _Curve

    def lower_bound(
        self, laws: tuple[Law, Law], hits: tuple[int, int], alpha: float
    ) -> float:
        """Return the exact lower bound on theta from two independent counts.

        Parameters
        ----------
        laws : (Law, Law)
            Of the counts on D and on D', indexed by the event's probability.
        hits : (int, int)
        alpha : float
            In (0, 1).
        """
        data, neighbour = laws
        counts = [np.array([float(hit)]) for hit in hits]
        z = _deviate(alpha)
        start = float(self._ordering(laws, counts, z)[0])
        if not start > 0:
            return 0.0
        gamma, tail = _BOX_SHARE * alpha, _WINDOW_SHARE * alpha
        box = Rectangle(
            *data.interval(hits[0], gamma / 4), *neighbour.interval(hits[1], gamma / 4)
        )
        region = self._region(laws, box, z, start - _SLACK, tail)

        def certified(theta: float) -> float:
            pieces = self.boundary(theta, box)
            if not pieces:
                return gamma
            return gamma + supremum(region, pieces, _ERROR_SHARE * alpha)

        further = float(self._ordering(laws, counts, 2 * z)[0])
        scale = (start - further) / z if math.isfinite(further) else start
        return _largest(certified, alpha, start, scale)

    def approximate_bound(
        self, laws: tuple[Law, Law], p: Array, q: Array, alpha: float
    ) -> Array:
        """Return T at the expected counts of each (p, q): roughly what to expect."""
        means = laws[0].mean(p), laws[1].mean(q)
        return self._ordering(laws, means, _deviate(alpha))

    def _ordering(
        self, laws: tuple[Law, Law], counts: Sequence[Array], z: float
    ) -> Array:
        """Return T at pairs of counts."""
        every = slice(None)
        sides = _ordered(laws, self.contrasts, z, *counts)
        return np.max([side.statistic(every, every) for side in sides], axis=0)

    def _region(
        self,
        laws: tuple[Law, Law],
        box: Rectangle,
        z: float,
        threshold: float,
        tail: float,
    ) -> Region:
        """Return {T >= threshold}, within a window that fits the box."""
        (first_k, last_k), (first_m, last_m) = (
            laws[0].window(box.p_low, box.p_high, tail),
            laws[1].window(box.q_low, box.q_high, tail),
        )
        k = np.arange(first_k, last_k + 1)
        m = np.arange(first_m, last_m + 1)
        least = np.full(len(m), len(k))
        every_m = np.arange(len(m))
        for side in _ordered(laws, self.contrasts, z, k, m):
            low, high = np.full(len(m), -1), np.full(len(m), len(k))
            while np.any(high - low > 1):
                middle = (low + high) // 2
                at = np.maximum(middle, 0)
                inside = side.statistic(at, every_m) >= threshold
                low, high = (
                    np.where(inside, low, middle),
                    np.where(inside, middle, high),
                )
            least = np.minimum(least, high)
        # Rounding must not break the up-set; the smaller index makes the set larger.
        least = np.minimum.accumulate(least[::-1])[::-1]
        return Region(*laws, k, m, least, 3 * tail)


def _deviate(alpha: float) -> float:
    """Return the normal deviate that orders the outcomes, positive for any alpha."""
    return max(-float(ndtri(alpha)), 0.5)


@dataclass(frozen=True)
class _Ordered:
    """One contrast on a range of counts: A, (A - L)^2 per k; B, (U - B)^2 per m."""

    p: Array
    below: Array
    q: Array
    above: Array
    h: Callable[[Array], Array]

    def statistic(self, k: Integers | slice, m: Integers | slice) -> Array:
        """Return T at indices into the ranges of k and m."""
        spread = np.sqrt(self.below[k] + self.above[m])
        known = np.isfinite(spread)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.where(known, self.p[k] - self.q[m], 0.0)
            value = self.h(centre - np.where(known, spread, 0.0))
        return np.where(known & ~np.isnan(value), value, -np.inf)


def _ordered(
    laws: tuple[Law, Law],
    contrasts: list[Contrast],
    z: float,
    k: Integers | Array,
    m: Integers | Array,
) -> list[_Ordered]:
    """Return each contrast on a range of counts."""
    centre_p, low, _ = laws[0].wilson(k, z)
    centre_q, _, high = laws[1].wilson(m, z)
    found = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for contrast in contrasts:
            p, q = contrast.a(centre_p), contrast.b(centre_q)
            # An infinite limit makes T = -inf, also where the centre is infinite.
            below = (p - contrast.a(low)) ** 2
            above = (contrast.b(high) - q) ** 2
            below[np.isnan(below)] = np.inf
            above[np.isnan(above)] = np.inf
            found.append(_Ordered(p, below, q, above, contrast.h))
    return found


def _largest(
    certified: Callable[[float], float], alpha: float, start: float, scale: float
) -> float:
    """Return a theta with certified(theta) <= alpha, nearly the largest.

    `certified` is nearly the tail of a normal law in theta, with standard deviation
    `scale`: steps are taken on that scale, kept inside a bracket.
    """
    target = float(ndtri(alpha))
    low, high = 0.0, math.inf
    found = False
    theta = min(start, _LARGEST)
    for _ in range(_MOST_STEPS):
        value = certified(theta)
        gap = target - float(ndtri(min(max(value, 1e-300), 1 - 1e-16)))
        if value <= alpha:
            low, found = theta, True
            if gap < _CLOSE:
                break
        else:
            high = theta
        step = (gap - _CLOSE / 2) * scale
        theta = theta + float(np.clip(step, -4 * scale, 4 * scale))
        if not low < theta < high:
            theta = (low + high) / 2 if math.isfinite(high) else low + scale
        theta = min(theta, _LARGEST)
        if high - low < _CLOSE * scale / 4 or low == theta == _LARGEST:
            break
    return low if found else 0.0
