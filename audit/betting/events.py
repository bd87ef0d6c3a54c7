r"""Events: which sets of outputs can be bet on, and what is known of them.

An event is "attack a scores at least t". Its probabilities on D and D' are estimated
from scores of the past, by Krichevsky-Trofimov (k + 1/2)/(n + 1), which keeps
alternatives off 0 and 1. What an attack looks for may be possible on one dataset and
impossible on the other (`exclusive` events: an atom, a word, a point outside the
support). Half the prior mass on q = 0, the other half spread like the k hits of the
other side suggest, gives what was never seen in n releases about (1/2)/(k + 2) a hit
in place of 1/2. The scores are remembered by a
`dpaudit.audit.betting.scores.ScoreRecord`.

By how much they exceed nulls, in standard errors, chooses among them. The statistic of
an event S and one of its half-planes is c_P [hit] on D plus c_Q [hit] on D', with mean
c_P P(S) + c_Q Q(S) and the null's limit for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.families import NullFamily

__all__ = [
    "DOUBT",
    "Events",
    "Excess",
    "coefficients",
    "find_anchor",
    "prior_hits",
    "reaching_tells",
    "violation",
]

Counts = NDArray[np.intp]

_CLEAR = 4.0  # standard errors that chance hardly gives to the best of many events
_RESOLUTION = 500  # so much of a family is one step of an anchor,
_AROUND = np.array([-16, -4, -1, 0, 1, 4, 16])  # and it is looked for so near at first
_LUCK = 1.5  # standard errors that it easily does
DOUBT = 2.0
"""Standard errors inside a null from which an event may yet turn out to violate it."""


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


def reaching_tells(counts: tuple[int, int, int, int], epsilon: float) -> bool:
    """Say whether reaching a threshold shows a larger delta at `epsilon` than missing.

    Parameters
    ----------
    counts : tuple of int
        How many scores reached the threshold, of how many, on D; the same on D'.
    epsilon : float

    Examples
    --------
    >>> reaching_tells((60, 100, 10, 100), 1.0), reaching_tells((60, 100, 99, 100), 1.0)
    (True, False)
    """
    hits, n, hits_neighbour, m = counts
    p, q, factor = hits / n, hits_neighbour / m, math.exp(min(epsilon, 700.0))
    reached = max(p - factor * q, q - factor * p)
    return reached >= max((1 - p) - factor * (1 - q), (1 - q) - factor * (1 - p))


def prior_hits(hits: Counts, exclusive: NDArray[np.bool_]) -> Array:
    """Return what to add to hits on either side, shape (2, ...), to estimate shares.

    `exclusive` is as for `Events`, of any shape that broadcasts against one side's.
    """
    unseen = exclusive & (hits == 0)
    return np.where(unseen, 0.5 / (2 + hits[::-1]), 0.5)


@dataclass(frozen=True)
class Excess:
    """How far each event (T) exceeds each null (M), at its tightest half-plane.

    A statistic is on_p [S] on D plus on_q [S] on D', with the mean excess over the
    limit and the variance per release.
    """

    on_p: Array
    on_q: Array
    excess: Array
    variance: Array

    @classmethod
    def of(
        cls, family: NullFamily, nulls: Counts, events: Events, share: float | Array
    ) -> "Excess":
        p, q = events.p, events.q
        heavy = p >= q  # else D' is the side on which the event is likelier
        up, low = np.maximum(p, q), np.minimum(p, q)
        log_ratio, limit = family.half_planes(nulls, up, low)
        on_d, on_neighbour = share, 1 - np.asarray(share)
        w_up = np.where(heavy, on_d, on_neighbour)[:, np.newaxis]
        w_low = np.where(heavy, on_neighbour, on_d)[:, np.newaxis]
        up, low = up[:, np.newaxis], low[:, np.newaxis]
        on_up, on_low, limit = _weights(log_ratio, limit)
        with np.errstate(over="ignore"):
            excess = on_up * up - on_low * low - limit
            # At the estimates themselves, a rare event without a hit on one side
            # would seem certain. The variance is taken half way to the null instead,
            # as a score test's nearly is.
            tiny = np.finfo(np.float64).tiny
            null_low = (on_up * up - limit) / np.maximum(on_low, tiny)
            null_low = np.minimum(np.maximum(null_low, low), 1.0)
            null_up = (on_low * low + limit) / np.maximum(on_up, tiny)
            null_up = np.minimum(np.maximum(null_up, 0.0), up)
            spread_up = on_up**2 * _spread((up + null_up) / 2)
            spread_low = on_low**2 * _spread((low + null_low) / 2)
            variance = spread_up / w_up + spread_low / w_low
            z = excess / np.sqrt(variance)
        found = [on_up, on_low, excess, variance, z]
        tight = [x[..., 0] for x in found]
        for each in range(1, z.shape[2]):
            better = z[..., each] > tight[-1]
            tight = [
                np.where(better, x[..., each], y)
                for x, y in zip(found, tight, strict=True)
            ]
        on_up, on_low, excess, variance, _ = tight
        on_p, on_q = np.where(heavy, on_up, -on_low), np.where(heavy, -on_low, on_up)
        return cls(on_p, on_q, excess, variance)


def find_anchor(
    family: NullFamily, events: Events, near: int | None = None
) -> tuple[int, int]:
    """Return the largest null that some event violates clearly, and where doubt ends.

    Near the truth the event that seems to violate a null by most is one that chance
    favoured. So events are chosen where they stand out from chance, at the anchor, and
    are kept for the nulls above it.

    Parameters
    ----------
    family : NullFamily
    events : Events
        At least one.
    near : int, optional
        Where the anchor was before: it is looked for there first.

    Returns
    -------
    anchor : int
        The null, or 0 if none is violated clearly.
    top : int
        The largest null that the anchor's best event may yet turn out to violate.
    """
    low, high, main = 0, len(family) - 1, None
    fine = len(family) // _RESOLUTION
    scored = events.scored.sum(axis=0)
    error, share = 1 / np.sqrt(scored), events.scored[0] / scored
    tried = np.linspace(low, high, 16)
    if near is not None:
        tried = near + max(fine, 1) * _AROUND
    while main is None or high - low > fine:
        nulls = np.unique(np.clip(tried, low, high).astype(np.intp))
        found = Excess.of(family, nulls, events, share)
        z = found.excess / (np.sqrt(found.variance) * error)
        clear = np.flatnonzero(np.max(z, axis=1) >= _CLEAR)
        last = int(clear[-1]) if len(clear) else -1
        if last + 1 < len(nulls):
            high = max(int(nulls[last + 1]) - 1, 0)
        if last >= 0 or nulls[0] == 0:
            low, main = int(nulls[max(last, 0)]), int(np.argmax(z[max(last, 0)]))
        tried = np.linspace(low, high, 16)
    above = np.arange(low, len(family), max(fine, 1))
    found = Excess.of(family, above, events.take([main]), share[main])
    z = (found.excess / np.sqrt(found.variance))[:, 0] / error[main]
    doubtful = np.flatnonzero(z > -DOUBT)
    return low, int(above[doubtful[-1]]) if len(doubtful) else low


def violation(family: NullFamily, null: int, events: Events) -> float:
    """Return by how many standard errors events seem to exceed a null.

    Negative inside the null. The best of many events looks better than it is, and
    `_LUCK` standard errors are taken off for that. Rare events lie inside any null by
    little, whatever the mechanism. So where no event exceeds the null, the one tells
    how far it is that separates D from D' by most.
    """
    if not len(events):
        return 0.0
    scored = events.scored.sum(axis=0)
    past = events.scored[0] / scored
    found = Excess.of(family, np.array([null]), events, past)
    z = found.excess[0] / np.sqrt(found.variance[0] / scored)
    best = float(np.max(z)) - _LUCK
    widest = int(np.argmax(np.abs(events.p - events.q)))
    return best if best > 0 else min(best, float(z[widest]))


def _spread(p: Array) -> Array:
    return p * (1 - p)


def coefficients(
    log_ratio: Array, limit: Array, heavy: NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """Return c_P, c_Q and the limit, divided by the larger of 1 and the ratio.

    `heavy` says where an event is likelier on D than on D'.
    """
    likely, other, limit = _weights(log_ratio, limit)
    on_p, on_q = np.where(heavy, likely, -other), np.where(heavy, -other, likely)
    return on_p, on_q, limit


def _weights(log_ratio: Array, limit: Array) -> tuple[Array, Array, Array]:
    """Return the coefficient of the likelier side, minus the other's, and the limit."""
    if log_ratio.strides[1] == 0:  # the same for all events: computed once
        log_ratio, limit = log_ratio[:, :1], limit[:, :1]
    likely = np.exp(-np.maximum(log_ratio, 0.0))
    return likely, np.exp(np.minimum(log_ratio, 0.0)), limit * likely
