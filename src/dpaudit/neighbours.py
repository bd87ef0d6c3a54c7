"""Neighbouring relations, and pairs of neighbouring datasets."""

import copy
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError, MechanismError
from dpaudit.validation import check_real

__all__ = [
    "Neighbouring",
    "Pair",
    "Relation",
    "check_relation",
    "fresh",
    "is_plain",
]

_WRITTEN = (
    "the mechanism wrote to the dataset of the pair, which is locked, and not to the "
    "copy that it was given: its releases are no longer of that dataset"
)
"""What is said of a mechanism that changes its data."""


class Relation(StrEnum):
    """Which datasets count as neighbours.

    ``ADD_REMOVE``: one has all rows of the other, in the same order, and one more.
    ``REPLACE_ONE``: both have the same number of rows and differ in exactly one.
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def parse(cls, value: "Relation | str") -> "Relation":
        """Return the relation of that name, or raise `InputError`."""
        try:
            return cls(value)
        except ValueError:
            raise InputError(
                f"relation must be one of {[r.value for r in cls]}, got {value!r}"
            ) from None


def check_relation(name: str, value: "Relation | str") -> Relation:
    """Return the relation of that name, or raise `InputError`."""
    return Relation.parse(value)


Neighbouring: TypeAlias = Annotated[Relation, check_relation]
"""A relation, or its name, where a field is checked (`dpaudit.validation.Checked`)."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring datasets, validated.

    Rows are compared in order, because a mechanism may depend on the order (disjoint
    batches do) and a permutation is not a neighbour. NaN equals NaN.

    Parameters
    ----------
    data, neighbour : array_like
        Real numbers; the first axis runs over rows (people), further axes have the
        same shape in both. An empty list has no rows, of any shape.
        Stored as read-only float64 copies.
    relation : Relation or str, optional
        Inferred from the row counts when omitted: equal counts are ``REPLACE_ONE``,
        counts that differ by one are ``ADD_REMOVE``.
    allow_nonfinite : bool
        Whether rows may hold NaN and infinities. Mostly these are mistakes; but such
        rows can be handed in like any others, and code that clips may let them pass.

    Raises
    ------
    InputError
        If the datasets are not neighbours under the relation, are identical, are not
        real numbers, or not finite though they must be, or have rows of different
        shapes.

    Examples
    --------
    >>> str(Pair([[0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]).relation)
    'add-remove'
    """

    data: NDArray[np.float64]
    neighbour: NDArray[np.float64]
    relation: Relation = field(default=None)  # type: ignore[assignment]

    def __init__(
        self,
        data: ArrayLike,
        neighbour: ArrayLike,
        relation: Relation | str | None = None,
        *,
        allow_nonfinite: bool = False,
    ) -> None:
        first = _rows("data", data, allow_nonfinite)
        second = _rows("neighbour", neighbour, allow_nonfinite)
        if first.shape == (0,):
            first = first.reshape(0, *second.shape[1:])
        elif second.shape == (0,):
            second = second.reshape(0, *first.shape[1:])
        if first.shape[1:] != second.shape[1:]:
            raise InputError(
                "data and neighbour must have rows of the same shape, got "
                f"{first.shape[1:]} and {second.shape[1:]}"
            )
        difference = len(second) - len(first)
        if relation is None:
            if abs(difference) > 1:
                raise InputError(
                    "data and neighbour are not neighbours: they have "
                    f"{len(first)} and {len(second)} rows"
                )
            relation = Relation.ADD_REMOVE if difference else Relation.REPLACE_ONE
        relation = Relation.parse(relation)
        _check_neighbours(first, second, relation)
        object.__setattr__(self, "data", first)
        object.__setattr__(self, "neighbour", second)
        object.__setattr__(self, "relation", relation)
        object.__setattr__(self, "_checksums", self._checksums_now())

    def __reduce__(self) -> tuple[Any, ...]:
        # Built anew wherever it is copied to, so that its datasets are locked again.
        build = partial(type(self), allow_nonfinite=True)
        return build, (self.data, self.neighbour, self.relation)

    def check_untouched(self) -> None:
        """Find out whether the datasets are still those that they were.

        They are locked, and mechanisms are given copies; but a library that comes to
        their memory can write to it. What is drawn from then on is drawn on datasets
        that need not be neighbours.

        Raises
        ------
        MechanismError
            If either is not.
        """
        if self._checksums_now() != self._checksums:  # type: ignore[attr-defined]
            raise MechanismError(_WRITTEN)

    def _checksums_now(self) -> tuple[int, int]:
        return _checksum(self.data), _checksum(self.neighbour)

    def is_data(self, data: Any) -> bool:
        """Say whether a dataset is `data`, rather than `neighbour`."""
        return bool(np.array_equal(data, self.data, equal_nan=True))

    @property
    def rows(self) -> "Pair | None":
        """The same pair as arrays of rows; None of objects that no domain has made."""
        return self

    @property
    def domain(self) -> Any:
        """The `dpaudit.Domain` that hands out the datasets, None of arrays."""
        return None

    @property
    def sizes(self) -> tuple[int, int]:
        """How many rows there are in either dataset."""
        return len(self.data), len(self.neighbour)

    @cached_property
    def changed(self) -> tuple[int | None, int | None]:
        """Where the row stands that differs, in `data` and in `neighbour`.

        None in the one that does not have it. All other rows are the same, in order.
        """
        shorter, longer = sorted((self.data, self.neighbour), key=len)
        place = _first_other(shorter, longer)
        has = (len(each) == len(longer) for each in (self.data, self.neighbour))
        first, second = (place if each else None for each in has)
        return first, second

    @cached_property
    def swapped(self) -> "Pair":
        """The same datasets the other way round."""
        return Pair(self.neighbour, self.data, self.relation, allow_nonfinite=True)

    @cached_property
    def finite(self) -> bool:
        """Whether there is no NaN and no infinity in either dataset."""
        return bool(np.isfinite(self.data).all() and np.isfinite(self.neighbour).all())


def fresh(data: Any) -> Any:
    """Return what an execution may be handed: a copy, which it may write into.

    Examples
    --------
    >>> records = [{"age": 30}]
    >>> fresh(records)[0] is records[0]
    False
    """
    return data.copy(order="K") if is_plain(data) else copy.deepcopy(data)


def is_plain(data: Any) -> bool:
    """Say whether data are an array that can be locked, as it holds no objects."""
    return type(data) is np.ndarray and not data.dtype.hasobject


def _checksum(rows: NDArray[np.float64]) -> int:
    """Return a number that hardly stays the same when an array is written to."""
    return zlib.crc32(rows.ravel(order="K").data.cast("B"))


def same_rows(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Say for each row whether it is the same in both arrays; NaN equals NaN.

    Parameters
    ----------
    first, second : ndarray, shape (n, ...)
        Of one shape.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    return _row_by_row((first == second) | (np.isnan(first) & np.isnan(second)))


def _rows(name: str, value: ArrayLike, allow_nonfinite: bool) -> NDArray[np.float64]:
    rows = np.array(check_real(name, value, "a numeric array of rows"))
    if rows.ndim == 0:
        raise InputError(f"{name} must be an array of rows, got the number {value!r}")
    finite = _row_by_row(np.isfinite(rows))
    if not (allow_nonfinite or finite.all()):
        row = int(np.argmin(finite))
        raise InputError(
            f"{name} must be finite, but row {row} has a NaN or infinity; such rows "
            "are audited if allow_nonfinite says so"
        )
    rows.flags.writeable = False
    return rows.view()  # which cannot be unlocked


def _row_by_row(entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say for each row whether it is true throughout; there may be no rows."""
    return np.asarray(entries.all(axis=tuple(range(1, entries.ndim))))


def _check_neighbours(
    first: NDArray[np.float64], second: NDArray[np.float64], relation: Relation
) -> None:
    """Raise unless the datasets differ by exactly one step of the relation."""
    problem = f"data and neighbour are not neighbours under {relation}"
    shorter, longer = sorted((first, second), key=len)
    if len(longer) - len(shorter) != (relation is Relation.ADD_REMOVE):
        raise InputError(f"{problem}: they have {len(first)} and {len(second)} rows")
    if relation is Relation.REPLACE_ONE:
        changed = np.count_nonzero(~same_rows(first, second))
        if changed != 1:
            raise InputError(f"{problem}: {changed} rows differ, exactly one must")
        return
    place = _first_other(shorter, longer)
    if not same_rows(shorter[place:], longer[place + 1 :]).all():
        raise InputError(f"{problem}: they differ in more than the row added")


def _first_other(shorter: NDArray[np.float64], longer: NDArray[np.float64]) -> int:
    """Return the first place at which the rows of two datasets are not the same."""
    same = same_rows(shorter, longer[: len(shorter)])
    return len(shorter) if same.all() else int(np.argmin(same))
