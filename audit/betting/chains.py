"""Chains: nested events, the half-planes they are held to, and estimates of both laws.

`forward_chains` chooses them from what the past shows: the event that violates a null
by most standard errors, then further events of the same attack (the other
tail, above all) as long as each adds evidence that is not already there. Nothing is
assumed of the releases.

`symmetric_chains` estimates both tails of a score together. Most mechanisms shift a
symmetric noise, and then the upper tail is to D what the lower one is to D': the events
{score >= t} and {score < t'} have probabilities (p, q) and (q, p). Where past counts of
two tails agree with that, they are pooled. Half as many numbers have to be learned and
neither tail is left out, which about halves the releases that a refutation needs. It is
a choice of alternative, made from the past, and valid however asymmetric the releases
are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.events import DOUBT, Events, Excess, coefficients, prior_hits
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces

__all__ = ["Chains", "forward_chains", "hold", "symmetric_chains"]

Counts = NDArray[np.intp]

_LONGEST = 4
_WORTH = 4.0  # squared standard errors that an event must add: Akaike, two numbers
_AGREE = 2.0  # standard errors by which mirrored counts may differ


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
    found = coefficients(log_ratio, limit, heavy[..., np.newaxis])
    on_p, on_q, limit = np.broadcast_arrays(*found)
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


@dataclass(frozen=True)
class _Tails:
    """Pairs of mirrored tails, one entry each.

    `upper` is the event {score >= t}, `lower` the complement of the lower tail; `p` is
    the pooled probability of a tail on its own side, `q` on the other; `heavy` says
    whether the upper tail's own side is D; `scored` is how many releases tell.
    """

    upper: Counts
    lower: Counts
    p: Array
    q: Array
    heavy: NDArray[np.bool_]
    scored: Counts


def symmetric_chains(
    family: NullFamily, nulls: Counts, events: Events, handicap: Array
) -> Chains | None:
    """Choose a pair of tails for each null; None where no two tails agree.

    Parameters
    ----------
    family : NullFamily
    nulls : ndarray of int, shape (M,)
    events : Events
    handicap : ndarray, shape (len(events),)
        What is taken off the squared standard errors of each, when a pair is chosen.
    """
    tails = _agreeing_tails(events)
    if not len(tails.p):
        return None
    log_ratio, limit = family.half_planes(nulls, tails.p, tails.q)
    excess, variance, _ = _excess(tails.p, tails.q, log_ratio, limit)
    z = np.max(excess / np.sqrt(variance), axis=2) * np.sqrt(tails.scored)
    best = np.argmax(z * np.abs(z) - handicap[tails.upper], axis=1)
    p, q, heavy = tails.p[best], tails.q[best], tails.heavy[best]
    p, q = _lift_both(family, nulls, p, q, tails.scored[best])
    # The upper tail and the complement of the lower one, as events.
    high, low = np.stack([p, 1 - q], axis=1), np.stack([q, 1 - p], axis=1)
    log_ratio, limit = family.half_planes(nulls, high, low)
    own = np.stack([p, 1 - p - q, q], axis=1)
    other = own[:, ::-1]
    side = heavy[:, np.newaxis]
    return Chains(
        np.stack([tails.upper[best], tails.lower[best]], axis=1),
        hold(log_ratio, limit, np.repeat(side, 2, axis=1)),
        np.where(side, own, other),
        np.where(side, other, own),
        np.full(len(nulls), 3.0),
    )


def _agreeing_tails(events: Events) -> _Tails:
    """Return for each event the tail that mirrors it best, if they agree."""
    found = []
    for attack in np.unique(events.attack):
        mine = np.flatnonzero(events.attack == attack)
        p, q = events.p[mine], events.q[mine]
        n_p, n_q = events.scored[:, mine[0]]
        heavy = bool(np.sum(p - q) >= 0)
        if not heavy:
            p, q, n_p, n_q = q, p, n_q, n_p
        # The lower tail whose probability on the other side is nearest to p.
        order = np.searchsorted(-(1 - q), -p)
        nearest = np.clip(np.stack([order - 1, order]), 0, len(mine) - 1)
        closer = np.abs(1 - q[nearest] - p).argmin(axis=0)
        mirror = nearest[closer, np.arange(len(mine))]
        pooled_p = (n_p * p + n_q * (1 - q[mirror])) / (n_p + n_q)
        pooled_q = (n_q * q + n_p * (1 - p[mirror])) / (n_p + n_q)
        error = np.sqrt(1 / n_p + 1 / n_q)
        agree = (
            (mirror > np.arange(len(mine)))
            & (pooled_p > pooled_q)
            & (pooled_p + pooled_q < 1)
            & (
                np.abs(p - (1 - q[mirror]))
                <= _AGREE * error * np.sqrt(pooled_p * (1 - pooled_p))
            )
            & (
                np.abs(q - (1 - p[mirror]))
                <= _AGREE * error * np.sqrt(pooled_q * (1 - pooled_q))
            )
        )
        kept = np.flatnonzero(agree)
        columns = mine, mine[mirror], pooled_p, pooled_q
        both = np.full(len(mine), heavy), np.full(len(mine), n_p + n_q)
        found.append([column[kept] for column in (*columns, *both)])
    return _Tails(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _excess(
    p: Array, q: Array, log_ratio: Array, limit: Array
) -> tuple[Array, Array, Array]:
    """Return by how much tails exceed half-planes, its variance, and the weight of q.

    All in units of the larger of the two weights, so that nothing overflows.
    """
    p, q = p[..., np.newaxis], q[..., np.newaxis]
    unit = np.exp(-np.maximum(log_ratio, 0.0))
    ratio = np.exp(np.minimum(log_ratio, 0.0))
    excess = unit * (p - limit) - ratio * q
    null_q = np.clip(unit * (p - limit) / ratio, q, 1.0)
    half_q = (q + null_q) / 2  # half way to the null, as a score test nearly is
    variance = (
        unit**2 * p * (1 - p)
        + ratio**2 * half_q * (1 - half_q)
        + 2 * unit * ratio * p * half_q
    )
    return excess, variance, ratio


def _lift_both(
    family: NullFamily, nulls: Counts, p: Array, q: Array, scored: Counts
) -> tuple[Array, Array]:
    """Move estimates that chance may have kept inside a null to just outside it."""
    log_ratio, limit = family.half_planes(nulls, p[:, np.newaxis], q[:, np.newaxis])
    excess, variance, ratio = _excess(
        p[:, np.newaxis], q[:, np.newaxis], log_ratio, limit
    )
    tight = np.argmax(excess / np.sqrt(variance), axis=2)[:, 0]
    every = np.arange(len(nulls))
    excess, variance, ratio = (x[every, 0, tight] for x in (excess, variance, ratio))
    unit = np.exp(-np.maximum(log_ratio[every, 0, tight], 0.0))
    error = np.sqrt(variance / scored)
    short = np.where(excess > -DOUBT * error, np.maximum(error - excess, 0.0), 0.0)
    up = p + short * unit * p * (1 - p) / variance
    down = np.maximum(q - short * ratio * q * (1 - q) / variance, q / 2)
    return np.minimum(up, (p + 1 - down) / 2), down
