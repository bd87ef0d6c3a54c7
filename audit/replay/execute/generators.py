"""Functions that draw, of ``numpy.random`` and ``random``, by a generator that records.

They, and generators that are made without a seed, or of one that was drawn, draw from
the recorder.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.outside import seeded
from dpaudit.audit.replay.follow.streams import Bits, Position, Seeds

__all__ = ["Legacy", "drawing_functions"]


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

    def __init__(self, rng: RecordingGenerator, real: Any) -> None:
        self._rng, self._real = rng, real

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that it is an instance
        return self._real

    def __deepcopy__(self, memo: Any) -> "Legacy":
        return Legacy(self._rng.__deepcopy__(memo), self._real)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("state"):
            put = name.startswith("set")
            return partial(Position.put if put else Position, self._rng)
        ours = (_PYTHON if self._real is _REAL else _LEGACY).get(name)
        if ours is None and self._real is _REAL and name in _PYTHON_COINS:
            ours = _python_coin(name)
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
    "randint": lambda rng, a, b: rng.integers(a, b + 1),
    "randrange": lambda rng, start, stop=None: rng.integers(start, stop),
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
