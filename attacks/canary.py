r"""What differs between the datasets of a pair, the canary, and where releases show it.

Mechanisms on rows x in R^d mostly see their data through means or through the
second-moment matrix, and what the canary does to these is known to an attacker who
knows both datasets. A subspace with orthonormal basis V shows it by
:math:`\|V^T x\|^2`, which depends neither on the basis nor on the signs of its vectors.
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair, same_rows
from dpaudit.subspace import second_moment

__all__ = [
    "are_orthonormal",
    "canary_rows",
    "captured_length",
    "common_mean",
    "moment_difference",
    "shaped_as_bases",
    "square_on_rows",
]


_TOLERANCE = 1e-6


def canary_rows(pair: Pair) -> tuple[Array, Array]:
    """Return the rows that are only in the data, and only in the neighbour.

    Shapes (0 or 1, d) where rows are vectors in R^d. Of several equal rows it does not
    matter which one is missing.
    """
    place = _place(pair)
    ours, theirs = (side[place : place + 1] for side in (pair.data, pair.neighbour))
    longer = len(pair.data) - len(pair.neighbour)
    return ours[: 1 if longer >= 0 else 0], theirs[: 1 if longer <= 0 else 0]


def common_mean(pair: Pair) -> Array:
    """Return the mean of the rows that both datasets have; zero if there are none."""
    longer = max(pair.data, pair.neighbour, key=len)
    common = np.delete(longer, _place(pair), axis=0)
    return common.sum(axis=0) / max(len(common), 1)


def _place(pair: Pair) -> int:
    """Return the first row in which the datasets differ."""
    length = min(len(pair.data), len(pair.neighbour))
    same = same_rows(pair.data[:length], pair.neighbour[:length])
    return length if same.all() else int(np.argmin(same))


def shaped_as_bases(pair: Pair, releases: Release) -> Array | None:
    """Return releases as stacks of vectors in R^d, shape (size, d, k), if they fit.

    Taken are d-vectors and d x k or k x d matrices with 0 < k < d, where the rows of
    the pair are finite vectors in R^d, d > 1. None for anything else.
    """
    if not isinstance(releases, np.ndarray) or pair.data.ndim != 2 or not pair.finite:
        return None
    match releases.shape[1:], pair.data.shape[1]:
        case ((a,), d) if a == d > 1:
            return releases[:, :, np.newaxis]
        case ((a, b), d) if 0 < b < a == d:
            return releases
        case ((a, b), d) if 0 < a < b == d:
            return releases.swapaxes(1, 2)
    return None


def are_orthonormal(bases: Array) -> bool:
    """Say whether most of the finite matrices of a stack have orthonormal columns."""
    finite = bases[(np.abs(bases) < 2).all(axis=(1, 2))]
    if 2 * len(finite) <= np.isfinite(bases).all(axis=(1, 2)).sum():
        return False
    gram = finite.swapaxes(1, 2) @ finite
    defect = np.abs(gram - np.eye(bases.shape[2])).max(axis=(1, 2))
    return bool(np.median(defect) <= _TOLERANCE)


def captured_length(bases: Array, rows: Array) -> Array:
    """Return the sum of ||V^T x||^2 over rows x, shape (size,); 0 for no rows."""
    return np.square(rows @ bases).sum(axis=(1, 2))


def square_on_rows(pair: Pair, releases: Release) -> bool:
    """Say whether releases are d x d matrices, and rows finite vectors, d > 1."""
    if not isinstance(releases, np.ndarray) or pair.data.ndim != 2 or not pair.finite:
        return False
    dimension = pair.data.shape[1]
    return dimension > 1 and releases.shape[1:] == (dimension, dimension)


def moment_difference(pair: Pair) -> Array:
    """Return x x^T - x' x'^T, shape (d, d); it is 0 if x' = -x."""
    ours, theirs = canary_rows(pair)
    return second_moment(ours) - second_moment(theirs)
