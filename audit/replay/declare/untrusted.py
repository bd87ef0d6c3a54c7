"""Calls of primitives that are not trusted: what is known of one, to make it again.

Numbers, and lists of them, are copied before a call, as it may write to them. Objects
of any other kind are handed over as they are: a copy of one would repeat the noise of
a generator that it holds.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.audit.replay.laws.comparison import AnyLaw

__all__ = ["Handed", "UntrustedCall", "called", "listening"]

_DEEPEST = 8  # of what is within an argument
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_PLAIN = (str, bytes, bool, type(None), set, frozenset, range)

_heard: list[tuple[frozenset[str], list[Any]]] = []  # the innermost last


@contextmanager
def listening(names: frozenset[str]) -> Iterator[list[Any]]:
    """Yield a list of what the primitives of these names return in the block."""
    outputs: list[Any] = []
    _heard.append((names, outputs))
    try:
        yield outputs
    finally:
        _heard.pop()


def called(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a primitive, and note what it returns if somebody listens.

    What is called within it is its own affair, and not heard.
    """
    if not _heard:
        return function(*args, **kwargs)
    with listening(frozenset()):
        output = function(*args, **kwargs)
    if name in _heard[-1][0]:
        _heard[-1][1].append(_handed(output, None))
    return output


@dataclass(frozen=True, eq=False)
class UntrustedCall:
    """A call of a primitive that is not trusted.

    Parameters
    ----------
    name : str
    function : callable
    args : tuple
    kwargs : mapping
        What it was handed.
    law_of : callable
        Such arguments -> the law that is declared.
    bits : bool
        Whether its doubles are audited, rather than real numbers.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    law_of: Callable[..., AnyLaw]
    bits: bool

    @classmethod
    def of(
        cls, name: str, function: Any, args: Any, kwargs: Any, law_of: Any, bits: bool
    ) -> "UntrustedCall":
        """Return a call, with copies of what it may write to."""
        args, kwargs = _handed(args, None), _handed(kwargs, None)
        return cls(name, function, args, kwargs, law_of, bits)

    @property
    def held(self) -> tuple[Any, Any]:
        """The function, and the class that holds it if it is a method."""
        kind = type(self.args[0]) if self.args else None
        name = getattr(self.function, "__name__", "")
        return self.function, kind if hasattr(kind, name) else None

    @property
    def law(self) -> AnyLaw:
        """What is declared of it."""
        return self.law_of(*_handed(self.args, None), **_handed(self.kwargs, None))

    def again(self, rng: np.random.Generator) -> Any:
        """Make the call; `rng` is for the generator that the mechanism was handed."""
        return self.function(*_handed(self.args, rng), **_handed(self.kwargs, rng))

    def is_like(self, other: "UntrustedCall | None") -> bool:
        """Say whether another call is known to be handed the same."""
        return (
            other is not None
            and self.name == other.name
            and _alike(self.args, other.args)
            and _alike(self.kwargs, other.kwargs)
        )


@dataclass(frozen=True, eq=False)
class Handed:
    """The calls of a primitive for one noisy value, on D and on D'.

    Parameters
    ----------
    where, where_neighbour : str
    calls : tuple of UntrustedCall
    """

    where: str
    where_neighbour: str
    calls: tuple[UntrustedCall, UntrustedCall]


def _handed(value: Any, rng: np.random.Generator | None, depth: int = 0) -> Any:
    """Return a copy of plain data; anything else is itself, and `rng` what records."""
    kind = type(value)
    records = isinstance(value, _GENERATORS) and hasattr(kind, "of_seed")
    if rng is not None and records:
        if isinstance(value, random.Random):
            return random.Random(int(rng.integers(2**63)))
        if isinstance(value, np.random.RandomState):
            return np.random.RandomState(int(rng.integers(2**32)))
        return rng
    if depth <= _DEEPEST:
        if kind in (list, tuple):
            return kind(_handed(part, rng, depth + 1) for part in value)
        if kind is dict:
            return {name: _handed(part, rng, depth + 1) for name, part in value.items()}
    if kind in (np.ndarray, set) or kind.__module__.partition(".")[0] == "pandas":
        return value.copy()
    return value


def _alike(one: Any, other: Any, depth: int = 0) -> bool:
    """Say whether two arguments are known to be the same, but for rounding."""
    if one is other or all(isinstance(e, _GENERATORS) for e in (one, other)):
        return True
    if depth > _DEEPEST or type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_alike(*p, depth + 1) for p in pairs)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _alike(one[name], other[name], depth + 1) for name in one
        )
    if isinstance(one, _PLAIN):
        return bool(one == other)
    if isinstance(one, int | float | np.number):
        return bool(one == other or np.isclose(one, other, rtol=1e-9, atol=0)) or (
            math.isnan(one) and math.isnan(other)
        )
    if isinstance(one, np.ndarray):
        return _alike_arrays(one, other, depth)
    if type(one).__module__.partition(".")[0] == "pandas":
        return bool(one.equals(other))
    if hasattr(one, "__code__"):
        cells = [[c.cell_contents for c in f.__closure__ or ()] for f in (one, other)]
        return one.__code__ is other.__code__ and _alike(cells[0], cells[1], depth + 1)
    if "__eq__" in {name for kind in type(one).__mro__[:-1] for name in vars(kind)}:
        return bool(one == other)
    parts = [getattr(each, "__dict__", None) for each in (one, other)]
    return parts[0] is not None and _alike(parts[0], parts[1], depth + 1)


def _alike_arrays(one: Any, other: Any, depth: int) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True))
    if one.dtype.hasobject or one.dtype.names:
        return _alike(one.tolist(), other.tolist(), depth + 1)
    return bool(np.array_equal(one, other))
