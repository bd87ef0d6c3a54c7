"""Random streams that do not depend on who draws from them, or in which order.

Every stream is derived from the user's seed and a key that says what the numbers are
for. So one worker or eight get the same result, and a resumed run the same.

A generator comes with a seed sequence, from which other libraries may be seeded. To
make one takes longer than many a release: so it is made only if it is asked for more
than the words that begin the stream.

An audit calls ``function(data, rng)`` with a stream. A function as people write it may
as well take a generator by a name or a hint, a key of JAX or a seed, or draw from
`numpy.random`, `random`, PyTorch, or a generator that it, its object or its module
makes without a seed: these are seeded for every release, from the generator of the
audit, so that releases are independent and come out again. A seed whose default is a
number stays that number, as for all callers: all releases then have the same noise.
What draws from the system cannot be seeded, and may say so by an attribute ``seedable``
that is False.
"""

import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from inspect import Parameter
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, Philox, SeedSequence
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from dpaudit.errors import InputError
from dpaudit.printable import called
from dpaudit.seeding import generators_of, seeded, torch_kept
from dpaudit.validation import GENERATORS, check_count, check_parameters

__all__ = [
    "FunctionMechanism",
    "draw_seed",
    "position",
    "put_back",
    "stream",
    "streams",
]

_LARGEST_SEED = 2**31  # what every language takes for a seed
_BLOCK = 256  # streams that get their words at once
_WORDS = 4  # of 64 bits, which begin a stream of PCG64
# NumPy's stubs know no other seed sequences than its own.
_PCG64: Any = PCG64
_HINTED = re.compile(r"\b(RandomState|(?:System)?Random|OfTorch)\b")
_OF_TORCH = re.compile(r"\btorch[\w.]*\.Generator\b")
_OF_JAX = re.compile(r"\bjax\b|\bPRNGKey\b")
_SEEDS = ("seed", "random_state", "random_seed")
_KEYS = ("key", "rng_key", "prng_key", "random_key")  # of JAX, where it is loaded
_PRIVACY = ("epsilon", "eps", "delta", "rho", "mu", "sigma", "scale", "sensitivity")
_OF_ROWS = ("y", "Y", "y_train", "label", "labels", "target", "targets")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_ONE_AT_A_TIME = threading.RLock()  # of those that draw from what all threads share
_blocks: list[None] = []  # that put back what is seeded in them
_before: dict[Any, Callable[[], Any]] = {}  # what puts back which


def stream(seed: int, *key: int) -> Generator:
    """Return the generator of the stream named by a seed and a key.

    Parameters
    ----------
    seed : int
        The user's seed, >= 0.
    *key : int
        Non-negative integers; different keys give independent streams.

    Examples
    --------
    >>> bool(stream(7, 1, 2).random() == stream(7, 1, 2).random())
    True
    >>> bool(stream(7, 1, 2).random() == stream(7, 1, 3).random())
    False
    """
    seed = check_count("seed", seed, minimum=0)
    words = SeedSequence(seed, spawn_key=key).generate_state(_WORDS, np.uint64)
    return Generator(_PCG64(_Seeds(words, (seed, key), ())))


def streams(seed: int, *key: int, first: int, count: int) -> Iterator[Generator]:
    """Yield the generators of some of the streams that a seed and a key number.

    Each is the same with any others beside it, and costs a tenth of a `stream`.

    Parameters
    ----------
    seed : int
        The user's seed, >= 0.
    *key : int
        Non-negative integers; different keys of one length give independent streams,
        and so does every number.
    first, count : int
        Which numbers: `count` of them from `first` >= 0 on.

    Examples
    --------
    >>> few = [rng.random() for rng in streams(7, 1, first=300, count=2)]
    >>> many = [rng.random() for rng in streams(7, 1, first=0, count=302)]
    >>> few == many[300:]
    True
    """
    seed = check_count("seed", seed, minimum=0)
    end = first + count
    for block in range(first // _BLOCK, -(-end // _BLOCK)):
        start, name = block * _BLOCK, (seed, (*key, block))
        # Philox enciphers a counter, four words at a time: no two rows are alike.
        source = Philox(SeedSequence(seed, spawn_key=name[1]))
        words = source.random_raw(_BLOCK * _WORDS).reshape(_BLOCK, _WORDS)
        place = max(first - start, 0)
        for number, row in enumerate(words[place : end - start], place):
            yield Generator(_PCG64(_Seeds(row, name, (number,))))


class _Seeds(ISpawnableSeedSequence):
    """The seed sequence of a stream, made when it is asked for more than first words.

    `words` are the four words of 64 bits that begin the stream, `name` the seed and the
    key of a block of streams, `place` where in the block: key and place together are
    the spawn key of the `SeedSequence` that answers all else.
    """

    __slots__ = ("_made", "_name", "_place", "_words", "asked")

    def __init__(
        self, words: NDArray[Any], name: tuple[int, Any], place: tuple[int, ...]
    ) -> None:
        self._words, self._name, self._place = words, name, place
        self.asked = 0

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return words, as `SeedSequence.generate_state` does."""
        self.asked += 1
        if n_words == _WORDS and (dtype is np.uint64 or np.dtype(dtype) == np.uint64):
            # The generator itself is the first who asks, and leaves them as they are.
            return self._words if self.asked == 1 else self._words.copy()
        return self._sequence.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        """Return new seed sequences, as `SeedSequence.spawn` does."""
        return self._sequence.spawn(n_children)

    @property
    def _sequence(self) -> SeedSequence:
        self.asked += 1
        if not hasattr(self, "_made"):
            seed, key = self._name
            self._made = SeedSequence(seed, spawn_key=(*key, *self._place))
        return self._made

    def __getattr__(self, name: str) -> Any:
        """Return what a `SeedSequence` says of itself: its entropy, spawn key, ..."""
        if name.startswith("_"):  # copy and pickle ask for such
            raise AttributeError(name)
        return getattr(self._sequence, name)

    def __getstate__(self) -> object:
        self.asked += 1  # a copy may be drawn from
        return super().__getstate__()


def position(rng: Generator) -> object:
    """Return what changes when a generator is used.

    Numbers are drawn, other generators are spawned, or seeds for others are taken from
    its seed sequence.

    Examples
    --------
    >>> rng = stream(7)
    >>> before, _, after = position(rng), rng.random(), position(rng)
    >>> before == after
    False
    """
    seeds = rng.bit_generator.seed_seq
    asked = "asked" if isinstance(seeds, _Seeds) else "n_children_spawned"
    return rng.bit_generator.state, getattr(seeds, asked, 0)


def draw_seed(rng: Generator) -> int:
    """Return a seed for one release, uniform in [0, 2^31).

    So the law that is audited is the mixture over these seeds, and releases are
    independent draws from it, although two may share their seed.
    """
    return int(rng.integers(_LARGEST_SEED))


@dataclass(frozen=True)
class FunctionMechanism:
    """A function of a dataset, and of more that is given, as a mechanism.

    Parameters
    ----------
    function : callable
        Its first parameter is the dataset.
    given : mapping of str to object
        Arguments by name.

    Raises
    ------
    InputError
        If it takes no dataset, or something else that is not given.

    Examples
    --------
    >>> def noisy_count(rows, epsilon, seed=None):
    ...     return len(rows) + np.random.default_rng(seed).laplace(scale=1 / epsilon)
    >>> mechanism = FunctionMechanism(noisy_count, {"epsilon": 1.0})
    >>> one = mechanism.release([7, 8], rng=np.random.default_rng(0))
    >>> one == mechanism.release([7, 8], rng=np.random.default_rng(0))
    True
    """

    function: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    _way: tuple[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be callable, got {self.function!r}")
        object.__setattr__(self, "_way", _randomness(self.function, self.given))
        if missing := self.lacking(self.function, self.given):
            name, given = called(self.function), ", ".join(f"{n}=..." for n in missing)
            raise InputError(
                f"{name} takes {' and '.join(missing)}, which is not given: audit "
                f"functools.partial({name}, {given})"
            )

    @cached_property
    def _own(self) -> list[Any]:
        return generators_of(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionMechanism, (self.function, self.given)  # what it owns stays here

    @property
    def seedable(self) -> bool:
        """Whether the same seed gives the same release, unless the function says no."""
        return getattr(self.function, "seedable", True) is not False

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return self.release(data, rng=rng)

    def release(self, data: Any, *, rng: np.random.Generator) -> Any:
        """Return one release."""
        name, kind = self._way
        if kind == "second":
            return self.function(data, rng, **self.given)
        if kind:
            kinds: Any = {"seed": int, "RandomState": np.random.RandomState}
            kinds["OfTorch"] = lambda seed: (
                sys.modules["torch"].Generator().manual_seed(seed)
            )
            kinds["OfJAX"] = lambda seed: sys.modules["jax"].random.PRNGKey(seed)
            made = None if kind == "generator" else kinds.get(kind, random.Random)
            source = rng if made is None else made(draw_seed(rng))
            return self.function(data, **self.given, **{name: source})
        with _ONE_AT_A_TIME:
            kept = _before if _blocks else {}
            with seeded(rng, partial(draw_seed, rng), lambda: self._own, kept):
                return self.function(data, **self.given)

    @staticmethod
    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function as one of a dataset and a generator: itself, if it is one.

        Raises
        ------
        InputError
            As for the class.
        """
        known = type(function) in (FunctionType, partial)  # which are equal to no other
        return _known(function) if known else _called(function)

    @staticmethod
    def written(mechanism: Any) -> Any:
        """Return the function that is called in the end; another mechanism as it is."""
        while isinstance(mechanism, partial | FunctionMechanism):
            below = "func" if isinstance(mechanism, partial) else "function"
            mechanism = getattr(mechanism, below)
        return mechanism

    @staticmethod
    def lacking(function: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
        """Return the parameters of a function that are not given and have no default.

        The dataset, and what its randomness comes from, are not among them.

        Raises
        ------
        InputError
            If it takes no dataset, or one in parts.
        """
        source, _ = _randomness(function, given)
        lacks = [
            each.name
            for each in check_parameters(function)[1:]
            if _is_needed(each) and each.name not in (source, *given)
        ]
        if part := [name for name in lacks if name in _OF_ROWS]:
            told = f"takes {part[0]} beside its rows: audit a function of one dataset"
            parts = f"lambda data: {called(function)}(data[:, :-1], data[:, -1], ...)"
            raise InputError(f"{called(function)} {told}, as {parts}")
        return lacks


def _called(function: Any) -> Any:
    mechanism = FunctionMechanism(function)
    return function if mechanism._way[1] == "second" else mechanism


_known = lru_cache(maxsize=64)(_called)


def _randomness(
    function: Callable[..., Any], given: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the parameter by which randomness comes, and as what: "" if none does.

    A second one that has no default, and no other known name, is the generator if
    nothing else is lacking.
    """
    parameters = check_parameters(function)
    if not parameters or parameters[0].kind is Parameter.VAR_POSITIONAL:
        return "", "second"  # nobody knows what it takes
    rest = [each for each in parameters[1:] if each.name not in given]
    rest = [each for each in rest if type(each.default) is not ModuleType]  # seeded
    for each in rest:
        named = each.name in GENERATORS
        hint = str(each.annotation) + str(type(each.default)) * named
        told = _HINTED.search(hint := _OF_TORCH.sub("OfTorch", hint))
        if named and _OF_JAX.search(str(each.annotation)):
            return each.name, "OfJAX"
        if told and "Generator" not in hint and each.kind is not _POSITIONAL[0]:
            return each.name, told[0]
        if named or "Generator" in hint:
            beside = each is parameters[1] and each.kind in _POSITIONAL
            return each.name, "second" if beside else "generator"
    keys = _KEYS if "jax" in sys.modules else ()
    for each in rest:
        if each.name in (*_SEEDS, *keys) and (each.default is None or _is_needed(each)):
            return each.name, "OfJAX" if each.name in keys else "seed"
    needed = [each for each in rest if _is_needed(each)]
    if any(each.kind is Parameter.VAR_POSITIONAL for each in rest[:1]):
        return "", "second"
    second = [each for each in parameters[1:2] if each.kind in _POSITIONAL]
    if needed and needed == second and needed[0].name not in (*_PRIVACY, *_OF_ROWS):
        return needed[0].name, "second"
    return "", ""


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in _MANY


@contextmanager
def put_back() -> Iterator[None]:
    """Put generators that releases seed in the block back as they were, after it.

    The process may have more to draw from them, and whoever knows the seed of an audit
    would know that noise. Of blocks that overlap the last one to end does it.
    """
    with _ONE_AT_A_TIME:
        if not _blocks:
            _before["NumPy"] = partial(np.random.set_state, np.random.get_state())  # noqa: NPY002
            _before["Python"] = partial(random.setstate, random.getstate())
            if "torch" in sys.modules:
                (block := torch_kept()).__enter__()
                _before["PyTorch"] = partial(block.__exit__, None, None, None)
        _blocks.append(None)
    try:
        yield
    finally:
        with _ONE_AT_A_TIME:
            _blocks.pop()
            while _before and not _blocks:
                _before.popitem()[1]()
