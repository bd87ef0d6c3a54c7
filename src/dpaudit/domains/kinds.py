"""The domains of rows that are numbers, vectors or categories, and of malformed rows.

A row that can be handed in can mostly have NaN and infinite entries too, and code that
bounds the influence of a row by clipping or comparing may let them pass: a NaN is
neither smaller nor larger than any bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.domains.base import Domain
from dpaudit.errors import InputError
from dpaudit.rows import clip_rows, normalise_rows
from dpaudit.validation import Count, Norm, check_count, check_real

__all__ = ["Binary", "Box", "Categories", "UnitBall", "WithNonfinite"]


@dataclass(frozen=True)
class UnitBall(Domain, kinds=("ball",)):
    """Vectors of bounded Euclidean length.

    Parameters
    ----------
    dimension : int
        >= 1.
    norm : float
        The bound, from 1e-50 to 1e50.
    """

    dimension: Count
    norm: Norm = 1.0

    def __str__(self) -> str:
        return f"ball:{self.dimension}:norm={self.norm!r}:rows={self.n_rows}"

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        _, dimension = words
        norm, n_rows = float(options.get("norm", "1")), cls._rows_in(options, "norm")
        return cls(int(dimension), norm, n_rows=n_rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dimension,)

    def random_row(self, *, rng: Generator) -> Array:
        """Return a row of uniform direction; every other row is of full length."""
        row = self._along(rng.standard_normal(self.dimension))
        return row if rng.random() < 0.5 else row * rng.random()

    def extremes(self) -> tuple[Array, ...]:
        """Return 0, e1, e2, -e1, the diagonal and -e2, at full length."""
        first, second = np.zeros((2, self.dimension))
        first[0] = second[-1] = self.norm
        diagonal = self._along(np.ones(self.dimension))
        zero = np.zeros(self.dimension)
        return _distinct([zero, first, second, -first, diagonal, -second])

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Take a step; every other one is a rotation, which keeps the length."""
        row = np.asarray(row, dtype=np.float64)
        moved = row + self.norm * _step(self.shape, scale, rng)
        length = float(np.linalg.norm(row))
        if length > 0 and rng.random() < 0.5:
            moved = self._along(moved) * min(1.0, length / self.norm)
        return self._nearest(moved)

    def _along(self, direction: Array) -> Array:
        return self._nearest(normalise_rows(direction[np.newaxis])[0] * self.norm)

    def _nearest(self, row: Array) -> Array:
        return clip_rows(row[np.newaxis], self.norm)[0]


@dataclass(frozen=True)
class Box(Domain, kinds=("box", "scalar")):
    """Real numbers of an interval, or vectors of such numbers.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    dimension : int, optional
        >= 1; without it each row is one number.
    """

    low: float
    high: float
    dimension: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = float(self.low), float(self.high)
        if not (np.isfinite(high - low) and low < high):
            raise InputError(
                f"low and high must be finite with low < high, got {low!r}, {high!r}: "
                "give the bounds that data keep, or such as show that it clips, as 1e9"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __str__(self) -> str:
        interval = f"{self.low!r},{self.high!r}"
        kind = "scalar" if self.dimension is None else "box"
        size = "" if self.dimension is None else f":{self.dimension}"
        return f"{kind}:{interval}{size}:rows={self.n_rows}"

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        kind, interval, *dimension = words
        if len(dimension) != (kind == "box"):
            raise ValueError(words)
        low, high = map(float, interval.split(","))
        return cls(low, high, *map(int, dimension), n_rows=cls._rows_in(options))

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.dimension is None else (self.dimension,)

    def corner(self, high: ArrayLike) -> Array:
        """Return the row that is high where `high` says so, and low elsewhere."""
        return np.where(np.asarray(high, dtype=bool), self.high, self.low)

    def random_row(self, *, rng: Generator) -> Array:
        """Return a uniform row, or every other time a random corner."""
        if rng.random() < 0.5:
            return self.corner(rng.random(self.shape) < 0.5)
        return self._nearest(rng.uniform(self.low, self.high, self.shape))

    def extremes(self) -> tuple[Array, ...]:
        """Return the row nearest to 0, and corners.

        High everywhere, nowhere, first, everywhere but first, in the first half.
        """
        place = np.arange(self.dimension) if self.dimension else np.asarray(0)
        half = place < (self.dimension or 0) // 2
        patterns = (place >= 0, place < 0, place == 0, place > 0, half)
        zero = self._nearest(np.zeros(self.shape))
        return _distinct([zero, *map(self.corner, patterns)])

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Take a step, along one coordinate or all; walls stop it."""
        width = self.high - self.low
        return self._nearest(np.asarray(row) + width * _step(self.shape, scale, rng))

    def _nearest(self, row: Array) -> Array:
        return np.asarray(np.clip(row, self.low, self.high), dtype=np.float64)


@dataclass(frozen=True)
class Binary(Box, kinds=("binary",)):
    """Vectors of zeros and ones: the corners of a box.

    Parameters
    ----------
    dimension : int
        >= 1.
    """

    low: float = field(default=0.0, init=False, repr=False)
    high: float = field(default=1.0, init=False, repr=False)
    dimension: Count = field()

    def __str__(self) -> str:
        return f"binary:{self.dimension}:rows={self.n_rows}"

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        _, dimension = words
        return cls(int(dimension), n_rows=cls._rows_in(options))

    def random_row(self, *, rng: Generator) -> Array:
        """Return a row with a uniform share of ones."""
        return self.corner(rng.random(self.dimension) < rng.random())

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Flip one entry."""
        flipped = np.array(row, dtype=np.float64)
        place = rng.integers(self.dimension)
        flipped[place] = 1 - flipped[place]
        return flipped

    def _nearest(self, row: Array) -> Array:
        return self.corner(row >= 0.5)


@dataclass(frozen=True)
class Categories(Domain, kinds=("categories", "codes")):
    """One of finitely many categories.

    Parameters
    ----------
    count : int
        How many there are, >= 2.
    one_hot : bool
        Whether a row is a basis vector of `count` entries, whose sum over the rows is
        a histogram, or the number of the category, from 0.
    """

    count: Annotated[int, partial(check_count, minimum=2)]
    one_hot: bool = True

    def __str__(self) -> str:
        kind = "categories" if self.one_hot else "codes"
        return f"{kind}:{self.count}:rows={self.n_rows}"

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        kind, count = words
        return cls(int(count), kind == "categories", n_rows=cls._rows_in(options))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.count,) if self.one_hot else ()

    def row(self, category: int) -> Array:
        """Return the row of a category."""
        if not self.one_hot:
            return np.asarray(float(category))
        hot = np.zeros(self.count)
        hot[category] = 1.0
        return hot

    def random_row(self, *, rng: Generator) -> Array:
        """Return a uniform category."""
        return self.row(int(rng.integers(self.count)))

    def extremes(self) -> tuple[Array, ...]:
        """Return the first three categories and the last."""
        chosen = {0, 1, 2, self.count - 1}
        return tuple(map(self.row, sorted(c for c in chosen if c < self.count)))

    def spread(self) -> tuple[Array, ...]:
        """Return each category."""
        return tuple(map(self.row, range(self.count)))

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Return another category."""
        entries = np.asarray(row)
        here = int(np.argmax(entries)) if self.one_hot else int(entries)
        return self.row((here + int(rng.integers(1, self.count))) % self.count)

    def _nearest(self, row: Array) -> Array:
        if self.one_hot:
            return self.row(int(np.argmax(row)))
        return np.asarray(np.clip(np.rint(row), 0, self.count - 1), dtype=np.float64)


def _step(shape: tuple[int, ...], scale: float, rng: Generator) -> Array:
    """Return a Gaussian step of typical length `scale`, every other one axis-aligned.

    Steps along one axis and steps along all have the same expected square.
    """
    dimension = shape[0] if shape else 1
    if dimension > 1 and rng.random() < 0.5:
        step = np.zeros(shape)
        step[rng.integers(dimension)] = scale * rng.standard_normal()
        return step
    return np.asarray(scale * rng.standard_normal(shape) / np.sqrt(dimension))


def _distinct(rows: Sequence[Array]) -> tuple[Array, ...]:
    """Return the rows without repetitions, and without negative zeros."""
    found: dict[bytes, Array] = {}
    for row in rows:
        plain = np.asarray(row + 0.0)
        found.setdefault(plain.tobytes(), plain)
    return tuple(found.values())


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
    def nonfinite(self) -> bool:
        return True

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
