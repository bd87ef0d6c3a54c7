"""Where a mechanism is defined, and what its code can reach by its names.

The code can reach functions, and classes and objects of its own. Names are those of a
function's module, of the functions around it, and of modules of the code under audit
that it names. No code runs.
"""

import dis
import inspect
import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import dpaudit
from dpaudit.audit.replay.follow.places import is_code, place_in
from dpaudit.streams import FunctionMechanism

__all__ = [
    "file_of",
    "is_foreign",
    "names_of",
    "part_of",
    "place_of_definition",
    "reached",
    "spaces_of",
]

_OURS = os.path.dirname(os.path.abspath(dpaudit.__file__)) + os.sep
_METHODS = (FunctionType, classmethod, staticmethod, property)


def reached(*begun: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield what the first can reach, each once, with the class that holds it.

    Parameters
    ----------
    *begun : tuple
        A mechanism and None; functions, and the classes that hold them.
    """
    waiting: list[tuple[Any, Any]] = [*begun]
    mechanism = begun[0][0]
    seen: set[int] = set()
    while waiting:
        thing, owner = waiting.pop(0)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        found: list[Any] = []
        if isinstance(thing, partial):
            found = [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, MethodType):
            found = [thing.__self__]
        elif isinstance(thing, FunctionType):
            if not is_foreign(thing.__code__.co_filename):
                continue
            yield thing, owner
            names = sorted(names_of(thing.__code__))
            found = [space.get(name) for space in spaces_of(thing) for name in names]
            for cell in thing.__closure__ or ():
                with suppress(ValueError):  # it is empty yet
                    found.append(cell.cell_contents)
        waiting += [(each, None) for each in found if _leads_on(each)]
        if isinstance(thing, partial | MethodType):
            continue
        wrapped = part_of(thing, "__wrapped__")
        if isinstance(thing, FunctionType) or wrapped is not None:
            waiting.append((wrapped, owner))
        elif thing is mechanism or _leads_on(thing):
            yield thing, owner
            kind = thing if isinstance(thing, type) else type(thing)
            waiting += [
                (getattr(each, "fget", None) or getattr(each, "__func__", each), kind)
                for base in kind.__mro__
                for each in vars(base).values()
                if isinstance(each, _METHODS)
            ]
            held = part_of(thing, "__dict__")
            if kind is not thing and isinstance(held, dict):
                waiting += [(each, None) for each in held.values() if _leads_on(each)]


def spaces_of(function: FunctionType) -> list[dict[str, Any]]:
    """Return what a function's names may be of: its module, and modules it names."""
    spaces, names = [function.__globals__], sorted(names_of(function.__code__))
    for space in spaces:
        for each in map(space.get, names):
            if isinstance(each, ModuleType) and is_foreign(file_of(each)):
                if not any(vars(each) is known for known in spaces):
                    spaces.append(vars(each))
    return spaces


def load_imports(mechanism: Any) -> None:
    """Load the libraries that the code of a mechanism imports as it runs.

    Those that load within an execution would find functions and types of Python and
    NumPy replaced, and keep them, or fail. One's own modules are only read here.
    """
    waiting = [
        each.__code__
        for each, _ in reached((mechanism, None))
        if isinstance(each, FunctionType)
    ]
    seen: set[str] = set()
    while waiting:
        for name in sorted(_imported(waiting.pop()) - seen - sys.modules.keys()):
            seen.add(name)
            with suppress(Exception):  # the code will say so, if it comes there
                found: Any = find_spec(name.partition(".")[0])
                if is_foreign(found.origin or "<>"):
                    waiting.append(found.loader.get_code(found.name))
                else:
                    import_module(name)


def _imported(code: CodeType) -> set[str]:
    """Return the modules that code imports by their whole names, in functions too."""
    names = set[str]()
    last: list[Any] = [None, None]  # of IMPORT_NAME: how many dots, and which parts
    for each in dis.get_instructions(code):
        level, parts = last
        if each.opname == "IMPORT_NAME" and not level:
            names |= {each.argval, *(f"{each.argval}.{part}" for part in parts or ())}
        last = [last[1], each.argval]
    within = [each for each in code.co_consts if isinstance(each, CodeType)]
    return names.union(*map(_imported, within))


def _leads_on(thing: Any) -> bool:
    """Say whether something is called, or of a class of the code under audit."""
    kind = type(thing)
    return callable(thing) or is_foreign(file_of(sys.modules.get(kind.__module__)))


def part_of(thing: Any, name: str) -> Any:
    """Return an attribute of an object, None if it has none; no code of it runs."""
    if name == "__dict__":
        try:
            return object.__getattribute__(thing, name)
        except AttributeError:
            return None
    if type(thing) is FunctionType and not hasattr(FunctionType, name):
        return vars(thing).get(name)
    return inspect.getattr_static(thing, name, None)


def file_of(module: Any) -> str:
    """Return the file of a module, "<>" if it has none, or is no module."""
    known = vars(module) if isinstance(module, ModuleType) else {}
    return known.get("__file__") or "<>"


def is_foreign(file: str) -> bool:
    """Say whether a file is code under audit that is no part of this package."""
    return is_code(file) and not os.path.abspath(file).startswith(_OURS)


def names_of(code: CodeType) -> set[str]:
    """Return the names that code looks up, that of functions within it too."""
    within = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(names_of, within))


def place_of_definition(mechanism: Any) -> str:
    """Return ``file:line`` where a mechanism is defined, "?" if that is not known."""
    kind = FunctionMechanism.written(mechanism)
    kind = getattr(kind, "release", getattr(kind, "draw", kind))
    code = getattr(getattr(kind, "__func__", kind), "__code__", None)
    if code is None:
        return "?"
    line = first = code.co_firstlineno
    last = max((at for *_, at in code.co_lines() if at), default=first)
    if linecache.getline(code.co_filename, first).lstrip().startswith("@"):
        below = range(first + 1, last + 1)  # decorators may have several lines
        begins = "def ", "async def ", "class "
        lines = ((at, linecache.getline(code.co_filename, at)) for at in below)
        line = next((at for at, e in lines if e.lstrip().startswith(begins)), first)
    return place_in(code.co_filename, line)
