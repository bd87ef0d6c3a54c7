r"""Scores of the past: events above thresholds, and what is known of their ratios.

A `ScoreRecord` remembers the scores of a fitted attack themselves while they are few,
and counts above fixed thresholds from then on: its memory is bounded.

Where the score L is the exact privacy loss, the probabilities of an event S follow from
releases on both sides. With P and Q the laws on D and on D' and s(L) = 1/(1 + e^-L),

.. math:: P(S) = E_P[s(L); S] + E_Q[s(L); S], \quad Q(S) = E_P[1 - s(L); S]
          + E_Q[1 - s(L); S],

because dP/d(P + Q) = s(L). Chance lets the masses of all cells between two thresholds
miss 1; each cell gets a weight, of greatest empirical likelihood (Qin and Lawless,
Annals of Statistics 22, 1994), for which both are. So the ratio of the estimates is
that of the losses from the first releases on, whereas that of two counts takes as many
releases to learn as it takes to refute a claim. Like all estimates of the past they
only choose the bets.

Where nothing is known of the score, a ratio of densities that was fitted to the past
takes the place of e^L: few numbers are learned from all releases, instead of two for
each event. Releases elsewhere tell of a rare one, if log dP/dQ is a simple function of
the score s. Three kinds are fitted by logistic regression of the side that a score came
from, in cells between neighbouring thresholds:

- linear and quadratic functions of s: two Gaussian laws, of one deviation or of two;
- functions that are linear between two quantiles of the scores and constant beyond
  them, as for two Laplace laws.

They, and the constant, are averaged by Akaike's weights (Burnham and Anderson, *Model
selection and multimodel inference*, 2002, chapter 4), all of one kind sharing one
weight. Like all estimates of the past these only choose the bets.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, rel_entr

from dpaudit.arrays import Array
from dpaudit.audit.betting.events import Events

__all__ = ["ScoreRecord", "sides_of"]

Counts = NDArray[np.intp]
Tally = Array | tuple[int, Counts, Array]

_RANK_RATIO = 1.25
_REMEMBERED = 100_000  # scores a side, after which thresholds are fixed
_KNOWN = 1000  # as how many releases one counts whose exact loss is known
_FITTED = 4  # or of which it is a fitted function of the score,
_FEWEST = 50  # from as many scores a side on
_FEWEST_EVENTS = 8  # and if there are so many: two counts tell all of one event
_CONTRADICTED = 4.0  # standard errors between counts and losses
_CELLS, _QUANTILES = 24, (0.2, 1 / 3, 0.5, 2 / 3, 0.8)
_PAIRS = np.triu_indices(len(_QUANTILES), 1)
_PLACES = 0.5  # what Akaike's criterion charges for each of two chosen quantiles
_STEPS, _LARGEST_STEP, _SETTLED = 12, 2.0, 1e-3
_RIDGE = 1e-3
_NARROWED, _SAME, _BESIDE_POLES = 200, 1e-15, 1e-9


class ScoreRecord:
    """What is remembered of the scores of one fitted attack."""

    def __init__(self) -> None:
        # Of either side: first what is in increasing order, then what came later.
        self._scores: tuple[list[Array], list[Array]] = ([np.empty(0)], [np.empty(0)])
        self.thresholds: Array | None = None
        self._hits = np.zeros((2, 0), dtype=np.intp)
        self._shares = np.zeros((2, 1))
        self.scored = np.zeros(2, dtype=np.intp)

    def add(self, side: int, tally: Tally, thresholds: Array | None = None) -> Counts:
        """Remember scores that the attack did not learn from, or their `tally`.

        Returns
        -------
        ndarray of int, shape (T,)
            How many of them reach each of the decreasing thresholds that are fixed,
            or until then of those that are given.
        """
        if not isinstance(tally, tuple):
            tally = self.tally(tally, self.thresholds)
        if not isinstance(tally, tuple):
            self.scored[side] += len(tally)
            self._scores[side].append(tally)
            return count_hits(tally, np.empty(0) if thresholds is None else thresholds)
        size, hits, shares = tally
        self.scored[side] += size
        self._hits[side] += hits
        self._shares[side] += shares
        return hits

    @staticmethod
    def tally(scores: Array, thresholds: Array | None) -> Tally:
        """Return what `add` needs of scores: themselves, unless thresholds are fixed.

        Then their number, how many reach each threshold, and what these weigh.
        """
        if thresholds is None:
            return scores
        reached = _reached(scores, thresholds)
        shares = _from_the_rarest(reached, thresholds, expit(scores))
        return len(scores), _from_the_rarest(reached, thresholds)[:-1], shares

    def events(self, attack: int, *, exclusive: bool = False) -> Events:
        """Return the candidate events of the attack of that index."""
        if self.thresholds is None:
            both = self._in_order()
            thresholds = _thresholds(np.sort(np.concatenate(both), kind="stable"))
            hits = np.stack([_hits(scores, thresholds) for scores in both])
            if self.scored.min() >= _REMEMBERED:
                self.thresholds, self._hits = thresholds, hits
                self._shares = self._sums(thresholds, expit)
                self._scores = ([np.empty(0)], [np.empty(0)])
        else:
            thresholds, hits = self.thresholds, self._hits
        shape = (2, len(thresholds))
        return Events(
            np.full(len(thresholds), attack, dtype=np.intp),
            thresholds,
            hits.copy(),
            np.broadcast_to(self.scored[:, np.newaxis], shape).copy(),
            np.full(len(thresholds), exclusive),
        )

    def counts(self, threshold: float) -> tuple[int, int, int, int]:
        """Return hits and scores on D, then on D', of one of the candidate events."""
        if self.thresholds is None:
            hits = [int((np.concatenate(x) >= threshold).sum()) for x in self._scores]
        else:
            place = int(np.flatnonzero(self.thresholds == threshold)[0])
            hits = self._hits[:, place].tolist()
        return hits[0], int(self.scored[0]), hits[1], int(self.scored[1])

    def informed(self, events: Events) -> Events:
        """Return its events as they are if the scores are exact privacy losses.

        They count like those of a past that is `_KNOWN` times as long, since the ratio
        of their probabilities is not in doubt. Where the counts contradict the losses,
        the events come back as they were.
        """
        if self.thresholds is None:
            shares = self._sums(events.threshold, expit)
        else:
            shares = self._shares
        mass = self._cells(np.column_stack([events.hits, self.scored])).sum(axis=0)
        return self._with_ratio(events, mass, self._cells(shares).sum(axis=0), _KNOWN)

    def modelled(self, events: Events) -> Events:
        """Return its events as they are if the loss is a simple function of the score.

        They count like those of a past that is `_FITTED` times as long. They come back
        as they were where they are few, where the past is too short, or so long that
        thresholds are fixed, or contradicts the fit.
        """
        few = self.scored.min() < _FEWEST or len(events) < _FEWEST_EVENTS
        if self.thresholds is not None or few:
            return events
        both = self._in_order()
        largest = max(abs(scores[end]) for scores in both for end in (0, -1))
        if not (np.isfinite(largest) and largest > 0):
            return events
        sums = self._sums(events.threshold, lambda scores: scores / largest)
        total = np.diff(sums.sum(axis=0), prepend=0.0)
        cells = self._cells(np.column_stack([events.hits, self.scored]))
        counts = cells * self.scored[:, np.newaxis]
        mass, number = cells.sum(axis=0), counts.sum(axis=0)
        used = number > 0
        fitted = sides_of(total[used] / number[used], *counts[:, used])
        if fitted is None:
            return events
        share = np.zeros(len(mass))
        share[used] = fitted
        return self._with_ratio(events, mass, share * mass, _FITTED)

    def _in_order(self) -> list[Array]:
        """Return the remembered scores of either side, in increasing order."""
        for side in self._scores:
            if len(side) > 1:
                new = np.sort(np.concatenate(side[1:]))
                # A stable sort merges what is in order already.
                side[:] = [np.sort(np.append(side[0], new), kind="stable")]
        return [side[0] for side in self._scores]

    def _sums(self, thresholds: Array, weight: Callable[[Array], Array]) -> Array:
        """Return the weights of scores that reach each threshold, and of all, added.

        Shape (2, T + 1).
        """
        sums = []
        for scores in self._in_order():
            added = np.cumsum(np.append(0.0, weight(scores[::-1])))
            sums.append(added[np.append(_hits(scores, thresholds), len(scores))])
        return np.stack(sums)

    def _cells(self, reached: Array) -> Array:
        """Return what is in the cells between thresholds, over the scores of a side."""
        return np.diff(reached / self.scored[:, np.newaxis], axis=1, prepend=0.0)

    def _with_ratio(
        self, events: Events, mass: Array, share: Array, known: int
    ) -> Events:
        """Return events whose ratios of probabilities are known.

        Parameters
        ----------
        events : Events
        mass : ndarray, shape (T + 1,)
            P + Q of the cells between thresholds.
        share : ndarray, shape (T + 1,)
            P of the cells, but for a weight that balances them.
        known : int
            As how many releases one counts.
        """
        weights = _balance(mass, 2 * share - mass)
        if weights is None:
            return events
        scored = events.scored
        cells = np.stack([weights * share, weights * (mass - share)])
        expected = np.clip(np.cumsum(cells, axis=1)[:, :-1], 0.0, 1.0)
        # Of the releases that reach a threshold, and of those that miss it, so many
        # should be of D: counts of either side apart would hide it in a rare event.
        counts = np.stack([events.hits, scored - events.hits])
        means = scored * np.stack([expected, 1 - expected])
        whole = np.maximum(means.sum(axis=1, keepdims=True), 1e-300)
        means *= counts.sum(axis=1, keepdims=True) / whole
        if (2 * rel_entr(counts, means).sum(axis=1) > _CONTRADICTED**2).any():
            return events
        scored = known * scored
        hits = np.rint(expected * scored).astype(np.intp)
        return replace(events, hits=hits, scored=scored)


def count_hits(scores: Array, thresholds: Array) -> Counts:
    """Return how many scores reach each of the decreasing thresholds."""
    return _from_the_rarest(_reached(scores, thresholds), thresholds)[:-1]


def _reached(scores: Array, thresholds: Array) -> Counts:
    """Return how many of the decreasing thresholds each score reaches."""
    return np.searchsorted(thresholds[::-1], scores, side="right")


def _from_the_rarest(
    reached: Counts, thresholds: Array, weights: Array | None = None
) -> NDArray[Any]:
    """Return the number of scores that reach each threshold, and of all, or weights.

    Shape (T + 1,).
    """
    exactly = np.bincount(reached, weights, minlength=len(thresholds) + 1)
    return np.cumsum(exactly[::-1])


def _balance(mass: Array, tilt: Array) -> Array | None:
    """Return the weights w = 1/(1 + c tilt/mass) of cells for which sum w tilt is 0.

    None where there are none: all cells tilt the same way.
    """
    slope = np.divide(tilt, mass, out=np.zeros_like(tilt), where=mass > 0)
    if not slope.any():
        return np.ones_like(mass)
    if slope.min() >= 0 or slope.max() <= 0:
        return None
    # The sum falls from infinity to minus infinity between the poles, where c lies:
    # Newton's steps, and half of what is left where one of them would leave it.
    low, high = (-(1 - _BESIDE_POLES) / end for end in (slope.max(), slope.min()))
    if not (tilt / (1 + low * slope)).sum() > 0 > (tilt / (1 + high * slope)).sum():
        return None
    c = 0.0
    for _ in range(_NARROWED):
        weights = 1 / (1 + c * slope)
        imbalance = float((tilt * weights).sum())
        low, high = (c, high) if imbalance > 0 else (low, c)
        step = imbalance / float((tilt * slope * weights**2).sum())
        before, c = c, c + step
        if not low < c < high:
            c = (low + high) / 2
        if abs(c - before) <= _SAME * abs(c):
            break
    return np.asarray(1 / (1 + c * slope))


def _hits(scores: Array, thresholds: Array) -> Counts:
    """Return how many of the increasing scores reach each threshold."""
    return len(scores) - np.searchsorted(scores, thresholds, side="left")


def _thresholds(values: Array) -> Array:
    """Return decreasing thresholds, dense in both tails and at the middle of the ROC.

    The scores come in increasing order.

    Ranks grow geometrically from either end, so that rare events are resolved in
    relative terms wherever they are. The lowest score would be no event.
    """
    last = len(values) - 1
    ranks = [0]
    while ranks[-1] < len(values) / 2:
        ranks.append(max(ranks[-1] + 1, int(ranks[-1] * _RANK_RATIO)))
    both = np.union1d(ranks, last - np.array(ranks)).astype(np.intp)
    distinct = np.unique(values[both[(both >= 0) & (both <= last)]])
    return distinct[distinct > values[0]][::-1] if len(values) else distinct


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
    knots = np.sort(np.interp(_QUANTILES, rank, z))
    low, high = (knots[each, np.newaxis] for each in _PAIRS)
    features = np.zeros((3 + len(low), 3, len(z)))
    features[:, 0] = 1.0
    features[1:3, 1] = z
    features[2, 2] = z * z
    features[3:, 1] = np.clip(z, low, high)
    apart = (low < high)[:, 0]
    pairs = int(apart.sum())
    freedom = np.array([1.0, 2.0, 3.0, *[2.0 + 2 * _PLACES] * pairs])
    prior = np.array([1.0, 1.0, 1.0, *[1.0 / max(pairs, 1)] * pairs])
    return features[np.append([True] * 3, apart)], freedom, prior


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
