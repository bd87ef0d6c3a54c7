"""Numbers with noise in pandas: which values hold some, without importing it.

What there is of them, `dpaudit.audit.replay.follow.tables`, imports pandas: it is only
asked for where code has loaded that already.
"""

import sys
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dpaudit.audit.replay.follow.looked import Composed

__all__ = ["in_frame", "is_framed", "noise_of", "tables"]

_known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def tables() -> Any:
    """Return what is known of tables with noise, None if pandas is not loaded."""
    pandas = sys.modules.get("pandas")
    if not hasattr(pandas, "DataFrame"):  # not, or not yet
        return None
    return import_module("dpaudit.audit.replay.follow.tables")


def is_framed(value: Any) -> bool:
    """Say whether a value is a table, a column or an index of pandas."""
    return _holds_tables(type(value))


def _holds_tables(kind: type) -> bool:
    # What is no table today is none tomorrow: the classes are there with pandas.
    if kind not in _known:
        _known[kind] = _is_table(kind)
    return _known[kind]


def _is_table(kind: type) -> bool:
    if kind is np.ndarray or kind.__module__.partition(".")[0] == "builtins":
        return False
    made = tables()
    return made is not None and issubclass(kind, made.FRAMED)


def in_frame(ufunc: Any, inputs: Any, kwargs: Any) -> Any:
    """Return what a function gives of arrays with noise and tables of pandas.

    NotImplemented where there is none of these.
    """
    if not any([_holds_tables(type(each)) for each in inputs]):
        return NotImplemented
    return tables().called(ufunc, inputs, kwargs)


def noise_of(value: Any) -> Any:
    """Return the numbers with noise that a table, or a tensor, holds, None if none."""
    if issubclass(type(value), Composed) and hasattr(type(value), "held"):
        return value.held
    return tables().noise_of(value) if is_framed(value) else None
