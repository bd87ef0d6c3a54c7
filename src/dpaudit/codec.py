"""Plain JSON for datasets, claims, mechanisms and attack parameters.

Numbers, strings, lists and dictionaries with string keys stand for themselves. The
rest is tagged:

- ``{"$array": ..., "dtype": ..., "shape": ...}``: exact to the bit; nested lists where
  the array is small and finite, else base64 of zlib of little-endian values;
- ``{"$float": "inf"}``: what JSON has no number for;
- ``{"$object": "module:Class", "arguments": {...}}``: a claim or a dataclass, by the
  arguments that rebuild it;
- ``{"$reference": "module:name"}``: a function or an instance, by import.

Decoding the last two **imports the module and calls the class that the text names**:
decode only what you would be willing to run.
"""

import base64
import importlib
import math
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from dpaudit.claims import Claim
from dpaudit.errors import InputError

__all__ = ["decode", "encode", "load_reference", "reference_to"]

_READABLE = 1000  # entries up to which an array is written as lists


def encode(value: Any) -> Any:
    """Return `value` as JSON-ready Python.

    Raises
    ------
    InputError
        If some part of it cannot be rebuilt elsewhere: a lambda, an object defined in
        ``__main__``, an instance that is no dataclass.

    Examples
    --------
    >>> from dpaudit import ApproxDP
    >>> encode(ApproxDP(1.0, 1e-5))["arguments"]
    {'epsilon': 1.0, 'delta': 1e-05}
    """
    match value:
        case Enum():
            return encode(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            number = float(value)
            return number if math.isfinite(number) else {"$float": repr(number)}
        case np.ndarray():
            return _encode_array(value)
        case np.generic() if value.dtype != np.longdouble:  # which item() keeps
            return encode(value.item())
        case Mapping():
            return {str(key): encode(item) for key, item in value.items()}
        case list() | tuple():
            return [encode(item) for item in value]
        case Claim():
            return _encode_object(value, value.parameters)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return _encode_object(value, {name: getattr(value, name) for name in names})
    return {"$reference": reference_to(value)}


def decode(value: Any) -> Any:
    """Return what `encode` was given (tuples come back as lists).

    Raises
    ------
    InputError
        If the text is malformed, or names something that cannot be imported.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        if "$array" in value:
            return _decode_array(value)
        if "$float" in value:
            return float(value["$float"])
        if "$object" in value:
            build = load_reference(value["$object"])
            return build(**decode(value["arguments"]))
        if "$reference" in value:
            return load_reference(value["$reference"])
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"malformed or truncated value: {error}") from error
    return {key: decode(item) for key, item in value.items()}


def reference_to(value: Any) -> str:
    """Return the ``module:name`` under which a function or class is imported.

    Raises
    ------
    InputError
        If there is none that another process could use.
    """
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        raise InputError(f"{value!r} cannot be imported by name elsewhere")
    return f"{module}:{name}"


def load_reference(reference: str) -> Any:
    """Import ``module:name`` (the name may have dots).

    Raises
    ------
    InputError
        If the text is not of that form, or nothing is there.
    """
    module, separator, name = str(reference).partition(":")
    if not (module and separator and name) or module.startswith("."):
        raise InputError(f"expected module:object, got {reference!r}")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"cannot import module {module!r}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever its code does
        raise InputError(
            f"cannot import module {module!r}: it raised {type(error).__name__}: "
            f"{error}"
        ) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise InputError(f"module {module!r} has no object {name!r}") from None
    return found


def _encode_object(value: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"$object": reference_to(type(value)), "arguments": encode(dict(arguments))}


def _encode_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise InputError(f"arrays of {array.dtype} cannot be stored")
    little = array.astype(array.dtype.newbyteorder("<"))
    if array.ndim and array.size <= _READABLE and np.isfinite(array).all():
        content = little.tolist()
    else:
        packed = zlib.compress(little.tobytes(), 9)
        content = base64.b64encode(packed).decode("ascii")
    return {"$array": content, "dtype": little.dtype.str, "shape": list(array.shape)}


def _decode_array(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    content, dtype, shape = value["$array"], np.dtype(value["dtype"]), value["shape"]
    if isinstance(content, list):
        array = np.array(content, dtype=dtype).reshape(shape)
    else:
        raw = zlib.decompress(base64.b64decode(content, validate=True))
        array = np.frombuffer(raw, dtype=dtype).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="))
