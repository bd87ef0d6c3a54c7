"""What a mechanism is handed: a frame, a dictionary of arrays, records, a list, ...

Rows come as arrays of codes (`dpaudit.domains.columns`), and each form makes of them
what people hold such rows in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.domains.columns import Column
from dpaudit.errors import InputError

__all__ = ["FORMS", "built", "taken_apart"]

_Values = Mapping[str, Any]


def _frame(values: _Values) -> Any:
    import pandas as pd

    return pd.DataFrame(dict(values))


def _polars(values: _Values) -> Any:
    try:
        import polars
    except ImportError:
        raise InputError(
            "a domain of polars frames needs polars: install it, or write frame of "
            "..., which is of pandas"
        ) from None
    return polars.DataFrame(dict(values))


def _arrays(values: _Values) -> Any:
    return {name: np.asarray(column) for name, column in values.items()}


def _records(values: _Values) -> list[dict[str, Any]]:
    return [dict(zip(values, row, strict=True)) for row in _tuples(values)]


def _list(values: _Values) -> list[Any]:
    rows = _tuples(values)
    return rows if len(values) > 1 else [value for (value,) in rows]


def _array(values: _Values) -> Any:
    columns = [np.asarray(column) for column in values.values()]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _tuples(values: _Values) -> list[tuple[Any, ...]]:
    plain = (c.tolist() if isinstance(c, np.ndarray) else c for c in values.values())
    return list(zip(*plain, strict=True))


FORMS: dict[str, Callable[[_Values], Any]] = {
    "frame": _frame,
    "polars": _polars,
    "arrays": _arrays,
    "records": _records,
    "list": _list,
    "set": lambda values: set(_list(values)),
    "array": _array,
}
"""The forms in which rows are handed to a mechanism, by their names."""


def built(form: str, columns: Sequence[Column], rows: Array) -> Any:
    """Return rows of codes in a form.

    Parameters
    ----------
    form : str
        One of `FORMS`.
    columns : sequence of Column
    rows : ndarray, shape (n, columns)

    Returns
    -------
    object
        Without rows it has the columns, and their types, all the same.
    """
    sample = rows if len(rows) else np.array([[column.low for column in columns]])
    names = [column.name or str(place) for place, column in enumerate(columns)]
    decoded = (c.decoded(codes) for c, codes in zip(columns, sample.T, strict=True))
    whole = FORMS[form](dict(zip(names, decoded, strict=True)))
    if len(rows):
        return whole
    if isinstance(whole, dict):
        return {name: column[:0] for name, column in whole.items()}
    return set() if isinstance(whole, set) else whole[:0]


def taken_apart(example: Any) -> tuple[str, dict[str, list[Any]]]:
    """Return the form of an example, and the values of its columns by their names.

    Raises
    ------
    InputError
        If it has none of the forms, or its columns are not the same in all rows.
    """
    package = type(example).__module__.partition(".")[0]
    if package in ("pandas", "polars") and hasattr(example, "columns"):
        form = "frame" if package == "pandas" else "polars"
        names = list(example.columns)
        return form, {str(name): example[name].to_list() for name in names}
    if isinstance(example, Mapping):
        columns = {str(name): _listed(value) for name, value in example.items()}
        _alike("columns", {name: len(column) for name, column in columns.items()})
        return "arrays", columns
    if isinstance(example, set | frozenset):
        return "set", _unnamed(list(example))
    if isinstance(example, np.ndarray) and example.ndim in (1, 2):
        return "array", _unnamed(example.tolist())
    if isinstance(example, list | tuple):
        if example and all(isinstance(row, Mapping) for row in example):
            keys = list(example[0])
            other = next((row for row in example if set(row) != set(keys)), None)
            if other is not None:
                raise InputError(
                    f"records must have the same keys, got {keys} and {list(other)}: "
                    "give what is missing as None"
                )
            return "records", {str(k): [row[k] for row in example] for k in keys}
        return "list", _unnamed(list(example))
    raise InputError(
        "an example of data must be a frame, a dictionary of arrays, a list of "
        f"records, a list, set or array of values, got {type(example).__name__}: name "
        "the domain in words, as Domain.parse reads them"
    )


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise InputError(
            "a dictionary of data must hold a column under each name, got "
            f"{type(value).__name__}"
        )
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def _unnamed(rows: list[Any]) -> dict[str, list[Any]]:
    """Return the columns of rows that are values, or tuples of values."""
    if not rows or not isinstance(rows[0], list | tuple):
        return {"": rows}
    _alike("rows", {str(place): len(row) for place, row in enumerate(rows)})
    columns = zip(*rows, strict=True)
    return {str(place): list(column) for place, column in enumerate(columns)}


def _alike(what: str, lengths: Mapping[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        raise InputError(f"{what} must be of one length, got {dict(lengths)}")
