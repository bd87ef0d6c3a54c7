"""Series of polars with noise: their arithmetic, and what is replaced in polars.

Polars computes in compiled code, on columns that it holds itself. So a series with
noise is one that has no column yet (`NoisySeries`): arithmetic with numbers, arrays and
series, sums, entries and lists are those of its numbers with noise. Whatever else asks
for its column (a frame, an expression, a comparison, a print) looks at all of it, as
one vector, and from there on it is an ordinary series.

A frame has no noise: where noise is added to one, the sums are looked at, column by
column.
"""

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.audit.replay.follow.functions import stacked
from dpaudit.audit.replay.follow.tracked import Tracked, has_noise, isinstance_tracked

__all__ = ["FRAMED", "called", "noise_of", "parts", "replacements"]

# This module is asked for where polars is loaded, and by what reads all modules.
pl: Any = sys.modules.get("polars")
FRAMED = (pl.Series, pl.DataFrame) if pl else ()
_OPERATORS = "add sub mul truediv floordiv mod pow".split()


class NoisySeries(pl.Series if pl else object):  # type: ignore[misc]
    """A series whose column is made when it is asked for.

    Attributes
    ----------
    noisy : Tracked
        Of one dimension.
    """

    noisy: Tracked
    named: str

    @classmethod
    def of(cls, name: str, noisy: Tracked) -> "NoisySeries":
        """Return a series of numbers with noise."""
        made = cls.__new__(cls)
        made.noisy, made.named = noisy, name
        return made

    @property
    def _s(self) -> Any:
        column = pl.Series(self.named, self.noisy.looked_at("polars").copy())._s
        if not self.noisy.tape.closed:  # or the next execution that uses it is told
            self._s = column
        return column

    @_s.setter
    def _s(self, column: Any) -> None:
        self.__class__ = pl.Series
        self._s = column

    @property
    def name(self) -> str:
        return self.named

    @property
    def dtype(self) -> Any:
        return pl.Float64()

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return self.noisy.size

    def len(self) -> int:
        return self.noisy.size

    def __iter__(self) -> Any:
        return iter(self.noisy)

    def __getitem__(self, key: Any) -> Any:
        return _series(self.named, self.noisy[key])

    def item(self, index: int | None = None) -> Any:
        if index is None and len(self) != 1:
            return pl.Series.item(self, index)
        return self.noisy[index or 0]

    def to_list(self) -> Any:
        return list(self.noisy)

    def to_numpy(self, **how: Any) -> Any:
        return self.noisy.copy()

    def alias(self, name: str) -> Any:
        return NoisySeries.of(name, self.noisy)

    rename = alias

    def sum(self) -> Any:
        return self.noisy.sum()

    def mean(self) -> Any:
        return self.noisy.mean() if len(self) else None

    def __neg__(self) -> Any:
        return NoisySeries.of(self.named, -self.noisy)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        made = NotImplemented
        if method == "__call__":
            made = called(ufunc, inputs, kwargs)
        if made is NotImplemented:
            made = pl.Series.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)
        return made


def noise_of(value: Any) -> Tracked | None:
    """Return the numbers with noise that a series is, None if it has none."""
    return value.noisy if type(value) is NoisySeries else None


def called(ufunc: Any, inputs: Any, kwargs: Any) -> Any:
    """Return what a function gives of series, frames and arrays with noise."""
    frame = next((each for each in inputs if isinstance(each, pl.DataFrame)), None)
    if kwargs:
        return NotImplemented
    if frame is not None:
        columns = []
        for name in frame.columns:
            each = [e[name] if isinstance(e, pl.DataFrame) else e for e in inputs]
            column = called(ufunc, each, {})
            if column is NotImplemented:
                return NotImplemented
            columns.append(column)
        return pl.DataFrame(columns)  # which looks at them
    numbers = [_numbers(each) for each in inputs]
    if any(each is None for each in numbers):
        return NotImplemented
    name = next(each.name for each in inputs if isinstance(each, pl.Series))
    return _series(name, ufunc(*numbers))


def _series(name: str, value: Any) -> Any:
    """Return an array as a series, a number as it is."""
    if isinstance_tracked(value):
        return NoisySeries.of(name, value) if value.ndim == 1 else value
    return pl.Series(name, value) if np.ndim(value) == 1 else value


def _numbers(value: Any) -> Any:
    """Return what can be added to numbers with noise, None for anything else."""
    if type(value) is NoisySeries:
        return value.noisy
    if isinstance(value, pl.Series):
        plain = (value.dtype.is_integer() or value.dtype.is_float()) and (
            not value.null_count()
        )
        return value.to_numpy().astype(np.float64) if plain else None
    if isinstance_tracked(value) or isinstance(value, np.ndarray):
        return value if value.ndim <= 1 else None
    return value if isinstance(value, int | float | np.number) else None


def parts(value: Any) -> list[Any]:
    """Return what a series or a frame releases: its kind, names, and numbers."""
    if isinstance(value, pl.DataFrame):
        columns = [part for each in value.get_columns() for part in _named(each)]
        return ["DataFrame", *columns]
    return ["Series", *_named(value)]


def _named(column: Any) -> list[Any]:
    if type(column) is NoisySeries:
        return [column.name, column.noisy]
    if column.dtype.is_integer() or column.dtype.is_float():
        return [column.name, column.to_numpy().astype(np.float64)]
    kept: list[Any] = []
    if column.dtype in (pl.Categorical, pl.Enum):
        kept = column.cat.get_categories().to_list()
    return [column.name, str(column.dtype), kept, column.to_list()]


# -- what is replaced in polars during an execution


def replacements() -> Any:
    """Yield owners, names, and functions that make one of the function there."""
    yield pl.Series, "__init__", _making
    yield pl.Series, "map_elements", _mapping
    for name in _OPERATORS:
        for owner in FRAMED:
            function = getattr(operator, name)
            yield owner, f"__{name}__", _operating(function, turned=False)
            yield owner, f"__r{name}__", _operating(function, turned=True)


def _making(real: Any) -> Any:
    def __init__(
        self: Any, name: Any = None, values: Any = None, dtype: Any = None, **how: Any
    ) -> None:
        given = name if values is None and not isinstance(name, str) else values
        if dtype in (None, pl.Float64) and type(self) is pl.Series:
            noisy = _vector(given)
            if noisy is not None:
                self.noisy, self.named = noisy, name if isinstance(name, str) else ""
                self.__class__ = NoisySeries
                return
        real(self, name, values, dtype, **how)

    return __init__


def _vector(value: Any) -> Tracked | None:
    """Return an array, or a list, of numbers with noise; None for anything else."""
    if isinstance_tracked(value):
        return value.copy() if value.noisy and value.ndim == 1 else None
    if type(value) in (list, tuple) and has_noise(value):
        tape = next(each.tape for each in value if isinstance_tracked(each))
        made = stacked(tape, value)
        if isinstance_tracked(made) and made.ndim == 1:
            return made
    return None


def _mapping(real: Any) -> Any:
    def map_elements(
        self: Any, function: Callable[[Any], Any], *more: Any, **how: Any
    ) -> Any:
        if self.null_count() if type(self) is not NoisySeries else 0:
            return real(self, function, *more, **how)
        made = [function(each) for each in self]
        noisy = _vector(made)
        if noisy is not None:
            return NoisySeries.of(self.name, noisy)
        given = iter(made)
        return real(self, lambda _: next(given), *more, **how)

    return map_elements


def _operating(function: Any, *, turned: bool) -> Any:
    def made_of(real: Any) -> Any:
        def operate(self: Any, other: Any) -> Any:
            both = (other, self) if turned else (self, other)
            noisy = isinstance_tracked(other) and other.noisy and other.ndim <= 1
            if noisy or NoisySeries in (type(self), type(other)):
                made = called(function, both, {})
                if made is not NotImplemented:
                    return made
            return real(self, other)

        return operate

    return made_of
