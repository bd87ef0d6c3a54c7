"""The generator that a mechanism is handed while it is recorded.

`RecordingGenerator` is a `numpy.random.Generator`, so that `isinstance` holds. A draw
from a family that `dpaudit.audit.replay.laws.affine` knows is a `Tracked` array. All
else (integers, permutations, choices, gamma variables, ...) is ordinary numbers, and a
coin on the tape.

Every call draws from a stream of its own, which goes by the number of the call. So how
many numbers a call draws, which may be as many as there are rows, changes nothing for
the calls after it, and an execution is the same on both datasets but for the data.
"""

import math
import threading
from collections.abc import Callable
from functools import partial, partialmethod
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.discrete import DiscreteDraws
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked
from dpaudit.audit.replay.laws.affine import STANDARD, Family
from dpaudit.audit.replay.laws.choices import ChoiceLaw

__all__ = ["RecordingGenerator", "Seeds"]

_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""How far the streams of two calls lie apart in the sequence of 2^128 numbers: what
NumPy's ``jumped`` takes, so that no two of them overlap."""


class _CallStreams:
    """Streams of random numbers that go by the number of the call."""

    def __init__(self, seed: int, *key: int) -> None:
        entropy = np.random.SeedSequence(seed, spawn_key=key)
        self.seed, self.key = seed, key
        self.bits = np.random.PCG64DXSM(entropy)
        self._state: Any = self.bits.state
        # Numbers that may become seeds of generators, and what they are if they do not.
        self.seeds: dict[int, Unfollowed] = {}
        self.used_seeds: set[int] = set()
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

    def of(self, seed: int) -> "_CallStreams":
        """Return the streams that these are from another seed."""
        return _CallStreams(seed, *self.key)

    def spawn(self) -> "_CallStreams":
        """Return streams that are independent of these."""
        self._spawned += 1
        made = _CallStreams(self.seed, *self.key, self._spawned)
        made.seeds, made.used_seeds = self.seeds, self.used_seeds
        return made


class RecordingGenerator(DiscreteDraws, np.random.Generator):
    """A generator whose draws are followed.

    Parameters
    ----------
    tape : Tape
    follows : bool
        Whether draws are tracked; if not, they are ordinary numbers, and the same.
    streams : _CallStreams, optional
        By default those of the tape's seed.
    """

    def __init__(
        self, tape: Tape, *, follows: bool = True, streams: Any = None
    ) -> None:
        self._streams = streams or _CallStreams(tape.seed)
        super().__init__(self._streams.bits)
        self.tape, self._follows = tape, follows

    @property
    def _notes(self) -> bool:
        """Whether draws are followed.

        Not within a declared primitive, nor by code that keeps the generator for later.
        """
        if self.tape.closed:
            self.tape.used_too_late()
            return False
        return self._follows and not self.tape.inside

    def _next(self) -> np.random.Generator:
        """Return the generator of the next call."""
        if self.tape.inside:
            return self.tape.inner
        self.tape.note_draw()
        return self._streams.next()

    def _noise(self, family: Family, size: Any, scale: float = 1.0) -> Any:
        """Return draws of a family, of a finite scale."""
        values = STANDARD[family].draw(self._next(), size)
        if not self._notes:
            return values if scale == 1.0 else values * scale
        streams, call = self._streams, self._streams.calls

        def again(seed: int) -> Any:
            return STANDARD[family].draw(streams.of(seed).at(call), size)

        floats = np.asarray(values, dtype=np.float64)
        return Tracked.fresh(self.tape, family, floats, again, float(scale))

    def _located(
        self, family: Family, loc: Any = 0.0, scale: Any = 1.0, size: Any = None
    ) -> Any:
        """Return loc + scale * standard draws, with NumPy's rules for the shapes."""
        if type(scale) not in (float, int):
            scale = np.asarray(scale, dtype=np.float64)
        # Of the scale -0.0 the sign is set, of NaN it does not matter.
        plain = type(scale) in (float, int) and 0 < scale < math.inf
        if not plain and np.any(np.signbit(scale) & ~np.isnan(scale)):
            raise ValueError("scale < 0")
        if size is None:
            size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) or None
        values = self._noise(family, size, scale if plain else 1.0)
        if not plain and (np.ndim(scale) or scale != 1.0):
            values = values * scale
        if isinstance_tracked(loc) or np.ndim(loc) or loc != 0:
            values = values + loc
        return values

    def _standard(
        self, family: Family, size: Any = None, dtype: Any = np.float64, out: Any = None
    ) -> Any:
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"Unsupported dtype {np.dtype(dtype)!r}")
        if out is None:
            return self._noise(family, size)
        out[...] = self._noise(family, np.shape(out))
        return out

    def standard_exponential(
        self,
        size: Any = None,
        dtype: Any = np.float64,
        method: Any = "zig",
        out: Any = None,
    ) -> Any:
        return self._standard(Family.EXPONENTIAL, size, dtype, out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.EXPONENTIAL, 0.0, scale, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._located(Family.UNIFORM, low, np.subtract(high, low), size)

    def _unfollowed(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.tape.check_thread()
        self.tape.coin(f"{name} draws from a law that is not followed")
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
        if p is None and self.tape.mode.public:
            places = self._next().choice(k, size, replace, shuffle=shuffle)
            places = self._publicly(k, places)
            return places if candidates.ndim == 0 else candidates.take(places, axis)
        if p is None and candidates.ndim == 1 and len(candidates) == 2 and replace:
            if candidates.dtype.kind in "iuf" and candidates[0] == -candidates[1]:
                return self._coin_flip(*candidates.tolist(), size=size, name="choice")
        if p is None or not (replace or size is None):
            return self._unfollowed("choice", a, size, replace, p, axis, shuffle)
        p = np.asarray(p, dtype=np.float64)
        places = self._next().choice(k, size, p=p)
        places = self._chosen(places, lambda count: ChoiceLaw.of(p / p.sum(), count))
        return places if candidates.ndim == 0 else np.take(candidates, places, axis)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """Return counts of choices, which show as much of the weights as these."""
        if size is not None or np.ndim(n) or np.ndim(pvals) != 1:
            return self._unfollowed("multinomial", n, pvals, size)
        p = np.asarray(pvals, dtype=np.float64)
        counts = self._next().multinomial(n, p)
        places = np.repeat(np.arange(len(p)), counts)
        last = np.append(p[:-1], max(0.0, 1 - p[:-1].sum()))  # as NumPy takes it
        places = self._chosen(places, lambda count: ChoiceLaw.of(last, count))
        return np.bincount(places, minlength=len(p))

    def permutation(self, x: Any, axis: int = 0) -> Any:
        if not self.tape.mode.public or isinstance_tracked(x):
            return self._unfollowed("permutation", x, axis)
        order = self._order(int(x) if np.ndim(x) == 0 else np.shape(x)[axis])
        return order if np.ndim(x) == 0 else np.take(x, order, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if not self.tape.mode.public or not isinstance(x, np.ndarray | list):
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
        """Return independent flips, as samplers of batches ask for them."""
        held = np.asarray(self._next().random(size) < p, dtype=np.intp)
        law = partial(ChoiceLaw.flips, np.array([p], dtype=np.float64))
        return np.asarray(self._chosen(held, law), dtype=bool)

    def _chosen(self, outcomes: Any, law: Callable[[int], ChoiceLaw]) -> Any:
        """Return outcomes of choices, which are on the tape if they are followed."""
        if self._notes:
            shape = np.shape(outcomes)
            outcomes = self.tape.choose(law(np.size(outcomes)), outcomes, shape)
        return outcomes if np.ndim(outcomes) else int(outcomes)

    # -- the generator itself

    def of_seed(self, seed: Any) -> "RecordingGenerator | None":
        """Return a generator of a seed that this one drew, None of any other seed."""
        if isinstance(seed, Seeds):
            return seed.rng.spawn(1)[0]
        try:
            number = int(seed)
        except (TypeError, ValueError):
            return None
        if number in self._streams.used_seeds:
            self.tape.cannot_follow("two generators have one seed, and the same draws")
            return None
        if self._streams.seeds.pop(number, None) is None:
            return None
        self._streams.used_seeds.add(number)
        return self.spawn(1)[0]

    def end(self) -> None:
        """Note what was drawn as a seed would be, and became none."""
        for note in self._streams.seeds.values():
            self.tape.coin(note.why, place=note.place)

    def spawn(self, n_children: int) -> list["RecordingGenerator"]:  # type: ignore[override]
        return [
            RecordingGenerator(
                self.tape, follows=self._follows, streams=self._streams.spawn()
            )
            for _ in range(n_children)
        ]

    @property
    def bit_generator(self) -> Any:
        self.tape.cannot_follow("the bits of the generator are used by themselves")
        return self._next().bit_generator

    def __copy__(self) -> Any:
        return self._copied()

    def __deepcopy__(self, memo: Any) -> Any:
        return self._copied()

    def __reduce__(self) -> Any:
        self.tape.cannot_follow("the generator is copied or sent away")
        return _seeded, (int(self._next().integers(2**62)),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __getstate__(self) -> Any:
        return self.bit_generator.state

    def _copied(self) -> Any:
        self.tape.cannot_follow("the generator is copied")
        return _seeded(int(self._next().integers(2**62)))


def _seeded(seed: int) -> np.random.Generator:
    """Return an ordinary generator; by this name it is found in other processes."""
    return np.random.Generator(np.random.PCG64(seed))


class Seeds:
    """A sequence of seeds that goes by one that was drawn.

    Parameters
    ----------
    rng : RecordingGenerator
        Whose children the generators of these seeds are.
    """

    def __init__(self, rng: RecordingGenerator) -> None:
        self.rng = rng

    def spawn(self, n_children: int) -> list["Seeds"]:
        return [Seeds(each) for each in self.rng.spawn(n_children)]

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        limit = np.iinfo(dtype).max
        words = [self.rng.integers(0, limit, dtype=dtype) for _ in range(n_words)]
        return np.array(words, dtype=dtype)


_standard = partial(partialmethod, RecordingGenerator._standard)
_located = partial(partialmethod, RecordingGenerator._located)
_FOLLOWED = {
    "standard_normal": _standard(Family.GAUSSIAN),
    "random": _standard(Family.UNIFORM),
    "normal": _located(Family.GAUSSIAN),
    "laplace": _located(Family.LAPLACE),
    "gumbel": _located(Family.GUMBEL),
    "logistic": _located(Family.LOGISTIC),
}
_OWN = {*vars(RecordingGenerator), *vars(DiscreteDraws)}
for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in _OWN:
        _coin = partialmethod(RecordingGenerator._unfollowed, _name)
        setattr(RecordingGenerator, _name, _FOLLOWED.get(_name, _coin))
