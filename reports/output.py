"""The folder that a command writes: all of its files at once, or none."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from dpaudit.errors import InputError

INDEX = "index.html"

LIST = ".written"
"""The file of a folder with the paths of what was last written there, a line each."""


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


def _list(output: Path, names: set[str]) -> None:
    text = "".join(f"{name}\n" for name in sorted(names))
    (output / LIST).write_text(text, encoding="utf-8")


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
