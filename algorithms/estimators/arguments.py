"""Rows and random states as scikit-learn takes them, and errors that name them."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from dpaudit.errors import InputError
from dpaudit.validation import has_mask

_NUMBERS = "X must have numbers alone, in rows of one length"
_INSTEAD = {
    "could not convert": ", got a text that is none",
    "setting an array": ", got rows of several lengths, or entries that are rows",
    "fill value must be": ", got sparse columns: make them dense first",
    "Complex data": ": {}",
    "float() argument": ": {}",
    "int too large": ": {}",
}
"""What is said where the errors of scikit-learn, pandas and NumPy begin so."""


class _NoNumbersError(InputError, TypeError):
    """What scikit-learn wants to be raised where an entry is an object."""


def validated(estimator: Any, X: Any, **how: Any) -> Any:
    """Return what scikit-learn makes of X; errors show no entry of it."""
    if has_mask(X):
        raise InputError(f"{_NUMBERS}, got a masked array: fill it first")
    # Of a frame there are many; and other things have attributes of these names.
    types = getattr(X, "dtypes", getattr(X, "dtype", None))
    for each in types if isinstance(types, Iterable) else (types,):
        if getattr(each, "kind", "") in ("m", "M"):
            raise InputError(f"{_NUMBERS}, got dates or times among them")
        if getattr(each, "names", None):
            raise InputError(f"{_NUMBERS}, got an array whose entries have fields")
    try:
        return validate_data(estimator, X, dtype=[np.float64, np.float32], **how)
    except (TypeError, ValueError, OverflowError) as error:
        first, _, more = str(error).partition("\n")
        kind = _NoNumbersError if isinstance(error, TypeError) else InputError
    text = first.removesuffix(", got:")
    for start, instead in _INSTEAD.items():
        if first.startswith(start):
            text = _NUMBERS + instead.format(first)
    if not re.search(r"\bX\b", text):
        text = f"X: {text}"
    advice = "Reshape your data"
    raise kind(text + (f" {advice}" if advice in more else ""))


def generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator that scikit-learn's random states stand for."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            "random_state must be None, an int >= 0, a Generator or a RandomState, "
            f"got {random_state!r}"
        ) from None
