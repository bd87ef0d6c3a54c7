r"""Counting queries: column sums of clipped rows.

Rows are people, entries in [0, 1] (others are clipped, each row by itself): column j
says whether, or how far, a person counts for query j. The answers are the column sums.

Under REPLACE_ONE, each answer moves by at most 1, in any direction: the row
(1, 0, 1) replaced by (0, 1, 0) moves three answers by -1, 1, -1. Conversely any two
vectors of non-negative integers that differ by at most 1 everywhere are the answers of
two neighbours (`neighbours_with`). This is the neighbourhood for which the literature
states, and refutes, report-noisy-max and the sparse vector technique.
"""

from abc import ABC
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import Array, PureTextbookMechanism
from dpaudit.checked import Count
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_matrix

__all__ = [
    "CountingMechanism",
    "FixedQueriesMechanism",
    "count_patterns",
    "neighbours_with",
]


@dataclass(frozen=True)
class CountingMechanism(PureTextbookMechanism, ABC):
    """A mechanism on column sums of rows in [0, 1]^k, under REPLACE_ONE."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def answers(self, data: ArrayLike) -> Array:
        """Return the column sums of the clipped rows, shape (k,)."""
        return check_matrix("data", data, min_rows=1).clip(0.0, 1.0).sum(axis=0)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return pairs worth auditing: the worst case, then the usual patterns."""
        worst = self.worst_case()
        return (worst, *count_patterns(worst.data.shape[1]))


@dataclass(frozen=True)
class FixedQueriesMechanism(CountingMechanism, ABC):
    """A counting mechanism whose privacy depends on how many queries there are.

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    queries : int
        Columns that the data must have, >= 1.
    """

    _: KW_ONLY
    queries: Count = 10

    def answers(self, data: ArrayLike) -> Array:
        """Return the column sums of the clipped rows, shape (queries,)."""
        answers = super().answers(data)
        if len(answers) != self.queries:
            raise InputError(
                f"data must have {self.queries} columns, got {len(answers)}"
            )
        return answers


def neighbours_with(first: Sequence[int], second: Sequence[int]) -> Pair:
    """Return neighbours whose answers are these, non-negative integers 1 apart at most.

    The common rows are stairs: row i counts for the queries with more than i common
    votes. The row that is replaced comes last.

    Examples
    --------
    >>> pair = neighbours_with([2, 0], [1, 1])
    >>> pair.data
    array([[1., 0.],
           [1., 0.]])
    >>> pair.neighbour
    array([[1., 0.],
           [0., 1.]])
    """
    one, two = np.array(first), np.array(second)
    if one.shape != two.shape or min(*one, *two) < 0 or np.abs(one - two).max() > 1:
        raise InputError(
            "answers of neighbours are non-negative and 1 apart at most, "
            f"got {first} and {second}"
        )
    common = np.minimum(one, two)
    stairs = np.arange(common.max())[:, np.newaxis] < common
    data, neighbour = (np.vstack([stairs, [x - common]]) for x in (one, two))
    return Pair(data, neighbour, Relation.REPLACE_ONE)


def count_patterns(queries: int) -> tuple[Pair, ...]:
    """Return the patterns of answers that are usually tried on counting mechanisms.

    Source: Ding et al., *Detecting violations of differential privacy*, CCS 2018,
    Table 3: one answer moves; all move together; one against the rest; half against
    half.
    """
    half = queries // 2
    ones, zeros = [1] * queries, [0] * queries
    against = [[2, *zeros[1:]], [0] + [2] * (queries - 1)]
    halves = ones[:half] + zeros[half:], zeros[:half] + ones[half:]
    patterns = (
        (ones, [0, *ones[1:]]),
        (ones, [2, *ones[1:]]),
        (ones, zeros),
        (ones, [2] * queries),
        *((ones, other) for other in against),
        halves,
    )
    return tuple(neighbours_with(*pattern) for pattern in patterns)
