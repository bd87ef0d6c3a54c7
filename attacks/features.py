"""Finite features of releases, in a layout that is learned once and then stored.

Which entries are redundant, which of them can be NaN or infinite, and what stands in
for those, is decided from past releases; the answers are parameters like any other.
The same release then gets the same features in every batch. Entries are divided by a
power of two of their size, so that squares are finite whatever the unit.

Beside them: which rows a pair of datasets differs in, and whether releases are vectors
or matrices of the space that these rows live in.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair, same_rows

__all__ = ["flatten"]


def flatten(releases: Release) -> Array:
    """Return the entries of each release in one row, shape (size, m).

    Dictionaries are joined in the order of their sorted keys. NaN and infinities stay.
    """
    if isinstance(releases, Mapping):
        return np.hstack([flatten(releases[key]) for key in sorted(releases)])
    return releases.reshape(len(releases), math.prod(releases.shape[1:]))


_LARGEST = 1e100  # times its unit, so that sums of squares do not overflow
_INDICATORS: dict[str, Callable[[Array], NDArray[np.bool_]]] = {
    "is_nan": np.isnan,
    "is_above": np.isposinf,
    "is_below": np.isneginf,
}


def learn_features(
    first: Release, second: Release, most: int
) -> Mapping[str, NDArray[Any]]:
    """Choose the features of releases such as these.

    Parameters
    ----------
    first, second : Release
        Past releases on D and on D'.
    most : int
        How many entries to keep at most: those whose means differ most, in standard
        errors. Of symmetric matrices one triangle is considered.

    Returns
    -------
    dict of ndarray
        ``columns``: the entries kept; ``unit``: what each is divided by; ``filler``:
        the median of each, which replaces what is not finite; ``is_nan``, ``is_above``,
        ``is_below``: the entries that get an indicator of NaN, of +inf, of -inf, again
        at most `most` each.
    """
    sides = flatten(first), flatten(second)
    unit = _units(np.vstack(sides))
    sides = sides[0] / unit, sides[1] / unit
    both = np.vstack(sides)
    considered = np.flatnonzero(~(_mirrored(first) & _mirrored(second)))
    indicators = {
        key: _most_shifted(test(sides[0]), test(sides[1]), considered, most)
        for key, test in _INDICATORS.items()
    }
    filler = _medians(both)
    filled = [
        np.clip(np.where(np.isfinite(side), side, filler), -_LARGEST, _LARGEST)
        for side in sides
    ]
    columns = _most_shifted(filled[0], filled[1], considered, most, constant=True)
    filler = (filler * unit)[columns]
    return {"columns": columns, "filler": filler, "unit": unit[columns]} | indicators


def features(parameters: Mapping[str, NDArray[Any]], releases: Release) -> Array:
    """Return finite features in the layout of `learn_features`, shape (size, m)."""
    flat = flatten(releases)
    kept = flat[:, parameters["columns"]]
    finite = np.where(np.isfinite(kept), kept, parameters["filler"])
    finite = np.clip(finite / parameters["unit"], -_LARGEST, _LARGEST)
    indicators = [test(flat[:, parameters[key]]) for key, test in _INDICATORS.items()]
    return np.hstack([finite, *indicators]).astype(np.float64, copy=False)


def shift_order(first: Array, second: Array) -> NDArray[np.intp]:
    """Order columns by how far their means differ, in standard errors."""
    spread = np.sqrt(first.var(axis=0) + second.var(axis=0))
    shift = np.abs(first.mean(axis=0) - second.mean(axis=0))
    # Columns that are constant on either side and differ come first.
    statistic = np.where(shift > 0, np.inf, 0.0)
    np.divide(shift, spread, out=statistic, where=spread > 0)
    return np.argsort(-statistic, kind="stable")


def _most_shifted(
    first: NDArray[np.generic],
    second: NDArray[np.generic],
    considered: NDArray[np.intp],
    most: int,
    *,
    constant: bool = False,
) -> NDArray[np.intp]:
    one, two = (side[:, considered].astype(np.float64) for side in (first, second))
    order = shift_order(one, two)
    if not constant:
        everything = np.vstack([one, two])
        varies = everything.min(axis=0) < everything.max(axis=0)
        order = order[varies[order]]
    return np.sort(considered[order[:most]])


def _mirrored(releases: Release) -> NDArray[np.bool_]:
    """Say which entries repeat another one by symmetry, shape (m,)."""
    if isinstance(releases, Mapping):
        return np.concatenate([_mirrored(releases[key]) for key in sorted(releases)])
    shape = releases.shape[1:]
    if (
        len(shape) == 2
        and shape[0] == shape[1]
        and np.array_equal(releases, releases.swapaxes(-2, -1), equal_nan=True)
    ):
        return np.tril(np.ones(shape, dtype=bool), -1).ravel()
    return np.zeros(int(np.prod(shape)), dtype=bool)


def _units(flat: Array) -> Array:
    """Return powers of two near the typical size of columns, shape (m,)."""
    with np.errstate(all="ignore"):
        size = _medians(np.where(flat == 0, np.nan, np.abs(flat)))
        _, exponent = np.frexp(np.where(np.isfinite(size), size, np.inf))
    # A quotient of doubles by such a power is exact, and so is the power.
    return np.ldexp(1.0, np.clip(np.where(size > 0, exponent, 0), -1000, 1000))


def _medians(flat: Array) -> Array:
    """Return the median of the finite values of each column, 0 where there are none.

    Where some are not finite, the lower one of two middle values.
    """
    finite = np.isfinite(flat)
    if finite.all():
        return np.median(flat, axis=0)
    counts = finite.sum(axis=0)
    # The finite values of each column first, in order.
    ordered = np.sort(np.where(finite, flat, np.inf), axis=0)
    middle = np.maximum(counts - 1, 0) // 2
    picked = np.take_along_axis(ordered, middle[np.newaxis], axis=0)[0]
    return np.where(counts > 0, picked, 0.0)


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
    return int(np.argmin([*same, False]))


def shaped_as_bases(pair: Pair, releases: Release) -> Array | None:
    """Return releases as stacks of vectors in R^d, shape (size, d, k), if they fit.

    Taken are d-vectors and d x k or k x d matrices with 0 < k < d, where the rows of
    the pair are finite vectors in R^d, d > 1. None for anything else.
    """
    if not isinstance(releases, np.ndarray) or not pair.finite or pair.data.ndim != 2:
        return None
    match releases.shape[1:], pair.data.shape[1]:
        case ((a,), d) if a == d > 1:
            return releases[:, :, np.newaxis]
        case ((a, b), d) if 0 < b < a == d:
            return releases
        case ((a, b), d) if 0 < a < b == d:
            return releases.swapaxes(1, 2)
    return None


def square_on_rows(pair: Pair, releases: Release) -> bool:
    """Say whether releases are d x d matrices, and rows finite vectors, d > 1."""
    if not isinstance(releases, np.ndarray) or not pair.finite or pair.data.ndim != 2:
        return False
    dimension = pair.data.shape[1]
    return dimension > 1 and releases.shape[1:] == (dimension, dimension)
