"""What to bet on and how much: fixed before each round, from the past alone.

Every null plays from two accounts, whose sum is its wealth (an average of
supermartingales is one). Both bet on the same cells with stakes of their own.

- *Growth*. The estimated alternative maximises the growth of wealth, but an event
  chosen because it looked best looks better than it is. With z^2 twice the evidence in
  the past itself, the distance from the null is multiplied by a James-Stein factor
  1 - c/z^2. This account refutes a gross violation soon.
- *Deadline*. The budget of releases is known. Against a null that will be hard to
  reject by the end, betting on the estimate is too timid late and far too bold early:
  what counts is the chance that the account reaches its goal before the releases run
  out. For small stakes its logarithm is nearly Brownian, and the best strategy is the
  hedge of a digital option: with u the account over its goal, the stake that gives the
  log wealth of the remaining releases the standard deviation phi(Phi^-1(u))/u. Kept
  exactly, such a test has the power of the best fixed-sample test at the deadline, and
  it may still stop at any moment.

Any stake is valid: the wealth is a supermartingale whatever the choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from dpaudit.audit.betting.chains import Chains, forward_chains
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.evidence import Bets
from dpaudit.audit.betting.families import GaussianNulls, NullFamily
from dpaudit.audit.betting.pooling import pooled_chains
from dpaudit.audit.betting.projection import project
from dpaudit.audit.betting.symmetry import symmetric_chains

__all__ = ["Plan", "best_share", "plan_bets", "stakes"]

Array = NDArray[np.float64]
Counts = NDArray[np.intp]

_ACCURACY = 1e-6
_LUCK = 0.4  # squared standard errors that chance adds, per e-fold of attacks
_BOLDEST = 0.9  # of the stake at which some cell returns nothing
_SHARES = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95])
_WORTHWHILE = 1.15


@dataclass(frozen=True)
class Plan:
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
    luck : float
        By how much the best of these events may look better than it is, in squared
        standard errors.
    """

    nulls: Counts
    events: Counts
    bets: Bets
    growth: Array
    scored: Counts
    luck: float

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
) -> Plan:
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
    return Plan(
        nulls,
        chosen,
        bets,
        projection.growth[rows],
        events.scored.sum(axis=0)[chosen[:, 0]],
        _LUCK * (1 + float(np.log(len(np.unique(events.attack))))),
    )


def _chains(
    family: NullFamily, nulls: Counts, anchor: int, events: Events, share: float
) -> Chains:
    """Return chains of every kind that applies, forward selection first."""
    ways = [
        forward_chains(family, nulls, anchor, events, share),
        symmetric_chains(family, nulls, events),
    ]
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
    plan: Plan, bet: Counts, log_progress: Array, remaining: int
) -> tuple[Array, Array]:
    """Return what each null stakes on its bet, from either account.

    Parameters
    ----------
    plan : Plan
    bet : ndarray of int, shape (G,)
        Which bet of the plan each null plays.
    log_progress : ndarray, shape (G,)
        Logarithm of the deadline account over its goal.
    remaining : int
        Releases on both sides that are still to come, this round's included.

    Returns
    -------
    growth, deadline : ndarray, shape (G,)
    """
    promised = plan.growth[bet]
    limit = _BOLDEST * plan.bets.largest_stake()[bet]
    log_u = np.minimum(log_progress, -1e-3)
    quantile = ndtri_exp(log_u)
    hedge = np.exp(-(quantile**2) / 2 - log_u) / np.sqrt(2 * np.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        patient = 1 - plan.luck / (2 * plan.scored[bet] * promised)
        bold = hedge / np.sqrt(2 * promised * remaining)
    nothing = promised <= 0
    return (
        np.where(nothing, 0.0, np.clip(patient, 0.0, limit)),
        np.where(nothing, 0.0, np.minimum(bold, limit)),
    )
