r"""How long a Tardos code must be, and where to accuse: bounds for every pirate.

Let S_i be the symmetric score (`dpaudit.fingerprinting.codes`), m the length, Z the
threshold: user i is accused if S_i >= Z. W.l.o.g. p = (1 + q)/2, the chance of a 1.

Innocent users. Fix q and the pirated word y, which may depend on q, on the codewords of
everybody but i, and on coins. A term of S_i is y_j U_j, where U_j takes the value
sqrt((1-p)/p) with probability p and -sqrt(p/(1-p)) otherwise, independently over j. For
l >= 0, E exp(l y U) is convex in y, hence largest at y = -1 or 1, and its value at
y = -1 is that at y = 1 with p and 1 - p exchanged. Of these two the one with the
smaller chance p* = min(p, 1-p) is larger: the even moments of U
agree, and the odd ones, (p(1-p))^(1-r/2) ((1-p)^(r-1) - p^(r-1)), are positive for
p < 1/2. So, for all pirates and all that they know,

.. math:: P(S_i \ge Z) \le \inf_l e^{-l Z} M(l)^m, \quad
          M(l) = \int E[e^{l U} \mid p^*] dF(p).

(Bernstein's inequality with the largest term sqrt((1-t)/t) is a weaker form of this.)

Pirates. Let a coalition of c users obey the marking condition: where all their symbols
agree, y is that symbol; elsewhere it is anything in [-1, 1], chosen with all they see,
which does not include q. If none of them is accused, the sum of their scores is below
c Z. It is sum_j y_j W_j, W = (X - c p)/sqrt(p(1-p)), X their number of ones in a
column. Given all they see, the p_j are independent, and p_j depends on column j alone.
So for a >= 0 the mean of exp(-a sum_j y_j W_j) is at most the product over columns of
the largest that a choice of y for each X allows, and again y = -1 or 1 is enough:

.. math:: P(\text{none accused}) \le \inf_a e^{a c Z} N_c(a)^m, \quad
   N_c(a) = \sum_{X=0}^c \max_y \int \binom cX p^X (1-p)^{c-X} e^{-a y W} dF(p).

Both are integrals over an angle, done by Gauss's rule, and infima over a grid (any l or
a gives a valid bound). `CodeLength.calibrated` takes the cut-off and the threshold for
which the length is least. The Gaussian limit of all this is pi^2/2 c^2 ln(1/eps1): each
column adds 2/pi to the sum, since with f(p) = E[y | p] and f(0) = -1, f(1) = 1,

    int E[y W | p] dF(p) = int f'(p) sqrt(p (1-p)) dF(p) = (f(1) - f(0))/pi

for the arcsine law without cut-off. The lengths of this module come down to it slowly:
1.46 times it at c = 5, 1.26 at c = 20, 1.11 at c = 100 (eps1 = 1e-4, eps2 = 0.1), as
the rate c^(-1/3) says that Laarhoven and de Weger prove.

`CodeLength.as_published` gives Tardos's own constants: m = 100 c^2 k, Z = 20 c k,
t = 1/(300 c), k = ceil(ln 1/eps1). They were proven for the score that counts only
y_j = 1. With the symmetric score both bounds above hold with room to spare.

References
----------
Tardos, *Optimal probabilistic fingerprint codes*, Journal of the ACM 55(2), 2008.
Laarhoven and de Weger, *Optimal symmetric Tardos traitor tracing schemes*, Designs,
Codes and Cryptography 71, 2014 (lengths by Chernoff bounds; limit 4.93 c^2 ln(1/eps1)).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.fingerprinting.codes import check_cutoff
from dpaudit.validation import (
    Checked,
    Count,
    Fraction,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

__all__ = ["CodeLength", "false_accusation_bound", "missing_bound"]

_NODES = 256
_EXPONENTS = 160
_HALVINGS = 60
# Beyond 256 pirates the integrals would need more nodes.
_check_coalition = partial(check_count, maximum=256)
_Coalition: TypeAlias = Annotated[int, _check_coalition]


@dataclass(frozen=True)
class CodeLength(Checked):
    """What a Tardos code needs against a coalition.

    Parameters
    ----------
    coalition : int
        c, the most pirates, at least 1.
    length : int
        m, the number of positions.
    cutoff : float
        t, in (0, 1/2).
    threshold : float
        Z: whose score reaches it is accused.
    false_accusation : float
        eps1: the most that the probability may be of accusing a given innocent user.
    missing : float
        eps2: the most that the probability may be of accusing no pirate at all.

    Examples
    --------
    >>> CodeLength.calibrated(3, false_accusation=1e-4, missing=0.1).length
    616
    >>> CodeLength.as_published(3, false_accusation=1e-4).length
    9000
    """

    coalition: _Coalition
    length: Count
    cutoff: Annotated[float, check_cutoff]
    threshold: Positive
    false_accusation: Fraction
    missing: Fraction

    @classmethod
    def calibrated(
        cls, coalition: int, *, false_accusation: float, missing: float
    ) -> "CodeLength":
        """Return the shortest length that the bounds of this module prove.

        It holds for every coalition of at most `coalition` users.

        Parameters
        ----------
        coalition : int
            From 1 to 256.
        false_accusation, missing : float
            In (0, 1). For n users and any false accusation at all, divide by n.
        """
        return _calibrated(
            _check_coalition("coalition", coalition),
            check_fraction("false_accusation", false_accusation),
            check_fraction("missing", missing),
        )

    @classmethod
    def as_published(cls, coalition: int, *, false_accusation: float) -> "CodeLength":
        """Return Tardos's length; its eps2 is eps1^(c/4)."""
        c = _check_coalition("coalition", coalition)
        eps1 = check_fraction("false_accusation", false_accusation)
        k = math.ceil(-math.log(eps1))
        return cls(
            coalition=c,
            length=100 * c**2 * k,
            cutoff=1 / (300 * c),
            threshold=20.0 * c * k,
            false_accusation=eps1,
            missing=eps1 ** (c / 4),
        )


def false_accusation_bound(*, length: int, threshold: float, cutoff: float) -> float:
    """Return the bound on the probability of accusing a given innocent user.

    Parameters
    ----------
    length : int
        m.
    threshold : float
        Z, > 0.
    cutoff : float
        t, in (0, 1/2).

    Examples
    --------
    >>> bound = false_accusation_bound(length=1000, threshold=150.0, cutoff=0.01)
    >>> f"{bound:.1e}"
    '4.2e-05'
    """
    m = check_count("length", length)
    z = check_positive("threshold", threshold) / m
    rate = _rate(*_innocent(check_cutoff("cutoff", cutoff)), z)
    return math.exp(-m * rate)


def missing_bound(
    *, length: int, threshold: float, cutoff: float, coalition: int
) -> float:
    """Return the bound on the probability that no pirate is accused.

    The largest over coalitions of 1 to `coalition` users, for all that they do within
    the marking condition.

    Parameters
    ----------
    length, threshold, cutoff
        As for `false_accusation_bound`.
    coalition : int
        c, from 1 to 256.
    """
    m = check_count("length", length)
    z = check_positive("threshold", threshold) / m
    t, most = check_cutoff("cutoff", cutoff), _check_coalition("coalition", coalition)
    rates = [_rate(*_guilty(t, c), -c * z) for c in range(1, most + 1)]
    return math.exp(-m * min(rates))


@lru_cache(maxsize=64)
def _calibrated(coalition: int, eps1: float, eps2: float) -> CodeLength:
    cutoffs = np.geomspace(1e-5, 0.45, 26)
    for _ in range(2):  # a coarse grid, then a fine one around its best
        found = [_shortest(t, coalition, eps1, eps2) for t in cutoffs]
        best = int(np.argmin([each.length for each in found]))
        low, high = max(best - 1, 0), min(best + 1, len(cutoffs) - 1)
        cutoffs = np.geomspace(cutoffs[low], cutoffs[high], 9)
    shortest = min(found, key=lambda each: each.length)
    while True:
        missed = missing_bound(
            length=shortest.length,
            threshold=shortest.threshold,
            cutoff=shortest.cutoff,
            coalition=coalition,
        )
        if missed <= eps2:
            return shortest
        # A smaller coalition is harder to find: none was met with, but none is ruled
        # out. A longer code with the same Z/m serves all.
        length = math.ceil(shortest.length * 1.02)
        threshold = shortest.threshold / shortest.length * length
        shortest = replace(shortest, length=length, threshold=threshold)


def _shortest(cutoff: float, coalition: int, eps1: float, eps2: float) -> CodeLength:
    """Return the least length at a cut-off, and the Z that makes both bounds equal."""
    innocent, guilty = _innocent(cutoff), _guilty(cutoff, coalition)
    wanted = -math.log(eps1), -math.log(eps2)
    low, high = 0.0, 1.0 / coalition
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        rates = _rate(*innocent, share), _rate(*guilty, -coalition * share)
        if rates[0] * wanted[1] <= rates[1] * wanted[0]:
            low = share
        else:
            high = share
    rates = _rate(*innocent, low), _rate(*guilty, -coalition * low)
    least = max(
        want / rate if rate > 0 else math.inf
        for want, rate in zip(wanted, rates, strict=True)
    )
    length = math.ceil(min(least, 1e15))
    return CodeLength(coalition, length, float(cutoff), low * length, eps1, eps2)


def _rate(exponents: Array, logs: Array, slope: float) -> float:
    """Return max over l of l * slope - log M(l), at least 0."""
    return max(float(np.max(exponents * slope - logs)), 0.0)


@lru_cache(maxsize=64)
def _innocent(cutoff: float) -> tuple[Array, Array]:
    """Return exponents l and log M(l)."""
    p, weights = _chances(cutoff)
    rare = np.minimum(p, 1 - p)[:, np.newaxis]
    exponents = np.geomspace(1e-4, 10.0, _EXPONENTS)
    with np.errstate(over="ignore"):
        means = rare * np.exp(exponents * np.sqrt((1 - rare) / rare))
        means += (1 - rare) * np.exp(-exponents * np.sqrt(rare / (1 - rare)))
    return exponents, np.log(weights @ means)


@lru_cache(maxsize=512)
def _guilty(cutoff: float, coalition: int) -> tuple[Array, Array]:
    """Return exponents a and log N_c(a)."""
    p, weights = _chances(cutoff)
    exponents = np.geomspace(1e-3, 30.0, _EXPONENTS // 2) / coalition
    total = np.zeros(len(exponents))
    for ones in range(coalition + 1):
        # In logarithms: a chance that vanishes may meet a tilt that overflows.
        chance = np.log(weights) + math.log(math.comb(coalition, ones))
        chance += ones * np.log(p) + (coalition - ones) * np.log1p(-p)
        tilt = np.multiply.outer(
            exponents, (ones - coalition * p) / np.sqrt(p * (1 - p))
        )
        with np.errstate(over="ignore", under="ignore"):
            as_one = np.exp(chance - tilt).sum(axis=1)
            as_minus_one = np.exp(chance + tilt).sum(axis=1)
            if ones == 0:
                total += as_minus_one
            elif ones == coalition:
                total += as_one
            else:
                total += np.maximum(as_one, as_minus_one)
    return exponents, np.log(total)


def _chances(cutoff: float) -> tuple[Array, Array]:
    """Return nodes p and weights of the law F."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    least = math.asin(math.sqrt(cutoff))
    angles = math.pi / 4 + nodes * (math.pi / 4 - least)
    return np.sin(angles) ** 2, weights / 2
