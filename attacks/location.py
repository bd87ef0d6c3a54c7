r"""Noise whose location moves with the data: where it was, learned from the past.

`LinearDiscriminant` estimates the direction in which the mean moves, where
`dpaudit.attacks.stated.MeanShift` does not know it.

`LaplaceLocation` is the likelihood ratio of independent Laplace noise. The estimates of
a Laplace distribution's location and scale with the largest likelihood are the median a
and the mean absolute deviation s. With a_i on D, b_i on D' and s_i of both together,
the log-likelihood ratio of independent entries is

.. math:: \sum_i (|y_i - b_i| - |y_i - a_i|) / s_i.

Two numbers per entry are quickly learned, where a classifier has a curve to learn, and
no entry can add more than |a_i - b_i|/s_i, so that wild releases do no harm. It is the
score for vectors of counts, histograms and prefix sums with Laplace noise, and a robust
one for other noise with heavy tails.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    features,
    flatten,
    learn_features,
)
from dpaudit.attacks.stated import ExactLoss, MeanShift
from dpaudit.mechanism import Release

__all__ = ["LaplaceLocation", "LinearDiscriminant"]

_AT_ONCE = 2**16  # numbers that stay in a processor's cache with what comes of them
_MAX_FEATURES = 512  # the fit takes 0.3 s for that many and 4096 releases a side


class LinearDiscriminant(Attack):
    """Score = Fisher's linear discriminant with a Ledoit-Wolf covariance."""

    name = "linear-discriminant"
    learns = True
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether there is a direction, and it has to be estimated."""
        return flatten(releases).shape[1] > 1 and not MeanShift().applies(
            target, releases
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        first, second = features(layout, on_data), features(layout, on_neighbour)
        shift = first.mean(axis=0) - second.mean(axis=0)
        centred = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
        scale = centred.std(axis=0)
        scale[scale == 0] = 1.0
        covariance = _shrunk_covariance(centred / scale)
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


def _shrunk_covariance(rows: Array) -> Array:
    """Return the covariance of centred rows, shrunk towards a multiple of the identity.

    By the share that minimises the expected squared error, as estimated from the rows
    (Ledoit and Wolf, *A well-conditioned estimator for large-dimensional covariance
    matrices*, Journal of Multivariate Analysis 88, 2004, section 3).
    """
    n, m = rows.shape
    covariance = rows.T @ rows / n
    size = np.trace(covariance) / m
    identity = np.eye(m)
    distance = np.sum((covariance - size * identity) ** 2)
    error = (np.sum(np.sum(rows**2, axis=1) ** 2) / n - np.sum(covariance**2)) / n
    share = min(error / distance, 1.0) if distance > 0 else 0.0
    return np.asarray((1 - share) * covariance + share * size * identity)


class LaplaceLocation(Attack):
    """Score = log-likelihood ratio of fitted independent Laplace distributions."""

    name = "laplace-location"
    learns = True
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are vectors, and their exact loss is not known."""
        return (
            isinstance(releases, np.ndarray)
            and releases.ndim == 2
            and releases.shape[1] > 1
            and not ExactLoss().applies(target, releases)
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        layout = learn_features(on_data, on_neighbour, _MAX_FEATURES)
        sides = features(layout, on_data), features(layout, on_neighbour)
        first, second = (np.median(side, axis=0) for side in sides)
        deviation = np.vstack([np.abs(sides[0] - first), np.abs(sides[1] - second)])
        scale = np.mean(deviation, axis=0)
        return {
            **layout,
            "on_data": first,
            "on_neighbour": second,
            "scale": np.where(scale > 0, scale, 1.0),
        }

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        numbers = cast(Array, releases)
        most = max(_AT_ONCE // max(numbers.shape[1], 1), 1)
        starts = range(0, len(numbers), most) or [0]
        parts = [_score(parameters, numbers[i : i + most]) for i in starts]
        return np.concatenate(parts)


def _score(parameters: Parameters, numbers: Array) -> Array:
    entries, scale = features(parameters, numbers), parameters["scale"]
    far, near = (entries - parameters[key] for key in ("on_neighbour", "on_data"))
    for distance in (far, near):
        np.abs(distance, out=distance)
        distance /= scale
    far -= near
    return np.asarray(far.sum(axis=1))
