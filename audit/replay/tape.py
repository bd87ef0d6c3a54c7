"""The tape of one execution: its draws, and every noisy value that its code looked at.

A draw is fresh until some value that it is part of is *looked at*: compared, rounded,
written into an ordinary array, printed. What was looked at is a primitive with an input
(the mean) and an output (the value), and from then on an ordinary number.

On replay the outputs are given back, and the draws behind them become what they must
have been on these data: so, whatever else is made of the same draws later is what it
would be if the neighbour's execution had shown those very outputs.
"""

import dis
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit import interrupts
from dpaudit.arrays import Array
from dpaudit.audit import drawing
from dpaudit.audit.replay.chances import Chances
from dpaudit.audit.replay.laws import Family, Law

__all__ = [
    "EAGER",
    "LAZY",
    "Lost",
    "Observation",
    "Reading",
    "Tape",
    "called_by_name",
    "is_code",
    "place_in",
    "place_of_caller",
]

Recipe: TypeAlias = Callable[[int], Array]

_FRESH, _SPENT, _PARTLY = 0, 1, 2
_HERE = os.path.dirname(os.path.abspath(__file__))
_EXECUTOR = "executor.py"  # where the code under audit is called from
# What may stand between the two.
_DRAWN_BY = os.path.split(os.path.abspath(drawing.__file__))
_INTERRUPTS = os.path.split(os.path.abspath(interrupts.__file__))
_HANDED_OUT = frozenset({"float", "item", "tolist"})
_LIBRARY = os.path.dirname(os.__file__)
_NUMERIC = (os.path.dirname(np.__file__), os.path.dirname(scipy.__file__))


def place_of_caller() -> str:
    """Return "file:line" of the code under audit that is running now.

    That is the innermost frame outside NumPy, SciPy, Python's own library and this
    package.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        kind = _kind(file)
        if kind == "code":
            return place_in(file, frame.f_lineno)
        if kind == "end":
            break
        frame = frame.f_back
    return "?"


def goes_straight_out() -> bool:
    """Say whether what is looked at now is all that the mechanism returns.

    So it is where the code under audit that runs now is the mechanism's own function,
    and its next instruction returns what the present one leaves: nothing else can
    depend on the number.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _kind(frame.f_code.co_filename) == "own":
        frame = frame.f_back
    if frame is None or frame.f_back is None:
        return False
    caller = os.path.split(os.path.abspath(frame.f_back.f_code.co_filename))
    called_by_us = caller in ((_HERE, _EXECUTOR), _DRAWN_BY, _INTERRUPTS)
    return called_by_us and _returns_next(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _returns_next(code: CodeType, at: int) -> bool:
    """Say whether the instruction after one is a plain return, within no handler."""
    if code.co_exceptiontable or code.co_flags & 0x2A0:  # generators and coroutines
        return False
    listed = list(dis.get_instructions(code))
    for instruction, following in pairwise(listed):
        if instruction.offset <= at < following.offset:
            return following.opname == "RETURN_VALUE"
    return False


def called_by_name(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in spells the name of the function.

    NumPy's functions are looked up by compiled code as well, which has no frame of its
    own, and which trusts what they return to be an array.
    """
    return _spells(frame.f_code, frame.f_lasti, name)


@lru_cache(maxsize=4096)
def _spells(code: CodeType, at: int, name: str) -> bool:
    """Say whether the function of the call at an instruction is called so there."""
    listed = list(dis.get_instructions(code))
    # The interpreter may stand at one of the empty slots that follow a call.
    call = [each for each in listed if each.offset <= at][-1]
    if not call.positions or call.positions.col_offset is None:
        return False
    start = call.positions[0], call.positions[2]
    loads = [
        each.argval
        for each in listed
        if each.offset < at
        and each.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME")
        and each.positions
        and (each.positions[0], each.positions[2]) == start
    ]
    return bool(loads) and loads[-1] == name


def place_in(file: str, line: int) -> str:
    """Return "file:line", the file as seen from the current folder if it is below."""
    return f"{_shown(file, os.getcwd())}:{line}"


def is_code(file: str) -> bool:
    """Say whether a file is the code under audit: neither a library nor its caller."""
    return _kind(file) == "code" and "site-packages" not in file


@lru_cache(maxsize=4096)
def _shown(file: str, folder: str) -> str:
    try:
        near = os.path.relpath(file, folder)
    except (ValueError, OSError):
        return file
    return file if near.startswith("..") else near


@lru_cache(maxsize=4096)
def _kind(file: str) -> str:
    """Return whether a file is the code under audit, what calls it, or neither."""
    folder, name = os.path.split(os.path.abspath(file))
    if folder == _HERE:
        return "end" if name == _EXECUTOR else "own"
    if (folder, name) in (_DRAWN_BY, _INTERRUPTS):
        return "own"
    if file.startswith("<") or any(f"{folder}/".startswith(f"{n}/") for n in _NUMERIC):
        return "own"
    within = f"{folder}/".startswith(f"{_LIBRARY}/")
    return "own" if within and "site-packages" not in folder else "code"


@dataclass(frozen=True, slots=True)
class Lost:
    """Why an execution could not be followed, and where."""

    place: str
    why: str


@dataclass(frozen=True, slots=True)
class Reading:
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


LAZY, EAGER = Reading(), Reading(eager=True)


@dataclass(slots=True)
class Observation:
    """A noisy value that the code looked at, or a choice that was made.

    `bare` says that nothing had been added to its draws: it is a coin.
    """

    place: str
    how: str
    law: Law | Chances
    value: Array
    shape: tuple[int, ...]
    bare: bool


@dataclass
class Tape:
    """What one execution drew and looked at.

    Parameters
    ----------
    seed : int
    script : list of Observation, optional
        Of the execution that is replayed.
    reading : Reading
    goes_on : bool
        Whether the execution may go on by itself where the script ends.
    """

    seed: int
    script: list[Observation] | None = None
    reading: Reading = LAZY
    goes_on: bool = False
    observations: list[Observation] = field(default_factory=list)
    coins: list[Lost] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    diverged: Lost | None = None
    # Whether the script was left at a choice, which may be hidden.
    left_at_choice: bool = False
    closed: bool = False
    selected: bool = False
    # What went straight out of the mechanism as an ordinary number.
    final: Any = None
    _places: list[str] = field(default_factory=list)
    _recipes: list[Recipe | None] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._size = 0
        self._z = np.empty(256)
        self._family = np.empty(256, dtype=np.intp)
        self._state = np.zeros(256, dtype=np.int8)
        self._thread = threading.get_ident()

    @property
    def families(self) -> NDArray[np.intp]:
        """The family of every draw."""
        return self._family[: self._size]

    def draw(
        self, family: Family, values: Array, recipe: Recipe | None = None
    ) -> NDArray[np.intp]:
        """Put new draws on the tape, and return their numbers.

        A recipe makes the draws that another seed would have given.
        """
        self.check_thread()
        start, end = self._size, self._size + values.size
        if end > len(self._z):
            room = max(2 * len(self._z), end)
            for name in ("_z", "_family", "_state"):
                old = getattr(self, name)
                new = np.zeros(room, dtype=old.dtype)
                new[:start] = old[:start]
                setattr(self, name, new)
        self._z[start:end] = values.ravel()
        self._family[start:end] = family
        self._state[start:end] = _FRESH
        self._size = end
        self._places.append(place_of_caller())
        self._starts.append(start)
        self._recipes.append(recipe)
        return np.arange(start, end).reshape(values.shape)

    def redrawn(self, seed: int) -> bool:
        """Make all draws those of another seed; False if that cannot be done."""
        recipes = [recipe for recipe in self._recipes if recipe is not None]
        if len(recipes) < len(self._recipes):
            return False
        for start, recipe in zip(self._starts, recipes, strict=True):
            values = np.ravel(recipe(seed))
            self._z[start : start + len(values)] = values
        return True

    def place_of(self, draw: int) -> str:
        """Return where a draw was made."""
        block = int(np.searchsorted(self._starts, draw, side="right")) - 1
        return self._places[block]

    def lose(self, why: str) -> None:
        """Note that something happened that cannot be followed."""
        if not self.closed:
            self.lost.append(Lost(place_of_caller(), why))

    def coin(self, why: str) -> None:
        """Note that randomness was used as ordinary numbers."""
        if not self.closed:
            self.coins.append(Lost(place_of_caller(), why))

    @property
    def is_mine(self) -> bool:
        """Whether this is the thread that executes the mechanism."""
        return threading.get_ident() == self._thread

    def check_thread(self) -> bool:
        """Say whether this is the mechanism's thread, and note it if it is not."""
        if not self.is_mine:
            self.lose("randomness is used in another thread")
        return self.is_mine

    def settled(
        self, mean: Array, index: NDArray[np.intp], coef: Array
    ) -> tuple[Array, NDArray[np.intp], Array, bool]:
        """Return mean and terms, draws that are known by now being part of the mean.

        The last says whether a draw is among them of which only a sum was seen.
        """
        if not index.size:
            return mean, index, coef, False
        state = np.where(index >= 0, self._state[index], _FRESH)
        known = state == _SPENT
        partly = bool((state == _PARTLY).any())
        if known.any():
            with np.errstate(all="ignore"):
                add = np.where(known, coef * self._z[index], 0.0).sum(axis=1)
            mean = mean + add
            index, coef = np.where(known, -1, index), np.where(known, 0.0, coef)
        return mean, index, coef, partly

    def law(self, mean: Array, index: NDArray[np.intp], coef: Array) -> Law:
        """Return the law of a value, given what was looked at before."""
        mean, index, coef, partly = self.settled(mean, index, coef)
        if partly:
            self.lose("a draw is used again of which only a sum was seen")
        return Law.of(mean, index, coef, self.families)

    def value(self, mean: Array, index: NDArray[np.intp], coef: Array) -> Array:
        """Return what a value is in this execution, without looking at it."""
        if not index.shape[1]:
            return mean.copy()
        with np.errstate(all="ignore"):
            parts = np.where((index >= 0) & (coef != 0), coef * self._z[index], 0.0)
            return np.asarray(mean + parts.sum(axis=1))

    def observe(
        self,
        whole: Any,
        mean: Array,
        index: NDArray[np.intp],
        coef: Array,
        shape: tuple[int, ...],
        bare: bool,
        how: str,
    ) -> Array:
        """Return a value that the code looks at, flat, as ordinary numbers."""
        self.check_thread()
        place = place_of_caller()
        mean, index, coef, partly = self.settled(mean, index, coef)
        value = self.value(mean, index, coef)
        if self.closed:
            return value
        if partly:
            self.lose("a draw is used again of which only a sum was seen")
        if not (index >= 0).any():
            return value
        if how in _HANDED_OUT and goes_straight_out():
            self.final = whole
            return value
        law = Law.of(mean, index, coef, self.families)
        if bare:
            self.coins.append(Lost(place, "noise is used as an ordinary number"))
            self._spend(index, law)
            return value
        if not law.followed:
            self.lost.append(
                Lost(place, "noise of this form has no density that is known here")
            )
        if self.script is not None:
            value = self._given_back(law, value, shape, place)
            if self.diverged is not None:
                self._spend(index, law)
                return value
        made = Observation(place, how, law, value, shape, bare)
        self.observations.append(made)
        self._spend(index, law)
        return value

    def _given_back(
        self, law: Law | Chances, value: Array, shape: tuple[int, ...], place: str
    ) -> Array:
        """Return the output of the script, and make the draws agree with it."""
        assert self.script is not None
        recorded = self._next(isinstance(law, Chances), shape, place)
        if recorded is None or isinstance(law, Chances):
            return value if recorded is None else recorded.value.copy()
        if law.known and len(law.first):
            ratio = law.ratio[law.first]
            with np.errstate(all="ignore"):
                u = (recorded.value[law.first] - law.mean[law.first]) / ratio
            self._z[law.draw[law.alone]] = u[law.alone]
        return recorded.value.copy()

    def _next(
        self, chosen: bool, shape: tuple[int, ...], place: str
    ) -> Observation | None:
        """Return what the script has next; None where the execution left it."""
        assert self.script is not None
        number = len(self.observations)
        if self.diverged is not None:
            return None
        if number >= len(self.script):
            if not self.goes_on:
                self.diverged = Lost(place, "one noisy value more than on D")
                self.left_at_choice = chosen
            return None
        recorded = self.script[number]
        if recorded.how and chosen != isinstance(recorded.law, Chances):
            words = ("a noisy number", "a choice")
            self.diverged = Lost(
                place, f"{words[not chosen]} on D is {words[chosen]} on D'"
            )
        elif recorded.shape != shape:
            self.diverged = Lost(
                place,
                f"a noisy value has shape {recorded.shape} on D and {shape} on D'",
            )
        if self.diverged is None:
            return recorded
        self.left_at_choice = chosen or isinstance(recorded.law, Chances)
        return None

    def choose(
        self, law: Chances, value: NDArray[Any], shape: tuple[int, ...]
    ) -> NDArray[np.intp]:
        """Return outcomes of a choice, of that shape: those drawn, or the script's."""
        self.check_thread()
        place, flat = place_of_caller(), np.ravel(value)
        if not self.closed:
            if self.script is not None:
                flat = self._given_back(law, flat, shape, place)
            if flat.size and flat.max() >= law.outcomes:
                self.diverged = Lost(place, "an outcome on D is none on D'")
                flat = np.ravel(value)
            if self.diverged is None:
                made = Observation(place, "chosen", law, flat, shape, False)
                self.observations.append(made)
        return np.asarray(flat, dtype=np.intp).reshape(shape)

    def _spend(self, index: NDArray[np.intp], law: Law) -> None:
        """Mark the draws of an observation: known, or known by a sum alone."""
        self._state[index[index >= 0]] = _PARTLY
        self._state[law.draw[law.alone]] = _SPENT

    def are_fresh(self, draws: NDArray[np.intp]) -> bool:
        """Say whether nothing was seen of some draws yet."""
        return bool((self._state[draws] == _FRESH).all())

    def use_up(self, draws: NDArray[np.intp]) -> None:
        """Mark draws that became part of others: nobody may use them again."""
        self._state[draws] = _PARTLY
