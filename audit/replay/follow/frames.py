"""Numbers with noise in pandas and polars: which values hold some.

`dpaudit.audit.replay.follow.tables` imports pandas, and
`dpaudit.audit.replay.follow.series` polars: each is imported only where the code under
audit has loaded the library already.
"""

import sys
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dpaudit.audit.replay.follow.looked import Composed

__all__ = ["in_frame", "is_framed", "noise_of", "parts_of", "tables"]

_OF = {"pandas": "tables", "polars": "series"}
_FOLDER = "dpaudit.audit.replay.follow"
_known: WeakKeyDictionary[type, Any] = WeakKeyDictionary()


def tables() -> tuple[Any, ...]:
    """Return what is known of tables with noise, for each library that is loaded."""
    loaded = [
        name
        for library, name in _OF.items()
        if hasattr(sys.modules.get(library), "DataFrame")  # not, or not yet
    ]
    return tuple(import_module(f"{_FOLDER}.{name}") for name in loaded)


def is_framed(value: Any) -> bool:
    """Say whether a value is a table, a column or an index of pandas or polars."""
    return _tables_of(type(value)) is not None


def parts_of(value: Any) -> list[Any]:
    """Return what a table releases: its kind, its labels, and its numbers."""
    parts: list[Any] = _tables_of(type(value)).parts(value)
    return parts


def _tables_of(kind: type) -> Any:
    # What is no table today is none tomorrow: the classes are there with the library.
    if kind not in _known:
        _known[kind] = None
        if not (kind is np.ndarray or kind.__module__.partition(".")[0] == "builtins"):
            made = (each for each in tables() if issubclass(kind, each.FRAMED))
            _known[kind] = next(made, None)
    return _known[kind]


def in_frame(ufunc: Any, inputs: Any, kwargs: Any) -> Any:
    """Return what a function gives of arrays with noise and tables.

    NotImplemented where there is none of these.
    """
    for each in inputs:
        found = _tables_of(type(each))
        if found is not None:
            return found.called(ufunc, inputs, kwargs)
    return NotImplemented


def noise_of(value: Any) -> Any:
    """Return the numbers with noise that a table, or a tensor, holds, None if none."""
    if issubclass(type(value), Composed) and hasattr(type(value), "held"):
        return value.held
    found = _tables_of(type(value))
    return None if found is None else found.noise_of(value)
