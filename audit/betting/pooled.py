"""Chains for Gaussian nulls: one for all of them, estimated together.

Events spread over the range of the score each show a shift Phi^-1(p) - Phi^-1(q). If
the releases look like a Gaussian pair the shifts agree, and their pooled estimate uses
nearly all the information there is; so far as they disagree by more than chance, each
keeps its own (random effects). It is a choice of alternative, made from the past, and
valid whatever the releases are like.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.betting.chains import Chains, hold
from dpaudit.audit.betting.events import DOUBT, Events
from dpaudit.audit.betting.families import NullFamily

__all__ = ["pooled_chains"]

Counts = NDArray[np.intp]

_LEVELS = (0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 0.94, 0.98)
_ENOUGH = 5  # hits and misses, on either side, for a normal approximation


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
    # Nulls that chance may have hidden are given an alternative as well.
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
