"""Columns of data: what their entries may be, and the short texts that say so.

An entry has a code, a float: numbers are their own, what is one of finitely many values
has its place among them, and what is missing is NaN. So a row of any columns is a
vector, and whatever moves, compares and keeps vectors does so with records too.
"""

import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.printable import printable

__all__ = ["Column", "taken_apart"]

_WORD = r'"(?:[^"\\]|\\.)*"|[^\s:{},"=?]+'
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
_RANGE = rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})"
_SET = rf"\{{(?P<set>\s*(?:(?:{_WORD})\s*,?\s*)*)\}}"
_COLUMN = re.compile(
    rf"(?:(?P<name>{_WORD}):)?(?:{_RANGE}|{_SET}|(?P<word>label|user))(?P<missing>\??)"
)
_LETTERS = tuple(string.ascii_lowercase)  # that stand for labels of any kind
_MOST_LABELS = 8  # that are gone through
_MOST_TOLD = 60  # characters of what cannot be read


@dataclass(frozen=True)
class Column:
    """What the entries of a column may be.

    Parameters
    ----------
    name : str
        Empty where rows are single values.
    low, high : float
        Of the codes.
    whole : bool
        Whether numbers are integers.
    labels : tuple, optional
        The values, where there are finitely many: their places are the codes.
    kind : {"", "label", "user"}
        Whether labels may be of any kind, and whether rows of one label are one user's.
    missing : bool
        Whether an entry may be missing.

    Examples
    --------
    >>> from dpaudit.domains import Domain
    >>> str(Domain.parse("age:0..100 sex:{f,m} income:0..1e5?"))
    'frame of age:0..100 sex:{f,m} income:0.0..100000.0? rows=5'
    """

    name: str
    low: float
    high: float
    whole: bool = False
    labels: tuple[Any, ...] | None = None
    kind: str = ""
    missing: bool = False

    def __post_init__(self) -> None:
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
        shown = f"the range of {self._shown}"
        if not np.isfinite(self.high - self.low):
            raise InputError(
                f"{shown} must be finite, got {self.low}..{self.high}: give the bounds "
                "that data keep, or such as show that the mechanism clips, as 0..1e9"
            )
        if self.labels is not None and len(set(self.labels)) != len(self.labels):
            raise InputError(f"{shown} must hold each value once, got {self.labels}")
        if not self.low < self.high:
            raise InputError(
                f"{shown} must hold two values at least, got {self._range}: a column "
                "that is always the same cannot tell neighbours apart; leave it out, "
                "or widen it, as 0..1 or {f,m}"
            )

    @classmethod
    def of(cls, name: str, values: Iterable[Any]) -> "Column":
        """Return the column that has such values: their range, if they are numbers.

        Of texts, and of truth values, just these are possible.

        Raises
        ------
        InputError
            If there are less than two values, or of more than one kind.
        """
        found = [value for value in map(_plain, values)]
        present = {value for value in found if not _is_missing(value)}
        if not present:
            what = f"column {name!r}" if name else "what is given"
            raise InputError(f"{what} has no entries: an example needs some")
        kinds = {_kind_of(value) for value in present}
        if len(kinds) > 1:
            raise InputError(
                f"column {name!r} mixes {' and '.join(sorted(kinds))}: make its "
                "entries all of one kind"
            )
        missing = len(present) < len(set(map(repr, found)))
        if kinds == {"numbers"}:
            whole = all(isinstance(value, int) for value in present)
            low, high = float(min(present)), float(max(present))
            return cls(name, low, high, whole, missing=missing)
        return cls.among(name, sorted(present), missing=missing)

    @classmethod
    def among(
        cls, name: str, labels: Iterable[Any], kind: str = "", missing: bool = False
    ) -> "Column":
        """Return the column that may be any of some labels."""
        labels = tuple(labels)
        return cls(name, 0.0, len(labels) - 1.0, True, labels, kind, missing)

    @property
    def _shown(self) -> str:
        return f"column {printable(self.name)!r}" if self.name else "the values"

    @property
    def _range(self) -> str:
        if self.kind:
            return self.kind
        if self.labels is not None:
            return "{" + ",".join(map(_quoted, self.labels)) + "}"
        ends = (self.low, self.high)
        low, high = (str(int(end)) if self.whole else repr(float(end)) for end in ends)
        return f"{low}..{high}"

    def __str__(self) -> str:
        name = f"{_quoted(self.name)}:" if self.name else ""
        return f"{name}{self._range}{'?' * self.missing}"

    @classmethod
    def read(cls, text: str) -> tuple["Column", ...]:
        """Return the columns of a text, parted by spaces or commas.

        Raises
        ------
        InputError
            If it is no such text.
        """
        columns, place = [], 0
        while rest := text[place:].lstrip(" ,\t\n"):
            place = len(text) - len(rest)
            match = _COLUMN.match(text, place)
            if match is None or text[match.end() :][:1] not in (" ", ",", "", "\n"):
                raise InputError(
                    "a column is NAME:LOW..HIGH, NAME:{A,B,C}, NAME:label or "
                    "NAME:user, with a ? behind if entries may be missing, got "
                    + printable(repr(rest), longest=_MOST_TOLD)
                )
            columns.append(cls._matched(match))
            place = match.end()
        return tuple(columns)

    @classmethod
    def _matched(cls, match: re.Match[str]) -> "Column":
        name, missing = _unquoted(match["name"] or ""), bool(match["missing"])
        if match["word"]:
            kind = "user" if name == "user" else match["word"]
            return cls.among(name, _LETTERS, kind, missing)
        if match["low"]:
            ends = match["low"], match["high"]
            whole = all(re.fullmatch(r"[-+]?\d+", end) for end in ends)
            return cls(name, float(ends[0]), float(ends[1]), whole, missing=missing)
        labels = [_number_or_text(each) for each in re.findall(_WORD, match["set"])]
        return cls.among(name, labels, missing=missing)

    def nearest(self, codes: Array) -> Array:
        """Return the legal codes nearest to some; NaN, if it is missing, stays."""
        codes = np.clip(codes, self.low, self.high)
        codes = np.rint(codes) if self.whole else codes
        return codes if self.missing else np.where(np.isnan(codes), self.low, codes)

    def random(self, rng: Generator) -> float:
        """Return a random code, every other one an end of the range."""
        if self.missing and rng.random() < 0.1:
            return np.nan
        if self.labels is None and rng.random() < 0.5:
            return self.high if rng.random() < 0.5 else self.low
        if self.whole:
            return float(rng.integers(int(self.low), int(self.high) + 1))
        return float(rng.uniform(self.low, self.high))

    def moved(self, code: float, scale: float, rng: Generator) -> float:
        """Return another code: near a number, any of labels."""
        if self.labels is not None or np.isnan(code):
            return self.random(rng)
        step = scale * (self.high - self.low) * rng.standard_normal()
        if self.whole and abs(step) < 1:
            step = np.copysign(1.0, step)
        return float(self.nearest(np.asarray(code + step)))

    @staticmethod
    def moved_in(
        columns: Sequence["Column"], row: Array, scale: float, rng: Generator
    ) -> Array:
        """Return a row of codes with one of them moved, or all."""
        moved = row.copy()
        places = (
            range(len(row)) if rng.random() < 0.3 else [int(rng.integers(len(row)))]
        )
        for place in places:
            moved[place] = columns[place].moved(row[place], scale, rng)
        return moved

    def telling(self) -> list[float]:
        """Return the codes that tell most: nearest to 0, the ends, the first labels."""
        zero = float(self.nearest(np.asarray(0.0)))
        codes = [zero, self.high, self.low]
        if self.labels is not None:
            codes = [0.0, self.high, *np.arange(1.0, min(self.high, 3.0))]
        if self.missing:
            codes.append(np.nan)
        return list(dict.fromkeys(codes))

    @staticmethod
    def labelled(columns: Sequence["Column"]) -> list[Array]:
        """Return rows of codes that go through all labels together, if there are any.

        Numbers are at their upper ends.
        """
        codes = [
            column.telling()[1:2]
            if column.labels is None
            else range(len(column.labels))
            for column in columns
        ]
        most = max((len(c.labels) for c in columns if c.labels is not None), default=0)
        turns = range(min(most, _MOST_LABELS))
        return [np.array([float(each[n % len(each)]) for each in codes]) for n in turns]

    def _label(self, code: int) -> Any:
        """Return a label; of users there may be more than letters."""
        assert self.labels is not None
        turn, place = divmod(code, len(self.labels))
        return self.labels[place] if not turn else f"{self.labels[place]}{turn}"

    def decoded(self, codes: Array) -> Any:
        """Return what codes stand for: an array of numbers, or a list of labels."""
        if self.labels is not None:
            return [None if np.isnan(c) else self._label(int(c)) for c in codes]
        if self.whole and not np.isnan(codes).any() and not self.missing:
            return codes.astype(np.int64)
        return np.array(codes)


def _plain(value: Any) -> Any:
    """Return a value of NumPy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: Any) -> bool:
    """Say whether a value is None, NaN, or pandas' word for them."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and bool(np.isnan(value))


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float):
        return "numbers"
    return "texts" if isinstance(value, str) else f"values of {type(value).__name__}"


def _quoted(value: Any) -> str:
    """Return a label, in quotes where it would be read as something else."""
    plain = isinstance(value, str) and re.fullmatch(_WORD, value)
    if plain and not value.startswith('"') and _number_or_text(value) == value:
        return value
    return json.dumps(value)


def _unquoted(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word


def _number_or_text(word: str) -> Any:
    """Return the number or truth value that a word is, else its text."""
    if word.startswith('"'):
        return _unquoted(word)
    if word in ("true", "false", "True", "False"):
        return word in ("true", "True")
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def taken_apart(example: Any) -> tuple[str, dict[str, list[Any]]]:
    """Return the form of an example, and the values of its columns by their names.

    Raises
    ------
    InputError
        If it has none of the forms, or its columns are not the same in all rows.
    """
    package = type(example).__module__.partition(".")[0]
    if package in ("pandas", "polars") and hasattr(example, "columns"):
        form = "frame" if package == "pandas" else "polars"
        names = list(example.columns)
        return form, {str(name): example[name].to_list() for name in names}
    if package == "pandas" and example.ndim == 1:
        return "series", {str(example.name or ""): example.to_list()}
    if isinstance(example, Mapping):
        columns = {str(name): _listed(value) for name, value in example.items()}
        _alike("columns", {name: len(column) for name, column in columns.items()})
        return "arrays", columns
    if isinstance(example, set | frozenset):
        return "set", _unnamed(list(example))
    if isinstance(example, np.ndarray) and example.ndim in (1, 2):
        return "array", _unnamed(example.tolist())
    if isinstance(example, list | tuple):
        if example and all(isinstance(row, Mapping) for row in example):
            keys = list(example[0])
            other = next((row for row in example if set(row) != set(keys)), None)
            if other is not None:
                raise InputError(
                    f"records must have the same keys, got {keys} and {list(other)}: "
                    "give what is missing as None"
                )
            return "records", {str(k): [row[k] for row in example] for k in keys}
        return "list", _unnamed(list(example))
    raise InputError(
        "an example of data must be a frame, a dictionary of arrays, a list of "
        "records, a list, set, array or series of values, got "
        f"{type(example).__name__}: name the domain in words, as Domain.parse does"
    )


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise InputError(
            "a dictionary of data must hold a column under each name, got "
            f"{type(value).__name__}"
        )
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def _unnamed(rows: list[Any]) -> dict[str, list[Any]]:
    """Return the columns of rows that are values, or tuples of values."""
    if not rows or not isinstance(rows[0], list | tuple):
        return {"": rows}
    _alike("rows", {str(place): len(row) for place, row in enumerate(rows)})
    columns = zip(*rows, strict=True)
    return {str(place): list(column) for place, column in enumerate(columns)}


def _alike(what: str, lengths: Mapping[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        raise InputError(f"{what} must be of one length, got {dict(lengths)}")
