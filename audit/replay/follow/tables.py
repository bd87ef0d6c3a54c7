"""Tables of pandas with noise: their arithmetic, and what is replaced in pandas."""

import sys
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.audit.replay.follow.columns import (
    FRAMED,
    NoisyColumn,
    bare,
    boxed,
    column_of,
)
from dpaudit.audit.replay.follow.places import reads_by_name
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric

__all__ = ["FRAMED", "called", "noise_of", "parts", "replacements"]


def noise_of(value: Any) -> Tracked | None:
    """Return the numbers with noise that are in a table, None if there is none."""
    if isinstance(value, pd.Series):
        return value.array.noisy if isinstance(value.array, NoisyColumn) else None
    if not isinstance(value, pd.DataFrame):
        return None
    parts = [value.iloc[:, place].array for place in range(value.shape[1])]
    tapes = [each.noisy.tape for each in parts if isinstance(each, NoisyColumn)]
    if not tapes:
        return None
    arrays = [bare(each) for each in parts]
    arrays = [each if isinstance_tracked(each) else numeric(each) for each in arrays]
    if any(each is None for each in arrays):
        return None
    stacked: Any = np.stack(arrays, axis=1)
    return stacked


def called(ufunc: Any, inputs: Any, kwargs: Any) -> Any:
    """Return what a function gives of tables and arrays with noise, as a table."""
    if kwargs.keys() - {"dtype", "casting", "subok"}:
        return NotImplemented
    table = next(each for each in inputs if isinstance(each, FRAMED))
    if isinstance(table, pd.Index):
        table = pd.Series(table, name=table.name)
    wide = isinstance(table, pd.DataFrame)
    labels = [table.index, table.columns] if wide else [table.index]
    for each in inputs:
        if isinstance_tracked(each) and each.ndim > len(labels):
            return NotImplemented
    numbers = []
    for each in inputs:
        if isinstance(each, FRAMED):
            noisy = noise_of(each)
            each = np.asarray(each) if noisy is None else noisy
        numbers.append(each)
    result = ufunc(*numbers)
    if np.shape(result) != table.shape:
        return NotImplemented
    return _like(table, result)


def _like(table: Any, array: Any) -> Any:
    """Return an array with the labels of a table."""
    if isinstance(table, pd.DataFrame):
        return _table(array, table.index, table.columns)
    return pd.Series(boxed(array), index=table.index, name=table.name, copy=False)


def _table(array: Any, index: Any, names: Any) -> Any:
    """Return an array of two axes as a table."""
    parts = [boxed(array[:, place]) for place in range(array.shape[1])]
    made = pd.DataFrame(dict(enumerate(parts)), index=index, copy=False)
    if names is not None:
        made.columns = names
    return made


def parts(value: Any) -> list[Any]:
    """Return what a table releases: its kind, its labels, its numbers, its `attrs`."""
    read: list[Any]
    if isinstance(value, pd.Index):
        return ["Index", list(map(str, value.names)), *_plainly(value)]
    if isinstance(value, pd.Series):
        read = ["Series", str(value.name), *_labels(value.index), *_plainly(value)]
        return [*read, value.attrs] if value.attrs else read
    read = ["DataFrame", *_labels(value.index), *_labels(value.columns)]
    for place in range(value.shape[1]):
        read.extend(_plainly(value.iloc[:, place]))
    return [*read, value.attrs] if value.attrs else read


def _labels(index: Any) -> list[Any]:
    if isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1):
        return []  # which says how many there are, and so do the numbers
    return parts(index)


def _plainly(column: Any) -> list[Any]:
    """Return the entries of a column, or of an index, as numbers or words."""
    if isinstance(column, pd.MultiIndex):
        levels = [column.get_level_values(place) for place in range(column.nlevels)]
        kept = [level.astype(str).tolist() for level in column.levels]  # seen or not
        return [*kept, *(part for level in levels for part in _plainly(level))]
    if isinstance(column.array, NoisyColumn):
        return [column.array.noisy]
    if pd.api.types.is_numeric_dtype(column.dtype):
        return [column.to_numpy(dtype=np.float64, na_value=np.nan)]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "mM":
        return [column.to_numpy()]
    listed = column.tolist() if column.dtype == object else column.astype(str).tolist()
    if any(map(isinstance_tracked, listed)):  # one by one, as new labels get them
        entries: list[Any] = [
            e if isinstance_tracked(e) else numeric(e) for e in listed
        ]
        if all(e is not None and np.ndim(e) == 0 for e in entries):
            return [np.stack(entries)]
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [column.dtype.categories.astype(str).tolist(), listed]
    return [listed]


# -- what is replaced in pandas during an execution


def replacements() -> Any:
    """Yield owners, names, and functions that make one of the function there."""
    yield pd.core.construction, "extract_array", _extracting
    yield pd.core.frame, "ndarray_to_mgr", _of_two_axes
    yield pd.DataFrame, "to_numpy", _to_numpy
    yield pd.DataFrame, "values", _values
    yield pd.Series, "values", _values
    yield pd.core.generic.NDFrame, "_inplace_method", _in_place


def _extracting(real: Any) -> Any:
    def extract_array(value: Any, *args: Any, **kwargs: Any) -> Any:
        column = column_of(value)
        return real(value, *args, **kwargs) if column is None else column

    return extract_array


def _of_two_axes(real: Any) -> Any:
    def ndarray_to_mgr(
        values: Any, index: Any, columns: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if isinstance_tracked(values) and values.noisy and values.ndim == 2:
            index = None if index is None else pd.Index(index)
            return _table(values, index, columns)._mgr
        return real(values, index, columns, *args, **kwargs)

    return ndarray_to_mgr


def _to_numpy(real: Any) -> Any:
    def to_numpy(self: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        noisy = noise_of(self)
        if noisy is None:
            return real(self, dtype, *args, **kwargs)
        return noisy if dtype is None else noisy.astype(dtype)

    return to_numpy


def _values(real: Any) -> Any:
    def values(self: Any) -> Any:
        noisy = noise_of(self)
        if noisy is None:
            return real.fget(self)
        # Compiled code trusts it to be an array.
        by_name = reads_by_name(sys._getframe(1), "values")
        return noisy if by_name else np.asarray(noisy.looked_at("values"))

    return property(values)


def _in_place(real: Any) -> Any:
    def _inplace_method(self: Any, other: Any, op: Any) -> Any:
        if isinstance_tracked(other):
            other = _like(self, np.broadcast_to(other, self.shape))
        return real(self, other, op)

    return _inplace_method
