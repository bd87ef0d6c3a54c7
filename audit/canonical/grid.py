"""A grid for releases: steps are powers of two, from an offset that was drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.mechanism import Release
from dpaudit.outputs import arrays_of

__all__ = ["BITS", "SMALLEST", "ReleaseGrid"]

Ints = NDArray[np.int_]

BITS = 30
"""Which an entry keeps, at most."""

SMALLEST = -1074
"""The exponent of the least double."""

_ALIKE = 2  # exponents that differ by so much are as good
_NUDGE = 2.0**-8  # of a step
_CHUNK = 2**15  # entries that stay in a processor's cache


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

    @classmethod
    def of(cls, parameters: Mapping[str, NDArray[Any]]) -> "ReleaseGrid":
        """Return the grid with these parameters.

        Raises
        ------
        InputError
            If they are not those of a grid.
        """
        try:
            exponent, bits, reach, offset = (
                parameters[name] for name in ("exponent", "bits", "reach", "offset")
            )
            proper = (
                exponent.shape == bits.shape == reach.shape == (len(exponent),)
                and exponent.dtype.kind == bits.dtype.kind == "i"
                and {reach.dtype.kind, offset.dtype.kind} == {"f"}
                and offset.shape == (2,)
                and 0 <= offset[0] < 1
                and 0.5 <= offset[1] < 1
                and np.all((exponent >= SMALLEST) & (exponent <= -SMALLEST))
                and np.all((bits > 0) & (bits <= BITS))
                and np.all(reach >= 0)
            )
        except (KeyError, TypeError, AttributeError, ValueError):
            proper = False
        if not proper:
            raise InputError(
                f"these are no parameters of a grid for releases: {parameters}"
            )
        return cls(exponent, bits, reach, float(offset[0]), float(offset[1]))

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
        part = slice(start, stop)
        return ReleaseGrid(
            self.exponent[part],
            self.bits[part],
            self.reach[part],
            self.offset,
            self.binade,
        )

    def _changed(self, numbers: Release, change: Any) -> Release:
        if not isinstance(numbers, Mapping):
            flat = numbers.reshape(len(numbers), -1)
            with np.errstate(all="ignore"):
                return np.asarray(change(flat, self).reshape(numbers.shape))
        changed: dict[str, Array] = {}
        start = 0
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
        return np.maximum(np.where(coarse, own, self.exponent), SMALLEST)

    def _rounded(self, entries: Array, columns: "ReleaseGrid") -> Array:
        rounded = np.empty_like(entries)
        rows = max(_CHUNK // max(entries.shape[1], 1), 1)
        # Up to where steps are those of the column; and a step, by which it is exact to
        # multiply and to divide.
        edge = np.maximum(
            np.ldexp(columns.binade, columns.exponent + columns.bits - 1), columns.reach
        )
        step = np.ldexp(1.0, columns.exponent)
        simple = bool(np.all((columns.exponent > -1000) & (columns.exponent < 1000)))
        for start in range(0, len(entries), rows):
            part, out = entries[start : start + rows], rounded[start : start + rows]
            if simple and np.all(np.abs(part) < edge):
                np.multiply(part, 1 / step, out=out)
                out += columns.offset
                np.floor(out, out=out)
                out *= step
                continue
            exponent = columns._exponents(part)
            # In two halves, for 2^-exponent may be no double.
            half = -exponent // 2
            scaled = np.ldexp(np.ldexp(part, half), -exponent - half)
            canonical = np.ldexp(np.floor(scaled + columns.offset), exponent)
            # The last step below infinity, NaN, and what is infinite.
            out[...] = np.where(np.isfinite(canonical), canonical, part)
        rounded += 0.0  # there is one zero
        return rounded
