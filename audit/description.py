"""Descriptions of objects: the same for what behaves alike, and for nothing else.

An object is described by its class and its state, a function by its compiled code, its
defaults, its attributes, what it closes over, and the globals that it names (of a
module that it names: the attributes that it names), a class by its members, and so
forth, as far as that leads. Three things end the walk:

- Python, dpaudit, NumPy, SciPy and scikit-learn go by their versions, their functions
  by what is added at run time: defaults, attributes, closures;
- other installed modules are followed within their own file, and no further;
- locks have no state that could matter, nor have the generators that Python's `random`
  and NumPy's `numpy.random` share among all: they are seeded anew in every process.

Whatever else shows no state, and could therefore not be told from others of its kind,
is refused, since a wrong result is worse than none. A frozen dataclass with a
`functools.cached_property` for what cannot be described is a way out: its fields alone
count. Only what an installed module keeps for itself may be of any kind: it goes by its
class and by the file. Comments, blank lines and the rest of a script do not matter.

What a mechanism reads while it runs (files, the environment) is not seen, nor are
modules that a function imports within itself, nor what somebody writes into a library
that goes by its version.
"""

import copyreg
import hashlib
import inspect
import json
import pickle
import random
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dpaudit.errors import InputError

__all__ = ["describe"]

_PINNED = {"dpaudit", "numpy", "scipy", "sklearn"}  # those that go by their version
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_SHARED: tuple[Any, ...] = (
    random.random.__self__,  # type: ignore[attr-defined]
    np.random.random.__self__,  # type: ignore[attr-defined]
)
_HEAP_TYPE = 1 << 9  # of the flags of a class: it was not compiled into the interpreter
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


def describe(value: Any) -> Any:
    """Return JSON-ready Python that is the same for objects that behave alike.

    Raises
    ------
    InputError
        If some part of it shows no state to go by.
    """
    try:
        return _Description().whole(value)
    except RecursionError:
        raise InputError(
            f"a store cannot tell {type(value).__qualname__!r} objects apart that are "
            "nested as deeply as this one"
        ) from None


class _Description:
    """One walk through an object.

    Functions and classes get numbers in the order in which they are met, and stand for
    themselves by these: they name each other. State is written out each time, since
    whether equal parts are one object does not matter.

    What must be described exactly is so, before anything that need not (`_loosely`);
    so it does not matter on which way something was met first.
    """

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # by id; kept alive, or ids return
        self._waiting: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self._lenient = False
        self._above: set[int] = set()

    def whole(self, value: Any) -> Any:
        """Return the description of an object and of the code that it leads to."""
        strict, loose = self._waiting
        root, code = self.of(value), {}
        while strict or loose:
            self._lenient = not strict
            queue = strict or loose
            place = next(iter(queue))
            code[place] = self._code_of(queue.pop(place))
        return [root, sorted(code.items())]

    def of(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < 2**63 else ["int", hex(value)]
        if kind in (float, complex):
            return [kind.__name__, repr(value)]
        if kind in (bytes, bytearray):
            return [kind.__name__, hashlib.sha256(value).hexdigest()]
        if kind is np.ndarray and value.dtype.kind not in "OV":
            content = np.ascontiguousarray(value).tobytes()
            digest = hashlib.sha256(content).hexdigest()
            order = "F" if value.flags.fnc else "C"  # in which sums are rounded
            return ["array", value.dtype.str, list(value.shape), order, digest]
        if isinstance(value, np.generic) and value.dtype.kind not in "OV":
            return ["scalar", value.dtype.str, value.tobytes().hex()]
        if kind is FunctionType or isinstance(value, type):
            return self._reference_to(value)
        if id(value) in self._above:
            return ["cycle"]
        self._above.add(id(value))
        try:
            return self._state_of(value)
        finally:
            self._above.remove(id(value))

    def _reference_to(self, code: Any) -> Any:
        """Return the number of a function or class, which is described once."""
        strict, loose = self._waiting
        if id(code) not in self._met:
            self._met[id(code)] = len(self._met), code
            (loose if self._lenient else strict)[len(self._met) - 1] = code
        place, _ = self._met[id(code)]
        if place in loose and not self._lenient:
            strict[place] = loose.pop(place)
        return ["code", place]

    def _loosely(self, value: Any) -> Any:
        """Describe what need not be told from others of its kind, if it cannot be."""
        before, self._lenient = self._lenient, True
        try:
            return self.of(value)
        except InputError:
            return _kind_of(value)
        finally:
            self._lenient = before

    def _code_of(self, code: Any) -> Any:
        try:
            return self._class(code) if isinstance(code, type) else self._function(code)
        except InputError:
            if not self._lenient:
                raise
            return _kind_of(code)

    def _state_of(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return ["dict", [[self.of(k), self.of(v)] for k, v in value.items()]]
        if kind in (list, tuple):
            return [kind.__name__, [self.of(item) for item in value]]
        if kind in (set, frozenset):
            items = sorted(json.dumps(describe(item)) for item in value)
            return [kind.__name__, items]
        if kind in (property, cached_property):
            parts = "fget fset fdel" if kind is property else "func"
            functions = [self.of(getattr(value, part)) for part in parts.split()]
            return ["property", functions]
        if kind in (staticmethod, classmethod):
            return [kind.__name__, self.of(value.__func__)]
        match value:
            case ModuleType():
                return self._module(value, frozenset())
            case Enum():
                return ["member", self.of(kind), value.name, self.of(value.value)]
            case MethodType():
                return ["method", self.of(value.__func__), self.of(value.__self__)]
            case BuiltinFunctionType():
                owner = value.__self__
                bound = None if isinstance(owner, ModuleType) else self.of(owner)
                return ["builtin", value.__module__, value.__qualname__, bound]
            case CodeType():
                return self._code(value)
        if isinstance(value, _LOCKS) or any(value is shared for shared in _SHARED):
            return ["stateless", kind.__qualname__]
        return self._instance(value)

    def _instance(self, value: Any) -> Any:
        kind = type(value)
        if "__dataclass_params__" in vars(kind) and kind.__dataclass_params__.frozen:
            return ["object", self.of(kind), self._fields(value)]
        try:
            registered: Any = copyreg.dispatch_table.get(kind)
            reduced = registered(value) if registered else value.__reduce_ex__(4)
        except Exception as error:
            raise _untellable(value, error) from error
        if isinstance(reduced, str):
            return self._named(value, reduced)
        parts = [list(p) if isinstance(p, Iterator) else p for p in reduced]
        return ["object", self.of(kind), [self.of(part) for part in parts]]

    def _fields(self, value: Any) -> Any:
        """Describe a frozen dataclass, without the values that it has cached."""
        state = {field.name: getattr(value, field.name) for field in fields(value)}
        for name, kept in getattr(value, "__dict__", {}).items():
            made_by = inspect.getattr_static(type(value), name, None)
            if not isinstance(made_by, cached_property):
                state.setdefault(name, kept)
        return [[name, self.of(part)] for name, part in state.items()]

    def _named(self, value: Any, name: str) -> Any:
        """Describe what pickles by its name: it is what is found under it, or wraps."""
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            return ["wraps", self.of(type(value)), self.of(wrapped)]
        with warnings.catch_warnings():
            # It asks every module for the name, and some mind being asked.
            warnings.simplefilter("ignore")
            try:
                module = pickle.whichmodule(value, name)  # type: ignore[attr-defined]
            except (Exception, SystemExit) as error:
                raise _untellable(value, f"a module raises {error!r}") from error
        if _found(module, name) is not value:
            raise _untellable(value, f"it is not what {module} has as {name!r}")
        return ["name", getattr(value, "__module__", None), name]

    def _class(self, kind: type) -> Any:
        name = [kind.__module__, kind.__qualname__]
        home = _home(kind.__module__)
        found = _is_found(kind)
        if not kind.__flags__ & _HEAP_TYPE or (home is _Home.PINNED and found):
            return ["class", *name]
        # One that was made at run time is its maker's, wherever that was.
        origin = kind.__module__ if found else None
        members = {
            key: self._part(member, origin)
            for key, member in sorted(vars(kind).items())
            if key not in _FURNITURE
        }
        bases = [self._part(base, origin) for base in kind.__bases__]
        return ["class", *name, _digest_of(kind.__module__), bases, members]

    def _function(self, function: FunctionType) -> Any:
        # A decorator may give a function the name of another module than it is from.
        origin = function.__globals__.get("__name__")
        described = [
            *("function", origin, function.__module__, function.__qualname__),
            self._code(function.__code__),
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            [self.of(_content(cell)) for cell in function.__closure__ or ()],
            self.of(vars(function)),
        ]
        if _home(origin) is _Home.PINNED:
            return described
        names = _names(function.__code__)
        parts = {
            key: self._part(function.__globals__[key], origin, names)
            for key in sorted(names & function.__globals__.keys())
        }
        return [*described, _digest_of(origin), parts]

    def _part(
        self, value: Any, origin: str | None, names: frozenset[str] = frozenset()
    ) -> Any:
        """Describe what code of a module names, with the attributes it may ask for."""
        if _home(origin) is _Home.OWN:
            if isinstance(value, ModuleType):
                return self._module(value, names)
            return self.of(value)
        if isinstance(value, ModuleType):
            return _kind_of(value)
        if isinstance(value, FunctionType | type) and _origin(value) != origin:
            if _home(_origin(value)) is _Home.OWN:
                return self.of(value)
            if _is_found(value):
                return _kind_of(value)
        return self._loosely(value)

    def _module(self, module: ModuleType, names: frozenset[str]) -> Any:
        """Describe a module, and which of its attributes have one of these names."""
        name = module.__name__
        if _home(name) is _Home.PINNED or id(module) in self._above:
            return ["module", name]
        self._above.add(id(module))
        try:
            strictly = _home(name) is _Home.OWN
            parts = {
                key: self._module(part, names)
                if isinstance(part := vars(module)[key], ModuleType)
                else self.of(part)
                if strictly
                else self._loosely(part)
                for key in sorted(names & vars(module).keys())
            }
        finally:
            self._above.discard(id(module))
        return ["module", name, _file_digest(module), parts]

    def _code(self, code: CodeType) -> Any:
        return [
            *(code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags),
            *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
            [self.of(constant) for constant in code.co_consts],
        ]


def _untellable(value: Any, reason: object) -> InputError:
    return InputError(
        f"a store cannot tell {type(value).__qualname__!r} objects apart ({reason}): "
        "let the mechanism be a function of a module or a frozen dataclass, which goes "
        "by its fields and may keep such an object in a cached_property; or do without "
        "a store"
    )


def _kind_of(value: Any) -> list[Any]:
    """Return the name of a function, class or module, or of the class of an object."""
    if isinstance(value, ModuleType):
        return ["module", value.__name__, _file_digest(value)]
    named = value if isinstance(value, FunctionType | type) else type(value)
    return ["some", named.__module__, named.__qualname__, _digest_of(_origin(named))]


def _origin(code: Any) -> str | None:
    """Return the module that a function or class was made in."""
    if isinstance(code, FunctionType):
        return code.__globals__.get("__name__")
    return str(code.__module__)


class _Empty:
    """What a cell holds before it is filled."""


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty


def _names(code: CodeType) -> frozenset[str]:
    """Return the globals and attributes that some code, and code inside it, names."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return frozenset(code.co_names).union(*(_names(const) for const in inner))


def _found(module: str | None, name: str) -> Any:
    """Return what a loaded module has under a name with dots, or None."""
    found: Any = sys.modules.get(str(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_found(code: Any) -> bool:
    """Say whether a function or class is what its module has under its name."""
    return _found(code.__module__, code.__qualname__) is code


class _Home(Enum):
    """Where a module is from."""

    PINNED = "Python, or a library whose version is in the key"
    INSTALLED = "another library"
    OWN = "somebody's own"


def _home(module: str | None) -> _Home:
    loaded = sys.modules.get(str(module))
    if module is None or loaded is None:
        return _Home.OWN
    name, path = module.split(".")[0], getattr(loaded, "__file__", None)
    if name in _PINNED:
        return _Home.PINNED
    if path is not None:
        return _home_of_file(path)
    if name == "__main__":
        return _Home.OWN
    return _Home.PINNED if name in sys.stdlib_module_names else _Home.INSTALLED


@cache
def _home_of_file(path: str) -> _Home:
    inside = Path(path).resolve()

    def within(name: str) -> bool:
        return inside.is_relative_to(Path(sysconfig.get_path(name)).resolve())

    sites = {"site-packages", "dist-packages"} & set(inside.parts)
    if sites or within("purelib") or within("platlib"):
        return _Home.INSTALLED
    return _Home.PINNED if within("stdlib") else _Home.OWN


def _digest_of(module: str | None) -> str | None:
    """Return a digest of the file of an installed module; nothing for any other."""
    if _home(module) is not _Home.INSTALLED:
        return None
    return _file_digest(sys.modules[str(module)])


def _file_digest(module: ModuleType) -> str | None:
    """Return a digest of the source of a module, where there is a file."""
    try:
        path = Path(inspect.getsourcefile(module) or "")
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None
