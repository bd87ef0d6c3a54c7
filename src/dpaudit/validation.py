"""Argument checks shared by the whole package.

Each check returns the value in its canonical type or raises
`~dpaudit.errors.InputError` with a sentence that names the argument, the value that
was given and what is allowed. A *stack* holds matrices in its last two axes.
"""

import math
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError

__all__ = [
    "check_aligned",
    "check_basis",
    "check_confidence",
    "check_count",
    "check_fraction",
    "check_generator",
    "check_length",
    "check_matrix",
    "check_name",
    "check_nonnegative",
    "check_numbers",
    "check_positive",
    "check_real",
    "check_symmetric",
    "check_vector",
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


def check_generator(rng: object) -> None:
    """Raise unless it is a `numpy.random.Generator`."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {rng!r}")


def check_real(name: str, value: ArrayLike, form: str = "a numeric array") -> Array:
    """Return `value` as a float64 array of any shape, or raise if that would cut it.

    NaN and infinities stay. For the rest see `check_numbers`.
    """
    array = check_numbers(name, value, form)
    with np.errstate(over="ignore"):  # of long doubles, which become infinite
        return np.asarray(array, dtype=np.float64)


def check_numbers(
    name: str, value: ArrayLike, form: str = "a numeric array"
) -> NDArray[np.generic]:
    """Return `value` as an array of real numbers of any type.

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


def check_vector(name: str, value: ArrayLike) -> Array:
    """Return a vector of at least one number as float64, or raise."""
    vector = check_real(name, value, "a vector of numbers")
    if vector.ndim != 1 or not len(vector):
        raise InputError(
            f"{name} must be a vector of at least one number, got shape {vector.shape}"
        )
    return vector


def check_matrix(name: str, value: ArrayLike, *, min_rows: int = 0) -> Array:
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


# How far an entry of V^T V may be from the identity's, and an entry of a matrix from
# its mirror image relative to the largest entry: far above what rounding leaves, far
# below what a wrong input shows.
ORTHONORMALITY_TOLERANCE = 1e-8
SYMMETRY_TOLERANCE = 1e-8


def check_basis(name: str, value: ArrayLike) -> Array:
    """Return `value` as a float64 stack of orthonormal bases, or raise.

    Parameters
    ----------
    name : str
        What to call the argument in the error.
    value : array_like, shape (..., d, k)
        1 <= k <= d; every entry of V^T V within 1e-8 of the identity's.

    Returns
    -------
    ndarray, shape (..., d, k)

    Raises
    ------
    InputError
        If the shape, the entries or the orthonormality is wrong.

    Examples
    --------
    >>> check_basis("start", [[2.0], [0.0]])
    Traceback (most recent call last):
    ...
    dpaudit.errors.InputError: start must have orthonormal columns, but V^T V differs
    from the identity by 3 (allowed: 1e-08)
    """
    v = _check_stack(name, value, "(..., d, k) with 1 <= k <= d")
    d, k = v.shape[-2:]
    if not 1 <= k <= d:
        raise InputError(
            f"{name} must have shape (..., d, k) with 1 <= k <= d, got shape {v.shape}"
        )
    defect = np.abs(np.swapaxes(v, -1, -2) @ v - np.eye(k)).max(initial=0.0)
    if not defect <= ORTHONORMALITY_TOLERANCE:
        raise InputError(
            f"{name} must have orthonormal columns, but V^T V differs from the "
            f"identity by {defect:.3g} (allowed: {ORTHONORMALITY_TOLERANCE:g})"
        )
    return v


def check_symmetric(name: str, value: ArrayLike) -> Array:
    """Return `value` as a float64 stack of symmetric matrices, or raise.

    Parameters
    ----------
    name : str
        What to call the argument in the error.
    value : array_like, shape (..., d, d)
        d >= 1; every entry within 1e-8 of its mirror image, relative to the largest
        entry of its matrix.

    Returns
    -------
    ndarray, shape (..., d, d)

    Raises
    ------
    InputError
        If the shape, the entries or the symmetry is wrong.

    Examples
    --------
    >>> check_symmetric("covariance", [[1.0, 2.0], [0.0, 1.0]])
    Traceback (most recent call last):
    ...
    dpaudit.errors.InputError: covariance must be symmetric, but an entry differs from
    its mirror image by 2 (allowed: 1e-08 of the largest)
    """
    a = _check_stack(name, value, "(..., d, d) with d >= 1")
    if a.shape[-1] != a.shape[-2] or a.shape[-1] < 1:
        raise InputError(
            f"{name} must have shape (..., d, d) with d >= 1, got shape {a.shape}"
        )
    # eigh reads one triangle only: without this check it would ignore the other.
    defect = np.abs(a - np.swapaxes(a, -1, -2)).max(axis=(-2, -1))
    allowed = SYMMETRY_TOLERANCE * np.abs(a).max(axis=(-2, -1))
    if np.any(defect > allowed):
        raise InputError(
            f"{name} must be symmetric, but an entry differs from its mirror image "
            f"by {np.max(defect):.3g} (allowed: {SYMMETRY_TOLERANCE:g} of the largest)"
        )
    return a


def check_aligned(name: str, array: Array, basis: Array) -> None:
    """Raise unless `array` and `basis` agree in d and broadcast in the leading axes.

    Parameters
    ----------
    name : str
        What to call `array` in the error; `basis` is called by its own name.
    array : ndarray, shape (..., d, m)
        A checked stack.
    basis : ndarray, shape (..., d, k)
        A checked stack.

    Raises
    ------
    InputError
        If they do not.

    Examples
    --------
    >>> import numpy as np
    >>> check_aligned("other", np.ones((7, 3, 2)), np.ones((3, 1)))
    """
    if array.shape[-2] != basis.shape[-2]:
        raise InputError(
            f"{name} must have as many rows as basis, "
            f"got shapes {array.shape} and {basis.shape}"
        )
    try:
        np.broadcast_shapes(array.shape[:-2], basis.shape[:-2])
    except ValueError:
        raise InputError(
            f"the leading axes of {name} and basis must broadcast, "
            f"got shapes {array.shape} and {basis.shape}"
        ) from None


def _check_stack(name: str, value: ArrayLike, form: str) -> Array:
    stack = check_real(name, value, f"a numeric array of shape {form}")
    if stack.ndim < 2:
        raise InputError(f"{name} must have shape {form}, got shape {stack.shape}")
    if not np.isfinite(stack).all():
        raise InputError(f"{name} must be finite, but it has a NaN or infinity")
    return stack
