"""Random streams that do not depend on who draws from them, or in which order.

Every stream is derived from the user's seed and a key that says what the numbers are
for, so a result is the same for one worker or eight and an interrupted run resumes
with the very numbers that it would have drawn.

A generator comes with a seed sequence, from which other libraries may be seeded. Each
stream has its own, too. Most are asked for nothing but the words that begin the
stream, and to make a `numpy.random.SeedSequence` takes longer than many a release: so
it is made only if more is asked for, and many streams get their words at once.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, Philox, SeedSequence
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from dpaudit.validation import check_count

__all__ = ["draw_seed", "fresh_seed", "position", "stream", "streams"]

_SEEDS = 2**31  # what every language takes for a seed
_BLOCK = 256  # streams that get their words at once
_WORDS = 4  # of 64 bits, which begin a stream of PCG64
# NumPy's stubs know no other seed sequences than its own.
_PCG64: Any = PCG64


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
        for row in words[place : end - start]:
            yield Generator(_PCG64(_Seeds(row, name, (place,))))
            place += 1


class _Seeds(ISpawnableSeedSequence):
    """The seed sequence of a stream, made when it is asked for more than first words.

    Parameters
    ----------
    words : ndarray of uint64, shape (4,)
        What it answers if it is asked for four words of 64 bits.
    name : tuple
        The seed and the key of a block of streams.
    place : tuple of int
        Where in the block; with the key it is the spawn key of the `SeedSequence` that
        answers all else.
    """

    __slots__ = ("_made", "_name", "_place", "_words", "asked")

    def __init__(
        self,
        words: NDArray[Any],
        name: tuple[int, tuple[int, ...]],
        place: tuple[int, ...],
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
    >>> before = position(rng)
    >>> position(rng) == before
    True
    >>> _ = rng.random()
    >>> position(rng) == before
    False
    """
    seeds = rng.bit_generator.seed_seq
    if isinstance(seeds, _Seeds):
        return rng.bit_generator.state, seeds.asked
    return rng.bit_generator.state, getattr(seeds, "n_children_spawned", 0)


def draw_seed(rng: Generator) -> int:
    """Return a seed for one release, uniform in [0, 2^31).

    So the law that is audited is the mixture over these seeds, and releases are
    independent draws from it, although two may share their seed.
    """
    return int(rng.integers(_SEEDS))


def fresh_seed() -> int:
    """Return a seed that is new (63 bits from the system)."""
    return secrets.randbits(63)
