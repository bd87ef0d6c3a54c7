"""Noisy values that the code under audit looked at, a million of them in little memory.

What repeats from one to the next (the place, the shape, the families, which entries
hang together) is kept once, and the numbers in columns: some 36 bytes to a scalar. A
flip is one bit.

They are the script of an execution that is repeated: the values that are given back.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy import asarray  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw

__all__ = [
    "Observation",
    "ObservationSlice",
    "Observations",
    "Script",
    "Shapes",
    "Unfollowed",
]

Shapes: TypeAlias = Mapping[int, tuple[int, ...]]
"""Of the flips by row, by their number among all that was looked at."""

_MANY = 64  # flips from which on they are kept as bits
_NO_VALUE = np.empty(0)
_MOST_IN_COLUMNS = 100_000  # entries of a noisy value; a longer one is kept as it is


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """Why an execution could not be followed, and where."""

    place: str
    why: str


@dataclass(slots=True)
class Observation:
    """A noisy value that the code looked at, or a choice that was made."""

    place: str
    how: str
    law: AnyLaw
    value: Array
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Kind:
    """What noisy values of one kind share."""

    place: str
    how: str
    shape: tuple[int, ...]
    unit: NDArray[np.intp]
    first: NDArray[np.intp]
    family: NDArray[np.intp]
    alone: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ObservationSlice:
    """Some noisy values, one after the other, taken for a single one.

    Parameters
    ----------
    law : AffineLaw
        Of all entries; those of different values have different units.
    value : ndarray
    places, ways : list of str
        Where each noisy value was looked at, and how.
    entries, units : ndarray of int
        How many each noisy value has.
    """

    law: AffineLaw
    value: Array
    places: list[str]
    ways: list[str]
    entries: NDArray[np.intp]
    units: NDArray[np.intp]


class Observations(Sequence[Observation]):
    """The noisy values of an execution, in their order.

    Those of a law that falls into units are kept in columns, all others, very long
    ones, and what was not looked at, as they are.
    """

    def __init__(self, several: Iterable[Observation] = ()) -> None:
        self._numbers: dict[Any, int] = {}
        self._kinds: list[_Kind] = []
        self._others: dict[int, Observation] = {}
        self._flips: dict[int, NDArray[np.uint8]] = {}
        self._kind = array("i")
        self._mean, self._ratio, self._value = array("d"), array("d"), array("d")
        self._draw = array("q")
        self._starts: tuple[NDArray[np.intp], ...] = ()
        for each in several:
            self.append(each)

    @classmethod
    def with_flips(
        cls,
        values: list[Observation],
        place: int | None,
        shapes: Shapes,
        bits: Iterable[bool],
    ) -> "Observations":
        """Return a transcript in which the row at a place has flips, one in each batch.

        The flips of `values` are those of the other rows, flat; the place is None where
        there is no other.
        """
        script = list(values)
        for bit, (number, shape) in zip(bits, shapes.items(), strict=True):
            flips = script[number].value
            if place is not None:
                own = np.array([bit], dtype=flips.dtype)
                flips = np.concatenate([flips[:place], own, flips[place:]])
            script[number] = replace(script[number], value=flips, shape=shape)
        return cls(script)

    def __len__(self) -> int:
        return len(self._kind)

    def append(self, made: Observation) -> None:
        """Add a noisy value."""
        law = made.law
        if (
            not made.how
            or type(law) is not AffineLaw
            or not law.known
            or law.rough is not None
            or law.mean.size != made.value.size
            or law.mean.size > _MOST_IN_COLUMNS
        ):
            self._append_as_it_is(made)
            return
        shared, parts = (
            (made.place, made.how, made.shape),
            (law.unit, law.first, law.family, law.alone),
        )
        key = (*shared, *(part.tobytes() for part in parts))
        kind = self._numbers.setdefault(key, len(self._kinds))
        if kind == len(self._kinds):
            copies: Any = [part.copy() for part in parts]
            self._kinds.append(_Kind(*shared, *copies))
        self._kind.append(kind)
        _extend(self._mean, law.mean)
        _extend(self._ratio, law.ratio)
        _extend(self._value, made.value)
        _extend(self._draw, law.draw)

    def _append_as_it_is(self, made: Observation) -> None:
        """Add a noisy value; the code may write into the arrays that it has of it."""
        packed = _packed(made)
        if packed is not None:
            self._flips[len(self)] = packed
        value = _NO_VALUE if packed is not None else made.value.copy()
        value = value.astype(np.intp) if value.dtype == bool else value
        law = made.law
        if type(law) is AffineLaw:
            law = replace(law, mean=law.mean.copy())
        self._others[len(self)] = replace(made, law=law, value=value)
        self._kind.append(-1)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        if self._kind[number] < 0:
            made = self._others[number]
            if number in self._flips:
                made = replace(made, value=self._flips_of(number))
            return made
        kind, alone = self._kinds[self._kind[number]], self.part(number, number + 1)
        assert alone is not None
        return Observation(kind.place, kind.how, alone.law, alone.value, kind.shape)

    def output(self, number: int) -> tuple[tuple[int, ...], Array]:
        """Return the shape of a noisy value, and its entries."""
        if self._kind[number] < 0:
            made = self._others[number]
            if number in self._flips:
                return made.shape, self._flips_of(number)
            return made.shape, made.value
        start, stop = self._before()[0][number : number + 2].tolist()
        value = asarray(self._value)[start:stop]
        return self._kinds[self._kind[number]].shape, value

    def flips(self, number: int) -> int:
        """Return how many flips a noisy value is, if these are kept as bits; else 0."""
        kept = number in self._flips
        return math.prod(self._others[number].shape) if kept else 0

    def law(self, number: int) -> AnyLaw:
        """Return the law of a noisy value."""
        if self._kind[number] < 0:
            return self._others[number].law
        law: AnyLaw = self[number].law
        return law

    def law_of(self, number: int) -> tuple[type, str] | None:
        """Return the class of a law, and what it is for people.

        None for what was not looked at: of it nothing but the value is known.
        """
        if self._kind[number] >= 0:
            return AffineLaw, "a noisy number"
        made = self._others[number]
        shown = getattr(made.law, "kind", "a noisy number")
        return (type(made.law), shown) if made.how else None

    @property
    def path(self) -> tuple[Any, ...]:
        """The way that the code took: places, ways to look, and shapes, in order."""
        kinds = tuple((kind.place, kind.how, kind.shape) for kind in self._kinds)
        others = tuple(
            (number, one.place, one.how, one.shape)
            for number, one in self._others.items()
        )
        return kinds, self._kind.tobytes(), others

    def _flips_of(self, number: int) -> Any:
        """Return the outcomes of flips."""
        count = math.prod(self._others[number].shape)
        return np.unpackbits(self._flips[number], count=count)

    def seen_by(self, how: str) -> "Observations":
        """Return the noisy values that were looked at in one way."""
        columns = [kind.how == how for kind in self._kinds]
        return Observations(
            self[number]
            for number, kind in enumerate(self._kind)
            if (columns[kind] if kind >= 0 else self._others[number].how == how)
        )

    def part(self, start: int, stop: int) -> ObservationSlice | None:
        """Return the noisy values from one to another, None if not all have units."""
        numbers = self._kind[start:stop]
        if not numbers or min(numbers) < 0:
            return None
        kinds = [self._kinds[number] for number in numbers]
        before, units_before = self._before()
        entries = slice(int(before[start]), int(before[stop]))
        units = slice(int(units_before[start]), int(units_before[stop]))
        sizes = np.diff(before[start : stop + 1])
        counts = np.diff(units_before[start : stop + 1])
        unit, first, family, alone = (
            np.concatenate([getattr(kind, name) for kind in kinds])
            if len(kinds) > 1
            else getattr(kinds[0], name)
            for name in ("unit", "first", "family", "alone")
        )
        if len(kinds) > 1:
            shift = np.repeat(units_before[start:stop] - units.start, sizes)
            unit = np.where(unit >= 0, unit + shift, -1)
            first = first + np.repeat(before[start:stop] - entries.start, counts)
        law = AffineLaw(
            mean=asarray(self._mean)[entries],
            unit=unit,
            ratio=asarray(self._ratio)[entries],
            first=first,
            draw=asarray(self._draw)[units],
            family=family,
            alone=alone,
        )
        value = asarray(self._value)[entries]
        places, ways = [kind.place for kind in kinds], [kind.how for kind in kinds]
        return ObservationSlice(law, value, places, ways, sizes, counts)

    def _before(self) -> tuple[NDArray[np.int_], ...]:
        """Return how many entries and units there are before each noisy value."""
        if not self._starts or len(self._starts[0]) <= len(self):
            kinds = self._kinds
            several = [len(e.unit) for e in kinds], [len(e.first) for e in kinds]
            self._starts = tuple(
                np.append(0, np.array([*sizes, 0])[asarray(self._kind)].cumsum())
                for sizes in several
            )
        return self._starts


@dataclass
class Script:
    """What an execution is given for its noisy values, and where it left that.

    Parameters
    ----------
    values : Observations, optional
        Of the execution that is repeated. If there are none, nothing is given.
    goes_on : bool
        Whether the execution may go on by itself where these end.
    diverged : Unfollowed, optional
        Where the execution came to another noisy value, or to one more.
    left_at_choice : bool
        Whether that was at a choice, which may be hidden.
    """

    values: Observations | None = None
    goes_on: bool = False
    diverged: Unfollowed | None = None
    left_at_choice: bool = False

    def gives(self, number: int, count: int) -> bool:
        """Say whether a noisy value is flips that are given, so many of them."""
        if self.values is None or self.diverged is not None:
            return False
        return self.values.flips(number) == count

    def output(
        self, number: int, law: AnyLaw, shape: tuple[int, ...], place: str
    ) -> Array | None:
        """Return the value that is given for a noisy value, if there is one."""
        if self.values is None or self.diverged is not None:
            return None
        if number >= len(self.values):
            if not self.goes_on:
                self.diverged = Unfollowed(place, "one noisy value more than on D")
                self.left_at_choice = type(law) is ChoiceLaw
            return None
        given_shape, given = self.values.output(number)
        there = self.values.law_of(number)
        why = ""
        if there is not None and type(law) is not there[0]:
            why = f"{there[1]} on D is {law.kind} on D'"
        elif given_shape != shape:
            what = "choice(s)" if type(law) is ChoiceLaw else "noisy number(s)"
            several, beside = math.prod(given_shape), math.prod(shape)
            why = f"the code comes to {several} {what} here on D, and to "
            why += f"{'others' if several == beside else beside} on D'"
        if why:
            self.diverged = Unfollowed(place, why)
            self.left_at_choice = ChoiceLaw in (type(law), there and there[0])
            return None
        if type(law) is ChoiceLaw and given.size and given.max() >= law.outcomes:
            self.diverged = Unfollowed(place, "an outcome on D is none on D'")
            return None
        return given.copy()


def _packed(made: Observation) -> NDArray[np.uint8] | None:
    """Return the outcomes of many flips as bits, None of anything else."""
    law, value = made.law, made.value
    if type(law) is not ChoiceLaw or law.outcomes > 2 or value.size < _MANY:
        return None
    if math.prod(made.shape) != value.size:
        return None
    if value.dtype not in (bool, np.uint8):
        if not ((value == 0) | (value == 1)).all():
            return None
    elif value.max() > 1:
        return None
    return np.packbits(value.astype(bool, copy=False))


def _extend(column: "array[Any]", values: NDArray[Any]) -> None:
    if values.size == 1:
        column.append(values.item())
    else:
        kept = np.ascontiguousarray(values, dtype=column.typecode)
        column.frombytes(kept.tobytes())
