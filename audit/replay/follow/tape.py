"""The tape of one execution: what it drew, and every noisy value that it looked at.

A mechanism *looks at* a value with noise when it compares or rounds it, writes it into
an ordinary array, or prints it. That is a primitive with an input (the mean) and an
output (the value). The tape records it, and from then on it is an ordinary number.

On replay the outputs are given back (`Script`), and the draws behind them become what
they must have been on these data. So all that is made of the same draws later is as if
the neighbour's execution had shown those very outputs.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import asarray  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import DrawBlock, Draws, Recipe
from dpaudit.audit.replay.follow.ending import StepCount
from dpaudit.audit.replay.follow.logs import LOGS
from dpaudit.audit.replay.follow.observations import (
    Observation,
    Observations,
    Script,
    Unfollowed,
)
from dpaudit.audit.replay.follow.places import (
    is_loading,
    is_returned_next,
    place_of_caller,
)
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw
from dpaudit.audit.replay.laws.drawn import is_turned
from dpaudit.outputs import Output, read

__all__ = ["DECLARED", "EAGER", "LAZY", "Mode", "PublicValue", "Tape"]

AS_NUMBER = "noise is used as an ordinary number"
DECLARED = "declared"
"""How the output of a declared primitive is looked at."""
_STALE = "noise that an earlier execution drew is used again"
_OTHER_THREAD = "randomness is used in another thread"
_OF_FORM = "noise of this form has no density that is known here"
_PARTLY_SEEN = "a draw is used again of which only a sum was seen"
_WITHIN = 2**31  # of the streams of declared primitives
_running: list["Tape"] = []  # of the executions that run now, the innermost last


@dataclass(frozen=True, slots=True)
class Mode:
    """Which numbers are one noisy value, where code may be read in several ways.

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
    decides, keeps : bool
        Whether comparisons of noisy numbers are choices; and draws go on after these.
    """

    eager: bool = False
    selects: bool = True
    public: bool = False
    decides: bool = False
    keeps: bool = False


LAZY, EAGER = Mode(), Mode(eager=True)


@dataclass(frozen=True, slots=True)
class PublicValue:
    """A value that must not depend on the data; `after` so many noisy values."""

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
    script : Script
        Of the execution that is repeated.
    mode : Mode
    observations : Observations
        What the code looked at.
    coins : list of Unfollowed
        Where randomness was used as ordinary numbers.
    unfollowed : list of Unfollowed
        Where something happened that cannot be followed.
    taken, outside : list of Unfollowed
        Noise that is taken for what a simulation says; what comes from elsewhere, as
        entropy of the system.
    closed : bool
        Whether the execution is over.
    selected : bool
        Whether comparisons of noisy numbers were taken for choices.
    compared : set of int
        Draws of which nothing was seen but how they compare.
    public : list of PublicValue
    untrusted : dict
        Calls of primitives that are not trusted, by the number of the noisy value.
    inside, primitives : bool, int
        Whether a declared primitive is running; how many have been called.
    final : Tracked, optional
        What went straight out of the mechanism as an ordinary number.
    first_place : str
        Where the first draw was made.
    calls, loading : int
        How often the code drew, and libraries that it loaded.
    trail : Trail, optional
        Keeps every line.
    steps : StepCount
        Draws, and looks at noise.
    """

    seed: int
    script: Script = field(default_factory=Script)
    mode: Mode = LAZY
    observations: Observations = field(default_factory=Observations)
    coins: list[Unfollowed] = field(default_factory=list)
    unfollowed: list[Unfollowed] = field(default_factory=list)
    taken: list[Unfollowed] = field(default_factory=list)
    closed: bool = False
    selected: bool = False
    compared: set[int] = field(default_factory=set)
    public: list[PublicValue] = field(default_factory=list)
    untrusted: dict[int, Any] = field(default_factory=dict)
    inside: bool = False
    primitives: int = 0
    final: Any = None
    first_place: str = ""
    calls: int = 0
    loading: int = 0
    trail: Any = None
    steps: StepCount = field(default_factory=StepCount)

    def __post_init__(self) -> None:
        self.draws = Draws()
        self.outside: list[Unfollowed] = []
        self.seeded: list[Any] = []
        self.modules = len(sys.modules)
        self._thread = threading.get_ident()

    @property
    def open(self) -> bool:
        """Whether no draw was looked at yet, and all of the code followed."""
        return not (len(self.observations) or self.coins or self.unfollowed)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be told in the block of noise that belongs to earlier executions."""
        _running.append(self)
        try:
            yield
        finally:
            _running.pop()

    def used_too_late(self, what: str = _STALE) -> None:
        """Tell the execution that runs now, if any, that this one's noise is used."""
        if self.closed and _running and _running[-1].is_mine:
            _running[-1].cannot_follow(what)
            for log in LOGS:
                log.late.append(Unfollowed(place_of_caller(), what))

    @property
    def is_mine(self) -> bool:
        """Whether this is the thread that executes the mechanism."""
        return threading.get_ident() == self._thread

    def check_thread(self) -> bool:
        """Say whether this is the mechanism's thread, and note it if it is not."""
        if not self.is_mine:
            self.cannot_follow(_OTHER_THREAD)
        elif not self.closed:
            self.steps.take()
        return self.is_mine

    @property
    def follows(self) -> bool:
        """Whether what happens now is part of the execution, and followed."""
        return not (self.closed or self.inside) and self.check_thread()

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

    def note_draw(self) -> None:
        """Note that the code draws."""
        self.calls += not is_loading(self)
        self.steps.take()
        if self.trail is not None:
            self.trail.drew()
        if LOGS:
            place = place_of_caller()
            for log in LOGS:
                log.places.add(place)

    def draw(
        self,
        family: int,
        drawn: Array | Callable[[], Array],
        recipe: Recipe | None = None,
        size: int = 0,
    ) -> DrawBlock:
        """Return new draws, of any shape; or so many of what makes them."""
        self.check_thread()
        place = place_of_caller()
        self.first_place = self.first_place or place
        if not callable(drawn):
            drawn, size = drawn.reshape(-1), drawn.size
        return DrawBlock(self.draws, family, drawn, size, place, recipe)

    def cannot_follow(self, why: str, *, within: bool = False) -> None:
        """Note that something happened that cannot be followed.

        Within a declared primitive nothing needs to be, unless it says so.
        """
        if within or not self.inside:
            self._note(self.unfollowed, place_of_caller(), why)

    def coin(self, why: str, *, place: str = "") -> None:
        """Note that randomness was used as ordinary numbers."""
        if not self.inside:
            self._note(self.coins, place or place_of_caller(), why)

    def _note(self, several: list[Unfollowed], place: str, why: str) -> None:
        note = Unfollowed(place, why)
        # A loop comes by many times.
        if not self.closed and note not in several:
            several.append(note)
            self.draws.forget_recipes()

    def note_public(self, name: str, value: Any) -> None:
        """Note a value that must not depend on the data."""
        if self.script.diverged is None:
            place, after = place_of_caller(), len(self.observations)
            self.public.append(PublicValue(place, name, read(value), after))

    def law(self, mean: Array, index: NDArray[np.intp], coef: Array) -> AffineLaw:
        """Return the law of a value, given what was looked at before."""
        noisy, draws = (index >= 0).any(axis=1), self.draws
        apart = draws.made.apart_again(mean, index, coef, draws.states)
        mean, index, coef, partly = apart or draws.settled(mean, index, coef)
        if partly:
            self.cannot_follow(_PARTLY_SEEN)
        law = AffineLaw.of(mean, index, coef, draws.families)
        return draws.with_rounding(law, noisy)

    def is_released(self, how: str) -> bool:
        """Say whether a number is looked at only to be what the mechanism returns."""
        return how in ("float", "item") and is_returned_next(how)

    def observe(self, whole: Any, how: str) -> Array:
        """Return a value that the code looks at, flat, as ordinary numbers.

        Parameters
        ----------
        whole : Tracked
        how : str
        """
        self.check_thread()
        terms, mean, draws = whole.terms, whole.centre.ravel(), self.draws
        block, factor = terms.block, terms.factor
        law: AffineLaw | None = None
        as_drawn = whole.bare and block is not None and factor == 1.0
        partly, noisy = False, True
        if as_drawn:
            value, partly, spent = block.look()
            noisy = not spent
        elif (  # finite numbers have a draw each, of which nothing was seen
            block is not None
            and factor
            and math.isfinite(factor)
            and block.is_fresh
            and np.isfinite(mean).all()
        ):
            law = AffineLaw.of_block(mean, factor, block.numbers.start, block.family)
            index = law.draw
            with np.errstate(all="ignore"):
                value = asarray(mean + factor * draws.values[block.numbers])
        else:
            mean, index, coef, partly = draws.settled(mean, whole.index, whole.coef)
            value = draws.value(mean, index, coef)
            noisy = bool((index >= 0).any())
        if self.closed:
            self.used_too_late()
            return value
        if partly:
            self.cannot_follow(_PARTLY_SEEN)
        if not noisy:
            return value
        if self.is_released(how):
            self.final = whole.copy()
            return value
        place = place_of_caller()
        if as_drawn:
            self._note(self.coins, place, AS_NUMBER)
            block.spend()
            return value
        if law is None:
            law = AffineLaw.of(mean, index, coef, draws.families)
        law = self.draws.with_rounding(law)
        if whole.bare:
            self._note(self.coins, place, AS_NUMBER)
        else:
            if not law.followed or is_turned(law):
                self._note(self.unfollowed, place, _OF_FORM)
            given = self._record(place, how, law, value, whole.shape)
            if given is not None:
                draws.agree(law, given)
                value = given
        draws.spend(index, law)
        return value

    def _record(
        self,
        place: str,
        how: str,
        law: AnyLaw,
        value: Array | Callable[[], Array],
        shape: tuple[int, ...],
    ) -> Array | None:
        """Note a noisy value, and return what the script has for it, if anything."""
        given = self.script.output(len(self.observations), law, shape, place)
        if self.script.diverged is None:
            seen = value if given is None else given
            seen = seen() if callable(seen) else seen
            self.observations.append(Observation(place, how, law, seen, shape))
            self.draws.forget_recipes()
        return given

    def declare(
        self, law: AnyLaw, value: Array, shape: tuple[int, ...]
    ) -> Observation | None:
        """Note the output of a declared primitive; return what the script has for it.

        None where there is no script, or the execution has left it.
        """
        number = len(self.observations)
        given = self._record(place_of_caller(), DECLARED, law, value, shape)
        if self.script.values is None or given is None:
            return None
        recorded = self.script.values[number]
        return recorded if recorded.how else self.observations[-1]  # of this very law

    def choose(
        self,
        law: ChoiceLaw,
        value: NDArray[Any] | Callable[[], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: type = np.intp,
    ) -> NDArray[Any]:
        """Return outcomes of a choice, of that shape: the script's, or those drawn."""
        self.check_thread()
        flat = value if callable(value) else np.ravel(value)
        given: Array | None = None
        if not self.closed:
            given = self._record(place_of_caller(), "chosen", law, flat, shape)
        if given is None:
            given = flat() if callable(flat) else flat
        return np.asarray(given, dtype=dtype).reshape(shape)
