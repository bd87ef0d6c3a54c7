"""What a run could have seen: the detectable violation.

How bad would it have to be for a run of this length to notice nine times in ten?
Against a fixed event the log evidence of n releases is nearly normal with mean n g and
variance 2 n g, where g is its growth per release under the truth
(`dpaudit.audit.betting.projection`). It passes log(1/alpha) with probability 0.9 where

    n g - z sqrt(2 n g) >= log(1/alpha),   z = Phi^-1(0.9).

Learning the event costs releases too; `_LEARNING` allows for them. The tests compare
the result with audits of mechanisms that leak just so much.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces, project

__all__ = ["detectable_epsilon", "shown_epsilon"]

Array = NDArray[np.float64]

_POWER = 0.9
_LEARNING = 1.25
_EVENTS = 24
_ALMOST_ONE = 1 - 1e-12


def detectable_epsilon(
    null: NullFamily, q: Array, samples: int, alpha: float, delta: float
) -> float | None:
    """Return the smallest epsilon that nine runs in ten would have refuted.

    Parameters
    ----------
    null : NullFamily
        The claim, alone.
    q : ndarray, shape (T,)
        Probabilities on the less likely side of the events that the run ended with.
    samples : int
        Releases on either side.
    alpha : float
    delta : float
        Where epsilon is meant: an event of probabilities p and q shows
        log((p - delta)/q), or as much on its complement.

    Returns
    -------
    float or None
        None if no violation of these events is detectable in a run of this length.
    """
    if not len(q):
        return None
    q = np.unique(np.quantile(q, np.linspace(0, 1, _EVENTS), method="nearest"))
    z = float(ndtri(_POWER))
    root = (z * math.sqrt(2) + math.sqrt(2 * z**2 - 4 * math.log(alpha))) / 2
    needed = _LEARNING * root**2 / (2 * samples)
    low, high = q.copy(), np.full_like(q, _ALMOST_ONE)
    if not np.any(_growth(null, high, q) >= needed):
        return None
    for _ in range(24):
        p = _between(low, high)
        seen = _growth(null, p, q) >= needed
        low, high = np.where(seen, low, p), np.where(seen, p, high)
    shown = [
        shown_epsilon(p, q_, delta)
        for p, q_ in zip(high, q, strict=True)
        if p < _ALMOST_ONE
    ]
    finite = [epsilon for epsilon in shown if math.isfinite(epsilon)]
    return min(finite, default=None)


def _growth(null: NullFamily, p: Array, q: Array) -> Array:
    """Return the growth per release of evidence from events of probabilities p, q."""
    log_ratio, limit = (
        x[0] for x in null.half_planes(np.zeros(1, dtype=np.intp), p, q)
    )
    spaces = HalfSpaces(
        np.ones(log_ratio.shape, dtype=np.intp),
        np.ones_like(limit),
        -np.exp(log_ratio),
        limit,
    )
    cells_p, cells_q = (np.stack([x, 1 - x], axis=1) for x in (p, q))
    return project(cells_p, cells_q, spaces, 0.5, tolerance=1e-3).growth


def shown_epsilon(p: float, q: float, delta: float) -> float:
    """Return the epsilon at `delta` that an event or its complement shows; p >= q.

    Examples
    --------
    >>> round(shown_epsilon(0.5, 0.1, 0.0), 4)
    1.6094
    """
    event = (p - delta) / q
    complement = math.inf if p >= 1 else (1 - q - delta) / (1 - p)
    return math.log(max(event, complement, 1.0))


def _between(low: Array, high: Array) -> Array:
    """Return the midpoint in log-odds, fine near 0 and near 1."""
    odds = np.sqrt(low / (1 - low + 1e-15) * (high / (1 - high + 1e-15)))
    return odds / (1 + odds)
