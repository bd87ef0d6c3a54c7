"""The anytime-valid test: one betting game per null, played in rounds.

Before a round each null picks, from the past alone, the events, the half-planes and the
stake (`dpaudit.audit.betting.strategy`). After the round its wealth is multiplied by
the e-value of that bet. Given the past each e-value has mean at most 1 under the null,
so the wealth is a non-negative supermartingale, and by Ville's inequality it ever
reaches 1/alpha with probability at most alpha: whatever was tried, however often one
looked, whenever one stopped.

A grid has thousands of nulls, which differ little from one to the next. Bets are
planned for a few dozen of them; any other null plays the bet of the next larger planned
one. That is fair, because nulls are nested: an e-value against the larger null is one
against the smaller.
"""

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.excess import find_anchor
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.strategy import PlannedBets, plan_bets

__all__ = ["SequentialTest"]

Counts = NDArray[np.intp]

_RENEWALS = (2000, 8000)  # releases, of both sides, after which wealth is moved


class SequentialTest:
    """Wealth against every null of a family.

    Parameters
    ----------
    family : NullFamily
    alpha : float
        Error probability, of each lower bound and of the verdict.
    shares : tuple of float
        How the initial wealth of 1 is divided among the accounts: eager, careful,
        deadline.
    planned : int
        For how many nulls bets are planned in every round.
    renewed : float
        In [0, 1): the share of the wealth that the eager account has again, if it has
        less, once there is nothing gross left to be found soon. The wealth itself stays
        as it is, and so does what it proves.
    shared : float
        In [0, 1): the share of the wealth of every null below the claim that plays the
        claim's own bets. Each of them has to fall for a verdict; with such a share it
        falls at the latest when the evidence against the claim is 1/shared times what
        is needed, though its own bets were on something else.
    """

    def __init__(
        self,
        family: NullFamily,
        alpha: float,
        *,
        shares: tuple[float, float, float] = (0.4, 0.15, 0.45),
        planned: int = 40,
        renewed: float = 0.0,
        shared: float = 0.0,
    ) -> None:
        if min(shares) < 0 or sum(shares) > 1 + 1e-12:
            raise ValueError(f"shares must be >= 0 and add up to 1, not {shares}")
        self.family = family
        self.rejected = np.zeros(len(family), dtype=bool)
        self._log_goal = -np.log(alpha)
        self._planned, self._renewed, self._shared = planned, renewed, shared
        self._renewals, self._settled = list(_RENEWALS), 0
        # Logarithms of the accounts of every null; the last plays for the deadline.
        start = np.log(shares)
        self._accounts = np.repeat(start[:, np.newaxis], len(family), axis=1)
        self._plan: PlannedBets | None = None
        self._anchor: int | None = None
        self._sizes = (0, 0)
        self._playing = np.empty(0, dtype=np.intp)
        self._bet = np.empty(0, dtype=np.intp)
        self._stakes: Array = np.empty((len(shares), 0))

    @property
    def log_wealth(self) -> Array:
        """The logarithm of the wealth against each null, shape (G,)."""
        wealth = np.asarray(np.logaddexp.reduce(self._accounts, axis=0))
        if self._shared and self.family.claimed is not None:
            below = wealth[: self.family.claimed]
            claim = wealth[self.family.claimed] + np.log(self._shared)
            below[:] = np.logaddexp(below + np.log1p(-self._shared), claim)
        return wealth

    @property
    def lower_bound(self) -> float:
        """The largest parameter up to which every null is rejected, or 0.

        It exceeds the truth with probability at most alpha, at all times at once: the
        first null at or above the truth would have to be rejected.
        """
        count = self._leading
        return float(self.family.parameter[count - 1]) if count else 0.0

    @property
    def refutes_claim(self) -> bool:
        """Whether the bound has reached the claim: one statement, with one error."""
        claimed = self.family.claimed
        return claimed is not None and self._leading > claimed

    @property
    def _leading(self) -> int:
        return (
            len(self.rejected) if self.rejected.all() else int(self.rejected.argmin())
        )

    @property
    def frontier(self) -> int:
        """The smallest null that is not rejected, at most the last."""
        return min(self._leading, len(self.family) - 1)

    def place_bets(self, events: Events, n_p: int, n_q: int, remaining: int) -> Counts:
        """Choose a bet for every open null, for one round.

        Parameters
        ----------
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
        self._plan = None
        if not len(events) or self.rejected.all():
            return np.empty(0, dtype=np.intp)
        anchor, top = find_anchor(self.family, events, self._anchor)
        self._anchor = anchor
        nulls = self._worth_planning(top)
        plan = plan_bets(self.family, nulls, events, n_p, n_q, anchor)
        open_ = np.flatnonzero(~self.rejected[: nulls[-1] + 1])
        bet = np.searchsorted(nulls, open_)
        progress = self._accounts[-1, open_] - self._log_goal
        staked = plan.stakes(bet, progress, remaining)
        played = (staked > 0).any(axis=0)
        self._plan, self._sizes = plan, (n_p, n_q)
        self._playing, self._bet = open_[played], bet[played]
        self._stakes = staked[:, played]
        return np.unique(plan.events[np.unique(self._bet)])

    def update(self, hits_p: Counts, hits_q: Counts, n_p: int, n_q: int) -> None:
        """Settle the bets.

        Parameters
        ----------
        hits_p, hits_q : ndarray of int, shape (T,)
            How many of the round's releases on D and on D' hit each event.
        n_p, n_q : int
        """
        if self._plan is None:
            return
        if (n_p, n_q) != self._sizes:
            raise RuntimeError(
                f"bets were placed on {self._sizes} releases, not on {(n_p, n_q)}"
            )
        plan = self._plan
        cells = plan.cells(hits_p, n_p), plan.cells(hits_q, n_q)
        for account, stake in zip(self._accounts, self._stakes, strict=True):
            account[self._playing] += plan.bets.log_e(*cells, stake, self._bet)
        self.rejected |= self.log_wealth >= self._log_goal
        self._plan = None
        self._settled += n_p + n_q
        if self._renewals and self._settled >= self._renewals[0]:
            self._renewals.pop(0)
            self._renew()

    def _renew(self) -> None:
        """Move wealth from the other accounts to the eager one, up to its share."""
        if self._renewed == 0:
            return
        wealth = np.logaddexp.reduce(self._accounts, axis=0)
        eager = self._accounts[0].copy()
        poor = eager < wealth + np.log(self._renewed)
        self._accounts[0, poor] = wealth[poor] + np.log(self._renewed)
        others = np.logaddexp.reduce(self._accounts[1:, poor], axis=0)
        left = wealth[poor] + np.log1p(-self._renewed)
        self._accounts[1:, poor] += left - others

    def _worth_planning(self, top: int) -> Counts:
        """Return nulls from the frontier to the last in doubt, the claim included."""
        last = max(top, self.frontier)
        nulls = np.linspace(self.frontier, last, self._planned).astype(np.intp)
        claimed = self.family.claimed
        if claimed is not None and self.frontier < claimed < last:
            nulls = np.append(nulls, claimed)
        return np.unique(nulls)
