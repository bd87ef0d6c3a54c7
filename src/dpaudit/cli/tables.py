"""Files that users hand to the commands, and the pair of neighbours that they name.

The first line of a CSV file names its columns if some of its fields are names and none
is a number. A name is anything that neither begins like a number (``0x10``, ``-2``,
``3rd``) nor stands for a value (``nan``, ``NA``, ``inf``, ``true``, ...) nor is blank.
A line without names is a row like the others, and one that mixes names with numbers is
an error: no row is taken for names, and no names are taken for a row, in silence.
"""

import csv
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import click

from dpaudit.cli.options import FILE, grouped
from dpaudit.errors import InputError
from dpaudit.validation import check_real

if TYPE_CHECKING:
    from dpaudit.neighbours import Pair

__all__ = [
    "chosen_pair",
    "numbers",
    "pair_options",
    "read_rows",
    "read_table",
    "reading",
]

_NUMBER = re.compile(r"[+-]?\.?\d")
_VALUES = {
    *("nan", "na", "n/a", "#n/a", "<na>", "null", "none"),
    *("inf", "infinity", "true", "false"),
}


@contextmanager
def reading(path: Path, content: str) -> Iterator[None]:
    """Say what is wrong with a file that the block reads.

    Raises
    ------
    InputError
        If it is no ordinary file (others may never end, nor begin), or the block cannot
        read it, or raises anything else: then it is not the content.
    """
    if not path.is_file():
        problem = "it is no ordinary file" if path.exists() else "no such file"
        raise InputError(f"cannot read {str(path)!r}: {problem}")
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except Exception as error:  # what parsers raise is of many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{str(path)!r} is not {content}: {reason}") from None


def read_table(path: Path, *, content: str) -> Any:
    """Return the table in a CSV or Parquet file, as a data frame with named columns.

    Parameters
    ----------
    path : Path
    content : str
        What the file holds, for error messages.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    import pandas as pd

    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet", ".pq"):
        raise InputError(
            f"a file of {content} ends in .csv or .parquet, got {str(path)!r}"
        )
    with reading(path, "a table"):
        try:
            if kind == ".csv":
                header = None if _names(path) is None else 0
                with warnings.catch_warnings():
                    # Rows of more fields than names would be cut, with a warning.
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    table = pd.read_csv(
                        path, header=header, low_memory=False, index_col=False
                    )
                # A line that is too short would have blanks at its end, one without
                # any field be left out.
                if table.shape[1] == 1 or table.iloc[:, -1].isna().any():
                    _check_lines(path)
            else:
                table = pd.read_parquet(path)
        except ImportError:
            raise InputError(
                f"reading {str(path)!r} needs pyarrow (pip install pyarrow); "
                "CSV files need nothing"
            ) from None
        except (pd.errors.ParserWarning, pd.errors.ParserError):
            _check_lines(path)
            raise
    return table.set_axis([str(column) for column in table.columns], axis="columns")


def _check_lines(path: Path) -> None:
    """Raise unless all lines of a CSV file have as many fields as the first.

    Empty ones do not count, but for those in the midst of a single column. A last field
    that is empty everywhere is none.
    """
    wanted, empty, ends = 0, 0, False
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        for fields in lines:
            if not fields or (len(fields) == 1 and fields[0].isspace()):
                empty = empty or lines.line_num
                continue
            wanted, ends = wanted or len(fields), ends or bool(fields[-1].strip())
            place, found = lines.line_num, len(fields)
            if wanted == 1 and empty > 1:
                place, found = empty, 0
            if found != wanted:
                raise InputError(
                    f"line {place} of {str(path)!r} must have as many fields as the "
                    f"first line, {wanted}, got {found}"
                )
    if wanted and not ends:
        raise InputError(f"every line of {str(path)!r} ends with a comma too many")


def read_rows(path: Path) -> Any:
    """Return a dataset from a CSV or NumPy file, or from one or a folder of Parquet.

    Returns
    -------
    ndarray
        With one row for every line of a table, or the array of a ``.npy`` file.

    Raises
    ------
    InputError
        If the file cannot be read, or holds something else than numbers.
    """
    import numpy as np

    from dpaudit.blocks import blocks

    kind = path.suffix.lower()
    if kind == ".npy":
        return _read_array(path)
    if kind not in (".csv", ".parquet", ".pq"):
        ends = "a file of data ends in .csv, .parquet or .npy"
        raise InputError(f"{ends}, got {str(path)!r}")
    if kind == ".parquet" and path.is_dir():
        return np.concatenate([block.rows for block in blocks(path)])
    table = read_table(path, content="data")
    if kind == ".csv" and "" in (_names(path) or ()):
        no_data = "if it holds the numbers of the rows, it is no data"
        raise InputError(f"a column of {str(path)!r} has no name: {no_data}")
    columns = [numbers(table[name], name) for name in table.columns]
    if not columns:
        raise InputError(f"{str(path)!r} has no columns")
    return np.column_stack(columns)


def numbers(column: Any, name: Any) -> Any:
    """Return a column as floats; what is missing is NaN.

    Raises
    ------
    InputError
        If an entry is no real number.
    """
    import numpy as np

    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([_number(entry, name) for entry in column], dtype=np.float64)


def _number(entry: Any, name: Any) -> float:
    import pandas as pd

    if entry is None or entry is pd.NA:
        return float("nan")
    try:
        # Python reads 1_000 as a number; here it is a word.
        if isinstance(entry, Real) or (isinstance(entry, str) and "_" not in entry):
            return float(entry)
    except (ValueError, OverflowError):
        pass
    raise InputError(
        f"column {str(name)!r} must hold numbers, got {shortened(entry)}"
    ) from None


def _names(path: Path) -> list[str] | None:
    """Return the names in the first line of a CSV file, None if it is a row.

    Raises
    ------
    InputError
        If there are names, and numbers beside them; if two names are the same.
    """
    import pandas as pd

    line = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    fields = [str(field).strip() for field in line.iloc[0]]
    if len(fields) == 1 and (other := re.search(r"[;\t|]", fields[0])):
        raise InputError(
            f"the fields of {str(path)!r} must have commas between them, got "
            f"{other.group()!r}"
        )
    values = [field for field in fields if _is_value(field)]
    names = [field for field in fields if field and not _is_value(field)]
    if names and values:
        raise InputError(
            f"the first line of {str(path)!r} must hold names or numbers, not both, "
            f"got {shortened(names[0])} beside {shortened(values[0])}"
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(
            f"the names in the first line of {str(path)!r} must differ, got "
            f"{shortened(twice[0])} more than once"
        )
    return fields if names else None


def _is_value(field: str) -> bool:
    word = field.casefold().removeprefix("+").removeprefix("-")
    return word in _VALUES or _NUMBER.match(field) is not None


def _read_array(path: Path) -> Any:
    import numpy as np
    from numpy.lib.format import open_memmap

    with reading(path, "an array of numbers"):
        # Mapped, because memory for what a header promises may be more than there is.
        return np.array(open_memmap(path, mode="r"))


_EDITS = "drop:ROW, add:FILE.json or replace:ROW:FILE.json"

pair_options = grouped(
    "pair",
    click.option(
        "--pair",
        "reference",
        metavar="MODULE:OBJECT",
        help="A Pair, or a tuple of two datasets [the mechanism's own worst cases].",
    ),
    click.option(
        "--data",
        type=FILE,
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
    reference, data, neighbour, dimension, allow_nonfinite
        As `pair_options` give them.
    relation : str, optional
        The pair must be neighbours under it.

    Raises
    ------
    InputError
        If they exclude each other, or name no pair of neighbours.
    """
    from dpaudit.codec import load_reference
    from dpaudit.mechanism import HasWorstCase
    from dpaudit.neighbours import Pair, Relation
    from dpaudit.object_pairs import ObjectPair

    ways = {"--pair": reference, "--data": data, "--dimension": dimension}
    given = [each for each, value in ways.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other")
    if (data is None) != (neighbour is None):
        raise InputError("--data and --neighbour need each other")
    if allow_nonfinite and data is None:
        raise InputError(
            "--allow-nonfinite is for --data; a domain with such rows has a name that "
            "ends in :nonfinite, as box:0,1:3:nonfinite"
        )
    if dimension is not None:
        if not isinstance(subject, HasWorstCase):
            raise InputError("--dimension needs a mechanism that names a worst case")
        return subject.worst_case(dimension)
    if reference is not None:
        pair = load_reference(reference)
        if isinstance(pair, tuple) and len(pair) == 2:
            relation = relation or getattr(subject, "relation", None)
            if relation is None:
                raise InputError(f"--relation is needed, as {reference} is a tuple")
            pair = ObjectPair(*pair, relation)
        if not isinstance(pair, Pair):
            problem = f"{reference} must be a dpaudit.Pair or a tuple of two datasets"
            raise InputError(f"{problem}, got {shortened(repr(pair))}")
    elif data is not None and neighbour is not None:
        pair = _edited(data, neighbour, allow_nonfinite)
    else:
        return None
    if relation is not None and Relation.parse(relation) != pair.relation:
        source = reference or neighbour
        raise InputError(f"{source} is {pair.relation}, not {relation}")
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
    with reading(path, "a row"):
        try:
            row = check_real("row", json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError):
            wanted = "one row, as a JSON list of numbers"
            raise InputError(f"{str(path)!r} must hold {wanted}") from None
    if row.shape != shape:
        raise InputError(
            f"the row in {str(path)!r} must have the shape of the data's, {shape}, "
            f"got {row.shape}"
        )
    return row
