"""What a domain of rows is, and how a short text names one."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Checked, Count, check_real

__all__ = ["Domain"]

_FORMS = (
    "columns, as age:0..100 sex:{f,m}, or values, as list of 0.0..1.0, or "
    "ball:DIMENSION[:norm=BOUND], box:LOW,HIGH:DIMENSION, scalar:LOW,HIGH, "
    "binary:DIMENSION, categories:COUNT or codes:COUNT, each with :rows=N and "
    ":nonfinite if wanted"
)

# What all columns have, and no other text.
_IN_COLUMNS = re.compile(r"\.\.|[{}]|\b(label|user)\b| of ")

_KINDS: dict[str, "type[Domain]"] = {}  # by the word with which their texts begin


@dataclass(frozen=True)
class Domain(Checked, ABC):
    """The rows that a dataset may hold.

    Parameters
    ----------
    n_rows : int
        How many rows a typical dataset has, >= 1.
    """

    n_rows: Count = field(default=5, kw_only=True)

    def __init_subclass__(cls, kinds: tuple[str, ...] = ()) -> None:
        _KINDS.update(dict.fromkeys(kinds, cls))

    @property
    def nonfinite(self) -> bool:
        """Whether entries may be NaN or infinite."""
        return False

    def pair(self, data: Array, neighbour: Array, relation: Relation) -> Pair | None:
        """Return two datasets of rows as a pair, None if they are handed out alike.

        Parameters
        ----------
        data, neighbour : ndarray, shape (n, *shape)
            Neighbours under the relation.
        relation : Relation
        """
        return Pair(data, neighbour, relation, allow_nonfinite=self.nonfinite)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a row: () for numbers, (k,) for vectors."""

    @abstractmethod
    def random_row(self, *, rng: Generator) -> Array:
        """Return a random row; extreme ones are not rare."""

    @abstractmethod
    def extremes(self) -> tuple[Array, ...]:
        """Return a handful of different extreme rows, the most telling first."""

    def code(self, value: Any, place: int) -> float | None:
        """Return what stands for a value at some place of a row, None if nothing does.

        It need not be legal there.
        """
        try:
            return None if isinstance(value, str) else float(value)
        except OverflowError:
            return None

    def told(self, row: Array) -> str:
        """Return a row in words, as short as tells it apart."""
        entries = [f"{x:.6g}" for x in np.ravel(row).tolist()]
        return entries[0] if not self.shape else f"({', '.join(entries)})"

    def spread(self) -> tuple[Array, ...]:
        """Return a row of each kind, where there are few kinds; none by default."""
        return ()

    @abstractmethod
    def nearby(self, row: ArrayLike, scale: float, *, rng: Generator) -> Array:
        """Return a random legal row near a legal one, at times the row itself.

        Parameters
        ----------
        row : array_like
        scale : float
            Size of the step, as a share of the size of the domain, in (0, 1].
            Discrete domains change one entry, at every scale.
        rng : numpy.random.Generator
        """

    @abstractmethod
    def _nearest(self, row: Array) -> Array:
        """Return the legal row nearest to a finite row of the right shape."""

    def project(self, row: ArrayLike) -> Array:
        """Return the legal row nearest to any row of the right shape.

        Raises
        ------
        InputError
            If the row has another shape, or is not finite where rows are.
        """
        entries = check_real("row", row)
        legal = self.nonfinite or np.isfinite(entries).all()
        if entries.shape != self.shape or not legal:
            wanted = "have" if self.nonfinite else "be a finite array of"
            raise InputError(f"row must {wanted} shape {self.shape}, got {row!r}")
        return self._nearest(entries)

    def contains(self, row: ArrayLike) -> bool:
        """Say whether a row is legal.

        Examples
        --------
        >>> from dpaudit.domains import UnitBall
        >>> UnitBall(2).contains([0.6, 0.8]), UnitBall(2).contains([1.0, 1.0])
        (True, False)
        """
        try:
            return np.array_equal(self.project(row), np.asarray(row), equal_nan=True)
        except ValueError:
            return False

    @staticmethod
    def parse(text: str) -> "Domain":
        """Return the domain that a short text names; ``str(domain)`` is such a text.

        Raises
        ------
        InputError
            If the text has none of the forms, or a value is not allowed.

        Examples
        --------
        >>> Domain.parse("ball:3")
        UnitBall(n_rows=5, dimension=3, norm=1.0)
        >>> Domain.parse("scalar:0,1:rows=10")
        Box(n_rows=10, low=0.0, high=1.0, dimension=None)
        >>> from dpaudit.domains import Categories
        >>> str(Categories(4, one_hot=False))
        'codes:4:rows=5'
        >>> Domain.parse("scalar:0,1:nonfinite").contains(float("nan"))
        True
        """
        if _IN_COLUMNS.search(text):
            return _KINDS["table"]._read([text], {})
        parts = text.split(":")
        words = [part for part in parts if "=" not in part]
        options = dict(part.split("=", 1) for part in parts if "=" in part)
        outer = words.pop() if words[-1:] == ["nonfinite"] else None
        try:
            if not words or words[0] not in _KINDS:
                raise ValueError(text)
            domain = _KINDS[words[0]]._read(words, options)
            return domain if outer is None else _KINDS[outer]._read([domain], {})
        except InputError as error:
            raise InputError(f"domain {text!r}: {error}") from None
        except ValueError:
            raise InputError(f"domain must be {_FORMS}, got {text!r}") from None

    @staticmethod
    def like(example: Any) -> "Domain":
        """Return the domain of data like an example, which says nothing but its form.

        That is: its columns, which of them are integers, the range of numbers, and the
        different values of all else; all this is taken to be public (`note`). A column
        named ``user`` has users, of whom each may have several rows.

        Parameters
        ----------
        example : object
            A frame of pandas or polars, a dictionary of arrays, a list of records, or a
            list, set or array of values or of tuples of them.

        Raises
        ------
        InputError
            If it is nothing of the sort, or a column says no range.

        Examples
        --------
        >>> domain = Domain.like([{"age": 30, "sex": "f"}, {"age": 41, "sex": "m"}])
        >>> str(domain)
        'records of age:30..41 sex:{f,m} rows=5'
        >>> domain.note
        'taken to be public, as the example has it: age:30..41 sex:{f,m}'
        """
        return _KINDS["table"]._like(example)

    @property
    def note(self) -> str:
        """What was taken to be public where the domain was read from an example."""
        return ""

    @classmethod
    def _like(cls, example: Any) -> "Domain":
        raise NotImplementedError

    @classmethod
    def _read(cls, words: Sequence[Any], options: Mapping[str, str]) -> "Domain":
        """Return the domain that the words of a text name, the first its kind.

        Raises
        ------
        ValueError
            If they have not its form.
        """
        raise ValueError(words)

    @staticmethod
    def _rows_in(options: Mapping[str, str], *others: str) -> int:
        """Return the number of rows in the options; refuse all but the others."""
        if set(options) - {"rows", *others}:
            raise ValueError(options)
        return int(options.get("rows", "5"))
