"""The pair of neighbours that a command names, in one of several ways."""

import json
from pathlib import Path
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.options import grouped
from dpaudit.cli.tables import check_file, read_rows
from dpaudit.errors import InputError
from dpaudit.validation import check_real

if TYPE_CHECKING:
    from dpaudit.neighbours import Pair

__all__ = ["chosen_pair", "pair_options"]

_EDITS = "drop:ROW, add:FILE.json or replace:ROW:FILE.json"

pair_options = grouped(
    "pair",
    click.option(
        "--pair",
        "reference",
        metavar="MODULE:OBJECT",
        help="A Pair of neighbouring datasets [the mechanism's own worst cases].",
    ),
    click.option(
        "--data",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.csv|.parquet|.npy",
        help="The dataset, a row to a person; with --neighbour instead of --pair.",
    ),
    click.option(
        "--neighbour",
        metavar="drop:17|add:ROW.json|replace:17:ROW.json",
        help="How the neighbouring dataset differs; rows are counted from 0.",
    ),
    click.option(
        "--allow-nonfinite",
        is_flag=True,
        help="Take NaN and infinite entries of --data.",
    ),
    click.option("--dimension", type=int, help="Columns of the worst-case pair."),
)
"""The ways to name one, as `chosen_pair` takes them."""


def chosen_pair(
    subject: Any,
    *,
    reference: str | None,
    data: Path | None,
    neighbour: str | None,
    dimension: int | None,
    relation: str | None,
    allow_nonfinite: bool = False,
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
    allow_nonfinite : bool
        Whether the data of a file may hold NaN and infinities.

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
    if allow_nonfinite and data is None:
        raise InputError(
            "--allow-nonfinite is for --data; a domain with such rows has a name that "
            "ends in :nonfinite, as box:0,1:3:nonfinite"
        )
    pair: Pair | None = None
    if reference is not None:
        pair = _referred(reference)
    elif data is not None and neighbour is not None:
        pair = _edited(data, neighbour, allow_nonfinite)
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


def _edited(path: Path, edit: str, allow_nonfinite: bool) -> "Pair":
    import numpy as np

    from dpaudit.neighbours import Pair

    rows = check_real(repr(str(path)), read_rows(path), "rows of numbers")
    if rows.ndim == 0:
        raise InputError(f"{str(path)!r} must be rows of numbers, got one number")
    kind, _, rest = edit.partition(":")
    place, _, file = rest.partition(":")
    if kind == "drop" and rest:
        other = np.delete(rows, _place(rest, len(rows)), axis=0)
    elif kind == "add" and rest:
        row = _row(Path(rest), rows.shape[1:])
        other = np.concatenate([rows, row[np.newaxis]])
    elif kind == "replace" and place and file:
        other = rows.copy()
        other[_place(place, len(rows))] = _row(Path(file), rows.shape[1:])
    else:
        raise InputError(f"--neighbour must be {_EDITS}, got {shortened(edit)}")
    return Pair(rows, other, allow_nonfinite=allow_nonfinite)


def _place(text: str, count: int) -> int:
    # Longer numbers than any count of rows may be longer than Python reads.
    if not text.isdecimal() or len(text) > 18 or int(text) >= count:
        allowed = (
            f"a row from 0 to {count - 1}" if count else "a row, and there is none"
        )
        raise InputError(f"--neighbour must name {allowed}, got {shortened(text)}")
    return int(text)


def _row(path: Path, shape: tuple[int, ...]) -> Any:
    check_file(path)
    try:
        row = check_real("row", json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{str(path)!r} must hold one row, as a JSON list of numbers"
        ) from None
    if row.shape != shape:
        raise InputError(
            f"the row in {str(path)!r} must have the shape of the data's, {shape}, "
            f"got {row.shape}"
        )
    return row
