"""The generator that a mechanism is handed while it is recorded.

`RecordingGenerator` is a `numpy.random.Generator`, so that `isinstance` holds. A draw
from a family that `dpaudit.audit.replay.laws.affine` knows is a `Tracked` array. All
else (integers, permutations, choices, gamma variables, ...) is ordinary numbers, and a
coin on the tape.

Every call draws from a stream of its own, which goes by the number of the call. So how
many numbers a call draws, which may be as many as there are rows, changes nothing for
the calls after it, and an execution is the same on both datasets but for the data.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.arithmetic import scaled
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked
from dpaudit.audit.replay.laws.affine import DRAW, Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw

__all__ = ["CallStreams", "RecordingGenerator"]

_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""How far the streams of two calls lie apart in the sequence of 2^128 numbers: what
NumPy's ``jumped`` takes, so that no two of them overlap."""


class CallStreams:
    """CallStreams of random numbers that go by the number of the call.

    Parameters
    ----------
    seed : int
    key : tuple of int
    """

    def __init__(self, seed: int, *key: int) -> None:
        entropy = np.random.SeedSequence(seed, spawn_key=key)
        self.seed, self.key = seed, key
        self.bits = np.random.PCG64DXSM(entropy)
        self._state: Any = self.bits.state
        self._generator = np.random.Generator(self.bits)
        self.calls = self._spawned = 0
        self._lock = threading.Lock()

    def next(self) -> np.random.Generator:
        """Return a generator at the beginning of the next stream."""
        with self._lock:
            self.calls += 1
            return self.at(self.calls)

    def at(self, call: int) -> np.random.Generator:
        """Return a generator at the beginning of a call's stream."""
        self.bits.state = self._state
        self.bits.advance(call * _JUMP)
        return self._generator

    def spawn(self) -> "CallStreams":
        """Return streams that are independent of these."""
        self._spawned += 1
        return CallStreams(self.seed, *self.key, self._spawned)


class RecordingGenerator(np.random.Generator):
    """A generator whose draws are followed.

    Parameters
    ----------
    tape : Tape
    streams : CallStreams
    follows : bool
        Whether draws are tracked; if not, they are ordinary numbers, and the same.
    """

    def __init__(
        self, tape: Tape, streams: CallStreams, *, follows: bool = True
    ) -> None:
        super().__init__(streams.bits)
        self._tape, self._streams, self._follows = tape, streams, follows

    @property
    def tape(self) -> Tape:
        """Where its draws are noted."""
        return self._tape

    @property
    def _notes(self) -> bool:
        """Whether draws are followed.

        Not within a declared primitive, nor by code that keeps the generator for later.
        """
        if self._tape.closed:
            self._tape.used_too_late()
            return False
        return self._follows and not self._tape.inside

    def _next(self) -> np.random.Generator:
        """Return the generator of the next call."""
        if self._tape.inside:
            return self._tape.inner
        self._tape.note_draw()
        return self._streams.next()

    def _noise(self, family: Family, size: Any) -> Any:
        """Return standard draws of a family."""
        values = DRAW[family](self._next(), size)
        if not self._notes:
            return values
        key, call = self._streams.key, self._streams.calls

        def again(seed: int) -> Any:
            return DRAW[family](CallStreams(seed, *key).at(call), size)

        floats = np.asarray(values, dtype=np.float64)
        return Tracked.fresh(self._tape, family, floats, again)

    def _located(self, family: Family, loc: Any, scale: Any, size: Any) -> Any:
        """Return loc + scale * standard draws, with NumPy's rules for the shapes."""
        if type(scale) not in (float, int):
            scale = np.asarray(scale, dtype=np.float64)
        # Of the scale -0.0 the sign is set, of NaN it does not matter.
        plain = type(scale) in (float, int) and scale > 0
        if not plain and np.any(np.signbit(scale) & ~np.isnan(scale)):
            raise ValueError("scale < 0")
        if size is None:
            size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) or None
        values = self._noise(family, size)
        if np.ndim(scale) or scale != 1.0:
            if isinstance_tracked(values):
                values = scaled(values, np.asarray(scale, dtype=np.float64))
            else:
                values = values * scale
        if isinstance_tracked(loc) or np.ndim(loc) or loc != 0:
            values = values + loc
        return values

    def _standard(self, family: Family, size: Any, dtype: Any, out: Any) -> Any:
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"Unsupported dtype {np.dtype(dtype)!r}")
        if out is None:
            return self._noise(family, size)
        out[...] = self._noise(family, np.shape(out))
        return out

    def standard_normal(
        self, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        return self._standard(Family.GAUSSIAN, size, dtype, out)

    def standard_exponential(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        method: Any = "zig",
        out: Any = None,
    ) -> Any:
        return self._standard(Family.EXPONENTIAL, size, dtype, out)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._standard(Family.UNIFORM, size, dtype, out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.GAUSSIAN, loc, scale, size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.LAPLACE, loc, scale, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.EXPONENTIAL, 0.0, scale, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.GUMBEL, loc, scale, size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.LOGISTIC, loc, scale, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.UNIFORM, low, np.subtract(high, low), size)

    def _unfollowed(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._tape.check_thread()
        self._tape.coin(f"{name} draws from a law that is not followed")
        return getattr(self._next(), name)(*args, **kwargs)

    # -- choices

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        candidates = np.asarray(a)
        k = int(candidates) if candidates.ndim == 0 else candidates.shape[axis]
        if p is None and self._tape.mode.public:
            places = self._next().choice(k, size, replace, shuffle=shuffle)
            places = self._publicly(k, places)
            return places if candidates.ndim == 0 else candidates.take(places, axis)
        if p is None or not (replace or size is None):
            return self._unfollowed("choice", a, size, replace, p, axis, shuffle)
        p = np.asarray(p, dtype=np.float64)
        places = self._next().choice(k, size, p=p)
        places = self._chosen(places, lambda count: ChoiceLaw.of(p / p.sum(), count))
        return places if candidates.ndim == 0 else np.take(candidates, places, axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        if not self._tape.mode.public or isinstance_tracked(x):
            return self._unfollowed("permutation", x, axis)
        order = self._order(int(x) if np.ndim(x) == 0 else np.shape(x)[axis])
        return order if np.ndim(x) == 0 else np.take(x, order, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if not self._tape.mode.public or not isinstance(x, np.ndarray | list):
            return self._unfollowed("shuffle", x, axis)
        order = self._order(np.shape(x)[axis])
        if isinstance(x, list):
            x[:] = [x[place] for place in order]
        else:
            x[...] = np.take(x, order, axis)

    def _order(self, count: int) -> Any:
        return self._publicly(count, self._next().permutation(count))

    def _publicly(self, outcomes: int, places: Any) -> Any:
        """Return uniform choices that everybody sees.

        Their law goes by how many there are among how many, and nothing else; that of
        independent ones stands for it, which is the same where it is.
        """

        def law(count: int) -> ChoiceLaw:
            return ChoiceLaw.of(np.full(outcomes, 1 / max(outcomes, 1)), count)

        return self._chosen(places, law)

    def flips(self, p: float, size: Any) -> Any:
        """Return independent flips, as `dpaudit.flips` asks for."""
        held = np.asarray(self._next().random(size) < p, dtype=np.intp)
        law = partial(ChoiceLaw.flips, np.array([p], dtype=np.float64))
        return np.asarray(self._chosen(held, law), dtype=bool)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        if np.ndim(n) or n != 1 or isinstance_tracked(p):
            return self._unfollowed("binomial", n, p, size)
        held = self._next().binomial(1, p, size)
        chance = np.broadcast_to(np.asarray(p, dtype=np.float64), np.shape(held))
        return self._chosen(held, partial(ChoiceLaw.flips, chance.ravel()))

    def _chosen(self, outcomes: Any, law: Callable[[int], ChoiceLaw]) -> Any:
        """Return outcomes of choices, which are on the tape if they are followed."""
        if self._notes:
            shape = np.shape(outcomes)
            outcomes = self._tape.choose(law(np.size(outcomes)), outcomes, shape)
        return outcomes if np.ndim(outcomes) else int(outcomes)

    # -- the generator itself

    def spawn(self, n_children: int) -> list["RecordingGenerator"]:  # type: ignore[override]
        return [
            RecordingGenerator(self._tape, self._streams.spawn(), follows=self._follows)
            for _ in range(n_children)
        ]

    @property
    def bit_generator(self) -> Any:
        self._tape.cannot_follow("the bits of the generator are used by themselves")
        return self._next().bit_generator

    def __copy__(self) -> Any:
        return self._copied()

    def __deepcopy__(self, memo: Any) -> Any:
        return self._copied()

    def __reduce__(self) -> Any:
        self._tape.cannot_follow("the generator is copied or sent away")
        return _seeded, (int(self._next().integers(2**62)),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __getstate__(self) -> Any:
        return self.bit_generator.state

    def _copied(self) -> Any:
        self._tape.cannot_follow("the generator is copied")
        return _seeded(int(self._next().integers(2**62)))


def _seeded(seed: int) -> np.random.Generator:
    """Return an ordinary generator; by this name it is found in other processes."""
    return np.random.Generator(np.random.PCG64(seed))


def _coin(name: str) -> Callable[..., Any]:
    def method(self: RecordingGenerator, *args: Any, **kwargs: Any) -> Any:
        return self._unfollowed(name, *args, **kwargs)

    method.__name__ = name
    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(RecordingGenerator):
        setattr(RecordingGenerator, _name, _coin(_name))
