"""What makes two audits the same: the key under which a store keeps one.

An audit is determined by the mechanism, the pairs, its settings, the code that carries
it out, and the libraries that do the arithmetic. `key_of` makes one digest of all that.
Objects that behave differently may share a key where they look alike: so a key finds an
audit, and what the mechanism does now says whether it is its own
(`dpaudit.audit.keeping.checkpoint`).

An object is described by its class and its state, a function by its compiled code, its
defaults, its attributes and what it closes over, one's own function by the globals that
it names as well (of a module: the attributes that it names), one's own class by its
members, and so forth, as far as that leads. Python and installed libraries go by names,
and by a version or a digest of the file. Comments, blank lines and the rest of a script
do not matter, nor what cached properties keep.

A description is the same in every process. So generators of random numbers go by their
class, for they are often seeded anew, and so does whatever shows no state (a lock, a
handle of a library in C). What is looked up under a name made at run time, files and
the environment are not seen: so objects of one description may differ.
"""

import copyreg
import hashlib
import inspect
import json
import platform
import random
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import BitGenerator, Generator, RandomState

from dpaudit import __version__

__all__ = ["code_version", "describe", "key_of"]

_ROOMS = ("", ".algorithms", ".attacks", ".audit")
_BESIDE = {"algorithms", "attacks", "audit", "reports", "cli", "checks"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_AUDITED = ("opendp", "randomgen", "diffprivlib")  # if installed
# Their versions are in the key.
_VERSIONED = {"dpaudit", "numpy", "scipy", "sklearn", *sys.stdlib_module_names}
_SEEDED = (random.Random, RandomState, Generator, BitGenerator)
_WRAPPERS = (property, staticmethod, classmethod, types.MethodType, type(len))
_WRAPPED = ("__func__", "__self__", "__wrapped__", "fget", "fset", "fdel")


@cache
def code_version() -> str:
    """Return dpaudit's version and a hash of the sources that results depend on.

    These are all modules, and what they declare, but the reports and the command line.
    """
    rooms = {room: Path(str(files(f"dpaudit{room}"))) for room in _ROOMS}
    sources = (
        (f"{room}/{inside.as_posix()}", path.read_bytes())
        for room, root in rooms.items()
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".toml")
        and (inside := path.relative_to(root)).parts[0] not in _BESIDE
    )
    return f"{__version__}+{_digest_of_sources(sources)[:12]}"


def _digest_of_sources(sources: Iterable[tuple[str, bytes]]) -> str:
    """Return a digest of named files: of their names, contents and order."""
    digests = [[name, hashlib.sha256(text).hexdigest()] for name, text in sources]
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def key_of(**parts: Any) -> str:
    """Return the key of the audit with these parts, under this code.

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
        "parts": {name: describe(part) for name, part in parts.items()},
    }
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _version_if_any(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def describe(value: Any) -> str:
    """Return a text that is the same for objects that look alike, in every process."""
    try:
        return json.dumps(_Description().whole(value))
    except RecursionError:
        return json.dumps(["deep", *_names_of(type(value))])


class _Description:
    """One walk: functions and classes, which name each other, get numbers."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._met: list[Any] = []
        self._above: set[int] = set()

    def whole(self, value: Any) -> Any:
        """Return the description of an object and of the code that it leads to."""
        described = [self.of(value)]
        for each in self._met:  # which grows meanwhile
            of_kind = self._class if isinstance(each, type) else self._function
            described.append(of_kind(each))
        return described

    def of(self, value: Any, names: frozenset[str] = frozenset()) -> Any:
        """Describe a value, of which code may ask for attributes of these names."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind in (int, float, complex):
            return [kind.__name__, hex(value) if kind is int else repr(value)]
        if kind in (bytes, bytearray):
            return [kind.__name__, hashlib.sha256(value).hexdigest()]
        if kind is np.ndarray and value.dtype.kind not in "OV":
            digest = hashlib.sha256(value.tobytes()).hexdigest()
            order = "F" if value.flags.fnc else "C"  # in which sums are rounded
            return ["array", value.dtype.str, list(value.shape), order, digest]
        if kind is types.FunctionType or isinstance(value, type):
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self._met)
                self._met.append(value)
            return ["code", self._numbers[id(value)]]
        if id(value) in self._above:
            return ["cycle"]
        self._above.add(id(value))
        described = self._state_of(value, names)
        self._above.remove(id(value))
        return described

    def _state_of(self, value: Any, names: frozenset[str]) -> Any:
        kind = type(value)
        if kind in (list, tuple, dict):
            items = value.items() if kind is dict else value
            return [kind.__name__, [self.of(item) for item in items]]
        if kind in (set, frozenset):
            return [kind.__name__, sorted(map(describe, value))]
        if isinstance(value, types.CodeType):
            return self._code(value)
        if isinstance(value, types.ModuleType):
            name = value.__name__
            return ["module", name, self._asked(vars(value), name, names)]
        reduced = _reduced(value)
        if reduced is not None:
            return ["object", self.of(kind), [self.of(part) for part in reduced]]
        wrapped = [getattr(value, name, None) for name in _WRAPPED]
        return ["some", self.of(kind), _names_of(value), self.of(wrapped)]

    def _class(self, kind: type) -> Any:
        described = [*_names_of(kind), _file_digest(kind.__module__)]
        if not _is_own(kind.__module__):
            return described
        members = {
            name: self.of(member)
            for name, member in sorted(vars(kind).items())
            # Of those with such names, functions alone say what it does.
            if name[:2] != "__" or isinstance(member, (types.FunctionType, *_WRAPPERS))
        }
        return [*described, self.of(kind.__bases__), members]

    def _function(self, function: types.FunctionType) -> Any:
        # A decorator may give a function the name of another module than it is from.
        origin = function.__globals__.get("__name__")
        names = _named(function.__code__)
        return [
            *_names_of(function),
            *(origin, _file_digest(origin)),
            self._code(function.__code__),
            self.of([function.__defaults__, function.__kwdefaults__, vars(function)]),
            [self.of(_content(cell), names) for cell in function.__closure__ or ()],
            self._asked(function.__globals__, origin, names),
        ]

    def _asked(self, space: Any, module: str | None, names: frozenset[str]) -> Any:
        """Describe what some names mean in a module, if that is one's own."""
        known = sorted(names & space.keys()) if _is_own(module) else ()
        return {key: self.of(space[key], names) for key in known}

    def _code(self, code: types.CodeType) -> Any:
        return [
            *(code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags),
            *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
            [self.of(constant) for constant in code.co_consts],
        ]


def _reduced(value: Any) -> list[Any] | None:
    """Return what pickle would keep of an object; nothing if that is a name."""
    kind = type(value)
    if isinstance(value, (*_WRAPPERS, *_SEEDED)):
        return None
    try:
        with warnings.catch_warnings():
            # Of what will not be pickled in some later Python; it may be an error.
            warnings.simplefilter("ignore")
            registered: Any = copyreg.dispatch_table.get(kind)
            reduced = registered(value) if registered else value.__reduce_ex__(4)
    except Exception:  # it cannot be pickled
        reduced = (None, None, getattr(value, "__dict__", None))
    if isinstance(reduced, str):
        return None
    parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
    if len(parts) > 2 and type(parts[2]) is dict:
        made_by = {name: inspect.getattr_static(kind, name, None) for name in parts[2]}
        cached = {n for n, made in made_by.items() if isinstance(made, cached_property)}
        parts[2] = {n: v for n, v in parts[2].items() if n not in cached} or None
    return parts


def _names_of(value: Any) -> list[str]:
    names = (getattr(value, f"__{n}__", None) for n in ("module", "qualname", "name"))
    return [name for name in names if isinstance(name, str)]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is not filled yet
        return cell


def _named(code: types.CodeType) -> frozenset[str]:
    """Return the globals and attributes that some code, and code inside it, names."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(code.co_names).union(*map(_named, inner))


def _is_own(module: str | None) -> bool:
    """Say whether a module is somebody's own: not dpaudit's, Python's, or installed."""
    loaded, top = sys.modules.get(str(module)), str(module).partition(".")[0]
    if path := getattr(loaded, "__file__", None):
        return top != "dpaudit" and _is_own_file(path)
    return loaded is None or top not in sys.stdlib_module_names


@cache
def _is_own_file(path: str) -> bool:
    inside = Path(path).resolve()
    if {"site-packages", "dist-packages"} & set(inside.parts):
        return False
    rooms = map(sysconfig.get_path, ("purelib", "platlib", "stdlib"))
    return not any(inside.is_relative_to(Path(room).resolve()) for room in rooms)


def _file_digest(module: str | None) -> str | None:
    """Return a digest of the source of a module that has no version in the key."""
    if _is_own(module) or str(module).partition(".")[0] in _VERSIONED:
        return None
    try:
        path = Path(inspect.getsourcefile(sys.modules[str(module)]) or "")
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None
