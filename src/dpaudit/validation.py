"""Checks of arguments, and dataclasses whose fields have them by their types.

Each check returns the value in its canonical type or raises
`~dpaudit.errors.InputError` with a sentence that names the argument, the value that
was given and what is allowed.

A field of the type `Positive` is a float for type checkers, and a finite number > 0
once the object is made: its check stands in the annotation. Any check will do, as in
``Annotated[int, check_count]``. A field whose type is a class of dpaudit holds an
instance of it.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields
from difflib import get_close_matches
from enum import Enum
from functools import cache, partial
from inspect import Parameter, get_annotations, signature
from numbers import Integral, Real
from types import FunctionType, MethodType, NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.printable import called

__all__ = [
    "GENERATORS",
    "Checked",
    "Count",
    "Fraction",
    "Nonnegative",
    "Positive",
    "check_confidence",
    "check_count",
    "check_fraction",
    "check_generator",
    "check_importable",
    "check_length",
    "check_matrix",
    "check_name",
    "check_nonnegative",
    "check_numbers",
    "check_parameters",
    "check_positive",
    "check_real",
    "check_restarts",
    "check_vector",
    "parameters_of",
]

GENERATORS = ("rng", "generator", "prng", "random_generator", "gen", "np_random")
"""Names of parameters that take a generator."""
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


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
        span = f"from {smallest:g} to" if smallest else "at most"
        raise InputError(f"{name} must be {span} {largest:g}, got {value!r}")
    return number


def check_norm(name: str, value: object) -> float:
    """Return a bound on rows as a float, whose fourth power and its inverse are."""
    return check_positive(name, value, smallest=1e-50, largest=1e50)


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


def check_restarts(data: object) -> None:
    """Raise if data can be read once only."""
    if isinstance(data, Iterator):
        raise InputError(
            "data must be readable more than once, but an iterator is not, "
            f"got {type(data).__name__}"
        )


def check_generator(rng: object) -> None:
    """Raise unless it is a `numpy.random.Generator`."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, got {rng!r}")


def check_importable(value: object) -> str:
    """Return the ``module:name`` under which another process imports an object."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        raise InputError(f"{value!r} cannot be imported by name elsewhere")
    return f"{module}:{name}"


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
        masked = has_mask(value)
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


def has_mask(value: object) -> bool:
    """Say whether an array has a mask, or one in a list."""
    if isinstance(value, list | tuple):
        return any(map(has_mask, value))
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


Positive: TypeAlias = Annotated[float, check_positive]
"""A finite number > 0."""

Norm: TypeAlias = Annotated[float, check_norm]
"""A bound on the length of rows."""

Nonnegative: TypeAlias = Annotated[float, check_nonnegative]
"""A finite number >= 0."""

Fraction: TypeAlias = Annotated[float, check_fraction]
"""A number in (0, 1)."""

Count: TypeAlias = Annotated[int, check_count]
"""An integer >= 1."""

_Check: TypeAlias = Callable[[str, Any], Any]


class Checked:
    """A dataclass, frozen or not, that checks the fields that it is made with.

    Each is stored as its check returns it. Of a type ``X | None``, None is allowed. A
    ``__post_init__`` of a subclass has to call this one.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Circle(Checked):
    ...     radius: Positive
    >>> Circle(2)
    Circle(radius=2.0)
    >>> Circle(-1.0)
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: radius must be a finite number > 0, got -1.0
    """

    def __post_init__(self) -> None:
        for name, check in _checks(cast(Hashable, type(self))):
            object.__setattr__(self, name, check(name, getattr(self, name)))


def parameters_of(function: Any) -> list[Parameter]:
    """Return the parameters by which a function is called, decorated or not.

    A decorator may take others than what it decorates, such as a generator. Those of
    the function below (``__wrapped__``) are meant where it takes any, and no generator.

    Raises
    ------
    TypeError, ValueError
        If they are not known.
    """
    top = function
    while isinstance(top, FunctionType | MethodType) and hasattr(top, "__wrapped__"):
        own = list(signature(top, follow_wrapped=False).parameters.values())
        generators = {each.name for each in own} & {*GENERATORS}
        if generators or not any(each.kind in _MANY for each in own):
            return own
        below: Any = getattr(top, "__wrapped__")  # noqa: B009
        if isinstance(top, MethodType) and hasattr(below, "__get__"):
            below = below.__get__(top.__self__)
        top = below
    return list(signature(top).parameters.values())


def check_parameters(function: Any) -> list[Parameter]:
    """Return the parameters of a function of a dataset, none if they are not known.

    Raises
    ------
    InputError
        If the first one is no dataset.
    """
    try:
        found = parameters_of(function)
    except (TypeError, ValueError):
        return []
    kinds = (*_POSITIONAL, Parameter.VAR_POSITIONAL)
    if not found or found[0].kind not in kinds or found[0].name in GENERATORS:
        raise InputError(
            f"{called(function)} takes no dataset: its first parameter must be one, "
            f"got {called(function)}({', '.join(map(str, found))})"
        )
    return found


@cache
def _checks(kind: Any) -> tuple[tuple[str, _Check], ...]:
    """Return the names of the fields that have a check, and the check.

    It is that of the last class that has one: a subclass may only set a default.
    """
    found = []
    for name in [field.name for field in fields(kind) if field.init]:
        types = [get_annotations(each) for each in kind.__mro__]
        checks = (_check_of(each[name]) for each in types if name in each)
        if check := next(filter(None, checks), None):
            found.append((name, check))
    return tuple(found)


def _check_of(kind: Any) -> _Check | None:
    if get_origin(kind) in (Union, UnionType):
        known = [part for part in get_args(kind) if part is not NoneType]
        check = _check_of(known[0]) if len(known) == 1 else None
        return check and partial(_unless_none, check)
    if marks := getattr(kind, "__metadata__", ()):
        return cast(_Check, marks[0])
    ours = isinstance(kind, type) and kind.__module__.split(".")[0] == "dpaudit"
    if not ours or issubclass(kind, Enum) or getattr(kind, "_is_protocol", False):
        return None
    return partial(_check_instance, kind)


def _unless_none(check: _Check, name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


def _check_instance(kind: type, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        shown = kind.__name__
        if not shown.endswith("s"):
            shown = f"{'an' if shown[0] in 'AEIOU' else 'a'} {shown}"
        raise InputError(f"{name} must be {shown}, got {value!r}")
    return value
