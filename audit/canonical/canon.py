"""Grids for releases: their steps, and how these are learned from the past."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array, Release
from dpaudit.attacks.base import flatten
from dpaudit.batches import Batch, LayoutPart, by_array
from dpaudit.outputs import arrays_of
from dpaudit.streams import stream

__all__ = ["Canon", "ReleaseGrid"]

Ints = NDArray[np.int_]

_BITS = 30  # which an entry keeps, at most
_SMALLEST = -1074  # the exponent of the least double
_EXPONENT = np.uint64(0x7FF0_0000_0000_0000)  # its bits in a double
_ORDINARY = 1000  # in size, exponents below which steps and quotients are doubles
_ALIKE = 2  # exponents that differ by so much are as good
_NUDGE = 2.0**-8  # of a step
_CHUNK = 2**15  # entries that stay in a processor's cache
_LEARNED = 2**20  # entries that a grid is learned from
_SEEN = 5  # releases a side: equal laws lie apart by chance once in 126 entries, then
_AGAIN, _ENOUGH = 4, 2000  # more releases before a grid is learned again; and the last
_SINGLE_BITS = 12  # of an entry in single precision
_ROUNDING = {_BITS: 38, _SINGLE_BITS: 19}  # what varies by 2^-38 of itself is rounding
_WITHIN = 10  # what varies by little has steps of 2^-10 of its spread
# Residues lie below 2^-40 of what they are left of, by 2^-30 more; squares by 2^-90.
_RESIDUE, _BAND, _DEEP = 40, 30, 90
_LATTICE = 36  # bits that exact numbers may have
_SINGLE, _FEW_BITS = (19, 24), 24
_LOW, _HIGH = 0.1, 0.9  # quantiles


@dataclass(frozen=True)
class ReleaseGrid:
    """The grid for the releases of one layout, entries in the order of `flatten`.

    Parameters
    ----------
    exponent : ndarray of int, shape (m,) or (1,)
        Steps are 2^exponent at least.
    bits : ndarray of int, shape (m,) or (1,)
        Larger entries keep that many.
    reach : ndarray, shape (m,) or (1,)
        Up to this magnitude steps are 2^exponent, even if entries are larger.
    offset : float
        U, in [0, 1).
    binade : float
        In [1/2, 1): steps double at this times a power of two.
    """

    exponent: Ints
    bits: Ints
    reach: Array
    offset: float
    binade: float

    @property
    def parameters(self) -> dict[str, NDArray[Any]]:
        """The grid as named arrays, as witnesses keep it."""
        return {
            "exponent": self.exponent,
            "bits": self.bits,
            "reach": self.reach,
            "offset": np.array([self.offset, self.binade]),
        }

    def apply(self, numbers: Release) -> Release:
        """Return canonical releases, shapes (size, ...); NaN and infinities stay."""
        return self._changed(numbers, self._rounded)

    def nudged(self, numbers: Release, rng: np.random.Generator) -> Release:
        """Move releases by 2^-8 of their steps at most, at random."""

        def moved(entries: Array, columns: "ReleaseGrid") -> Array:
            step = np.ldexp(1.0, columns._exponents(entries))
            return entries + rng.uniform(-_NUDGE, _NUDGE, entries.shape) * step

        return self._changed(numbers, moved)

    def resembles(self, other: "ReleaseGrid") -> bool:
        """Say whether another grid is about as good for the same releases."""
        return bool(
            np.all(np.abs(self.exponent - other.exponent) <= _ALIKE)
            and np.all(self.bits == other.bits)
            and np.all((self.reach > 0) == (other.reach > 0))
        )

    def _columns(self, start: int, stop: int) -> "ReleaseGrid":
        if len(self.exponent) == 1:
            return self
        s = slice(start, stop)
        return replace(
            self, exponent=self.exponent[s], bits=self.bits[s], reach=self.reach[s]
        )

    def _changed(self, numbers: Release, change: Any) -> Release:
        if not isinstance(numbers, Mapping):
            flat = numbers.reshape(len(numbers), -1)
            with np.errstate(all="ignore"):
                return np.asarray(change(flat, self).reshape(numbers.shape))
        changed, start = dict[str, Array](), 0
        for key in sorted(numbers):
            width = numbers[key].size // max(len(numbers[key]), 1)
            columns = self._columns(start, start + width)
            changed[key] = arrays_of(columns._changed(numbers[key], change))[0]
            start += width
        return {key: changed[key] for key in numbers}

    def _exponents(self, entries: Array) -> Ints:
        """Return the exponent of the step of each entry."""
        significand, exponent = np.frexp(entries)
        own = exponent + (np.abs(significand) >= self.binade) - self.bits
        coarse = (np.abs(entries) > self.reach) & (own > self.exponent)
        return np.maximum(np.where(coarse, own, self.exponent), _SMALLEST)

    def _rounded(self, entries: Array, columns: "ReleaseGrid") -> Array:
        width, rounded = entries.shape[1], np.empty(entries.shape)
        rows = max(min(_CHUNK // max(width, 1), len(entries)), 1)
        steps = [np.ldexp(1.0, columns.exponent), np.ldexp(1.0, 1 - columns.bits)]
        beside = [
            each.repeat(rows * width) if len(each) == 1 else np.tile(each, rows)
            for each in (*steps, *([columns.reach] if columns.reach.any() else []))
        ]
        ordinary = bool(np.all(np.abs(columns.exponent) < _ORDINARY))
        for start in range(0, len(entries), rows):
            part, out = entries[start : start + rows], rounded[start : start + rows]
            here = (each[: part.size] for each in beside)
            if not (ordinary and self._put(part.ravel(), out.ravel(), *here)):
                out[...] = columns._rounded_exactly(part)
        return rounded

    def _put(
        self, entries: Array, out: Array, least: Array, scale: Array, *reach: Array
    ) -> bool:
        """Put entries on the grid; say whether that is right: all come out finite.

        To divide by a step is exact. To add to the bits of an entry carries into its
        exponent where it reaches `binade`; then its exponent alone is kept.
        """
        one, binade = np.array([1.0, self.binade]).view(np.uint64)
        bits = (entries.view(np.uint64) + (one - binade)) & _EXPONENT
        steps = bits.view(np.float64)
        steps *= scale
        np.maximum(steps, least, out=steps)
        if reach:
            np.copyto(steps, least, where=np.abs(entries) <= reach[0])
        np.divide(entries, steps, out=out)
        out += self.offset
        np.floor(out, out=out)
        out *= steps
        return bool(np.isfinite(out.sum()))

    def _rounded_exactly(self, entries: Array) -> Array:
        exponent = self._exponents(entries)
        # In two halves, for 2^-exponent may be no double.
        half = -exponent // 2
        scaled = np.ldexp(np.ldexp(entries, half), -exponent - half)
        canonical = np.ldexp(np.floor(scaled + self.offset), exponent)
        # The last step below infinity, NaN, and what is infinite. There is one zero.
        return np.where(np.isfinite(canonical), canonical, entries) + 0.0


@dataclass
class Canon:
    """The grids of an audit on one pair: one for each layout, learned from the past.

    Parameters
    ----------
    seed, key : int
        The offset is drawn from the stream of that name.
    data : float
        The size of the data.
    """

    seed: int
    key: int
    data: float = 0.0
    grids: dict[str, ReleaseGrid] = field(default_factory=dict)
    _learned_on: dict[str, int] = field(default_factory=dict)
    _doubts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        offset, binade, self.score_offset = stream(self.seed, self.key).random(3)
        self._offset, self._binade = float(offset), float(2.0 ** (binade - 1))

    def is_due(self, counts: Mapping[str, int]) -> bool:
        """Say whether so many past outputs teach more than those learned from."""
        return any(self._is_due(layout, count) for layout, count in counts.items())

    def _is_due(self, layout: str, count: int) -> bool:
        before = self._learned_on.get(layout, 0)
        return before < _ENOUGH and count >= _AGAIN * before

    def learn(self, on_data: Batch, on_neighbour: Batch) -> list[str]:
        """Learn from releases as they came back; return the layouts that changed."""
        changed = []
        for layout in {**on_data.parts, **on_neighbour.parts}:
            count = on_data.count(layout) + on_neighbour.count(layout)
            if not self._is_due(layout, count):
                continue
            self._learned_on[layout] = count
            sides = [b.few(layout, _LEARNED) for b in (on_data, on_neighbour)]
            if all(side is None for side in sides):
                continue
            arrays = by_array([side for side in sides if side is not None])
            grid = _learned_grid(arrays, self.data, self._offset, self._binade)
            if layout not in self.grids or not grid.resembles(self.grids[layout]):
                self.grids[layout] = grid
                changed.append(layout)
            self._doubts[layout] = _told_by_rounding(self.grids[layout], *sides)
        return changed

    def __call__(self, batch: Batch) -> Batch:
        """Return canonical outputs."""
        return self._changed(batch, ReleaseGrid.apply)

    def nudged(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Return canonical outputs, moved by a little before they were put on grids."""
        return self(self._changed(batch, lambda grid, x: grid.nudged(x, rng)))

    def nudges(self) -> np.random.Generator:
        """Return the generator of the nudges."""
        return stream(self.seed, self.key, 0)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What was read as rounding though it seemed to tell D from D', in words."""
        doubted = sum(differ for differ, _ in self._doubts.values())
        among = sum(entries for _, entries in self._doubts.values())
        if not doubted:
            return ()
        return (
            f"{doubted} of {among} entries of a release differ between D and D' by no "
            "more than rounding does, or the sign of a zero: over the real numbers "
            "this is no violation, and they were read as equal; attacks.BITS audit the "
            "doubles themselves",
        )

    def _changed(self, batch: Batch, change: Any) -> Batch:
        parts = {}
        for layout, part in batch.parts.items():
            numbers = part.numbers
            if numbers is not None:
                numbers = change(self._grid(layout), numbers)
            parts[layout] = LayoutPart(part.places, numbers)
        return Batch(batch.size, parts)

    def _grid(self, layout: str) -> ReleaseGrid:
        """Return the grid of a layout; of one that is new, of sizes of its entries."""
        if layout in self.grids:
            return self.grids[layout]
        sizes = np.array([_SMALLEST]), np.array([_BITS]), np.zeros(1)
        return ReleaseGrid(*sizes, self._offset, self._binade)


def _told_by_rounding(
    grid: ReleaseGrid, first: Release | None, second: Release | None
) -> tuple[int, int]:
    """Return how many entries tell D from D' but on the grid, and of how many."""
    if first is None or second is None:
        return 0, 0
    raw = flatten(first), flatten(second)
    if min(map(len, raw)) < _SEEN:
        return 0, 0
    both = np.vstack([flatten(grid.apply(side)) for side in (first, second)])
    apart = (raw[0].max(axis=0) < raw[1].min(axis=0)) | (
        raw[0].min(axis=0) > raw[1].max(axis=0)
    )
    constant = (both == both[0]).all(axis=0)
    below, above = (np.signbit(side) for side in raw)
    apart |= (below.all(axis=0) & ~above.any(axis=0)) | (
        above.all(axis=0) & ~below.any(axis=0)
    )
    return int((apart & constant).sum()), len(apart)


def _learned_grid(
    arrays: list[list[Array]], data: float, offset: float, binade: float
) -> ReleaseGrid:
    """Return the grid for releases like these, shapes (n, m): of an array, by sides."""
    with np.errstate(all="ignore"):
        found = [_sizes(sides, data) for sides in arrays]
    whole = (np.concatenate(parts) for parts in zip(*found, strict=True))
    exponent, bits, reach = (  # one entry if all are alike
        each[:1] if len(each) and (each == each[0]).all() else each for each in whole
    )
    longest = max(len(exponent), len(bits), len(reach))
    exponent, bits, reach = (
        np.broadcast_to(part, longest) for part in (exponent, bits, reach)
    )
    return ReleaseGrid(exponent, bits, reach, offset, binade)


def _sizes(sides: list[Array], data: float) -> tuple[Ints, Ints, Array]:
    """Return exponents, bits and reaches for the columns of one array."""
    entries = np.vstack(sides)
    finite = np.isfinite(entries)
    magnitude = np.where(finite & (entries != 0), np.abs(entries), np.inf)
    magnitude.sort(axis=0)
    counts = np.isfinite(magnitude).sum(axis=0)
    small, large = (_picked(magnitude, counts, q, 0.0) for q in (_LOW, _HIGH))
    bits, lattice = _bits(entries)
    # On one side alone it may be in single precision, too.
    single = np.any([_is_single(*_bits(side)) for side in sides], axis=0)
    lattice = np.where(single, _SMALLEST, lattice)
    precision = np.where(single, _SINGLE_BITS, _BITS)

    exponent = np.frexp(small)[1] - precision
    # A column of zeros has the size of what is beside it.
    around = max(float(large.max(initial=0.0)), data)
    exponent[counts == 0] = np.frexp(around)[1] - _RESIDUE if around else _SMALLEST

    # Fine columns, by the middle of what was seen of them.
    ordered = np.sort(np.where(finite, entries, np.inf), axis=0)
    low, high = (_picked(ordered, finite.sum(axis=0), q, 0.0) for q in (_LOW, _HIGH))
    spread, middle = high - low, np.maximum(np.abs(low), np.abs(high))
    rounding = np.where(single, _ROUNDING[_SINGLE_BITS], _ROUNDING[_BITS])
    fine = (spread > np.ldexp(middle, -rounding)) & (
        spread < np.ldexp(middle, _WITHIN - precision)
    )
    reach = np.where(fine, 2 * middle, 0.0)
    within = np.maximum(
        np.frexp(spread)[1] - _WITHIN, np.frexp(middle)[1] - rounding - 8
    )
    exponent = np.where(fine, np.minimum(exponent, within), exponent)

    exact = lattice > _SMALLEST
    finest = exact & (exponent > lattice)
    # What is beyond the bits of a lattice has last bits of its own.
    reach = np.where(finest, np.ldexp(1.0, lattice + _LATTICE), reach)
    exponent = np.where(exact, np.minimum(exponent, lattice), exponent)

    for size, own in ((float(large.max(initial=0.0)), True), (data, False)):
        residue = _are_residues(entries, small, bits, size, own)
        exponent = np.where(residue, np.frexp(size)[1] - _BITS, exponent)
        reach = np.where(residue, 0.0, reach)
    return np.maximum(exponent, _SMALLEST), precision, reach


def _picked(ordered: Array, counts: Ints, q: float, empty: float) -> Array:
    """Return quantiles of columns in order, of which the first `counts` are seen."""
    place = (np.maximum(counts - 1, 0) * q).astype(np.intp)
    picked = np.take_along_axis(ordered, place[np.newaxis], axis=0)[0]
    return np.where(counts > 0, picked, empty)


def _bits(entries: Array) -> tuple[Ints, Ints]:
    """Return how many bits the entries of a column have, at most, and their lattice.

    A lattice is told by the exponent of the power of two that all entries are multiples
    of; it is that of the least double where there is none to speak of.
    """
    seen = np.isfinite(entries) & (entries != 0)
    significand, exponent = np.frexp(np.where(seen, entries, 1.0))
    integer = np.abs(significand * 2.0**53).astype(np.int64)
    trailing = np.frexp((integer & -integer).astype(np.float64))[1] - 1
    most = np.where(seen, 53 - trailing, 0).max(axis=0, initial=0)
    lowest = np.where(seen, exponent - 53 + trailing, 2000).min(axis=0, initial=2000)
    highest = np.where(seen, exponent, -2000).max(axis=0, initial=-2000)
    exact = (highest > -2000) & (highest - lowest <= _LATTICE)
    return most, np.where(exact, lowest, _SMALLEST)


def _is_single(bits: Ints, lattice: Ints) -> NDArray[np.bool_]:
    """Say which columns are in single precision: with its bits, and no integers."""
    return (bits >= _SINGLE[0]) & (bits <= _SINGLE[1]) & (lattice < 0)


def _are_residues(
    entries: Array, small: Array, bits: Ints, size: float, own: bool
) -> NDArray[np.bool_]:
    """Say which columns look like what is left of sums of that size that should be 0.

    `own` says whether it is the size of entries of the same array.
    """
    if not 0 < size < np.inf:
        return np.zeros(len(small), dtype=np.bool_)
    share = small / size
    below = (small > 0) & (share < 2.0**-_RESIDUE)
    below &= share > 2.0 ** -(_RESIDUE + _DEEP)
    few = below & (bits <= _FEW_BITS)
    if not (own and below.any()):
        return few
    columns = np.flatnonzero(below)
    seen = entries[:, columns]
    ordered = np.sort(seen, axis=0)
    distinct = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
    enough = _LOW * len(seen)
    signed = ((seen > 0).sum(axis=0) >= enough) & ((seen < 0).sum(axis=0) >= enough)
    near = share[columns] > 2.0 ** -(_RESIDUE + _BAND)
    below[columns] = (2 * distinct <= len(seen)) | (signed & near)
    return below | few
