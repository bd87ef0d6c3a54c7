"""Entries of arrays, some with noise, that are moved by moving their places.

A function that only moves entries moves their places in the same way. So it is called
on the numbers of places, and the entries are put where their places went; place 0 holds
a zero, for functions that fill up with zeros.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    DEEPEST,
    Tracked,
    has_noise,
    isinstance_tracked,
    numeric,
)

__all__ = ["Entries", "moved_by"]


class Entries:
    """The entries of all arguments of a call, one after the other; the first is 0."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._size = tape, 1
        self._parts: list[Tracked] = [Tracked.plain(tape, np.zeros(1))]

    def place(self, value: Any, depth: int = 0) -> Any:
        """Return places for entries, in lists as they come, or raise `LookupError`."""
        if type(value) in (list, tuple) and has_noise(value):
            if depth > DEEPEST:
                raise LookupError
            return type(value)(self.place(part, depth + 1) for part in value)
        if isinstance_tracked(value) and value.tape is not self._tape:
            value = value.looked_at("moved")
        if not isinstance_tracked(value):
            array = numeric(value)
            if array is None:
                raise LookupError
            value = Tracked.plain(self._tape, array)
        if value.is_choice:
            value.looked_at("chosen")
        start = self._size
        self._size += value.size
        self._parts.append(value)
        return np.arange(start, self._size).reshape(value.shape)

    def gather(self, places: Any) -> Any:
        """Return entries in place of their places."""
        if isinstance(places, list | tuple):
            return type(places)(self.gather(part) for part in places)
        return Tracked.joined(self._tape, self._parts).taken(np.asarray(places))


def moved_by(move: Callable[..., Any], tape: Tape, values: list[Any]) -> Any:
    """Return what a function gives that only moves entries; places below 0 are none."""
    pool = Entries(tape)
    try:
        places = move(*map(pool.place, values))
    except LookupError:
        return NotImplemented
    several = places if type(places) is list else [places]
    if any((each < 0).any() for each in several):
        return NotImplemented
    return pool.gather(places)
