"""An SQLite file that may be killed, shared, damaged, or of another version.

Every access opens the file, does one transaction, and closes it: nothing is held
between them that a fork, a second process or an end without notice could spoil.
"""

import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from dpaudit.errors import InputError

__all__ = ["DamagedError", "Database", "StoreWarning"]

T = TypeVar("T")

_PATIENCE = 60.0  # seconds to wait for another writer
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class StoreWarning(UserWarning):
    """A store was found damaged, or could not be written to in the middle of work."""


class DamagedError(Exception):
    """The file is no database, or what it holds is not what was written."""


class Database:
    """One file, of one application and format.

    Parameters
    ----------
    path : Path
    schema : str
        Statements that make the tables of a new file.
    application : int
        What tells the file from databases of other applications.
    format_ : int
        Files of newer formats are left alone.
    """

    def __init__(self, path: Path, schema: str, application: int, format_: int) -> None:
        self.path = path
        self._schema, self._application, self._format = schema, application, format_

    def write(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out one transaction; on a new file if there is none, or a damaged one.

        Raises
        ------
        InputError
            If the file cannot be written to, is of a newer format, or is a database
            of something else.
        """
        if not self.path.parent.is_dir():
            raise InputError(f"cannot write {str(self.path)!r}: no such folder")
        while True:
            identity = self._identity()
            try:
                with self._connection("rwc") as db:
                    self._check(db)
                    db.execute("BEGIN IMMEDIATE")
                    if not db.execute("PRAGMA user_version").fetchone()[0]:
                        self._create(db)
                    done = action(db)
                    db.execute("COMMIT")
                    return done
            except DamagedError as error:
                if self._identity() == identity:  # else somebody else was quicker
                    self._set_aside(error)

    def read(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Read from a file that exists.

        Raises
        ------
        InputError
            If there is none, or it cannot be read.
        """
        if not self.path.is_file():
            raise InputError(f"cannot read {str(self.path)!r}: no such file")
        try:
            with self._connection("ro") as db:
                self._check(db)
                return action(db)
        except DamagedError as error:
            raise InputError(f"{str(self.path)!r} is damaged: {error}") from error

    @contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        """Open the file for a moment; say what is wrong with it in a sentence."""
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            connection = sqlite3.connect(
                address, uri=True, timeout=_PATIENCE, isolation_level=None
            )
            with closing(connection) as db:
                yield db
        except (sqlite3.Error, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _CORRUPT:
                raise DamagedError(str(error)) from error
            verb = "read" if mode == "ro" else "write"
            raise InputError(f"cannot {verb} {str(self.path)!r}: {error}") from error

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse, before anything is written, what is not a store or is a newer one."""
        ((application,),) = db.execute("PRAGMA application_id")
        ((format_,),) = db.execute("PRAGMA user_version")
        ((tables,),) = db.execute("SELECT COUNT(*) FROM sqlite_master")
        if application != self._application and (tables or application or format_):
            raise InputError(f"{str(self.path)!r} is a database of something else")
        if format_ > self._format:
            raise InputError(
                f"{str(self.path)!r} is a store of format {format_}, and this dpaudit "
                f"knows formats up to {self._format}: a newer one reads it"
            )

    def _create(self, db: sqlite3.Connection) -> None:
        # The mode is a property of the file, and cannot change in a transaction.
        db.execute("ROLLBACK")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        statement = ""
        for line in self._schema.splitlines():
            statement += line + "\n"
            if sqlite3.complete_statement(statement):
                db.execute(statement)
                statement = ""
        db.execute(f"PRAGMA application_id = {self._application}")
        db.execute(f"PRAGMA user_version = {self._format}")

    def _set_aside(self, error: DamagedError) -> None:
        number = 1
        while (aside := self._beside(f".corrupt-{number}")).exists():
            number += 1
        for suffix in ("-wal", "-shm", ""):
            part = self._beside(suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
        warnings.warn(
            f"the store {str(self.path)!r} is damaged ({error}): it was set aside as "
            f"{aside.name!r}, and a new one begun",
            StoreWarning,
            stacklevel=2,
        )

    def _identity(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except OSError:
            return None

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)
