r"""E-values against a privacy claim from counts in cells, exact in finite samples.

The null
--------
A claim says that for every event S the point (P(S), Q(S)) lies in a convex set, the
intersection of half-planes c_P P(S) + c_Q Q(S) <= delta. A null here is any finite
choice of events and half-planes: it contains every (P, Q) that meets the claim, so an
e-value against it is an e-value against the claim. Which ones are chosen only decides
how fast evidence grows.

The e-value
-----------
Cut the outputs into K cells, fixed before the draw. Draw n_P releases on D and n_Q on
D', n = n_P + n_Q, and count k_i and m_i of them in cell i. Choose before the draw
multipliers a_j >= 0, one per half-plane (event S_j, a union of cells), two numbers
nu_P and nu_Q, and a stake t >= 0. With the shares w_P = n_P/n and w_Q = n_Q/n,

    x_i = (sum_j a_j c_Pj [i in S_j] - nu_P) / w_P,
    y_i = (sum_j a_j c_Qj [i in S_j] - nu_Q) / w_Q,
    slack = sum_j a_j delta_j - nu_P - nu_Q,

    E = prod_i (1 + t x_i)^k_i  prod_i (1 + t y_i)^m_i  exp(-n t slack),

where t is such that all factors are positive.

**Claim.** E[E] <= 1 under every (P, Q) of the null.

Proof. With p_i, q_i the cells' true probabilities, the releases being independent,

    E[E] exp(n t slack) = (1 + t sum_i p_i x_i)^n_P (1 + t sum_i q_i y_i)^n_Q
                       <= exp(t (n_P sum_i p_i x_i + n_Q sum_i q_i y_i))
                        = exp(n t (sum_j a_j (c_Pj P(S_j) + c_Qj Q(S_j)) - nu_P - nu_Q))
                       <= exp(n t (sum_j a_j delta_j - nu_P - nu_Q)) = exp(n t slack)

by 1 + z <= e^z, and because a_j >= 0 and each half-plane holds.  QED

So the slack certifies the bet whatever the numbers are: no accuracy of any solver is
needed. For speed they are those of the Kullback-Leibler projection of an alternative on
the null (`dpaudit.audit.betting.projection`), for which E is the likelihood ratio of
the alternative against its projection: no e-value of this kind grows faster under the
alternative (Turner, Ly, Grunwald, *Generic E-variables for exact sequential k-sample
tests*, 2021; Grunwald, de Heide, Koolen, *Safe testing*, JRSS B 2024). A stake t moves
the alternative along the ray from the projection, which stays its projection.

All rounds
----------
Before a round each null of a family picks, from the past alone, the events, the
half-planes and the stake (`dpaudit.audit.betting.strategy`): one betting game per null.
After the round its wealth is multiplied by the e-value of that bet. Given the past each
e-value has mean at most 1 under the null, so the wealth is a non-negative
supermartingale, and by Ville's inequality it ever reaches 1/alpha with probability at
most alpha: whatever was tried, however often one looked, whenever one stopped.

A grid has thousands of nulls, which differ little from one to the next. Bets are
planned for a few dozen of them; any other null plays the bet of the next larger planned
one. That is fair, because nulls are nested: an e-value against the larger null is one
against the smaller.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces, Projection

__all__ = ["Bets", "PlacedBets", "SequentialTest"]

Counts = NDArray[np.intp]

# More than the rounding of these sums, and of the limits, relative to their terms.
_ROUNDING = 1e-12
_NEAR = 1e-6  # more than the rounding of a sum of accounts
_RENEWALS = (2000, 8000)  # releases, of both sides, after which wealth is moved


@dataclass(frozen=True)
class Bets:
    """M bets on K cells, fixed before their round.

    Parameters
    ----------
    on_p, on_q : ndarray, shape (M, K)
        What one release in each cell returns on a stake of 1: x and y above.
    slack : ndarray, shape (M,)
        What every release costs, on either side, rounded up.
    """

    on_p: Array
    on_q: Array
    slack: Array

    @classmethod
    def place(
        cls,
        half_spaces: HalfSpaces,
        projection: Projection,
        n_cells: int,
        n_p: int,
        n_q: int,
    ) -> "Bets":
        """Bet with the given multipliers in a round of n_p and n_q releases."""
        a, nu_p, nu_q = projection.multipliers, projection.nu_p, projection.nu_q
        loads_p, loads_q = half_spaces.loads(n_cells)
        n = n_p + n_q
        magnitude = np.sum(
            a
            * (
                np.abs(half_spaces.on_p)
                + np.abs(half_spaces.on_q)
                + np.abs(half_spaces.limit)
            ),
            axis=1,
        )
        return cls(
            ((loads_p @ a[..., np.newaxis])[..., 0] - nu_p[:, np.newaxis]) * (n / n_p),
            ((loads_q @ a[..., np.newaxis])[..., 0] - nu_q[:, np.newaxis]) * (n / n_q),
            np.sum(a * half_spaces.limit, axis=1)
            - nu_p
            - nu_q
            + _ROUNDING * (magnitude + np.abs(nu_p) + np.abs(nu_q)),
        )

    def take(self, rows: NDArray[np.intp] | slice) -> "Bets":
        """Return some of the bets."""
        return Bets(*(each[rows] for each in vars(self).values()))

    def largest_stake(self) -> Array:
        """Return the stake at which some cell would return nothing, shape (M,)."""
        worst = np.minimum(self.on_p.min(axis=1), self.on_q.min(axis=1))
        with np.errstate(divide="ignore"):
            return np.where(worst < 0, -1 / worst, np.inf)

    def log_e(
        self, counts_p: Counts, counts_q: Counts, stake: Array, bet: Counts
    ) -> Array:
        """Return log E of some stakes, each on one of the bets.

        Parameters
        ----------
        counts_p, counts_q : ndarray of int, shape (M, K)
            Releases of the round in each cell of each bet.
        stake : ndarray, shape (G,)
            In [0, `largest_stake`).
        bet : ndarray of int, shape (G,)
            Which bet each stake is on.

        Returns
        -------
        ndarray, shape (G,)
        """
        # Neighbours mostly stake as much on the same bet: that is computed once.
        new = np.ones(len(bet), dtype=bool)
        new[1:] = (bet[1:] != bet[:-1]) | (stake[1:] != stake[:-1])
        alike = np.cumsum(new) - 1
        stake, bet = stake[new], bet[new]
        t = stake[:, np.newaxis]
        n = counts_p.sum(axis=1) + counts_q.sum(axis=1)
        log_e = (
            (counts_p[bet] * np.log1p(t * self.on_p[bet])).sum(axis=1)
            + (counts_q[bet] * np.log1p(t * self.on_q[bet])).sum(axis=1)
            - n[bet] * stake * self.slack[bet]
        )
        return np.asarray(log_e[alike])


@dataclass(frozen=True)
class PlacedBets:
    """What the nulls of a family play in one round.

    Parameters
    ----------
    bets : Bets
        M of them.
    nulls : ndarray of int, shape (M,)
        Against which they are planned; increasing.
    events : ndarray of int, shape (M, J)
        The nested events that cut the outputs into J + 1 cells, rarest first.
    sizes : tuple of int
        How many releases the round draws on D and on D'.
    playing : ndarray of int, shape (G,)
        The nulls that stake anything, none of them above the planned ones.
    stakes : ndarray, shape (A, G)
        What each stakes from each account, below `Bets.largest_stake`.
    """

    bets: Bets
    nulls: Counts
    events: Counts
    sizes: tuple[int, int]
    playing: Counts
    stakes: Array

    @property
    def bet(self) -> Counts:
        """Which bet each playing null has: that of the next larger planned one."""
        return np.searchsorted(self.nulls, self.playing)

    def cells(self, hits: Counts, n: int) -> Counts:
        """Return the counts in the cells, shape (M, J + 1), from hits (T,) of n."""
        return np.diff(hits[self.events], axis=1, prepend=0, append=n)


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
        self.planned, self._renewed, self._shared = planned, renewed, shared
        self._renewals, self._settled = list(_RENEWALS), 0
        # Logarithms of the accounts of every null; the last plays for the deadline.
        start = np.log(shares)
        self._accounts = np.repeat(start[:, np.newaxis], len(family), axis=1)
        self.anchor: int | None = None  # near which the next bets are looked for
        self.promised = 0.0  # evidence a release that bets on the claim may bring
        self._placed: PlacedBets | None = None

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
    def log_evidence(self) -> float:
        """The logarithm of the wealth against the claim, or the one null."""
        return float(np.logaddexp.reduce(self._accounts[:, self.family.claimed or 0]))

    @property
    def log_progress(self) -> Array:
        """The logarithm of the deadline account over its goal, shape (G,)."""
        return self._accounts[-1] - self._log_goal

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

    def place(self, bets: "PlacedBets | None") -> None:
        """Take the bets of the coming round, chosen from earlier ones; or none."""
        self._placed = bets

    def update(self, hits_p: Counts, hits_q: Counts, n_p: int, n_q: int) -> None:
        """Settle the bets.

        Parameters
        ----------
        hits_p, hits_q : ndarray of int, shape (T,)
            How many of the round's releases on D and on D' hit each event.
        n_p, n_q : int
        """
        placed = self._placed
        if placed is None:
            return
        if (n_p, n_q) != placed.sizes:
            raise RuntimeError(
                f"bets were placed on {placed.sizes} releases, not on {(n_p, n_q)}"
            )
        cells = placed.cells(hits_p, n_p), placed.cells(hits_q, n_q)
        bet = placed.bet
        for account, stake in zip(self._accounts, placed.stakes, strict=True):
            account[placed.playing] += placed.bets.log_e(*cells, stake, bet)
        self._reject()
        self._placed = None
        self._settled += n_p + n_q
        if self._renewals and self._settled >= self._renewals[0]:
            self._renewals.pop(0)
            self._renew()

    def _reject(self) -> None:
        """Reject the nulls against which the wealth has reached the goal.

        That of a null is at most three times its largest account, or the claim's: where
        none is near the goal, sums need not be taken.
        """
        open_, claimed = ~self.rejected, self.family.claimed
        if self._shared and claimed is not None:
            open_[claimed] = True
        largest = self._accounts[:, open_].max(initial=-np.inf)
        if largest + np.log(len(self._accounts)) >= self._log_goal - _NEAR:
            self.rejected |= self.log_wealth >= self._log_goal

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
