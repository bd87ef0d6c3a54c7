"""What a long command found, kept in a JSON file that the report reads later."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dpaudit.atomic import replacing
from dpaudit.errors import InputError
from dpaudit.reports.store import plain_number

__all__ = ["load_json", "save_json"]

T = TypeVar("T")


def save_json(path: Path, found: dict[str, Any]) -> None:
    """Write a file, its folder too if need be; NumPy's numbers are numbers.

    Raises
    ------
    InputError
        If it cannot be written.
    ValueError
        If a number is NaN or infinite.
    """
    text = json.dumps(found, indent=1, allow_nan=False, default=plain_number) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from error
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def load_json(path: Path, parse: Callable[[Any], T], command: str) -> T | None:
    """Return what a file holds, None if there is none.

    Parameters
    ----------
    path : Path
    parse : callable
        Makes an object of what the JSON says.
    command : str
        What writes such a file.

    Raises
    ------
    InputError
        If the file is something else.
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
