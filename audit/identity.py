"""What makes two audits the same: the key under which a store keeps one.

An audit is determined by the mechanism, the pairs, the claim, its settings and its
seed, the code that carries it out, and the libraries that do the arithmetic. `key_of`
makes one digest of all that. Objects that behave differently must not share a key, or
a store would return the result of one for the other; so an object is described by its
class, by its state, and by the code of what it is made of, as far as that is somebody's
own: functions by their compiled code, defaults, closures and the globals that they
name, classes by their members, and so forth. What is installed goes by its name and
the contents of its file. Comments, blank lines and the rest of a script do not matter.

What a mechanism reads while it runs (files, the environment) is not seen, nor are
modules that a function imports within itself.
"""

import copyreg
import hashlib
import inspect
import json
import platform
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dpaudit import __version__
from dpaudit.errors import InputError

__all__ = ["code_version", "describe", "describe_mechanism", "key_of"]

_ROOMS = ("", ".algorithms", ".attacks", ".audit")
_BESIDE = {"algorithms", "attacks", "audit", "reports", "cli", "checks"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_AUDITED = ("opendp", "randomgen", "diffprivlib")  # if installed
_PLAIN = (type(None), bool, int, str)
# What Python writes into a class, and what says nothing of what it does.
_FURNITURE = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__"),
    *("__annotations__", "__match_args__", "__slotnames__", "__firstlineno__"),
    *("__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__dataclass_fields__", "__dataclass_params__", "__static_attributes__"),
    *("__abstractmethods__", "_abc_impl", "__parameters__", "__orig_bases__"),
    *("_is_protocol", "_is_runtime_protocol", "__protocol_attrs__"),
    *("__non_callable_proto_members__", "__subclasshook__"),
}


@cache
def code_version() -> str:
    """Return dpaudit's version and a hash of the sources that results depend on.

    These are all modules but the reports and the command line.
    """
    digest = hashlib.sha256()
    for room in _ROOMS:
        root = Path(str(files(f"dpaudit{room}")))
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root)
            if inside.parts[0] not in _BESIDE:
                digest.update(f"{room}/{inside.as_posix()}\0".encode())
                digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def key_of(**parts: Any) -> str:
    """Return the key of the audit with these arguments, under this code.

    Raises
    ------
    InputError
        If one of them cannot be told from others of its kind.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> key_of(claim=PureDP(1.0)) == key_of(claim=PureDP(1.0))
    True
    >>> key_of(claim=PureDP(1.0)) == key_of(claim=PureDP(2.0))
    False
    """
    whole = {
        "code": code_version(),
        "python": platform.python_version(),
        "libraries": [version(name) for name in _LIBRARIES],
        "audited": [_version_if_any(name) for name in _AUDITED],
        **{name: describe(part) for name, part in parts.items()},
    }
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _version_if_any(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def describe_mechanism(mechanism: Any, reference: str | None) -> Any:
    """Describe a mechanism, by its reference and the file behind it if need be.

    Raises
    ------
    InputError
        If it shows no state to go by, and there is no reference.
    """
    try:
        return describe(mechanism)
    except InputError:
        if reference is None:
            raise
        module = sys.modules.get(reference.partition(":")[0])
        return ["reference", reference, _file_digest(module)]


def describe(value: Any) -> Any:
    """Return JSON-ready Python that is the same for objects that behave alike.

    Raises
    ------
    InputError
        If some part of it shows no state to go by.
    """
    return _Description().of(value)


class _Description:
    """One walk through an object.

    Code that is met again goes by when it was met: functions name each other. State is
    written out each time, since whether equal parts are one object does not matter.
    """

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._above: set[int] = set()

    def of(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str() if type(value) in _PLAIN:
                return value
            case float() | complex():
                return [type(value).__name__, repr(value)]
            case bytes() | bytearray():
                return ["bytes", hashlib.sha256(value).hexdigest()]
            case np.ndarray() if value.dtype.kind != "O":
                content = np.ascontiguousarray(value).tobytes()
                digest = hashlib.sha256(content).hexdigest()
                return ["array", value.dtype.str, list(value.shape), digest]
            case np.generic() if value.dtype.kind != "O":
                return ["scalar", value.dtype.str, value.tobytes().hex()]
            case type() | FunctionType() | ModuleType():
                if id(value) in self._met:
                    return ["again", self._met[id(value)]]
                self._met[id(value)] = len(self._met)
                return self._code_of(value)
        if id(value) in self._above:
            return ["cycle"]
        self._above.add(id(value))
        try:
            return self._state_of(value)
        finally:
            self._above.remove(id(value))

    def _code_of(self, value: Any) -> Any:
        match value:
            case ModuleType():
                return ["module", value.__name__, _file_digest(value)]
            case type():
                return self._class(value)
        return self._function(value)

    def _state_of(self, value: Any) -> Any:
        match value:
            case Enum():
                return ["member", self.of(type(value)), value.name]
            case dict() if type(value) is dict:
                return ["dict", [[self.of(k), self.of(v)] for k, v in value.items()]]
            case list() | tuple() if type(value) in (list, tuple):
                return [type(value).__name__, [self.of(item) for item in value]]
            case set() | frozenset():
                return ["set", sorted(json.dumps(describe(item)) for item in value)]
            case MethodType():
                return ["method", self.of(value.__func__), self.of(value.__self__)]
            case BuiltinFunctionType():
                owner = value.__self__
                bound = None if isinstance(owner, ModuleType) else self.of(owner)
                return ["builtin", value.__module__, value.__qualname__, bound]
            case cached_property():
                return ["property", self.of(value.func)]
            case property():
                return ["property", [self.of(f) for f in (value.fget, value.fset)]]
            case staticmethod() | classmethod():
                return [type(value).__name__, self.of(value.__func__)]
            case CodeType():
                return self._code(value)
        return self._instance(value)

    def _instance(self, value: Any) -> Any:
        if getattr(getattr(value, "__dataclass_params__", None), "frozen", False):
            # Its fields are all: what else it holds are values that it has cached.
            state = [[f.name, self.of(getattr(value, f.name))] for f in fields(value)]
            return ["object", self.of(type(value)), state]
        try:
            registered: Any = copyreg.dispatch_table.get(type(value))
            reduced = registered(value) if registered else value.__reduce_ex__(4)
        except Exception as error:
            raise InputError(
                f"a store cannot tell {type(value).__qualname__!r} objects apart "
                f"({error}): let the mechanism be a function of a module or a dataclass"
            ) from error
        if isinstance(reduced, str):
            wrapped = self._loosely(getattr(value, "__wrapped__", None))
            return ["name", getattr(value, "__module__", None), reduced, wrapped]
        parts = [list(p) if isinstance(p, Iterator) else p for p in reduced]
        return ["object", self.of(type(value)), [self.of(part) for part in parts]]

    def _class(self, kind: type) -> Any:
        name = [kind.__module__, kind.__qualname__]
        if not _is_own(kind.__module__):
            return ["class", *name, _file_digest(sys.modules.get(kind.__module__))]
        members = {
            key: self._loosely(member)
            for key, member in sorted(vars(kind).items())
            if key not in _FURNITURE
        }
        return ["class", *name, [self.of(base) for base in kind.__bases__], members]

    def _function(self, function: FunctionType) -> Any:
        name = [function.__module__, function.__qualname__]
        if not _is_own(function.__module__):
            module = sys.modules.get(function.__module__)
            return ["function", *name, _file_digest(module)]
        cells = [self.of(_content(c)) for c in function.__closure__ or ()]
        named = sorted(_names(function.__code__) & function.__globals__.keys())
        return [
            "function",
            *name,
            self._code(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            cells,
            {key: self._loosely(function.__globals__[key]) for key in named},
        ]

    def _code(self, code: CodeType) -> Any:
        return [
            code.co_code.hex(),
            [self.of(constant) for constant in code.co_consts],
            code.co_names,
        ]

    def _loosely(self, value: Any) -> Any:
        """Describe what is merely named in some code: its state need not matter."""
        try:
            return self.of(value)
        except InputError:
            return ["some", type(value).__module__, type(value).__qualname__]


class _Empty:
    """What a cell holds before it is filled."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty


def _names(code: CodeType) -> set[str]:
    """Return the globals that some code, and the functions inside it, may name."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*(_names(const) for const in inner))


@cache
def _is_own(module: str) -> bool:
    """Say whether a module is neither installed, nor Python's, nor dpaudit's own."""
    if module.split(".")[0] == "dpaudit" or module in sys.builtin_module_names:
        return False
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        return module == "__main__" or module not in sys.modules
    inside = Path(path).resolve()
    installed = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    return not any(
        inside.is_relative_to(Path(p).resolve()) for p in installed
    ) and not ({"site-packages", "dist-packages"} & set(inside.parts))


def _file_digest(module: ModuleType | None) -> str | None:
    """Return a digest of the source of a module, where there is a file."""
    if module is None or module.__name__.split(".")[0] == "dpaudit":
        return None  # dpaudit's own is in the code version
    try:
        path = Path(inspect.getsourcefile(module) or "")
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None
