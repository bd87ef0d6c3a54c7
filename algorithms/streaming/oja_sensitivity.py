r"""What one row does to Oja's algorithm: sensitivities, step sizes in them, pairs.

For how far one row moves the sum of a batch see the proof in
`dpaudit.algorithms.streaming.noisy_oja`; step sizes are in the unit of that.

**Pairs** show one row as well as they can. The direction of w_T shows a row x through
the part of x x^T w that is orthogonal to w. So all rows but one point the same way,
which makes w known (up to its sign), and the one that differs lies obliquely to them.
"""

from math import inf, sqrt

import numpy as np

from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_positive

__all__ = [
    "DEFAULT_NUMERATOR",
    "DEFAULT_OFFSET",
    "batch_sensitivity",
    "default_steps",
    "last_batch_pair",
    "oblique_pair",
    "unit_of",
]

DEFAULT_NUMERATOR, DEFAULT_OFFSET = 60.0, 1.0


def batch_sensitivity(
    n_components: int, *, row_norm: float | None = None, clip: float | None = None
) -> float:
    """Return how far the sum of a batch's clipped products moves, in Frobenius norm.

    Parameters
    ----------
    n_components : int
        k.
    row_norm : float, optional
        R, for rows; without it the A_i may be any matrices.
    clip : float, optional
        beta. One of the two must be given.

    Examples
    --------
    >>> batch_sensitivity(1, row_norm=1.0), batch_sensitivity(1, clip=1.0)
    (1.0, 2.0)
    """
    unit_of(row_norm, clip)
    of_clip = inf if clip is None else 2 * clip
    several = check_count("n_components", n_components) > 1
    of_rows = inf if row_norm is None else row_norm**2 * (sqrt(2) if several else 1)
    return min(of_clip, of_rows)


def unit_of(row_norm: float | None, clip: float | None) -> float:
    """Return the largest norm of a product A_i w, the inverse unit of step sizes."""
    if row_norm is None and clip is None:
        raise InputError("clip must be given where there is no row_norm, got None")
    of_rows = inf if row_norm is None else check_positive("row_norm", row_norm) ** 2
    return min(of_rows, inf if clip is None else check_positive("clip", clip))


def default_steps(row_norm: float | None, clip: float | None) -> HarmonicSteps:
    """Return c1/(c2 + t) with c1 = 60 over the largest ||A_i w||, and c2 = 1.

    A compromise: for Gaussian rows with one spike, d = 20 and a gap lambda_1 - lambda_2
    of 0.07 to 0.22 R^2, the error of minibatch-oja at (1, 1e-5) is within a factor of
    about two of the best among T from 5 to 50, c1 from 2 to 100 and c2 from 0 to 5.
    Smaller gaps ask for larger steps: too small a step leaves the start as it was, too
    large a one only averages over fewer batches.
    """
    return HarmonicSteps(DEFAULT_NUMERATOR / unit_of(row_norm, clip), DEFAULT_OFFSET)


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
