"""Argument checks shared by the whole package.

Each check returns the value in its canonical type or raises
`~dpaudit.errors.InputError` with a sentence that names the argument, the value that
was given and what is allowed.
"""

import math
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError

__all__ = [
    "check_confidence",
    "check_count",
    "check_fraction",
    "check_length",
    "check_matrix",
    "check_name",
    "check_nonnegative",
    "check_numbers",
    "check_positive",
    "check_real",
]


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a real number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            f"{name} must be a finite number, got one beyond every double"
        ) from None


def check_positive(
    name: str, value: object, *, smallest: float = 0.0, largest: float = math.inf
) -> float:
    """Return `value` as a float, or raise unless it is finite, > 0 and in range."""
    number = _real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a finite number > 0, got {value!r}")
    if not smallest <= number <= largest:
        raise InputError(
            f"{name} must be from {smallest:g} to {largest:g}, got {value!r}"
        )
    return number


def check_nonnegative(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it is finite and >= 0."""
    number = _real(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{name} must be a finite number >= 0, got {value!r}")
    return number


def check_fraction(name: str, value: object, *, allow_zero: bool = False) -> float:
    """Return `value` as a float, or raise unless it is in (0, 1), or in [0, 1)."""
    number = _real(name, value)
    if not (0 < number < 1 or (allow_zero and number == 0)):
        allowed = "[0, 1)" if allow_zero else "(0, 1)"
        raise InputError(f"{name} must be in {allowed}, got {value!r}")
    return number


def check_confidence(name: str, value: object) -> float:
    """Return `value` as a float, or raise unless it and 1 - value are in (0, 1)."""
    number = check_fraction(name, value)
    if 1 - number == 1:
        raise InputError(f"{name} must be in (0, 1), and not next to 0, got {value!r}")
    return number


def check_count(
    name: str, value: object, *, minimum: int = 1, maximum: int | None = None
) -> int:
    """Return `value` as an int, or raise unless it is an integer in range."""
    bounds = f">= {minimum}" + ("" if maximum is None else f" and <= {maximum}")
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or int(value) < minimum
        or (maximum is not None and int(value) > maximum)
    ):
        raise InputError(f"{name} must be an integer {bounds}, got {value!r}")
    return int(value)


def check_length(dimension: int | None, default: int, *, minimum: int = 1) -> int:
    """Return the length of rows that is asked for, or the default, or raise."""
    asked = default if dimension is None else dimension
    return check_count("dimension", asked, minimum=minimum)


def check_real(
    name: str, value: ArrayLike, form: str = "a numeric array"
) -> NDArray[np.float64]:
    """Return `value` as a float64 array of any shape, or raise if that would cut it.

    NaN and infinities stay. For the rest see `check_numbers`.
    """
    array = check_numbers(name, value, form)
    with np.errstate(over="ignore"):  # of long doubles, which become infinite
        return np.asarray(array, dtype=np.float64)


def check_numbers(
    name: str, value: ArrayLike, form: str = "a numeric array"
) -> NDArray[np.generic]:
    """Return `value` as an array of real numbers of whatever type.

    NumPy would take the real part of complex numbers, drop a mask, count the time since
    1970, and read words. Here these are no numbers; truth values are 0 and 1.

    Parameters
    ----------
    name : str
    value : array_like
    form : str
        What is wanted, for the error message.

    Returns
    -------
    ndarray
        Of Booleans, integers or floats. It may share its memory with `value`.

    Raises
    ------
    InputError
        If it holds anything but real numbers, or is ragged.
    """
    try:
        masked = _masked(value)
        # The mask would be lost, with a warning at times.
        array = np.empty(0) if masked else np.asarray(value)
        if array.dtype.kind == "O":
            if not all(isinstance(entry, Real) for entry in array.flat):
                raise TypeError
            array = array.astype(np.float64)  # such as fractions, and large integers
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InputError(
            f"{name} must be {form}, "
            f"got {type(value).__name__} that does not convert to one"
        ) from None
    if masked:
        raise InputError(f"{name} must be {form}, got a masked array: fill it first")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be {form}, got entries of type {array.dtype}")
    return array


def _masked(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def check_matrix(
    name: str, value: ArrayLike, *, min_rows: int = 0
) -> NDArray[np.float64]:
    """Return `value` as a finite float64 array of shape (n, d) with d >= 1.

    Raises
    ------
    InputError
        If the array is not two-dimensional, has no column, has fewer than
        `min_rows` rows, holds anything but real numbers (`check_real`), or a NaN or
        an infinity (the first such row is named).
    """
    matrix = check_real(name, value, "a numeric array of shape (n, d)")
    if matrix.ndim != 2 or matrix.shape[1] < 1 or matrix.shape[0] < min_rows:
        raise InputError(
            f"{name} must have shape (n, d) with n >= {min_rows} and d >= 1, "
            f"got shape {matrix.shape}"
        )
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{name} must be finite, but row {row} has a NaN or infinity")
    return matrix


def check_name(name: str, value: str, known: Sequence[str]) -> str:
    """Return `value` if it is one of `known`, or raise with the nearest suggestion."""
    if value in known:
        return value
    close = get_close_matches(value, known, n=1, cutoff=0.4)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"unknown {name} {value!r}{hint} (known: {', '.join(sorted(known))})"
    )
