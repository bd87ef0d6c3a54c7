"""Data domains: which rows a dataset may hold.

A privacy claim speaks about all neighbouring datasets of some domain, and so a search
for the pair that breaks it needs to know what the domain is. A domain knows its rows:
how to draw one, which ones are extreme, what lies near a row, and which legal row is
nearest to any other. A dataset is legal if each of its rows is.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.rows import clip_rows, normalise_rows
from dpaudit.validation import check_count, check_positive, check_real

__all__ = ["Binary", "Box", "Categories", "Domain", "UnitBall"]


_FORMS = (
    "ball:DIMENSION[:norm=BOUND], box:LOW,HIGH:DIMENSION, scalar:LOW,HIGH, "
    "binary:DIMENSION, categories:COUNT or codes:COUNT, each with :rows=N and "
    ":nonfinite if wanted"
)


@dataclass(frozen=True)
class Domain(ABC):
    """The rows that a dataset may hold.

    Parameters
    ----------
    n_rows : int
        How many rows a typical dataset has, >= 1.
    """

    n_rows: int = field(default=5, kw_only=True)

    def __post_init__(self) -> None:
        check_count("n_rows", self.n_rows)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a row: () for numbers, (k,) for vectors."""

    @abstractmethod
    def random_row(self, *, rng: Generator) -> Array:
        """Return a random row; extreme ones are not rare."""

    @abstractmethod
    def extremes(self) -> tuple[Array, ...]:
        """Return a handful of different extreme rows, the most telling first."""

    @abstractmethod
    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Return a random legal row near a legal one, at times the row itself.

        Parameters
        ----------
        row : array_like
        scale : float
            Size of the step, as a share of the size of the domain, in (0, 1].
            Discrete domains change one entry, whatever the scale.
        rng : numpy.random.Generator
        """

    @abstractmethod
    def _nearest(self, row: Array) -> Array:
        """Return the legal row nearest to a finite row of the right shape."""

    def project(self, row: ArrayLike) -> Array:
        """Return the legal row nearest to any finite row of the right shape.

        Raises
        ------
        InputError
            If the row has another shape or is not finite.
        """
        entries = check_real("row", row)
        if entries.shape != self.shape or not np.isfinite(entries).all():
            raise InputError(
                f"row must be a finite array of shape {self.shape}, got {row!r}"
            )
        return self._nearest(entries)

    def contains(self, row: ArrayLike) -> bool:
        """Say whether a row is legal.

        Examples
        --------
        >>> UnitBall(2).contains([0.6, 0.8]), UnitBall(2).contains([1.0, 1.0])
        (True, False)
        """
        try:
            return np.array_equal(self.project(row), np.asarray(row), equal_nan=True)
        except ValueError:
            return False

    @staticmethod
    def parse(text: str) -> "Domain":
        """Return the domain that a short text names; ``str(domain)`` is such a text.

        Raises
        ------
        InputError
            If the text has none of the forms, or a value is not allowed.

        Examples
        --------
        >>> Domain.parse("ball:3")
        UnitBall(n_rows=5, dimension=3, norm=1.0)
        >>> Domain.parse("scalar:0,1:rows=10")
        Box(n_rows=10, low=0.0, high=1.0, dimension=None)
        >>> str(Categories(4, one_hot=False))
        'codes:4:rows=5'
        >>> Domain.parse("scalar:0,1:nonfinite").contains(float("nan"))
        True
        """
        parts = text.split(":")
        words = [part for part in parts if "=" not in part]
        options = dict(part.split("=", 1) for part in parts if "=" in part)
        try:
            if words[-1] == "nonfinite":
                # It stands on this module.
                from dpaudit.nonfinite import WithNonfinite

                return WithNonfinite(_parsed(words[:-1], options))
            return _parsed(words, options)
        except InputError as error:
            raise InputError(f"domain {text!r}: {error}") from None
        except ValueError:
            raise InputError(f"domain must be {_FORMS}, got {text!r}") from None


def _parsed(words: list[str], options: dict[str, str]) -> Domain:
    """Return the domain, or raise `ValueError` if the words have no known form."""
    norm = float(options.pop("norm", "1")) if words[:1] == ["ball"] else 1.0
    n_rows = int(options.pop("rows", "5"))
    if options:
        raise ValueError(options)
    match words:
        case ["ball", dimension]:
            return UnitBall(int(dimension), norm, n_rows=n_rows)
        case ["box", interval, dimension]:
            low, high = map(float, interval.split(","))
            return Box(low, high, int(dimension), n_rows=n_rows)
        case ["scalar", interval]:
            low, high = map(float, interval.split(","))
            return Box(low, high, n_rows=n_rows)
        case ["binary", dimension]:
            return Binary(int(dimension), n_rows=n_rows)
        case ["categories" | "codes" as kind, count]:
            return Categories(int(count), kind == "categories", n_rows=n_rows)
    raise ValueError(words)


@dataclass(frozen=True)
class UnitBall(Domain):
    """Vectors of bounded Euclidean length.

    Parameters
    ----------
    dimension : int
        >= 1.
    norm : float
        The bound, > 0.
    """

    dimension: int
    norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("dimension", self.dimension)
        object.__setattr__(self, "norm", check_positive("norm", self.norm))

    def __str__(self) -> str:
        return f"ball:{self.dimension}:norm={self.norm!r}:rows={self.n_rows}"

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
class Box(Domain):
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
    dimension: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = float(self.low), float(self.high)
        if not (np.isfinite(high - low) and low < high):
            raise InputError(
                f"low and high must be finite with low < high, got {low!r}, {high!r}"
            )
        if self.dimension is not None:
            check_count("dimension", self.dimension)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __str__(self) -> str:
        interval = f"{self.low!r},{self.high!r}"
        kind = "scalar" if self.dimension is None else "box"
        size = "" if self.dimension is None else f":{self.dimension}"
        return f"{kind}:{interval}{size}:rows={self.n_rows}"

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
class Binary(Box):
    """Vectors of zeros and ones: the corners of a box.

    Parameters
    ----------
    dimension : int
        >= 1.
    """

    low: float = field(default=0.0, init=False, repr=False)
    high: float = field(default=1.0, init=False, repr=False)
    dimension: int = field()

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension)
        super().__post_init__()

    def __str__(self) -> str:
        return f"binary:{self.dimension}:rows={self.n_rows}"

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
class Categories(Domain):
    """One of finitely many categories.

    Parameters
    ----------
    count : int
        How many there are, >= 2.
    one_hot : bool
        Whether a row is a basis vector of `count` entries, whose sum over the rows is
        a histogram, or the number of the category, from 0.
    """

    count: int
    one_hot: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("count", self.count, minimum=2)

    def __str__(self) -> str:
        kind = "categories" if self.one_hot else "codes"
        return f"{kind}:{self.count}:rows={self.n_rows}"

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
