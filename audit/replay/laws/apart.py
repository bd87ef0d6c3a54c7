"""How far the laws of one number lie apart that are of two kinds, or of two scales.

Laws of one kind and one scale know the supremum of their loss
(`dpaudit.audit.replay.laws.coded`). Two scales of most noise make it infinite: tails
that fall exponentially, at two rates, leave no bound. Tails that fall as powers do not:
of Student's laws with df degrees of freedom at the scales s and t the loss tends to
df log(s/t) far out. That is why noise whose scale follows a smooth bound of the local
sensitivity is Cauchy's (Nissim, Raskhodnikova, Smith, *Smooth sensitivity and sampling
in private data analysis*, STOC 2007).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import FIRST, SURE, Lattice, law_of

__all__ = ["atoms_of", "moved_by", "suprema_of"]

_Side: TypeAlias = tuple[int, float, float]  # a code, the mean, the ratio
_UNKNOWN = math.nan, math.nan

_SAME = 1e-12
_FAR = 30.0  # arsinh of the farthest point, in scales: 5e12
_REACH = np.sinh(np.linspace(-_FAR, _FAR, 6001))
_NEAR = np.geomspace(1e-12, 0.5, 120)  # from an end
_STILL = 1e-3  # by which a bounded loss does not change any more
_ROUNDED = 1e-9  # relative, of a place at an end
_ERROR = 1e-7  # relative, of a supremum
_FINEST = 1e8  # steps, within which their sixth digit is known
_EXACT = 1e3  # scales from 0, within which a number may be so close to an end


def suprema_of(one: _Side, two: _Side, step: float) -> tuple[float, float]:
    """Return the suprema of the loss, both ways, of laws mean + ratio u of numbers.

    NaN where they are not known.

    Parameters
    ----------
    one, two : tuple of int, float, float
        The family of u or its code, the mean, and the ratio.
    step : float
        The distance of the means in ratios where both have the same size, else NaN.
    """
    laws = [law_of(code) for code, _, _ in (one, two)]
    lattices = [isinstance(law, Lattice) for law in laws]
    coded = all(lattices) or type(laws[0]) is type(laws[1])
    coded &= min(one[0], two[0]) >= FIRST
    if coded and not math.isnan(step):
        turned = one[2] * two[2] < 0
        own = _UNKNOWN if turned else _of_steps(one[0], two[0], step)
        if turned and all(isinstance(law, Lattice) and law.finite for law in laws):
            return _finite_suprema(one, two)
        if all(lattices) or (not turned and one[0] == two[0]) or np.isfinite(own).all():
            return own
    if any(lattices):
        return _finite_suprema(one, two)
    return _placed_suprema(one, two)


def moved_by(code: int, other: int) -> float | None:
    """Return how far a law is moved of which nothing else differs, if it says so."""
    moves = getattr(law_of(code), "moves", None)
    moved: float | None = None if moves is None else moves(law_of(other))
    return moved


@lru_cache(maxsize=4096)
def _of_steps(code: int, other: int, steps: float) -> tuple[float, float]:
    law, there = law_of(code), None if code == other else law_of(other)
    if hasattr(law, "suprema"):
        forth, back = law.suprema(steps, there)
        return forth, back
    both = law.supremum(steps, there)
    return both, both


def atoms_of(one: _Side, two: _Side) -> tuple[Array, Array] | None:
    """Return probabilities of the numbers that either of two laws may give.

    None if one is on no lattice, or the places are not known to enough digits. Of laws
    that go on without end those of any size, if these are nearly all.

    Returns
    -------
    tuple of ndarray
        Of the same numbers, in one order; 0 where a number is none of the law's.
    """
    laws = [law_of(code) for code, _, _ in (one, two)]
    if not all(isinstance(law, Lattice) for law in laws):
        return None
    # In units of the smaller steps, from the mean of the first: of whatever size.
    unit = min(abs(one[2]), abs(two[2]))
    with np.errstate(all="ignore"):
        ends = [abs(mean) / unit for _, mean, _ in (one, two)]
        apart = (two[1] - one[1]) / unit
    if not max(*ends, abs(apart)) < _FINEST:
        return None
    places, tables = [], []
    for law, start, (_, _, ratio) in zip(laws, (0.0, apart), (one, two), strict=True):
        first, p = law.table()
        if abs(p.sum() - 1) > SURE:  # it goes on for longer
            return None
        k = first + np.flatnonzero(p).astype(np.float64)
        places.append(np.round(start + (ratio / unit) * k, 6) + 0.0)
        tables.append(p[p > 0])
    values = np.unique(np.concatenate(places))
    found = np.zeros((2, len(values)))
    for row, at, p in zip(found, places, tables, strict=True):
        np.add.at(row, np.searchsorted(values, at), p)
    return found[0], found[1]


def _finite_suprema(one: _Side, two: _Side) -> tuple[float, float]:
    """Return the suprema, both ways, of two laws on finitely many numbers each."""
    laws = [law_of(code) for code, _, _ in (one, two)]
    if not all(isinstance(law, Lattice) for law in laws):
        return math.inf, math.inf
    if not all(law.finite for law in laws):  # steps of 1 or 2, of which half are taken
        return _UNKNOWN
    found = atoms_of(one, two)
    if found is None:
        return _UNKNOWN
    if ((found[0] > 0) != (found[1] > 0)).any():
        return math.inf, math.inf
    gaps = np.log(found[0]) - np.log(found[1])
    return max(0.0, float(gaps.max()) - _SAME), max(0.0, -float(gaps.min()) - _SAME)


@lru_cache(maxsize=4096)
def _placed_suprema(one: _Side, two: _Side) -> tuple[float, float]:
    made, falls = [], []
    for code, mean, ratio in (one, two):
        law = law_of(code)
        known = hasattr(law, "jumps") and not hasattr(law, "lattice")
        if code < FIRST:  # of families those on the whole line
            known = known and not law.jumps
        if hasattr(law, "lattice") and ratio:  # a staircase
            falls.append(law.lattice.above / abs(ratio))
            if len(falls) == 2 and not math.isclose(*falls, rel_tol=1e-6):
                return math.inf, math.inf
            continue
        if not (known and ratio and math.isfinite(ratio) and math.isfinite(mean)):
            return _UNKNOWN
        made.append(Placed(law, mean, ratio))
    return suprema_apart(*made) if len(made) == 2 else _UNKNOWN


@dataclass(frozen=True)
class Placed:
    """The law of mean + ratio u, where u has a density.

    Parameters
    ----------
    law : object
        Of u.
    mean, ratio : float
    """

    law: Any
    mean: float
    ratio: float

    def log(self, x: Array) -> Array:
        """Return the logarithm of the density at x, -inf outside; NaN if not known."""
        with np.errstate(all="ignore"):
            log = self.law.log_density((x - self.mean) / self.ratio)
        return np.asarray(log - math.log(abs(self.ratio)))

    @property
    def edges(self) -> Array:
        """Where the density of x jumps, or begins, or ends."""
        return self.mean + self.ratio * np.asarray(self.law.jumps, dtype=np.float64)

    @property
    def points(self) -> Array:
        """Numbers everywhere, close to the ends too."""
        steps = abs(self.ratio) * np.concatenate([-_NEAR, _NEAR])
        near = [edge + steps for edge in self.edges]
        return np.concatenate([self.mean + self.ratio * _REACH, *near])


def suprema_apart(one: Placed, two: Placed) -> tuple[float, float]:
    """Return the suprema of log p/q, and of log q/p.

    Of many points, and then around the best of them. Infinite where one law has numbers
    that the other has not, or where the loss still grows far out or close to an end:
    over six powers of ten, so that powers of x that differ by 1e-4 show.
    """
    x = np.unique(np.concatenate([one.points, two.points]))
    logs = one.log(x), two.log(x)
    known = ~np.isnan(logs).any(axis=0)
    here, there = (known & np.isfinite(log) for log in logs)
    size = np.abs(x) + abs(one.ratio) + abs(two.ratio)
    edges = np.concatenate([one.edges, two.edges])
    at_an_end = np.zeros(len(x), dtype=bool)
    for edge in edges:
        at_an_end |= np.abs(x - edge) <= _ROUNDED * size
    both = here & there
    if not both.any():
        return math.inf, math.inf
    alone = [bool((side & ~both & ~at_an_end).any()) for side in (here, there)]
    x, found = x[both], []
    for outside, sides in zip(alone, ((one, two), (two, one)), strict=True):
        loss = partial(_loss, *sides)
        if outside or _grows(x, loss(x), one, two, edges):
            found.append(math.inf)
        else:
            found.append(max(0.0, _largest(x, loss)) * (1 - _ERROR))
    return found[0], found[1]


def _loss(one: Placed, two: Placed, x: Array) -> Array:
    """Return log p(x)/q(x), less what rounding may have added."""
    log, log2 = one.log(x), two.log(x)
    least = 4 * np.finfo(np.float64).eps
    # Close to an end little is left of x, less the mean.
    near = least * (np.abs(x) + abs(one.mean) + abs(two.mean))
    with np.errstate(invalid="ignore", over="ignore"):
        off = [np.abs(each.log(x + near) - each.log(x - near)) for each in (one, two)]
        loss = log - log2 - least * (np.abs(log) + np.abs(log2)) - sum(off)
    return np.where(np.isfinite(loss), loss, -np.inf)


def _grows(x: Array, loss: Array, one: Placed, two: Placed, edges: Array) -> bool:
    """Say whether a loss still grows at the ends of what is possible."""
    scale = max(abs(one.ratio), abs(two.ratio))
    middle = (one.mean + two.mean) / 2
    for side in (-1, 1):
        out = side * (x - middle)
        if out.max() > 1e9 * scale:  # without end
            near = loss[np.argmin(np.abs(out - 1e6 * scale))]
            if loss[np.argmax(out)] - near > _STILL:
                return True
    for edge in edges[np.abs(edges) < _EXACT * scale]:
        for side in (-1, 1):
            out = side * (x - edge) / scale
            close = (out > 1e-11) & (out < 1e-2)
            if close.any():
                order = np.argsort(out[close])
                values = loss[close][order]
                if values[0] - values[len(values) // 2] > _STILL:
                    return True
    return False


def _largest(x: Array, loss: Callable[[Array], Array]) -> float:
    """Return the largest loss at some points, and then around the best of them."""
    most = -math.inf
    for _ in range(5):
        values = loss(x)
        best = int(np.argmax(values))
        most = max(most, float(values[best]))
        x = np.linspace(x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], 101)
    return most
