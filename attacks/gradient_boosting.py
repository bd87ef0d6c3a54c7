"""Gradient boosting on the entries of a release and on invariants of it.

What a linear score cannot see: conditions that hold together ("this entry is large
while that one is small"), order statistics, spectra. It is the last resort for black
boxes; where the likelihood ratio, or the direction in which the mean moves, is known,
it has nothing to add. The trees and their source: `dpaudit.attacks.trees`.

Invariants say something about a release whatever its basis, signs or order. They depend
on the release, its shape and the pair of datasets, and on nothing else: no batch, no
past. Of square matrices: trace, norm, eigenvalues, and what the canary rows see; of
bases: lengths of the projections of the canary and of the data's own principal
directions; of vectors: the sorted entries, their differences and where the largest is.
Of everything: how many entries are NaN, infinite, and zero.
"""

from collections.abc import Mapping

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, flatten
from dpaudit.attacks.canary import canary_rows, shaped_as_bases, square_on_rows
from dpaudit.attacks.exact_loss import ExactLoss
from dpaudit.attacks.features import features, learn_features
from dpaudit.attacks.gaussian_transcript import GaussianTranscript
from dpaudit.attacks.projection import MeanShift
from dpaudit.attacks.trees import evaluate_trees, fit_trees
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
    learns = True

    def applies(self, target: Target, releases: Release) -> bool:
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
        return {**layout, **fit_trees(*sides)}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        return evaluate_trees(parameters, _describe(target, parameters, releases))


def _describe(target: Target, layout: Parameters, releases: Release) -> Array:
    return np.hstack([features(layout, releases), invariants(target.pair, releases)])


def invariants(pair: Pair, releases: Release) -> Array:
    """Return invariant features of each release, shape (size, m), finite.

    Entries that are not finite count as 0, apart from being counted.
    """
    if isinstance(releases, Mapping):
        parts = [invariants(pair, releases[key]) for key in sorted(releases)]
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
    _, directions = np.linalg.eigh(second_moment(pair.data))
    rows = np.vstack([*canary_rows(pair), directions.T[: -_PRINCIPAL - 1 : -1]])
    return np.linalg.norm(rows @ bases, axis=2)
