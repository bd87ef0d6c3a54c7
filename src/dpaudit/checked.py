"""Dataclasses whose fields say what is allowed, by their types.

A field of the type `Positive` is a float for type checkers, and a finite number > 0
once the object is made: its check stands in the annotation. Any check of
`dpaudit.validation` will do, as in ``Annotated[int, check_count]``. A field whose type
is a class of dpaudit holds an instance of it.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields
from enum import Enum
from functools import cache, partial
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

from dpaudit.errors import InputError
from dpaudit.neighbours import Relation, check_relation
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = ["Checked", "Count", "Fraction", "Neighbouring", "Nonnegative", "Positive"]

Positive: TypeAlias = Annotated[float, check_positive]
"""A finite number > 0."""

Nonnegative: TypeAlias = Annotated[float, check_nonnegative]
"""A finite number >= 0."""

Fraction: TypeAlias = Annotated[float, check_fraction]
"""A number in (0, 1)."""

Count: TypeAlias = Annotated[int, check_count]
"""An integer >= 1."""

Neighbouring: TypeAlias = Annotated[Relation, check_relation]
"""A relation, or its name."""

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
