"""Symmetry: both tails of a score, estimated together.

Most mechanisms shift a symmetric noise, and then the upper tail is to D what the lower
one is to D': the events {score >= t} and {score < t'} have probabilities (p, q) and
(q, p). Where past counts of two tails agree with that, they are pooled. Half as many
numbers have to be learned and neither tail is left out, which about halves the releases
that a refutation needs. It is a choice of alternative, made from the past, and valid
however asymmetric the releases are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.chains import Chains, hold
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.excess import DOUBT
from dpaudit.audit.betting.families import NullFamily

__all__ = ["symmetric_chains"]

Counts = NDArray[np.intp]

_AGREE = 2.0  # standard errors by which mirrored counts may differ


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
    p, q = _lift(family, nulls, p, q, tails.scored[best])
    # The upper tail and the complement of the lower one, as events.
    high, low = np.stack([p, 1 - q], axis=1), np.stack([q, 1 - p], axis=1)
    log_ratio, limit = family.half_planes(nulls, high, low)
    own = np.stack([p, 1 - p - q, q], axis=1)
    other = own[:, ::-1]
    side = heavy[:, np.newaxis]
    return Chains(
        np.stack([tails.upper[best], tails.lower[best]], axis=1),
        hold(
            log_ratio,
            limit,
            np.repeat(side, 2, axis=1),
            np.ones((len(nulls), 2), dtype=bool),
        ),
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
        found.append(
            (
                mine[kept],
                mine[mirror[kept]],
                pooled_p[kept],
                pooled_q[kept],
                np.full(len(kept), heavy),
                np.full(len(kept), n_p + n_q),
            )
        )
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


def _lift(
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
