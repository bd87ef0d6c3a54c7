"""Drawing one unit of work: some releases on one dataset.

What a unit gives depends on the mechanism, the dataset and the names of its streams,
and on nothing else: not on who draws it, nor on what was drawn before. Each single
release has a stream of its own, named by its number, and each batched draw one that is
named by the number of its first release. So a mechanism that seeds another library from
its generator does so once for every release, or draw.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache, partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from dpaudit.batches import Batch
from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.mechanism import HasBatchedDraw, Mechanism
from dpaudit.neighbours import Pair, fresh
from dpaudit.outputs import (
    Output,
    arrays_of,
    map_arrays,
    raised,
    raised_by_signal,
    read,
    read_stack,
    telling_interrupts,
)
from dpaudit.printable import said
from dpaudit.streams import FunctionMechanism, position, put_back, stream, streams

__all__ = [
    "Here",
    "Memory",
    "Piece",
    "Source",
    "draw_one",
    "single_threaded",
    "ways_to_draw",
]

_PATIENCE = 1000
_PARTS = 1000  # of a container that a mechanism holds
# What streams are for: single releases, batched draws, single ones in place of a batch.
_SINGLE, _BATCH, _INSTEAD = range(3)
_LOOK = 2  # the side, in the names of streams, of releases that are no evidence


class Piece(NamedTuple):
    """Releases of one side that are put together: some units, one after the other.

    Parameters
    ----------
    side : int
    first : int
        The number of the first one on that side.
    size : int
        How many.
    unit : int
        Of how many a unit is; the last may have fewer.
    """

    side: int
    first: int
    size: int
    unit: int

    @property
    def units(self) -> list[tuple[int, int]]:
        """Where each unit begins, and how many releases it has."""
        end = self.first + self.size
        return [(i, min(self.unit, end - i)) for i in range(self.first, end, self.unit)]


class Source(NamedTuple):
    """What releases are drawn from: a mechanism, a pair, and streams.

    Parameters
    ----------
    mechanism : Mechanism or callable
    pair : Pair
    seed, key : int
        Which name the streams, with the side and the number of a release.
    """

    mechanism: Mechanism | Callable[..., Any]
    pair: Pair
    seed: int
    key: int

    def unit(
        self,
        side: int,
        first: int,
        count: int,
        *,
        look: bool = False,
        used: list[np.random.Generator] | None = None,
    ) -> Batch:
        """Draw the releases of one unit, on one side from number `first` on.

        Single releases are the same in whichever units they are drawn.

        Parameters
        ----------
        side, first, count : int
        look : bool
            Whether they are no evidence, and have streams of their own.
        used : list of numpy.random.Generator, optional
            To which the generator of the first release is added, or of the draw.

        Raises
        ------
        MechanismError
            If a batched draw returns another number of outputs, or what is no sequence
            of outputs, or fails where single releases do not.
        DPAuditError
            Whatever the mechanism raises of dpaudit's own: it refuses the data.
        """
        data = (self.pair.data, self.pair.neighbour)[side]
        name = self.seed, self.key, _LOOK if look else side
        with telling_interrupts(), put_back():
            one, many = ways_to_draw(self.mechanism)
            if many is None:
                generators = [*streams(*name, _SINGLE, first=first, count=count)]
                if used is not None:
                    used.append(generators[0])
                return Batch.gather([*map(partial(_attempt, one, data), generators)])
            rng = stream(*name, _BATCH, first)
            if used is not None:
                used.append(rng)
            drawn = _stacked(many, data, count, rng)
            if not isinstance(drawn, BaseException):
                return drawn
            # That some release failed is known by now. To draw anew without that
            # condition would make failures rarer than they are; drawn until one fails,
            # the outputs have the law of `count` independent ones.
            for turn in range(_PATIENCE):
                again = streams(*name, _INSTEAD, first, turn, first=0, count=count)
                batch = Batch.gather([_attempt(one, data, rng) for rng in again])
                if any(layout.startswith("raises ") for layout in batch.parts):
                    return batch
            raise MechanismError(
                f"the mechanism's draw raised {said(drawn)}; single "
                "releases did not, though both must have the same distribution"
            ) from drawn


class Here:
    """Draws in this thread, one piece after the other."""

    _first: "tuple[Source, tuple[int, int, int], object, Memory] | None" = None

    def others(self) -> "list[Here]":
        """Return who else has drawn, to draw the same again."""
        return []

    def draw(
        self, source: Source, pieces: Sequence[Piece], room: int, reading: Any = None
    ) -> Generator[Any, None, None]:
        """Yield what each piece holds, in their order.

        Parameters
        ----------
        source : Source
        pieces : sequence of Piece
        room : int
            How many releases may be held that were not asked for yet.
        reading : callable, optional
            What is to be known of a piece, by its side, its first number and its
            releases: who draws elsewhere may answer with that instead.

        Raises
        ------
        ExecutorError
            If an executor fails, rather than the mechanism.
        DPAuditError
            As `Source.unit` does.
        """
        for piece in pieces:
            memory = Memory(source.mechanism) if self._first is None else None
            used: list[np.random.Generator] | None = None if memory is None else []
            drawn = [source.unit(piece.side, *each, used=used) for each in piece.units]
            if used and memory:
                batched = ways_to_draw(source.mechanism)[1] is not None
                again = piece.side, piece.first, piece.units[0][1] if batched else 1
                self._first = source, again, position(used[0]), memory
            yield Batch.join(drawn)

    def keeps_noise(self) -> bool:
        """Say whether releases depend on what earlier ones drew, or computed.

        The first release is drawn again, from the same seed. If it takes other numbers
        from its generator than it did, it has noise from then, or from elsewhere. Code
        that always draws may keep noise (``NOISE.setdefault("noise", rng.laplace())``),
        or what it computed of other data. So one release is drawn on either side with
        what the code keeps now, and with what it kept before the first. (A count of
        calls, a budget that is spent or a log makes no difference.)

        Raises
        ------
        DPAuditError
            Whatever the mechanism raises of dpaudit's own: it refuses the data.
        """
        if self._first is None:  # others drew it
            return False
        source, unit, taken, memory = self._first
        used: list[np.random.Generator] = []
        source.unit(*unit, used=used)
        if position(used[0]) != taken:
            return True
        few = min(unit[2], 2)
        ways = (partial(source.unit, side, 0, few, look=True) for side in (0, 1))
        return any(map(memory.matters, ways))


class Memory:
    """Containers in which a mechanism's code may keep something, and what was in them.

    These are its attributes, and dictionaries, lists and sets among these, among its
    defaults, and among what its names stand for. Functions that it calls are not looked
    into, nor are large containers. What they hold is put back after a look.
    """

    def __init__(self, mechanism: Any) -> None:
        code = written = FunctionMechanism.written(mechanism)
        if not isinstance(code, FunctionType | MethodType):
            code = getattr(code, "release", getattr(code, "__call__", None))  # noqa: B004
        function, own = (
            getattr(code, "__func__", code),
            getattr(written, "__dict__", {}),
        )
        ours = type(written).__module__.startswith("dpaudit.")
        found = [] if ours else [own, *own.values()]
        if isinstance(function, FunctionType):
            found += function.__defaults__ or ()
            found += map(function.__globals__.get, function.__code__.co_names)
            for cell in function.__closure__ or ():
                with suppress(ValueError):  # it is empty yet
                    found.append(cell.cell_contents)
        small = (e for e in found if type(e) in (dict, list, set) and len(e) <= _PARTS)
        self._before = [(each, each.copy()) for each in small]

    def matters(self, draw: Callable[[], Batch]) -> bool:
        """Say whether a draw, which repeats itself, is another with what was kept."""
        now = [(place, place.copy()) for place, _ in self._before]
        if [*map(_ids, self._before)] == [*map(_ids, now)]:
            return False
        drawn = []
        try:
            for kept in (now, self._before, now):
                _put(kept)
                drawn.append(draw())
        finally:
            _put(now)
        return drawn[0].equals(drawn[2]) and not drawn[0].equals(drawn[1])


def _put(kept: Sequence[tuple[Any, Any]]) -> None:
    for place, content in kept:
        place.clear()
        (place.extend if isinstance(place, list) else place.update)(content)


def _ids(kept: tuple[Any, Any]) -> list[int]:
    held = kept[1].values() if isinstance(kept[1], dict) else kept[1]
    return [*map(id, held)]


@telling_interrupts()
def draw_one(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    rng: np.random.Generator,
    *,
    batched: bool = False,
) -> Output:
    """Draw one release from a generator.

    Parameters
    ----------
    mechanism : Mechanism or callable
    data : ndarray
    rng : numpy.random.Generator
    batched : bool
        Whether to take the mechanism's own draw, if it has one.

    Raises
    ------
    DPAuditError
        Whatever the mechanism raises of dpaudit's own: it refuses the data.
    """
    one, many = ways_to_draw(mechanism)
    if batched and many is not None:
        one = partial(_one_of_many, mechanism)
    with put_back():
        drawn = _attempt(one, data, rng)
    return drawn if isinstance(drawn, Output) else read(drawn)


def _stacked(
    many: Callable[..., Any], data: Any, count: int, rng: np.random.Generator
) -> Batch | BaseException:
    """Return what a batched draw returns, or what it raises."""
    try:
        outputs = read_stack(many(fresh(data), count, rng))
    except BaseException as error:
        if isinstance(error, DPAuditError) or raised_by_signal(error):
            raise
        return error
    lengths = [len(outputs)] if isinstance(outputs, list) else []
    if isinstance(outputs, Output) and outputs.numbers is not None:
        # Over so many outputs the first axis of each array runs.
        lengths = [len(a) if a.ndim else 1 for a in arrays_of(outputs.numbers)]
    if any(length != count for length in lengths):
        other = next(length for length in lengths if length != count)
        raise MechanismError(
            f"the mechanism's draw returned {other} releases instead of {count}"
        )
    return Batch.gather(outputs) if isinstance(outputs, list) else Batch.of(outputs)


def ways_to_draw(
    mechanism: Mechanism | Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return functions for one release and perhaps for many, of (data, [size,] rng).

    Raises
    ------
    InputError
        If the mechanism has neither a release method nor a draw, and is no callable, or
        one that takes more than a dataset and what its randomness comes from.
    """
    # The first test is quick, and made for every unit.
    batched = hasattr(mechanism, "draw") and isinstance(mechanism, HasBatchedDraw)
    many = partial(_many, mechanism) if batched else None
    if hasattr(mechanism, "release"):
        return partial(_one, mechanism), many
    if many is not None:
        return partial(_one_of_many, mechanism), many
    if callable(mechanism):
        return FunctionMechanism.of(mechanism), None
    raise InputError(
        "mechanism must have a release method or be a callable (data, rng) -> "
        f"array, got {type(mechanism).__name__}"
    )


def _many(mechanism: Any, data: Any, size: int, rng: np.random.Generator) -> Any:
    return mechanism.draw(data, size, rng=rng)


def _one(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    return mechanism.release(data, rng=rng)


def _one_of_many(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    drawn = read_stack(mechanism.draw(data, 1, rng=rng))
    if isinstance(drawn, list):
        return drawn[0]
    if drawn.numbers is None:
        return drawn
    return Output(drawn.layout, map_arrays(drawn.numbers, lambda array: array[0]))


def _attempt(
    one: Callable[..., Any], data: Any, rng: np.random.Generator
) -> Output | float:
    """Return one output, read unless it is a number; an exception is one, too."""
    try:
        output = one(fresh(data), rng)
        if type(output) is float or type(output) is np.float64:
            return output
        return output if type(output) is Output else read(output)
    except BaseException as error:  # in reading it, too
        if isinstance(error, DPAuditError) or raised_by_signal(error):
            raise
        return raised(error)


def single_threaded() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread."""
    # Libraries are loaded by modules: where there are more of these, it looks again.
    return _blas(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _blas(_modules: int) -> ThreadpoolController:
    return ThreadpoolController()
