"""Reading the files that users hand to the commands."""

import csv
from pathlib import Path
from typing import Any

from dpaudit.errors import InputError

__all__ = ["numbers", "read_rows", "read_table"]


def read_table(path: Path, *, content: str, header: bool = True) -> Any:
    """Return the table in a CSV or Parquet file, as a data frame.

    Parameters
    ----------
    path : Path
    content : str
        What the file holds, for error messages.
    header : bool
        Whether the first line of a CSV file names the columns.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    import pandas as pd

    kind = path.suffix.lower()
    try:
        if kind == ".csv":
            return pd.read_csv(path, header=0 if header else None)
        if kind in (".parquet", ".pq"):
            return pd.read_parquet(path)
    except ImportError:
        raise InputError(
            f"reading {str(path)!r} needs pyarrow (pip install dpaudit[parquet]); "
            "CSV files need nothing"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except ValueError as error:  # pandas' parsers raise subclasses of it
        reason = str(error).splitlines()[0]
        raise InputError(f"{str(path)!r} is not a table: {reason}") from None
    raise InputError(f"a file of {content} ends in .csv or .parquet, got {str(path)!r}")


def read_rows(path: Path) -> Any:
    """Return a dataset from a CSV, Parquet or NumPy file.

    A CSV file may name its columns in the first line; where that line is all numbers,
    it is a row like the others.

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

    kind = path.suffix.lower()
    if kind == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except OSError as error:
            raise InputError(
                f"cannot read {str(path)!r}: {error.strerror or error}"
            ) from None
        except (ValueError, EOFError) as error:
            raise InputError(
                f"{str(path)!r} is not an array of numbers: {error}"
            ) from None
    if kind not in (".csv", ".parquet", ".pq"):
        raise InputError(
            f"a file of data ends in .csv, .parquet or .npy, got {str(path)!r}"
        )
    named = kind != ".csv" or not _begins_with_numbers(path)
    table = read_table(path, content="data", header=named)
    columns = [numbers(table[name], name) for name in table.columns]
    if not columns:
        raise InputError(f"{str(path)!r} has no columns")
    return np.column_stack(columns)


def numbers(column: Any, name: Any) -> Any:
    """Return a column as floats.

    Raises
    ------
    InputError
        If an entry is no number.
    """
    import numpy as np
    import pandas as pd

    found: Any = pd.to_numeric(column, errors="coerce")
    strange = found.isna() & column.notna()
    if strange.any():
        first = column[strange].iloc[0]
        raise InputError(f"column {str(name)!r} must hold numbers, got {first!r}")
    return found.to_numpy(dtype=np.float64)


def _begins_with_numbers(path: Path) -> bool:
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            return all(float(word) == float(word) for word in next(csv.reader(lines)))
    except (OSError, StopIteration, ValueError):
        return False  # whatever is wrong with it, `read_table` says
