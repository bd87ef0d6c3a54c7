"""The form of a release: what is left of it when its numbers are taken out.

Types of numbers, sequences and objects, precision, the order of keys, names and other
marks of tables, how numbers in a text are written, and its words. A form is a
dictionary from where something stands to what stands there, in words. Numbers are
holes, but for the sign of a zero, and for those of objects that are read nowhere else.
It is read off ordinary executions, whose types are those that the code returns. Whether
a number is Python's or one of NumPy's 64 bits is a part by itself: an empty sum is 0.
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

__all__ = ["LIBRARY", "Form", "form_of"]

LIBRARY = ".library"
"""The end of the names of parts that say whose a number is: Python's, or NumPy's."""

Form: TypeAlias = dict[str, str]

_DEEPEST, _MOST = 12, 4_000  # parts of a release that are read one by one
_LONGEST = 400  # characters that are kept of a text; beyond, its digest
_ENDS = 500  # characters at either end of a text that are told one by one
_NUMBERS = 100  # of a text
_NUMBER = re.compile(r"[-+]?(\d+)(?:(\.)(\d*))?(?:([eE])([-+]?)(\d+))?")
_SAME = {np.float64: float, np.int64: int, np.bool_: bool, np.str_: str}
_ARRAYS = "torch", "jax", "jaxlib", "pandas", "polars", "pyarrow", "scipy"
_SAID = date, time, timedelta, UUID, PurePath, range, slice  # by their words alone


def form_of(value: Any) -> Form:
    """Return the form of a release, or of an exception that is one.

    Examples
    --------
    >>> form_of((3, -0.0)) == {
    ...     "": "tuple of 2",
    ...     "[0]": "int",
    ...     "[0].library": "Python's",
    ...     "[1]": "float of sign -",
    ...     "[1].library": "Python's",
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
    if kind in _SAME or kind in _SAME.values():
        form[f"{at}{LIBRARY}"] = "NumPy's" if kind in _SAME else "Python's"
    if value is None or isinstance(value, bool | type) or len(form) > _MOST:
        return
    if depth > _DEEPEST:
        form[at] += " in the deep"
    elif isinstance(value, Enum):
        form[at] = f"{name}.{value.name}"
    elif isinstance(value, str | bytes | bytearray):
        _read_text(form, at, value)
    elif isinstance(value, np.generic | int | float | complex | Decimal):
        form[at] += _number(value)
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


def _number(value: Any) -> str:
    """Return what a number tells beside its value."""
    if isinstance(value, np.generic) and not isinstance(value, float):
        return _signed(value) if value.dtype.kind == "f" else ""
    exact = isinstance(value, Decimal)
    return _signed(value) + (
        f" of exponent {value.as_tuple().exponent}" if exact else ""
    )


def _read_parts(form: Form, at: str, parts: Any, depth: int) -> None:
    if len(parts) > _MOST:
        kinds = [*map(type, parts)]
        names = {kind: _name(kind) for kind in set(kinds)}
        form[f"{at}.types"] = _short(" ".join(map(names.__getitem__, kinds)))
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
    for name in ("dtype", "name", "names", "flags", "freq"):
        if value.ndim == 1 or name == "flags":
            form[f"{at}.{name}"] = _shown(getattr(value, name, None))
    if getattr(value, "attrs", None):
        _read(form, f"{at}.attrs", value.attrs, depth + 1)
    for name in ("index", "columns"):
        if hasattr(value, name):
            _read(form, f"{at}.{name}", getattr(value, name), depth + 1)
    if value.ndim > 1:
        for number, dtype in enumerate(value.dtypes):
            column = f"{at}.iloc[:, {number}]"
            form[f"{column}.dtype"] = _shown(dtype)
            if len(form) < _MOST and dtype.kind == "O":
                _read_parts(form, column, value.iloc[:, number].tolist(), depth)
    elif hasattr(value, "levels"):
        form[f"{at}.levels"] = _shown([each.dtype for each in value.levels])
    elif value.dtype.kind == "O":
        _read_parts(form, at, value.tolist(), depth)


def _read_object(form: Form, at: str, value: Any, depth: int) -> None:
    """Read what an object says of itself: its fields, or what everybody may read."""
    library = type(value).__module__.partition(".")[0]
    if library in _ARRAYS and not hasattr(value, "collect"):  # which computes something
        for name in ("dtype", "shape", "schema", "device"):
            form[f"{at}.{name}"] = _short(str(getattr(value, name, "")))
        return
    if is_dataclass(value):
        names = [each.name for each in fields(value)]
    else:
        names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
    for name in names:
        if name[:1] != "_" and hasattr(value, name):
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
    """Return what a type is called; Python's name for NumPy's that hold the same."""
    kind = _SAME.get(kind, kind)
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
