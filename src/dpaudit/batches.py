"""Many outputs at once: stacked by layout, each at its place."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array, Release
from dpaudit.outputs import Output, arrays_of, map_arrays, read

__all__ = ["Batch", "LayoutPart", "by_array", "fingerprint"]

_AT_ONCE, _FEW = 16, 64  # columns, and entries
_MIXED = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


@dataclass(frozen=True)
class LayoutPart:
    """The outputs of one layout in a batch.

    Parameters
    ----------
    places : ndarray of int, shape (n,)
        Where in the batch they stand; increasing.
    numbers : Release or None
        Stacked; None if the layout has none.
    """

    places: NDArray[np.intp]
    numbers: Release | None

    def slice(self, low: int, high: int, start: int) -> "LayoutPart":
        """Return some of them, for a batch that begins at another place."""
        places = self.places[low:high] - start
        if self.numbers is None:
            return LayoutPart(places, None)
        return LayoutPart(
            places, map_arrays(self.numbers, lambda array: array[low:high])
        )


@dataclass(frozen=True)
class Batch:
    """Some outputs of a mechanism, in order.

    Parameters
    ----------
    size : int
    parts : mapping of str to LayoutPart
        By layout, in order of appearance; every output is in one of them.
    """

    size: int
    parts: Mapping[str, LayoutPart]

    @classmethod
    def of(cls, output: Output) -> "Batch":
        """Return a batch of stacked outputs, see `read_stack`."""
        assert output.numbers is not None
        size = len(arrays_of(output.numbers)[0])
        return cls(size, {output.layout: LayoutPart(np.arange(size), output.numbers)})

    @classmethod
    def gather(cls, outputs: Sequence[Output | float]) -> "Batch":
        """Return single outputs as a batch; a plain number need not be read."""
        size = len(outputs)
        if size and {*map(type, outputs)} <= {float, np.float64}:
            numbers = np.array(outputs, dtype=np.float64)
            return cls(size, {"shape ()": LayoutPart(np.arange(size), numbers)})
        found = [each if type(each) is Output else read(each) for each in outputs]
        places: dict[str, list[int]] = {}
        for place, output in enumerate(found):
            places.setdefault(output.layout, []).append(place)
        return cls(
            size,
            {
                layout: LayoutPart(
                    np.array(where),
                    _combined([found[place].numbers for place in where], np.stack),
                )
                for layout, where in places.items()
            },
        )

    def numbers(self, layout: str) -> Release | None:
        """Return the stacked numbers of one layout, None where there are none."""
        part = self.parts.get(layout)
        return None if part is None else part.numbers

    def few(self, layout: str, entries: int) -> Release | None:
        """Return the first of the releases of a layout, of so many numbers, or ten."""
        numbers = self.numbers(layout)
        if numbers is None:
            return None
        width = sum(a.size // max(len(a), 1) for a in arrays_of(numbers))
        most = max(entries // max(width, 1), 10)
        return map_arrays(numbers, lambda array: array[:most])

    def count(self, layout: str) -> int:
        """Return how many outputs have a layout."""
        part = self.parts.get(layout)
        return 0 if part is None else len(part.places)

    def end(self, layout: str, most: int) -> int:
        """Return where a section ends that holds `most` outputs of a layout, or all."""
        part = self.parts.get(layout)
        if part is None or len(part.places) <= most:
            return self.size
        return int(part.places[most])

    @property
    def layouts(self) -> NDArray[np.object_]:
        """The layout of every output, shape (size,)."""
        every = np.empty(self.size, dtype=object)
        for layout, part in self.parts.items():
            every[part.places] = layout
        return every

    @property
    def counts(self) -> dict[str, int]:
        """How many outputs have each layout."""
        return {layout: len(part.places) for layout, part in self.parts.items()}

    @property
    def bytes_each(self) -> float:
        """Memory per output that holds numbers, at least one byte; 0 if none does."""
        held = [part for part in self.parts.values() if part.numbers is not None]
        size = sum(array.nbytes for p in held for array in arrays_of(p.numbers))
        count = sum(len(part.places) for part in held)
        return max(size / count, 1.0) if count else 0.0

    def equals(self, other: "Batch") -> bool:
        """Say whether another batch holds the same outputs, NaN equal to itself."""
        return self.distance(other) == 0

    def repeats(self, one: "Batch") -> bool:
        """Say whether all outputs are the one of another batch."""
        return self.parts.keys() == one.parts.keys() and all(
            _same(first, second).all()
            for layout in self.parts
            for first, second in _side_by_side(self, one, layout)
        )

    def distance(self, other: "Batch") -> float:
        """Return the largest difference of two numbers; infinite where layouts differ.

        NaN and infinities are at no distance from themselves, and far from all else.
        """
        if self.size != other.size or self.parts.keys() != other.parts.keys():
            return math.inf
        largest = 0.0
        for layout, part in self.parts.items():
            if not np.array_equal(part.places, other.parts[layout].places):
                return math.inf
            for one, two in _side_by_side(self, other, layout):
                with np.errstate(invalid="ignore", over="ignore"):
                    gaps = np.where(_same(one, two), 0.0, np.abs(one - two))
                gaps[np.isnan(gaps)] = math.inf
                largest = max(largest, float(gaps.max(initial=0.0)))
        return largest

    def section(self, start: int, stop: int) -> "Batch":
        """Return the outputs from one place to another; 0 <= start, stop."""
        stop = min(stop, self.size)
        start = min(start, stop)
        parts = {}
        for layout, part in self.parts.items():
            low, high = np.searchsorted(part.places, (start, stop)).tolist()
            if low < high:
                parts[layout] = part.slice(low, high, start)
        return Batch(stop - start, parts)

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return the first half and the rest."""
        middle = self.size // 2
        return self.section(0, middle), self.section(middle, self.size)

    @classmethod
    def join(cls, batches: Iterable["Batch"]) -> "Batch":
        """Return the outputs of several batches as one."""
        size = 0
        found: dict[str, list[LayoutPart]] = {}
        for batch in batches:
            for layout, part in batch.parts.items():
                moved = LayoutPart(part.places + size, part.numbers)
                found.setdefault(layout, []).append(moved)
            size += batch.size
        return cls(size, {layout: _joined(parts) for layout, parts in found.items()})


def by_array(sides: Sequence[Release]) -> list[list[Array]]:
    """Return the arrays of releases, flat, in the order of keys; each by sides."""
    of_sides = (
        [side[key] for key in sorted(side)] if isinstance(side, Mapping) else [side]
        for side in sides
    )
    return [
        [array.reshape(len(array), -1) for array in arrays]
        for arrays in zip(*of_sides, strict=True)
    ]


def repeating_columns(
    sides: Sequence[Array], least: int
) -> tuple[bool, NDArray[np.intp]]:
    """Say whether any column varies, and which ones do and hold a value so often.

    Parameters
    ----------
    sides : sequence of ndarray, shapes (n, m)
        Rows that are looked at together; any NaN is equal to any other.
    least : int
        At least 2.

    Examples
    --------
    >>> repeating_columns([np.array([[1, 1, 0.5], [1, 2, 0.1], [1, 2, 0.7]])], 2)
    (True, array([1]))
    """
    varies, found = False, list[int]()
    for start in range(0, sides[0].shape[1], _AT_ONCE):
        several = slice(start, start + _AT_ONCE)
        entries = np.concatenate([side[:, several].T for side in sides], axis=1) + 0.0
        entries[np.isnan(entries)] = np.nan
        keys = entries.view(np.uint64)  # which equal entries share, and those alone
        varying = np.flatnonzero((keys != keys[:, :1]).any(axis=1)).tolist()
        varies |= bool(varying)
        found += [start + place for place in varying if _occurs(keys[place], least)]
    return varies, np.array(found, dtype=np.intp)


def _occurs(keys: NDArray[np.uint64], least: int) -> bool:
    """Say whether some key occurs so often.

    Where keys repeat all the time, a few of them show it. Else each is put in one of
    two to four cells a key, and those alone are sorted whose cell holds so many.
    """
    for part in (keys[:_FEW], keys):
        if len(part) > _FEW:
            unused = 63 - len(part).bit_length()
            cell = ((part * _MIXED) >> np.uint64(unused)).astype(np.intp)
            part = part[(np.bincount(cell) >= least)[cell]]
        ordered = np.sort(part)
        if (ordered[least - 1 :] == ordered[: 1 - least]).any():
            return True
    return False


def _side_by_side(
    one: Batch, other: Batch, layout: str
) -> Iterator[tuple[Array, Array]]:
    """Return the arrays of two batches that have a layout."""
    numbers = (arrays_of(each.numbers(layout)) for each in (one, other))
    return zip(*numbers, strict=True)


def _same(one: Array, other: Array) -> NDArray[np.bool_]:
    """Say where numbers are the same, NaN equal to itself."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _combined(
    numbers: Sequence[Release | None], how: Callable[[list[Array]], Array]
) -> Release | None:
    """Return the numbers of several outputs, or stacks, of one layout as one."""
    first = numbers[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        mappings = cast(Sequence[Mapping[str, Array]], numbers)
        return {key: how([mapping[key] for mapping in mappings]) for key in first}
    return how(cast(list[Array], list(numbers)))


def _joined(parts: Sequence[LayoutPart]) -> LayoutPart:
    if len(parts) == 1:
        return parts[0]
    places = np.concatenate([part.places for part in parts])
    return LayoutPart(
        places, _combined([part.numbers for part in parts], np.concatenate)
    )


def fingerprint(*batches: Batch) -> bytes:
    """Return a digest of outputs: the same if they are equal to the bit, and only then.

    Any NaN is like any other.
    """
    digest = hashlib.sha256()
    for batch in batches:
        for layout, part in batch.parts.items():
            arrays = [] if part.numbers is None else arrays_of(part.numbers)
            shapes = [array.shape for array in arrays]
            digest.update(repr((layout, part.places.tolist(), shapes)).encode())
            for array in arrays:
                digest.update(np.where(np.isnan(array), np.nan, array).tobytes())
    return digest.digest()
