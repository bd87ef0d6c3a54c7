"""Domains whose rows may be malformed: NaN and infinities among their entries.

Whoever can hand in a row of numbers can mostly hand in these too, and code that bounds
the influence of a row by clipping or comparing may let them pass: a NaN is neither
smaller nor larger than any bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.domains.base import Domain
from dpaudit.errors import InputError
from dpaudit.validation import check_real

__all__ = ["WithNonfinite"]


_STRANGE = (np.nan, np.inf, -np.inf)
_SHARE = 0.25  # of random rows, and of moves from a finite one


@dataclass(frozen=True)
class WithNonfinite(Domain, kinds=("nonfinite",)):
    """The rows of a domain, and these with any entries made NaN or infinite.

    Parameters
    ----------
    inner : Domain
        Of finite rows.

    Examples
    --------
    >>> from dpaudit.domains import Domain
    >>> domain = Domain.parse("ball:2:nonfinite")
    >>> domain.contains([np.nan, 0.5]), domain.contains([np.inf, 1.5])
    (True, False)
    """

    inner: Domain
    n_rows: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Domain) or isinstance(self.inner, WithNonfinite):
            raise InputError(f"inner must be a domain of finite rows, got {self.inner}")
        object.__setattr__(self, "n_rows", self.inner.n_rows)

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        (inner,) = words
        if not isinstance(inner, Domain):
            raise ValueError(words)
        return cls(inner)

    def __str__(self) -> str:
        return f"{self.inner}:nonfinite"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner.shape

    def strange_rows(self) -> tuple[Array, ...]:
        """Return the rows that are NaN, infinite and minus infinite throughout."""
        return tuple(np.full(self.shape, value) for value in _STRANGE)

    def random_row(self, *, rng: Generator) -> Array:
        """Return a random row of the inner domain, every fourth time a spoilt one."""
        row = self.inner.random_row(rng=rng)
        return self._spoilt(row, rng) if rng.random() < _SHARE else row

    def extremes(self) -> tuple[Array, ...]:
        """Return those of the inner domain, then the strange rows."""
        return (*self.inner.extremes(), *self.strange_rows())

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Take a step in the inner domain, or spoil or repair entries."""
        entries = check_real("row", row)
        finite = np.isfinite(entries)
        if finite.all() and rng.random() >= _SHARE:
            return self.inner.nearby(entries, scale, rng=rng)
        repaired = self.inner.project(np.where(finite, entries, 0.0))
        if not finite.all() and rng.random() < 0.5:
            return repaired
        return self._spoilt(repaired, rng)

    def project(self, row: ArrayLike) -> Array:
        """Return the row whose finite entries are brought into the inner domain.

        Raises
        ------
        InputError
            If the row has another shape.
        """
        entries = check_real("row", row)
        if entries.shape != self.shape:
            raise InputError(f"row must have shape {self.shape}, got {row!r}")
        return self._nearest(entries)

    def _nearest(self, row: Array) -> Array:
        finite = np.isfinite(row)
        # Zero may stand for any strange entry, but that the one of a category is lost:
        # it then was the first of them, as far as the rest can tell.
        first = ~finite & (np.cumsum(~finite).reshape(row.shape) == 1)
        filled = [np.where(finite, row, fill) for fill in (0.0, np.where(first, 1, 0))]
        inside = [self.inner.project(each) for each in filled]
        moved = [np.abs(np.where(finite, x - row, 0)).sum() for x in inside]
        return np.where(finite, inside[int(np.argmin(moved))], row)

    def _spoilt(self, row: Array, rng: Generator) -> Array:
        """Return the row with one entry, or every other time all, made strange."""
        here = np.ones(row.size, dtype=bool)
        if rng.random() < 0.5:
            here = np.arange(row.size) == rng.integers(row.size)
        value = _STRANGE[rng.integers(len(_STRANGE))]
        return np.where(here.reshape(row.shape), value, row)
