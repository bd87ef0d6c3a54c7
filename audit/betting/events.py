r"""Events: which sets of outputs can be bet on, and what is known of them.

An event is "attack a scores at least t". Its probabilities on D and D' are estimated
from scores of the past, by Krichevsky-Trofimov (k + 1/2)/(n + 1), which keeps
alternatives off 0 and 1. What an attack looks for may be possible on one dataset and
impossible on the other (`exclusive` events: an atom, a word, a point outside the
support). Half the prior mass on q = 0, the other half spread like the k hits of the
other side suggest, gives what was never seen in n releases about (1/2)/(k + 2) a hit
in place of 1/2. A `ScoreRecord` remembers the scores themselves while they
are few, and counts above fixed thresholds from then on: its memory is bounded.

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
(`dpaudit.audit.betting.density`) takes the place of e^L: few numbers are learned from
all releases, instead of two for each event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from dpaudit.arrays import Array
from dpaudit.audit.betting.density import sides_of

__all__ = ["Events", "ScoreRecord", "count_hits", "prior_hits"]

Counts = NDArray[np.intp]

_RANK_RATIO = 1.25
_REMEMBERED = 100_000  # scores a side, after which thresholds are fixed
_KNOWN = 1000  # as how many releases one counts whose exact loss is known
_FITTED = 4  # or of which it is a fitted function of the score,
_FEWEST = 50  # from as many scores a side on
_FEWEST_EVENTS = 8  # and if there are so many: two counts tell all of one event
_CONTRADICTED = 5.0  # standard errors between counts and losses


@dataclass(frozen=True)
class Events:
    """Events, one entry each; those of one attack are nested, rarest first.

    Parameters
    ----------
    attack : ndarray of int, shape (T,)
        Which attack scores; increasing.
    threshold : ndarray, shape (T,)
        The event is score >= threshold; decreasing within an attack.
    hits, scored : ndarray of int, shape (2, T)
        Past scores that hit the event, and past scores, on D and on D'.
    exclusive : ndarray of bool, shape (T,)
        Whether an event that never occurred on one side is likely impossible there.
    """

    attack: Counts
    threshold: Array
    hits: Counts
    scored: Counts
    exclusive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.attack)

    @property
    def _columns(self) -> list[Any]:
        return [getattr(self, each.name) for each in fields(self)]

    @property
    def p(self) -> Array:
        """Estimated probabilities on D, strictly between 0 and 1."""
        return self._estimates[0]

    @property
    def q(self) -> Array:
        """Estimated probabilities on D'."""
        return self._estimates[1]

    @cached_property
    def _estimates(self) -> Array:
        misses = self.scored - self.hits
        hits = self.hits + prior_hits(self.hits, self.exclusive)
        return hits / (hits + misses + prior_hits(misses, self.exclusive))

    @property
    def less_likely(self) -> Array:
        """The smaller of the two estimated probabilities."""
        return np.minimum(self.p, self.q)

    @property
    def separation(self) -> tuple[float, float]:
        """By how many standard deviations one tells D from D', at most; and the error.

        Deviations are those of a single release, so that pasts of different sizes
        compare.
        """
        middle = (self.p + self.q) / 2
        deviation = 2 * np.sqrt(middle * (1 - middle))
        best = float(np.max(np.abs(self.p - self.q) / deviation))
        return best, 1 / float(np.sqrt(self.scored.sum(axis=0).max()))

    def take(self, places: Sequence[int] | Counts) -> "Events":
        """Return some of the events."""
        return Events(*(column[..., places] for column in self._columns))

    @classmethod
    def single(
        cls, threshold: float, hits: Sequence[int] | Counts, scored: Sequence[int]
    ) -> "Events":
        """Return one event of attack 0."""
        return cls(
            np.zeros(1, dtype=np.intp),
            np.array([threshold]),
            np.array(hits, dtype=np.intp)[:, np.newaxis],
            np.array(scored, dtype=np.intp)[:, np.newaxis],
            np.zeros(1, dtype=np.bool_),
        )

    @classmethod
    def join(cls, parts: Sequence["Events"]) -> "Events":
        """Return the events of several attacks, in order."""
        if not parts:
            none = np.zeros((2, 0), dtype=np.intp)
            return cls(none[0], np.empty(0), none, none, none[0].astype(np.bool_))
        columns = zip(*(part._columns for part in parts), strict=True)
        return cls(*(np.concatenate(each, axis=-1) for each in columns))


class ScoreRecord:
    """What is remembered of the scores of one fitted attack."""

    def __init__(self) -> None:
        # Of either side: first what is in increasing order, then what came later.
        self._scores: tuple[list[Array], list[Array]] = ([np.empty(0)], [np.empty(0)])
        self._thresholds: Array | None = None
        self._hits = np.zeros((2, 0), dtype=np.intp)
        self._shares = np.zeros((2, 1))
        self.scored = np.zeros(2, dtype=np.intp)

    def add(self, side: int, scores: Array) -> Counts | None:
        """Remember scores that the attack did not learn from.

        Returns
        -------
        ndarray of int, shape (T,), or None
            How many of them reach each threshold, once thresholds are fixed.
        """
        self.scored[side] += len(scores)
        if self._thresholds is None:
            self._scores[side].append(scores)
            return None
        reached = _reached(scores, self._thresholds)
        hits = _from_the_rarest(reached, self._thresholds)[:-1]
        self._hits[side] += hits
        self._shares[side] += _from_the_rarest(reached, self._thresholds, expit(scores))
        return hits

    def events(self, attack: int, *, exclusive: bool = False) -> Events:
        """Return the candidate events of the attack of that index."""
        if self._thresholds is None:
            both = self._in_order()
            thresholds = _thresholds(np.sort(np.concatenate(both), kind="stable"))
            hits = np.stack([_hits(scores, thresholds) for scores in both])
            if self.scored.min() >= _REMEMBERED:
                self._thresholds, self._hits = thresholds, hits
                self._shares = self._sums(thresholds, expit)
                self._scores = ([np.empty(0)], [np.empty(0)])
        else:
            thresholds, hits = self._thresholds, self._hits
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
        if self._thresholds is None:
            hits = [int((np.concatenate(x) >= threshold).sum()) for x in self._scores]
        else:
            place = int(np.flatnonzero(self._thresholds == threshold)[0])
            hits = self._hits[:, place].tolist()
        return hits[0], int(self.scored[0]), hits[1], int(self.scored[1])

    def informed(self, events: Events) -> Events:
        """Return its events as they are if the scores are exact privacy losses.

        They count like those of a past that is `_KNOWN` times as long, since the ratio
        of their probabilities is not in doubt. Where the counts contradict the losses,
        the events come back as they were.
        """
        if self._thresholds is None:
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
        if self._thresholds is not None or few:
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
                # A stable sort merges what is in order already.
                side[:] = [np.sort(np.concatenate(side), kind="stable")]
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
        error = np.sqrt(expected * (1 - expected) / scored) + 1 / scored
        if (np.abs(events.hits / scored - expected) > _CONTRADICTED * error).any():
            return events
        scored = known * scored
        hits = np.rint(expected * scored).astype(np.intp)
        return replace(events, hits=hits, scored=scored)


def prior_hits(hits: Counts, exclusive: NDArray[np.bool_]) -> Array:
    """Return what to add to hits on either side, shape (2, ...), to estimate shares.

    `exclusive` is as for `Events`, of any shape that broadcasts against one side's.
    """
    unseen = exclusive & (hits == 0)
    return np.where(unseen, 0.5 / (2 + hits[::-1]), 0.5)


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

    def imbalance(c: float) -> float:
        return float((tilt / (1 + c * slope)).sum())

    # It falls from infinity to minus infinity between the poles.
    low, high = (-(1 - 1e-9) / end for end in (slope.max(), slope.min()))
    if not imbalance(low) > 0 > imbalance(high):
        return None
    return np.asarray(1 / (1 + brentq(imbalance, low, high) * slope))


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
