"""What to bet on and how much: fixed before each round, from the past alone.

Every null plays from three accounts, whose sum is its wealth (an average of
supermartingales is one). All bet on the same cells, with stakes of their own. Betting
on the estimates themselves maximises the growth of wealth if they are right; but events
that were chosen because they looked best look better than they are. The distance from
the null is therefore multiplied by a James-Stein factor 1 - c/z^2, with z^2 twice the
evidence in the past itself.

- *Eager*: c counts the choice among attacks and, once there are many, among
  thresholds. It refutes a gross violation soon, and loses much where a violation is
  slight or rare and takes long to learn; so after the first thousand releases, where
  chance findings have become small, it may be given most of the wealth again.
- *Careful*: c also charges the two squared standard errors by which Akaike's criterion
  expects every fitted number to flatter. It hardly bets before there is something to
  bet on, and has its capital still when there is.
- *Deadline*: the budget of releases is known. Against a null that will be hard to
  reject by the end, betting on the estimate is too timid late and far too bold early:
  what counts is the chance that the account reaches its goal before the releases run
  out. For small stakes its logarithm is nearly Brownian, and the best strategy is the
  hedge of a digital option: with u the account over its goal, the stake that gives the
  log wealth of the remaining releases the standard deviation phi(Phi^-1(u))/u. Kept
  exactly, such a test has the power of the best fixed-sample test at the deadline, and
  it may still stop at any moment.

Any stake is valid: the wealth is a supermartingale whatever the choice.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from dpaudit.arrays import Array
from dpaudit.audit.betting.chains import Chains, forward_chains
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.families import GaussianNulls, NullFamily
from dpaudit.audit.betting.pooling import pooled_chains
from dpaudit.audit.betting.projection import project
from dpaudit.audit.betting.symmetry import symmetric_chains

__all__ = ["PlannedBets", "best_share", "plan_bets", "stakes"]

Counts = NDArray[np.intp]

_ACCURACY = 1e-6
# Squared standard errors by which the best of many looks better than it is: per e-fold
# of attacks, per fitted number and threshold beyond a few, per fitted number at most.
_LUCK = 0.4
_EAGER_FLATTERY, _FEW = 1 / 45, 30
_CAREFUL_FLATTERY = 2.0
_ONE_EVENT = 3.0  # numbers that are fitted for a chain of one
_BOLDEST = 0.9  # of the stake at which some cell returns nothing
_SHARES = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95])
_WORTHWHILE = 1.15


@dataclass(frozen=True)
class PlannedBets:
    """Bets for M nulls.

    Parameters
    ----------
    nulls : ndarray of int, shape (M,)
        Increasing.
    events : ndarray of int, shape (M, J)
        The nested events that cut the outputs into J + 1 cells, rarest first.
    bets : Bets
    growth : ndarray, shape (M,)
        Expected log evidence per release under the estimates; 0 where nothing
        violates the null.
    scored : ndarray of int, shape (M,)
        From how many releases, of both sides, these were estimated.
    optimism : ndarray, shape (2, M)
        By how much the past may flatter these bets, in squared standard errors, as the
        eager and the careful account judge it.
    """

    nulls: Counts
    events: Counts
    bets: Bets
    growth: Array
    scored: Counts
    optimism: Array

    def cells(self, hits: Counts, n: int) -> Counts:
        """Return the counts in the cells, shape (M, J + 1), from hits (T,) of n."""
        return np.diff(hits[self.events], axis=1, prepend=0, append=n)


def plan_bets(
    family: NullFamily,
    nulls: Counts,
    events: Events,
    n_p: int,
    n_q: int,
    anchor: int,
) -> PlannedBets:
    """PlannedBets the bets of one round of n_p and n_q releases against some nulls."""
    share = n_p / (n_p + n_q)
    chains = _chains(family, nulls, anchor, events, share)
    projection = project(
        chains.p1, chains.q1, chains.half_spaces, share, tolerance=_ACCURACY
    )
    # Of several chains for a null, the one that promises most by Akaike's criterion:
    # every fitted number makes the past look better than the future will be.
    fitted = chains.freedom / events.scored.sum(axis=0)[chains.events[:, 0]]
    promise = (projection.growth - fitted).reshape(-1, len(nulls))
    rows = promise.argmax(axis=0) * len(nulls) + np.arange(len(nulls))
    bets = Bets.place(
        chains.half_spaces, projection, chains.p1.shape[1], n_p, n_q
    ).take(rows)
    chosen = chains.events[rows]
    return PlannedBets(
        nulls,
        chosen,
        bets,
        projection.growth[rows],
        events.scored.sum(axis=0)[chosen[:, 0]],
        _optimism(events, chosen[:, 0], chains.freedom[rows]),
    )


def _optimism(events: Events, main: Counts, freedom: Array) -> Array:
    """Return the optimism of bets with these main events and fitted numbers."""
    attacks = np.count_nonzero(np.bincount(events.attack))
    luck = _LUCK * (1 + np.log(attacks))
    eager = _EAGER_FLATTERY * _choice(events)[main]
    return luck + freedom * np.stack([eager, np.full(len(main), _CAREFUL_FLATTERY)])


def _choice(events: Events) -> Counts:
    """Return among how many thresholds, beyond a few, each event is one."""
    thresholds = np.bincount(events.attack)
    return np.maximum(thresholds[events.attack] - _FEW, 0)


def _chains(
    family: NullFamily, nulls: Counts, anchor: int, events: Events, share: float
) -> Chains:
    """Return chains of every kind that applies, forward selection first.

    Near the truth the event that seems to violate a null by most is one that chance
    favoured, so events are chosen at the anchor, where they stand out, and are kept for
    the nulls above it. But what breaks the claim may be another thing, and rarer, than
    what comes near to it: so of the exclusive events one is chosen at the claim itself.
    """
    luck = np.asarray(_EAGER_FLATTERY * _choice(events), dtype=np.float64)
    handicap = 2 * _ONE_EVENT * luck
    ways = [
        forward_chains(family, nulls, np.minimum(nulls, anchor), events, share),
        symmetric_chains(family, nulls, events, handicap),
    ]
    rare = np.flatnonzero(events.exclusive)
    if len(rare) and family.claimed is not None and anchor < family.claimed:
        judges = np.full_like(nulls, family.claimed)
        way = forward_chains(
            family, nulls, judges, events.take(rare), share, handicap[rare]
        )
        chosen = rare[way.events]
        freedom = way.freedom * (1 + luck[chosen[:, 0]])
        ways.append(replace(way, events=chosen, freedom=freedom))
    if isinstance(family, GaussianNulls):
        ways.append(pooled_chains(family, nulls, events))
    return Chains.stack([way for way in ways if way is not None])


def best_share(family: NullFamily, null: int, events: Events) -> float:
    """Return the share of the releases to draw on D against one null.

    Where one side hardly ever hits the event, it needs nearly all of them. An even
    split is kept unless another promises clearly more.
    """
    chains = _chains(family, np.array([null]), null, events, 0.5)
    ways = len(chains.events)
    rows = np.tile(np.arange(ways), len(_SHARES))
    projection = project(
        chains.p1[rows],
        chains.q1[rows],
        chains.half_spaces.take(rows),
        np.repeat(_SHARES, ways),
        tolerance=_ACCURACY,
    )
    growth = projection.growth.reshape(len(_SHARES), ways).max(axis=1)
    best = int(np.argmax(growth))
    even = growth[np.flatnonzero(_SHARES == 0.5)[0]]
    return float(_SHARES[best]) if growth[best] > _WORTHWHILE * even else 0.5


def stakes(
    plan: PlannedBets, bet: Counts, log_progress: Array, remaining: int
) -> Array:
    """Return what each null stakes on its bet, from each account.

    Parameters
    ----------
    plan : PlannedBets
    bet : ndarray of int, shape (G,)
        Which bet of the plan each null plays.
    log_progress : ndarray, shape (G,)
        Logarithm of the deadline account over its goal.
    remaining : int
        Releases on both sides that are still to come, this round's included.

    Returns
    -------
    ndarray, shape (3, G)
        Eager, careful, deadline.
    """
    promised = plan.growth[bet]
    limit = _BOLDEST * plan.bets.largest_stake()[bet]
    log_u = np.minimum(log_progress, -1e-3)
    quantile = ndtri_exp(log_u)
    hedge = np.exp(-(quantile**2) / 2 - log_u) / np.sqrt(2 * np.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = 1 - plan.optimism[:, bet] / (2 * plan.scored[bet] * promised)
        bold = hedge / np.sqrt(2 * promised * remaining)
    nothing = promised <= 0
    wanted = np.clip(np.vstack([growth, bold]), 0.0, limit)
    return np.where(nothing, 0.0, wanted)
