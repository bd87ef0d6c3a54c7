"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from dpaudit.errors import InputError

__all__ = ["check_writable", "replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to; in the end, what is there takes the place of `path`.

    A reader of `path`, meanwhile or after a crash, finds what was there before or all
    that is new. What is yielded is a new and empty file in the same folder, under a
    name that nothing there has. If the block fails, it is taken away again.

    A link is followed. What is no ordinary file, such as a device or a pipe, is neither
    whole nor replaced: it is yielded itself.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InputError
        If the file cannot be written, for which any `OSError` of the block is taken.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "note.txt"
    ...     with replacing(path) as new:
    ...         _ = new.write_text("Done.")
    ...     path.read_text()
    'Done.'
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path))
        new = _new_file(target.parent)
        try:
            yield new
            new.replace(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    except OSError as error:
        raise InputError(
            f"cannot write {str(path)!r}: {error.strerror or error}"
        ) from error


def check_writable(path: Path) -> None:
    """Refuse before hours of work what `replacing` could not write after them.

    Raises
    ------
    InputError
        If there is no such folder, or nothing can be written to it.
    """
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(path)!r}: no such folder")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder")
    with suppress(_Tried), replacing(path):
        raise _Tried


class _Tried(Exception):
    """Ends an attempt to write without having written."""


def _new_file(folder: Path) -> Path:
    """Create an empty file, with the permissions that new files have."""
    new = folder / f"dpaudit-{token_hex(8)}.part"
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return new
