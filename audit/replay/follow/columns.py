"""Columns of pandas that hold numbers with noise.

pandas lets others bring arrays of their own (`pandas.api.extensions`). A column of such
an array is a vector with noise: arithmetic, sums and moves (``reindex``, ``concat``,
``merge``) keep it, and all else looks at it as a whole, as with arrays of NumPy.

A number is missing (NaN) if its ordinary part is: noise is finite.
"""

import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take

from dpaudit.audit.replay.follow.tracked import Tracked, has_noise, isinstance_tracked

__all__ = ["FRAMED", "NoisyColumn", "bare", "boxed", "column_of"]

_MOST_SUMS = 500  # rows whose partial sums are followed; of more they are looked at
FRAMED = (pd.DataFrame, pd.Series, pd.Index)


class _NoisyDtype(ExtensionDtype):  # type: ignore[misc]
    """The type of a noisy column; code that asks for numbers gets doubles.

    Parameters
    ----------
    tape : Tape
        Of the execution that ordinary numbers are of if they become such a column.
    """

    name, type, kind = "float64", np.float64, "f"
    na_value = np.nan
    _is_numeric = True

    def __init__(self, tape: Any) -> None:
        self.tape = tape

    @classmethod
    def construct_array_type(cls) -> Any:
        return NoisyColumn

    @classmethod
    def construct_from_string(cls, string: str) -> Any:
        raise TypeError(f"no noisy column is made from {string!r}")

    def _get_common_dtype(self, dtypes: list[Any]) -> Any:
        ours = (isinstance(each, _NoisyDtype) or each.kind in "fiub" for each in dtypes)
        return self if all(ours) else None


class NoisyColumn(ExtensionArray):  # type: ignore[misc]
    """An array with noise, as pandas asks for one.

    Parameters
    ----------
    noisy : Tracked
        Of one dimension.
    """

    __array_priority__ = 1e6

    def __init__(self, noisy: Tracked) -> None:
        self.noisy = noisy

    @classmethod
    def _from_sequence(
        cls, scalars: Any, *, dtype: Any = None, copy: bool = False
    ) -> Any:
        if isinstance(scalars, NoisyColumn):
            return scalars.copy()
        listed = list(scalars)
        tapes = [each.tape for each in listed if isinstance_tracked(each)]
        if isinstance(dtype, _NoisyDtype):
            tapes.append(dtype.tape)
        if not tapes:  # made of what was looked at
            return pd.array(np.asarray(scalars, dtype=np.float64))
        return NoisyColumn(_stacked(tapes[0], listed))

    # -- what pandas asks of any array

    @property
    def dtype(self) -> Any:
        return _NoisyDtype(self.noisy.tape)

    @property
    def nbytes(self) -> int:
        return int(self.noisy.centre.nbytes)

    def __len__(self) -> int:
        return self.noisy.size

    def __getitem__(self, key: Any) -> Any:
        key = pd.api.indexers.check_array_indexer(self, key)
        if isinstance(key, tuple):  # of columns that are as if they had two axes
            key = next(part for part in key if part is not Ellipsis)
        part = self.noisy[key]
        return self._like(part) if np.ndim(part) else part

    def __setitem__(self, key: Any, value: Any) -> None:
        key = pd.api.indexers.check_array_indexer(self, key)
        self.noisy[key] = bare(value)

    def __iter__(self) -> Any:
        return iter(self.noisy)

    def isna(self) -> Any:
        return np.isnan(self.noisy.centre)

    def copy(self) -> "NoisyColumn":
        return NoisyColumn(self.noisy.copy())

    def take(
        self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None
    ) -> Any:
        places = np.asarray(indices, dtype=np.intp)
        if not allow_fill:
            return self._like(self.noisy[places])
        fill = np.nan if fill_value is None or fill_value is pd.NA else fill_value
        after = len(self)
        filled = take(np.arange(after), places, allow_fill=True, fill_value=after)
        longer = np.concatenate([self.noisy, np.reshape(bare(fill), 1)])
        return self._like(longer[filled])

    @classmethod
    def _concat_same_type(cls, several: Any) -> "NoisyColumn":
        one, *_ = several
        return one._like(np.concatenate([each.noisy for each in several]))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        with suppress(TypeError):  # where it is a type of pandas' own
            dtype = self.dtype if np.dtype(dtype).kind == "f" else dtype
        if isinstance(dtype, _NoisyDtype):
            return self.copy() if copy else self
        if pd.api.types.is_object_dtype(dtype):
            return self._as_objects()
        column: Any = pd.array(self.noisy.looked_at("astype"), dtype=np.float64)
        return column.astype(dtype, copy=copy)

    def to_numpy(
        self, dtype: Any = None, copy: bool = False, na_value: Any = None
    ) -> Any:
        if dtype is not None and np.dtype(dtype) == object:
            return self._as_objects()
        whole = self.noisy.copy() if copy else self.noisy
        return whole if dtype is None else whole.astype(dtype)

    def tolist(self) -> list[Any]:
        return list(self.noisy)

    def _as_objects(self) -> Any:
        objects = np.empty(len(self), dtype=object)
        objects[:] = list(self.noisy)
        return objects

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and np.dtype(dtype) == object:
            return self._as_objects()
        return self.noisy.__array__(dtype, copy)

    def _values_for_argsort(self) -> Any:
        return self.noisy.looked_at("sort")

    def _values_for_json(self) -> Any:
        return self.noisy.looked_at("json")

    def _values_for_factorize(self) -> Any:
        return self.noisy.looked_at("factorize"), np.nan

    def _formatter(self, boxed: bool = False) -> Callable[[Any], str]:
        return lambda value: str(float(value))

    @classmethod
    def _from_factorized(cls, values: Any, original: Any) -> Any:
        return pd.array(values)

    # -- numbers

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if any(isinstance(each, FRAMED) for each in inputs):
            return NotImplemented
        kwargs = {name: bare(each) for name, each in kwargs.items()}
        return boxed(getattr(ufunc, method)(*map(bare, inputs), **kwargs))

    def _reduce(
        self, name: str, *, skipna: bool = True, keepdims: bool = False, **more: Any
    ) -> Any:
        kept = self.noisy
        if skipna and self.isna().any():
            kept = kept[~self.isna()]
        if name in ("sum", "mean") and (name == "sum" or kept.size):
            result = getattr(kept, name)()
        else:
            seen = pd.Series(kept.looked_at(name))
            result = getattr(seen, name)(skipna=skipna, **more)
        return boxed(np.reshape(result, 1)) if keepdims else result

    def _accumulate(self, name: str, *, skipna: bool = True, **more: Any) -> Any:
        if name == "cumsum" and not self.isna().any() and len(self) <= _MOST_SUMS:
            return self._like(np.tril(np.ones((len(self), len(self)))) @ self.noisy)
        seen = pd.Series(self.noisy.looked_at(name))
        return pd.array(getattr(seen, name)(skipna=skipna).to_numpy())

    def argmax(self, skipna: bool = True) -> Any:
        return int(np.argmax(self.noisy))

    def argmin(self, skipna: bool = True) -> Any:
        return int(np.argmin(self.noisy))

    def round(self, decimals: int = 0, *args: Any, **kwargs: Any) -> Any:
        return self._like(np.round(self.noisy, decimals))

    def _like(self, value: Any) -> "NoisyColumn":
        """Return an array as a column, whether there is noise in it or not."""
        if not isinstance_tracked(value):
            value = Tracked.plain(self.noisy.tape, np.asarray(value, dtype=np.float64))
        return NoisyColumn(value)


def _operator(function: Callable[[Any, Any], Any], *, turned: bool) -> Any:
    def method(self: NoisyColumn, other: Any) -> Any:
        if isinstance(other, FRAMED):
            return NotImplemented
        other = bare(other)
        parts = (other, self.noisy) if turned else (self.noisy, other)
        return boxed(function(*parts))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _function = getattr(operator, _name)
    setattr(NoisyColumn, f"__{_name}__", _operator(_function, turned=False))
    setattr(NoisyColumn, f"__r{_name}__", _operator(_function, turned=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _function = _operator(getattr(operator, _name), turned=False)
    setattr(NoisyColumn, f"__{_name}__", _function)
for _name in ("neg", "pos", "abs"):
    _function = getattr(operator, _name)
    setattr(NoisyColumn, f"__{_name}__", lambda self, f=_function: boxed(f(self.noisy)))


def bare(value: Any) -> Any:
    """Return the array that a column is."""
    if isinstance(value, NoisyColumn):
        return value.noisy
    if isinstance(value, ExtensionArray):
        return value.to_numpy()
    return value


def boxed(value: Any) -> Any:
    """Return an array with noise as a column; numbers by themselves as they are."""
    noisy = isinstance_tracked(value) and value.ndim == 1
    return NoisyColumn(value) if noisy else value


def _stacked(tape: Any, numbers: list[Any]) -> Tracked:
    if not numbers:
        return Tracked.plain(tape, np.empty(0))
    parts = [
        each.reshape(1)
        if isinstance_tracked(each)
        else Tracked.plain(tape, np.asarray([each], dtype=np.float64))
        for each in numbers
    ]
    return Tracked.joined(tape, parts)


def column_of(value: Any) -> Any:
    """Return numbers with noise as a column, None for anything else."""
    if isinstance_tracked(value) and value.noisy and value.ndim == 1:
        return NoisyColumn(value)
    listed = value
    if type(value) is np.ndarray and value.dtype == object and value.ndim == 1:
        listed = list(value) if len(value) and isinstance_tracked(value[0]) else None
    if type(listed) in (list, tuple) and has_noise(listed):
        plain = (int, float, np.number)
        if all(isinstance_tracked(e) or isinstance(e, plain) for e in listed):
            if not any(isinstance_tracked(each) and each.ndim for each in listed):
                return NoisyColumn._from_sequence(listed)
    return None
