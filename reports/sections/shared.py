"""What several sections need: records of repetitions, and numbers on axes."""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.words import count, setting


def repeated(cell: Cell, **columns: ArrayLike) -> list[Record]:
    """Return a record for each repetition: its number, and its value of each column.

    A column is an array of length ``cell.size``, or one value for all repetitions.
    """
    values = [np.broadcast_to(each, cell.size).tolist() for each in columns.values()]
    return [
        {"repetition": cell.first + i, **dict(zip(columns, row, strict=True))}
        for i, row in enumerate(zip(*values, strict=True))
    ]


def plain(value: float) -> str:
    """Return a place on an axis: a large one as a count, a small one as a setting."""
    return count(value) if value >= 1000 else setting(value)


def decimal(value: float) -> str:
    """Return a place on an axis with all of its digits, but no exponent."""
    if value >= 1000:
        return count(value)
    return np.format_float_positional(value, trim="-")
