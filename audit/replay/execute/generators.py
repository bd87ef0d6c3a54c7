"""Generators and functions that draw, and the recorder that replaces them.

Functions of ``numpy.random`` and ``random``, and generators that are made without a
seed, or with a seed that was drawn, draw from the recorder.

**Generators that were there before an execution**, and functions that were imported
from the two modules, are replaced where the code reaches them by name: in a global name
of the code's module, or a dictionary there, in a variable around a function, in a
default, or in an attribute of an object or class. What records replaces them for one
execution, and they are put back after it. Each execution then has new draws, as it
would have from the generator itself if that took its seed from the system. A generator
with a seed of its own gives the same draws to everyone who knows the seed. Its draws,
those of a generator with an unknown seed, and those of copies are recorded, so that
their line can be told, and count as not followed.

Generators elsewhere (in a list, a slot or a library) are not replaced;
`dpaudit.audit.replay.follow.foreign` checks whether they are drawn from.
"""

import linecache
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from types import CellType, FunctionType
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator, RandomState  # the real ones, in an execution too

from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.outside import seeded
from dpaudit.audit.replay.follow.reached import (
    file_of,
    is_foreign,
    names_of,
    part_of,
    reached,
    spaces_of,
)
from dpaudit.audit.replay.follow.streams import Bits, Position, Seeds

__all__ = ["Legacy", "drawing_functions", "standing"]


def _generator(real: Any, rng: RecordingGenerator, seed: Any = None) -> Any:
    """Return a generator of a seed: a recorder if there is none, or it was drawn."""
    if seed is None:
        return rng.unseeded()
    child = rng.of_seed(seed)
    if child is None:
        return seeded(rng.tape, real(seed))
    return child


def _of_bits(real: Any, rng: RecordingGenerator, bit_generator: Any) -> Any:
    """Return a generator on bits: a recorder if they are those of one."""
    ours = isinstance(bit_generator, Bits)
    return rng.of_seed(bit_generator) if ours else real(bit_generator)


def _bits(real: Any, rng: RecordingGenerator, seed: Any = None, **more: Any) -> Any:
    """Return a bit generator: a recorder's if there is no seed, or it was drawn."""
    if more:
        return real(seed, **more)
    made = _generator(real, rng, seed)
    return Bits(made) if hasattr(made, "of_seed") else made


def _legacy(real: Any, rng: RecordingGenerator, seed: Any = None) -> Any:
    """Return an old generator of a seed: a recorder if the seed was drawn."""
    child = rng.unseeded() if seed is None else rng.of_seed(seed)
    if child is None:
        return seeded(rng.tape, real(seed))
    return Legacy(child, real)


def _seeds(real: Any, rng: RecordingGenerator, entropy: Any = None, **more: Any) -> Any:
    """Return a sequence of seeds: a recorder's if its entropy was drawn, or is none."""
    if more:
        return real(entropy, **more)
    child = rng.unseeded() if entropy is None else rng.of_seed(entropy)
    return real(entropy) if child is None else Seeds(child)


class Legacy:
    """What `numpy.random.RandomState` and `random.Random` do, by a recorder."""

    of_numpy: ClassVar[RandomState] = np.random.mtrand._rand  # its global generator

    def __init__(self, rng: RecordingGenerator, real: Any) -> None:
        self._rng, self._real = rng, real

    @staticmethod
    def standing(recorder: Callable[[], RecordingGenerator]) -> "Legacy":
        """Return what stands for NumPy's: which recorder may change by a seed."""
        return _Global(recorder)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that it is an instance
        return self._real

    def __deepcopy__(self, memo: Any) -> "Legacy":
        return Legacy(self._rng.__deepcopy__(memo), self._real)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("state"):
            made: Any = Position.put if name.startswith("set") else Position
            return lambda *state, **how: made(self._rng, *state)
        ours = (_PYTHON if self._real is _REAL else _LEGACY).get(name)
        if ours is None and self._real is _REAL and name in _PYTHON_COINS:
            ours = _python_coin(name)
        return getattr(self._rng, name) if ours is None else partial(ours, self._rng)


class _Global(Legacy):
    """What NumPy's global generator does, by the recorder that stands for it now."""

    def __init__(self, recorder: Callable[[], RecordingGenerator]) -> None:
        self._recorder, self._real = recorder, RandomState

    def __getattr__(self, name: str) -> Any:
        if name == "_rng":
            return self._recorder()
        if name.startswith("_"):
            return getattr(Legacy.of_numpy, name)  # which NumPy's own functions ask for
        return np.random.seed if name == "seed" else super().__getattr__(name)


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
        low, high, size, dtype, told="randint"
    ),
}
_PYTHON: dict[str, Callable[..., Any]] = {
    "random": lambda rng: rng.random(),
    "uniform": lambda rng, a, b: rng.uniform(0.0, 1.0) * (b - a) + a,
    "gauss": lambda rng, mu=0.0, sigma=1.0: rng.normal(mu, sigma),
    "normalvariate": lambda rng, mu=0.0, sigma=1.0: rng.normal(mu, sigma),
    "expovariate": lambda rng, lambd=1.0: rng.exponential(1.0 / lambd),
    "gammavariate": lambda rng, alpha, beta: rng.gamma(alpha, beta),
    "betavariate": lambda rng, alpha, beta: rng.beta(alpha, beta),
    "vonmisesvariate": lambda rng, mu, kappa: rng._angles(mu, kappa, None, 0.0),
    "choices": _choices,
}
_KEPT: dict[str, Callable[..., Any]] = {
    "randint": lambda rng, a, b: rng.integers(a, b + 1, told="random.randint"),
    "randrange": lambda rng, start, stop=None: rng.integers(
        start, stop, told="random.randrange"
    ),
    "choice": lambda rng, seq: seq[rng.integers(len(seq))],
    "shuffle": lambda rng, x: rng.shuffle(x),
    "sample": lambda rng, population, k: [
        population[place] for place in rng.choice(len(population), k, replace=False)
    ],
}
"""What is followed in executions that keep draws."""
_REAL = random.Random
_PYTHON_COINS = (
    *("randint", "randrange", "choice", "sample", "shuffle"),
    *("getrandbits", "randbytes", "triangular", "lognormvariate"),
    *("paretovariate", "weibullvariate"),
)


def drawing_functions() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield functions that draw, and what draws in their place from a recorder."""
    for name in dir(np.random):
        if name.startswith("_"):
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
    yield np.random, "Generator", partial(_of_bits, np.random.Generator)
    for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"):
        yield np.random, name, partial(_bits, getattr(np.random, name))
    yield random, "Random", partial(_legacy, random.Random)
    for name, function in _PYTHON.items():
        yield random, name, function
    for name in _PYTHON_COINS:
        yield random, name, _python_coin(name)


def _python_coin(name: str) -> Callable[..., Any]:
    def call(rng: RecordingGenerator, *args: Any, **kwargs: Any) -> Any:
        if rng.tape.mode.keeps and name in _KEPT:
            return _KEPT[name](rng, *args, **kwargs)
        rng.tape.coin(f"random.{name} draws from a law that is not followed")
        bits = int(np.random.Generator.integers(rng._next(), 2**62))
        return getattr(_REAL(bits), name)(*args, **kwargs)

    return call


# -- generators that were there before

_KINDS = (Generator, RandomState, random.Random)
_LEAST = 2**64  # of what the system gives for a seed
_LARGE = re.compile(r"\b(?:0x[0-9a-fA-F]{16,}|[1-9][0-9]{19,})\b")
_MANY = 1000  # entries of a dictionary: larger ones hold data
_FIRST = 2  # number of the streams, after those of two modules
_SEEDED = (
    "{} is a generator that was there before, of a seed that the system did not give"
)
_COPIED = "{} is a generator that was there before, and a copy of another one"

_Place = tuple[Any, str]
"""What holds something, and by which name: a dictionary, a class, a cell, or a function
its defaults, by their numbers."""


@contextmanager
def standing(
    mechanism: Any, rng: RecordingGenerator, functions: Mapping[int, Any]
) -> Iterator[None]:
    """Let generators that a mechanism comes to be recorders in the block.

    So are functions of global generators that were imported by name: `functions` has
    what stands for each, by its `id`.
    """
    there = [
        (place, _get(place))
        for holder, names in _holders(mechanism)
        for place in _places(holder, names)
    ]
    found = [
        (place, value)
        for place, value in there
        if type(value) in _KINDS or _before(value) is not None
    ]
    seeds = Counter({id(value): _seed_of(value) for _, value in found}.values())
    made: dict[int, Any] = {}
    for place, value in found:
        if id(value) not in made:
            seed = _seed_of(value)
            given = _is_given(seed, [each for each, _ in found])
            given &= value is not Legacy.of_numpy  # as laws of SciPy hold it
            why = _COPIED if seeds[seed] > 1 else _SEEDED if given else ""
            why = why.format(place[1])
            made[id(value)] = _recorder(value, rng, _FIRST + len(made), why)
    ours = {**functions, **made}
    put = [
        (place, value, ours[id(value)]) for place, value in there if id(value) in ours
    ]
    for place, _, mine in put:
        _set(place, mine)
    try:
        yield
    finally:
        for place, value, mine in put:
            if _get(place) is mine:  # else the code holds another one now
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
            for space in spaces_of(thing):
                yield space, names
                dicts = (e for e in map(space.get, names) if type(e) is dict)
                yield from ((each, None) for each in dicts if len(each) <= _MANY)
            yield thing, {str(i) for i in range(len(thing.__defaults__ or ()))}
            yield thing.__kwdefaults__ or {}, None
            for cell, name in zip(
                thing.__closure__ or (), thing.__code__.co_freevars, strict=True
            ):
                yield cell, {name}
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
    return [(holder, n) for n in sorted(n for n in names if isinstance(n, str))]


def _get(place: _Place) -> Any:
    holder, name = place
    if isinstance(holder, CellType):
        try:
            return holder.cell_contents
        except ValueError:  # it is empty
            return None
    if isinstance(holder, FunctionType):
        return (holder.__defaults__ or ())[int(name)]
    return (holder if isinstance(holder, dict) else vars(holder)).get(name)


def _set(place: _Place, value: Any) -> None:
    holder, name = place
    if isinstance(holder, CellType):
        holder.cell_contents = value
    elif isinstance(holder, FunctionType):
        before, i = holder.__defaults__ or (), int(name)
        holder.__defaults__ = (*before[:i], value, *before[i + 1 :])
    elif isinstance(holder, dict):
        holder[name] = value
    else:
        type.__setattr__(holder, name, value)


def _before(value: Any) -> RecordingGenerator | None:
    """Return the recorder of an earlier execution that the code has kept, if it is one.

    Only one that the code itself made, without a seed.
    """
    made = value._rng if issubclass(type(value), Legacy) else value
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
