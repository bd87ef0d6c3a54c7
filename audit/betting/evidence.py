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
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.betting.projection import HalfSpaces, Projection

__all__ = ["Bets"]

Counts = NDArray[np.intp]

# More than the rounding of these sums, and of the limits, relative to their terms.
_ROUNDING = 1e-12


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

    def take(self, rows: NDArray[np.intp]) -> "Bets":
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
        t = stake[:, np.newaxis]
        n = counts_p.sum(axis=1) + counts_q.sum(axis=1)
        return np.asarray(
            (counts_p[bet] * np.log1p(t * self.on_p[bet])).sum(axis=1)
            + (counts_q[bet] * np.log1p(t * self.on_q[bet])).sum(axis=1)
            - n[bet] * stake * self.slack[bet]
        )
