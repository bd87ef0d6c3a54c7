r"""Laws that are made of others: a draw of which something is known, and steps.

Whether z < c says of a draw z where it lies, and nothing else: given that it holds, z
has the density f(z)/P(z < c) there, and 0 elsewhere. So code that compares a draw with
a number, and uses it then, has a draw of another law (`Cut`). What it is known to lie
in are intervals: of |z| < c, or of another function of z, it may be several.

A whole number K with a uniform one w U, 0 < w <= 1, has a density as well
(`WidenedLattice`): P(K = k)/w between k and k + w.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import SURE, Lattice, law_of
from dpaudit.audit.replay.laws.one_draw import distribution

__all__ = ["Cut", "WidenedLattice"]

_SAME = 1e-9  # relative, of ends that are one


@dataclass(frozen=True)
class Cut:
    """A draw that is known to lie in one of some intervals.

    Parameters
    ----------
    family : int
        Of the draw.
    ends : tuple of (float, float)
        Of the intervals, ascending; infinite ones too.
    """

    family: int
    ends: tuple[tuple[float, float], ...]

    @staticmethod
    def between(law: Any, low: Array, high: Array) -> Array:
        """Return the probability of lying between numbers, 0 if they are crossed."""
        below = law.cdf(high) - law.cdf(low)
        above = law.sf(low) - law.sf(high)
        return np.asarray(np.maximum(np.where(low > law.median(), above, below), 0.0))

    @staticmethod
    def ends_of(family: int) -> Array:
        """Return where the density of standard draws of a family jumps."""
        return np.asarray(getattr(law_of(family), "jumps", ()), dtype=np.float64)

    @property
    def law(self) -> Any:
        """The law, as SciPy has such."""
        return _law_of(self)

    @property
    def jumps(self) -> Array:
        """Where the density jumps."""
        inner = np.ravel(self.ends)
        own = [
            x
            for x in Cut.ends_of(self.family)
            if any(low <= x <= high for low, high in self.ends)
        ]
        return np.unique([*inner[np.isfinite(inner)], *own])

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of the density."""
        return self.law.logpdf(u)

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return a bound of |log f(u)/g(u - shift)|, infinite where none is known.

        Of laws of linear loss between the same ends it is the size of the shift, and
        what the probabilities of lying there differ by.
        """
        other = self if other is None else other
        if not isinstance(other, Cut) or other.family != self.family:
            return math.inf
        ends, others = np.ravel(self.ends), np.ravel(other.ends)
        near = len(ends) == len(others) and np.allclose(
            ends, others + shift, rtol=_SAME, atol=_SAME
        )
        linear = getattr(law_of(self.family), "linear", False)
        if not near or not (linear or not shift):
            return math.inf
        return abs(shift) + abs(math.log(self.law.mass / other.law.mass))

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        return np.asarray(self.law.ppf(rng.random(size)))


class _CutLaw:
    """What SciPy has of a law, of one between ends."""

    def __init__(self, cut: Cut) -> None:
        self._base: Any = distribution(cut.family)
        self._density = law_of(cut.family).log_density
        self._low, self._high = np.array(cut.ends).T
        self._masses = Cut.between(self._base, self._low, self._high)
        self.mass = float(self._masses.sum())

    def logpdf(self, u: Any) -> Array:
        u = np.asarray(u, dtype=np.float64)
        at = u[..., np.newaxis]
        inside = (at >= self._low) & (at <= self._high)
        log = self._density(u) - math.log(self.mass)
        return np.asarray(np.where(inside.any(axis=-1), log, -np.inf))

    def pdf(self, u: Any) -> Array:
        return np.asarray(np.exp(self.logpdf(u)))

    def cdf(self, u: Any) -> Array:
        high = np.clip(np.asarray(u)[..., np.newaxis], self._low, self._high)
        return np.asarray(Cut.between(self._base, self._low, high).sum(-1) / self.mass)

    def sf(self, u: Any) -> Array:
        low = np.clip(np.asarray(u)[..., np.newaxis], self._low, self._high)
        return np.asarray(Cut.between(self._base, low, self._high).sum(-1) / self.mass)

    def ppf(self, p: Any) -> Array:
        rest = np.asarray(p, dtype=np.float64) * self.mass
        until = np.cumsum(self._masses)
        k = np.minimum(np.searchsorted(until, rest), len(until) - 1)
        rest = np.clip(rest - (until - self._masses)[k], 0.0, self._masses[k])
        low, high = self._low[k], self._high[k]
        base = self._base
        upper = base.isf(np.clip(base.sf(low) - rest, 0.0, 1.0))
        lower = base.ppf(np.clip(base.cdf(low) + rest, 0.0, 1.0))
        found = np.where(low > base.median(), upper, lower)
        return np.asarray(np.clip(found, low, high))

    def isf(self, q: Any) -> Array:
        rest = np.asarray(q, dtype=np.float64) * self.mass  # far out 1 - q is 1
        above = np.cumsum(self._masses[::-1])
        k = len(above) - 1 - np.minimum(np.searchsorted(above, rest), len(above) - 1)
        beyond = (above - self._masses[::-1])[::-1]
        rest = np.clip(rest - beyond[k], 0.0, self._masses[k])
        low, high, base = self._low[k], self._high[k], self._base
        upper = base.isf(np.clip(base.sf(high) + rest, 0.0, 1.0))
        lower = base.ppf(np.clip(base.cdf(high) - rest, 0.0, 1.0))
        found = np.where(high > base.median(), upper, lower)
        return np.asarray(np.clip(found, low, high))

    def median(self) -> float:
        return float(self.ppf(0.5))


_law_of = lru_cache(maxsize=1024)(_CutLaw)


@dataclass(frozen=True)
class WidenedLattice:
    """A whole number, and a uniform one that is added.

    Parameters
    ----------
    lattice : Lattice
    width : float
        Between 0 and 1: what the uniform number is multiplied with.
    """

    lattice: Lattice
    width: float

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        start, p = self.lattice.table()
        return start + np.arange(len(p), dtype=np.float64), p

    @property
    def law(self) -> "WidenedLattice":
        """Itself: it has what SciPy has of laws."""
        return self

    @cached_property
    def jumps(self) -> Array:
        """Where the density jumps."""
        k, p = self._table
        k = k[p > 1e-15]
        return np.unique(np.concatenate([k, k + self.width]))

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of the density."""
        k = np.floor(u)
        log = self.lattice.log_probability(k) - math.log(self.width)
        return np.asarray(np.where(u - k <= self.width, log, -np.inf))

    def cdf(self, u: Any) -> Array:
        """Return the distribution function."""
        k, p = self._table
        u = np.asarray(u, dtype=np.float64)
        place = np.clip(np.floor(u) - k[0], -1, len(k) - 1).astype(np.intp)
        before = np.concatenate([[0.0], np.cumsum(p)])
        part = np.clip((u - np.floor(u)) / self.width, 0.0, 1.0)
        part = np.where(np.floor(u) > k[-1], 1.0, part)
        inside = before[place] + p[place] * part
        return np.asarray(np.where(place < 0, 0.0, np.minimum(inside, 1.0)))

    def sf(self, u: Any) -> Array:
        """Return what is above."""
        return np.asarray(1 - self.cdf(u))

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the supremum of |log f(u)/f(u - shift)|: both have steps."""
        if other is not None and other != self:
            return math.inf
        marks = np.unique(np.concatenate([self.jumps, self.jumps + shift]))
        u = (marks[1:] + marks[:-1])[np.diff(marks) > _SAME] / 2
        one, two = self.log_density(u), self.log_density(u - shift)
        with np.errstate(invalid="ignore"):
            found = np.nan_to_num(np.abs(one - two), nan=0.0, posinf=np.inf)
        least = -30 if self.lattice.exact else math.log(SURE)
        found = found[np.maximum(one, two) > least]
        return float(found.max(initial=0.0)) if shift else 0

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        return self.lattice.sample(rng, size) + self.width * rng.random(size)
