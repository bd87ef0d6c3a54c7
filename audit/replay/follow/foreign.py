"""Generators that were there before an execution: whether the code draws from them.

Those that record are no such generators: they make others of seeds (``of_seed``).
"""

import gc
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import string_at
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.random import MT19937, PCG64, PCG64DXSM, Generator, RandomState

__all__ = ["ForeignGenerators", "foreign_draws_allowed"]

_KINDS: tuple[type, ...] = (Generator, RandomState, random.Random)  # the real ones
_TOLD_ANEW = (PCG64, PCG64DXSM)  # whose state is each time a new one, of numbers alone
_watching: list["ForeignGenerators"] = []
_while_listed = threading.Lock()


def all_objects() -> list[Any]:
    """Return all objects; the collector tells nothing of those that are frozen."""
    gc.unfreeze()
    return gc.get_objects()


@contextmanager
def foreign_draws_allowed() -> Iterator[None]:
    """Let generators be drawn from in the block, as declared primitives may."""
    with _while_listed:
        watches = _watching.copy()
    before = [(watch, watch.states()) for watch in watches]
    try:
        yield
    finally:
        for watch, states in before:
            watch.excuse(states)


class ForeignGenerators:
    """Generators, and whether they are drawn from in the block.

    Parameters
    ----------
    generators : list, optional
        All that there are by default.

    Attributes
    ----------
    found : list
        The generators.
    """

    def __init__(self, generators: list[Any] | None = None) -> None:
        self.found = self._all() if generators is None else generators
        self._before = self.states()

    def __enter__(self) -> Self:
        with _while_listed:
            _watching.append(self)
        return self

    def __exit__(self, *raised: object) -> None:
        with _while_listed:
            _watching.remove(self)

    @staticmethod
    def _all() -> list[Any]:
        kinds = [*_KINDS]
        for kind in kinds:  # which grow
            kinds += type.__subclasses__(kind)
        known = {kind for kind in kinds if not hasattr(kind, "of_seed")}
        things = all_objects()
        return list(compress(things, map(known.__contains__, map(type, things))))

    def used(self) -> bool:
        """Say whether one of them was drawn from since."""
        return self.states() != self._before

    def excuse(self, states: list[Any]) -> None:
        """Count from now on, unless one was drawn from before it had these states."""
        if states == self._before:
            self._before = self.states()

    def states(self) -> list[Any]:
        """Return the states of the generators."""
        states = []
        for each in self.found:
            try:
                states.append(_state(each))
            except Exception:
                states.append(None)
        return states


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return (
            None if isinstance(generator, random.SystemRandom) else generator.getstate()
        )
    bits = getattr(generator, "_bit_generator", None)
    bits = generator.bit_generator if bits is None else bits
    if type(bits) is MT19937 and _TWISTER:
        return string_at(bits.ctypes.state_address, _TWISTER)
    return bits.state if type(bits) in _TOLD_ANEW else _frozen(bits.state)


def _bytes_of_a_twister() -> int:
    """Return how many bytes are the state of NumPy's Mersenne Twister.

    Its own way to tell the state takes longer than a short execution. Where the bytes
    are not what it tells, the number is 0.
    """
    bits = MT19937(0)
    bits.random_raw(3)
    state: Any = bits.state["state"]
    told = state["key"].tobytes() + int(state["pos"]).to_bytes(4, sys.byteorder)
    return len(told) if string_at(bits.ctypes.state_address, len(told)) == told else 0


_TWISTER = _bytes_of_a_twister()


def _frozen(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple((key, _frozen(value)) for key, value in state.items())
    return state.tobytes() if isinstance(state, np.ndarray) else state
