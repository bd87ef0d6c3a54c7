r"""ExponentialMechanism: one principal component, more likely the more it captures.

Source: Chaudhuri, Sarwate, Sinha, *A near-optimal algorithm for differentially-private
principal components*, JMLR 14, 2013, algorithm PPCA, for k = 1 and drawn exactly.

1. A = sum_i x_i x_i^T over the rows, clipped to `row_norm` R.
2. Output a unit vector u with density exp(c u^T A u) / Z(A): a draw from the vector
   Bingham distribution with S = c A, see `dpaudit.algorithms.subspace.bingham`.

c = epsilon/R^2 under ADD_REMOVE, epsilon/(2 R^2) under REPLACE_ONE (the paper's; its
relation is the latter). Either way the release is **pure epsilon-DP**.

Proof. Let D' have rows x more, or x in place of y, and let P be the law on D. Then

.. math:: \frac{p'(u)}{p(u)} = \frac{e^{g(u)}}{E_P[e^{g(u)}]}, \qquad
          g(u) = c \, u^T (A' - A) u .

The denominator is a mean of the numerator, so if g ranges over an interval of length r,
the loss log(p'/p) lies in [-r, r]. ADD_REMOVE: g(u) = c (u^T x)^2 is in [0, c R^2]; the
utility is monotone, and that saves a factor of 2. REPLACE_ONE: g(u) = c (u^T x)^2 -
c (u^T y)^2 is in [-c R^2, c R^2].

For d >= 2 no larger c will do: epsilon is the supremum of the loss, which no pair
attains. R = 1: let D have m rows e_1, and let D' have one row e_2 more. At u = e_2 the
loss is epsilon - log E_P[exp(epsilon u_2^2)], and u_2 -> 0 in probability as m grows.
Likewise with REPLACE_ONE: if e_1 takes the place of the row e_2 beside m rows e_1, the
loss at e_2 tends to -epsilon. But such releases become rare at the same time: the
hockey-stick divergence of that pair vanishes as m grows.

What is exact on a pair. The loss is c u^T (A - A') u less the difference of the log Z,
both of which are known, and u^T (A - A') u ranges over an interval whose ends are the
extreme eigenvalues of A - A'. The density is positive and continuous, so that every
neighbourhood of the directions where the loss is largest has positive probability: the
pure epsilon of the pair is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.bingham import VectorBingham
from dpaudit.algorithms.subspace.exact_exponential import ExactlyDrawn
from dpaudit.algorithms.subspace.perturbation import tied_directions_pair
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_length

__all__ = ["ExponentialMechanism"]

_MOST_COPIES = 10_000


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism(ExactlyDrawn):
    """A unit vector u with density proportional to exp(coefficient u^T A u).

    Parameters
    ----------
    n_components : int
        1, and no other number.

    Examples
    --------
    >>> mechanism = ExponentialMechanism(n_components=1, epsilon=1.0)
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [200, 20], axis=0)
    >>> mechanism.draw(rows, 500, rng=np.random.default_rng(0)).shape
    (500, 2, 1)
    >>> np.abs(mechanism.release(rows, rng=np.random.default_rng(1))).round(1)
    array([[0.6],
           [0.8]])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_components != 1:
            raise InputError(
                "n_components of exponential-pca must be 1, got "
                f"{self.n_components}; for more see exponential-pca-gibbs and "
                "exponential-pca-deflation"
            )

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        law = VectorBingham(self.coefficient * moment)
        return law.draw(size, rng=rng)[..., np.newaxis]

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size, d, 1) -> (size,)."""
        difference, shift = self._difference(data, other)
        vectors = releases[..., 0]
        return np.asarray(((vectors @ difference) * vectors).sum(axis=-1) - shift)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose pure epsilon is about 0.9 of the claim, or more.

        ADD_REMOVE: a row e_d joins m rows e_1. REPLACE_ONE: e_1 takes the place of the
        row e_d beside m rows e_1. With more rows epsilon is approached more closely,
        and the releases that show it become rarer. m is about 2.5 d over the
        coefficient, and at most 10,000, which is less for epsilons below 0.001 or so.
        The default d is 2; for d = 1 releases are a random sign, which says nothing.
        """
        dimension = check_length(dimension, 2)
        row = np.eye(dimension)[[-1]] * self.row_norm
        copies = int(np.ceil(2.5 * dimension / self._unit_coefficient))
        copies = 1 + min(copies, _MOST_COPIES - 1)
        data = np.zeros((copies, dimension))
        data[:, 0] = self.row_norm
        if self.relation is Relation.ADD_REMOVE:
            return Pair(data, np.vstack([data, row]), self.relation)
        if dimension == 1:
            row = -row
        return Pair(np.vstack([data, row]), np.vstack([data, data[:1]]), self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst pair, and one whose loss is smaller but seen more often.

        On the latter (d = 8) rows e_1 and e_2 are equally many, so that every direction
        in their plane is equally likely; a row e_1 more, or another e_1 in the place of
        an e_2, is enough to prefer e_1. It tells a rejection step with the wrong sign
        from the right one.
        """
        copies = int(min(np.ceil(20 / self._unit_coefficient), _MOST_COPIES))
        tied = tied_directions_pair(
            1, 8, copies, self.relation, self.row_norm, most_rows=2 * _MOST_COPIES
        )
        return self.worst_case(), tied
