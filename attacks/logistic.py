"""A logistic classifier on the entries of a release and their squares.

The black-box workhorse: it needs no knowledge of the mechanism, finds shifts of
location (entries) and of spread (squares), and its score is an estimated log-likelihood
ratio, so that one threshold means the same from one fit to the next.
"""

import warnings

import numpy as np

from dpaudit.attacks.base import Array, Attack, Parameters, Target, as_features
from dpaudit.mechanism import Release

__all__ = ["LogisticClassifier"]

_MAX_FEATURES = 256
_REACH = 20.0  # in interquartile ranges


class LogisticClassifier(Attack):
    """Score = log-odds that a release was made on D."""

    name = "logistic"
    learns = True

    def applies(self, target: Target, releases: Release) -> bool:
        """Say that it always applies."""
        return True

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        first, second = as_features(on_data), as_features(on_neighbour)
        both = np.vstack([first, second])
        # The median and quartiles keep heavy tails from setting the scale.
        centre = np.median(both, axis=0)
        low, high = np.quantile(both, [0.25, 0.75], axis=0)
        scale = np.where(high > low, high - low, 1.0)
        columns = _most_shifted(first, second)
        parameters = {
            "columns": columns,
            "centre": centre[columns],
            "scale": scale[columns],
        }
        labels = np.repeat([1, 0], [len(first), len(second)])
        model = LogisticRegression(C=1.0, max_iter=200)
        with warnings.catch_warnings():
            # A fit that stops early is a score like any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(_design(both, parameters), labels)
        return parameters | {
            "coefficients": model.coef_[0],
            "intercept": model.intercept_,
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        design = _design(as_features(releases), parameters)
        return design @ parameters["coefficients"] + parameters["intercept"][0]


def _most_shifted(first: Array, second: Array) -> Array:
    """Return the columns whose means differ most, in standard errors."""
    spread = np.sqrt(first.var(axis=0) + second.var(axis=0))
    shift = np.abs(first.mean(axis=0) - second.mean(axis=0))
    statistic = np.divide(shift, spread, out=np.zeros_like(shift), where=spread > 0)
    order = np.argsort(-statistic, kind="stable")
    return np.sort(order[:_MAX_FEATURES])


def _design(features: Array, parameters: Parameters) -> Array:
    standard = (features[:, parameters["columns"]] - parameters["centre"]) / parameters[
        "scale"
    ]
    # Clipped so that a few wild releases cannot drown the rest.
    standard = np.clip(standard, -_REACH, _REACH)
    return np.hstack([standard, standard**2])
