"""What a run could have seen: the detectable violation, and the rarest event.

How bad would it have to be for a run of this length to notice nine times in ten?
Against a fixed event the log evidence of n releases is nearly normal with mean n g and
variance 2 n g, where g is its growth per release under the truth
(`dpaudit.audit.betting.projection`). It passes log(1/alpha) with probability 0.9 where

    n g - z sqrt(2 n g) >= log(1/alpha),   z = Phi^-1(0.9).

Learning the event costs releases too; `_LEARNING` allows for them. The tests compare
the result with audits of mechanisms that leak just so much.

A rare event that betrays one dataset (a raw value in place of a noisy one, an
exception) must first be noticed, and its probability on the other dataset bounded,
though it never occurs there. `_NOTICING` allows for both; it was measured with atoms of
probability 0.003 in Laplace noise: of 12 audits each against (1, 1e-5), epsilon 0.1 and
epsilon 3, within twice the releases that the formula gives for a known event 12, 10 and
11 refuted.
"""

import math

import numpy as np
from scipy.special import expit, ndtri

from dpaudit.arrays import Array
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces, project

__all__ = ["detectable_epsilon", "rarest_event"]


_POWER = 0.9
_LEARNING, _NOTICING = 1.25, 2.0
_NEVER = 1e-9  # times as likely as on the other dataset
_EVENTS = 24
_PLACES, _HALVINGS, _SECTIONS = 48, 20, 4


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
        Where epsilon is meant.

    Returns
    -------
    float or None
        As `NullFamily.shown_epsilon` measures it: larger than what the claim allows at
        `delta`, or as large where the claim is a curve other than a Gaussian one.
        None if no violation of these events is detectable in a run of this length.
    """
    if not len(q):
        return None
    q = np.unique(np.quantile(q, np.linspace(0, 1, _EVENTS), method="nearest"))
    needed = _LEARNING * _growth_needed(samples, alpha)
    # The largest p that a run of this length can estimate, one hit in two being added.
    most = 1 - 0.5 / (samples + 1)
    q = q[q < most]
    p = _from_to(q, most)
    seen = np.reshape(
        _growth(null, p.ravel(), np.repeat(q, _PLACES)) >= needed, p.shape
    )
    # From there on, all that is further outside the null is seen as well.
    last_unseen = _PLACES - 1 - np.argmin(seen[:, ::-1], axis=1)
    last_unseen[seen.all(axis=1)] = 0
    found = np.flatnonzero(seen[:, -1])
    if not len(found):
        return None
    q, last_unseen = q[found], last_unseen[found]
    low, high = p[found, last_unseen], p[found, last_unseen + 1]
    for _ in range(_HALVINGS):
        middle = _between(low, high)
        reached = _growth(null, middle, q) >= needed
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    shown = [
        null.shown_epsilon(float(p), float(q), delta)
        for p, q in zip(high, q, strict=True)
    ]
    return min((e for e in shown if math.isfinite(e)), default=None)


def rarest_event(null: NullFamily, samples: int, alpha: float) -> float:
    """Return how likely an event must be that only one dataset gives, to be found.

    Parameters
    ----------
    null : NullFamily
        The claim, alone.
    samples : int
        Releases on either side.
    alpha : float

    Returns
    -------
    float
        The least probability at which nine runs in ten would have refuted the claim by
        the event; 1 if there is none below.
    """
    needed = _NOTICING * _growth_needed(samples, alpha)
    low, high = math.log(1e-15), math.log1p(-1e-12)
    for _ in range(_SECTIONS):
        # Of so many probabilities at once, the first that is noticed.
        log_p = np.linspace(low, high, _PLACES)
        p = np.exp(log_p)
        noticed = _growth(null, p, _NEVER * p) >= needed
        if not noticed[-1]:
            return 1.0
        place = int(np.argmax(noticed))
        low, high = log_p[max(place - 1, 0)], log_p[place]
    return math.exp(high)


def _growth_needed(samples: int, alpha: float) -> float:
    """Return the growth per release with which a known event refutes in time."""
    z = float(ndtri(_POWER))
    root = (z * math.sqrt(2) + math.sqrt(2 * z**2 - 4 * math.log(alpha))) / 2
    return root**2 / (2 * samples)


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


def _from_to(low: Array, high: float) -> Array:
    """Return probabilities between each low one and the high one, (T, _PLACES)."""
    ends = np.log(low / (1 - low)), math.log(high / (1 - high))
    return np.asarray(expit(np.linspace(*ends, _PLACES, axis=1)))


def _between(low: Array, high: Array) -> Array:
    """Return the midpoint in log-odds, fine near 0 and near 1."""
    odds = np.sqrt(low / (1 - low + 1e-15) * (high / (1 - high + 1e-15)))
    return odds / (1 + odds)
