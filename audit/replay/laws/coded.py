"""Laws of standard draws that have a code, beside the families with a name.

Noise on the integers (two-sided geometric, rounded, and what sums make of it),
densities that SciPy knows, and entries of vectors (`dpaudit.audit.replay.laws.joint`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kve

from dpaudit.arrays import Array

__all__ = [
    "FIRST",
    "MOST_STEPS",
    "Density",
    "GammaDifference",
    "Lattice",
    "code_of",
    "groups_of",
    "is_joint",
    "is_whole",
    "lattice_of",
    "law_of",
    "take_vectors",
]

FIRST, _LAST = 14, 2**20  # codes; those below are of `Family`
_REACH = np.sinh(np.linspace(-12.0, 12.0, 4001))
MOST_STEPS = 2**14
_ERROR = 1e-7  # relative, of losses that are differences of computed probabilities
_SAME = 1e-9  # relative, of parameters that are one number, rounded differently
_OFF = _SURE = 1e-6  # of an integer, by rounding; a probability that no error makes up
_TO_ALL_DIGITS = frozenset(("t", "gamma", "beta"))  # log-densities, however small
_UNDERFLOW = -600.0  # log-density below which one may be made up
_FARTHEST = -60.0  # log-probability beyond which a lattice is cut


@dataclass(frozen=True)
class Lattice:
    """Probabilities of the integers, beyond a table in geometric proportion.

    Parameters
    ----------
    start : int
        The first integer of the table.
    log : tuple of float
        Log-probabilities of it and those after it.
    below, above : float
        By how much the log-probability falls with every step beyond the table;
        infinite where there is nothing beyond.
    exact : bool
        Whether small probabilities, too, are right to many digits.
    """

    start: int
    log: tuple[float, ...]
    below: float = math.inf
    above: float = math.inf
    exact: bool = False

    @classmethod
    def of(cls, start: int, p: Array, least: float) -> "Lattice":
        """Return a lattice of a table whose ends go on for ever below `least`."""
        sure = np.flatnonzero(p > least)
        first, last = int(sure[0]), int(sure[-1])
        with np.errstate(divide="ignore"):
            log = np.log(p[first : last + 1])
        wide = len(log) > 2
        below = float(log[1] - log[0]) if wide and first > 0 else math.inf
        above = float(log[-2] - log[-1]) if wide and last < len(p) - 1 else math.inf
        return cls(start + first, tuple(log.tolist()), below, above)

    @classmethod
    def among(cls, numbers: Sequence[int], p: Sequence[float]) -> "Lattice":
        """Return finitely many integers with their probabilities."""
        start = min(numbers)
        table = np.zeros(max(numbers) - start + 1)
        np.add.at(table, np.asarray(numbers) - start, p)
        with np.errstate(divide="ignore"):
            return cls(start, tuple(np.log(table).tolist()))

    @property
    def finite(self) -> bool:
        """Whether there is nothing beyond the table."""
        return self.below == self.above == math.inf

    def log_probability(self, k: Array) -> Array:
        """Return the log-probabilities of integers, given as floats."""
        table = np.asarray(self.log)
        place = np.asarray(k, dtype=np.float64) - self.start
        inside = np.clip(place, 0, len(table) - 1)
        beyond = place - inside
        with np.errstate(invalid="ignore"):
            fall = np.where(beyond < 0, -beyond * self.below, beyond * self.above)
        at = table[np.nan_to_num(inside).astype(np.intp)]
        return np.asarray(np.where(beyond == 0, at, at - fall))

    def log_density(self, u: Array) -> Array:
        """Return the log-probability of an integer, up to rounding."""
        whole = np.rint(u)
        log = self.log_probability(whole)
        return np.asarray(np.where(np.abs(u - whole) > _OFF, -np.inf, log))

    def table(self) -> tuple[int, Array]:
        """Return the first integer, and probabilities of any size."""
        low = _reach(self.log[0], self.below)
        high = _reach(self.log[-1], self.above)
        start = self.start - low
        k = np.arange(start, self.start + len(self.log) + high, dtype=np.float64)
        return start, np.exp(self.log_probability(k))

    def among_those(
        self, held: Callable[[Array], NDArray[np.bool_]]
    ) -> "Lattice | None":
        """Return the law of an integer of which it is known that something holds."""
        start, p = self.table()
        some = held(start + np.arange(len(p), dtype=np.float64))
        taken = np.flatnonzero(some & (p > 0))
        if not len(taken):
            return None
        first, last = int(taken[0]), int(taken[-1])
        part = np.where(some, p, 0.0)[first : last + 1]
        with np.errstate(divide="ignore"):
            log = np.log(part / part.sum())
        below = self.below if first == 0 else math.inf
        above = self.above if last == len(p) - 1 else math.inf
        return Lattice(start + first, tuple(log.tolist()), below, above)

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the greater of both suprema."""
        return max(self.suprema(shift, other))

    def suprema(self, shift: float, other: Any = None) -> tuple[float, float]:
        """Return the suprema of log P(k)/Q(k - shift), and of its negative.

        Over k possible for either. Q is P by default. What the error of the
        probabilities may have added is taken off. NaN where it takes probabilities that
        are not known well enough.
        """
        other, step = self if other is None else other, round(shift)
        if not isinstance(other, Lattice):
            return math.inf, math.inf
        if abs(shift - step) > 1e-9 * max(1.0, abs(shift)):
            return math.inf, math.inf
        low = min(self.start, other.start + step) - 2
        high = max(self.start + len(self.log), other.start + step + len(other.log)) + 2
        if high - low > 4 * MOST_STEPS:
            return math.nan, math.nan
        k = np.arange(low, high, dtype=np.float64)
        one, two = self.log_probability(k), other.log_probability(k - step)
        with np.errstate(invalid="ignore"):
            losses = np.nan_to_num(one - two, nan=0.0, posinf=np.inf, neginf=-np.inf)
        if other is not self:
            if not _near((self.below, self.above), (other.below, other.above)):
                return math.nan, math.nan
            if not (self.exact and other.exact):
                # Beyond the tables of two laws little is known of either.
                losses = losses[np.maximum(one, two) > math.log(_SURE)]
        ends = float(losses.max(initial=0.0)), -float(losses.min(initial=0.0))
        forth, back = (
            max(0.0, most - _ERROR * max(1.0, most)) if most < math.inf else most
            for most in ends
        )
        return forth, back

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent integers, as floats."""
        start, p = self.table()
        return np.asarray(rng.choice(len(p), size, p=p / p.sum()) + float(start))


def _near(one: tuple[float, float], two: tuple[float, float]) -> bool:
    """Say whether tails fall alike."""
    return bool(np.isclose(one, two, rtol=1e-6, atol=0).all())


def _reach(log: float, fall: float) -> int:
    """Return how many steps beyond a table have a probability of any size."""
    if not (math.isfinite(fall) and fall > 0):
        return 0
    return min(MOST_STEPS, max(0, math.ceil((log - _FARTHEST) / fall)))


@lru_cache(maxsize=256)
def _frozen(name: str, parameters: tuple[float, ...]) -> Any:
    from scipy import stats

    return getattr(stats, name)(*parameters)


@dataclass(frozen=True)
class Density:
    """A law that SciPy knows.

    Parameters
    ----------
    name : str
        In `scipy.stats`.
    parameters : tuple of float
    """

    name: str
    parameters: tuple[float, ...]

    @property
    def law(self) -> Any:
        """The law itself."""
        return _frozen(self.name, self.parameters)

    @property
    def jumps(self) -> Array:
        """Where the density jumps: where it ends."""
        ends = np.array(self.law.support())
        return ends[np.isfinite(ends)]

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density, NaN where that may be an underflow."""
        with np.errstate(all="ignore"):
            log = np.asarray(self.law.logpdf(u))
        few = (log < _UNDERFLOW) & (self.name not in _TO_ALL_DIGITS)
        low, high = self.law.support() if few.any() else (0.0, 0.0)
        return np.where(few & (u > low) & (u < high), np.nan, log)

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the largest |log f(u) - log f(u - shift)| of many u.

        For Student's laws the supremum is more by far less than 1e-6 of it.
        """
        if other is not None and not self._is(other):
            return math.inf
        most = _largest(self, float(shift)) if shift else 0.0
        return most * (1 - _ERROR)

    def _is(self, other: Any) -> bool:
        """Say whether a law is this one, up to the rounding of its parameters."""
        if not isinstance(other, Density) or other.name != self.name:
            return False
        return bool(np.allclose(other.parameters, self.parameters, rtol=_SAME, atol=0))

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        return np.asarray(self.law.rvs(size=size, random_state=rng))


@dataclass(frozen=True)
class GammaDifference:
    """The difference of two independent gamma draws of scale 1.

    Sums of such are such: their shapes add up. Of one shape a it has the density
    (|x|/2)^(a - 1/2) K(|x|) / (sqrt(pi) Gamma(a)), where K is the Bessel function of
    the second kind of order a - 1/2 (Kotz, Kozubowski, Podgorski 2001, section 4.1).

    Parameters
    ----------
    shape, other : float
    """

    shape: float
    other: float

    @property
    def jumps(self) -> Array:
        """Where the density may be infinite."""
        return np.zeros(1)

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density, if both shapes are one."""
        order, size = self.shape - 0.5, np.abs(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = order * np.log(size / 2) + np.log(kve(order, size)) - size
        at_0 = gammaln(order) - math.log(2) if order > 0 else math.inf
        log = np.where(size == 0, at_0, log)
        return np.asarray(log - math.log(math.pi) / 2 - gammaln(self.shape))

    def supremum(self, shift: float, other: Any = None) -> float:
        """Return the largest |log f(u) - log f(u - shift)|, as of a `Density`."""
        if (other is not None and other != self) or self.shape <= 0.5:
            return math.inf if shift or other not in (None, self) else 0.0
        return _largest(self, float(shift)) * (1 - _ERROR) if shift else 0.0

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        one, two = (rng.gamma(each, size=size) for each in (self.shape, self.other))
        return np.asarray(one - two)


@lru_cache(maxsize=256)
def _largest(density: Any, shift: float) -> float:
    u = shift / 2 + _REACH * max(1.0, abs(shift))
    for _ in range(4):
        with np.errstate(invalid="ignore"):
            losses = np.abs(density.log_density(u) - density.log_density(u - shift))
        losses = np.nan_to_num(losses, nan=0.0, posinf=np.inf)
        best = int(np.argmax(losses))
        u = np.linspace(u[max(best - 1, 0)], u[min(best + 1, len(u) - 1)], 101)
    return float(losses[best])


_registered: dict[Any, int] = {}
_laws: list[Any] = []  # in the order of their codes


def code_of(law: Any) -> int | None:
    """Return the code of a law, the same for equal ones; None if there are too many.

    A law is a `Lattice`, or has what a `Density` has.
    """
    code = _registered.get(law)
    if code is None and FIRST + len(_laws) <= _LAST:
        code = _registered[law] = FIRST + len(_laws)
        _laws.append(law)
    return code


def law_of(code: int) -> Any:
    """Return the law of a code."""
    return _laws[code - FIRST]


def lattice_of(code: int) -> Lattice | None:
    """Return the law of a code if it is one on a lattice."""
    law = law_of(code) if code >= FIRST else None
    return law if isinstance(law, Lattice) else None


def is_joint(family: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which families are those of entries of vectors."""
    if not family.size or family.max() < FIRST:
        return np.zeros(np.shape(family), dtype=bool)
    kinds, where = np.unique(family, return_inverse=True)
    joint = [k >= FIRST and hasattr(law_of(k), "entries") for k in kinds.tolist()]
    return np.array(joint, dtype=bool)[where].reshape(family.shape)


def groups_of(law: Any) -> list[tuple[NDArray[np.intp], Any]]:
    """Return the units of each vector in a law, in the order of its draws."""
    units = np.flatnonzero(is_joint(law.family))
    found = []
    units = units[np.argsort(law.draw[units], kind="stable")]
    while len(units):
        noise = law_of(int(law.family[units[0]]))
        found.append((units[: noise.entries], noise))
        units = units[noise.entries :]
    return found


def take_vectors(law: Any, other: Any, made: Any) -> bool:
    """Give vectors the supremum of their loss, at their first units.

    False where the units of vectors of one law are not those of the other.
    """
    vectors = groups_of(law)
    sides = [[np.sort(g).tolist() for g, _ in v] for v in (vectors, groups_of(other))]
    both = zip(vectors, groups_of(other), strict=False)
    for (units, noise), (_, there) in both if sides[0] == sides[1] else ():
        most = noise.supremum(made.shift[units] / made.scale[units], there)
        scales = made.scale[units], made.other_scale[units]
        for suprema in (made.suprema, made.back):
            suprema[units] = 0.0
            suprema[units[0]] = most if np.allclose(*scales, _SAME, 0) else math.inf
    return sides[0] == sides[1]


def is_whole(index: NDArray[np.intp], coef: Array, family: NDArray[Any]) -> bool:
    """Say whether entries with draws of vectors are those of whole ones, of one scale.

    Parameters
    ----------
    index, coef : ndarray, shape (n, m)
        Terms; the index is -1 where there is none.
    family : ndarray of int
        Of all draws.
    """
    some = (index >= 0) & (coef != 0)
    joint = np.zeros(index.shape, dtype=bool)
    joint[some] = is_joint(family[index[some]])
    if not joint.any():
        return True
    if (some[joint.any(axis=1)].sum(axis=1) > 1).any():
        return False
    draws = np.unique(index[joint])
    sizes = np.abs(coef[joint])
    kinds = family[draws]
    while len(draws):
        d = law_of(int(kinds[0])).entries
        whole = draws[0] + np.arange(d)
        if not np.array_equal(draws[:d], whole) or (kinds[:d] != kinds[0]).any():
            return False
        mine = sizes[np.isin(index[joint], whole)]
        if not np.allclose(mine, mine[0], rtol=_SAME, atol=0) or math.isinf(mine[0]):
            return False
        draws, kinds = draws[d:], kinds[d:]
    return True
