"""Neighbouring relations, and pairs of neighbouring datasets."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import InputError

__all__ = ["Pair", "Relation"]


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


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring datasets, validated.

    Rows are compared in order, because a mechanism may depend on the order (disjoint
    batches do) and a permutation is not a neighbour.

    Parameters
    ----------
    data, neighbour : array_like
        Finite numbers; the first axis runs over rows (people), further axes have the
        same shape in both. Stored as read-only float64 copies.
    relation : Relation or str, optional
        Inferred from the row counts when omitted: equal counts are ``REPLACE_ONE``,
        counts that differ by one are ``ADD_REMOVE``.

    Raises
    ------
    InputError
        If the datasets are not neighbours under the relation, are identical, are not
        numeric or not finite, or have rows of different shapes.

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
    ) -> None:
        first, second = _rows("data", data), _rows("neighbour", neighbour)
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


def _rows(name: str, value: ArrayLike) -> NDArray[np.float64]:
    try:
        rows = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a numeric array of rows") from None
    if rows.ndim == 0:
        raise InputError(f"{name} must be an array of rows, got the number {value!r}")
    finite = _row_by_row(np.isfinite(rows))
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{name} must be finite, but row {row} has a NaN or infinity")
    rows.flags.writeable = False
    return rows


def _row_by_row(entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say for each row whether it is true throughout; there may be no rows."""
    return np.asarray(entries.all(axis=tuple(range(1, entries.ndim))))


def _check_neighbours(
    first: NDArray[np.float64], second: NDArray[np.float64], relation: Relation
) -> None:
    """Raise unless the datasets differ by exactly one step of the relation."""
    problem = f"data and neighbour are not neighbours under {relation}"
    if relation is Relation.REPLACE_ONE:
        if len(first) != len(second):
            raise InputError(
                f"{problem}: they have {len(first)} and {len(second)} rows"
            )
        changed = np.count_nonzero(~_row_by_row(first == second))
        if changed != 1:
            raise InputError(f"{problem}: {changed} rows differ, exactly one must")
        return
    shorter, longer = sorted((first, second), key=len)
    if len(longer) - len(shorter) != 1:
        raise InputError(f"{problem}: they have {len(first)} and {len(second)} rows")
    same = _row_by_row(shorter == longer[:-1])
    place = len(shorter) if same.all() else int(np.argmin(same))
    if not np.array_equal(shorter[place:], longer[place + 1 :]):
        raise InputError(f"{problem}: they differ in more than the row added")
