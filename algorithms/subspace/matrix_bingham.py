r"""What the exponential mechanism for k components is, however it is drawn.

Source: Chaudhuri, Sarwate, Sinha, *A near-optimal algorithm for differentially-private
principal components*, JMLR 14, 2013, algorithm PPCA.

1. A = sum_i x_i x_i^T over the rows, clipped to `row_norm` R.
2. Output V with orthonormal columns, shape (d, k), with the density
   exp(c tr V^T A V) / Z(A) with respect to the uniform law on such matrices: a draw
   from the matrix Bingham distribution with S = c A.

c = epsilon/R^2 under ADD_REMOVE, epsilon/(2 R^2) under REPLACE_ONE. Either way an exact
draw is **pure epsilon-DP**, whatever k is.

Proof. Let D' have the row x more, or x in place of y, and let P be the law on D. Then

.. math:: \frac{p'(V)}{p(V)} = \frac{e^{g(V)}}{E_P[e^{g(V)}]}, \qquad
          g(V) = c \, \mathrm{tr} \, V^T (A' - A) V .

The denominator is a mean of the numerator, so if g ranges over an interval of length r,
the loss log(p'/p) lies in [-r, r]. ADD_REMOVE: g(V) = c ||V^T x||^2 is in [0, c R^2];
the utility is monotone, and that saves a factor of 2. REPLACE_ONE: g(V) =
c ||V^T x||^2 - c ||V^T y||^2 is in [-c R^2, c R^2].

For k < d no larger c will do, and epsilon is the supremum of the loss. R = 1: let D
have m rows at each of e_1, ..., e_k, and D' one row e_(k+1) more. Where V spans
e_(k+1), the loss log(p'/p) is epsilon - log E_P[exp(epsilon ||V^T e_(k+1)||^2)], and
V^T e_(k+1) -> 0 in probability as m grows. Likewise under REPLACE_ONE, if e_1 takes the
place of the row e_(k+1) and V spans e_(k+1) but is orthogonal to e_1.

The span of V is all that the density knows: given the span, V is uniform among its
orthonormal bases. Let W be a basis of the complement. From V V^T + W W^T = I follows
tr V^T S V = tr S - tr W^T S W, so W is matrix Bingham with -S and d - k columns. Hence
only the smaller of k and d - k counts. If it is 0, V is uniform; if it is 1, it is a
vector Bingham draw, which is exact (`dpaudit.algorithms.subspace.bingham`); else the
classes here differ in how they draw.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.base import (
    PureSubspaceMechanism,
    uniform_complements,
    uniform_frames,
)
from dpaudit.algorithms.subspace.bingham import VectorBingham
from dpaudit.algorithms.subspace.perturbation import (
    new_direction_pair,
    tied_directions_pair,
)
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count, check_length, check_symmetric

__all__ = ["MatrixBinghamMechanism"]

_BUDGET = 2**18  # numbers in a temporary array


@dataclass(frozen=True, kw_only=True)
class MatrixBinghamMechanism(PureSubspaceMechanism):
    """A basis V with density proportional to exp(coefficient tr V^T A V)."""

    @abstractmethod
    def draw_frames(self, values: Array, k: int, size: int, *, rng: Rng) -> Array:
        """Return frames whose spans are those of matrix Bingham draws.

        Parameters
        ----------
        values : ndarray, shape (d,)
            The eigenvalues of S, ascending; its eigenvectors are the basis vectors.
        k : int
            From 2 to d/2.

        Returns
        -------
        ndarray, shape (size, d, k)
            Any orthonormal bases of the spans.
        """

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the second-moment matrix A, shape (size, d, k).

        Raises
        ------
        InputError
            If A is not finite and symmetric, or k > d.
        """
        exponent, fewer = self.reduce(moment)
        size = check_count("size", size, minimum=0)
        chunk = max(1, _BUDGET // exponent.size)
        releases = np.empty((size, len(exponent), self.n_components))
        for start in range(0, size, chunk):
            part = releases[start : start + chunk]
            frames = self._draw_reduced(exponent, fewer, len(part), rng=rng)
            part[:] = (
                frames @ uniform_frames(len(part), fewer, fewer, rng=rng)
                if fewer == self.n_components
                else uniform_complements(frames, rng=rng)
            )
        return releases

    def reduce(self, moment: Array) -> tuple[Array, int]:
        """Return the smaller of the two draws that give one another, see above.

        Returns
        -------
        exponent : ndarray, shape (d, d)
            S, or -S if k > d - k.
        fewer : int
            The smaller of k and d - k: 0 and 1 need no `draw_frames`.

        Raises
        ------
        InputError
            As `draw_from`.
        """
        exponent = self.coefficient * check_symmetric("moment", moment)
        exponent = (exponent + exponent.T) / 2
        d = len(exponent)
        k = check_count("n_components", self.n_components, maximum=d)
        return (exponent, k) if k <= d - k else (-exponent, d - k)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose pure epsilon is about 0.8 of the claim, if k < d.

        ADD_REMOVE: a row e_(k+1) joins m rows at each of e_1, ..., e_k. REPLACE_ONE:
        e_1 takes the place of the row e_(k+1) beside them. With more rows epsilon is
        approached more closely, and the releases that show it become rarer. m is 3 k
        over the coefficient, and 10,000/k at most. The default d is 2 for k = 1, and
        k + 2 for more: the least for which a draw is not that of a vector.
        """
        k = self.n_components
        dimension = check_length(dimension, k + min(k, 2), minimum=k)
        copies = int(np.ceil(min(3 * k / self._unit_coefficient, 1e9)))
        return new_direction_pair(k, dimension, copies, self.relation, self.row_norm)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst pair, and one whose loss is smaller but seen more often.

        On the latter (d = k + 7) rows e_1, ..., e_(k+1) are equally many, so that each
        direction of their span is equally likely to be left out; a row e_1 more, or
        another e_1 in the place of an e_(k+1), makes it e_1 less often. It tells a
        sampler with a wrong exponent from the right one.
        """
        k = self.n_components
        copies = int(np.ceil(min(20 / self._unit_coefficient, 1e9)))
        tied = tied_directions_pair(k, k + 7, copies, self.relation, self.row_norm)
        return self.worst_case(), tied

    def _draw_reduced(self, exponent: Array, k: int, size: int, *, rng: Rng) -> Array:
        if k == 0:
            return np.empty((size, len(exponent), 0))
        if k == 1:
            return VectorBingham(exponent).draw(size, rng=rng)[..., np.newaxis]
        values, vectors = np.linalg.eigh(exponent)
        return np.asarray(vectors @ self.draw_frames(values, k, size, rng=rng))
