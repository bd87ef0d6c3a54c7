"""A release, taken apart into words and numbers."""

from array import array
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np

from dpaudit.attributes import attributes_of
from dpaudit.audit.replay.declare.held import HeldArray
from dpaudit.audit.replay.follow.frames import is_framed, parts_of
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.texts import written
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked
from dpaudit.outputs import UNREAD, arrays_of, read

__all__ = ["Reader"]

_DEEPEST = 30
_WITH_ENTRIES = list, tuple, Mapping, AbstractSet, Number, str, bytes, np.ndarray
"""What may hold attributes besides its entries, in a class of one's own."""
_READ = (*_WITH_ENTRIES, np.generic, bytearray)


class Reader:
    """Takes a release apart into words and numbers."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._parts: list[Tracked] = []
        self._scalars = array("d")
        self._met: dict[int, int] = {}
        self.words: list[str] = []
        self.unread = False

    def read(self, value: Any, depth: int = 0) -> None:
        """Read a release, or a part of one."""
        if isinstance_tracked(value) and value.tape is self._tape:
            if value.is_complex:
                self.words.append(read(np.zeros_like(value.centre)).layout)
                value = value.both().moved(lambda places: np.moveaxis(places, 0, -1))
            self._numbers(value)
        elif issubclass(type(value), HeldArray):
            self.words.append(read(value.like()).layout)
            self.read(value.held)
        elif is_framed(value) and depth < _DEEPEST:
            self._framed(value, depth)
        else:
            self._entries(value, depth)
            besides = getattr(value, "__dict__", None)
            if besides and isinstance(value, _WITH_ENTRIES) and depth < _DEEPEST:
                shown = {name: each for name, each in besides.items() if name[0] != "_"}
                self._entries(shown, depth + 1)

    def _entries(self, value: Any, depth: int) -> None:
        """Read the entries of a list, or what else there is."""
        if depth >= _DEEPEST:
            self._plain(value)
        elif type(value) is dict:
            self._named(value, depth)
        elif isinstance(value, list | tuple):
            self.words.append("[")
            for part in value:
                self.read(part, depth + 1)
            self.words.append("]")
        elif isinstance(value, np.ndarray) and value.dtype == object:
            self.read(value.tolist(), depth + 1)
        elif (held := self._held(value)) is not None:
            self._named(held, depth)
        else:
            self._plain(value)

    def _named(self, parts: dict[Any, Any], depth: int) -> None:
        self.words.append("{")
        for key, part in parts.items():
            self.words.append(f"{key!r}:")
            self.read(part, depth + 1)
        self.words.append("}")

    def _held(self, value: Any) -> dict[str, Any] | None:
        """Return what an object holds; of one that was read already only which it is.

        None of what has entries, or is a word, or may hold anything else.
        """
        if isinstance(value, _READ) or value is None or hasattr(value, "__array__"):
            return None
        held = attributes_of(value)
        if held is None:
            return None
        number = self._met.setdefault(id(value), len(self._met))
        if number < len(self._met) - 1:
            self.words.append(f"object {number}")
            return {}
        self.words.append(type(value).__qualname__)
        return held

    def _framed(self, value: Any, depth: int) -> None:
        """Read a table, with its labels."""
        try:
            parts = parts_of(value)
        except Exception:
            self.words.append(f"{UNREAD}{type(value).__name__}")
            self.unread = True
            return
        for part in parts:
            self.read(part, depth + 1)

    def _plain(self, value: Any) -> None:
        if isinstance_tracked(value):  # of an earlier execution
            value = value.looked_at("released")
        if type(value) in (float, bool, np.float64, Fraction, Decimal):
            self.words.append("()")
            self._scalars.append(float(value))
            return
        masked = isinstance(value, np.ma.MaskedArray)  # whose mask is seen as well
        given = value if isinstance(value, np.ndarray) and not masked else None
        if isinstance(value, int | float | np.number | np.bool_):
            given = np.asarray(value)
        if given is not None and given.dtype.kind in "fiub":
            numbers = np.array(given, dtype=np.float64)
            self._numbers(Tracked.plain(self._tape, numbers))
            return
        output = read(value)
        self.words.append(output.layout)
        if isinstance(value, str):
            self.words[-1] += written(value)
        self.unread |= output.layout.startswith(UNREAD) and value is not None
        if output.numbers is not None:
            for numbers in arrays_of(output.numbers):
                self._numbers(Tracked.plain(self._tape, np.asarray(numbers)))

    def _numbers(self, value: Tracked) -> None:
        self._end_scalars()
        self.words.append(str(value.shape))
        self._parts.append(value)

    def _end_scalars(self) -> None:
        """Make of the scalars that came one after the other a part."""
        if self._scalars:
            numbers = np.array(self._scalars)
            self._parts.append(Tracked.plain(self._tape, numbers))
            self._scalars = array("d")

    def joined(self) -> Tracked:
        """Return all numbers as one flat array."""
        self._end_scalars()
        return Tracked.joined(
            self._tape, self._parts or [Tracked.plain(self._tape, np.empty(0))]
        )
