"""Laws of standard draws by their codes: families with a name, and others.

The others are noise on the integers (two-sided geometric, rounded, and what sums make
of it), densities that SciPy knows (`dpaudit.audit.replay.laws.by_name`), and entries of
vectors (`dpaudit.audit.replay.laws.drawn`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = [
    "FIRST",
    "MOST_STEPS",
    "STANDARD",
    "Family",
    "Lattice",
    "code_of",
    "frozen",
    "groups_of",
    "is_joint",
    "lattice_of",
    "law_of",
    "words_of",
]

FIRST, _LAST = 14, 2**20  # codes; those below are of `Family`
MOST_STEPS = 2**14
_MOST_BEYOND = 2**17  # steps that a table goes on for, below a lattice's or above
_ERROR = 1e-7  # relative, of losses that are differences of computed probabilities
_SMALL = 1e-8  # of probabilities below `SURE`
_OFF = SURE = 1e-6  # of an integer, by rounding; a probability that no error makes up
_FARTHEST = -60.0  # log-probability beyond which a lattice is cut


class Family(IntEnum):
    """Laws of a standard draw."""

    GAUSSIAN = 0
    LAPLACE = 1
    EXPONENTIAL = 2
    UNIFORM = 3
    GUMBEL = 4
    LOGISTIC = 5
    CHOICE = 6
    """No noise: of a choice nothing but the supremum of its loss is kept."""
    # Of declared primitives alone (`dpaudit.audit.replay.laws.non_affine`).
    CLAMPED_LAPLACE = 7
    TRUNCATED_LAPLACE = 8
    FOLDED_LAPLACE = 9
    DISCRETE_LAPLACE = 10
    DISCRETE_GAUSSIAN = 11
    TRUSTED = 12
    """A law that is not known, of which a bound is taken for true."""
    UNKNOWN = 13
    """A law that is not known. Codes of other laws are larger."""

    @property
    def words(self) -> str:
        """Its name, for people."""
        return self.name.lower().replace("_", " ")

    @classmethod
    def shown(cls, families: Iterable[int]) -> str:
        """Return the names of families, as a step shows them."""
        return "+".join(sorted(set(map(words_of, families))))


def words_of(family: int) -> str:
    """Return the name of a family, or of what has a code, for people."""
    if family >= FIRST:
        return "other"
    return Family(family).words


@dataclass(frozen=True)
class Standard:
    """A family of standard draws that has a name, and a law that is known.

    Parameters
    ----------
    name, draws : str
        In `scipy.stats`, and what a generator calls its draws.
    density : callable
        The logarithm of its density.
    linear : bool
        Whether the supremum of the loss of a shift is its size.
    jumps, kinks : tuple of float
        Where the density jumps, as it begins or ends there; and where it has a kink,
        or jumps.
    """

    name: str
    draws: str
    density: Callable[[Array], Array]
    linear: bool = False
    jumps: tuple[float, ...] = ()
    kinks: tuple[float, ...] = ()

    @property
    def law(self) -> Any:
        """The law, as SciPy has it."""
        return frozen(self.name, ())

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density."""
        with np.errstate(all="ignore"):
            return np.asarray(self.density(u))

    def sample(self, rng: np.random.Generator, size: Any) -> Any:
        """Return independent draws."""
        return getattr(rng, self.draws)(size=size)


STANDARD = {
    Family.GAUSSIAN: Standard(
        *("norm", "standard_normal"), lambda u: -u * u / 2 - math.log(2 * math.pi) / 2
    ),
    Family.LAPLACE: Standard(
        *("laplace", "laplace"),
        lambda u: -np.abs(u) - math.log(2),
        linear=True,
        kinks=(0.0,),
    ),
    Family.EXPONENTIAL: Standard(
        *("expon", "standard_exponential"),
        lambda u: np.where(u >= 0, -u, -np.inf),
        jumps=(0.0,),
        kinks=(0.0,),
    ),
    Family.UNIFORM: Standard(
        *("uniform", "random"),
        lambda u: np.where((u >= 0) & (u <= 1), 0.0, -np.inf),
        jumps=(0.0, 1.0),
        kinks=(0.0, 1.0),
    ),
    Family.GUMBEL: Standard("gumbel_r", "gumbel", lambda u: -(u + np.exp(-u))),
    Family.LOGISTIC: Standard(
        *("logistic", "logistic"),
        lambda u: -np.abs(u) - 2 * np.log1p(np.exp(-np.abs(u))),
        linear=True,
    ),
}
"""The families that are noise: a new one has its place here."""


@lru_cache(maxsize=256)
def frozen(name: str, parameters: tuple[float, ...]) -> Any:
    """Return a law of SciPy's."""
    from scipy import stats

    return getattr(stats, name)(*parameters)


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
    far : tuple of float
        What `below` and `above` come to far out, where that is known: E exp(t |X|) over
        that side is finite for all t below it. So a shift by 1 loses at least that: if
        P(k + 1)/P(k) >= exp(-b) far out, for a b below it, that would be infinite. Of a
        sum of independent numbers it is the smaller one.
    """

    start: int
    log: tuple[float, ...]
    below: float = math.inf
    above: float = math.inf
    exact: bool = False
    far: tuple[float, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, start: int, p: Array, least: float) -> "Lattice":
        """Return a lattice of a table whose ends go on for ever below `least`."""
        sure = np.flatnonzero(p > least)
        first, last = int(sure[0]), int(sure[-1])
        with np.errstate(divide="ignore"):
            log = np.log(p[first : last + 1])
        below = above = math.inf
        if len(log) > 2 and first > 0 and log[1] > -math.inf:
            below = float(log[1] - log[0])
        if len(log) > 2 and last < len(p) - 1 and log[-2] > -math.inf:
            above = float(log[-2] - log[-1])
        return cls(start + first, tuple(log.tolist()), below, above)

    @classmethod
    def among(cls, numbers: Sequence[int], p: Sequence[float]) -> "Lattice":
        """Return finitely many integers with their probabilities."""
        start = min(numbers)
        table = np.zeros(max(numbers) - start + 1)
        np.add.at(table, np.asarray(numbers) - start, p)
        with np.errstate(divide="ignore"):
            return cls(start, tuple(np.log(table).tolist()))

    @classmethod
    def geometric(cls, p: float) -> "Lattice | None":
        """Return the law of tosses until one of chance p; None if no table holds it."""
        law = cls(1, (math.log(p),), above=-math.log1p(-p), exact=True)
        return law if p > -_FARTHEST / _MOST_BEYOND else None

    def less_its_like(self, other: "Lattice") -> "Lattice | None":
        """Return the law of the difference of two geometric numbers of one rate."""
        fall = self.above
        one_sided = len(self.log) == len(other.log) == 1 and self.below == other.below
        if not (one_sided and self.below == math.inf > fall == other.above):
            return None
        log = math.log(-math.expm1(-fall)) - math.log1p(math.exp(-fall))
        return Lattice(self.start - other.start, (log,), fall, fall, exact=True)

    @staticmethod
    def bounds(p: Array) -> tuple[Array, Array]:
        """Return what computed probabilities are at least, and at most."""
        least = np.where(p > SURE, p * (1 - _ERROR), 0.0)
        return least, p * (1 + _ERROR) + _SMALL

    @property
    def finite(self) -> bool:
        """Whether there is nothing beyond the table."""
        return self.below == self.above == math.inf

    @property
    def ends(self) -> tuple[float, ...]:
        """By how much it falls far out, below and above; 0 where that is not known."""
        sides = self.below, self.above
        known = (each if self.exact or each == math.inf else 0.0 for each in sides)
        return self.far or tuple(known)

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
        exact = self.exact and bool(some[first : last + 1].all())
        return Lattice(start + first, tuple(log.tolist()), below, above, exact)

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
        exact = self.exact and other.exact
        if other is not self:
            own, their = (np.array([e.below, e.above]) for e in (self, other))
            alike = np.isclose(own, their, rtol=1e-6, atol=0)
            if not (alike.all() or exact):
                return math.nan, math.nan
            # What falls more slowly is any number of times as probable far out.
            far = np.inf * (their[~alike] - own[~alike])
        else:
            far = step * (np.array(self.ends) if step else np.zeros(2)) * [1, -1]
        if not exact:  # where a table ends little is known of it
            losses = losses[np.maximum(one, two) > math.log(SURE)]
        losses = np.append(losses, far)
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


def _reach(log: float, fall: float) -> int:
    """Return how many steps beyond a table have a probability of any size."""
    if not (math.isfinite(fall) and fall > 0):
        return 0
    return min(_MOST_BEYOND, max(0, math.ceil((log - _FARTHEST) / fall)))


_registered: dict[Any, int] = {}
# In the order of their codes, None where a family has no law by itself.
_laws: list[Any] = [STANDARD.get(family) for family in Family]


def code_of(law: Any) -> int | None:
    """Return the code of a law, the same for equal ones; None if there are too many.

    A law is a `Lattice`, or has what a `dpaudit.audit.replay.laws.by_name.Density` has.
    """
    code = _registered.get(law)
    if code is None and len(_laws) <= _LAST:
        code = _registered[law] = len(_laws)
        _laws.append(law)
    return code


def law_of(code: int) -> Any:
    """Return the law of a code, None of a family without one."""
    return _laws[code]


def lattice_of(code: int) -> Lattice | None:
    """Return the law of a code if it is one on a lattice."""
    law = _laws[code]
    return law if isinstance(law, Lattice) else None


def is_joint(family: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which families are those of entries of vectors."""
    if not family.size or family.max() < FIRST:
        return np.zeros(np.shape(family), dtype=bool)
    kinds, where = np.unique(family, return_inverse=True)
    joint = [hasattr(law_of(k), "entries") for k in kinds.tolist()]
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
