"""The domain of data as people hold them: rows of columns, of single values, of users.

A row is a vector of codes (`dpaudit.domains.columns`), so that a search moves records
as it moves any vectors, and a store and a witness keep them; the mechanism is handed
the form that it was written for.

Where a column names users, the row of the domain is a user: all rows of that user, at
most `each` of them, one after the other in one vector, each with a leading 1, and
zeros behind the last. Neighbours then differ in a user with all rows. The names of
users are those of their places in the longer dataset, so that all others keep theirs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.domains.base import Domain
from dpaudit.domains.columns import Column, taken_apart
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.object_pairs import ObjectPair
from dpaudit.validation import Count

__all__ = ["Table"]

_Values = Mapping[str, Any]


def _frame(values: _Values) -> Any:
    import pandas as pd

    return pd.DataFrame(dict(values))


def _polars(values: _Values) -> Any:
    try:
        polars = import_module("polars")
    except ImportError:
        raise InputError(
            "a domain of polars frames needs polars: install it, or write frame of "
            "..., which is of pandas"
        ) from None
    return polars.DataFrame(dict(values))


def _arrays(values: _Values) -> Any:
    return {name: np.asarray(column) for name, column in values.items()}


def _list(values: _Values) -> list[Any]:
    rows = _tuples(values)
    return rows if len(values) > 1 else [value for (value,) in rows]


def _array(values: _Values) -> Any:
    columns = [np.asarray(column) for column in values.values()]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _series(values: _Values) -> Any:
    import pandas as pd

    ((name, column),) = values.items()
    return pd.Series(column, name=None if name == "0" else name)


def _tuples(values: _Values) -> list[tuple[Any, ...]]:
    plain = (c.tolist() if isinstance(c, np.ndarray) else c for c in values.values())
    return list(zip(*plain, strict=True))


_FORMS: dict[str, Callable[[_Values], Any]] = {
    "frame": _frame,
    "polars": _polars,
    "arrays": _arrays,
    "records": lambda values: [
        dict(zip(values, r, strict=True)) for r in _tuples(values)
    ],
    "list": _list,
    "set": lambda values: set(_list(values)),
    "array": _array,
    "series": _series,
}

_TEXT = re.compile(
    rf"\s*(?:(?P<form>{'|'.join(_FORMS)}) of )?(?P<columns>.*?)"
    r"(?P<options>(?:\s+(?:rows|each)=\d+)*)\s*",
    re.DOTALL,
)
_ALIKE = 0.5  # the share of users all rows of whom are alike


@dataclass(frozen=True)
class Table(Domain, kinds=("table",)):
    """Rows of columns of different kinds, in the form that a mechanism takes.

    Parameters
    ----------
    columns : tuple of Column
        >= 1. They have names, or there is a single one without.
    form : str
        ``frame`` (of pandas), ``polars``, ``arrays`` (a dictionary of them),
        ``records`` (a list of dictionaries), ``list``, ``set``, ``array`` or ``series``
        (of single values; the last is of pandas).
    each : int
        Most rows of a user, >= 1, where a column names users.
    note : str
        What was taken for public where the domain was read from an example; or which
        ranges of a text are integers alone.

    Raises
    ------
    InputError
        If there is no column beside that of the users, or two have one name.
    """

    columns: tuple[Column, ...]
    form: str = "frame"
    each: Count = 4
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise InputError(f"columns must have different names, got {names}")
        if self.form not in _FORMS:
            raise InputError(f"form must be one of {list(_FORMS)}, got {self.form!r}")
        if "" in names and self.form in ("frame", "polars", "arrays", "records"):
            raise InputError(f"columns of {self.form} need names, as value:0..1")
        if self.form == "series" and len(names) > 1:
            raise InputError(f"a series has one column, got {len(names)}: {names}")
        users = [column for column in self.columns if column.kind == "user"]
        if len(users) > 1 or len(users) == len(self.columns):
            raise InputError(
                "there must be one column of users at most, and another one beside it, "
                "as user:label age:0..100, got "
                f"{', '.join(map(str, self.columns)) or 'no column'}"
            )

    def __str__(self) -> str:
        each = f" each={self.each}" if self._user is not None else ""
        columns = " ".join(map(str, self.columns))
        return f"{self.form} of {columns} rows={self.n_rows}{each}"

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> Domain:
        match = _TEXT.fullmatch(words[0])
        assert match is not None  # anything may be columns
        columns = Column.read(match["columns"])
        if not columns:
            raise InputError("there must be a column, as age:0..100")
        named = bool(columns[0].name)
        given = dict(each.split("=") for each in match["options"].split())
        counts: dict[str, Any] = {
            name.replace("rows", "n_rows"): int(n) for name, n in given.items()
        }
        form = match["form"] or ("frame" if named else "array")
        return cls(columns, form, note=_whole_alone(columns), **counts)

    @classmethod
    def _like(cls, example: Any) -> Domain:
        form, values = taken_apart(example)
        columns = []
        for name, entries in values.items():
            if name == "user":
                columns.append(Column.read("user:user")[0])
                continue
            columns.append(Column.of(name, entries))
        told = " ".join(str(column) for column in columns)
        note = f"taken to be public, as the example has it: {told}"
        return cls(tuple(columns), form, note=note)

    @property
    def _user(self) -> int | None:
        """Where the column of the users stands."""
        kinds = [column.kind for column in self.columns]
        return kinds.index("user") if "user" in kinds else None

    @property
    def _entries(self) -> tuple[Column, ...]:
        """The columns that a row holds: all but that of the users."""
        return tuple(column for column in self.columns if column.kind != "user")

    @property
    def shape(self) -> tuple[int, ...]:
        width = len(self._entries)
        return (width,) if self._user is None else (self.each * (width + 1),)

    @property
    def nonfinite(self) -> bool:
        """Whether entries may be missing."""
        return any(column.missing for column in self._entries)

    def _single(self, rng: Generator) -> Array:
        return np.array([column.random(rng) for column in self._entries])

    def random_row(self, *, rng: Generator) -> Array:
        """Return a random row; of a user one row, most, or any number, often alike."""
        if self._user is None:
            return self._single(rng)
        count = (1, self.each, int(rng.integers(1, self.each + 1)))[rng.integers(3)]
        rows = [self._single(rng) for _ in range(count)]
        return self._flat(rows[:1] * count if rng.random() < _ALIKE else rows)

    def extremes(self) -> tuple[Array, ...]:
        """Return the row nearest to 0, that of the upper ends, and so forth.

        All columns at once, then one of them alone; users have as many rows as may be
        of each but the first, and one has a row of each label.
        """
        telling = [column.telling() for column in self._entries]
        longest = max(map(len, telling))
        rows = [
            [codes[min(turn, len(codes) - 1)] for codes in telling]
            for turn in range(longest)
        ]
        zero = rows[0]
        for place, codes in enumerate(telling):
            for code in codes[1:]:
                rows.append([*zero[:place], code, *zero[place + 1 :]])
        distinct = [*{str(row): np.asarray(row, dtype=float) for row in rows}.values()]
        if self._user is None:
            return tuple(distinct)
        top, *many = [self._flat([row] * self.each) for row in distinct[1:]]
        labelled = Column.labelled(self._entries)[: self.each]
        varied = [self._flat(labelled)] if labelled else []
        one = self._flat(distinct[1:2])
        return self._flat(distinct[:1]), top, *varied, *many, one

    def code(self, value: Any, place: int) -> float | None:
        """Return the code of a value in a column; of a user, in the first row."""
        entries = self._entries
        if self._user is not None:
            if not 1 <= place <= len(entries):
                return None
            place -= 1
        labels = entries[place].labels
        if labels is None:
            return super().code(value, place)
        return float(labels.index(value)) if value in labels else None

    def told(self, row: Array) -> str:
        """Return a row in words; of a user all rows."""
        if self._user is None:
            return self._in_words(row)
        return f"a user of {' and '.join(map(self._in_words, self._rows_of(row)))}"

    def _in_words(self, codes: Array) -> str:
        words = []
        for column, code in zip(self._entries, codes, strict=True):
            (value,) = column.decoded(np.array([code]))
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            words.append(f"{column.name}={shown}" if column.name else shown)
        return words[0] if len(words) == 1 else f"({' '.join(words)})"

    def spread(self) -> tuple[Array, ...]:
        """Return a row of each label, of a user each, the rest at its upper end."""
        rows = Column.labelled(self._entries)
        return tuple(self._flat([x]) if self._user is not None else x for x in rows)

    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Move one entry, or all; of a user a row, or the number of rows."""
        entries = np.asarray(row, dtype=np.float64)
        if self._user is None:
            return Column.moved_in(self._entries, entries, scale, rng)
        rows = list(self._rows_of(entries))
        kind = rng.random()
        place = int(rng.integers(len(rows)))
        if kind < 0.2 and len(rows) > 1:
            del rows[place]
        elif kind < 0.4 and len(rows) < self.each:
            rows.append(rows[place])
        elif kind < 0.6:
            rows = [Column.moved_in(self._entries, rows[place], scale, rng)] * len(rows)
        else:
            rows[place] = Column.moved_in(self._entries, rows[place], scale, rng)
        return self._flat(rows)

    def _nearest(self, row: Array) -> Array:
        if self._user is None:
            columns = zip(self._entries, row, strict=True)
            return np.array([column.nearest(code) for column, code in columns])
        rows = [
            [column.nearest(c) for column, c in zip(self._entries, each, strict=True)]
            for each in self._rows_of(row)
        ]
        return self._flat(rows)

    def _rows_of(self, user: Array) -> Array:
        """Return the rows of a user; one at least."""
        slots = user.reshape(self.each, -1)
        there = slots[:, 0] >= 0.5
        return slots[there if there.any() else slice(1), 1:]

    def _flat(self, rows: Sequence[Any]) -> Array:
        slots = np.zeros((self.each, len(self._entries) + 1))
        slots[: len(rows), 0] = 1.0
        slots[: len(rows), 1:] = rows
        return slots.ravel()

    def pair(self, data: Array, neighbour: Array, relation: Relation) -> Pair | None:
        """Return two datasets as they are handed out, None if they are no neighbours.

        Distinct rows may make the same set.
        """
        rows = Pair(data, neighbour, relation, allow_nonfinite=True)
        absent = rows.changed if relation is Relation.ADD_REMOVE else (0, 0)
        first = self._handed(rows.data, absent[1] if absent[0] is None else None)
        second = self._handed(rows.neighbour, absent[0] if absent[1] is None else None)
        try:
            return ObjectPair.made(self, rows, first, second)
        except InputError:
            return None

    def _handed(self, rows: Array, absent: int | None) -> Any:
        """Return rows in the form; of users, the number of one that is not there."""
        if self._user is None:
            return _built(self.form, self.columns, rows)
        numbers = [n for n in range(len(rows) + 1) if n != absent]
        single = [
            np.insert(row, self._user, number)
            for number, user in zip(numbers, rows, strict=False)
            for row in self._rows_of(user)
        ]
        return _built(
            self.form, self.columns, np.reshape(single, (-1, len(self.columns)))
        )


def _whole_alone(columns: Sequence[Column]) -> str:
    """Say which ranges are a few integers, as real numbers may be meant."""
    few = [c for c in columns if c.labels is None and c.whole and c.high - c.low <= 2]
    told = (
        f"{c} has integers alone, {replace(c, whole=False)} all numbers" for c in few
    )
    return "; ".join(told)


def _built(form: str, columns: Sequence[Column], rows: Array) -> Any:
    """Return rows of codes in a form.

    Parameters
    ----------
    form : str
        One of `_FORMS`.
    columns : sequence of Column
    rows : ndarray, shape (n, columns)

    Returns
    -------
    object
        Without rows it has the columns, and their types, all the same.
    """
    sample = rows if len(rows) else np.array([[column.low for column in columns]])
    names = [column.name or str(place) for place, column in enumerate(columns)]
    decoded = (c.decoded(codes) for c, codes in zip(columns, sample.T, strict=True))
    whole = _FORMS[form](dict(zip(names, decoded, strict=True)))
    if len(rows):
        return whole
    if isinstance(whole, dict):
        return {name: column[:0] for name, column in whole.items()}
    return set() if isinstance(whole, set) else whole[:0]
