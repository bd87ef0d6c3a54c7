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

from math import cos, sin

import numpy as np

from dpaudit.arrays import Array
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_length

__all__ = ["odd_pair", "shown_pair"]

_DIAGONAL = np.sqrt(0.5)


def shown_pair(
    n_components: int, dimension: int | None, *, count: int, angle: float = np.pi / 4
) -> Pair:
    """Return rows at the first r basis vectors, and one that leans out of their span.

    The last row is e_r cos a + e_(r+1) sin a in the data, and has the other sign before
    the sine in the neighbour; REPLACE_ONE. D is by default r + 1; the count is that of
    the rows beside the last.

    Examples
    --------
    >>> shown_pair(1, 2, count=1).neighbour.round(2)
    array([[ 1.  ,  0.  ],
           [ 0.71, -0.71]])
    """
    lean, out = cos(angle), sin(angle)
    return _replaced(n_components, dimension, count, [lean, out], [lean, -out])


def added_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return the rows of `shown_pair`, and the same without the last; ADD_REMOVE."""
    rows = shown_pair(n_components, dimension, count=count).data
    return Pair(rows[:-1], rows, Relation.ADD_REMOVE)


def odd_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return the rows of `shown_pair`, and the same with e_r for the last; REPLACE_ONE.

    In the neighbour all rows are in the span of the first r basis vectors, so nothing
    but noise takes V out of it.

    Examples
    --------
    >>> odd_pair(1, 2, count=1).neighbour
    array([[1., 0.],
           [1., 0.]])
    """
    ends = [cos(np.pi / 4), sin(np.pi / 4)], [1.0, 0.0]
    return _replaced(n_components, dimension, count, *ends)


def lone_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return rows at the first r basis vectors, with and without one at the next.

    The relation is ADD_REMOVE, and D > r, by default r + 1.

    Examples
    --------
    >>> lone_pair(1, 2, count=1).neighbour
    array([[1., 0.],
           [0., 1.]])
    """
    rows = _rows(n_components, dimension, count, [0.0, 1.0])
    return Pair(rows[:-1], rows, Relation.ADD_REMOVE)


def apart_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return the same where the last row is at one of two further basis vectors.

    The relation is REPLACE_ONE, and D > r + 1, by default r + 2.

    Examples
    --------
    >>> apart_pair(1, 3, count=1).neighbour
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    ends = [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    return _replaced(n_components, dimension, count, *ends)


def balanced_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return rows at the first r + 1 basis vectors, and one that breaks the tie.

    The last row is (e_r + e_(r+1))/sqrt 2 in the data, and has a minus sign in the
    neighbour; REPLACE_ONE. Without it every subspace that e_1, ..., e_(r-1) and a unit
    vector in the plane of e_r and e_(r+1) span is as good, so it shows in releases. The
    default D is r + 1.

    Examples
    --------
    >>> balanced_pair(1, 2, count=2).neighbour.round(2)
    array([[ 1.  ,  0.  ],
           [ 0.  ,  1.  ],
           [ 0.71, -0.71]])
    """
    ends = [_DIAGONAL, _DIAGONAL], [_DIAGONAL, -_DIAGONAL]
    return _replaced(n_components, dimension, count, *ends, further=1)


def _replaced(
    n_components: int,
    dimension: int | None,
    count: int,
    one: list[float],
    other: list[float],
    further: int = 0,
) -> Pair:
    """Return rows with either end; REPLACE_ONE."""
    first, second = (
        _rows(n_components, dimension, count, end, further) for end in (one, other)
    )
    return Pair(first, second, Relation.REPLACE_ONE)


def _rows(
    n_components: int,
    dimension: int | None,
    count: int,
    end: list[float],
    further: int = 0,
) -> Array:
    """Return rows at the first basis vectors in turn, and a last one.

    What is given of that are its entries from e_r on.
    """
    r = check_count("n_components", n_components)
    least = r - 1 + len(end)
    d = check_length(dimension, least, minimum=least)
    count = check_count("count", count)
    rows = np.zeros((count + 1, d))
    rows[np.arange(count), np.arange(count) % (r + further)] = 1
    rows[-1, r - 1 : least] = end
    return rows
