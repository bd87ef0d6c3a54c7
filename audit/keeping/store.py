"""A file of audits: results of the finished ones, checkpoints of the others.

One SQLite database. What is written, is written in one transaction, so a process may
be killed at any moment, and several may write at once. Results are inserted and never
changed; the database itself refuses to. Of an audit's checkpoints the furthest is kept
until its result is there, and the outcomes of its rounds. Every row has a digest of
all that it holds: what is not what was written is never used.

A store is to be trusted like code: to resume an audit, or to return its result, is to
unpickle what the store holds, which can run anything. Do not resume from a store of
unknown origin; `Store.to_pandas` and ``dpaudit export`` read the figures alone.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.audit.keeping.database import DamagedError, Database, tell

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Checkpoint", "Store"]

_FORMAT = 3
_APPLICATION = int.from_bytes(b"dpau", "big")
_SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY, code TEXT NOT NULL, finished TEXT NOT NULL,
    record TEXT NOT NULL, frozen BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TRIGGER results_are_not_changed BEFORE UPDATE ON results
    BEGIN SELECT RAISE(ABORT, 'results are never changed'); END;
CREATE TRIGGER results_are_not_deleted BEFORE DELETE ON results
    BEGIN SELECT RAISE(ABORT, 'results are never deleted'); END;
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL, samples INTEGER NOT NULL,
    seconds REAL NOT NULL, frozen BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX checkpoints_of_an_audit ON checkpoints (key, samples);
CREATE TABLE rounds (
    key TEXT NOT NULL, number INTEGER NOT NULL, outcome BLOB NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (key, number)
);
"""
_RESULT = "SELECT key, code, finished, record, frozen, digest FROM results WHERE "
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
# Of a result: what is never so of one that is kept, and what is no figure.
_LEFT_OUT = ("from_store", "interrupted", "trajectory", "roc")
_OPTIONAL = ("mu_lower", "detectable_epsilon")  # numbers, or None


@dataclass(frozen=True)
class Checkpoint:
    """An audit between two rounds.

    Parameters
    ----------
    samples : int
        Releases a side so far.
    seconds : float
        Work so far.
    frozen : bytes
        Its state.
    """

    samples: int
    seconds: float
    frozen: bytes


class Store:
    """The audits in one file, which is made when the first is begun.

    A file that is damaged is renamed to FILE.corrupt-1 (or -2, ...) with a
    `~dpaudit.audit.keeping.database.StoreWarning`, and a new one begun. The methods
    that write raise `~dpaudit.errors.InputError` if the file cannot be written to, is
    of another format, or is a database of something else. Results are read from files,
    too, that cannot be written to.

    Parameters
    ----------
    path : str or Path
        On a disk of this machine: SQLite's locks are not safe on network drives.

    Examples
    --------
    >>> import tempfile
    >>> from dpaudit import Pair, PureDP
    >>> from dpaudit.audit import Run, audit
    >>> def noisy_sum(data, rng):
    ...     return data.sum() + rng.laplace()
    >>> work = {"pair": Pair([0.0], [0.0, 1.0]), "claim": PureDP(1.0)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder + "/audits.db")
    ...     first = audit(noisy_sum, **work, budget=10, run=Run(store=store))
    ...     again = audit(noisy_sum, **work, budget=10, run=Run(store=store))
    ...     frame = store.to_pandas()
    >>> first.from_store, again.from_store, first.log_evidence == again.log_evidence
    (False, True, True)
    >>> frame["samples"].tolist()
    [10]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._database = Database(self.path, _SCHEMA, _APPLICATION, _FORMAT)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def prepare(self) -> None:
        """Make sure that work can be kept here."""
        self._database.prepare()

    def held(self) -> AbstractContextManager[None]:
        """Return a context in which it takes a hundredth of the time to write."""
        return self._database.held()

    def result(self, key: str) -> bytes | None:
        """Return the frozen result of an audit, or None. The file may be read-only."""
        if not self._database.place.is_file():
            return None

        def find(db: sqlite3.Connection) -> bytes | None:
            for row in db.execute(_RESULT + "key = ?", (key,)):
                return bytes(self._verified((key, *row[1:]))[-1])
            return None

        try:
            return self._database.read(find, None)
        except DamagedError:
            return self._database.write(find)

    def add_result(
        self, key: str, code: str, record: dict[str, Any], frozen: bytes
    ) -> None:
        """Keep the result of an audit, unless there is one; drop its checkpoints.

        Parameters
        ----------
        key, code : str
            Of the audit, and the version of the code that carried it out.
        record : dict
            Its figures, JSON-ready.
        frozen : bytes
            All of it.
        """
        text = json.dumps(record, allow_nan=False)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        row = _signed(key, code, now, text, frozen)

        def add(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            db.execute("DELETE FROM checkpoints WHERE key = ?", (key,))
            db.execute("DELETE FROM rounds WHERE key = ?", (key,))

        self._database.write(add)

    def checkpoint(self, key: str) -> Checkpoint | None:
        """Return the furthest checkpoint of an audit, or None."""

        def find(db: sqlite3.Connection) -> Checkpoint | None:
            for row in db.execute(
                "SELECT samples, seconds, frozen, digest FROM checkpoints "
                "WHERE key = ? ORDER BY samples DESC, number DESC LIMIT 1",
                (key,),
            ):
                return Checkpoint(*self._verified((key, *row))[1:])
            return None

        return self._database.write(find)

    def add_checkpoint(self, key: str, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in place of those that are less far."""

        def add(db: sqlite3.Connection) -> None:
            row = checkpoint.samples, float(checkpoint.seconds), checkpoint.frozen
            db.execute(
                "INSERT INTO checkpoints VALUES (NULL, ?, ?, ?, ?, ?)",
                _signed(key, *row),
            )
            db.execute(
                "DELETE FROM checkpoints WHERE key = ? AND samples < ?",
                (key, checkpoint.samples),
            )

        self._database.write(add)

    def add_round(self, key: str, number: int, outcome: bytes) -> bytes:
        """Put the outcome of a round on record; return the one that is there then.

        Parameters
        ----------
        key : str
        number : int
            Counted from 0.
        outcome : bytes
        """

        def add(db: sqlite3.Connection) -> bytes:
            db.execute(
                "INSERT OR IGNORE INTO rounds VALUES (?, ?, ?, ?)",
                _signed(key, number, outcome),
            )
            for row in db.execute(
                "SELECT outcome, digest FROM rounds WHERE key = ? AND number = ?",
                (key, number),
            ):
                return bytes(self._verified((key, number, *row))[-1])
            raise self._damaged()

        return self._database.write(add)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the results, one row each in the order in which they were finished.

        Returns
        -------
        pandas.DataFrame
            The columns are ``key``, ``code``, ``finished`` (ISO 8601, UTC), and the
            fields of an `AuditResult` under their names, in plain numbers and strings:
            ``drawn`` is in two columns, ``exact``, ``warnings`` and ``witness`` are
            JSON.

        Raises
        ------
        InputError
            If there is no such file, or it cannot be read.

        Warns
        -----
        StoreWarning
            Of results that are damaged and left out.
        """
        frame, damage = self.table()
        for sentence in damage:
            tell(sentence)
        return frame

    def table(self) -> tuple["pd.DataFrame", list[str]]:
        """Return what `to_pandas` does, and a sentence on each result left out."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        damage: list[str] = []

        def read(db: sqlite3.Connection) -> None:
            for place in sorted(_places(db, damage)):
                try:
                    row = db.execute(_RESULT + "rowid = ?", (place,)).fetchone()
                    if row is None:  # so says one of two lists
                        raise self._damaged()
                    key, code, finished, record, _ = self._verified(row)
                    told = {"key": key, "code": code, "finished": finished}
                    rows.append({**told, **_flat(record)})
                except (sqlite3.DatabaseError, DamagedError, *_MALFORMED):
                    damage.append(
                        f"result {place} of {str(self.path)!r} is not what was "
                        "written, and is left out"
                    )

        self._database.read(read, None)
        frame = pd.DataFrame(rows)
        frame = frame.astype({name: float for name in _OPTIONAL if name in frame})
        return frame, damage

    def _verified(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return a row without the digest at its end, if that is the right one."""
        if _signed(*row[:-1]) != tuple(row):
            raise self._damaged()
        return tuple(row[:-1])

    def _damaged(self) -> DamagedError:
        return DamagedError(self.path, "an entry is not what was written")


def _signed(*values: Any) -> tuple[Any, ...]:
    """Return values with a digest of them, of their types and of their order."""
    digests = (
        hashlib.sha256(
            f"{type(value).__name__}:".encode()
            + (value if isinstance(value, bytes) else repr(value).encode())
        ).digest()
        for value in values
    )
    return *values, hashlib.sha256(b"".join(digests)).digest()


def _places(db: sqlite3.Connection, damage: list[str]) -> set[int]:
    """Return where results are, by the table and by its index; either may be broken."""
    places: set[int] = set()
    for source in ("NOT INDEXED", "INDEXED BY sqlite_autoindex_results_1"):
        try:
            for (place,) in db.execute(f"SELECT rowid FROM results {source}"):
                places.add(place)
        except sqlite3.DatabaseError as error:
            damage.append(f"there may be results that cannot be found: {error}")
    return places


def _flat(record: str) -> dict[str, Any]:
    """Return the fields of a result as numbers and strings."""
    fields = json.loads(record)
    on_data, on_neighbour = fields.pop("drawn")
    if isinstance(fields.get("claim"), dict):  # earlier versions wrote the text alone
        fields["claim"] = fields["claim"]["text"]
    flat = {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in fields.items()
        if name not in _LEFT_OUT
    }
    for name in _OPTIONAL:
        if flat.get(name) is not None:
            flat[name] = float(flat[name])
    for name, value in flat.items():
        if isinstance(value, str):  # names of files need be no text, as Arrow has it
            raw = value.encode("utf-16", "surrogatepass")
            flat[name] = raw.decode("utf-16", "replace")
    return flat | {"drawn_data": on_data, "drawn_neighbour": on_neighbour}
