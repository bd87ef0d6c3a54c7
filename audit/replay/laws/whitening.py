r"""Laws of which several entries share draws, in coordinates that are independent.

Laws are those of `dpaudit.audit.replay.laws.affine`. A value is x + L z, and its factor
L does not fall into units.

If all draws are Gaussian, coordinates in which the covariance is diagonal are
independent. Otherwise L must have full column rank, and the same range on both sides.
Let A be a left inverse of L. Then y -> (A y, (1 - L A) y) is injective, so the loss of
y is that of its image. The second part is (1 - L A) x, a number without noise: where it
differs, the laws are singular. The first is A x + z on D and A x' + A L' z on D', and
if A L' has one entry in each row and column, its coordinates are independent on both
sides: each is one draw, moved and scaled. Running sums of noise, nodes of a tree whose
noise is shared, and what is released beside its sum are such. Of Gaussian draws among
the others what counts is their covariance, which gets as many columns as its rank.

A row of several draws of which no other row has any is one variable, by itself: a
Gaussian one, or the sum of independent integers (answers of many, each randomised, of
which the total is released), whose probabilities are those of their convolution.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy import full  # the real one, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = ["factor_of", "one_term_each", "rough_of", "whitened"]

_Law = TypeVar("_Law", bound=Any)
_Table: TypeAlias = tuple[int, tuple[float, ...]]

_SAME = 1e-9  # relative: what differs by less is one covariance
_CONDITION = 1e-6  # of covariances that are turned, least over largest eigenvalue
_ROUNDED = 1e-12  # relative: what differs by less is one number
_CANCELS = 1e-13  # beside the parts of a coefficient: it is 0
_APART = 1e-6  # relative: columns that leave a range by more do so
_MOST_DENSE = 200_000  # entries of a matrix of terms
_MOST_SUMMED = 2**12  # values of a sum of integers
_SURE = -14.0  # log-probability that was computed, and has many digits


def factor_of(
    mean: Array, index: NDArray[np.intp], coef: Array, family: NDArray[Any]
) -> dict[str, Any]:
    """Return a matrix of terms, and the draws and families of its columns, by names.

    Nothing where it is large, or neither Gaussian nor of full column rank.
    """
    draws, column = np.unique(index[index >= 0], return_inverse=True)
    if len(mean) * len(draws) > _MOST_DENSE or not np.isfinite(mean).all():
        return {}
    factor = np.zeros((len(mean), len(draws)))
    rows = np.nonzero(index >= 0)[0]
    np.add.at(factor, (rows, column.ravel()), coef[index >= 0])
    kinds = family[draws].astype(np.intp)
    if kinds.any():
        size = np.zeros_like(factor)
        np.add.at(size, (rows, column.ravel()), np.abs(coef[index >= 0]))
        largest = size.max(axis=1, initial=0.0, keepdims=True)
        factor[np.abs(factor) <= _CANCELS * np.maximum(size, largest / 10)] = 0.0
        held = np.abs(factor).max(axis=0, initial=0.0) > 0
        gaussian = kinds == 0
        left, scales, _ = np.linalg.svd(factor[:, gaussian], full_matrices=False)
        rank = int((scales > 1e-10 * scales.max(initial=0.0)).sum())
        others = held & ~gaussian
        factor = np.hstack([factor[:, others], (left * scales)[:, :rank]])
        # Gaussian draws are mixed: the last one stands for them.
        last = full(rank, draws[gaussian].max(initial=-1))
        draws = np.concatenate([draws[others], last])
        kinds = np.concatenate([kinds[others], 0 * last])
        if not _independent(factor):
            return {}
    return {"factor": factor, "columns": draws, "kinds": kinds}


def one_term_each(
    index: NDArray[np.intp],
    coef: Array,
    family: NDArray[np.integer[Any]],
    table: Callable[[int], _Table | None],
) -> tuple[NDArray[np.intp], Array, NDArray[np.intp], dict[int, Any]] | None:
    """Return entries of one term each, None if that cannot be done.

    Terms of one draw are added up; of what is left, rows of several Gaussian draws, or
    of several on finitely many integers, that are multiples of each other are one
    variable, which goes by one of its draws: these draws come third, and fourth the
    laws of sums of integers. `table` returns the law of a family on such.
    """
    m = index.shape[1]
    order = np.argsort(index, axis=1, kind="stable")
    index = np.take_along_axis(index, order, axis=1)
    coef = np.where(index >= 0, np.take_along_axis(coef, order, axis=1), 0.0)
    largest = np.abs(coef).max(axis=1, initial=0.0, keepdims=True)
    for column in range(m - 1, 0, -1):  # into the first of equal draws
        same = (index[:, column] == index[:, column - 1]) & (index[:, column] >= 0)
        coef[same, column - 1] += coef[same, column]
        index[same, column] = -1
    index = np.where(np.abs(coef) > 1e-14 * largest, index, -1)
    coef = np.where(index >= 0, coef, 0.0)
    order = np.argsort(-index, axis=1, kind="stable")
    index = np.take_along_axis(index, order, axis=1)
    coef = np.take_along_axis(coef, order, axis=1)
    width = int((index >= 0).sum(axis=1).max(initial=0))
    index, coef = index[:, :width], coef[:, :width]
    if width <= 1:
        return index, coef, np.empty(0, dtype=np.intp), {}
    most = np.abs(coef).max(axis=1, initial=0.0)
    # Of whatever size: the square of 1e200 is no number, and that of 1e-200 is 0.
    parts = coef / np.where(most > 0, most, 1.0)[:, np.newaxis]
    norm = most * np.sqrt((parts**2).sum(axis=1))
    sign = np.where(coef[:, 0] < 0, -1.0, 1.0)
    with np.errstate(all="ignore"):
        shape = np.where(
            norm[:, np.newaxis] > 0, coef * (sign / norm)[:, np.newaxis], 0
        )
    keys = np.concatenate([index, np.round(shape, 12)], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rows = index[first]
    used = rows[rows >= 0]
    if len(np.unique(used)) < len(used):
        return None
    several = (rows >= 0).sum(axis=1) > 1
    sums: dict[int, Any] = {}
    for place in np.flatnonzero(several).tolist():
        row, size = rows[place], coef[first[place]]
        terms = row >= 0
        if (family[row[terms]] == 0).all():
            continue
        unit = np.abs(size[terms]).min()
        tables = [table(int(family[draw])) for draw in row[terms]]
        law = _summed(tables, size[terms] / unit)
        if law is None:
            return None
        sums[int(row[0])] = law
        mine = inverse.ravel() == place
        norm[mine] *= unit / norm[first[place]]
        sign[mine] *= sign[first[place]]  # which is positive, in any order of draws
    # A single term keeps its coefficient; a combination has the norm of its terms, or
    # the least of them.
    lead = rows[inverse.ravel(), 0]
    return lead[:, np.newaxis], (sign * norm)[:, np.newaxis], rows[several, 0], sums


def _summed(tables: list[_Table | None], times: Array) -> Any:
    """Return the law of a sum of multiples of independent integers, None if unknown.

    Its first number, the logarithms of probabilities, and that there is nothing beyond.
    All terms are positive: no digits are lost, however small a probability is.
    """
    whole = np.rint(times)
    if None in tables or np.abs(times - whole).max() > _SAME * np.abs(whole).max():
        return None
    start, log, least = 0, np.zeros(1), 0.0
    for table, step in zip(tables, whole.astype(int).tolist(), strict=True):
        assert table is not None
        low, own = table[0], np.array(table[1])
        if step < 0:
            low, own = 1 - low - len(own), own[::-1]
        step, some = abs(step), np.flatnonzero(own > -np.inf)
        width = len(log) + step * (len(own) - 1)
        if width > _MOST_SUMMED:
            return None
        start, added = start + step * low, full(width, -np.inf)
        for k in some.tolist():
            part = added[step * k : step * k + len(log)]
            part[:] = np.logaddexp(part, log + own[k])
        log, least = added, min(least, float(own[some].min()))
    return start, tuple(log.tolist()), np.inf, np.inf, least > _SURE


def _independent(factor: Array) -> bool:
    """Say whether columns are independent of each other, by a wide margin."""
    norms = np.linalg.norm(factor, axis=0)
    if factor.shape[1] > len(factor) or not norms.all():
        return False
    scales = np.linalg.svd(factor / norms, compute_uv=False)
    return bool(scales.min(initial=1.0) > _CONDITION)


def whitened(law: _Law, other: _Law) -> "tuple[_Law, _Law, Array] | int | None":
    """Return two laws in coordinates that are independent of each other on both sides.

    The third is the matrix that leads there. An entry says that they are singular: a
    combination of it and others has no noise, and differs. None that there are no such
    coordinates, or none that are well conditioned.
    """
    if law.factor is None or other.factor is None:
        return None
    if law.kinds.any() or other.kinds.any():
        return _separated(law, other)
    covariances = [factor @ factor.T for factor in (law.factor, other.factor)]
    largest = np.abs(covariances[0]).max(initial=0.0)
    if np.abs(covariances[0] - covariances[1]).max(initial=0.0) > _SAME * largest:
        return _both_diagonal(law, other, *covariances)
    left, scales, _ = np.linalg.svd(law.factor, full_matrices=False)
    rank = int((scales > 1e-10 * scales.max(initial=0.0)).sum())
    basis = left[:, :rank]
    shift = law.mean - other.mean
    rough = rough_of(law, other)
    across = shift - basis @ (basis.T @ shift)
    if _differs(law, other, across, rough):
        return _last(across)
    into = basis / scales[:rank]
    return (
        *(_diagonal(each, into, np.ones(rank), rough) for each in (law, other)),
        into,
    )


def _differs(law: _Law, other: _Law, across: Array, rough: Array) -> bool:
    """Say whether what is across the noise differs by more than rounding."""
    size = np.abs(law.mean) + np.abs(other.mean)
    most = _SAME * max(1.0, size.max(initial=0.0)) + rough.max(initial=0.0)
    return bool(np.abs(across).max(initial=0.0) > most)


def _last(across: Array) -> int:
    """Return the last entry, of several vectors, that is not small beside others."""
    size = np.abs(across).reshape(-1, across.shape[-1]).max(axis=0)
    return int(np.flatnonzero(size > 0.1 * size.max())[-1])


def _separated(law: _Law, other: _Law) -> "tuple[_Law, _Law, Array] | int | None":
    """Return two laws of columns that are independent, as `whitened` does."""
    first, second = law.factor, other.factor
    if first.shape != second.shape:
        return len(first) - 1 if len(first) == len(second) else None
    back = np.linalg.pinv(first)
    turn = back @ second
    norms = np.linalg.norm(second, axis=0)
    left = (second - first @ turn) / norms
    if np.abs(left).max(initial=0.0) > _SAME:
        return _last(left.T) if np.abs(left).max() > _APART else None
    shift = law.mean - other.mean
    rough = rough_of(law, other)
    across = shift - first @ (back @ shift)
    if _differs(law, other, across, rough):
        return _last(across)
    found = _matched(law, other, turn)
    if found is None:
        return None
    places, ratios = found
    size = np.maximum(np.abs(law.mean), np.abs(other.mean))
    rough = rough + _ROUNDED * size
    shift = np.where(np.abs(shift) <= rough, 0.0, shift)
    scales = np.abs(first).max(axis=0)  # those at which the noise is seen
    into = back.T * scales
    one = _diagonal(law, into, scales, rough)
    two = _diagonal(other, into, scales * ratios, rough, places)
    return one, replace(two, mean=one.mean - shift @ into), into


def _matched(
    law: _Law, other: _Law, turn: Array
) -> tuple[NDArray[np.intp], Array] | None:
    """Return which column of the other law each coordinate is, and its ratio there.

    None where one is several.
    """
    gaussian = law.kinds == 0
    places, ratios = np.arange(len(turn)), np.ones(len(turn))
    if not np.array_equal(gaussian, other.kinds == 0):
        return None
    size = np.abs(turn)
    some = size > _SAME * np.maximum(
        size.max(axis=0, keepdims=True), size.max(axis=1, keepdims=True)
    )
    if some[gaussian][:, ~gaussian].any() or some[~gaussian][:, gaussian].any():
        return None
    alone = some[~gaussian][:, ~gaussian]
    if not (alone.sum(axis=0) == 1).all() or not (alone.sum(axis=1) == 1).all():
        return None
    lone = np.flatnonzero(~gaussian)
    places[lone] = lone[alone.argmax(axis=1)]
    ratios[lone] = turn[lone, places[lone]]
    among = turn[gaussian][:, gaussian]
    covariance = among @ among.T
    scale = float(np.trace(covariance)) / max(1, len(among))
    if np.abs(covariance - scale * np.eye(len(among))).max(initial=0.0) > _SAME * scale:
        return None
    ratios[gaussian] = np.sqrt(scale)
    ratios[np.abs(ratios - 1) < _SAME] = 1.0
    return places, ratios


def _both_diagonal(
    law: _Law, other: _Law, covariance: Array, there: Array
) -> "tuple[_Law, _Law, Array] | None":
    """Return two laws of unlike covariances as `whitened` does.

    With C = B B^T the eigenvectors U of B^-1 C' B^-T are such coordinates: (U^T B^-1) C
    (U^T B^-1)^T = 1, and the eigenvalues are the variances of the other law.
    """
    scales, left = np.linalg.eigh(covariance)
    if len(scales) < 1 or scales[0] < _CONDITION * scales[-1]:
        return None
    white = left / np.sqrt(scales)
    variances, turn = np.linalg.eigh(white.T @ there @ white)
    if variances[0] < _CONDITION * variances[-1]:
        return None
    into, rough = white @ turn, rough_of(law, other)
    ratios = np.where(np.abs(variances - 1) < _SAME, 1.0, np.sqrt(variances))
    ones = np.ones(len(ratios))
    sides = (law, ones), (other, ratios)
    return (*(_diagonal(each, into, ratio, rough) for each, ratio in sides), into)


def _diagonal(
    law: _Law, into: Array, ratio: Array, rough: Array, places: Any = None
) -> _Law:
    """Return a law in coordinates in which its entries are independent.

    `places` says which column of the factor each is, if not the same or Gaussian.
    """
    units = np.arange(len(ratio))
    kinds, draws = 0 * units, full(len(ratio), law.columns.max(initial=-1))
    if law.kinds.any():
        places = units if places is None else places
        kinds, draws = law.kinds[places], law.columns[places]
    made: _Law = replace(
        law,
        mean=law.mean @ into,
        unit=units,
        ratio=ratio,
        first=units,
        draw=draws,
        family=kinds,
        alone=ratio < 0,
        known=True,
        factor=None,
        rough=rough @ np.abs(into) if rough.any() else None,
    )
    return made


def rough_of(law: _Law, other: _Law) -> Array:
    """Return by how much the means of two laws may be off."""
    rough = np.zeros(len(law.mean))
    for each in (law, other):
        if each.rough is not None:
            rough = rough + each.rough
    return rough
