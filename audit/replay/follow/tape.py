"""The tape of one execution: its draws, and every noisy value that its code looked at.

A draw is fresh until some value that it is part of is *looked at*: compared, rounded,
written into an ordinary array, printed. What was looked at is a primitive with an input
(the mean) and an output (the value), and from then on an ordinary number.

On replay the outputs are given back, and the draws behind them become what they must
have been on these data: so, whatever else is made of the same draws later is what it
would be if the neighbour's execution had shown those very outputs.
"""

import math
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy import asarray  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.follow.places import goes_straight_out, place_of_caller
from dpaudit.audit.replay.follow.terms import DrawBlock
from dpaudit.audit.replay.laws.affine import AffineLaw, Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw
from dpaudit.outputs import Output, read

__all__ = [
    "DECLARED",
    "EAGER",
    "LAZY",
    "DrawLog",
    "Mode",
    "Observation",
    "PublicValue",
    "Tape",
    "Unfollowed",
    "logging_draws",
]

Recipe: TypeAlias = Callable[[int], Array]

_FRESH, _SPENT, _PARTLY = 0, 1, 2
_MANY = 1_000_000  # draws from which on there is less room to spare
_CANCELLED = 1e-3  # what is smaller beside its parts is a difference of them
_ROUGH = 1e-14  # of these parts: many times what one operation leaves
_NOTHING = 1e-12  # beside the scale of the noise
_STALE = "noise that an earlier execution drew is used again"
_running: list["Tape"] = []  # of the executions that run now, the innermost last
_logs: list["DrawLog"] = []
_WITHIN = 2**31  # of the streams of declared primitives


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """Why an execution could not be followed, and where."""

    place: str
    why: str


@dataclass(frozen=True, slots=True)
class DrawLog:
    """What executions in a block tell of their draws.

    Parameters
    ----------
    drawn : set of str
        The places.
    late : list of Unfollowed
        Where noise of an earlier execution was used.
    """

    drawn: set[str] = field(default_factory=set)
    late: list[Unfollowed] = field(default_factory=list)


@contextmanager
def logging_draws() -> Iterator[DrawLog]:
    """Hear of all executions in the block."""
    log = DrawLog()
    _logs.append(log)
    try:
        yield log
    finally:
        _logs.remove(log)


@dataclass(frozen=True, slots=True)
class Mode:
    """What is taken for one noisy value, where code may be read in several ways.

    Parameters
    ----------
    eager : bool
        Whether noise is a noisy value as soon as an ordinary number is added to it, or
        only when the code looks at it.
    selects : bool
        Whether the place of the largest of noisy numbers, or how uniform ones compare
        with ordinary ones, is a choice, or follows from numbers that were looked at.
    public : bool
        Whether flips, permutations and other choices of rows are values that everybody
        sees; if not, they may be hidden.
    """

    eager: bool = False
    selects: bool = True
    public: bool = False


LAZY, EAGER = Mode(), Mode(eager=True)
DECLARED = "declared"
"""How the output of a declared primitive is looked at."""


@dataclass(frozen=True, slots=True)
class PublicValue:
    """A value that was said not to depend on the data, and where.

    `after` is how many noisy values had been looked at before.
    """

    place: str
    name: str
    value: Output
    after: int


@dataclass
class Tape:
    """What one execution drew and looked at.

    Parameters
    ----------
    seed : int
    script : Observations, optional
        Of the execution that is replayed.
    mode : Mode
    goes_on : bool
        Whether the execution may go on by itself where the script ends.
    """

    seed: int
    script: Observations | None = None
    mode: Mode = LAZY
    goes_on: bool = False
    observations: Observations = field(default_factory=Observations)
    coins: list[Unfollowed] = field(default_factory=list)
    unfollowed: list[Unfollowed] = field(default_factory=list)
    diverged: Unfollowed | None = None
    # Whether the script was left at a choice, which may be hidden.
    left_at_choice: bool = False
    closed: bool = False
    selected: bool = False
    public: list[PublicValue] = field(default_factory=list)
    # Whether a declared primitive is running, and how many have been called.
    inside: bool = False
    primitives: int = 0
    # What went straight out of the mechanism as an ordinary number.
    final: Any = None
    # By how much numbers with noise may be off: see `cancels`.
    rough: float = 0.0
    # Where the first draw was made, and how many there were.
    first_place: str = ""
    draws: int = 0
    _places: list[str] = field(default_factory=list)
    _recipes: list[Recipe | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._size = 0
        self._z = np.empty(256)
        self._family = np.empty(256, dtype=np.int8)
        self._state = np.zeros(256, dtype=np.int8)
        self._starts = array("q")
        self._thread = threading.get_ident()

    @property
    def families(self) -> NDArray[np.int8]:
        """The family of every draw."""
        return self._family[: self._size]

    @property
    def open(self) -> bool:
        """Whether no draw was looked at yet, and all of the code followed."""
        return not (len(self.observations) or self.coins or self.unfollowed)

    def draw(
        self, family: Family, values: Array, recipe: Recipe | None = None
    ) -> DrawBlock:
        """Return new draws.

        A recipe makes the draws that another seed would have given.
        """
        self.check_thread()
        place = place_of_caller()
        self.first_place = self.first_place or place
        return DrawBlock(self, family, values.reshape(-1), place, recipe)

    def number(self, block: DrawBlock) -> int:
        """Put draws on the tape, and return the number of the first."""
        start, end = self._size, self._size + block.values.size
        if end > len(self._z):
            spare = self._size if self._size < _MANY else self._size // 4
            room = max(end, self._size + spare)
            for column in (self._z, self._family, self._state):
                column.resize(room, refcheck=False)
        self._z[start:end] = block.values
        self._family[start:end] = block.family
        self._state[start:end] = block.state
        self._size = end
        self._places.append(block.place)
        self._starts.append(start)
        if self.open:
            self._recipes.append(block.recipe)
        else:  # nobody will ask for them
            self._recipes.clear()
        return start

    def redrawn(self, seed: int) -> bool:
        """Make all draws those of another seed; False if that cannot be done."""
        recipes = [recipe for recipe in self._recipes if recipe is not None]
        if len(recipes) < len(self._starts):
            return False
        for start, recipe in zip(self._starts, recipes, strict=True):
            values = np.ravel(recipe(seed))
            self._z[start : start + len(values)] = values
        return True

    def place_of(self, draw: int) -> str:
        """Return where a draw was made."""
        block = bisect_right(self._starts, draw) - 1
        return self._places[block]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be told in the block of noise that belongs to earlier executions."""
        _running.append(self)
        try:
            yield
        finally:
            _running.pop()

    def comes_too_late(self) -> None:
        """Tell the execution that runs now, if any, that this one's noise is used."""
        if self.closed and _running and _running[-1].is_mine:
            _running[-1].cannot_follow(_STALE)
            for log in _logs:
                log.late.append(Unfollowed(place_of_caller(), _STALE))

    def note_draw(self) -> None:
        """Note that the code draws."""
        self.draws += 1
        if _logs:
            place = place_of_caller()
            for log in _logs:
                log.drawn.add(place)

    def cannot_follow(self, why: str, *, within: bool = False) -> None:
        """Note that something happened that cannot be followed.

        Within a declared primitive nothing needs to be, unless it says so.
        """
        if within or not self.inside:
            self._note(self.unfollowed, place_of_caller(), why)

    def coin(self, why: str) -> None:
        """Note that randomness was used as ordinary numbers."""
        if not self.inside:
            self._note(self.coins, place_of_caller(), why)

    def _note(self, several: list[Unfollowed], place: str, why: str) -> None:
        note = Unfollowed(place, why)
        # A loop comes by many times.
        if not self.closed and note not in several:
            several.append(note)

    @contextmanager
    def within(self) -> Iterator[None]:
        """Follow nothing in the block, which is the call of a declared primitive."""
        self.primitives += 1
        self.inside = True
        key = _WITHIN, self.primitives
        self._inner = np.random.SeedSequence(self.seed, spawn_key=key)
        self._inner_rng: np.random.Generator | None = None
        try:
            yield
        finally:
            self.inside = False

    @property
    def inner(self) -> np.random.Generator:
        """What a declared primitive draws from: a stream that goes by its call."""
        if self._inner_rng is None:
            self._inner_rng = np.random.Generator(np.random.Philox(self._inner))
        return self._inner_rng

    @property
    def is_mine(self) -> bool:
        """Whether this is the thread that executes the mechanism."""
        return threading.get_ident() == self._thread

    def check_thread(self) -> bool:
        """Say whether this is the mechanism's thread, and note it if it is not."""
        if not self.is_mine:
            self.cannot_follow("randomness is used in another thread")
        return self.is_mine

    def settled(
        self, mean: Array, index: NDArray[np.intp], coef: Array
    ) -> tuple[Array, NDArray[np.intp], Array, bool]:
        """Return mean and terms, draws that are known by now being part of the mean.

        The last says whether a draw is among them of which only a sum was seen.
        """
        # An index of -1 reads some draw or other, which at worst is looked up again.
        if not (index.size and self._state[index].any()):
            return mean, index, coef, False
        state = np.where(index >= 0, self._state[index], _FRESH)
        known = state == _SPENT
        partly = bool((state == _PARTLY).any())
        if known.any():
            with np.errstate(all="ignore"):
                add = np.where(known, coef * self._z[index], 0.0).sum(axis=1)
            self.cancels(mean + add, mean, add)
            mean = mean + add
            index, coef = np.where(known, -1, index), np.where(known, 0.0, coef)
        return mean, index, coef, partly

    def law(self, mean: Array, index: NDArray[np.intp], coef: Array) -> AffineLaw:
        """Return the law of a value, given what was looked at before."""
        noisy = (index >= 0).any(axis=1)
        mean, index, coef, partly = self.settled(mean, index, coef)
        if partly:
            self.cannot_follow("a draw is used again of which only a sum was seen")
        return self._roughly(AffineLaw.of(mean, index, coef, self.families), noisy)

    def cancels(self, result: Array, *parts: Array) -> None:
        """Note what rounding leaves where large numbers are taken off each other.

        A number between them that ought to be 0, or the same on both sides, is off by
        some units in the last place of these.
        """
        with np.errstate(all="ignore"):
            size = np.max([float(np.abs(part).max(initial=0.0)) for part in parts])
            if not 4 * self.rough < _ROUGH * size < math.inf:
                return  # nothing is unfollowed, or not much more than was already
            least = float(np.abs(result).min(initial=math.inf))
            if least >= _CANCELLED * size:
                return
            # Of a vector, only where an entry is small beside those it is made of.
            wide = np.zeros(result.shape)
            for part in parts:
                wide = np.maximum(wide, np.abs(part))
            gone = np.abs(result) < _CANCELLED * wide
            unfollowed = _ROUGH * float(wide[gone].max(initial=0.0))
            self.rough = max(self.rough, unfollowed)

    def _roughly(self, law: AffineLaw, noisy: Any = True) -> AffineLaw:
        """Return a law that knows by how much its noisy entries may be off."""
        if not self.rough:
            return law
        apart = law.known and len(law.first) == len(law.mean)
        if apart and (self.rough <= _NOTHING * law.scale).all():
            return law
        return replace(law, rough=np.where(noisy, self.rough, np.zeros(len(law.mean))))

    def value(self, mean: Array, index: NDArray[np.intp], coef: Array) -> Array:
        """Return what a value is in this execution, without looking at it."""
        if not index.size:
            return mean.copy()
        if index.shape[1] == 1 and index.min() >= 0 and coef.all():
            with np.errstate(all="ignore"):
                return asarray(mean + coef[:, 0] * self._z[index[:, 0]])
        with np.errstate(all="ignore"):
            parts = np.where((index >= 0) & (coef != 0), coef * self._z[index], 0.0)
            return asarray(mean + parts.sum(axis=1))

    def hands_out(self, how: str) -> bool:
        """Say whether a number is looked at only to be what the mechanism returns."""
        return how == "float" and goes_straight_out()

    def observe(self, whole: Any, how: str) -> Array:
        """Return a value that the code looks at, flat, as ordinary numbers.

        Parameters
        ----------
        whole : Tracked
        how : str
        """
        self.check_thread()
        bare, terms, mean = whole.bare, whole.terms, whole.centre.ravel()
        block = terms.block
        if bare and block is not None and terms.factor == 1.0:
            return self._look_at_block(whole, how)
        law: AffineLaw | None = None
        coef = mean
        if block is not None and self._is_plain(mean, block, terms.factor):
            draws = block.numbers
            law = AffineLaw.of_block(mean, terms.factor, draws.start, block.family)
            index = law.draw
            with np.errstate(all="ignore"):
                value = asarray(mean + terms.factor * self._z[draws])
            if self.closed:
                self.comes_too_late()
                return value
        else:
            mean, index, coef, partly = self.settled(mean, whole.index, whole.coef)
            value = self.value(mean, index, coef)
            if self.closed:
                self.comes_too_late()
                return value
            if partly:
                self.cannot_follow("a draw is used again of which only a sum was seen")
            if not (index >= 0).any():
                return value
        if self.hands_out(how):
            self.final = whole.copy()
            return value
        place, shape = place_of_caller(), whole.shape
        if law is None:
            law = AffineLaw.of(mean, index, coef, self.families)
        law = self._roughly(law)
        if bare:
            self._note(self.coins, place, "noise is used as an ordinary number")
            self._spend(index, law)
            return value
        if not law.followed:
            why = "noise of this form has no density that is known here"
            self._note(self.unfollowed, place, why)
        if self.script is not None:
            value = self._given_back(law, value, shape, place)
            if self.diverged is not None:
                self._spend(index, law)
                return value
        made = Observation(place, how, law, value, shape, bare)
        self.observations.append(made)
        self._spend(index, law)
        return value

    def _is_plain(self, mean: Array, block: DrawBlock, factor: float) -> bool:
        """Say whether finite numbers have a draw each, of which nothing was seen."""
        return bool(
            factor
            and math.isfinite(factor)
            and self.is_fresh(block)
            and np.isfinite(mean).all()
        )

    def _look_at_block(self, whole: Any, how: str) -> Array:
        """Return draws that follow each other, to which nothing was added."""
        block = whole.terms.block
        if block.start is None:
            value = block.values.copy()
            partly, spent = block.state == _PARTLY, block.state == _SPENT
        else:
            state = self._state[block.numbers]
            value = self._z[block.numbers].copy()
            partly, spent = (state == _PARTLY).any(), (state == _SPENT).all()
        if self.closed:
            self.comes_too_late()
            return value
        if partly:
            self.cannot_follow("a draw is used again of which only a sum was seen")
        if spent:
            return value
        if self.hands_out(how):
            self.final = whole.copy()
            return value
        self._note(self.coins, place_of_caller(), "noise is used as an ordinary number")
        if block.start is None:
            block.state = _SPENT
        else:
            self._state[block.numbers] = _SPENT
        return value

    def declare(
        self, law: AnyLaw, value: Array, shape: tuple[int, ...]
    ) -> Observation | None:
        """Note the output of a declared primitive; return what the script has for it.

        None where there is no script, or the execution has left it.
        """
        place, number = place_of_caller(), len(self.observations)
        given = self._next(law, shape, place)
        if self.diverged is None:
            seen = value if given is None else given
            self.observations.append(
                Observation(place, DECLARED, law, seen, shape, False)
            )
        if self.script is None or given is None:
            return None
        recorded = self.script[number]
        return recorded if recorded.how else self.observations[-1]  # of this very law

    def note_public(self, name: str, value: Any) -> None:
        """Note a value that must not depend on the data."""
        if self.diverged is None:
            place, after = place_of_caller(), len(self.observations)
            self.public.append(PublicValue(place, name, read(value), after))

    def _given_back(
        self,
        law: AnyLaw,
        value: Array,
        shape: tuple[int, ...],
        place: str,
    ) -> Array:
        """Return the output of the script, and make the draws agree with it."""
        recorded = self._next(law, shape, place)
        if recorded is None:
            return value
        if isinstance(law, AffineLaw) and law.known and len(law.first):
            ratio = law.ratio[law.first]
            with np.errstate(all="ignore"):
                value, mean = recorded[law.first], law.mean[law.first]
                self.cancels(value - mean, value, mean)
                u = (value - mean) / ratio
            self._z[law.draw[law.alone]] = u[law.alone]
        return recorded

    def _next(self, law: AnyLaw, shape: tuple[int, ...], place: str) -> Array | None:
        """Return the value that the script has next.

        None where there is no script, or the execution left it.
        """
        number = len(self.observations)
        if self.script is None or self.diverged is not None:
            return None
        if number >= len(self.script):
            if not self.goes_on:
                self.diverged = Unfollowed(place, "one noisy value more than on D")
                self.left_at_choice = type(law) is ChoiceLaw
            return None
        recorded_shape, recorded = self.script.output(number)
        there = self.script.law_of(number)
        if there is not None and type(law) is not there[0]:
            here = getattr(law, "kind", "a noisy number")
            self.diverged = Unfollowed(place, f"{there[1]} on D is {here} on D'")
        elif recorded_shape != shape:
            self.diverged = Unfollowed(
                place,
                f"a noisy value has shape {recorded_shape} on D and {shape} on D'",
            )
        if self.diverged is None:
            return recorded.copy()
        self.left_at_choice = ChoiceLaw in (type(law), there and there[0])
        return None

    def choose(
        self, law: ChoiceLaw, value: NDArray[Any], shape: tuple[int, ...]
    ) -> NDArray[np.intp]:
        """Return outcomes of a choice, of that shape: those drawn, or the script's."""
        self.check_thread()
        place, flat = place_of_caller(), np.ravel(value)
        if not self.closed:
            if self.script is not None:
                flat = self._given_back(law, flat, shape, place)
                if flat.size and flat.max() >= law.outcomes:
                    self.diverged = Unfollowed(place, "an outcome on D is none on D'")
                    flat = np.ravel(value)
            if self.diverged is None:
                made = Observation(place, "chosen", law, flat, shape, False)
                self.observations.append(made)
        return np.asarray(flat, dtype=np.intp).reshape(shape)

    def _spend(self, index: NDArray[np.intp], law: AffineLaw) -> None:
        """Mark the draws of an observation: known, or known by a sum alone."""
        if index is not law.draw:
            self._state[index[index >= 0]] = _PARTLY
        self._state[law.draw[law.alone]] = _SPENT

    def is_fresh(self, block: DrawBlock) -> bool:
        """Say whether nothing was seen yet of draws that were made at once."""
        if block.start is None:
            return block.state == _FRESH
        return not self._state[block.numbers].any()

    def drawn(self, draws: NDArray[np.intp]) -> Array:
        """Return draws, by their numbers."""
        return self._z[draws]

    def are_fresh(self, draws: NDArray[np.intp]) -> bool:
        """Say whether nothing was seen of some draws yet."""
        return bool((self._state[draws] == _FRESH).all())

    def use_up(self, draws: NDArray[np.intp] | DrawBlock) -> None:
        """Mark draws that became part of others: nobody may use them again."""
        if not isinstance(draws, DrawBlock):
            self._state[draws] = _PARTLY
        elif draws.start is None:
            draws.state = _PARTLY
        else:
            self._state[draws.numbers] = _PARTLY
