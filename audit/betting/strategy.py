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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from dpaudit.arrays import Array
from dpaudit.audit.betting.chains import Chains, forward_chains, symmetric_chains
from dpaudit.audit.betting.events import Events, find_anchor, violation
from dpaudit.audit.betting.evidence import Bets, PlacedBets, SequentialTest
from dpaudit.audit.betting.families import GaussianNulls, NullFamily, Polygons
from dpaudit.audit.betting.pooled import pooled_chains
from dpaudit.audit.betting.projection import project

__all__ = ["best_share", "place_bets", "plan_bets"]

Counts = NDArray[np.intp]

_ACCURACY = 1e-4
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

    def take(self, rows: slice) -> "PlannedBets":
        """Return the bets for some of the nulls."""
        return PlannedBets(
            self.events[rows],
            self.bets.take(rows),
            self.growth[rows],
            self.scored[rows],
            self.optimism[:, rows],
        )

    def _expected(self, at: int) -> float:
        """Return the growth per release of a bet, less what the past may flatter it."""
        return float(self.growth[at] - self.optimism[0, at] / (2 * self.scored[at]))

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
        # Neighbours mostly have the same bet and progress: that is computed once.
        new = np.ones(len(bet), dtype=bool)
        new[1:] = (bet[1:] != bet[:-1]) | (log_progress[1:] != log_progress[:-1])
        alike = np.cumsum(new) - 1
        bet, log_progress = bet[new], log_progress[new]
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
        return np.where(nothing, 0.0, wanted)[:, alike]


def place_bets(
    tests: Sequence[SequentialTest],
    events: Events,
    n_p: int,
    n_q: int,
    remaining: int,
) -> list[Counts]:
    """Choose a bet for every open null of some tests, for one round.

    Those of all families that hold events to the same kind of half-planes are planned
    at once.

    Parameters
    ----------
    tests : sequence of SequentialTest
    events : Events
        Candidates, estimated from earlier rounds only.
    n_p, n_q : int
        How many releases the round will draw on D and on D'.
    remaining : int
        Releases on both sides still to come before the audit ends, this round's
        included.

    Returns
    -------
    list of ndarray of int
        The events whose counts will be needed, by each test.
    """
    needed = [np.empty(0, dtype=np.intp) for _ in tests]
    apart: dict[int, list[int]] = {}
    for place, test in enumerate(tests):
        test.place(None)
        test.promised = 0.0
        if len(events) and not test.rejected.all():
            alike = isinstance(test.family, Polygons)
            apart.setdefault(-1 if alike else place, []).append(place)
    for places in apart.values():
        several = [tests[place] for place in places]
        planned = _planned_together(several, events, n_p, n_q)
        for place, test, (nulls, plan) in zip(places, several, planned, strict=True):
            open_ = np.flatnonzero(~test.rejected[: nulls[-1] + 1])
            bet = np.searchsorted(nulls, open_)
            staked = plan.stakes(bet, test.log_progress[open_], remaining)
            played = (staked > 0).any(axis=0)
            playing, staked, sizes = open_[played], staked[:, played], (n_p, n_q)
            placed = PlacedBets(plan.bets, nulls, plan.events, sizes, playing, staked)
            test.place(placed)
            claimed = test.family.claimed
            if claimed is not None and claimed <= nulls[-1]:
                at = int(np.searchsorted(nulls, claimed))
                test.promised = plan._expected(at)
            needed[place] = np.unique(plan.events[np.unique(placed.bet)])
    return needed


def _planned_together(
    tests: Sequence[SequentialTest], events: Events, n_p: int, n_q: int
) -> Iterator[tuple[Counts, PlannedBets]]:
    """Yield, for each of some tests, the nulls that are worth a bet, and the bets."""
    nulls, own, judges, claims, start = [], [], [], [], 0
    for test in tests:
        anchor, top = find_anchor(test.family, events, test.anchor)
        test.anchor = anchor
        own.append(_worth_planning(test, top, events))
        nulls.append(start + own[-1])
        judges.append(start + np.minimum(own[-1], anchor))
        claim = _claims(test.family, anchor, len(own[-1]))
        claims.append(np.where(claim < 0, claim, start + claim))
        start += len(test.family)
    family = tests[0].family
    if len(tests) > 1:
        families = [test.family for test in tests]
        family = Polygons.side_by_side(*cast(list[Polygons], families))
    plan = _plan(
        family,
        np.concatenate(nulls),
        np.concatenate(judges),
        np.concatenate(claims),
        events,
        n_p,
        n_q,
    )
    last = 0
    for places in own:
        first, last = last, last + len(places)
        yield places, plan.take(slice(first, last))


def _worth_planning(test: SequentialTest, top: int, events: Events) -> Counts:
    """Return nulls from the frontier to the last in doubt, the claim included.

    The claim may be in doubt though what the anchor shows is not: by a rare exclusive
    event (`_chains`).
    """
    last, claimed = max(top, test.frontier), test.family.claimed
    if claimed is not None and last < claimed and events.exclusive.any():
        rare = events.take(np.flatnonzero(events.exclusive))
        if violation(test.family, claimed, rare) > 0:
            last = claimed
    nulls = np.linspace(test.frontier, last, test.planned).astype(np.intp)
    if claimed is not None and test.frontier < claimed < last:
        nulls = np.append(nulls, claimed)
    return np.unique(nulls)


def plan_bets(
    family: NullFamily, nulls: Counts, events: Events, n_p: int, n_q: int, anchor: int
) -> PlannedBets:
    """Plan the bets of one round of n_p and n_q releases against some nulls."""
    judges, claims = np.minimum(nulls, anchor), _claims(family, anchor, len(nulls))
    return _plan(family, nulls, judges, claims, events, n_p, n_q)


def _claims(family: NullFamily, anchor: int, size: int) -> Counts:
    """Return the claim of a family for each null, -1 where it is violated clearly."""
    claimed = family.claimed
    return np.full(size, -1 if claimed is None or anchor >= claimed else claimed)


def _plan(
    family: NullFamily,
    nulls: Counts,
    judges: Counts,
    claims: Counts,
    events: Events,
    n_p: int,
    n_q: int,
) -> PlannedBets:
    """Plan bets against nulls whose events are chosen at others; see `_chains`."""
    share = n_p / (n_p + n_q)
    chains = _chains(family, nulls, judges, claims, events, share)
    projection = project(
        chains.p1, chains.q1, chains.half_spaces, share, tolerance=_ACCURACY
    )
    # Of several chains for a null, the one that promises most by Akaike's criterion:
    # every fitted number makes the past look better than the future will be.
    scored = events.scored.sum(axis=0)[chains.events[:, 0]]
    promise = (projection.growth - chains.freedom / scored).reshape(-1, len(nulls))
    rows = promise.argmax(axis=0) * len(nulls) + np.arange(len(nulls))
    bets = Bets.place(
        chains.half_spaces.take(rows),
        projection.take(rows),
        chains.p1.shape[1],
        n_p,
        n_q,
    )
    chosen = chains.events[rows]
    return PlannedBets(
        chosen,
        bets,
        projection.growth[rows],
        scored[rows],
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
    family: NullFamily,
    nulls: Counts,
    judges: Counts,
    claims: Counts,
    events: Events,
    share: float,
) -> Chains:
    """Return chains of every kind that applies, forward selection first.

    Near the truth the event that seems to violate a null by most is one that chance
    favoured, so events are chosen at the anchor, where they stand out, and are kept for
    the nulls above it: at the `judges`. But what breaks the claim may be another thing,
    and rarer, than what comes near to it: so of the exclusive events one is chosen at
    the claim itself, unless that is -1.
    """
    luck = np.asarray(_EAGER_FLATTERY * _choice(events), dtype=np.float64)
    handicap = 2 * _ONE_EVENT * luck
    ways = [
        forward_chains(family, nulls, judges, events, share),
        symmetric_chains(family, nulls, events, handicap),
    ]
    rare, doubted = np.flatnonzero(events.exclusive), claims >= 0
    if len(rare) and doubted.any():
        at, rarest = np.maximum(claims, 0), events.take(rare)
        way = forward_chains(family, nulls, at, rarest, share, handicap[rare])
        chosen = rare[way.events]
        freedom = way.freedom * (1 + luck[chosen[:, 0]])
        freedom = np.where(doubted, freedom, np.inf)  # promises nothing
        ways.append(replace(way, events=chosen, freedom=freedom))
    if isinstance(family, GaussianNulls):
        ways.append(pooled_chains(family, nulls, events))
    return Chains.stack([way for way in ways if way is not None])


def best_share(family: NullFamily, null: int, events: Events) -> float:
    """Return the share of the releases to draw on D against one null.

    Where one side hardly ever hits the event, it needs nearly all of them. An even
    split is kept unless another promises clearly more.
    """
    nulls = np.array([null])
    chains = _chains(family, nulls, nulls, _claims(family, null, 1), events, 0.5)
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
