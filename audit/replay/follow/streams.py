"""Streams of random numbers, and bit generators that stand on them.

Every call draws from a stream of its own, which goes by the number of the call. So a
*position*, which is what the state of a bit generator is here, is a sequence of streams
and the number of a call. Where a position is kept (by a copy of the generator, a state
that is read, a jump), calls are noted from then on. A call that is made again, of the
same family and as many numbers, has the same draws again, and is known to. Another call
would use the same bits for something else: that is not followed.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import PCG64DXSM, Generator  # the real ones, in an execution too

from dpaudit.audit.replay.follow.observations import Unfollowed

__all__ = ["Bits", "CallStreams", "Position", "Seeds"]

_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""How far the streams of two calls lie apart in the sequence of 2^128 numbers: what
NumPy's ``jumped`` takes, so that no two of them overlap."""
_JUMPED, _MADE = 2**31 + 2, 2**31 + 3
"""Keys of streams: after a jump, and of generators of another seed, or of none."""
_BITS = "the bits of the generator are used by themselves"
_STATE = "a state that is not one of this generator's is put into it"
_LAST_BITS = 8  # how many bits of drawn bytes a seed may leave out


@dataclass
class _Shared:
    """What generators know that are made of one."""

    # Numbers that may become seeds of generators, and what they are if they do not.
    seeds: dict[int, Unfollowed | None] = field(default_factory=dict)
    used_seeds: set[tuple[int, ...]] = field(default_factory=set)
    made: int = 0
    # By streams and call, what is drawn and the draws; None until a position is kept.
    drawn: dict[Any, list[Any]] | None = None

    def keep(self) -> None:
        """Note calls from now on."""
        self.drawn = {} if self.drawn is None else self.drawn


class CallStreams:
    """Streams of random numbers that go by the number of the call."""

    def __init__(self, seed: int, *key: int, shared: _Shared | None = None) -> None:
        self.seed, self.key = seed, key
        self.shared = _Shared() if shared is None else shared
        self._own = key  # of those that are spawned, whatever the state becomes
        self.bits = PCG64DXSM(np.random.SeedSequence(seed, spawn_key=key))
        self._start: Any = self.bits.state
        self._generator = Generator(self.bits)
        self.calls = self._spawned = 0
        self._lock = threading.Lock()

    def next(self) -> Generator:
        """Return a generator at the beginning of the next stream."""
        with self._lock:
            self.calls += 1
            return self.at(self.calls)

    def at(self, call: int) -> Generator:
        """Return a generator at the beginning of a call's stream."""
        self.bits.state = self._start
        self.bits.advance(call * _JUMP)
        return self._generator

    def again(self) -> Callable[[int], Generator]:
        """Return a function from another seed to the generator of this call then."""
        key, call = self.key, self.calls
        return lambda seed: CallStreams(seed, *key).at(call)

    def noted(self, what: Any) -> list[Any] | None:
        """Return the note of the last call, if calls are noted: what, and draws.

        It is empty if something else was drawn by the same bits before.
        """
        if self.shared.drawn is None:
            return None
        place = self.key, self.calls
        known = self.shared.drawn.get(place)
        if known is None:
            known = self.shared.drawn[place] = [what, None]
        elif what is None or known[0] != what:
            return []
        return known

    def spawn(self) -> "CallStreams":
        """Return streams that are independent of these."""
        self._spawned += 1
        key = *self._own, self._spawned
        return CallStreams(self.seed, *key, shared=self.shared)

    def of_module(self, number: int) -> "CallStreams":
        """Return the streams of the global generator of a module."""
        return CallStreams(self.seed, _MADE + 1 + number, shared=self.shared)

    def made(self) -> "CallStreams":
        """Return new streams, which do not depend on what copies these."""
        self.shared.made += 1
        return CallStreams(self.seed, _MADE, self.shared.made, shared=self.shared)

    @property
    def is_made(self) -> bool:
        """Whether they are those of a generator that the code made without a seed."""
        return self.key[:-1] == (_MADE,)

    def made_like(self, other: "CallStreams") -> "CallStreams":
        """Return the streams that others, made so in another execution, are in this."""
        self.shared.made = max(self.shared.made, other.key[-1])
        return CallStreams(self.seed, *other.key, shared=self.shared)

    def jumped(self, jumps: int) -> "CallStreams":
        """Return the streams that go by this position, and a number of jumps."""
        self.shared.keep()
        key = *self.key, _JUMPED, self.calls, jumps
        if self.key[-3:-2] == (_JUMPED,) and not self.calls:
            key = *self.key[:-1], self.key[-1] + jumps
        return CallStreams(self.seed, *key, shared=self.shared)

    def copied(self) -> "CallStreams":
        """Return streams that go on from here, and draw the same."""
        self.shared.keep()
        made = CallStreams(self.seed, *self.key, shared=self.shared)
        made._own, made._spawned, made.calls = self._own, self._spawned, self.calls
        return made

    def may_be_seeds(self, drawn: Any) -> None:
        """Let integers that are made of bytes be seeds, for all that is known."""
        if len(drawn) >= 4:
            for order in ("big", "little"):
                whole = int.from_bytes(drawn, order)
                for left_out in range(_LAST_BITS):
                    self.shared.seeds.setdefault(whole >> left_out, None)


class Position(dict[str, Any]):
    """The state of a bit generator: streams, and the number of a call.

    Code that reads it as a dictionary gets numbers, and a note says that they are used.
    """

    def __init__(self, rng: Any) -> None:
        super().__init__(rng._streams.bits.state)
        self._tape, self.streams = rng.tape, rng._streams.copied()

    def __getitem__(self, key: str) -> Any:
        self._tape.cannot_follow(_BITS)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def __iter__(self) -> Iterator[str]:
        self._tape.cannot_follow(_BITS)
        return super().__iter__()

    def __copy__(self) -> "Position":
        return self

    def __deepcopy__(self, memo: Any) -> "Position":
        return self

    @staticmethod
    def put(rng: Any, state: Any) -> bool:
        """Let a generator go on from a state; False if that is no position."""
        if isinstance(state, Position):
            own, other = rng._streams, state.streams
            own.key, own.calls, own._start = other.key, other.calls, other._start
            return True
        rng.tape.cannot_follow(_STATE)
        return False


class Bits:
    """A bit generator, of a generator that records.

    Parameters
    ----------
    rng : RecordingGenerator
    """

    def __init__(self, rng: Any) -> None:
        self.rng = rng
        self.lock = threading.Lock()

    @property
    def state(self) -> Position:
        return Position(self.rng)

    @state.setter
    def state(self, state: Any) -> None:
        Position.put(self.rng, state)

    @property
    def seed_seq(self) -> "Seeds":
        return Seeds(self.rng)

    def spawn(self, n_children: int) -> list["Bits"]:
        return list(map(Bits, self.rng.spawn(n_children)))

    def jumped(self, jumps: int = 1) -> "Bits":
        return Bits(self.rng.on(self.rng._streams.jumped(int(jumps))))

    def random_raw(self, size: Any = None, output: bool = True) -> Any:
        how: dict[str, Any] = {"dtype": np.uint64, "told": "random_raw"}
        drawn = self.rng.integers(0, 2**64, size if output else 0, **how)
        return drawn if output else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.rng.tape.cannot_follow(_BITS)
        return getattr(self.rng._next().bit_generator, name)

    def __deepcopy__(self, memo: Any) -> "Bits":
        return Bits(self.rng.on(self.rng._streams.copied()))

    def __reduce__(self) -> Any:
        self.rng.tape.cannot_follow(_BITS)
        return PCG64DXSM, (int(self.rng._next().integers(2**62)),)


class Seeds:
    """A sequence of seeds that goes by one that was drawn.

    Parameters
    ----------
    rng : RecordingGenerator
        Whose children the generators of these seeds are.
    """

    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def spawn(self, n_children: int) -> list["Seeds"]:
        return [Seeds(each) for each in self.rng.spawn(n_children)]

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        limit = np.iinfo(dtype).max
        how: dict[str, Any] = {"dtype": dtype, "told": "generate_state"}
        words = [self.rng.integers(0, limit, **how) for _ in range(n_words)]
        return np.array(words, dtype=dtype)
