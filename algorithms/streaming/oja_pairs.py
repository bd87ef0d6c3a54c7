r"""Pairs of neighbours on which Oja's algorithm shows one row as well as it can.

The direction of w_T shows a row x through the part of x x^T w that is orthogonal to w.
So all rows but one point the same way, which makes w known (up to its sign), and the
one that differs lies obliquely to them.
"""

from math import sqrt

import numpy as np

from dpaudit.neighbours import Pair, Relation

__all__ = ["last_batch_pair", "oblique_pair"]


def last_batch_pair(
    n_components: int,
    dimension: int,
    *,
    count: int,
    unit: float,
    row_norm: float | None,
) -> Pair:
    """Return a pair that differs in the last row, or matrix, of many at k vectors.

    All but the last are at the first k basis vectors in turn: enough of them in each
    batch make V known up to a turn of its columns. With rows, the last one is
    R (s e_k + sqrt(1 - s^2) e_(k+1)) on one side, and has the other sign before the
    root on the other, s = min(1/sqrt 2, beta/R^2): so the sum moves by about
    min(2 beta sqrt(1 - s^2), R^2). Without a row norm they are matrices, the common
    ones beta e_j e_j^T, the last one beta e_(k+1) e_k^T or its negative: 2 beta.

    For d = k the sum moves whatever V is, by R^2 (k = 1) or sqrt 2 R^2 if rows are
    not clipped further, and by 2 beta for matrices.

    Parameters
    ----------
    n_components, dimension : int
        k <= d.
    count : int
        n.
    unit : float
        beta: the largest norm of a product.
    row_norm : float, optional
        R.

    Examples
    --------
    >>> pair = last_batch_pair(1, 2, count=2, unit=1.0, row_norm=1.0)
    >>> pair.data.round(2)
    array([[1.  , 0.  ],
           [0.71, 0.71]])
    """
    k, basis = n_components, np.eye(dimension)
    if row_norm is None:
        common = unit * np.einsum("ia,ib->iab", basis[:k], basis[:k])
        changed = np.outer(basis[k], basis[k - 1]) if dimension > k else basis / sqrt(k)
        sides = [unit * changed, -unit * changed]
    elif dimension > k:
        common = row_norm * basis[:k]
        share = min(sqrt(0.5), unit / row_norm**2)
        near, off = share * basis[k - 1], sqrt(1 - share**2) * basis[k]
        sides = [row_norm * (near + off), row_norm * (near - off)]
    else:
        common = row_norm * basis[:k]
        sides = [common[0], common[1] if k > 1 else 0 * common[0]]
    shared = common[np.arange(count - 1) % k]
    first, second = (np.concatenate([shared, side[None]]) for side in sides)
    return Pair(first, second, Relation.REPLACE_ONE)


def oblique_pair(
    dimension: int, *, count: int, unit: float, matrices: bool = False
) -> Pair:
    """Return rows at e_1, and one half-way to e_2, or to -e_2 on the other side.

    For d = 1 the last one is at e_1 or zero.

    Parameters
    ----------
    dimension : int
        d.
    count : int
        n.
    unit : float
        The squared length of every row.
    matrices : bool
        Whether to return the matrices x x^T instead.
    """
    rows = np.zeros((count, dimension))
    rows[:, 0] = sqrt(unit)
    other = rows.copy()
    if dimension > 1:
        rows[-1, :2] = sqrt(0.5 * unit)
        other[-1, :2] = rows[-1, :2] * (1, -1)
    else:
        other[-1] = 0
    if matrices:
        rows, other = (each[:, :, None] * each[:, None] for each in (rows, other))
    return Pair(rows, other, Relation.REPLACE_ONE)
