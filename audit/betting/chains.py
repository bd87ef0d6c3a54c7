"""Chains: nested events, the half-planes they are held to, and estimates of both laws.

`forward_chains` chooses them from what the past shows: the event that violates a null
by most standard errors, then further events of the same attack (the other
tail, above all) as long as each adds evidence that is not already there. Nothing is
assumed of the releases.

`pooled_chains` is for Gaussian nulls: one chain, estimated together. Events spread over
the range of the score each show a shift Phi^-1(p) - Phi^-1(q). If the releases look
like a Gaussian pair the shifts agree, and their pooled estimate uses nearly all the
information there is; so far as they disagree by more than chance, each keeps its own
(random effects). It is a choice of alternative, made from the past, and valid whatever
the releases are like.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.betting.events import DOUBT, Events, Excess, coefficients, prior_hits
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces

__all__ = ["Chains", "forward_chains", "hold", "pooled_chains"]

Counts = NDArray[np.intp]

_LONGEST = 4
_WORTH = 4.0  # squared standard errors that an event must add: Akaike, two numbers
_LEVELS = (0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 0.94, 0.98)
_ENOUGH = 5  # hits and misses, on either side, for a normal approximation


@dataclass(frozen=True)
class Chains:
    """One chain for each of M nulls.

    Parameters
    ----------
    events : ndarray of int, shape (M, J)
        Nested events, rarest first; the last may be repeated to fill the row.
    half_spaces : HalfSpaces
    p1, q1 : ndarray, shape (M, J + 1)
        Estimated probabilities of the cells between them.
    freedom : ndarray, shape (M,)
        How many numbers were fitted to the past for them.
    """

    events: Counts
    half_spaces: HalfSpaces
    p1: Array
    q1: Array
    freedom: Array

    def _widen(self, length: int, spaces: int) -> "Chains":
        """Fill the rows with events that cut off nothing, held to nothing."""
        more = length - self.events.shape[1]
        if not more:
            return replace(self, half_spaces=self.half_spaces.widen(spaces))
        nothing = np.zeros((len(self.events), more))
        # New cells are empty and lie before the last one.
        return Chains(
            np.hstack([self.events, np.repeat(self.events[:, -1:], more, axis=1)]),
            self.half_spaces.widen(spaces),
            np.hstack([self.p1[:, :-1], nothing, self.p1[:, -1:]]),
            np.hstack([self.q1[:, :-1], nothing, self.q1[:, -1:]]),
            self.freedom,
        )

    @staticmethod
    def stack(ways: "Sequence[Chains]") -> "Chains":
        """Put the problems of several sets of chains below each other."""
        length = max(way.events.shape[1] for way in ways)
        spaces = max(way.half_spaces.limit.shape[1] for way in ways)
        ways = [way._widen(length, spaces) for way in ways]
        return Chains(
            np.vstack([way.events for way in ways]),
            HalfSpaces.stack([way.half_spaces for way in ways]),
            np.vstack([way.p1 for way in ways]),
            np.vstack([way.q1 for way in ways]),
            np.concatenate([way.freedom for way in ways]),
        )


def forward_chains(
    family: NullFamily,
    nulls: Counts,
    judges: Counts,
    events: Events,
    share: float,
    handicap: Array | float = 0.0,
) -> Chains:
    """Choose chains by forward selection; see the module docstring.

    Parameters
    ----------
    family : NullFamily
    nulls : ndarray of int, shape (M,)
    judges : ndarray of int, shape (M,)
        The nulls at which the events for each of them are chosen.
    events : Events
        At least one.
    share : float
        Of the coming releases, how much is drawn on D.
    handicap : float or ndarray, shape (len(events),)
        What is taken off the squared standard errors of each event, when the first of a
        chain is chosen.
    """
    judged, row = np.unique(judges, return_inverse=True)
    found = Excess.of(family, judged, events, share)
    chosen, real = _select(found, events, share, handicap)
    first = chosen[:, 0]
    order = np.argsort(np.where(real, chosen, len(events)), axis=1, kind="stable")
    chosen = np.take_along_axis(chosen, order, axis=1)
    real = np.take_along_axis(real, order, axis=1)
    length = int(real.sum(axis=1).max())
    chosen, real = chosen[:, :length], real[:, :length]
    last = np.maximum(real.sum(axis=1) - 1, 0)[:, np.newaxis]
    chosen = np.where(real, chosen, np.take_along_axis(chosen, last, axis=1))
    main = np.argmax(chosen == first[:, np.newaxis], axis=1)[row]
    chosen, real = chosen[row], real[row]
    # The chosen events' own half-planes, for every null itself.
    used, place = np.unique(chosen, return_inverse=True)
    p, q = events.p[used], events.q[used]
    log_ratio, limit = family.half_planes(nulls, np.maximum(p, q), np.minimum(p, q))
    every, place = np.arange(len(nulls))[:, np.newaxis], place.reshape(chosen.shape)
    spaces = hold(log_ratio[every, place], limit[every, place], (p >= q)[place], real)
    p1, q1 = _cells(events, chosen, real)
    scored = events.scored.sum(axis=0)[chosen[:, 0]]
    # Two probabilities for each event, and the place of the first one.
    freedom = 2.0 * real.sum(axis=1) + 1
    return Chains(chosen, spaces, *_lift(p1, q1, spaces, main, scored, share), freedom)


def _lift(
    p1: Array, q1: Array, spaces: HalfSpaces, main: Counts, scored: Counts, share: float
) -> tuple[Array, Array]:
    """Move estimates that chance may have kept inside a null to just outside it.

    Where the main event lies less than a standard error outside, but not far inside,
    the alternative becomes one standard error outside, the nearest in likelihood.
    """
    every = np.arange(len(p1))
    c = spaces.limit.shape[1] // (p1.shape[1] - 1)
    mine = main[:, np.newaxis] * c + np.arange(c)
    on_p, on_q, limit = (
        np.take_along_axis(x, mine, axis=1)
        for x in (spaces.on_p, spaces.on_q, spaces.limit)
    )
    inside = np.arange(p1.shape[1]) <= main[:, np.newaxis]
    p, q = (np.sum(x * inside, axis=1, keepdims=True) for x in (p1, q1))
    spread_p, spread_q = p * (1 - p) / share, q * (1 - q) / (1 - share)
    with np.errstate(over="ignore"):
        variance = on_p**2 * spread_p + on_q**2 * spread_q
    excess = on_p * p + on_q * q - limit
    tight = np.argmax(excess / np.sqrt(variance), axis=1)
    on_p, on_q, excess, variance = (
        x[every, tight][:, np.newaxis] for x in (on_p, on_q, excess, variance)
    )
    error = np.sqrt(variance / scored[:, np.newaxis])
    short = np.where(excess > -DOUBT * error, np.maximum(error - excess, 0.0), 0.0)
    lifted = []
    for cells, total, move in (
        (p1, p, short / variance * on_p * spread_p),
        (q1, q, short / variance * on_q * spread_q),
    ):
        low, high = total / 2, (1 + total) / 2
        moved = np.clip(total + move, low, high)
        lifted.append(
            cells * np.where(inside, moved / total, (1 - moved) / (1 - total))
        )
    return lifted[0], lifted[1]


def _select(
    found: Excess, events: Events, share: float, handicap: Array | float
) -> tuple[Counts, NDArray[np.bool_]]:
    """Return up to `_LONGEST` events for each null, and which of them are real.

    A Cholesky factorisation of the covariance of all events' statistics, pivoted on
    the largest squared mean over variance of what the earlier ones leave unexplained.
    """
    p, q, scored = events.p, events.q, events.scored.sum(axis=0)
    mean, left, floor = found.excess, found.variance, 1e-9 * found.variance
    every = np.arange(len(mean))
    chosen = np.zeros((len(mean), _LONGEST), dtype=np.intp)
    real = np.zeros(chosen.shape, dtype=bool)
    factors: list[Array] = []
    allowed = np.ones(mean.shape, dtype=bool)
    for place in range(_LONGEST):
        usable = allowed & (mean > 0) & (left > floor)
        gain = np.divide(mean**2, left, out=np.zeros_like(mean), where=usable)
        offered = gain * scored - (0.0 if place else handicap)
        pivot = np.argmax(np.where(usable, offered, -np.inf), axis=1)
        gained = gain[every, pivot] * scored[pivot]
        chosen[:, place] = pivot
        allowed[every, pivot] = False
        real[:, place] = gained > (_WORTH if place else 0)
        if place:
            real[:, place] &= real[:, place - 1]
        else:
            allowed &= events.attack == events.attack[pivot][:, np.newaxis]
            real[:, 0] = True  # a chain has at least one event
        if place == _LONGEST - 1 or not real[:, place].any():
            break
        a, b = p[pivot][:, np.newaxis], q[pivot][:, np.newaxis]
        with np.errstate(over="ignore", invalid="ignore"):
            factor = found.on_p[every, pivot][:, np.newaxis] * found.on_p * (
                (np.minimum(a, p) - a * p) / share
            ) + found.on_q[every, pivot][:, np.newaxis] * found.on_q * (
                (np.minimum(b, q) - b * q) / (1 - share)
            )
            for earlier in factors:
                factor -= earlier[every, pivot][:, np.newaxis] * earlier
            # Where nothing more was found, there is nothing to explain either.
            root = np.where(real[:, place], left[every, pivot], np.inf)
            root = np.sqrt(root)[:, np.newaxis]
            factor /= root
            mean = mean - factor * (mean[every, pivot][:, np.newaxis] / root)
            left = left - factor**2
        factors.append(factor)
    return chosen, real


def hold(
    log_ratio: Array,
    limit: Array,
    heavy: NDArray[np.bool_],
    real: NDArray[np.bool_] | None = None,
) -> HalfSpaces:
    """Hold events (M, J), those that are real, to their half-planes (M, J, C).

    `heavy` says where an event is likelier on D than on D'.
    """
    m, j, c = log_ratio.shape
    on_p, on_q, limit = coefficients(log_ratio, limit, heavy[..., np.newaxis])
    used = True if real is None else real[..., np.newaxis]
    return HalfSpaces(
        np.broadcast_to(np.repeat(np.arange(1, j + 1), c), (m, j * c)),
        np.where(used, on_p, 0.0).reshape(m, j * c),
        np.where(used, on_q, 0.0).reshape(m, j * c),
        np.where(used, limit, 1.0).reshape(m, j * c),
    )


def _cells(events: Events, chosen: Counts, real: NDArray[np.bool_]) -> Array:
    """Return smoothed shares of the cells that real events cut off, (2, M, J + 1)."""
    hits = events.hits[:, chosen]
    n = events.scored[:, chosen[:, :1]]
    counts = np.diff(hits, axis=2, prepend=0)
    counts = np.concatenate([counts, n - hits[:, :, -1:]], axis=2)
    used = np.hstack([real, np.ones((len(real), 1), dtype=np.bool_)])
    exclusive = events.exclusive[chosen[:, :1]]
    weight = counts + np.where(used, prior_hits(counts, exclusive), 0.0)
    return weight / weight.sum(axis=2, keepdims=True)


def pooled_chains(family: NullFamily, nulls: Counts, events: Events) -> Chains | None:
    """Choose one chain for all nulls; None where the past does not suffice."""
    options = [
        pooled
        for attack in np.unique(events.attack)
        if (pooled := _pool(events, np.flatnonzero(events.attack == attack)))
    ]
    if not options:
        return None
    best = max(options, key=lambda pooled: pooled.z)
    m, j = len(nulls), len(best.events)
    # As `_lift`: nulls that chance may have hidden are given an alternative as well.
    short = family.parameter[nulls] + best.error - abs(best.pooled)
    short = np.where(short < (1 + DOUBT) * best.error, np.maximum(short, 0.0), 0.0)
    half = (best.shift + np.sign(best.pooled) * short[:, np.newaxis]) / 2
    p, q = ndtr(best.centre + half), ndtr(best.centre - half)
    log_ratio, limit = family.half_planes(nulls, np.maximum(p, q), np.minimum(p, q))
    return Chains(
        np.broadcast_to(best.events, (m, j)),
        hold(log_ratio, limit, p >= q),
        _nested_cells(p),
        _nested_cells(q),
        np.ones(m),
    )


@dataclass(frozen=True)
class _Pooled:
    """Events with the shifts of the normal quantiles that they show together."""

    events: Counts
    centre: Array
    shift: Array
    pooled: float
    error: float

    @property
    def z(self) -> float:
        return abs(self.pooled) / self.error


def _pool(events: Events, mine: Counts) -> _Pooled | None:
    hits, scored = events.hits[:, mine], events.scored[:, mine]
    clear = ((hits >= _ENOUGH) & (scored - hits >= _ENOUGH)).all(axis=0)
    mine = mine[clear]
    if len(mine) < 2:
        return None
    level = (events.p[mine] + events.q[mine]) / 2
    nearest = np.abs(level[:, np.newaxis] - np.array(_LEVELS)).argmin(axis=0)
    mine = mine[np.unique(nearest)]
    p, q, scored = events.p[mine], events.q[mine], events.scored[:, mine[0]]
    up, low = ndtri(p), ndtri(q)
    covariance = _quantile_covariance(p, up, scored[0]) + _quantile_covariance(
        q, low, scored[1]
    )
    covariance[np.diag_indices_from(covariance)] *= 1 + 1e-9
    weights = np.linalg.solve(covariance, np.ones(len(mine)))
    shift = up - low
    pooled = weights @ shift / weights.sum()
    # DerSimonian and Laird: what the events disagree by beyond chance is real.
    variance = np.diag(covariance)
    misfit = (shift - pooled) @ np.linalg.solve(covariance, shift - pooled)
    degrees = max(len(mine) - 1, 1)
    between = max(0.0, misfit / degrees - 1) * variance.mean()
    own = between / (between + variance)
    return _Pooled(
        mine,
        (up + low) / 2,
        pooled + own * (shift - pooled),
        float(pooled),
        float(1 / np.sqrt(weights.sum())),
    )


def _quantile_covariance(p: Array, quantile: Array, n: int) -> Array:
    """Return the covariance of the normal quantiles of nested empirical shares."""
    density = np.exp(-(quantile**2) / 2) / np.sqrt(2 * np.pi)
    nested = np.minimum.outer(p, p) - np.multiply.outer(p, p)
    return nested / (n * np.multiply.outer(density, density))


def _nested_cells(p: Array) -> Array:
    """Return the shares of the cells between nested events of probability p."""
    rising = np.maximum.accumulate(p, axis=1)
    cells = np.maximum(np.diff(rising, axis=1, prepend=0.0, append=1.0), 1e-9)
    return cells / cells.sum(axis=1, keepdims=True)
