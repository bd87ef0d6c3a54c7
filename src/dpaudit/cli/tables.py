"""Reading the files that users hand to the commands.

The first line of a CSV file names its columns if some of its fields are names and none
is a number. A name is anything that neither begins like a number (``0x10``, ``-2``,
``3rd``) nor stands for a value (``nan``, ``NA``, ``inf``, ``true``, ...) nor is blank.
A line without names is a row like the others, and one that mixes names with numbers is
an error: no row is taken for names, and no names are taken for a row, in silence.
"""

import re
import warnings
from numbers import Real
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from dpaudit.errors import InputError

__all__ = ["check_file", "numbers", "read_rows", "read_table"]

_NUMBER = re.compile(r"[+-]?\.?\d")
_VALUES = {
    *("nan", "na", "n/a", "#n/a", "<na>", "null", "none"),
    *("inf", "infinity", "true", "false"),
}


def check_file(path: Path) -> None:
    """Raise unless there is an ordinary file: others may never end, nor begin.

    Raises
    ------
    InputError
    """
    if not path.is_file():
        problem = "it is no ordinary file" if path.exists() else "no such file"
        raise InputError(f"cannot read {str(path)!r}: {problem}")


def read_table(path: Path, *, content: str) -> Any:
    """Return the table in a CSV or Parquet file, as a data frame.

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
    check_file(path)
    try:
        if kind == ".csv":
            header = None if _names(path) is None else 0
            with warnings.catch_warnings():
                # Rows of more fields than names would be cut, with a warning.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(
                    path, header=header, low_memory=False, index_col=False
                )
        return pd.read_parquet(path)
    except ImportError:
        raise InputError(
            f"reading {str(path)!r} needs pyarrow (pip install pyarrow); "
            "CSV files need nothing"
        ) from None
    except InputError:
        raise
    except pd.errors.ParserWarning:
        raise InputError(
            f"the rows of {str(path)!r} must have as many fields as the first line"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except Exception as error:  # what the parsers raise is of many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{str(path)!r} is not a table: {reason}") from None


def read_rows(path: Path) -> Any:
    """Return a dataset from a CSV, Parquet or NumPy file.

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
        return _read_array(path)
    if kind not in (".csv", ".parquet", ".pq"):
        raise InputError(
            f"a file of data ends in .csv, .parquet or .npy, got {str(path)!r}"
        )
    table = read_table(path, content="data")
    if kind == ".csv" and "" in (_names(path) or ()):
        raise InputError(
            f"a column of {str(path)!r} has no name: if it holds the numbers of the "
            "rows, it is no data"
        )
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

    check_file(path)
    try:
        # Mapped, because memory for what a header promises may be more than there is.
        return np.array(open_memmap(path, mode="r"))
    except OSError as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error.strerror or error}"
        ) from None
    except Exception as error:  # what a header that is none raises is of many kinds
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{str(path)!r} is not an array of numbers: {reason}"
        ) from None
