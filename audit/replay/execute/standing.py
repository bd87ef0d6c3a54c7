"""Generators that were there before an execution, where the code comes to them by name.

A generator in a global name of the code's module, around a function, or among the
attributes of an object or class is replaced for an execution by one that records, and
put back after it: each execution draws what another one does not, as it would from the
generator that stands there. That holds for one that took its seed from the system. One
with a seed of its own can be drawn from again by whoever knows it. Its draws, those of
one whose seed is not known, and those of copies are recorded, so that their line can be
told, and count as not followed.

What else there is in a list, a slot or a library stays, and
`dpaudit.audit.replay.follow.foreign` looks whether it is drawn from.
"""

import linecache
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CellType, FunctionType, ModuleType
from typing import Any

from numpy.random import Generator, RandomState  # the real ones, in an execution too

from dpaudit.audit.replay.execute.generators import Legacy
from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.reached import (
    file_of,
    is_foreign,
    names_of,
    part_of,
    reached,
)

__all__ = ["standing"]

_KINDS = (Generator, RandomState, random.Random)
_LEAST = 2**64  # of what the system gives for a seed
_LARGE = re.compile(r"\b(?:0x[0-9a-fA-F]{16,}|[1-9][0-9]{19,})\b")
_FIRST = 2  # number of the streams, after those of two modules
_SEEDED = (
    "{} is a generator that was there before, of a seed that the system did not give"
)
_COPIED = "{} is a generator that was there before, and a copy of another one"

_Place = tuple[Any, str]
"""What holds something, and by which name: a dictionary, a class or a cell."""


@contextmanager
def standing(mechanism: Any, rng: RecordingGenerator) -> Iterator[None]:
    """Let generators that a mechanism comes to be recorders in the block."""
    found = [
        (place, value)
        for holder, names in _holders(mechanism)
        for place in _places(holder, names)
        if type(value := _get(place)) in _KINDS or _before(value) is not None
    ]
    seeds = Counter({id(value): _seed_of(value) for _, value in found}.values())
    made: dict[int, Any] = {}
    for place, value in found:
        if id(value) not in made:
            seed = _seed_of(value)
            given = _is_given(seed, [each for each, _ in found])
            why = _COPIED if seeds[seed] > 1 else _SEEDED if given else ""
            why = why.format(place[1])
            made[id(value)] = _recorder(value, rng, _FIRST + len(made), why)
        _set(place, made[id(value)])
    try:
        yield
    finally:
        for place, value in found:
            if _get(place) is made[id(value)]:  # else the code holds another one now
                _set(place, value)


def _recorder(value: Any, rng: RecordingGenerator, number: int, why: str) -> Any:
    """Return what stands for a generator in the execution of a recorder."""
    before = _before(value)
    if before is not None:
        made = rng.on(rng._streams.made_like(before._streams))
    else:
        made = rng.on(rng._streams.of_module(number), why)
    if isinstance(value, Generator):
        return made
    return Legacy(
        made, random.Random if isinstance(value, random.Random) else RandomState
    )


def _holders(mechanism: Any) -> Iterator[tuple[Any, set[str] | None]]:
    """Yield what may hold generators, and which names of it count, None for all."""
    for thing, _ in reached((mechanism, None)):
        if isinstance(thing, FunctionType):
            names = names_of(thing.__code__)
            yield thing.__globals__, names
            for cell, name in zip(
                thing.__closure__ or (), thing.__code__.co_freevars, strict=True
            ):
                yield cell, {name}
            for name in names:
                value = thing.__globals__.get(name)
                if isinstance(value, ModuleType) and is_foreign(file_of(value)):
                    yield vars(value), names
            continue
        kind = thing if isinstance(thing, type) else type(thing)
        for base in kind.__mro__:
            module = sys.modules.get(base.__module__)
            if is_foreign(file_of(module)):
                yield base, None
        held = part_of(thing, "__dict__")
        if kind is not thing and isinstance(held, dict):
            yield held, None


def _places(holder: Any, names: set[str] | None) -> list[_Place]:
    if names is None:
        names = set(holder if isinstance(holder, dict) else vars(holder))
    return [(holder, name) for name in sorted(filter(_is_text, names))]


def _is_text(name: Any) -> bool:
    return isinstance(name, str)


def _get(place: _Place) -> Any:
    holder, name = place
    if isinstance(holder, CellType):
        try:
            return holder.cell_contents
        except ValueError:  # it is empty
            return None
    return (holder if isinstance(holder, dict) else vars(holder)).get(name)


def _set(place: _Place, value: Any) -> None:
    holder, name = place
    if isinstance(holder, CellType):
        holder.cell_contents = value
    elif isinstance(holder, dict):
        holder[name] = value
    else:
        type.__setattr__(holder, name, value)


def _before(value: Any) -> RecordingGenerator | None:
    """Return the recorder of an earlier execution that the code has kept, if it is one.

    Only one that the code itself made, without a seed.
    """
    made = value._rng if type(value) is Legacy else value
    kept = type(made) is RecordingGenerator and made.tape.closed
    return made if kept and made._streams.is_made else None


def _seed_of(value: Any) -> Any:
    """Return the seed that a generator of NumPy has, None if it is not known."""
    bits = getattr(value, "_bit_generator", None)
    seed = getattr(bits, "seed_seq", None)
    return None if seed is None else (str(seed.entropy), seed.spawn_key)


def _is_given(seed: Any, places: Iterable[_Place]) -> bool:
    """Say whether a seed may be another one than the system gave, as the code's own."""
    if seed is None or not seed[0].isdigit() or int(seed[0]) < _LEAST:
        return True
    spaces = (holder for holder, _ in places if isinstance(holder, dict))
    return any(int(seed[0]) in _written(str(each.get("__file__"))) for each in spaces)


@lru_cache(maxsize=64)
def _written(file: str) -> frozenset[int]:
    """Return the large integers that are written in a file."""
    text = "".join(linecache.getlines(file)).replace("_", "")
    return frozenset(int(each, 0) for each in _LARGE.findall(text))
