"""An SQLite file that may be killed, shared, damaged, or of another version.

Every access opens the file, does one transaction, and closes it: nothing is used twice
that a fork, a second process or an end without notice could spoil.
"""

import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from os import getpid
from pathlib import Path
from typing import Any, TypeVar

from dpaudit.errors import DPAuditError, InputError

__all__ = ["DamagedError", "Database", "StoreWarning", "tell"]

T = TypeVar("T")

_HOLDERS: list[tuple[Path, int]] = []  # files that are held open, and by which process
_PATIENCE = 60.0  # seconds to wait for another writer
_PAUSE = 0.01
_TRIES = 3  # to begin anew with a damaged file
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NO_ROOM = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_MADE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


class StoreWarning(UserWarning):
    """A store was found damaged, or could not be written to in the middle of work."""


class DamagedError(InputError):
    """The file is no database, or what it holds is not what was written."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(f"the store {str(path)!r} is damaged ({reason})")


def tell(message: str) -> None:
    """Warn of what befell a store. Work goes on, even where warnings are errors."""
    try:
        warnings.warn(message, StoreWarning, stacklevel=3)
    except StoreWarning:
        print(f"dpaudit: {message}", file=sys.stderr)


class _NoRoomBeside(InputError):
    """A file cannot be opened, perhaps for want of others beside it."""


def _text(raw: bytes) -> str:
    """Return a text that may not be one, so that it can be compared."""
    return raw.decode("utf-8", "surrogateescape")


@cache
def _made_by(schema: str) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(schema)
        return new.execute(_MADE).fetchall()


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
        Files of other formats are left alone.
    """

    def __init__(self, path: Path, schema: str, application: int, format_: int) -> None:
        self.path = path
        # Absolute: the code under audit may change the current folder.
        self.place = path.absolute()
        self._schema, self._application, self._format = schema, application, format_

    def write(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out one transaction; on a new file if there is none, or a damaged one.

        Raises
        ------
        InputError
            If the file cannot be written to, is of another format, or is a database
            of something else.
        """
        if not self.place.parent.is_dir():
            raise InputError(f"cannot write {str(self.path)!r}: no such folder")
        for _ in range(_TRIES):
            identity = self._identity()
            try:
                with self._connection("mode=rwc") as db:
                    db.execute("BEGIN IMMEDIATE")
                    if self._is_blank(db):
                        self._create(db)
                    done = action(db)
                    db.execute("COMMIT")
                    return done
            except DamagedError as error:
                if self._identity() == identity:  # else another process was quicker
                    self._set_aside(error)
        raise InputError(
            f"cannot write {str(self.path)!r}: it is damaged again and again"
        )

    def prepare(self) -> None:
        """Make sure that it can be written to, as `write` does, and is whole."""

        def check(db: sqlite3.Connection) -> None:
            if db.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                raise DamagedError(self.path, "its pages do not fit together")
            # What it is already: a file that is read-only is found by writing to it.
            db.execute(f"PRAGMA user_version = {self._format}")

        self.write(check)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep a file that exists open, though every access opens it anew.

        The last to close a file has to tidy it up, which takes a hundred times as
        long as a short transaction. A process that is forked meanwhile must leave the
        file alone, because SQLite's locks would not hold in it: it is refused.
        """
        with self._connection("mode=rw") as db:
            self._is_blank(db)  # not before something is read is it open
            _HOLDERS.append((self.place, getpid()))
            try:
                yield
            finally:
                _HOLDERS.remove((self.place, getpid()))

    def read(self, action: Callable[[sqlite3.Connection], T], blank: T) -> T:
        """Read from a file that exists, and need not be one that can be written to.

        Parameters
        ----------
        action : callable
        blank : object
            What to return if nothing was kept in the file yet.

        Raises
        ------
        InputError
            If there is none, or it cannot be read; a `DamagedError` if that is why.
        """
        if not self.place.is_file():
            raise InputError(f"cannot read {str(self.path)!r}: no such file")

        def carried_out(options: str) -> T:
            with self._connection(options) as db:
                db.execute("BEGIN")
                return blank if self._is_blank(db) else action(db)

        try:
            # Not "ro": who may not write cannot remove the two files either that
            # SQLite puts beside it while it is open.
            return carried_out("mode=rw")
        except _NoRoomBeside as error:
            # It may not put them there. It can do without them where nothing waits in
            # one of them to be written.
            if self._beside("-wal").exists() and self._beside("-wal").stat().st_size:
                raise InputError(
                    f"{error}; its last changes are in {self._beside('-wal').name!r}: "
                    "copy both files to a folder that can be written to"
                ) from error
            return carried_out("mode=ro&immutable=1")

    @contextmanager
    def _connection(self, options: str) -> Iterator[sqlite3.Connection]:
        """Open the file for a moment; say what is wrong with it in a sentence."""
        verb = "write" if options == "mode=rwc" else "read"
        cannot = f"cannot {verb} {str(self.path)!r}"
        if any(held == self.place and holder != getpid() for held, holder in _HOLDERS):
            raise InputError(
                f"{cannot}: this process was forked from one that has it open"
            )
        address = f"{self.place.as_uri()}?{options}"
        try:
            # Only who opened it uses it, but what is left of an audit that was given up
            # may be collected, and then closed, in any thread.
            connection = sqlite3.connect(
                address,
                uri=True,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            with closing(connection) as db:
                db.text_factory = _text
                # A process that is killed loses nothing, a machine without power the
                # last moments.
                db.execute("PRAGMA synchronous = NORMAL")
                yield db
        except DPAuditError:
            raise
        except (sqlite3.Error, OverflowError, ValueError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _CORRUPT:
                raise DamagedError(self.path, error) from error
            if code in _NO_ROOM and verb == "read":
                raise _NoRoomBeside(f"{cannot}: {error}") from error
            raise InputError(f"{cannot}: {error}") from error

    def _is_blank(self, db: sqlite3.Connection) -> bool:
        """Say whether a file is a new one; refuse what is no store of this format.

        A store has the tables, indices and triggers of a new one to the letter: a view
        in the place of a table may have any number of rows, or no end.
        """
        ((application,),) = db.execute("PRAGMA application_id")
        ((format_,),) = db.execute("PRAGMA user_version")
        made = db.execute(_MADE).fetchall()
        name = repr(str(self.path))
        if not (application or format_ or made):
            return True
        if application != self._application:
            raise InputError(f"{name} is a database of something else")
        if format_ != self._format:
            raise InputError(
                f"{name} is a store of format {format_}, and this dpaudit knows "
                f"format {self._format}: "
                + ("a newer" if format_ > self._format else "the older")
                + " one reads it"
            )
        if made != _made_by(self._schema):
            raise InputError(f"{name} is a database of something else")
        return False

    def _create(self, db: sqlite3.Connection) -> None:
        # The mode is a property of the file, and cannot change in a transaction.
        db.execute("ROLLBACK")
        deadline = time.monotonic() + _PATIENCE
        while True:  # SQLite itself does not wait for this
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
        db.execute("BEGIN IMMEDIATE")
        if not self._is_blank(db):
            return  # another process was quicker
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
        try:
            for suffix in ("-wal", "-shm", ""):
                part = self._beside(suffix)
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
        except OSError as reason:
            raise InputError(
                f"{error}, and cannot be set aside: {reason.strerror}"
            ) from reason
        tell(f"{error}: it was set aside as {aside.name!r}, and a new one begun")

    def _identity(self) -> int | None:
        try:
            return self.place.stat().st_ino
        except OSError:
            return None

    def _beside(self, suffix: str) -> Path:
        return self.place.with_name(self.place.name + suffix)
