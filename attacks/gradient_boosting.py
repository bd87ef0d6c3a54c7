"""Gradient boosting on the entries of a release and on invariants of it.

What a linear score cannot see: conditions that hold together ("this entry is large
while that one is small"), order statistics, spectra. It is the last resort for black
boxes; where the likelihood ratio, or the direction in which the mean moves, is known,
it has nothing to add. The trees and their source: `dpaudit.attacks.trees`; the
invariants: `dpaudit.attacks.invariants`.
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, flatten
from dpaudit.attacks.exact_loss import ExactLoss
from dpaudit.attacks.features import features, learn_features
from dpaudit.attacks.gaussian_transcript import GaussianTranscript
from dpaudit.attacks.invariants import invariants
from dpaudit.attacks.projection import MeanShift
from dpaudit.attacks.trees import evaluate_trees, fit_trees
from dpaudit.mechanism import Release

__all__ = ["GradientBoosting"]

_MAX_FEATURES = 64


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
