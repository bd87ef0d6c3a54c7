"""The form of a release: what is left of it when its numbers are taken out.

Types of numbers, sequences and objects, precision, the order of keys, names and other
marks of tables, how numbers in a text are written, and its words. A form is a
dictionary from where something stands to what stands there, in words. Numbers are
holes, but for the sign of a zero, and for those of objects that are read nowhere else.
It is read off ordinary executions, whose types are those that the code returns.
"""

import hashlib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import copysign
from pathlib import PurePath
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np

from dpaudit.audit.replay.follow.frames import is_framed
from dpaudit.printable import ADDRESS

__all__ = ["Form", "form_of"]

Form: TypeAlias = dict[str, str]

_DEEPEST, _MOST = 12, 2_000  # parts of a release that are read one by one
_LONGEST = 400  # characters that are kept of a text; beyond, its digest
_ENDS = 500  # characters at either end of a text that are told one by one
_NUMBERS = 100  # of a text
_NUMBER = re.compile(r"[-+]?(\d+)(?:(\.)(\d*))?(?:([eE])([-+]?)(\d+))?")
_SAID = date, time, timedelta, UUID, PurePath, range, slice  # by their words alone


def form_of(value: Any) -> Form:
    """Return the form of a release, or of an exception that is one.

    Examples
    --------
    >>> form_of((3, -0.0)) == {
    ...     "": "tuple of 2",
    ...     "[0]": "int",
    ...     "[1]": "float of sign -",
    ... }
    True
    >>> form_of("1.50")[".number 1"]
    '2 decimals'
    """
    form: Form = {}
    try:
        _read(form, "", value, 0)
    except Exception:  # an object of its own, that fails when it is read
        form["read"] = "fails"
    return form


def _read(form: Form, at: str, value: Any, depth: int) -> None:
    kind = type(value)
    form[at] = name = _name(kind)
    if value is None or isinstance(value, bool | type) or len(form) > _MOST:
        return
    if depth > _DEEPEST:
        form[at] += " in the deep"
    elif isinstance(value, Enum):
        form[at] = f"{name}.{value.name}"
    elif isinstance(value, np.generic) and not isinstance(value, float | str | bytes):
        form[at] += _signed(value) if value.dtype.kind == "f" else ""
    elif isinstance(value, int | float | complex):
        form[at] += _signed(value)
    elif isinstance(value, Decimal):
        form[at] += _signed(value) + f" of exponent {value.as_tuple().exponent}"
    elif isinstance(value, str | bytes | bytearray):
        _read_text(form, at, value)
    elif isinstance(value, _SAID):
        form[at] += f" {value!r}"
    elif isinstance(value, BaseException):
        _read(form, f"{at}.args", value.args, depth + 1)
    elif is_framed(value):
        _read_table(form, at, value, depth)
    elif isinstance(value, np.ndarray):
        _read_array(form, at, value, depth)
    elif isinstance(value, Mapping):
        keys = [*map(_shown, value)]
        form[at] += f" with keys {_short(', '.join(keys))}"
        for key, part in zip(keys, value.values(), strict=True):
            _read(form, f"{at}[{key}]", part, depth + 1)
    elif isinstance(value, AbstractSet):
        form[at] += " of " + _short(", ".join(sorted({_name(type(e)) for e in value})))
    elif isinstance(value, list | tuple):
        form[at] += f" of {len(value)}"
        _read_parts(form, at, value, depth)
    else:
        _read_object(form, at, value, depth)


def _read_parts(form: Form, at: str, parts: Any, depth: int) -> None:
    if len(parts) > _MOST:
        kinds = " ".join(_name(type(part)) for part in parts)
        form[f"{at}.types"] = _short(kinds)
        return
    for number, part in enumerate(parts):
        _read(form, f"{at}[{number}]", part, depth + 1)


def _read_array(form: Form, at: str, value: Any, depth: int) -> None:
    form[at] += f" of {value.dtype}, shape {value.shape}"
    if isinstance(value, np.ma.MaskedArray):
        form[f"{at}.fill_value"] = f"{value.fill_value!r}"
    if value.dtype.kind == "f" and 0 < value.size <= _MOST:
        for number, zero in enumerate(np.asarray(value).ravel().tolist()):
            if zero == 0:
                form[f"{at}.flat[{number}]"] = f"zero{_signed(zero)}"
    elif value.dtype.kind in "OUS":
        _read_parts(form, at, value.ravel().tolist(), depth)


def _read_table(form: Form, at: str, value: Any, depth: int) -> None:
    """Read a table, a column or an index of pandas."""
    form[at] += f", shape {value.shape}"
    for name in ("dtype", "name", "names", "attrs", "flags", "freq"):
        if hasattr(value, name) and not (name == "dtype" and value.ndim > 1):
            part = getattr(value, name)
            known = dict if name == "attrs" else str
            _read(form, f"{at}.{name}", known(part), depth + 1)
    categories = getattr(getattr(value, "dtype", None), "categories", None)
    if categories is not None:
        _read(form, f"{at}.categories", categories, depth + 1)
    for name in ("index", "columns"):
        if hasattr(value, name):
            _read(form, f"{at}.{name}", getattr(value, name), depth + 1)
    if value.ndim > 1:
        for number in range(min(value.shape[1], _MOST)):
            _read_column(form, f"{at}.iloc[:, {number}]", value.iloc[:, number], depth)
    else:
        _read_column(form, at, value, depth)


def _read_column(form: Form, at: str, column: Any, depth: int) -> None:
    form[f"{at}.dtype"] = str(column.dtype)
    if not hasattr(column, "levels") and getattr(column.dtype, "kind", "") in "OMm":
        _read_parts(form, at, column.tolist(), depth)


def _read_object(form: Form, at: str, value: Any, depth: int) -> None:
    """Read what an object says of itself: its fields, or what everybody may read."""
    for name in ("dtype", "shape", "schema", "device"):  # of arrays of other libraries
        part = getattr(value, name, None)
        if part is not None and not callable(part):
            form[f"{at}.{name}"] = _short(ADDRESS.sub("", str(part)))
    if is_dataclass(value):
        names = [each.name for each in fields(value)]
    else:
        names = [name for name in getattr(value, "__dict__", ()) if name[:1] != "_"]
        names += [name for name in getattr(value, "__slots__", ()) if name[:1] != "_"]
    for name in names:
        if hasattr(value, name):
            part = getattr(value, name)
            _read(form, f"{at}.{name}", part, depth + 1)
            if not hasattr(part, "__len__") or len(part) <= _LONGEST:
                form[f"{at}.{name}.shown"] = _shown(part)


def _read_text(form: Form, at: str, value: Any) -> None:
    text = value if isinstance(value, str) else value.decode("latin-1")
    found = [*_NUMBER.finditer(text)]
    form[f"{at}.words"] = _short(_NUMBER.sub("#", text))
    for number, each in enumerate(found[:_NUMBERS], 1):
        form[f"{at}.number {number}"] = _written(each)
    form[f"{at}.length"] = str(len(text))
    form[f"{at}.text"] = _short(text)
    for number, each in enumerate(text[:_ENDS], 1):
        form[f"{at}.character {number}"] = repr(each)
    for number, each in enumerate(text[: -_ENDS - 1 : -1], 1):
        form[f"{at}.character {number} from the end"] = repr(each)


def _written(number: re.Match[str]) -> str:
    """Say how a number is written, its digits aside."""
    whole, point, decimals, exponent, sign, power = number.groups()
    said = f"{len(decimals)} decimals" if point else "no point"
    if len(whole) > 1 and whole[0] == "0":
        said += f", {len(whole)} digits before it, zeros first"
    if number[0][0] == "+":
        said += ", a plus sign"
    if exponent:
        said += f", {exponent}{sign} and {len(power)} digits"
    return said


def _signed(value: Any) -> str:
    """Return the sign of a zero, nothing of another number."""
    return " of sign -" if value == 0 and copysign(1.0, value.real) < 0 else ""


def _name(kind: type) -> str:
    """Return what a type is called."""
    module = kind.__module__.partition(".")[0]
    name = kind.__qualname__
    return name if module == "builtins" else f"{module}.{name}"


def _shown(key: Any) -> str:
    try:
        return _short(ADDRESS.sub("", repr(key)))
    except Exception:
        return _name(type(key))


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
