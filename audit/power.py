"""What a run could have seen: the detectable violation, by replaying the run.

The answer to 'how bad would it have to be for us to notice?' is found by simulation of
the run itself at the level of counts: the same rounds, the same bets, on one event
whose probability on the likelier side is raised until nine runs in ten refute the
claim.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.evidence import HalfPlaneBet, growth, project
from dpaudit.audit.families import NullFamily

__all__ = ["detectable_probability", "refutation_power"]

Array = NDArray[np.float64]

_RUNS = 200
_POWER = 0.9


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


def detectable_probability(
    null: NullFamily, q: float, sizes: Sequence[int], alpha: float, *, seed: int
) -> float | None:
    """Return the smallest p at which 90 % of runs refute the null, None if none.

    Every candidate is simulated from the same seed, which keeps the noise of the
    comparison small.
    """

    def seen(p: float) -> bool:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
        return refutation_power(null, p, q, sizes, alpha, rng=rng) >= _POWER

    low, high = q, 1.0
    if not seen(high):
        return None
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high
