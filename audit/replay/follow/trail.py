"""What an execution did, line by line: kept only where it is asked for a line.

A **trail** has the lines that the code under audit came by, in each call of a function;
where it drew, as the stack of those calls (an event); and every array with noise that
was made on the way, with the line that made it.

Tracing is Python's own (``sys.settrace``). What traced before does so again afterwards.
"""

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.looked import Looked
from dpaudit.audit.replay.follow.places import is_code, place_in, place_of_caller

__all__ = ["Trail", "parted", "skipped"]

_Event: TypeAlias = tuple[tuple[int, int], ...]
"""The calls that were under way, outermost first: their number, and how many lines."""

_MOST_LINES = 200_000
_MOST_VALUES, _MOST_NUMBERS = 20_000, 2_000_000
_LARGEST = 10_000  # numbers of a variable that is watched


@dataclass(slots=True)
class _Frame:
    """A call of a function of the code under audit, and the lines it came by."""

    code: CodeType
    lines: array = field(default_factory=lambda: array("i"))  # type: ignore[type-arg]


@dataclass(frozen=True, eq=False, slots=True)
class _NoisyValue:
    """An array with noise, when it was made: where, its ordinary part, its terms."""

    place: str
    centre: Array
    terms: Any

    def rows(self, draws: NDArray[np.intp]) -> tuple[Array, Array, NDArray[np.intp]]:
        """Return ordinary part, coefficients and draws of entries that have some."""
        index, coef = self.terms.index, self.terms.coef
        used = np.isin(index, draws).any(axis=1) if index.size else np.zeros(0, bool)
        if not used.any():
            return np.empty(0), np.empty((0, 0)), np.empty((0, 0), dtype=np.intp)
        return self.centre[used], coef[used], index[used]


@dataclass(eq=False)
class Trail:
    """The lines, draws and noisy values of an execution.

    Parameters
    ----------
    watched : str
        A variable of the outermost function, whose numbers are kept as they change.
    frames : list of _Frame
    events : list of _Event
        Where the code drew.
    end : _Event
        Where the outermost function ended.
    values : list of _NoisyValue
    history : list of (int, tuple)
        After how many lines the variable had which numbers, when it had others.
    whole : bool
        Whether all was kept: it is not where there is too much.
    """

    watched: str = ""
    frames: list[_Frame] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)
    end: _Event = ()
    values: list[_NoisyValue] = field(default_factory=list)
    history: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)
    whole: bool = True

    def __post_init__(self) -> None:
        self._stack: list[int] = []
        self._lines = self._numbers = 0

    # -- what is kept

    def drew(self) -> None:
        """Keep where the code draws."""
        if self._stack and len(self.events) < _MOST_LINES:
            self.events.append(self._now())

    def made(self, value: Any) -> None:
        """Keep an array with noise that the code just made, or wrote into."""
        self._numbers += value.centre.size
        if self._numbers > _MOST_NUMBERS or len(self.values) >= _MOST_VALUES:
            self.whole = False
            return
        kind = np.result_type(value.centre, np.float64)
        centre = np.array(value.centre, dtype=kind).ravel()
        self.values.append(_NoisyValue(place_of_caller(), centre, value.terms))

    @contextmanager
    def recording(self) -> Iterator[list[str]]:
        """Keep the lines of what is executed in the block."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield []
        finally:
            sys.settrace(before)

    # -- what was kept

    def stack(self, event: _Event) -> list[tuple[CodeType, int]]:
        """Return the functions, and lines in them, that an event stands in."""
        frames = ((self.frames[number], count) for number, count in event)
        return [
            (frame.code, frame.lines[count - 1]) for frame, count in frames if count
        ]

    def place(self, call: tuple[int, int]) -> str:
        """Return the line that a call was at after so many."""
        frame = self.frames[call[0]]
        return place_in(frame.code.co_filename, frame.lines[call[1] - 1])

    def _now(self) -> _Event:
        return tuple((each, len(self.frames[each].lines)) for each in self._stack)

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        if event != "call" or not is_code(frame.f_code.co_filename):
            return None
        if not self.whole:
            return None
        number, outermost = len(self.frames), not self._stack
        made = _Frame(frame.f_code)
        self.frames.append(made)
        self._stack.append(number)

        def local(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                if outermost and self.watched:
                    self._watch(made, frame.f_locals)
                made.lines.append(frame.f_lineno)
                self._lines += 1
                self.whole &= self._lines < _MOST_LINES
            elif event == "return":
                if outermost:
                    self.end = self._now()
                    if self.watched:
                        self._watch(made, frame.f_locals)
                while self._stack and self._stack.pop() != number:
                    pass
            return local

        return local

    def _watch(self, frame: _Frame, variables: Mapping[str, Any]) -> None:
        found: list[float] = []
        _collect(variables.get(self.watched), found)
        if len(found) <= _LARGEST:
            numbers = tuple(found)
            if not self.history or self.history[-1][1] != numbers:
                self.history.append((len(frame.lines), numbers))


def _collect(value: Any, found: list[float], depth: int = 0) -> None:
    """Add the numbers of a value to a list, without looking at noise."""
    if len(found) > _LARGEST or depth > 8:
        return
    if type(value) is dict:
        for part in value.values():
            _collect(part, found, depth + 1)
    elif type(value) in (list, tuple):
        for part in value:
            _collect(part, found, depth + 1)
    elif type(value) in (int, float, bool):
        found.append(float(value))
    elif isinstance(value, Looked):
        found.extend(value.centre.ravel().tolist())
    elif type(value) is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind in "fiub" and value.size <= _LARGEST:
            found.extend(np.asarray(value, dtype=np.float64).ravel().tolist())


def parted(one: Trail, other: Trail, a: _Event, b: _Event) -> tuple[str, str] | None:
    """Return where two executions parted, on the way to two events."""
    before: tuple[str, str] | None = None
    for call, call2 in zip(a, b, strict=False):
        frame, frame2 = one.frames[call[0]], other.frames[call2[0]]
        if frame.code is not frame2.code:
            return before
        at = frame.lines[: call[1]], frame2.lines[: call2[1]]
        if at[0][-1] != at[1][-1]:
            line = _fork(*at)
            place = None if line is None else place_in(frame.code.co_filename, line)
            return before if place is None else (place, place)
        before = one.place(call), other.place(call2)
    return before


def skipped(one: Trail, other: Trail) -> tuple[str, str] | None:
    """Return the line from which one side went on to a line that the other skips.

    Of the outermost function, where both end at the same line.
    """
    if not (one.end and other.end):
        return None
    frames = one.frames[one.end[0][0]], other.frames[other.end[0][0]]
    here, there = (frame.lines for frame in frames)
    pairs = enumerate(zip(here, there, strict=False))
    apart = next((n for n, (x, y) in pairs if x != y), 0)
    if not apart or not {here[apart], there[apart]} & ({*here} ^ {*there}):
        return None
    place = place_in(frames[0].code.co_filename, here[apart - 1])
    return place, place


def _fork(here: Sequence[int], there: Sequence[int]) -> int | None:
    """Return the last line that two ways have in common, before they end apart."""
    pairs = enumerate(zip(here, there, strict=False))
    first = next((n for n, (x, y) in pairs if x != y), min(len(here), len(there)))
    seen: tuple[set[int], set[int]] = (set(), set())
    for back in range(1, max(len(here), len(there)) + 1):
        for lines, known in zip((here, there), seen, strict=True):
            if back <= len(lines):
                known.add(lines[-back])
        common = seen[0] & seen[1]
        if common:
            start = here[first - 1] if first else None
            return start if start in common else min(common)
    return None
