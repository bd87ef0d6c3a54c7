r"""A ratio of densities with few parameters, fitted to the scores of the past.

Where an event is rare, its probabilities on D and on D' take many releases to learn
from its own hits. But releases elsewhere tell of it, if log dP/dQ is a simple function
of the score s. Three kinds are fitted by logistic regression of the side that a score
came from, in cells between neighbouring thresholds:

- linear and quadratic functions of s: two Gaussian laws, of one deviation or of two;
- functions that are linear between two quantiles of the scores and constant beyond
  them, as for two Laplace laws.

They, and the constant, are averaged by Akaike's weights (Burnham and Anderson, *Model
selection and multimodel inference*, 2002, chapter 4), all of one kind sharing one
weight. Like all estimates of the past these only choose the bets.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpaudit.arrays import Array

__all__ = ["sides_of"]

_CELLS, _QUANTILES = 24, (0.2, 1 / 3, 0.5, 2 / 3, 0.8)
_PLACES = 0.5  # what Akaike's criterion charges for each of two chosen quantiles
_STEPS, _LARGEST_STEP, _SETTLED = 12, 2.0, 1e-3
_RIDGE = 1e-3


def sides_of(centre: Array, on_data: Array, on_neighbour: Array) -> Array | None:
    """Return the share of D in cells of scores, were as many drawn on either side.

    Parameters
    ----------
    centre : ndarray, shape (K,)
        The mean score of each cell, in order.
    on_data, on_neighbour : ndarray, shape (K,)
        How many scores of either side are in each cell; some are on both sides.

    Returns
    -------
    ndarray, shape (K,), or None
        In (0, 1). None where all scores are alike.

    Examples
    --------
    >>> hits = np.array([60.0, 30.0, 10.0])
    >>> sides_of(np.array([1.0, 0.0, -1.0]), hits, hits[::-1]).round(2)
    array([0.86, 0.5 , 0.14])
    """
    n = on_data + on_neighbour
    weight = n / n.sum()
    middle = weight @ centre
    deviation = np.sqrt(weight @ (centre - middle) ** 2)
    if not deviation > 0:
        return None
    z = (centre - middle) / deviation
    features, freedom, prior = _models(z, np.cumsum(weight) - weight / 2)
    offset = np.log(on_data.sum() / on_neighbour.sum())
    coarse = _coarse(weight)
    counts = np.stack([_added(x, coarse) for x in (on_data, n)])
    rough = _added((features * n).T, coarse).T / np.maximum(counts[1], 1.0)
    beta, likelihood = _fitted(rough, counts[0], counts[1], offset)
    weights = likelihood - freedom + np.log(prior)
    weights = np.exp(weights - weights.max())
    shares = expit((beta[:, np.newaxis] @ features)[:, 0])
    return np.asarray(weights @ shares / weights.sum())


def _models(z: Array, rank: Array) -> tuple[Array, Array, Array]:
    """Return features, shape (M, 3, K), numbers that are fitted, and prior weights."""
    one, none = np.ones_like(z), np.zeros_like(z)
    knots = np.sort(np.interp(_QUANTILES, rank, z))
    pairs = [(a, b) for i, a in enumerate(knots) for b in knots[i + 1 :] if a < b]
    features = [
        (one, none, none),
        (one, z, none),
        (one, z, z * z),
        *((one, np.clip(z, low, high), none) for low, high in pairs),
    ]
    freedom = [1.0, 2.0, 3.0, *[2.0 + 2 * _PLACES] * len(pairs)]
    prior = [1.0, 1.0, 1.0, *[1.0 / max(len(pairs), 1)] * len(pairs)]
    return np.array(features), np.array(freedom), np.array(prior)


def _coarse(weight: Array) -> NDArray[np.intp]:
    """Return the first of the cells that are fitted as one, at most `_CELLS`."""
    place = np.floor((np.cumsum(weight) - weight / 2) * _CELLS).astype(np.intp)
    return np.flatnonzero(np.diff(place, prepend=-1))


def _added(cells: Array, first: NDArray[np.intp]) -> Array:
    return np.asarray(np.add.reduceat(cells, first, axis=0))


def _fitted(
    features: Array, hits: Array, n: Array, offset: float
) -> tuple[Array, Array]:
    """Fit all models at once, by Newton's method; return coefficients and likelihoods.

    A small ridge keeps features that are no features at 0, and what separates the two
    sides finite.
    """
    beta = np.zeros(features.shape[:2])
    across = features.transpose(0, 2, 1)
    ridge = _RIDGE * np.eye(features.shape[1])
    for _ in range(_STEPS):
        share = expit((beta[:, np.newaxis] @ features)[:, 0] + offset)
        slope = (features @ (hits - n * share)[..., np.newaxis])[..., 0]
        curve = (features * (n * share * (1 - share))[:, np.newaxis]) @ across + ridge
        step = np.linalg.solve(curve, (slope - _RIDGE * beta)[..., np.newaxis])[..., 0]
        step = np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        beta += step
        if np.abs(step).max() < _SETTLED:
            break
    log_odds = (beta[:, np.newaxis] @ features)[:, 0] + offset
    likelihood = -(
        hits * np.logaddexp(0, -log_odds) + (n - hits) * np.logaddexp(0, log_odds)
    )
    return beta, likelihood.sum(axis=1)
