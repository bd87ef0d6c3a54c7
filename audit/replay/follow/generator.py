"""The generator that a mechanism is handed while it is recorded.

`RecordingGenerator` is a `numpy.random.Generator`, so that `isinstance` holds. A draw
from a family that `dpaudit.audit.replay.laws.coded` knows is a `Tracked` array. All
else (integers, permutations, choices, gamma variables, ...) is ordinary numbers, and a
coin on the tape.

Every call draws from a stream of its own, which goes by the number of the call. So how
many numbers a call draws, which may be as many as there are rows, changes nothing for
the calls after it, and an execution is the same on both datasets but for the data.
"""

import math
from collections.abc import Callable
from functools import partial, partialmethod
from itertools import permutations
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.discrete import DiscreteDraws
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.follow.outside import note_seeded
from dpaudit.audit.replay.follow.places import place_of_caller
from dpaudit.audit.replay.follow.streams import Bits, CallStreams, Seeds
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked
from dpaudit.audit.replay.laws.by_name import METHODS
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.coded import STANDARD, Family

__all__ = ["TWINS", "RecordingGenerator"]

_MOST_ORDERED = 4  # whose orders are choices
_MOST_NUMBERS = 256  # of which one is drawn, and waits to be looked at
_REPEATED = (
    "a copy of the generator, or one whose state is put back, draws otherwise from "
    "bits that were drawn from before"
)
TWINS = "two generators have one seed, and the same draws"
_SENT = "the generator is copied or sent away"
_KEPT = "a generator that an earlier execution made is used again"


class RecordingGenerator(DiscreteDraws, np.random.Generator):
    """A generator whose draws are followed.

    Parameters
    ----------
    tape : Tape
    follows : bool
        Whether draws are tracked; if not, they are ordinary numbers, and the same.
    streams : CallStreams, optional
        By default those of the tape's seed.
    why : str
        What speaks against its draws; empty for most.
    """

    def __init__(
        self, tape: Tape, *, follows: bool = True, streams: Any = None, why: str = ""
    ) -> None:
        self._streams = streams or CallStreams(tape.seed)
        super().__init__(self._streams.bits)
        self.tape, self.follows, self._why = tape, follows, why

    @property
    def _notes(self) -> bool:
        """Whether draws are followed.

        Not within a declared primitive, nor by code that keeps the generator for later.
        """
        if self.tape.closed:
            self.tape.used_too_late(_KEPT)
            return False
        return self.follows and not self.tape.inside

    def _next(self, what: Any = None) -> np.random.Generator:
        """Return the generator of the next call, which draws something."""
        if self.tape.inside:
            return self.tape.inner
        self.tape.note_draw()
        if self._why:
            self.tape.cannot_follow(self._why)
        generator = self._streams.next()
        if self._streams.noted(what) == []:
            self.tape.cannot_follow(_REPEATED)
        return generator

    def _noise(self, family: Family, size: Any, scale: float = 1.0) -> Any:
        """Return draws of a family, of a finite scale."""
        shape = _shape_of(size)
        what = int(family), math.prod(shape)
        stream, once = self._next(what), self._streams.again()

        def again(seed: int) -> Any:
            return STANDARD[family].sample(once(seed), size)

        drawn: Any = None
        # Where so many flips are given back next, whatever is drawn for them.
        given = family == Family.UNIFORM and self._notes
        at = len(self.tape.observations)
        if not (given and self.tape.script.gives(at, what[1])):
            drawn = STANDARD[family].sample(stream, size)
            if not self._notes:
                return drawn if scale == 1.0 else drawn * scale
            drawn = np.asarray(drawn, dtype=np.float64)
        scale = float(scale)
        note = self._streams.noted(what)
        if note and note[1] is not None:  # these very draws, once more
            if note[1].start is None:
                note[1].place = place_of_caller()  # the line that repeats them
            terms = Terms(block=note[1], factor=scale)
            return Tracked(self.tape, np.zeros(shape), terms, bare=True)
        if drawn is None:  # it may never be asked for
            make = partial(again, self._streams.seed)
            block = self.tape.draw(family, make, again, what[1])
            terms = Terms(block=block, factor=scale)
            made = Tracked(self.tape, np.broadcast_to(0.0, shape), terms, bare=True)
        else:
            made = Tracked.fresh(self.tape, family, drawn, again, scale)
        if note:
            note[1] = made.terms.block
        return made

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

    def _unfollowed(self, name: str, *args: Any, told: str = "", **kwargs: Any) -> Any:
        self.tape.check_thread()
        self.tape.coin(f"{told or name} draws from a law that is not followed")
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
        kept = self.tape.mode.keeps and self._notes and (replace or size is None)
        if kept and candidates.ndim < 2 and 0 < k <= _MOST_NUMBERS:
            table = np.full(k, 1 / k) if p is None else np.asarray(p, dtype=np.float64)
            held = self._of_table(table, lambda rng: rng.choice(k, size, p=p))
            if candidates.ndim == 0:
                return held
            if not isinstance_tracked(held):
                return candidates[np.asarray(held, dtype=np.intp)]
            steps = np.diff(candidates) if candidates.dtype.kind in "iuf" else [0, 1]
            if k > 1 and np.all(steps == steps[0]):
                return held * steps[0] + candidates[0]
            return candidates[held]
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
        if not self._orders(np.shape(x)[axis] if np.ndim(x) else x) or (
            isinstance_tracked(x)
        ):
            return self._unfollowed("permutation", x, axis)
        order = self._order(int(x) if np.ndim(x) == 0 else np.shape(x)[axis])
        return order if np.ndim(x) == 0 else np.take(x, order, axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        if not self._orders(len(x)) or not isinstance(x, np.ndarray | list):
            return self._unfollowed("shuffle", x, axis)
        order = self._order(np.shape(x)[axis])
        if isinstance(x, list):
            x[:] = [x[place] for place in order]
        else:
            x[...] = np.take(x, order, axis)

    def _orders(self, count: Any) -> bool:
        """Whether orders of so many are followed: they are public, or few."""
        mode = self.tape.mode
        return mode.public or (mode.keeps and self._notes and count <= _MOST_ORDERED)

    def _order(self, count: int) -> Any:
        if not self.tape.mode.public:
            every = list(permutations(range(count)))
            drawn = self._next().permutation(count)
            p = np.full(len(every), 1 / len(every))
            place = np.asarray(every.index(tuple(drawn.tolist())))
            return np.array(every[self._chosen(place, partial(ChoiceLaw.of, p))])
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
            return seed.rng.unseeded()
        if isinstance(seed, Bits):
            return seed.rng.on(seed.rng._streams)
        shared = self._streams.shared
        try:
            numbers = tuple(map(int, np.ravel(seed).tolist()))
        except (TypeError, ValueError):
            return None
        if numbers in shared.used_seeds:
            self.tape.cannot_follow(TWINS)
            return None
        drawn = [each for each in numbers if each in shared.seeds]
        if not drawn:
            return None
        shared.used_seeds.add(numbers)
        shared.seeds.update(dict.fromkeys(drawn))
        return self.unseeded()

    def of_words(self, words: list[int]) -> "RecordingGenerator | None":
        """Return a generator of a seed that this one drew, of which these are bits."""
        seeds = self._streams.shared.seeds
        return self.of_seed([each for each in seeds if each % 2**32 in words])

    def unseeded(self) -> "RecordingGenerator":
        """Return a generator of a seed of its own."""
        return self.on(self._streams.made())

    def end(self) -> None:
        """Note what may have become a seed, or a number, and became none."""
        for note in self._streams.shared.seeds.values():
            if note is not None:
                self.tape.coin(note.why, place=note.place)
        for text in self.tape.draws.texts:
            text.end()
        note_seeded(self.tape)

    def on(self, streams: CallStreams, why: str = "") -> "RecordingGenerator":
        """Return a generator that draws from other streams."""
        more: dict[str, Any] = {"streams": streams, "why": why or self._why}
        return RecordingGenerator(self.tape, follows=self.follows, **more)

    def spawn(self, n_children: int) -> list["RecordingGenerator"]:  # type: ignore[override]
        return [self.on(self._streams.spawn()) for _ in range(n_children)]

    @property
    def bit_generator(self) -> Any:
        return Bits(self)

    def may_be_seeds(self, drawn: Any) -> None:
        """Let what is made of bytes be followed as a seed."""
        self._streams.may_be_seeds(drawn)

    def bytes(self, length: int) -> Any:
        drawn = self._unfollowed("bytes", length)
        self.may_be_seeds(drawn)
        return drawn

    def __copy__(self) -> Any:
        return self.on(self._streams)  # as NumPy's, it shares the bits

    def __deepcopy__(self, memo: Any) -> Any:
        return self.on(self._streams.copied())

    def __reduce__(self) -> Any:
        self.tape.cannot_follow(_SENT)
        return _seeded, (int(self._next().integers(2**62)),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __getstate__(self) -> Any:
        return self._next().bit_generator.state


def _shape_of(size: Any) -> tuple[int, ...]:
    """Return the shape of what is drawn by a size, as NumPy takes it."""
    if size is None or type(size) is int:
        return () if size is None else (size,)
    return tuple(np.atleast_1d(size).tolist())


def _seeded(seed: int) -> np.random.Generator:
    """Return an ordinary generator; by this name it is found in other processes."""
    return np.random.Generator(np.random.PCG64(seed))


_standard = partial(partialmethod, RecordingGenerator._standard)
_located = partial(partialmethod, RecordingGenerator._located)
_FOLLOWED = {
    "standard_normal": _standard(Family.GAUSSIAN),
    "random": _standard(Family.UNIFORM),
    "normal": _located(Family.GAUSSIAN),
    "laplace": _located(Family.LAPLACE),
    "gumbel": _located(Family.GUMBEL),
    "logistic": _located(Family.LOGISTIC),
    **{name: partialmethod(RecordingGenerator._named, name) for name in METHODS},
}
_OWN = {*vars(RecordingGenerator), *vars(DiscreteDraws)}
for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in _OWN:
        _coin = partialmethod(RecordingGenerator._unfollowed, _name)
        setattr(RecordingGenerator, _name, _FOLLOWED.get(_name, _coin))
