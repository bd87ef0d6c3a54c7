r"""Gradient boosting on the entries of a release and on invariants of it.

What a linear score cannot see: conditions that hold together ("this entry is large
while that one is small"), order statistics, spectra. It is the last resort for black
boxes; where the likelihood ratio, or the direction in which the mean moves, is known,
it has nothing to add.

Invariants say something about a release whatever its basis, signs or order. They depend
on the release, its shape and the pair of datasets, and on nothing else: no batch, no
past. Of square matrices: trace, norm, eigenvalues, and what the canary rows see; of
bases: lengths of the projections of the canary and of the data's own principal
directions; of vectors: the sorted entries, their differences and where the largest is.
Of everything: how many entries are NaN, infinite, and zero.

The trees are oblivious, fitted and evaluated with arrays alone. An oblivious tree asks
the same question, "is feature f above t?", of all nodes of a level (Prokhorenkova et
al., CatBoost, NeurIPS 2018): a tree of depth L is L features, L thresholds and 2^L leaf
values, and the leaf of a release is the number whose bits are the answers. So a fitted
model is three arrays, which any witness can hold, and its evaluation is a few vector
operations per tree.

Fitting is Newton boosting of the logistic loss (Friedman, *Greedy function
approximation*, Annals of Statistics 29, 2001; gain and leaf values with an l2 penalty
as in Chen and Guestrin, XGBoost, KDD 2016, section 2.2) on features binned at
quantiles. Trees see one half of the releases each, in turn: half the work, and trees
that do not all share the same noise.
"""

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    canary_rows,
    features,
    flatten,
    learn_features,
    shaped_as_bases,
    square_on_rows,
)
from dpaudit.attacks.stated import ExactLoss, GaussianTranscript, MeanShift
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair
from dpaudit.subspace import second_moment

__all__ = ["GradientBoosting"]

_MAX_FEATURES = 64
_MAX_EIGENVALUES = 16  # dimension up to which they are computed
_MAX_SORTED = 64
_PRINCIPAL = 3
_LARGEST = 1e100


class GradientBoosting(Attack):
    """Score = log-odds, by boosted trees, that a release was made on D."""

    name = "gradient-boosting"
    learns = dear = True
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases have several entries and no better score is known."""
        return flatten(releases).shape[1] > 1 and not any(
            attack.applies(target, releases)
            for attack in (MeanShift(), ExactLoss(), GaussianTranscript())
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        sides = [_describe(target, layout, side) for side in (on_data, on_neighbour)]
        return {**layout, **_fit_trees(*sides)}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        return _evaluate_trees(parameters, _describe(target, parameters, releases))


def _describe(target: Target, layout: Parameters, releases: Release) -> Array:
    return np.hstack([features(layout, releases), _invariants(target.pair, releases)])


def _invariants(pair: Pair, releases: Release) -> Array:
    """Return invariant features of each release, shape (size, m), finite.

    Entries that are not finite count as 0, apart from being counted.
    """
    if isinstance(releases, Mapping):
        parts = [_invariants(pair, releases[key]) for key in sorted(releases)]
        return np.hstack(parts)
    axes = tuple(range(1, releases.ndim))
    counts = [
        np.isnan(releases).sum(axis=axes),
        np.isinf(releases).sum(axis=axes),
        (releases == 0).sum(axis=axes),
    ]
    finite = np.where(np.isfinite(releases), releases, 0.0)
    finite = np.clip(finite, -_LARGEST, _LARGEST)
    parts = [np.stack(counts, axis=1)]
    if releases.ndim == 2 and releases.shape[1] > 1:
        parts.append(_of_vectors(finite))
    if releases.ndim == 3 and releases.shape[1] == releases.shape[2]:
        parts.append(_of_squares(finite))
    if square_on_rows(pair, releases):
        parts.append(_seen_by_canary(pair, finite))
    bases = shaped_as_bases(pair, finite)
    if bases is not None:
        parts.append(_of_bases(pair, bases))
    return np.hstack(parts).astype(np.float64, copy=False)


def _of_vectors(vectors: Array) -> Array:
    few = vectors[:, :_MAX_SORTED]
    return np.column_stack(
        [
            vectors.sum(axis=1),
            np.argmax(vectors, axis=1),
            np.argmin(vectors, axis=1),
            np.ptp(vectors, axis=1),
            np.sort(few, axis=1),
            np.diff(few, axis=1),
        ]
    )


def _of_squares(matrices: Array) -> Array:
    parts = [
        np.trace(matrices, axis1=1, axis2=2),
        np.linalg.norm(matrices, axis=(1, 2)),
    ]
    if 0 < matrices.shape[1] <= _MAX_EIGENVALUES:
        symmetric = (matrices + matrices.swapaxes(1, 2)) / 2
        parts.append(np.linalg.eigvalsh(symmetric))
    return np.column_stack(parts)


def _seen_by_canary(pair: Pair, matrices: Array) -> Array:
    rows = np.vstack(canary_rows(pair))
    images = rows @ matrices
    return np.hstack([(images * rows).sum(axis=2), np.linalg.norm(images, axis=2)])


def _of_bases(pair: Pair, bases: Array) -> Array:
    rows = np.vstack([*canary_rows(pair), _principal_directions(pair)])
    return np.linalg.norm(rows @ bases, axis=2)


_DIRECTIONS: WeakKeyDictionary[Pair, Array] = WeakKeyDictionary()


def _principal_directions(pair: Pair) -> Array:
    """Return the first principal directions of the data, rows; once for each pair."""
    if pair not in _DIRECTIONS:
        _, directions = np.linalg.eigh(second_moment(pair.data))
        _DIRECTIONS[pair] = directions.T[: -_PRINCIPAL - 1 : -1].copy()
    return _DIRECTIONS[pair]


_TREES = 40
_DEPTH = 3
_RATE = 0.2
_PENALTY = 5.0
_BINS = 32
_MAX_BINNED = 48
_MAX_ROWS = 8192  # a side
_RANKED = 2048  # rows or more whose quantiles the bins are
_CHUNK = 2**12  # entries


def _fit_trees(first: Array, second: Array) -> Parameters:
    """Fit log-odds of the rows of `first` against those of `second`.

    Parameters
    ----------
    first, second : ndarray, shapes (n, m) and (n', m)
        Infinities are allowed, NaN is not.

    Returns
    -------
    dict of ndarray
        ``feature`` and ``threshold``, shape (T, L); ``value``, shape (T, 2^L);
        ``prior``, shape (1,): log(n / n').
    """
    first, second = first[:_MAX_ROWS], second[:_MAX_ROWS]
    rows = np.vstack([first, second])
    labels = np.repeat([1.0, 0.0], [len(first), len(second)])
    columns, codes, cuts = _binned(rows, len(first))
    prior = float(np.log(len(first) / len(second)))
    margin = np.full(len(rows), prior)
    n_trees = _TREES if len(columns) else 0
    feature = np.zeros((n_trees, _DEPTH), dtype=np.intp)
    threshold = np.zeros((n_trees, _DEPTH))
    values = np.zeros((n_trees, 2**_DEPTH))
    halves = [_placed(codes[:, first::2], cuts.shape[1] + 1) for first in (0, 1)]
    for number in range(n_trees):
        seen = slice(number % 2, None, 2)
        probability = 1 / (1 + np.exp(-margin[seen]))
        gradient = labels[seen] - probability
        hessian = probability * (1 - probability)
        splits, value = _grow(halves[number % 2], gradient, hessian, cuts)
        feature[number] = [columns[index] for index, _ in splits]
        threshold[number] = [cuts[split] for split in splits]
        values[number] = value
        margin += value[_leaves(codes, splits)]
    return {
        "feature": feature,
        "threshold": threshold,
        "value": values,
        "prior": np.array([prior]),
    }


def _evaluate_trees(parameters: Parameters, rows: Array) -> Array:
    """Return the log-odds of each row, shape (size,)."""
    total = np.full(len(rows), parameters["prior"][0])
    used, place = np.unique(parameters["feature"], return_inverse=True)
    by_feature = np.ascontiguousarray(rows[:, used].T)
    place = place.reshape(parameters["feature"].shape)
    for tree, thresholds in enumerate(parameters["threshold"]):
        leaf = np.zeros(len(rows), dtype=np.intp)
        for feature, threshold in zip(place[tree], thresholds, strict=True):
            leaf = 2 * leaf + (by_feature[feature] > threshold)
        total += parameters["value"][tree][leaf]
    return total


def _binned(
    rows: Array, n_first: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Bin the features that separate best by themselves.

    Returns
    -------
    columns : ndarray of int, shape (c,)
    codes : ndarray of int, shape (c, n)
        How many cuts lie below each value.
    cuts : ndarray, shape (c, _BINS - 1)
        Increasing; padded with inf, above which there is nothing.
    """
    every = max(len(rows) // _RANKED, 1)
    few = len(rows[::every])
    ranks = np.linspace(0, few - 1, _BINS + 1).astype(np.intp)[:-1]
    cuts = np.full((rows.shape[1], len(ranks)), np.inf)
    codes = np.empty(rows.shape[::-1], dtype=np.intp)
    separation = np.zeros(rows.shape[1])
    for index, column in enumerate(np.ascontiguousarray(rows.T)):
        here = np.unique(np.partition(column[::every], ranks)[ranks])
        here = here[here < column.max()]
        cuts[index, : len(here)] = here
        codes[index] = np.searchsorted(here, column, side="left")
        size = len(here) + 1
        counts = [
            np.cumsum(np.bincount(side, minlength=size)) / max(len(side), 1)
            for side in (codes[index, :n_first], codes[index, n_first:])
        ]
        separation[index] = np.abs(counts[0] - counts[1]).max()
    order = np.argsort(-separation, kind="stable")[:_MAX_BINNED]
    columns = np.sort(order[np.isfinite(cuts[order, 0])])
    return columns, codes[columns], cuts[columns]


def _placed(codes: NDArray[np.intp], bins: int) -> list[NDArray[np.intp]]:
    """Return codes, and for each level where rows of the first leaf are counted.

    That is among the cells of some features, as `_grow` counts them at once.
    """
    number = np.arange(len(codes))[:, np.newaxis] % _at_once(codes)
    codes = np.ascontiguousarray(codes)
    return [codes, *(codes + 2**level * bins * number for level in range(_DEPTH))]


def _at_once(codes: NDArray[np.intp]) -> int:
    """Return of how many features what is added stays in a processor's cache."""
    return max(_CHUNK // codes.shape[1], 1)


def _grow(
    placed: list[NDArray[np.intp]], gradient: Array, hessian: Array, cuts: Array
) -> tuple[list[tuple[int, int]], Array]:
    """Grow one tree: its (feature, cut) of each level, and its leaf values."""
    codes, *places = placed
    n_features, size = codes.shape
    bins, most = cuts.shape[1] + 1, _at_once(codes)
    weights = [np.tile(weight, most) for weight in (gradient, hessian)]
    leaf = np.zeros(size, dtype=np.intp)
    splits: list[tuple[int, int]] = []
    for level in range(_DEPTH):
        cells, there = 2**level * bins, bins * leaf
        sums = np.empty((2, n_features, cells))
        for start in range(0, n_features, most):
            place = places[level][start : start + most]
            if level:
                place = place + there
            for weight, added in zip(weights, sums, strict=True):
                found = np.bincount(
                    place.ravel(), weight[: place.size], len(place) * cells
                )
                added[start : start + most] = found.reshape(-1, cells)
        g, h = sums.reshape(2, n_features, 2**level, bins).swapaxes(1, 2)
        g_below, h_below = np.cumsum(g, axis=2), np.cumsum(h, axis=2)
        g_all, h_all = g_below[:, :, -1:], h_below[:, :, -1:]
        gain = (
            g_below**2 / (h_below + _PENALTY)
            + (g_all - g_below) ** 2 / (h_all - h_below + _PENALTY)
        ).sum(axis=0)[:, :-1]
        gain[np.isposinf(cuts)] = -1.0
        feature, cut = np.unravel_index(np.argmax(gain), gain.shape)
        splits.append((int(feature), int(cut)))
        leaf = 2 * leaf + (codes[feature] > cut)
    totals = [np.bincount(leaf, w, 2**_DEPTH) for w in (gradient, hessian)]
    return splits, _RATE * totals[0] / (totals[1] + _PENALTY)


def _leaves(codes: NDArray[np.intp], splits: list[tuple[int, int]]) -> NDArray[np.intp]:
    leaf = np.zeros(codes.shape[1], dtype=np.intp)
    for feature, cut in splits:
        leaf = 2 * leaf + (codes[feature] > cut)
    return leaf
