"""Neighbouring pairs that show what a mechanism for subspaces does to rare directions.

All are made of rows along basis vectors, so that A is diagonal.
"""

import numpy as np

from dpaudit.neighbours import Pair, Relation

__all__ = [
    "new_direction_pair",
    "repeated_direction_pair",
    "tied_directions_pair",
]

_MOST_ROWS = 10_000


def new_direction_pair(
    n_components: int,
    dimension: int,
    copies: int,
    relation: Relation,
    row_norm: float = 1.0,
) -> Pair:
    """Return a pair on which one row points where the others do not.

    `copies` rows at each of the first k basis vectors, but at most 10,000 in all.
    ADD_REMOVE: a row at the next basis vector joins them. REPLACE_ONE: another row at
    the first basis vector takes the place of that row. For k = d there is no next one:
    then it is the last again, with the opposite sign.

    Parameters
    ----------
    n_components, dimension : int
        1 <= k <= d.
    copies : int
        At least 1.
    relation : Relation
    row_norm : float
        Length of every row.

    Examples
    --------
    >>> new_direction_pair(2, 3, 1, Relation.ADD_REMOVE).neighbour
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    basis = row_norm * np.eye(dimension)
    copies = max(1, min(copies, _MOST_ROWS // n_components))
    common = np.repeat(basis[:n_components], copies, axis=0)
    new = -basis[[-1]] if n_components == dimension else basis[[n_components]]
    extended = np.vstack([common, new])
    if relation is Relation.ADD_REMOVE:
        return Pair(common, extended, relation)
    return Pair(extended, np.vstack([common, basis[:1]]), relation)


def repeated_direction_pair(
    dimension: int, copies: int, relation: Relation, row_norm: float = 1.0
) -> Pair:
    """Return a pair on which all rows point in one direction, and then one more.

    `copies` rows at the first basis vector, but at most 10,000. ADD_REMOVE: another one
    joins them. REPLACE_ONE: it takes the place of a row at the last basis vector, or of
    one with the opposite sign where d = 1.

    Parameters
    ----------
    dimension : int
        d.
    copies : int
        At least 1.
    relation : Relation
    row_norm : float
        Length of every row.

    Examples
    --------
    >>> repeated_direction_pair(2, 1, Relation.REPLACE_ONE).data
    array([[1., 0.],
           [0., 1.]])
    """
    basis = row_norm * np.eye(dimension)
    common = np.repeat(basis[:1], max(1, min(copies, _MOST_ROWS)), axis=0)
    extended = np.vstack([common, basis[:1]])
    if relation is Relation.ADD_REMOVE:
        return Pair(common, extended, relation)
    last = -basis if dimension == 1 else basis[[-1]]
    return Pair(np.vstack([common, last]), extended, relation)


def tied_directions_pair(
    n_components: int,
    dimension: int,
    copies: int,
    relation: Relation,
    row_norm: float = 1.0,
    *,
    most_rows: int = _MOST_ROWS,
) -> Pair:
    """Return a pair on which one row says which of k + 1 directions is not left out.

    `copies` rows at each of the first k + 1 basis vectors, but at most `most_rows` in
    all. ADD_REMOVE: another one at the first basis vector joins them. REPLACE_ONE: it
    takes the place of one at the last of the k + 1.

    Parameters
    ----------
    n_components, dimension : int
        1 <= k < d.
    copies : int
        At least 1.
    relation : Relation
    row_norm : float
        Length of every row.
    most_rows : int

    Examples
    --------
    >>> tied_directions_pair(1, 2, 1, Relation.REPLACE_ONE).neighbour
    array([[1., 0.],
           [1., 0.]])
    """
    basis = row_norm * np.eye(dimension)
    count = n_components + 1
    copies = max(1, min(copies, most_rows // count))
    rows = np.repeat(basis[:count], copies, axis=0)
    if relation is Relation.ADD_REMOVE:
        return Pair(rows, np.vstack([rows, basis[:1]]), relation)
    return Pair(rows, np.vstack([rows[:-1], basis[:1]]), relation)
