"""Where the code under audit is: ``file:line`` of calls, returns and definitions."""

import builtins
import dis
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np
import scipy

__all__ = [
    "called_by_name",
    "is_code",
    "is_returned_next",
    "is_told",
    "place_in",
    "place_of_caller",
    "place_of_failure",
    "reads_by_name",
    "watching_returns",
]

_REPLAY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Where the code under audit is called from.
_EXECUTOR = os.path.join(_REPLAY, "execute", "executor.py")


def _file_of(module: str) -> str:
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return os.path.abspath(found.origin)


# What may stand between the two.
_BETWEEN = [*map(_file_of, ("dpaudit.audit.sampling.draws", "dpaudit.streams"))]
_BETWEEN += [_file_of("dpaudit.seeding")]
# What asks mechanisms, or what they release, for numbers.
_ASKING = [_file_of("dpaudit.batches"), _file_of("dpaudit.outputs")]
_LIBRARY = os.path.dirname(os.__file__)
_IMPORT = "<frozen importlib._bootstrap>"
_INSTALLED = "site-packages", "dist-packages"  # the latter by Debian
# Instructions that load what is called: names by themselves, and attributes.
_BY_THEMSELVES = ("LOAD_GLOBAL", "LOAD_NAME")
_LOADS = ("LOAD_METHOD", "LOAD_ATTR", *_BY_THEMSELVES)
# Libraries of tables, and that train: where noise is added is the line that calls them.
_TRAINING = "jax", "jaxlib", "optax", "jax_privacy", "torch", "opacus"
_CALLED = frozenset({"pandas", "polars", "sklearn", "numba", "llvmlite", *_TRAINING})
_NUMERIC = (os.path.dirname(np.__file__), os.path.dirname(scipy.__file__))


def place_of_caller() -> str:
    """Return ``file:line`` of the code under audit that is running now.

    That is the innermost frame outside NumPy, SciPy, pandas, polars, scikit-learn, what
    trains, Python's own library and this package.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        kind = _kind(file)
        if kind == "code":
            return place_in(file, frame.f_lineno)
        if kind == "end":
            break
        frame = frame.f_back
    return "?"


def is_loading(tape: Any) -> bool:
    """Say, and note on a tape, whether a library that is being loaded runs now.

    What it draws then, for names of files or tables, it draws once in a process.
    """
    loading = len(sys.modules) != tape.modules and _loads_library()
    tape.loading += loading
    return loading


def _loads_library() -> bool:
    frame: FrameType | None = sys._getframe(1)
    inner = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _IMPORT and inner:  # of a module with this body
            return not is_code(inner)
        if _kind(file) == "end":
            break
        inner = inner if file.startswith("<") else file
        frame = frame.f_back
    return False


def place_of_failure(error: BaseException) -> str:
    """Return ``file:line`` of the code under audit that an exception came through last.

    Empty if it came through none.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if _kind(each.filename) == "code"]
    return place_in(ours[-1].filename, ours[-1].lineno or 0) if ours else ""


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the code under audit that is running now, None if none is."""
    while frame is not None and _kind(frame.f_code.co_filename) == "own":
        frame = frame.f_back
    return frame


def spelled(frame: FrameType, name: str) -> bool:
    """Say whether a frame calls one of Python's own functions, by its name."""
    own = vars(builtins)[name]
    stands = frame.f_globals.get(name, own)
    return getattr(stands, "stands_for", stands) is own and _spells(
        frame.f_code, frame.f_lasti, name, _BY_THEMSELVES
    )


def is_returned_next(how: str) -> bool:
    """Say whether the number that is looked at now is all that the mechanism returns.

    So it is where the code under audit that runs now is the mechanism's own function,
    which calls Python's `float` or the method `item` itself (other compiled functions
    ask for a float as well, and make something else of it), and its next instruction
    returns what that leaves: nothing else can depend on the number.
    """
    frame = _caller(sys._getframe(1))
    if frame is None or frame.f_back is None:
        return False
    return (
        os.path.abspath(frame.f_back.f_code.co_filename) in (_EXECUTOR, *_BETWEEN)
        and _returns_next(frame.f_code, frame.f_lasti)
        and (spelled if how == "float" else called_by_name)(frame, how)
    )


@lru_cache(maxsize=4096)
def _returns_next(code: CodeType, at: int) -> bool:
    """Say whether the instruction after one is a plain return, within no handler."""
    if code.co_exceptiontable or code.co_flags & 0x2A0:  # generators and coroutines
        return False
    # A call that was made often may stand at the instruction that prepares it.
    listed = list(dis.get_instructions(code))
    prepared = [each.opname == "PRECALL" for each in listed]
    listed = [
        each
        for each, before in zip(listed, [False, *prepared], strict=False)
        if not before
    ]
    for instruction, following in pairwise(listed):
        if instruction.offset <= at < following.offset:
            return following.opname == "RETURN_VALUE"
    return False


def called_by_name(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in spells the name of the function.

    NumPy's functions are looked up by compiled code as well, which has no frame of its
    own, and which trusts what they return to be an array.
    """
    return _spells(frame.f_code, frame.f_lasti, name, _LOADS)


def reads_by_name(frame: FrameType, name: str) -> bool:
    """Say whether a frame reads an attribute itself, and no compiled code it calls."""
    return _loads_attribute(frame.f_code, frame.f_lasti) == name


@lru_cache(maxsize=4096)
def _loads_attribute(code: CodeType, at: int) -> str | None:
    for each in dis.get_instructions(code):
        if each.offset == at:
            return each.argval if each.opname == "LOAD_ATTR" else None
    return None


@lru_cache(maxsize=4096)
def _spells(code: CodeType, at: int, name: str, by: tuple[str, ...]) -> bool:
    """Say whether the function of the call at an instruction is called so there."""
    listed = list(dis.get_instructions(code))
    # The interpreter may stand at one of the empty slots that follow a call.
    call = [each for each in listed if each.offset <= at][-1]
    if not call.positions or call.positions.col_offset is None:
        return False
    start = call.positions[0], call.positions[2]
    loads = [
        each.argval
        for each in listed
        if each.offset < at
        and each.opname in by
        and each.positions
        and (each.positions[0], each.positions[2]) == start
    ]
    return bool(loads) and loads[-1] == name


def place_in(file: str, line: int) -> str:
    """Return ``file:line``, the file as seen from the current folder if it is below."""
    return _named(file, line, os.getcwd())


@lru_cache(maxsize=65536)
def _named(file: str, line: int, folder: str) -> str:
    # One object to each place: of a tape's million draws most are made at one.
    return f"{_shown(file, folder)}:{line}"


def is_code(file: str) -> bool:
    """Say whether a file is the code under audit: neither a library nor its caller."""
    return _kind(file) == "code" and not any(each in file for each in _INSTALLED)


def is_told(file: str) -> bool:
    """Say whether findings have lines of a file: those of a package, too."""
    return _kind(file) == "code"


@lru_cache(maxsize=4096)
def _shown(file: str, folder: str) -> str:
    try:
        near = os.path.relpath(file, folder)
    except (ValueError, OSError):
        return file
    return file if near.startswith("..") else near


@lru_cache(maxsize=4096)
def _kind(file: str) -> str:
    """Return whether a file is the code under audit, what calls it, or neither."""
    whole = os.path.abspath(file)
    if whole == _EXECUTOR:
        return "end"
    folder = os.path.dirname(whole)
    if file.startswith("<") or whole in (*_BETWEEN, *_ASKING):
        return "own"
    libraries = (_REPLAY, *_NUMERIC, *_called_elsewhere())
    if any(f"{folder}/".startswith(f"{each}/") for each in libraries):
        return "own"
    _, installed, path = folder.rpartition(f"{os.sep}site-packages{os.sep}")
    if installed and path.split(os.sep)[0] in _CALLED:
        return "own"
    within = f"{folder}/".startswith(f"{_LIBRARY}/")
    return "own" if within and "site-packages" not in folder else "code"


def _called_elsewhere() -> Iterator[str]:
    """Give the folders of libraries that are called, wherever they are installed."""
    for name in _CALLED & sys.modules.keys():
        yield from map(os.path.abspath, getattr(sys.modules[name], "__path__", ()))


@contextmanager
def watching_returns() -> Iterator[list[str]]:
    """Keep ``file:line`` of the last return, or raise, of the audited code in a list.

    By a profiler's hook; where there is one already (a measurement of coverage, say),
    the list stays empty.
    """
    last: list[str] = []
    if sys.getprofile() is not None:
        yield last
        return

    def hook(frame: Any, event: str, argument: Any) -> None:
        if event == "return" and is_code(frame.f_code.co_filename):
            last[:] = [place_in(frame.f_code.co_filename, frame.f_lineno)]

    sys.setprofile(hook)
    try:
        yield last
    finally:
        sys.setprofile(None)
