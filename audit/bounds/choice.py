"""The choice of an event, from the part of the scores that is not tested.

For each threshold the bound that the last part is expected to give is predicted from
the first part, as the approximate limit that orders the outcomes there. Where hits are
few, the best of many noisy predictions is a lucky one. Three models of how D and D'
share the scores around a threshold are compared by cross-validated likelihood: a
logistic regression on the probit of the pooled rank (right for Gaussian scores, and
nearly noiseless); an average of simple functions of it
(`dpaudit.audit.betting.scores`: about right for Laplace scores, whose loss is constant
in the tails); and isotonic regression (right for any score that orders outputs by
likelihood ratio, atoms and rare leaks included). The first of them stands that is not
clearly less likely than the best. Under the last, predictions are discounted by the
first part's own standard error.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.betting.scores import sides_of
from dpaudit.audit.bounds.laws import BinomialCount, PoissonCount
from dpaudit.audit.bounds.ordering import Nulls

__all__ = ["HitCurve", "Sides", "Tails"]

_THRESHOLDS = 300  # candidates, denser in the tails
_NEWTON_STEPS = 12
_PAIRS = 120  # candidates per tail when both are chosen
_CLEARLY = 2.0  # by which the likelihood of a model must be the larger one


class Sides(NamedTuple):
    """Scores on D and on D'."""

    data: Array
    neighbour: Array


class HitCurve(NamedTuple):
    """Estimated probabilities of {score >= threshold}, from the first part.

    `releases` and `releases_neighbour` are the numbers for which bounds are predicted.
    """

    thresholds: Array
    p: Array
    q: Array
    releases: int
    releases_neighbour: int

    @classmethod
    def of(cls, chosen: Sides, tested: Sides) -> "HitCurve":
        thresholds = _candidates(np.concatenate(chosen))
        halves = [
            np.stack([_cells(side[start::2], thresholds) for side in chosen])
            for start in (0, 1)
        ]
        cells = halves[0] + halves[1]
        likelihoods = [_likelihood(model, *halves) for model in _MODELS]
        near = np.array(likelihoods) >= max(likelihoods) - _CLEARLY
        model = _MODELS[int(np.argmax(near))]
        smooth, share = model is not _isotonic, model(cells)
        pooled = cells.sum(axis=0)
        hits = np.cumsum((pooled * [share, 1 - share])[:, ::-1], axis=1)[:, ::-1]
        totals = cells.sum(axis=1, keepdims=True)
        # Half a hit of the smaller side is added to either. If each had its own, an
        # event without hits would seem likelier where there are fewer releases.
        half = 0.5 / totals.min()
        p, q = np.minimum(hits / totals + half, 1 + half) / (1 + 2 * half)
        sizes = [
            len(last) if smooth else _discounted(len(last), len(first))
            for first, last in zip(chosen, tested, strict=True)
        ]
        return cls(thresholds, p, q, *sizes)

    def single(self, nulls: Nulls, alpha: float) -> Array:
        """Return the bound that each threshold promises."""
        laws = BinomialCount(self.releases), BinomialCount(self.releases_neighbour)
        return nulls.approximate_bound(laws, self.p, self.q, alpha)

    def pair(self, nulls: Nulls, alpha: float) -> "Tails":
        """Return the two tails that promise the best bound."""
        law = PoissonCount(2 * min(self.releases, self.releases_neighbour))
        few = np.unique(np.linspace(0, len(self.p) - 1, _PAIRS).astype(int))
        # Only disjoint tails: the upper one begins where the lower one ends, or above.
        upper, lower = np.nonzero(few[:, np.newaxis] >= few)
        p, q = self.p[few], self.q[few]
        a, b = (p[upper] + (1 - q[lower])) / 2, (q[upper] + (1 - p[lower])) / 2
        predicted = nulls.approximate_bound((law, law), a, b, alpha)
        best = int(np.argmax(predicted))
        return Tails(
            float(predicted[best]),
            float(self.thresholds[few[lower[best]]]),
            float(self.thresholds[few[upper[best]]]),
        )


class Tails(NamedTuple):
    """{score >= upper} for D, {score < lower} for D', and the bound they promise."""

    predicted: float
    lower: float
    upper: float


def _candidates(scores: Array) -> Array:
    """Return thresholds among the scores, at ranks equally spaced in probits."""
    scores = np.sort(scores)
    reach = float(ndtri(1 / (len(scores) + 1)))
    ranks = ndtr(np.linspace(reach, -reach, _THRESHOLDS)) * len(scores)
    ranks = np.minimum(ranks.astype(int), len(scores) - 1)
    return np.unique(np.concatenate([scores[:1], scores[ranks]]))


def _cells(scores: Array, thresholds: Array) -> Array:
    """Return how many scores lie between each threshold and the next."""
    below = np.searchsorted(np.sort(scores), thresholds)
    return np.diff(below, append=len(scores)).astype(np.float64)


def _discounted(tested: int, chosen: int) -> int:
    """Return n with 1/sqrt(n) = 1/sqrt(tested) + 1/sqrt(chosen)."""
    return max(1, round((tested**-0.5 + chosen**-0.5) ** -2))


def _likelihood(model: Callable[[Array], Array], first: Array, second: Array) -> float:
    """Return the log-likelihood of either half under the model of the other."""
    total = 0.0
    for fitted, held_out in ((first, second), (second, first)):
        share = model(fitted)
        total += float((held_out * np.log([share, 1 - share])).sum())
    return total


def _logistic(cells: Array) -> Array:
    """Return D's share per cell: logistic in the probit of the pooled rank."""
    pooled, x = cells.sum(axis=0), _probits(cells)
    basis = np.stack([np.ones_like(x), x], axis=1)
    weights = np.zeros(2)
    for _ in range(_NEWTON_STEPS):
        share = expit(basis @ weights)
        gradient = basis.T @ (cells[0] - pooled * share) - weights
        spread = pooled * share * (1 - share)
        weights += np.linalg.solve((basis.T * spread) @ basis + np.eye(2), gradient)
    return np.clip(expit(basis @ weights), 1e-6, 1 - 1e-6)


def _simple(cells: Array) -> Array:
    """Return D's share per cell: an average of simple functions of the same probit."""
    fitted = sides_of(_probits(cells), *cells)
    if fitted is None:
        return np.full(cells.shape[1], 0.5)
    odds = cells[0].sum() / cells[1].sum()
    share = fitted * odds / (1 - fitted + fitted * odds)
    return np.clip(share, 1e-6, 1 - 1e-6)


def _probits(cells: Array) -> Array:
    """Return the probit of the pooled rank of each cell."""
    pooled = cells.sum(axis=0)
    return np.asarray(
        ndtri((np.cumsum(pooled) - pooled / 2 + 0.25) / (pooled.sum() + 0.5))
    )


def _isotonic(cells: Array) -> Array:
    """Return D's share per cell: non-decreasing, by pooling adjacent violators."""
    # D's hits and both sides', cells, and D's share of each block, in plain floats.
    blocks: list[tuple[float, float, int, float]] = []
    counts = cells[0].tolist(), cells.sum(axis=0).tolist()
    for hits, pooled in zip(*counts, strict=True):
        size, share = 1, (hits + 0.5) / (pooled + 1)
        while blocks and blocks[-1][3] >= share:
            before = blocks.pop()
            hits, pooled, size = before[0] + hits, before[1] + pooled, before[2] + size
            share = (hits + 0.5) / (pooled + 1)
        blocks.append((hits, pooled, size, share))
    return np.repeat([block[3] for block in blocks], [block[2] for block in blocks])


_MODELS = _logistic, _simple, _isotonic
