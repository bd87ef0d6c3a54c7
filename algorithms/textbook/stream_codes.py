"""What releases of a sparse vector mechanism say: which answers are above, and values.

Streams of answers above and below are few where releases are many, so a law is
evaluated once for each of those that occur.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.textbook.stream_losses import ABOVE, BELOW, UNREACHED, Codes
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_real

__all__ = ["Streams", "check_releases"]

Mask = NDArray[np.bool_]

_NOTHING = 3  # that a mechanism tells
_DIGITS = 16  # base 4: they and the number of one of 2^20 patterns are exact as a float


@dataclass(frozen=True, eq=False)
class Streams:
    """Releases of a sparse vector mechanism, sorted by the pattern of their answers.

    Parameters
    ----------
    releases : ndarray, shape (size, k)
        At most 2^20.
    codes : ndarray, shape (count, k)
        The patterns that occur: BELOW, ABOVE, UNREACHED.
    of : ndarray, shape (size,)
        Which pattern each release has.
    possible : ndarray, shape (count,)
        Which patterns are those of a stream; the codes of the others mean nothing.
    """

    releases: Array
    codes: Codes
    of: Codes
    possible: Mask

    @classmethod
    def read(
        cls,
        releases: Array,
        *,
        below: float,
        unreached: float,
        values: bool,
        limit: float,
    ) -> "Streams":
        """Read releases in which two numbers, or NaN, stand for below and unreached.

        Parameters
        ----------
        releases : ndarray, shape (size, k)
        below, unreached : float
        values : bool
            Whether answers above are told by any finite number, or by 1.
        limit : float
            Answers above that end a stream.
        """
        digits = np.full(releases.shape, _NOTHING, dtype=np.int8)
        above = np.isfinite(releases) if values else releases == 1.0
        is_below: Mask = np.isnan(releases) if isnan(below) else releases == below
        for code, told in (
            (ABOVE, above),
            (BELOW, is_below),
            (UNREACHED, releases == unreached),
        ):
            np.copyto(digits, code, where=told)
        of = np.zeros(len(releases), dtype=np.intp)
        for start in range(0, releases.shape[1], _DIGITS):
            block = digits[:, start : start + _DIGITS].astype(np.float64)
            keys = of * 4.0**_DIGITS + block @ 4.0 ** np.arange(block.shape[1])
            of = np.unique(keys, return_inverse=True)[1]
        example = np.zeros(of.max(initial=-1) + 1, dtype=np.intp)
        example[of] = np.arange(len(of))
        codes = digits[example].astype(np.intp)
        earlier = np.cumsum(codes == ABOVE, axis=1) - (codes == ABOVE)
        as_told = np.where(earlier >= limit, codes == UNREACHED, codes < UNREACHED)
        possible = np.asarray(as_told.all(axis=1))
        codes[~possible] = UNREACHED
        return cls(releases, codes, of, possible)

    def runs(self) -> Iterator[Codes]:
        """Yield the codes of the first run that ends above, of the second, ..."""
        above = self.codes == ABOVE
        run = np.cumsum(above, axis=1) - above
        for number in range(run.max(initial=-1) + 1):
            yield np.where(run == number, self.codes, UNREACHED)

    @cached_property
    def least_values(self) -> Array:
        """The least value of each release, infinite if it has none, shape (size,)."""
        values = np.where(np.isfinite(self.releases), self.releases, np.inf)
        return np.asarray(values.min(axis=1))

    def log_noise(self, answers: Array, scale: float) -> Array:
        """Return the log-density of values that are answers + Lap(scale), (size,)."""
        row, column = self._told
        distance = np.abs(self.releases[row, column] - answers[column])
        logs = -distance / scale - log(2 * scale)
        sums = np.bincount(row, logs, minlength=len(self.releases))
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def _told(self) -> tuple[Codes, Codes]:
        row, column = np.nonzero(np.isfinite(self.releases))
        return row, column


def check_releases(releases: ArrayLike, length: int) -> Array:
    """Return releases as floats, shape (size, length), or raise if they are not."""
    checked = check_real("releases", releases)
    if checked.ndim != 2 or checked.shape[1] != length:
        raise InputError(
            f"releases must have shape (size, {length}), got {checked.shape}"
        )
    return checked
