"""Pairs of streams that differ in one row."""

import numpy as np

from dpaudit.neighbours import Pair, Relation

__all__ = ["oblique_row", "replaced_row"]


def replaced_row(length: int, dimension: int, place: int, *, row_norm: float) -> Pair:
    """Return zero rows but for one, at e_1 on one side and at e_2 on the other.

    For d = 1 the other side is all zeros. Places are counted from 0.

    Examples
    --------
    >>> replaced_row(2, 2, 0, row_norm=1.0).neighbour
    array([[0., 1.],
           [0., 0.]])
    """
    first, second = np.zeros((2, length, dimension))
    first[place, 0] = row_norm
    if dimension > 1:
        second[place, 1] = row_norm
    return Pair(first, second, Relation.REPLACE_ONE)


def oblique_row(
    length: int, dimension: int, n_components: int, place: int, *, row_norm: float
) -> Pair:
    """Return rows at the first k basis vectors in turn, but for one row.

    That is half-way from e_k to e_(k+1) on one side, and to -e_(k+1) on the other: it
    turns the leading subspace to opposite sides. For d = k, where no subspace can turn,
    it is as in `replaced_row`.

    Examples
    --------
    >>> oblique_row(2, 2, 1, 0, row_norm=1.0).data.round(2)
    array([[0.71, 0.71],
           [1.  , 0.  ]])
    """
    k = n_components
    if dimension <= k:
        return replaced_row(length, dimension, place, row_norm=row_norm)
    rows = row_norm * np.eye(dimension)[np.arange(length) % k]
    sides = []
    for sign in (1, -1):
        side = rows.copy()
        side[place] = 0
        side[place, [k - 1, k]] = row_norm * np.sqrt(0.5) * np.array([1, sign])
        sides.append(side)
    return Pair(sides[0], sides[1], Relation.REPLACE_ONE)
