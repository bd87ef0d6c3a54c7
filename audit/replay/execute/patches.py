"""Functions that are replaced while a mechanism is executed, and put back afterwards.

- ``np.array``, ``np.asarray`` and the like, which cannot be overloaded, keep the noise
  of lists; ``np.zeros``, ``empty``, ``ones`` and ``full``,
  called by the code under audit itself, give arrays that noise can be written into.
- Functions of ``numpy.random`` and ``random``, and generators made without a seed, draw
  from the recorder.
- What takes entropy from the system, forks, or seeds a global generator, is noted on
  the tape: it cannot be followed. So is the use of a generator that was there before.
"""

import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from dpaudit.audit.replay.execute.conversions import conversions, like
from dpaudit.audit.replay.follow.foreign import ForeignGenerators
from dpaudit.audit.replay.follow.frames import noise_of, tables
from dpaudit.audit.replay.follow.functions import stacked
from dpaudit.audit.replay.follow.generator import RecordingGenerator, Seeds
from dpaudit.audit.replay.follow.places import called_by_name, is_code
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, has_noise, isinstance_tracked

__all__ = ["patched"]


def _generator(real: Any, rng: RecordingGenerator, seed: Any = None) -> Any:
    """Return a generator of a seed: a recorder if there is none, or it was drawn."""
    if seed is None:
        return rng.spawn(1)[0]
    child = rng.of_seed(seed)
    return real(seed) if child is None else child


def _legacy(real: Any, rng: RecordingGenerator, seed: Any = None) -> Any:
    """Return an old generator of a seed: a recorder if the seed was drawn."""
    child = None if seed is None else rng.of_seed(seed)
    return real(seed) if child is None else _Legacy(child)


def _seeds(real: Any, rng: RecordingGenerator, entropy: Any = None, **more: Any) -> Any:
    """Return a sequence of seeds: a recorder's if its entropy was drawn."""
    child = None if entropy is None or more else rng.of_seed(entropy)
    return real(entropy, **more) if child is None else Seeds(child)


class _Legacy:
    """What `numpy.random.RandomState` and `random.Random` do, by a recorder."""

    def __init__(self, rng: RecordingGenerator) -> None:
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        ours = {**_PYTHON, **_LEGACY}.get(name)
        return getattr(self._rng, name) if ours is None else partial(ours, self._rng)


def _choices(
    rng: RecordingGenerator,
    population: Any,
    weights: Any = None,
    *,
    cum_weights: Any = None,
    k: int = 1,
) -> list[Any]:
    """Do what `random.choices` does."""
    if cum_weights is not None:
        weights = np.diff(np.asarray(cum_weights, dtype=np.float64), prepend=0.0)
    count = len(population)
    weights = np.ones(count) if weights is None else np.asarray(weights, dtype=float)
    places = rng.choice(count, k, p=weights / weights.sum())
    return [population[place] for place in places]


_LEGACY: dict[str, Callable[..., Any]] = {
    "rand": lambda rng, *shape: rng.random(shape or None),
    "randn": lambda rng, *shape: rng.standard_normal(shape or None),
    **dict.fromkeys(
        ("random_sample", "ranf", "sample", "random"),
        lambda rng, size=None: rng.random(size),
    ),
    "randint": lambda rng, low, high=None, size=None, dtype=int: rng.integers(
        low, high, size, dtype
    ),
}
_ENTROPY = ("urandom", "getrandom", "_urandom")
_SEEDING = ("seed", "set_state", "get_state", "set_bit_generator", "get_bit_generator")
_LOSING: dict[Any, tuple[str, ...]] = {
    np.random: _SEEDING,
    random: ("seed", "_urandom"),
    os: ("urandom", "getrandom", "fork", "forkpty", "posix_spawn"),
}
_PYTHON: dict[str, Callable[..., Any]] = {
    "random": lambda rng: rng.random(),
    "uniform": lambda rng, a, b: rng.uniform(0.0, 1.0) * (b - a) + a,
    "gauss": lambda rng, mu=0.0, sigma=1.0: rng.normal(mu, sigma),
    "normalvariate": lambda rng, mu=0.0, sigma=1.0: rng.normal(mu, sigma),
    "expovariate": lambda rng, lambd=1.0: rng.exponential(1.0 / lambd),
    "choices": _choices,
}
_PYTHON_COINS = (
    *("randint", "randrange", "choice", "sample", "shuffle"),
    *("getrandbits", "randbytes", "triangular", "betavariate", "gammavariate"),
    *("lognormvariate", "vonmisesvariate", "paretovariate", "weibullvariate"),
)


_NEVER_NOISY = frozenset({np.ndarray, float, int, bool, str, np.float64})

_BY_NAME = "a global generator is used that was imported by name"

_ONE_AT_A_TIME = threading.RLock()  # so that what is put back is what there was


@contextmanager
def patched(tape: Tape, rng: RecordingGenerator, *, follows: bool) -> Iterator[None]:
    """Replace functions for the block, and put them back after any exit."""
    with _ONE_AT_A_TIME:
        replaced = _made.get(follows)
        if replaced is None or not replaced.in_place:
            replaced = _made[follows] = _Replacements(follows)
        generators = [random._inst, np.random.mtrand._rand]
        with replaced.put(tape, rng), ForeignGenerators(generators) as watch:
            try:
                yield
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
        self._follows = follows
        self._tables = tables() if follows else None
        # Where it stands, its name, what stands there, and what shall stand there.
        self._every = [
            (owner, name, vars(owner)[name], ours)
            for owner, name, ours in self._all(follows)
            if name in vars(owner)
        ]

    @property
    def in_place(self) -> bool:
        """Whether all that is to be replaced is there, and nothing is replaced."""
        return self._tables is (tables() if self._follows else None) and all(
            vars(owner).get(name) is real for owner, name, real, _ in self._every
        )

    @contextmanager
    def put(self, tape: Tape, rng: RecordingGenerator) -> Iterator[None]:
        """Replace functions for an execution, and make all as it was after it."""
        self.tape, self.rng = tape, rng
        try:
            for owner, name, _, ours in self._every:
                setattr(owner, name, ours)
            yield
        finally:
            for owner, name, real, _ in self._every:
                setattr(owner, name, real)
            self.tape = self.rng = None

    def _all(self, follows: bool) -> Iterator[tuple[Any, str, Any]]:
        if follows:
            for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
                yield np, name, _maker(self, getattr(np, name))
            for name in ("zeros", "empty", "ones", "full"):
                yield np, name, _writable(self, getattr(np, name))
            yield from conversions()
        if self._tables is not None:
            for owner, name, made_of in self._tables.replacements():
                if name in vars(owner):
                    yield owner, name, made_of(vars(owner)[name])
        for owner, name, function in _of_generators():
            real = getattr(owner, name, None)
            yield owner, name, _for_this_thread(self, function, real)
        for owner, names in _LOSING.items():
            for name in names:
                yield owner, name, _losing(self, owner, name)


_made: dict[bool, _Replacements] = {}


def _of_generators() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield functions that draw, and what draws in their place from a recorder."""
    for name in dir(np.random):
        if name.startswith("_") or name in _SEEDING:
            continue
        if name in _LEGACY:
            yield np.random, name, _LEGACY[name]
        elif hasattr(np.random.Generator, name) and hasattr(
            np.random.RandomState, name
        ):
            yield np.random, name, getattr(RecordingGenerator, name)
    yield np.random, "default_rng", partial(_generator, np.random.default_rng)
    yield np.random, "RandomState", partial(_legacy, np.random.RandomState)
    yield np.random, "SeedSequence", partial(_seeds, np.random.SeedSequence)
    yield random, "Random", partial(_legacy, random.Random)
    for name, function in _PYTHON.items():
        yield random, name, function
    for name in _PYTHON_COINS:
        yield random, name, _python_coin(name)


def _for_this_thread(
    now: _Replacements, function: Callable[..., Any], real: Any
) -> Callable[..., Any]:
    """Return a function of the recorder; the real one to every other thread."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if now.tape is not None and now.tape.check_thread():
            return function(now.rng, *args, **kwargs)
        return real(*args, **kwargs)

    return like(real, call) if isinstance(real, type) else call


def _losing(now: _Replacements, owner: Any, name: str) -> Callable[..., Any]:
    real: Any = getattr(owner, name, None)  # of this system
    shown = "random.seed" if owner is random and name == "seed" else name

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = now.tape
        if tape is not None and (owner is os or tape.check_thread()):
            if tape.inside and name in _ENTROPY and tape.is_mine:
                size, *_ = (*args, *kwargs.values())
                return tape.inner.bytes(size)
            if name == "seed" and len(args) == 1 and not kwargs:
                child = now.rng.of_seed(args[0])
                if child is not None:
                    now.rng = child
                    return None
            tape.cannot_follow(f"{shown} is called")
        return real(*args, **kwargs)

    return call


def _python_coin(name: str) -> Callable[..., Any]:
    def call(rng: RecordingGenerator, *args: Any, **kwargs: Any) -> Any:
        rng.tape.coin(f"random.{name} draws from a law that is not followed")
        bits = int(np.random.Generator.integers(rng._next(), 2**62))
        return getattr(random.Random(bits), name)(*args, **kwargs)

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
            if plain and (dtype is None or _is_float(dtype)):
                if isinstance_tracked(value):
                    return value.copy() if name == "array" else value
                result = stacked(tape, value)
                if result is not NotImplemented:
                    return result
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
            and array.dtype == np.float64
            and (dtype is None or _is_float(dtype))
            and is_code(caller.f_code.co_filename)
        ):
            tape = _asked(now, caller, name)
        return array if tape is None else Tracked.plain(tape, array)

    make.__name__ = name
    return make


def _asked(now: _Replacements, caller: FrameType, name: str) -> Tape | None:
    """Return the tape if code that it follows calls a function of NumPy by its name."""
    tape = now.tape
    if tape is None or tape.closed or tape.inside or not tape.is_mine:
        return None
    return tape if called_by_name(caller, name) else None


def _is_float(dtype: Any) -> bool:
    try:
        return np.dtype(dtype) == np.float64
    except TypeError:
        return False
