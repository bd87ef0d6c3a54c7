"""What long commands have finished: one record for each unit of work, in one file.

An SQLite file (`dpaudit.audit.keeping.database`): it may be killed at any moment,
shared by several processes, and is set aside where it is damaged. Beside each record
stand what the unit was, its seed, the versions of the code and of what it runs on, the
machine, the date, how long it took, and a digest of all that.

Records of other versions are never used. They stay in the file as history, and are
named when it is read. A record that is not what was written is named too, and its unit
carried out again.

`save_json` and `load_json` keep what a command found, for the report to read later. A
folder that a command writes has all of its files at once, or none (`staging`).
"""

import hashlib
import json
import os
import platform
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from dpaudit.atomic import replacing
from dpaudit.audit.keeping.database import Database, tell
from dpaudit.audit.keeping.identity import code_version
from dpaudit.errors import InputError

__all__ = ["WorkStore"]

STORE = "work.db"
"""Its name in the folder of what a command writes."""

INDEX = "index.html"

LIST = ".written"
"""The file of a folder with the paths of what was last written there, a line each."""

_FORMAT = 1
_APPLICATION = int.from_bytes(b"dpwk", "big")
_SCHEMA = """
CREATE TABLE units (
    name TEXT NOT NULL, versions TEXT NOT NULL, seed INTEGER NOT NULL,
    record TEXT NOT NULL, seconds REAL NOT NULL, machine TEXT NOT NULL,
    finished TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (versions, name)
);
"""
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
# Modules that show what was measured: another picture needs no new measurement.
_SHOWS = {"escaping", "figures", "findings", "judgement", "lines"}
_SHOWS |= {"page", "plots", "power_law", "section", "svg", "tables", "wall", "words"}


@cache
def versions() -> dict[str, str]:
    """Return the versions of all that a record depends on."""
    root, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.stem not in _SHOWS and path.parent.name != "site":
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return {
        "dpaudit": f"{code_version()}.{digest.hexdigest()[:12]}",
        "Python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


@cache
def machine() -> str:
    """Return a few words on this machine: its name, system, processor and cores."""
    return f"{platform.node()}, {platform.platform()}, {os.cpu_count()} cores"


def as_kept(record: Any) -> Any:
    """Return a record as it is when it comes back from a file.

    >>> as_kept({"x": np.float64(0.1), "y": (1, float("nan"))})
    {'x': 0.1, 'y': [1, nan]}
    """
    return json.loads(json.dumps(record, default=plain_number))


class WorkStore:
    """Finished units of work in one file, which is made when the first is kept.

    The methods raise `~dpaudit.errors.InputError` if the file cannot be read or written
    to, is of another format, or is a database of something else.

    ``path``: on a disk of this machine. Its folder is created if need be. ``found``:
    the `versions` whose records count, and under which new ones are written.
    """

    def __init__(self, path: Path, found: dict[str, str] | None = None) -> None:
        self.path = path
        self._versions = json.dumps(found or versions())
        self._database = Database(path, _SCHEMA, _APPLICATION, _FORMAT)

    def prepare(self) -> None:
        """Make sure that work can be kept here."""
        _make_folder(self.path)
        self._database.prepare()

    def held(self) -> AbstractContextManager[None]:
        """Return a context in which it takes a hundredth of the time to write."""
        return self._database.held() if self.path.is_file() else nullcontext()

    def load(self, names: Collection[str]) -> dict[str, Any]:
        """Return the records of those units that are finished, in the given order.

        Warns
        -----
        StoreWarning
            Of records that are damaged, and of those of other versions.
        """
        if not self.path.is_file():
            return {}

        def find(db: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
            rows = db.execute(
                "SELECT name, versions, seed, record, seconds, machine, finished, "
                "digest FROM units WHERE versions = ?",
                (self._versions,),
            ).fetchall()
            others = db.execute(
                "SELECT versions, COUNT(*) FROM units WHERE versions != ? "
                "GROUP BY versions ORDER BY MIN(finished)",
                (self._versions,),
            ).fetchall()
            return rows, others

        nothing: tuple[list[Any], list[Any]] = ([], [])
        rows, others = self._database.read(find, nothing)
        known = {row[0]: row[3] for row in rows if _digest(*row[:-1]) == row[-1]}
        if damaged := len(rows) - len(known):
            tell(
                f"{damaged:,} of {len(rows):,} records in {str(self.path)!r} are not "
                "what was written: they are set aside, and their work is done again"
            )
        if others and not known:
            tell(
                f"the {sum(n for _, n in others):,} records in {str(self.path)!r} are "
                f"of other versions ({_told(others[-1][0])}): they are set aside, and "
                "the work is done again"
            )
        return {name: json.loads(known[name]) for name in names if name in known}

    def add(self, name: str, seed: int, record: Any, *, seconds: float) -> None:
        """Keep the record of a finished unit.

        ``name``: what it is: nothing else decides its record, under these versions.
        ``record``: JSON-ready but for NumPy's numbers; may hold NaN and infinities.
        ``seconds``: what it took.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(record, default=plain_number)
        row = (name, self._versions, seed, text, round(seconds, 4), machine(), now)
        self._database.write(
            lambda db: db.execute(
                "INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, _digest(*row)),
            )
        )


def _make_folder(path: Path) -> None:
    """Make the folder of a file, if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error


def _digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _told(found: str) -> str:
    try:
        return ", ".join(f"{name} {one}" for name, one in json.loads(found).items())
    except (ValueError, AttributeError):
        return "which ones cannot be read"


def plain_number(value: object) -> object:
    """Return one of NumPy's numbers as one of Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not a number: {value!r}")


T = TypeVar("T")


def save_json(path: Path, found: dict[str, Any]) -> None:
    """Write a file, its folder too if need be; NumPy's numbers are numbers.

    Raises `InputError` if it cannot be written; `ValueError` if a number is NaN or
    infinite.
    """
    text = json.dumps(found, indent=1, allow_nan=False, default=plain_number) + "\n"
    _make_folder(path)
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def load_json(path: Path, parse: Callable[[Any], T], command: str) -> T | None:
    """Return what a file holds, None if there is none.

    ``parse``: makes an object of what the JSON says. ``command``: what writes such a
    file.

    Raises `InputError` if the file is something else.
    """
    if not path.is_file():
        return None
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error!r}; remove it, or write it anew with "
            f"{command}"
        ) from error


@contextmanager
def staging(output: Path) -> Iterator[Path]:
    """Give a folder whose files move into `output` if the block succeeds.

    It lies inside `output`, so that moving a file is a rename even where `output` is a
    mount point; a reader sees each file before or after, never in between. What an
    earlier block left there and this one does not write goes: pages of which the first
    one knows no more would say what was not found. `LIST` tells it from files of
    others, which stay.
    """
    missing = [each for each in (output, *output.parents) if not each.exists()]
    inside = output / f".{secrets.token_hex(4)}.partial"
    try:
        try:
            inside.mkdir(parents=True)
            yield inside
            files = [path for path in sorted(inside.rglob("*")) if path.is_file()]
            # The first page comes last: when it is new, so is all that it refers to.
            files.sort(key=lambda path: path == inside / INDEX)
            names = {path.relative_to(inside).as_posix() for path in files}
            if names:
                earlier = _listed(output)
                _list(output, names | earlier)
                for path in files:
                    place = output / path.relative_to(inside)
                    place.parent.mkdir(exist_ok=True)
                    path.replace(place)
                _remove(output, earlier - names)
                _list(output, names)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot write the report to {str(output)!r}: {reason}"
            ) from error
    finally:
        shutil.rmtree(inside, ignore_errors=True)
        for folder in missing:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def put(folder: Path, name: str, text: str) -> None:
    """Write a file into a folder, or into a folder of it."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _list(output: Path, names: set[str]) -> None:
    put(output, LIST, "".join(f"{name}\n" for name in sorted(names)))


def _listed(output: Path) -> set[str]:
    """Return the files that are listed; none that would lie outside the folder."""
    if not (output / LIST).is_file():
        return set()
    lines = (output / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {PurePosixPath(line) for line in lines if line}
    return {str(p) for p in paths if not p.is_absolute() and ".." not in p.parts}


def _remove(output: Path, names: set[str]) -> None:
    for place in (output / name for name in names):
        if place.is_file():
            place.unlink()
        if place.parent.is_dir() and not any(place.parent.iterdir()):
            place.parent.rmdir()
