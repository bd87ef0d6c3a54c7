"""Projection of releases on the direction in which their mean moves.

For noise with a density that falls off alike in all directions this is the best single
number to look at. The direction is known where the mechanism has a noiseless statistic
(`MeanShift`), and estimated from the past otherwise (`LinearDiscriminant`).
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    consult,
    flatten,
    score_ordinary,
)
from dpaudit.attacks.features import features, learn_features
from dpaudit.mechanism import HasStatistic, Release

__all__ = ["LinearDiscriminant", "MeanShift"]

_MAX_FEATURES = 512  # the fit takes 0.3 s for that many and 4096 releases a side


class MeanShift(Attack):
    """Score = inner product with statistic(D) - statistic(D')."""

    name = "mean-shift"
    score_is = "the release along the difference of the statistics"
    learns = False

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether the mechanism's statistic has the shape of its releases.

        What is stated about proper rows need not hold for NaN and infinite ones.
        """
        if not isinstance(target.mechanism, HasStatistic) or not target.pair.finite:
            return False
        if not isinstance(releases, np.ndarray):
            return False
        statistic = consult(target.mechanism.statistic, target.pair.data)
        return releases.shape[1:] == np.shape(statistic)

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        statistic, pair = cast(HasStatistic, target.mechanism).statistic, target.pair
        return {
            "direction": np.asarray(consult(statistic, pair.data))
            - consult(statistic, pair.neighbour)
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        direction = np.ravel(parameters["direction"])
        return score_ordinary(flatten(releases), lambda flat: flat @ direction)


class LinearDiscriminant(Attack):
    """Score = Fisher's linear discriminant with a Ledoit-Wolf covariance."""

    name = "linear-discriminant"
    learns = True

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether there is a direction, and it has to be estimated."""
        return flatten(releases).shape[1] > 1 and not MeanShift().applies(
            target, releases
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        from sklearn.covariance import ledoit_wolf

        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        first, second = features(layout, on_data), features(layout, on_neighbour)
        shift = first.mean(axis=0) - second.mean(axis=0)
        centred = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
        scale = centred.std(axis=0)
        scale[scale == 0] = 1.0
        covariance, _ = ledoit_wolf(centred / scale, assume_centered=True)
        # Constant features make the covariance singular; the ridge is far below any
        # other rounding.
        covariance[np.diag_indices_from(covariance)] += 1e-9
        direction = np.linalg.solve(covariance, shift / scale) / scale
        middle = (first.mean(axis=0) + second.mean(axis=0)) / 2
        offset = np.atleast_1d(middle @ direction)
        return {**layout, "direction": direction, "offset": offset}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        design = features(parameters, releases)
        return design @ parameters["direction"] - parameters["offset"]
