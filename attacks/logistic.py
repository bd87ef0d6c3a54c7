"""A logistic classifier on the entries of a release and simple functions of them.

The black-box workhorse: it needs no knowledge of the mechanism, and its score is an
estimated log-likelihood ratio, so that one threshold means the same from one fit to the
next. For independent entries the log-likelihood ratio is a sum of one function per
entry, and three functions span what common noise needs: the entry itself (a shift of
Gaussian noise; a bit of randomised response), its square (a change of spread), and a
soft step z/(1/2 + |z|) (a shift of Laplace noise, whose loss is linear between the two
locations and constant beyond them).
"""

import warnings

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target
from dpaudit.attacks.features import features, flatten, learn_features, shift_order
from dpaudit.mechanism import Release

__all__ = ["LogisticClassifier"]

_MAX_FEATURES = 128
_MAX_CURVED = 64  # features that enter by three functions
_REACH = 20.0  # in interquartile ranges


class LogisticClassifier(Attack):
    """Score = estimated log-likelihood ratio: log-odds at even odds beforehand."""

    name = "logistic"
    learns = True

    def applies(self, target: Target, releases: Release) -> bool:
        """Say that it applies to whatever has entries."""
        return flatten(releases).shape[1] > 0

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        from sklearn.linear_model import LogisticRegression

        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        first, second = features(layout, on_data), features(layout, on_neighbour)
        both = np.vstack([first, second])
        # The median and quartiles keep heavy tails from setting the scale.
        low, centre, high = np.quantile(both, [0.25, 0.5, 0.75], axis=0)
        range_ = both.max(axis=0) - both.min(axis=0)
        scale = np.where(high > low, high - low, np.where(range_ > 0, range_, 1.0))
        # Every function of a two-valued entry is a linear one.
        order = shift_order(first, second)
        curved = order[~_two_valued(both)[order]][:_MAX_CURVED]
        parameters = {
            **layout,
            "centre": centre,
            "scale": scale,
            "curved": np.sort(curved),
        }
        labels = np.repeat([1, 0], [len(first), len(second)])
        model = LogisticRegression(C=1.0, max_iter=50, solver="newton-cholesky")
        with warnings.catch_warnings():
            # A fit that stops early, or is ill-conditioned, is a score like any other.
            warnings.simplefilter("ignore")
            model.fit(_design(both, parameters), labels)
        prior = np.log(len(first) / len(second))
        return parameters | {
            "coefficients": model.coef_[0],
            "intercept": model.intercept_ - prior,
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        design = _design(features(parameters, releases), parameters)
        return design @ parameters["coefficients"] + parameters["intercept"][0]


def _two_valued(both: Array) -> np.ndarray:
    return ((both == both.min(axis=0)) | (both == both.max(axis=0))).all(axis=0)


def _design(entries: Array, parameters: Parameters) -> Array:
    standard = (entries - parameters["centre"]) / parameters["scale"]
    # Clipped so that a few wild releases cannot drown the rest.
    standard = np.clip(standard, -_REACH, _REACH)
    curved = standard[:, parameters["curved"]]
    return np.hstack([standard, curved**2, curved / (0.5 + np.abs(curved))])
