"""Sampling from the mechanism under audit: the releases of a round, in a fixed order.

The releases of a side are numbered, over all rounds, and the number names the stream of
a release. A round is cut into units of work (`dpaudit.audit.sampling.draws`), in a way
that depends on the round and on the size of a release, and single releases do not
depend on it. Nor does any depend on who works: units may be drawn anywhere and at any
time, and are put together in order, in batches of bounded memory. In these releases are
scored, where they were drawn or here. Whatever comes back is an output
(`dpaudit.outputs`), an exception too.

Signs of dependence
-------------------
Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Four checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit, here and by workers, if any have drawn:
  a release that differs from the first depends on the calls in between, or on
  randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it;
- a release that draws less when it is drawn again, or is another one without what the
  code has kept since the first, depends on it (`dpaudit.audit.sampling.draws.Here`);
- a batched draw whose releases are nearer each other than one of another batch shares
  noise between them.

Where one of them shows that the assumption fails, there is no verdict. Two things are
no such showing. A mechanism that never used its generator and always releases the same
is deterministic: its releases are of one law. And a mechanism may say that it draws
from the operating system instead, with an attribute `seedable` that is False: its
author then answers for its releases, which are to be independent all the same.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from dpaudit.audit.sampling.draws import Here, Piece, Source, draw_one, ways_to_draw
from dpaudit.batches import Batch
from dpaudit.errors import DPAuditError, ExecutorError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, fresh
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.streams import position, stream

__all__ = ["DATA", "NEIGHBOUR", "Opening", "Sampler", "Signs"]

DATA, NEIGHBOUR = 0, 1
"""The two sides of a pair: D and D'."""

_BATCH_BYTES = 16 * 2**20
_MAX_BATCH = 2**16
_FIRST_BATCH = 16  # while nothing is known of the size of a release
# A side's share of a round is cut into so many units or more, so that there is work
# for everybody; but a unit should be worth the overhead of its stream, or of its draw.
_UNITS = 8
_SINGLES = (1, 256)
_DRAWN = (2**12, _MAX_BATCH)
_FLIGHT_BYTES = 256 * 2**20
_STRETCH = 2**18  # batches that are thought of at a time
# Whether the releases of a batch share noise: threes of releases that are compared, and
# a bet on it.
_THREES = 100
_STAKE, _LOST, _WON = 0.8, 0.1, 1e9
_STATE = (
    "the same seed gave another release at the end than at the beginning: the "
    "mechanism keeps state between calls, or draws randomness of its own"
)
_UNUSED = (
    "the mechanism does not use its rng: its releases are constant, or draw randomness "
    "from elsewhere"
)
_KEPT = (
    "the mechanism keeps noise that its first call drew, or what it computed there (in "
    "a cache, an attribute, or a name of its module): its releases are not independent"
)
_OTHER = "; a hint rng: random.Random, or rng: jax.Array, asks for another"
_SHARED = (
    "releases of one batched draw resemble each other more than those of another one: "
    "they share noise, so that they are fewer independent releases than they seem"
)

_KEEPING: dict[int, Callable[[], Any]] = {}  # of what this process has seen keep noise


class Opening(NamedTuple):
    """The releases of one side with which a round opens.

    Parameters
    ----------
    first : int
        The number of the first one on that side.
    units : tuple of int
        How many releases each unit has in which they are drawn.
    """

    first: int
    units: tuple[int, ...]


class Sampler:
    """Outputs on either side of a pair, from reproducible streams.

    Parameters
    ----------
    mechanism : Mechanism or callable
        An object with ``release(data, rng=...)`` and perhaps ``draw``, or a plain
        function ``(data, rng) -> array``.
    pair : Pair
    seed : int
    key : int
        Which pair of the audit this is. A release depends on the seed, the key, its
        side, and how many came before it on that side.
    workers : Here, optional
        Who draws; by default this thread.

    Raises
    ------
    InputError
        If the mechanism is neither.
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Any],
        pair: Pair,
        seed: int,
        key: int = 0,
        workers: Here | None = None,
    ) -> None:
        self._batched = ways_to_draw(mechanism)[1] is not None
        self._mechanism, self._pair = mechanism, pair
        self._source = Source(mechanism, pair, seed, key)
        self._workers = workers or Here()
        self._bytes_each: float | None = None
        self._drawn = [0, 0]
        self._first: dict[int, Batch] = {}
        self.varies = False
        """Whether two releases on one dataset differed, of those of all rounds."""

    def round(
        self,
        sizes: tuple[int, int],
        reading: Callable[[int, int, Batch], Any] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the next outputs of either side, in batches, each with its side.

        Parameters
        ----------
        sizes : tuple of int
            How many on the data, and on the neighbour.
        reading : callable, optional
            What is yielded in place of a batch: what this returns of its side, of the
            number of its first release, and of itself. It has a ``bytes_each``, and
            may be called where the releases are drawn.

        Raises
        ------
        MechanismError
            If a batched draw returns another number of releases than asked for, or the
            mechanism has written to the datasets.
        ExecutorError
            If the workers are lost.
        DPAuditError
            Whatever the mechanism raises of dpaudit's own: it refuses the data.
        """
        pieces = (piece for side in enumerate(sizes) for piece in self._pieces(*side))
        largest = self._bytes_each or 0.0
        while stretch := list(islice(pieces, _STRETCH)):
            asked = reading if self.varies else None
            drawn = self._workers.draw(self._source, stretch, self._room, asked)
            with closing(drawn) as outcomes:
                for piece, found in zip(stretch, outcomes, strict=True):
                    largest = max(largest, found.bytes_each)
                    if isinstance(found, Batch):
                        if not self.varies:
                            one = self._first.setdefault(
                                piece.side, found.section(0, 1)
                            )
                            self.varies = not found.repeats(one)
                        if reading is not None:
                            found = reading(piece.side, piece.first, found)
                    yield piece.side, found
        self._pair.check_untouched()
        # Only now, so that how a round is cut depends on earlier rounds alone.
        self._bytes_each = largest or None

    def _pieces(self, side: int, size: int) -> Iterator[Piece]:
        """Yield what the next releases of a side are put together in: whole units."""
        unit = self._unit(size)
        # What a mechanism stacked by itself is long enough, and copied for nothing.
        most = unit if self._batched else self._batch_size()
        left = size
        while left:
            held = left if left <= most else most // unit * unit
            yield Piece(side, self._drawn[side], held, min(unit, held))
            self._drawn[side] += held
            left -= held

    def others(self) -> list[Here]:
        """Return who has drawn beside this thread, to draw the same again."""
        return self._workers.others()

    def batches(self, side: int, size: int) -> Iterator[Batch]:
        """Yield the next `size` outputs of one side, as `round` does."""
        sizes = (size, 0) if side == DATA else (0, size)
        return (batch for _, batch in self.round(sizes))

    def opening(self, sizes: tuple[int, int], few: int) -> tuple["Opening", "Opening"]:
        """Return how the first few of the next round are drawn, on either side."""
        on_data, on_neighbour = (self._opening(*each, few) for each in enumerate(sizes))
        return on_data, on_neighbour

    def _opening(self, side: int, size: int, few: int) -> "Opening":
        units: list[int] = []
        while (missing := min(few, size) - sum(units)) > 0:
            unit = min(self._unit(size), size - sum(units))
            # Single releases of a unit follow each other; a draw is one piece.
            units.append(unit if self._batched else min(unit, missing))
        return Opening(self._drawn[side], tuple(units))

    def again(self, side: int, opening: "Opening") -> Batch:
        """Draw once more with what a side of a round opened, in this thread."""
        first, drawn = opening.first, []
        for count in opening.units:
            drawn.append(self._source.unit(side, first, count))
            first += count
        return Batch.join(drawn)

    def uses_rng(self) -> bool:
        """Say whether a release draws from the generator that it is handed."""
        for data in (self._pair.data, self._pair.neighbour):
            rng = stream(0)
            before = position(rng)
            release = self._one(data, rng)
            if position(rng) != before:
                return True
            # A mechanism may read the state of a generator, and leave it as it is.
            if self._one(data, stream(0)).equals(release) and not self._one(
                data, stream(1)
            ).equals(release):
                return True
        return False

    def _one(self, data: Any, rng: np.random.Generator) -> Batch:
        return Batch.gather([draw_one(self._mechanism, data, rng, batched=True)])

    def keeps_noise(self) -> bool:
        """Say whether releases depend on the first, in this audit or one before."""
        kept = self._workers.keeps_noise()
        mechanism = self._mechanism
        with suppress(TypeError):  # it cannot be referred to
            _KEEPING.update({id(mechanism): ref(mechanism)} if kept else {})
        return kept or _KEEPING.get(id(mechanism), lambda: None)() is mechanism

    def shares_noise(self) -> bool:
        """Say whether two releases of a batch are mostly nearer than one of another.

        Given one release, another of its batch and one of another batch are independent
        draws of one law, so that the former is the nearer one with probability 1/2 at
        most. A bet that it is so at even odds, with 4/5 of what one has at stake, then
        wins a billionfold with probability 1e-9 at most. Most mechanisms lose nearly
        all of it at once, and are acquitted. Without a batched draw there is no batch
        to look at.
        """
        wealth = 1.0
        for place in range(_THREES if self._batched else 0):
            wealth *= 1 + _STAKE if self._is_nearer_beside(place) else 1 - _STAKE
            if wealth < _LOST or wealth > _WON:
                break
        return wealth > _WON

    def _is_nearer_beside(self, place: int) -> bool:
        batch, other = (
            self._source.unit(DATA, number, count, look=True)
            for number, count in ((3 * place, 2), (3 * place + 2, 1))
        )
        one, beside = batch.section(0, 1), batch.section(1, 2)
        return one.distance(beside) < one.distance(other)

    @telling_interrupts()
    def last_words(self) -> str:
        """Return the message with which a release fails, in brackets, or nothing."""
        one, _ = ways_to_draw(self._mechanism)
        try:
            one(fresh(self._pair.data), np.random.default_rng(0))
        except BaseException as error:
            if raised_by_signal(error):
                raise
            lacks = isinstance(getattr(error, "obj", None), np.random.Generator)
            lacks |= "PRNG key" in str(error)  # as JAX has it
            with suppress(Exception):  # an error may fail to say what it is
                return f" ({error}{_OTHER * lacks})" if str(error) else ""
        return ""

    def _unit(self, size: int) -> int:
        """Return the size of the units of one side of a round; the last may be less."""
        least, most = _DRAWN if self._batched else _SINGLES
        return min(max(math.ceil(size / _UNITS), least), most, self._batch_size())

    def _batch_size(self) -> int:
        if self._bytes_each is None:
            return _FIRST_BATCH
        return int(np.clip(_BATCH_BYTES / self._bytes_each, 1, _MAX_BATCH))

    @property
    def _room(self) -> int:
        bytes_each = self._bytes_each or _BATCH_BYTES / _FIRST_BATCH
        return int(_FLIGHT_BYTES / bytes_each)


@dataclass(frozen=True)
class Signs:
    """What was seen of the assumption that releases are independent draws of one law.

    Parameters
    ----------
    warnings : tuple of str
        What speaks against it.
    refute_it : bool
        Whether it was seen to fail, so that nothing follows from the releases.
    """

    warnings: tuple[str, ...]
    refute_it: bool

    @classmethod
    def of(
        cls,
        mechanism: Any,
        *,
        repeats: bool,
        uses_rng: bool,
        shares_noise: bool = False,
        keeps_noise: bool = False,
        varies: bool = False,
    ) -> "Signs":
        """Return what was seen of a mechanism.

        Parameters
        ----------
        mechanism : Mechanism or callable
        repeats : bool
            Whether the same seed gave the same release at the end as at the beginning.
        uses_rng : bool
            Whether it ever drew from the generator that it was handed.
        shares_noise : bool
            Whether the releases of a batch resemble each other.
        keeps_noise : bool
            Whether later releases depend on what was drawn or computed at first.
        varies : bool
            Whether two releases on one dataset differed.
        """
        found = {
            _STATE: not repeats,
            _UNUSED: not (uses_rng or keeps_noise),
            _KEPT: keeps_noise and repeats,
            _SHARED: shares_noise,
        }
        seeded = getattr(mechanism, "seedable", True) is not False
        elsewhere = not repeats or (varies and not uses_rng)
        return cls(
            warnings=tuple(sign for sign, seen in found.items() if seen),
            refute_it=shares_noise or (seeded and (elsewhere or keeps_noise)),
        )

    @classmethod
    def seen(
        cls, sampler: Sampler, mechanism: Any, repeats: Callable[[], bool]
    ) -> "Signs":
        """Return what was seen of the mechanism that is sampled.

        Parameters
        ----------
        sampler : Sampler
            Which drew the releases.
        mechanism : Mechanism or callable
            Not its view at the audit's layer.
        repeats : callable
            Says whether the same streams give the first releases once more.
        """
        try:
            return cls.of(
                mechanism,
                repeats=repeats(),
                uses_rng=sampler.uses_rng(),
                shares_noise=sampler.shares_noise(),
                keeps_noise=sampler.keeps_noise(),
                varies=sampler.varies,
            )
        except ExecutorError:
            raise
        except DPAuditError:
            # It refuses now what it took at the beginning.
            return cls.of(mechanism, repeats=False, uses_rng=True)
