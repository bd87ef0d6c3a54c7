"""Plain JSON for datasets, claims, mechanisms and attack parameters.

Numbers, strings, lists and dictionaries with string keys stand for themselves. The
rest is tagged:

- ``{"$array": ..., "dtype": ..., "shape": ...}``: exact to the bit; nested lists where
  the array is small and finite, else base64 of zlib of little-endian values;
- ``{"$float": "inf"}``: what JSON has no number for;
- ``{"$object": "module:Class", "arguments": {...}}``: a claim or a dataclass, by the
  arguments that rebuild it;
- ``{"$reference": "module:name"}``: a function or an instance, by import.

`decode` reads values: numbers, arrays, and the claims of `dpaudit.claims`. It imports
nothing, and calls nothing else that the text names, so it is safe on any text.
`rebuild` reads all objects and references. For that it **imports the modules that the
text names, and calls their classes**: rebuild only what you would be willing to run.
"""

import base64
import importlib
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.claims import CLAIMS, Claim
from dpaudit.errors import InputError
from dpaudit.printable import printable
from dpaudit.strict_json import check_depth
from dpaudit.validation import check_importable

__all__ = ["decode", "differences", "encode", "load_reference", "rebuild"]

Stored = dict[str, Any]

_READABLE = 1000  # entries up to which an array is written as lists
_MOST_ENTRIES = 2**27  # of all arrays of one text: 1 GiB of doubles
_MOST_AXES = 32
_TAGS = ("$array", "$float", "$object", "$reference")
_SILENT = ("$object", "$reference", "arguments")  # keys that name no part
_DTYPES = frozenset(
    ["|b1", "|i1", "|u1"]
    + [f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8)]
    + [f"<f{size}" for size in (2, 4, 8)]
)
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_CLAIMS = {
    f"{module}:{kind.__qualname__}": kind
    for kind in CLAIMS
    for module in (kind.__module__, "dpaudit.claims")
}


def encode(value: Any) -> Any:
    """Return `value` as JSON-ready Python.

    Raises
    ------
    InputError
        If some part of it cannot be rebuilt elsewhere: a lambda, an object defined in
        ``__main__``, an instance that is no dataclass, a dictionary whose keys would
        be taken for tags.

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
            if tag := next((key for key in value if key in _TAGS), None):
                raise InputError(f"a dictionary with the key {tag!r} cannot be stored")
            return {str(key): encode(item) for key, item in value.items()}
        case list() | tuple():
            return [encode(item) for item in value]
        case Claim():
            return _encode_object(value, value.parameters)
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return _encode_object(value, {name: getattr(value, name) for name in names})
    return {"$reference": check_importable(value)}


def decode(value: Any) -> Any:
    """Return the values that `encode` was given (tuples come back as lists).

    It reads numbers, strings, arrays, lists, dictionaries and the claims of
    `dpaudit.claims`, and never imports anything. All arrays together may have 2^27
    entries.

    Raises
    ------
    InputError
        If the text is malformed or too large, or names anything else.
    """
    return _Reader(_known_claim).read(value)


def rebuild(value: Any) -> Any:
    """Return what `encode` was given, mechanisms too (tuples come back as lists).

    This **runs code that the text names**: it imports modules, and calls classes (only
    dataclasses and claims) with the arguments that are written there.

    Raises
    ------
    InputError
        If the text is malformed or too large, names something that cannot be imported
        or is no such class, or a class refuses its arguments.
    """
    return _Reader(_imported).read(value)


def differences(first: Any, second: Any) -> list[tuple[str, Any, Any]]:
    """Return where two stored values differ: a name, and either value.

    Parameters
    ----------
    first, second : object
        As `encode` returns them.

    Returns
    -------
    list of tuple
        The name has dots for parts of parts, and is empty for the whole: another
        class, another function.

    Examples
    --------
    >>> from dpaudit import ApproxDP
    >>> differences(encode(ApproxDP(1.0, 1e-5)), encode(ApproxDP(2.0, 1e-5)))
    [('epsilon', 1.0, 2.0)]
    """
    check_depth([first, second])
    return list(_differences(first, second, ""))


def load_reference(reference: str) -> Any:
    """Import ``module:name`` (the name may have dots), or ``file.py:name``.

    The folder of a file is where its own imports are looked for, from then on.

    Raises
    ------
    InputError
        If the text is not of that form, the module fails while it is imported, or
        nothing is there.
    """
    module, separator, name = str(reference).rpartition(":")
    if module.endswith(".py"):
        module = _module_of_file(Path(module))
    if not (module and separator and name) or module.startswith("."):
        raise InputError(
            f"expected module:object, got {printable(repr(reference), longest=80)}"
        )
    shown, of = printable(repr(module), longest=80), printable(repr(name), longest=80)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"cannot import module {shown}: {printable(error)}") from error
    except (Exception, SystemExit) as error:  # its code may do anything
        raise InputError(
            f"cannot import module {shown}: it raised {type(error).__name__}: "
            f"{printable(error)}"
        ) from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except Exception:
            raise InputError(f"module {shown} has no object {of}") from None
    return found


def _module_of_file(file: Path) -> str:
    """Return the name under which a file can be imported from now on."""
    shown = printable(repr(str(file)), longest=80)
    if not file.is_file():
        raise InputError(f"there is no file {shown}")
    file = file.resolve()
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    found: str | None = getattr(sys.modules.get(file.stem), "__file__", None)
    if found is None and "." not in file.stem:
        spec = find_spec(file.stem)
        found = None if spec is None else spec.origin
    if found is None or Path(found).resolve() != file:
        raise InputError(
            f"{shown} cannot be imported, as {printable(file.stem)!r} is "
            f"{'no name of a module' if found is None else 'that of another module'}: "
            "rename the file"
        )
    return file.stem


def _encode_object(value: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "$object": check_importable(type(value)),
        "arguments": encode(dict(arguments)),
    }


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


class _Reader:
    """Reads one text.

    Parameters
    ----------
    build : callable
        Makes an object of a reference and its arguments, which are None for what is
        there already.
    """

    def __init__(self, build: Callable[[str, Stored | None], Any]) -> None:
        self._build = build
        self._room = _MOST_ENTRIES

    def read(self, value: Any) -> Any:
        """Return what a text of any kind stands for."""
        check_depth(value)
        try:
            return self._read(value)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError, zlib.error) as error:
            raise InputError(
                f"malformed or truncated value: {printable(error)}"
            ) from error

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._read(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next((key for key in _TAGS if key in value), None)
        if tag == "$array":
            content, dtype, shape = _parts(value, "$array", "dtype", "shape")
            return self._array(content, dtype, shape)
        if tag == "$float":
            (word,) = _parts(value, "$float")
            if not isinstance(word, str) or word not in _SPECIAL:
                raise ValueError("$float must be one of " + ", ".join(_SPECIAL))
            return _SPECIAL[word]
        if tag == "$object":
            reference, arguments = _parts(value, "$object", "arguments")
            if not isinstance(arguments, dict):
                raise ValueError("arguments must be named")
            return self._build(reference, self._read(arguments))
        if tag == "$reference":
            (reference,) = _parts(value, "$reference")
            return self._build(reference, None)
        return {key: self._read(item) for key, item in value.items()}

    def _array(self, content: Any, dtype: Any, shape: Any) -> np.ndarray[Any, Any]:
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise ValueError("dtype must be one of " + ", ".join(sorted(_DTYPES)))
        if not (
            isinstance(shape, list)
            and len(shape) <= _MOST_AXES
            and all(type(length) is int and length >= 0 for length in shape)
        ):
            raise ValueError(f"shape must be a list of at most {_MOST_AXES} lengths")
        # An axis of length 0 makes no room for long ones: a sum over it is
        # an array as long as the others.
        self._room -= math.prod(max(length, 1) for length in shape)
        if self._room < 0:
            raise ValueError(f"arrays must have at most {_MOST_ENTRIES:,} entries")
        kind = np.dtype(dtype)
        if isinstance(content, list):
            return _from_lists(content, kind, shape)
        if isinstance(content, str):
            return _unpacked(content, kind, shape)
        raise ValueError("$array must hold lists or base64")


def _parts(value: Stored, *names: str) -> list[Any]:
    if value.keys() != set(names):
        raise ValueError(f"expected {', '.join(names)} and nothing else")
    return [value[name] for name in names]


def _from_lists(
    content: list[Any], kind: np.dtype[Any], shape: list[int]
) -> np.ndarray[Any, Any]:
    numbers = {"f": (int, float), "i": (int,), "u": (int,), "b": (bool,)}[kind.kind]
    entries = list(_entries(content, shape))
    if not all(type(entry) in numbers for entry in entries):
        raise ValueError(f"an array of {kind} must hold its kind of numbers only")
    with np.errstate(over="ignore"):
        array = np.array(entries, dtype=kind).reshape(shape)
    if not np.isfinite(array).all():
        raise ValueError(f"lists must hold finite numbers within {kind}")
    return array


def _entries(content: Any, shape: list[int]) -> Iterator[Any]:
    """Yield the entries of nested lists, which must have that shape."""
    if not shape:
        yield content
        return
    if not isinstance(content, list) or len(content) != shape[0]:
        raise ValueError("the lists do not have the shape")
    for item in content:
        yield from _entries(item, shape[1:])


def _unpacked(
    content: str, kind: np.dtype[Any], shape: list[int]
) -> np.ndarray[Any, Any]:
    size = math.prod(shape) * kind.itemsize
    unpacking = zlib.decompressobj()
    # One byte more than there should be, so that what follows is seen, and no more.
    raw = unpacking.decompress(base64.b64decode(content, validate=True), size + 1)
    if len(raw) != size or not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"the array does not have the {size:,} bytes of its shape")
    array = np.frombuffer(raw, dtype=kind).reshape(shape)
    if kind.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError("booleans must be 0 or 1")
    return array.astype(kind.newbyteorder("="))


def _known_claim(reference: Any, arguments: Stored | None) -> Claim:
    kind = _CLAIMS.get(reference) if isinstance(reference, str) else None
    if kind is None or arguments is None:
        raise InputError(
            f"{printable(repr(reference), longest=80)} is none of the claims "
            f"{', '.join(kind.__name__ for kind in CLAIMS)}; other objects are not "
            "read here, because that takes running their code"
        )
    return kind(**arguments)


def _imported(reference: Any, arguments: Stored | None) -> Any:
    found: Any = load_reference(reference)
    if arguments is None:
        return found
    shown = printable(repr(reference), longest=80)
    if not isinstance(found, type) or not (
        is_dataclass(found) or issubclass(found, Claim)
    ):
        raise InputError(f"{shown} must be a dataclass or a claim")
    try:
        return found(**arguments)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{shown} cannot be built: {type(error).__name__}: {printable(error)}"
        ) from error


def _differences(first: Any, second: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if all(isinstance(side, dict) and "$array" not in side for side in (first, second)):
        for key in sorted(first.keys() | second.keys()):
            below = path if key in _SILENT else f"{path}.{key}".lstrip(".")
            yield from _differences(first.get(key), second.get(key), below)
    elif first != second:
        yield path, first, second
