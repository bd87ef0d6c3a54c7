"""What a run could have seen: the detectable violation, by replaying the run.

The answer to 'how bad would it have to be for us to notice?' is found by simulation of
the run itself at the level of counts: the same rounds, the same bets, on one event
whose probability on the likelier side is raised until nine runs in ten refute the
claim.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.evidence import HalfPlaneBet, growth, project
from dpaudit.audit.families import NullFamily

__all__ = ["detectable_epsilon", "refutation_power", "shown_epsilon"]

Array = NDArray[np.float64]

_RUNS = 200
_POWER = 0.9
_ALMOST_ONE = 1 - 1e-12


def refutation_power(
    null: NullFamily,
    p: float,
    q: float,
    sizes: Sequence[int],
    alpha: float,
    *,
    rng: np.random.Generator,
    runs: int = _RUNS,
) -> float:
    """Return the share of simulated runs that refute a null, given one event.

    Parameters
    ----------
    null : NullFamily
        Of length one.
    p, q : float
        The event's probabilities on the two sides.
    sizes : sequence of int
        Releases a side in each round; the first round only informs the bets.
    alpha : float
    rng : numpy.random.Generator
    runs : int
    """
    hits_p = rng.binomial(sizes[0], p, runs)
    hits_q = rng.binomial(sizes[0], q, runs)
    seen = sizes[0]
    log_wealth, refuted = np.zeros(runs), np.zeros(runs, dtype=bool)
    ratio, delta = np.exp(null.log_ratio[0]), null.delta[0]
    for size in sizes[1:]:
        p1, q1 = (hits_p + 0.5) / (seen + 1), (hits_q + 0.5) / (seen + 1)
        violated = p1[:, np.newaxis] - ratio * q1[:, np.newaxis] > delta
        run, side = np.nonzero(violated)
        speed = np.full(violated.shape, -np.inf)
        p0, q0 = project(
            p1[run], q1[run], ratio[side], delta[side], size, size, halvings=8
        )
        speed[run, side] = growth(p1[run], q1[run], p0, q0, size, size)
        playing, best = np.flatnonzero(violated.any(axis=1)), speed.argmax(axis=1)
        bet = HalfPlaneBet.place(
            p1[playing],
            q1[playing],
            ratio[best[playing]],
            delta[best[playing]],
            size,
            size,
        )
        new_p, new_q = rng.binomial(size, p, runs), rng.binomial(size, q, runs)
        log_wealth[playing] += bet.log_e(new_p[playing], new_q[playing], size, size)
        refuted |= log_wealth >= -math.log(alpha)
        hits_p, hits_q, seen = hits_p + new_p, hits_q + new_q, seen + size
    return float(refuted.mean())


def detectable_epsilon(
    null: NullFamily,
    q: Array,
    sizes: Sequence[int],
    alpha: float,
    delta: float,
    *,
    seed: int,
) -> float | None:
    """Return the smallest epsilon that nine runs in ten would have refuted.

    Parameters
    ----------
    null : NullFamily
        The claim, alone.
    q : ndarray, shape (T,)
        False-positive rates of the events that the run ended with.
    sizes : sequence of int
        Releases a side in each of its rounds.
    alpha : float
    delta : float
        Where epsilon is meant: an event of probabilities p and q shows
        log((p - delta)/q), or as much on its complement.
    seed : int

    Returns
    -------
    float or None
        None if no violation of these events is detectable in a run of this length.

    Notes
    -----
    The event is the one whose violation shows first by its information, and its p is
    then raised until 90 % of `refutation_power`'s runs refute. Every candidate is
    simulated from the same seed, which keeps the noise of the comparison small.
    """
    if not len(q):
        return None
    enough = _informative_probability(null, q, sum(sizes[1:]), -math.log(alpha))
    shown = [
        shown_epsilon(p, q_, delta) if p < _ALMOST_ONE else math.inf
        for p, q_ in zip(enough, q, strict=True)
    ]
    q_best = float(q[int(np.argmin(shown))])

    def seen(p: float) -> bool:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
        return refutation_power(null, p, q_best, sizes, alpha, rng=rng) >= _POWER

    low, high = q_best, 1.0
    if not seen(high):
        return None
    for _ in range(14):
        middle = _between(low, high)
        low, high = (low, middle) if seen(middle) else (middle, high)
    return shown_epsilon(high, q_best, delta)


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


def _informative_probability(
    null: NullFamily, q: Array, samples: int, information: float
) -> Array:
    """Return the p at which `samples` carry that much evidence against the null.

    `_ALMOST_ONE` where none does.
    """
    ratio, delta = np.exp(null.log_ratio[0]), null.delta[0]
    low, high = q.copy(), np.full_like(q, _ALMOST_ONE)
    for _ in range(30):
        p = _between(low, high)
        violated = p[:, np.newaxis] - ratio * q[:, np.newaxis] > delta
        event, side = np.nonzero(violated)
        p1, q1 = p[event], q[event]
        p0, q0 = project(p1, q1, ratio[side], delta[side], 1, 1, halvings=12)
        speed = np.zeros(violated.shape)
        speed[event, side] = growth(p1, q1, p0, q0, samples, samples)
        reached = speed.max(axis=1) >= information
        low, high = np.where(reached, low, p), np.where(reached, p, high)
    return high


def _between(low: Any, high: Any) -> Any:
    """Return the midpoint in log-odds, fine near 0 and near 1."""
    odds = np.sqrt(low / (1 - low + 1e-15) * (high / (1 - high + 1e-15)))
    return odds / (1 + odds)
