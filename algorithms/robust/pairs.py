r"""Pairs of neighbours on which descent shows one row.

*On GLAD* a row x adds a term of norm ||V^T x|| in the direction of its residual Q x.
Both are large where x is about half-way out of the span of V, whatever V does within a
few tens of degrees; near the span the term is longer, but which way it points depends
on V: `shown_pair`, `added_pair`, `odd_pair`.

*On REAPER* it adds a term of Frobenius norm 1 where (I - P) x points along x. If x is
orthogonal to all other rows, whatever P does beyond noise, (I - P) x stays along x, and
the term is x x^T, the longest there is. Two such rows that are orthogonal to each other
move the sum by sqrt 2: `lone_pair`, `apart_pair`, `balanced_pair`.

All other rows are at the first r basis vectors, so that descent learns their span, or
there are so few that they do not hide the one.
"""

from dataclasses import dataclass
from math import cos, sin, sqrt

import numpy as np

from dpaudit.algorithms.shared.bases import enough_rows
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_length

__all__ = ["odd_pair", "shown_pair"]


@dataclass(frozen=True)
class _Ends:
    """Rows at the first r basis vectors in turn, and what the last row may be.

    Called with r, with D, by default the least, and with the number of the rows beside
    the last, it returns the pair.

    Parameters
    ----------
    one : tuple of float
        The last row: its entries from e_r on.
    other : tuple of float, optional
        The same in the neighbour; REPLACE_ONE. Without it one side is without the last
        row; ADD_REMOVE.
    further : int
        At how many more basis vectors the other rows are.
    """

    one: tuple[float, ...]
    other: tuple[float, ...] | None = None
    further: int = 0

    def __call__(self, n_components: int, dimension: int | None, *, count: int) -> Pair:
        """Return the pair."""
        r = check_count("n_components", n_components)
        least = r - 1 + len(self.one)
        d = check_length(dimension, least, minimum=least)
        count = enough_rows(check_count("count", count))
        rows = np.zeros((count + 1, d))
        rows[np.arange(count), np.arange(count) % (r + self.further)] = 1
        rows[-1, r - 1 : least] = self.one
        if self.other is None:
            return Pair(rows[:-1], rows, Relation.ADD_REMOVE)
        neighbour = rows.copy()
        neighbour[-1, r - 1 : least] = self.other
        return Pair(rows, neighbour, Relation.REPLACE_ONE)


_OUT = cos(np.pi / 4), sin(np.pi / 4)

shown_pair = _Ends(_OUT, (_OUT[0], -_OUT[1]))
"""The last row leans half-way out of the span of the others, to either side."""

added_pair = _Ends(_OUT)
"""The rows of `shown_pair`, and the same without the last."""

odd_pair = _Ends(_OUT, (1.0, 0.0))
"""The rows of `shown_pair`, and the same with e_r for the last.

In the neighbour all rows are in the span of the first r basis vectors, so nothing but
noise takes V out of it.
"""

lone_pair = _Ends((0.0, 1.0))
"""Rows at the first r basis vectors, with and without one at the next."""

apart_pair = _Ends((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""The same where the last row is at one of two further basis vectors."""

balanced_pair = _Ends((sqrt(0.5), sqrt(0.5)), (sqrt(0.5), -sqrt(0.5)), further=1)
"""Rows at the first r + 1 basis vectors, and one that breaks the tie.

The last row is (e_r + e_(r+1))/sqrt 2 in the data, and has a minus sign in the
neighbour. Without it every subspace that e_1, ..., e_(r-1) and a unit vector in the
plane of e_r and e_(r+1) span is as good, so it shows in releases.
"""
