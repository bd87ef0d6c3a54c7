"""A file of audits: results of the finished ones, checkpoints of the others.

One SQLite database. What is written, is written in one transaction, so a process may
be killed at any moment, and several may write at once. Results are inserted and never
changed; the database itself refuses to. Of an audit's checkpoints the furthest is kept
until its result is there.

A store is to be trusted like code: to resume an audit, or to return its result, is to
unpickle what the store holds, which can run anything. Do not resume from a store of
somebody else's; `Store.to_pandas` and ``dpaudit export`` read the figures alone.
"""

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.audit.database import DamagedError, Database

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Checkpoint", "Store"]

_FORMAT = 1
_APPLICATION = int.from_bytes(b"dpau", "big")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, code TEXT NOT NULL, finished TEXT NOT NULL,
    record TEXT NOT NULL, frozen BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TRIGGER IF NOT EXISTS results_are_not_changed BEFORE UPDATE ON results
    BEGIN SELECT RAISE(ABORT, 'results are never changed'); END;
CREATE TRIGGER IF NOT EXISTS results_are_not_deleted BEFORE DELETE ON results
    BEGIN SELECT RAISE(ABORT, 'results are never deleted'); END;
CREATE TABLE IF NOT EXISTS checkpoints (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL, samples INTEGER NOT NULL,
    seconds REAL NOT NULL, frozen BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS checkpoints_of_an_audit ON checkpoints (key, samples);
"""

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
    `~dpaudit.audit.database.StoreWarning`, and a new one begun. The methods that write
    raise `~dpaudit.errors.InputError` if the file cannot be written to, is of a newer
    format, or is a database of something else.

    Parameters
    ----------
    path : str or Path
        On a disk of this machine: SQLite's locks are not safe on network drives.

    Examples
    --------
    >>> import tempfile
    >>> from dpaudit import Pair, PureDP
    >>> from dpaudit.audit import audit
    >>> def noisy_sum(data, rng):
    ...     return data.sum() + rng.laplace()
    >>> work = {"pair": Pair([0.0], [0.0, 1.0]), "claim": PureDP(1.0)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder + "/audits.db")
    ...     first = audit(noisy_sum, **work, max_samples=10, store=store)
    ...     again = audit(noisy_sum, **work, max_samples=10, store=store)
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

        def check(db: sqlite3.Connection) -> None:
            if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                raise DamagedError("its pages do not fit together")
            # What it is already: a file that is read-only is found by writing to it.
            db.execute(f"PRAGMA user_version = {_FORMAT}")

        self._database.write(check)

    def result(self, key: str) -> bytes | None:
        """Return the frozen result of an audit, or None."""

        def find(db: sqlite3.Connection) -> bytes | None:
            rows = db.execute(
                "SELECT record, frozen, digest FROM results WHERE key = ?", (key,)
            )
            for record, frozen, digest in rows:
                _verify(digest, record.encode(), frozen)
                return bytes(frozen)
            return None

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
        row = (key, code, now, text, frozen, _digest(text.encode(), frozen))

        def add(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            db.execute("DELETE FROM checkpoints WHERE key = ?", (key,))

        self._database.write(add)

    def checkpoint(self, key: str) -> Checkpoint | None:
        """Return the furthest checkpoint of an audit, or None."""

        def find(db: sqlite3.Connection) -> Checkpoint | None:
            rows = db.execute(
                "SELECT samples, seconds, frozen, digest FROM checkpoints "
                "WHERE key = ? ORDER BY samples DESC LIMIT 1",
                (key,),
            )
            for samples, seconds, frozen, digest in rows:
                _verify(digest, frozen)
                return Checkpoint(samples, seconds, bytes(frozen))
            return None

        return self._database.write(find)

    def add_checkpoint(self, key: str, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in place of those that are less far."""
        samples, frozen = checkpoint.samples, checkpoint.frozen
        row = (key, samples, checkpoint.seconds, frozen, _digest(frozen))

        def add(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO checkpoints VALUES (NULL, ?, ?, ?, ?, ?)", row)
            db.execute(
                "DELETE FROM checkpoints WHERE key = ? AND samples < ?", (key, samples)
            )

        self._database.write(add)

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
        """
        import pandas as pd

        def rows(db: sqlite3.Connection) -> list[dict[str, Any]]:
            found = db.execute(
                "SELECT key, code, finished, record FROM results ORDER BY rowid"
            )
            return [
                {"key": key, "code": code, "finished": finished, **_flat(record)}
                for key, code, finished, record in found
            ]

        frame = pd.DataFrame(self._database.read(rows))
        return frame.astype({name: float for name in _OPTIONAL if name in frame})


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\0".join(parts)).digest()


def _verify(digest: bytes, *parts: bytes) -> None:
    if digest != _digest(*parts):
        raise DamagedError("an entry is not what was written")


def _flat(record: str) -> dict[str, Any]:
    """Return the fields of a result as numbers and strings."""
    fields = json.loads(record)
    on_data, on_neighbour = fields.pop("drawn")
    flat = {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in fields.items()
        if name not in ("from_store", "interrupted")  # never so of what is kept
    }
    return flat | {"drawn_data": on_data, "drawn_neighbour": on_neighbour}
