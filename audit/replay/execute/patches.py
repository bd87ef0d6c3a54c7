"""Functions that are replaced while a mechanism is executed, and put back afterwards.

- ``np.array``, ``np.asarray`` and the like, which cannot be overloaded, keep the noise
  of lists; ``np.zeros``, ``empty``, ``ones`` and ``full``,
  called by the code under audit itself, give arrays that noise can be written into.
- Tasks of a ``ThreadPoolExecutor`` are executed one after the other, at once
  (`dpaudit.audit.replay.execute.pools`).
- Functions of ``numpy.random`` and ``random``, and generators made without a seed, draw
  from the recorder.
- What forks, or seeds a global generator with a number of its own, is noted on the
  tape: it cannot be followed. So is the use of a generator that was there before.
"""

import itertools
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import is_
from types import FrameType
from typing import Any

import numpy as np

from dpaudit.audit.replay.declare.libraries import replaced
from dpaudit.audit.replay.execute.conversions import (
    conversions,
    drawn_by_name,
    like,
    named,
)
from dpaudit.audit.replay.execute.generators import Legacy, drawing_functions
from dpaudit.audit.replay.execute.pools import at_once
from dpaudit.audit.replay.execute.system import system_of
from dpaudit.audit.replay.follow.foreign import ForeignGenerators
from dpaudit.audit.replay.follow.frames import noise_of, tables
from dpaudit.audit.replay.follow.functions import stacked
from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.linear import ScipyTransforms
from dpaudit.audit.replay.follow.places import called_by_name, is_code
from dpaudit.audit.replay.follow.streams import Position
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, has_noise, looked_at_within

__all__ = ["patched"]

_STATES = ("get_state", "getstate", "set_state", "setstate", "seed")
_LOSING: dict[Any, tuple[str, ...]] = {
    np.random: ("set_bit_generator", "get_bit_generator"),
    os: ("fork", "forkpty"),
}
_NEVER_NOISY = frozenset({np.ndarray, float, int, bool, str, np.float64})

_KINDS = (np.dtype(np.float64), np.dtype(np.complex128))

_BY_NAME = "a global generator is used that was imported by name"

_ONE_AT_A_TIME = threading.RLock()  # so that what is put back is what there was


@contextmanager
def patched(
    mechanism: Any,
    tape: Tape,
    rng: RecordingGenerator,
    *,
    follows: bool,
    variant: int = 0,
) -> Iterator[dict[int, Any]]:
    """Replace functions for the block, and put them back after any exit.

    Of one seed, each variant takes other entropy from the system. Yielded is what
    stands for each function of a global generator, by its `id`.
    """
    from scipy import fft  # loaded by who executes alone

    with _ONE_AT_A_TIME:
        now = _made.get(follows)
        if now is None or not now.in_place:
            now = _made[follows] = _Replacements(follows)
        generators = [random._inst, Legacy.of_numpy]
        with ForeignGenerators(generators) as watch:
            try:
                system = system_of(tape, rng, variant, now.owners)
                with (
                    system,
                    now.put(tape, rng),
                    fft.set_backend(ScipyTransforms),
                    named(mechanism, follows=follows) as plainly,
                    replaced((e, partial(_compiled, now, plainly)) for e in _COMPILES),
                ):
                    yield now.global_functions
            finally:
                if watch.used():
                    tape.cannot_follow(_BY_NAME)


class _Replacements:
    """Functions in place of others, for the execution that runs now.

    They are made once, and again if what they stand for is not there any more: where a
    mechanism executes another, say, or other code replaced a function meanwhile.
    Code that keeps one of them has, after the execution, the function that it stands
    for.

    Parameters
    ----------
    follows : bool
        Whether arrays keep noise.
    """

    def __init__(self, follows: bool) -> None:
        self.tape: Tape | None = None
        self.rng: Any = None
        self.tasks = itertools.count()
        self._follows = follows
        self._global = Legacy.standing(partial(self.of, np.random))
        self._of: dict[Any, RecordingGenerator] = {}
        self._tables = tables() if follows else ()
        # Where it stands, its name, what stands there, and what shall stand there.
        self._every = [
            (owner, name, vars(owner)[name], ours)
            for owner, name, ours in self._all(follows)
            if name in vars(owner)
        ]
        # Modules and classes where something is replaced, each once.
        self.owners = list(dict.fromkeys(owner for owner, *_ in self._every))
        self._there = [(vars(owner).get, name) for owner, name, *_ in self._every]
        self._real = [real for _, _, real, _ in self._every]
        self.global_functions = {  # none is a method of a class that holds it
            id(real): ours if isinstance(ours, type) else staticmethod(ours)
            for owner, _, real, ours in self._every
            if owner in (np.random, random)
        }

    @property
    def in_place(self) -> bool:
        """Whether all that is to be replaced is there, and nothing is replaced."""
        there = [get(name) for get, name in self._there]
        return self._tables == (tables() if self._follows else ()) and all(
            map(is_, there, self._real)
        )

    @contextmanager
    def put(self, tape: Tape, rng: RecordingGenerator) -> Iterator[None]:
        """Replace functions for an execution, and make all as it was after it."""
        self.tape, self.rng, self.tasks = tape, rng, itertools.count()
        try:
            self._put()
            yield
        finally:
            self._put_back()
            self.tape = self.rng = None
            self._of.clear()

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Let all be as it was for a block within an execution."""
        self._put_back()
        try:
            yield
        finally:
            self._put()

    def _put(self) -> None:
        for owner, name, _, ours in self._every:
            setattr(owner, name, ours)

    def _put_back(self) -> None:
        there = [get(name) for get, name in self._there]
        for (owner, name, real, ours), now in zip(self._every, there, strict=True):
            if now is ours:  # what else is there will be told
                setattr(owner, name, real)

    def of(self, owner: Any) -> RecordingGenerator:
        """Return the recorder that stands for the global generator of a module."""
        if owner not in self._of:
            made = self.rng._streams.of_module(int(owner is random))
            self._of[owner] = self.rng.on(made)
        return self._of[owner]

    def _recorder_of(self, state: Any) -> tuple[Any, RecordingGenerator | None]:
        """Return what draws for a ``random_state`` of SciPy's, and a recorder or None.

        SciPy's own is the global generator of NumPy.
        """
        if self.tape is None or not self.tape.check_thread():
            return state, None
        if state is np.random or state is Legacy.of_numpy:
            state = self._global
        elif isinstance(state, int | np.integer):
            state = np.random.RandomState(state)
        rng = state._rng if issubclass(type(state), Legacy) else state
        return state, rng if type(rng) is RecordingGenerator else None

    def state_of(self, owner: Any, name: str, *args: Any) -> Any:
        """Do what functions of a module do with the state of its generator."""
        if name != "seed":
            put = name.startswith("set")
            return (Position.put if put else Position)(self.of(owner), *args[:put])
        made = self.rng.of_seed(*args) if args and args[0] is not None else None
        if made is None and args and args[0] is not None:
            return NotImplemented
        self._of[owner] = self.rng.unseeded() if made is None else made
        return None

    def _all(self, follows: bool) -> Iterator[tuple[Any, str, Any]]:
        if follows:
            for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
                yield np, name, _maker(self, getattr(np, name))
            for name in ("zeros", "empty", "ones", "full"):
                yield np, name, _writable(self, getattr(np, name))
            yield from conversions()
        for each in self._tables:
            for owner, name, made_of in each.replacements():
                if name in vars(owner):
                    yield owner, name, made_of(vars(owner)[name])
        from scipy import stats  # slow to import: by who executes alone

        laws = stats.rv_continuous.__mro__[1]
        yield laws, "rvs", drawn_by_name(vars(laws)["rvs"], self._recorder_of)
        for owner, name, function in drawing_functions():
            real = getattr(owner, name, None)
            made = isinstance(real, type) or name == "default_rng"
            yield (
                owner,
                name,
                _for_this_thread(self, None if made else owner, function, real),
            )
        yield np.random.mtrand, "_rand", self._global
        for owner in (np.random, random):
            for name in _STATES:
                yield owner, name, _state(self, owner, name)
        yield ThreadPoolExecutor, "submit", at_once(self, ThreadPoolExecutor.submit)
        for owner, names in _LOSING.items():
            for name in names:
                yield owner, name, _losing(self, owner, name)


_made: dict[bool, _Replacements] = {}
_COMPILES = (  # of Numba, which reads names and functions as it compiles
    "numba.core.dispatcher._DispatcherBase._compile_for_args",
    "numba.np.ufunc.dufunc.DUFunc._compile_for_args",
)


def _compiled(now: _Replacements, plainly: Any, real: Any) -> Callable[..., Any]:
    """Return what compiles for arguments of new types, with nothing replaced.

    Of noise it gets ordinary numbers: compiled code looks at it.
    """

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(map(has_noise, (*args, *kwargs.values()))):
            return self(*map(looked_at_within, args), **looked_at_within(kwargs))
        with now.plainly(), plainly():
            return real(self, *args, **kwargs)

    return call


def _for_this_thread(
    now: _Replacements, owner: Any, function: Callable[..., Any], real: Any
) -> Callable[..., Any]:
    """Return a function of a recorder; the real one to every other thread."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if now.tape is not None and now.tape.check_thread():
            rng = now.rng if owner is None else now.of(owner)
            return function(rng, *args, **kwargs)
        return real(*args, **kwargs)

    return like(real, call) if isinstance(real, type) else call


def _state(now: _Replacements, owner: Any, name: str) -> Callable[..., Any]:
    """Return a function of the state of a global generator."""
    # NumPy's own function asks for the global generator, for which another stands.
    holder = Legacy.of_numpy if owner is np.random else owner
    real: Any = getattr(holder, name, None)

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = now.tape
        if tape is not None and tape.check_thread() and not tape.inside:
            made = NotImplemented
            if not set(kwargs) - {"legacy"}:
                made = now.state_of(owner, name, *args)
            if made is not NotImplemented:
                return made
            why = f"{owner.__name__}.{name} is called"
            if name == "seed" and any(each is not None for each in args):
                why += ": who knows the seed knows what is drawn"
            tape.cannot_follow(why)
        return real(*args, **kwargs)

    return call


def _losing(now: _Replacements, owner: Any, name: str) -> Callable[..., Any]:
    real: Any = getattr(owner, name, None)  # of this system

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = now.tape
        if tape is not None and (owner is os or tape.check_thread()):
            tape.cannot_follow(f"{name} is called")
        return real(*args, **kwargs)

    return call


def _maker(now: _Replacements, real: Any) -> Callable[..., Any]:
    """Return np.array, or one of its kin, that keeps noise."""
    name = real.__name__

    def make(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) in _NEVER_NOISY:
            return real(*args, **kwargs)
        if args:
            inside = noise_of(args[0])
            args = args if inside is None else (inside, *args[1:])
        noisy = args and has_noise(args[0])
        tape = _asked(now, sys._getframe(1), name) if noisy else None
        if tape is not None:
            value, dtype = args[0], kwargs.get("dtype", *args[1:2])
            plain = len(args) <= 2 and not set(kwargs) - {"dtype", "copy", "order"}
            if plain and (dtype is None or _is(dtype)):
                result = value
                if type(value) in (list, tuple):
                    result = stacked(tape, value)
                elif name == "array":
                    result = value.copy()
                if result is not NotImplemented:
                    return result if dtype is None else result.astype(dtype)
        return real(*args, **kwargs)

    make.__name__ = name
    return make


def _writable(now: _Replacements, real: Any) -> Callable[..., Any]:
    """Return np.zeros, or one of its kin, whose arrays noise can be written into."""
    name = real.__name__

    def make(*args: Any, **kwargs: Any) -> Any:
        array, dtype = real(*args, **kwargs), kwargs.get("dtype")
        caller, tape = sys._getframe(1), None
        if (
            type(array) is np.ndarray
            and array.dtype in _KINDS
            and (dtype is None or _is(dtype))
            and is_code(caller.f_code.co_filename)
        ):
            tape = _asked(now, caller, name)
        if tape is None:
            return array
        return Tracked.plain(tape, array)

    make.__name__ = name
    return make


def _asked(now: _Replacements, caller: FrameType, name: str) -> Tape | None:
    """Return the tape if code that it follows calls a function of NumPy by its name."""
    tape = now.tape
    if tape is None or tape.closed or tape.inside or not tape.is_mine:
        return None
    return tape if called_by_name(caller, name) else None


def _is(dtype: Any) -> bool:
    """Say whether numbers of a type keep noise."""
    try:
        return np.dtype(dtype) in _KINDS
    except TypeError:
        return False
