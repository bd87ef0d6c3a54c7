"""Pairs of datasets that are no arrays of numbers: records, frames, texts, anything.

Each execution is handed a copy of its own (`dpaudit.neighbours.fresh`), as an object
cannot be locked. That the two are neighbours is checked where rows are known: in lists,
tuples, arrays and pandas frames, compared in order, and in sets. Of anything else (a
text, a graph, a dictionary) it is taken for granted.
"""

import copy
import pickle
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation, is_plain

__all__ = ["ObjectPair"]


class ObjectPair(Pair):
    """Two neighbouring datasets of any kind.

    Parameters
    ----------
    data, neighbour : object
        Of one type. Copies are kept: arrays of numbers, structured ones too, are
        read-only. Each execution gets a copy of its own.
    relation : Relation or str

    Raises
    ------
    InputError
        If they are of different types, cannot be copied, are alike, or are seen not to
        be neighbours.

    Examples
    --------
    >>> pair = ObjectPair([{"age": 30}], [{"age": 30}, {"age": 41}], "add-remove")
    >>> pair.checked, pair.changed, pair.sizes
    (True, (None, 1), (1, 2))
    >>> ObjectPair("ab", "abc", "add-remove").checked
    False
    """

    data: Any
    neighbour: Any
    checked: bool
    """Whether it was seen that they are neighbours."""
    _changed: tuple[int | None, int | None] | None
    _rows: Pair | None
    _domain: Any

    def __init__(self, data: Any, neighbour: Any, relation: Relation | str) -> None:
        if type(data) is not type(neighbour):
            kinds = f"{type(data).__name__} and {type(neighbour).__name__}"
            raise InputError(f"data and neighbour must be of one type, got {kinds}")
        relation = Relation.parse(relation)
        sides = _kept("data", data), _kept("neighbour", neighbour)
        changed = _changed(*sides, relation)
        if changed is None and _same(*sides):
            raise InputError("data and neighbour must differ, got the same twice")
        self._set(*sides, relation, changed)

    @staticmethod
    def locked(data: Any) -> Any:
        """Return an array locked for good, which nobody can unlock; others as is."""
        if is_plain(data):
            data.flags.writeable = False
            return data.view()
        return data

    @classmethod
    def made(cls, domain: Any, rows: Pair, data: Any, neighbour: Any) -> "ObjectPair":
        """Return the pair that a domain makes of arrays of rows.

        Parameters
        ----------
        domain : dpaudit.Domain
        rows : Pair
            Of arrays.
        data, neighbour : object
            What the domain hands out for them.

        Raises
        ------
        InputError
            If they are sets, and no neighbours: distinct rows may be one element.
        """
        pair = object.__new__(cls)
        changed: tuple[int | None, int | None] = (None, None)
        if isinstance(data, set):
            _changed(data, neighbour, rows.relation)
        elif (len(data), len(neighbour)) == rows.sizes:
            changed = rows.changed
        sides = cls.locked(data), cls.locked(neighbour)
        pair._set(*sides, rows.relation, changed, rows, domain)
        return pair

    def _set(
        self,
        data: Any,
        neighbour: Any,
        relation: Relation,
        changed: tuple[int | None, int | None] | None,
        rows: Pair | None = None,
        domain: Any = None,
    ) -> None:
        values = {"data": data, "neighbour": neighbour, "relation": relation}
        values |= {"checked": changed is not None, "_changed": changed}
        values |= {"_rows": rows, "_domain": domain}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._rows is not None:
            rows = self._rows
            return self._domain.pair, (rows.data, rows.neighbour, rows.relation)
        return type(self), (self.data, self.neighbour, self.relation)

    @property
    def rows(self) -> Pair | None:
        """The arrays of rows of which a domain made the datasets, if one did."""
        return self._rows

    @property
    def domain(self) -> Any:
        """The domain that did."""
        return self._domain

    def check_untouched(self) -> None:
        """Do nothing: no execution is handed what could be written to."""

    def is_data(self, data: Any) -> bool:
        """Say whether a dataset is `data`, itself."""
        return data is self.data

    @property
    def sizes(self) -> tuple[int, int]:
        """How many rows there are in either dataset, -1 where that is not known."""
        if self._changed in (None, (None, None)):
            return -1, -1
        return len(self.data), len(self.neighbour)

    @cached_property
    def changed(self) -> tuple[int | None, int | None]:
        """Where the row stands that differs; None also where that is not known."""
        return self._changed or (None, None)

    @cached_property
    def swapped(self) -> "ObjectPair":
        """The same datasets the other way round."""
        made = object.__new__(type(self))
        back = None if self._changed is None else (self._changed[1], self._changed[0])
        rows = None if self._rows is None else self._rows.swapped
        sides = self.neighbour, self.data
        made._set(*sides, self.relation, back, rows, self._domain)
        return made

    @property
    def finite(self) -> bool:
        """False: attacks that compute with the rows cannot read them."""
        return False


def _kept(name: str, value: Any) -> Any:
    try:
        kept = copy.deepcopy(value)
    except Exception as error:
        raise InputError(
            f"{name} must be something that copy.deepcopy copies, as each execution "
            f"gets a copy of its own, got {type(value).__name__}: {error}"
        ) from None
    return ObjectPair.locked(kept)


def _changed(
    first: Any, second: Any, relation: Relation
) -> tuple[int | None, int | None] | None:
    """Return where the row stands that differs, None where rows are not known.

    Sets have rows, and no places. Raises unless the two are neighbours.
    """
    problem = f"data and neighbour are not neighbours under {relation}"
    adds = relation is Relation.ADD_REMOVE
    if isinstance(first, set | frozenset):
        apart = sorted((len(first - second), len(second - first)))
        if apart != [1 - adds, 1]:
            raise InputError(f"{problem}: {sum(apart)} elements are in one alone")
        return None, None
    rows = _rows(first, second)
    if rows is None:
        return None
    shorter, longer = sorted(rows, key=len)
    if len(longer) - len(shorter) != adds:
        raise InputError(f"{problem}: they have {len(rows[0])} and {len(rows[1])} rows")
    pairs = zip(shorter, longer, strict=False)
    others = [n for n, both in enumerate(pairs) if not _same(*both)]
    if not adds:
        if len(others) != 1:
            raise InputError(f"{problem}: {len(others)} rows differ, exactly one must")
        return others[0], others[0]
    place = others[0] if others else len(shorter)
    if not all(map(_same, shorter[place:], longer[place + 1 :])):
        raise InputError(f"{problem}: they differ in more than the row added")
    return (None, place) if len(rows[0]) < len(rows[1]) else (place, None)


def _rows(first: Any, second: Any) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """Return the rows of both datasets, None where it is not known what rows are."""
    if isinstance(first, list | tuple):
        return first, second
    if isinstance(first, np.ndarray) and first.ndim and second.ndim:
        if first.dtype != second.dtype or first.shape[1:] != second.shape[1:]:
            raise InputError(
                "data and neighbour must have rows of one type and shape, got "
                f"{first.dtype} {first.shape[1:]} and {second.dtype} {second.shape[1:]}"
            )
        return first.tolist(), second.tolist()
    package = type(first).__module__.partition(".")[0]
    if package == "pandas" and hasattr(first, "columns"):
        return _rows_of_frames(first, second)
    return None


def _rows_of_frames(first: Any, second: Any) -> tuple[list[Any], list[Any]]:
    """Return the rows of pandas frames, with their labels unless these are numbers."""
    if list(first.columns) != list(second.columns):
        raise InputError(
            f"data and neighbour must have the same columns, got {list(first.columns)} "
            f"and {list(second.columns)}"
        )
    labels = any(type(each.index).__name__ != "RangeIndex" for each in (first, second))
    one, two = (
        list(each.itertuples(index=labels, name=None)) for each in (first, second)
    )
    return one, two


def _same(one: Any, other: Any) -> bool:
    """Say whether two rows are equal; NaN equals NaN."""
    if one is other:
        return True
    with suppress(Exception):  # arrays have no one answer
        if bool(one == other):
            return True
    with suppress(Exception):
        return pickle.dumps(one) == pickle.dumps(other)
    return False
