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

Both tails of a score are estimated together. Most mechanisms shift a symmetric noise,
and then the upper tail is to D what the lower one is to D': the events {score >= t} and
{score < t'} have probabilities (p, q) and (q, p). Where past counts of two tails agree
with that, they are pooled. Half as many numbers have to be learned and neither tail is
left out, which about halves the releases that a refutation needs. It is a choice of
alternative, made from the past, and valid however asymmetric the releases are.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from dpaudit.arrays import Array
from dpaudit.audit.betting.chains import Chains, forward_chains, hold, pooled_chains
from dpaudit.audit.betting.events import DOUBT, Events, find_anchor
from dpaudit.audit.betting.evidence import Bets, PlacedBets, SequentialTest
from dpaudit.audit.betting.families import GaussianNulls, NullFamily
from dpaudit.audit.betting.projection import project

__all__ = ["best_share", "place_bets", "plan_bets"]

Counts = NDArray[np.intp]

_AGREE = 2.0  # standard errors by which mirrored counts may differ
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

    events: Counts
    bets: Bets
    growth: Array
    scored: Counts
    optimism: Array

    def stakes(self, bet: Counts, log_progress: Array, remaining: int) -> Array:
        """Return what each null stakes on its bet, from each account.

        Parameters
        ----------
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
        promised = self.growth[bet]
        limit = _BOLDEST * self.bets.largest_stake()[bet]
        log_u = np.minimum(log_progress, -1e-3)
        quantile = ndtri_exp(log_u)
        hedge = np.exp(-(quantile**2) / 2 - log_u) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = 1 - self.optimism[:, bet] / (2 * self.scored[bet] * promised)
            bold = hedge / np.sqrt(2 * promised * remaining)
        nothing = promised <= 0
        wanted = np.clip(np.vstack([growth, bold]), 0.0, limit)
        return np.where(nothing, 0.0, wanted)


def place_bets(
    test: SequentialTest, events: Events, n_p: int, n_q: int, remaining: int
) -> Counts:
    """Choose a bet for every open null of a test, for one round.

    Parameters
    ----------
    test : SequentialTest
    events : Events
        Candidates, estimated from earlier rounds only.
    n_p, n_q : int
        How many releases the round will draw on D and on D'.
    remaining : int
        Releases on both sides still to come before the audit ends, this round's
        included.

    Returns
    -------
    ndarray of int
        The events whose counts will be needed.
    """
    test.place(None)
    if not len(events) or test.rejected.all():
        return np.empty(0, dtype=np.intp)
    anchor, top = find_anchor(test.family, events, test.anchor)
    test.anchor = anchor
    nulls = _worth_planning(test, top)
    plan = plan_bets(test.family, nulls, events, n_p, n_q, anchor)
    open_ = np.flatnonzero(~test.rejected[: nulls[-1] + 1])
    bet = np.searchsorted(nulls, open_)
    staked = plan.stakes(bet, test.log_progress[open_], remaining)
    played = (staked > 0).any(axis=0)
    playing, staked, sizes = open_[played], staked[:, played], (n_p, n_q)
    placed = PlacedBets(plan.bets, nulls, plan.events, sizes, playing, staked)
    test.place(placed)
    return np.unique(plan.events[np.unique(placed.bet)])


def _worth_planning(test: SequentialTest, top: int) -> Counts:
    """Return nulls from the frontier to the last in doubt, the claim included."""
    last = max(top, test.frontier)
    nulls = np.linspace(test.frontier, last, test.planned).astype(np.intp)
    claimed = test.family.claimed
    if claimed is not None and test.frontier < claimed < last:
        nulls = np.append(nulls, claimed)
    return np.unique(nulls)


def plan_bets(
    family: NullFamily, nulls: Counts, events: Events, n_p: int, n_q: int, anchor: int
) -> PlannedBets:
    """Plan the bets of one round of n_p and n_q releases against some nulls."""
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
