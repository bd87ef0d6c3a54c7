"""JSON from files that are not trusted.

The standard parser takes what the standard of JSON does not have, or leaves open: NaN
and infinities, a key that occurs twice, numbers of any length. A file may be endless,
or as deep as the stack. Here all of that is refused, in one sentence.
"""

import json
import math
import stat
from pathlib import Path
from typing import Any

from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["check_depth", "read_json"]

_MOST_BYTES = 128 * 2**20
_MOST_LEVELS = 100
_MOST_DIGITS = 400  # what is longer is larger than any double


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Lists and objects may be nested 100 deep; numbers are finite, integers of at most
    400 digits; keys are distinct.

    Parameters
    ----------
    path : Path
        A regular file of at most 128 MiB in UTF-8. Pipes and devices are refused: they
        need not end.

    Raises
    ------
    InputError
        If it cannot be read, or is anything else.
    """
    shown = printable(repr(str(path)))
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"cannot read {shown}: not a regular file")
        if found.st_size > _MOST_BYTES:
            raise InputError(
                f"cannot read {shown}: it must have at most {_MOST_BYTES:,} bytes, "
                f"and has {found.st_size:,}"
            )
        with path.open("rb") as file:
            content = file.read(found.st_size)
    except OSError as error:
        raise InputError(f"cannot read {shown}: {error.strerror}") from error
    except InputError:
        raise
    except ValueError as error:  # a path that no system has
        raise InputError(f"cannot read {shown}: {error}") from error
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_integer,
        )
        check_depth(value)
    except RecursionError:
        raise InputError(f"{shown} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{shown} is not complete JSON: {error}") from error
    return value


def check_depth(value: Any) -> None:
    """Raise unless lists and dictionaries are nested at most 100 deep.

    A recursive walk over such a value stays within the stack.
    """
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return
    raise InputError(f"lists and objects must be nested at most {_MOST_LEVELS} deep")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {printable(repr(twice), longest=80)} occurs twice")
    return found


def _no_number(token: str) -> None:
    raise ValueError(f"{token} is no number of JSON's")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{printable(text, longest=80)} is beyond what a double holds")
    return number


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"integers have at most {_MOST_DIGITS} digits")
    return int(text)
