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

__all__ = [
    "added_pair",
    "apart_pair",
    "balanced_pair",
    "lone_pair",
    "odd_pair",
    "shown_pair",
]


def shown_pair(
    n_components: int, dimension: int | None, *, count: int, angle: float = np.pi / 4
) -> Pair:
    """Return rows at the first r basis vectors, and one that leans out of their span.

    The last row is e_r cos a + e_(r+1) sin a in the data, and has the other sign before
    the sine in the neighbour; REPLACE_ONE.

    Parameters
    ----------
    n_components : int
        r.
    dimension : int, optional
        D > r. Default: r + 1.
    count : int
        How many rows there are beside the last.
    angle : float
        a, in radians.

    Examples
    --------
    >>> shown_pair(1, 2, count=1).neighbour.round(2)
    array([[ 1.  ,  0.  ],
           [ 0.71, -0.71]])
    """
    rows = _rows(n_components, dimension, count, least=n_components + 1)
    rows[-1, n_components - 1], rows[-1, n_components] = cos(angle), sin(angle)
    other = rows.copy()
    other[-1, n_components] *= -1
    return Pair(rows, other, Relation.REPLACE_ONE)


def added_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return the rows of `shown_pair`, and the same without the last; ADD_REMOVE.

    The default D is r + 1.
    """
    shown = shown_pair(n_components, dimension, count=count)
    return Pair(shown.data[:-1], shown.data, Relation.ADD_REMOVE)


def odd_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return the rows of `shown_pair`, and the same with e_r for the last; REPLACE_ONE.

    In the neighbour all rows are in the span of the first r basis vectors, so nothing
    but noise takes V out of it. The default D is r + 1.

    Examples
    --------
    >>> odd_pair(1, 2, count=1).neighbour
    array([[1., 0.],
           [1., 0.]])
    """
    rows = shown_pair(n_components, dimension, count=count).data
    other = rows.copy()
    other[-1] = 0
    other[-1, n_components - 1] = 1
    return Pair(rows, other, Relation.REPLACE_ONE)


def lone_pair(n_components: int, dimension: int | None, *, count: int) -> Pair:
    """Return rows at the first r basis vectors, with and without one at the next.

    Parameters
    ----------
    n_components : int
        r.
    dimension : int, optional
        D > r. Default: r + 1.
    count : int
        How many rows there are beside the last.

    Returns
    -------
    Pair
        ADD_REMOVE.

    Examples
    --------
    >>> lone_pair(1, 2, count=1).neighbour
    array([[1., 0.],
           [0., 1.]])
    """
    rows = _rows(n_components, dimension, count, least=n_components + 1)
    rows[-1, n_components] = 1
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
    rows = _rows(n_components, dimension, count, least=n_components + 2)
    other = rows.copy()
    rows[-1, n_components] = other[-1, n_components + 1] = 1
    return Pair(rows, other, Relation.REPLACE_ONE)


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
    rows = _rows(n_components, dimension, count, least=n_components + 1)
    rows[np.arange(count)] = 0
    rows[np.arange(count), np.arange(count) % (n_components + 1)] = 1
    rows[-1, n_components - 1] = rows[-1, n_components] = np.sqrt(0.5)
    other = rows.copy()
    other[-1, n_components] *= -1
    return Pair(rows, other, Relation.REPLACE_ONE)


def _rows(n_components: int, dimension: int | None, count: int, *, least: int) -> Array:
    r = check_count("n_components", n_components)
    d = check_length(dimension, least, minimum=least)
    count = check_count("count", count)
    rows = np.zeros((count + 1, d))
    rows[np.arange(count), np.arange(count) % r] = 1
    return rows
