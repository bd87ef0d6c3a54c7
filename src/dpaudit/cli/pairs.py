"""The pair of neighbours that a command names, in one of several ways."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.neighbours import Pair

__all__ = ["chosen_pair"]

_EDITS = "drop:ROW, add:FILE.json or replace:ROW:FILE.json"


def chosen_pair(
    subject: Any,
    *,
    reference: str | None,
    data: Path | None,
    neighbour: str | None,
    dimension: int | None,
    relation: str | None,
) -> "Pair | None":
    """Return the pair asked for, or None for the mechanism's own.

    Parameters
    ----------
    subject : Mechanism or callable
    reference : str, optional
        ``module:object`` of a Pair.
    data : Path, optional
        A file with the dataset D, see `dpaudit.cli.tables.read_rows`.
    neighbour : str, optional
        What makes D' of D: ``drop:17``, ``add:row.json``, ``replace:17:row.json``.
        Rows are counted from 0; the file holds one row as a JSON list.
    dimension : int, optional
        Columns of the mechanism's own worst case.
    relation : str, optional
        The pair must be neighbours under it.

    Raises
    ------
    InputError
        If they exclude each other, or name no pair of neighbours.
    """
    from dpaudit.mechanism import HasWorstCase
    from dpaudit.neighbours import Relation

    ways = {"--pair": reference, "--data": data, "--dimension": dimension}
    given = [option for option, value in ways.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other")
    if (data is None) != (neighbour is None):
        raise InputError("--data and --neighbour need each other")
    pair: Pair | None = None
    if reference is not None:
        pair = _referred(reference)
    elif data is not None and neighbour is not None:
        pair = _edited(data, neighbour)
    elif dimension is not None:
        if not isinstance(subject, HasWorstCase):
            raise InputError("--dimension needs a mechanism that names a worst case")
        return subject.worst_case(dimension)
    if (
        pair is not None
        and relation is not None
        and Relation.parse(relation) != pair.relation
    ):
        source = reference or neighbour
        raise InputError(f"{source} is {pair.relation}, not {relation}")
    return pair


def _referred(reference: str) -> "Pair":
    from dpaudit.codec import load_reference
    from dpaudit.neighbours import Pair

    pair = load_reference(reference)
    if not isinstance(pair, Pair):
        raise InputError(
            f"{reference} must be a dpaudit.Pair, got {type(pair).__name__}"
        )
    return pair


def _edited(path: Path, edit: str) -> "Pair":
    import numpy as np

    from dpaudit.cli.tables import read_rows
    from dpaudit.neighbours import Pair

    rows = read_rows(path)
    if rows.ndim == 0 or rows.dtype.kind not in "biuf":
        raise InputError(f"{str(path)!r} must hold rows of numbers")
    kind, _, rest = edit.partition(":")
    if kind == "drop" and rest:
        return Pair(rows, np.delete(rows, _place(rest, len(rows)), axis=0))
    if kind == "add" and rest:
        row = _row(Path(rest), rows.shape[1:])
        return Pair(rows, np.concatenate([rows, row[np.newaxis]]))
    place, _, file = rest.partition(":")
    if kind == "replace" and place and file:
        other = np.array(rows, dtype=np.float64)
        other[_place(place, len(rows))] = _row(Path(file), rows.shape[1:])
        return Pair(rows, other)
    raise InputError(f"--neighbour must be {_EDITS}, got {edit!r}")


def _place(text: str, count: int) -> int:
    if not text.isdecimal() or int(text) >= count:
        allowed = (
            f"a row from 0 to {count - 1}" if count else "a row, and there is none"
        )
        raise InputError(f"--neighbour must name {allowed}, got {text!r}")
    return int(text)


def _row(path: Path, shape: tuple[int, ...]) -> Any:
    import numpy as np

    try:
        row = np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.float64)
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except (TypeError, ValueError):
        raise InputError(
            f"{str(path)!r} must hold one row, as a JSON list of numbers"
        ) from None
    if row.shape != shape:
        raise InputError(
            f"the row in {str(path)!r} must have the shape of the data's, {shape}, "
            f"got {row.shape}"
        )
    return row
