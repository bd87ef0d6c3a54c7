"""What is sent to workers: a mechanism and a pair, once each, and what a round asks.

A worker in another process has its own code. Where that is of another version, its
releases are of another mechanism, and nothing would show it. So what is sent names the
modules of one's own that it refers to, with digests of their sources, and for a cluster
the versions of Python, dpaudit and the libraries that do the arithmetic; who opens it
compares them with what is there.
"""

import hashlib
import importlib
import inspect
import io
import pickle
import platform
import random
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from os import getpid
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from dpaudit.audit.keeping.identity import code_version
from dpaudit.audit.sampling.draws import Piece, Source, single_threaded
from dpaudit.batches import Batch
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair

__all__ = ["Parcel", "WorkerSubject", "one_thread"]

Versions = tuple[tuple[str, str], ...]
_GENERATORS = (
    np.random.Generator,
    np.random.BitGenerator,
    np.random.RandomState,
    random.Random,
)
_INSTALLED = {"site-packages", "dist-packages"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_OTHER = (
    "a worker{} has another {}: {}, and this process {}; give it the same, and start "
    "it anew"
)
_LOCK = threading.Lock()
_INSIDE: list[Any] = []  # BLAS's limit, and who works under it
_FOLDERS: set[Path] = set()  # of files that this process was sent


class Parcel(NamedTuple):
    """An object as bytes, with what is to be known of it.

    Parameters
    ----------
    content : bytes
    modules : tuple of tuple
        One's own modules that it refers to, each with a digest of its source.
    generator : str
        The class of a generator in it, if there is one.
    """

    content: bytes
    modules: tuple[tuple[str, str], ...]
    generator: str

    @classmethod
    def of(cls, value: Any, *known: Any, by_value: bool = False) -> "Parcel":
        """Return an object as a parcel.

        Parameters
        ----------
        value : object
        *known : object
            What whoever opens it has already.
        by_value : bool
            Whether code goes along that cannot be imported by its name.

        Raises
        ------
        Exception
            If it cannot be pickled.
        """
        kind, sent = pickle.Pickler, frozenset[str]()
        if by_value:
            cloudpickle = importlib.import_module("cloudpickle")
            kind = cloudpickle.Pickler
            sent = frozenset(cloudpickle.list_registry_pickle_by_value())
        modules: dict[str, str] = {}
        generators: list[str] = []

        class Noting(kind):  # type: ignore[misc, valid-type]
            def persistent_id(self, obj: Any) -> int | None:
                for place, one in enumerate(known):
                    if one is obj:
                        return place
                if isinstance(obj, _GENERATORS):
                    generators.append(type(obj).__name__)
                elif (
                    isinstance(obj, type | FunctionType) and obj.__module__ not in sent
                ):
                    modules.update(_own_source(obj))
                return None

        file = io.BytesIO()
        Noting(file, protocol=5).dump(value)
        found = tuple(sorted(modules.items()))
        return cls(file.getvalue(), found, next(iter(generators), ""))

    def opened(self, *known: Any) -> Any:
        """Return a fresh copy of the object.

        Raises
        ------
        InputError
            If a module is another one here, or cannot be imported.
        """
        if self.modules:
            _check_modules(self.modules)
        return _Opening(io.BytesIO(self.content), known).load()


class _Opening(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, pid: int) -> Any:
        return self._known[pid]


@dataclass(frozen=True)
class WorkerSubject:
    """A mechanism and a pair, as workers hold them.

    Parameters
    ----------
    mechanism : Parcel or Mechanism or callable
        Of a parcel each thread of a worker has a copy of its own.
    pair : Pair
    versions : tuple of tuple
        What whoever draws is to have, see `here`.
    """

    mechanism: Any
    pair: Pair
    versions: Versions = ()
    _copies: dict[int, Any] = field(default_factory=dict, init=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return WorkerSubject, (self.mechanism, self.pair, self.versions)

    @property
    def name(self) -> str:
        """A hash of the content."""
        buffers: list[pickle.PickleBuffer] = []
        parts = self.mechanism, self.pair, self.versions
        digest = hashlib.sha256(
            pickle.dumps(parts, protocol=5, buffer_callback=buffers.append)
        )
        for buffer in buffers:
            digest.update(buffer.raw())
        return digest.hexdigest()

    def __dask_tokenize__(self) -> str:
        return self.name

    def filed(self, folder: Path) -> Path:
        """Write it to a folder where other processes of this machine find it."""
        path = folder / self.name
        with path.open("wb") as file:
            pickle.dump(self, file, protocol=5)
        return path

    @staticmethod
    def found(where: "WorkerSubject | Path") -> "WorkerSubject":
        """Return the subject in a file, which is read once; another as it is."""
        return _from_file(where) if isinstance(where, Path) else where

    @staticmethod
    def remove_files() -> None:
        """Remove what this process has read: nobody else is there to do so."""
        for folder in _FOLDERS:
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    @lru_cache(maxsize=1)
    def here() -> Versions:
        """Return the versions on which results depend, by name, in this process."""
        return (
            ("Python", platform.python_version()),
            ("dpaudit", code_version()),
            *((name, version(name)) for name in _LIBRARIES),
        )

    @staticmethod
    def differences(wanted: Versions) -> str:
        """Say what this process has of another version; nothing if it has none."""
        for (name, theirs), (_, ours) in zip(wanted, WorkerSubject.here(), strict=True):
            if theirs != ours:
                return _OTHER.format(_where(), name, ours, theirs)
        return ""

    def draw(
        self, seed: int, key: int, pieces: Sequence[Piece], reading: Parcel | None
    ) -> tuple[float, list[Any]]:
        """Return the seconds that it took, and what each piece holds, or what is read.

        Raises
        ------
        InputError
            If this process has other versions, or other code.
        MechanismError
            As for `Source.unit`, and if the mechanism has written to the pair.
        """
        if self.versions and (found := self.differences(self.versions)):
            raise InputError(found)
        mechanism = self._mechanism()
        source, read = Source(mechanism, self.pair, seed, key), None
        if reading is not None:
            try:
                read = reading.opened(mechanism, self.pair)
            except Exception:  # an attack that is not known here: releases go back
                pass
        started, answers = time.perf_counter(), []
        for piece in pieces:
            drawn = Batch.join([source.unit(piece.side, *each) for each in piece.units])
            answers.append(drawn if read is None else _read(read, piece, drawn))
        seconds = time.perf_counter() - started
        self.pair.check_untouched()
        return seconds, answers

    def _mechanism(self) -> Any:
        if not isinstance(self.mechanism, Parcel):
            return self.mechanism
        thread = threading.get_ident()
        if thread not in self._copies:
            self._copies[thread] = self.mechanism.opened()
        return self._copies[thread]


def _read(reading: Any, piece: Piece, drawn: Batch) -> Any:
    """Return what is read of a batch; itself, if that fails: so it fails at home."""
    try:
        return reading(piece.side, piece.first, drawn)
    except Exception:
        return drawn


@lru_cache(maxsize=4)
def _from_file(path: Path) -> WorkerSubject:
    _FOLDERS.add(path.parent)
    with path.open("rb") as file:
        return pickle.load(file)


def _where() -> str:
    return f" (process {getpid()} on {platform.node()})"


def _own_source(code: Any) -> dict[str, str]:
    """Return the module by which a class or function is found, with a digest."""
    name = code.__module__
    found: Any = None if name == "__main__" else sys.modules.get(name)
    for part in code.__qualname__.split("."):
        found = getattr(found, part, None)
    digest = _digest(name) if found is code else None
    return {} if digest is None else {name: digest}


@lru_cache(maxsize=256)
def _digest(name: str) -> str | None:
    """Return a digest of the source of a module; None of one that is installed.

    It is that of its first use: what is loaded does not follow its file.
    """
    if name.partition(".")[0] in {"dpaudit", *sys.stdlib_module_names}:
        return None
    try:
        path = Path(inspect.getsourcefile(sys.modules[name]) or "")
        if _INSTALLED & {*path.parts}:
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (KeyError, TypeError, OSError):
        return None


@lru_cache(maxsize=64)
def _check_modules(modules: tuple[tuple[str, str], ...]) -> None:
    for name, digest in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise InputError(
                f"a worker{_where()} cannot import {name}, of which the mechanism is: "
                f"{type(error).__name__}: {error}"
            ) from None
        found = _digest(name)
        if found != digest:
            what = f"source of {name}", str(found)[:12], digest[:12]
            raise InputError(_OTHER.format(_where(), *what))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread while any thread of this process is in such a block."""
    with _LOCK:
        if not _INSIDE:
            _INSIDE.append(single_threaded())
            _INSIDE[0].__enter__()
        _INSIDE.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE.pop()
            if len(_INSIDE) == 1:
                _INSIDE.pop().__exit__(None, None, None)
