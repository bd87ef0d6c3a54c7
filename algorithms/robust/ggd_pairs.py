r"""Pairs of neighbours on which geodesic descent shows one row.

A row x adds a term of norm ||V^T x|| in the direction of its residual Q x. Both are
large where x is about half-way out of the span of V, whatever V does within a few tens
of degrees; near the span the term is longer, but which way it points depends on V. All
other rows are at the first r basis vectors, so that V is known, or there are so few
that they do not hide it.
"""

from math import cos, sin

import numpy as np

from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count

__all__ = ["added_pair", "odd_pair", "shown_pair"]


def shown_pair(
    n_components: int,
    dimension: int | None,
    *,
    count: int,
    angle: float = np.pi / 4,
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
    r = check_count("n_components", n_components)
    least = r + 1
    d = check_count(
        "dimension", least if dimension is None else dimension, minimum=least
    )
    rows = np.zeros((count + 1, d))
    rows[np.arange(count), np.arange(count) % r] = 1
    rows[-1, r - 1], rows[-1, r] = cos(angle), sin(angle)
    other = rows.copy()
    other[-1, r] *= -1
    return Pair(rows, other, Relation.REPLACE_ONE)


def added_pair(
    n_components: int,
    dimension: int | None,
    *,
    count: int,
    angle: float = np.pi / 4,
) -> Pair:
    """Return the rows of `shown_pair`, and the same without the last; ADD_REMOVE.

    The default D is r + 1.
    """
    shown = shown_pair(n_components, dimension, count=count, angle=angle)
    return Pair(shown.data[:-1], shown.data, Relation.ADD_REMOVE)


def odd_pair(
    n_components: int,
    dimension: int | None,
    *,
    count: int,
    angle: float = np.pi / 4,
) -> Pair:
    """Return the rows of `shown_pair`, and the same with e_r for the last; REPLACE_ONE.

    In the neighbour all rows are in the span of the first r basis vectors, so nothing
    but noise takes V out of it. The default D is r + 1.

    Examples
    --------
    >>> odd_pair(1, 2, count=1).neighbour
    array([[1., 0.],
           [1., 0.]])
    """
    rows = shown_pair(n_components, dimension, count=count, angle=angle).data
    other = rows.copy()
    other[-1] = 0
    other[-1, n_components - 1] = 1
    return Pair(rows, other, Relation.REPLACE_ONE)
