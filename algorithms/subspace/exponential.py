r"""The exponential mechanism for k components: all at once, and one by one.

**All at once.** Source: Chaudhuri, Sarwate, Sinha, *A near-optimal algorithm for
differentially-private principal components*, JMLR 14, 2013, algorithm PPCA.

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
subclasses of `MatrixBinghamMechanism` differ in how they draw.

**DeflationExponential**: components one after the other, each drawn exactly.

Source: Amin, Dick, Kulesza, Muñoz Medina, Vassilvitskii, *Differentially private
covariance estimation*, NeurIPS 2019, Algorithm 1, without its noisy eigenvalues; the
calibration for REPLACE_ONE is ours.

1. A = sum_i x_i x_i^T over the rows, clipped to `row_norm` R. N_1 = I.
2. For j = 1, ..., k: draw a unit vector z with density exp(c_j z^T N_j^T A N_j z) / Z_j
   from the vector Bingham distribution, u_j = N_j z. The columns of N_(j+1) are an
   orthonormal basis of the complement of u_1, ..., u_j.
3. Output V = (u_1, ..., u_k), in this order.

With shares w_1 + ... + w_k = 1, public, the release is **pure epsilon-DP** for
c_j = w_j epsilon/R^2 under ADD_REMOVE, and for c_j = w_j epsilon/((1 + max w) R^2)
under REPLACE_ONE.

Proof. Given u_1, ..., u_(j-1), the density of u_j is exp(c_j u^T A u) / Z_j(A),
whatever basis N_j of the complement is taken. The density of V is the product of these
conditional densities, so the loss of V is exactly

.. math:: \log \frac{p(V)}{p'(V)} = \sum_j c_j \, u_j^T (A - A') u_j
          + \sum_j \log \frac{Z_j(A')}{Z_j(A)} .

Z_j(A')/Z_j(A) is the mean of exp(c_j u^T (A' - A) u) under the law of u_j on A. Let D'
have the row x more. The second sum is then in [0, R^2 sum c]. In the first one the u_j
are orthonormal, so that sum_j c_j (u_j^T x)^2 <= R^2 max c: it is in [-R^2 max c, 0].
So the loss is in [-R^2 max c, R^2 sum c]. If D' has x in place of y, the second sum is
in R^2 [-sum c, sum c] and the first, sum_j c_j ((u_j^T y)^2 - (u_j^T x)^2), in
R^2 [-max c, max c]: the loss is within R^2 (sum c + max c). QED. Composing the bounds
of the single draws instead, R^2 2 c_j each, would ask for coefficients that are smaller
by a factor of (k + 1)/(2 k), for equal shares.

For k < d epsilon is the supremum of the loss. Let D have m rows x and D' one more.
Where V is orthogonal to x, log Z_j(A')/Z_j(A) tends to c_j R^2 as m grows, for every j.
REPLACE_ONE: let a row y, orthogonal to x, beside m rows x be replaced by x; where V is
orthogonal to x and contains y as the column of the largest share, y adds R^2 max c.

All at once, the coefficient of all components is epsilon/R^2; here that is what they
share. It is the price of exact draws in any dimension, at k eigendecompositions.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms.shared.bases import Rng, drawn_in_parts, slices
from dpaudit.algorithms.subspace.base import (
    PureSubspaceMechanism,
    deflated_frames,
    uniform_complements,
    uniform_frames,
)
from dpaudit.algorithms.subspace.bingham import VectorBingham, log_bingham_normaliser
from dpaudit.algorithms.subspace.perturbation import (
    new_direction_pair,
    repeated_direction_pair,
    tied_directions_pair,
)
from dpaudit.arrays import Array
from dpaudit.stacks import check_symmetric
from dpaudit.validation import check_count, check_length, check_positive

__all__ = ["DeflationExponential", "MatrixBinghamMechanism"]

_BUDGET = 2**18  # numbers in a temporary array


@dataclass(frozen=True, kw_only=True)
class MatrixBinghamMechanism(PureSubspaceMechanism):
    """A basis V with density proportional to exp(coefficient tr V^T A V)."""

    @abstractmethod
    def draw_frames(self, values: Array, k: int, size: int, *, rng: Rng) -> Array:
        """Return frames whose spans are those of matrix Bingham draws, (size, d, k).

        The eigenvalues of S are ascending, and its eigenvectors are the basis vectors;
        k is from 2 to d/2. Any orthonormal bases of the spans will do.
        """

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        exponent, fewer = self.reduce(moment)

        def some(number: int) -> Array:
            frames = self._draw_reduced(exponent, fewer, number, rng=rng)
            if fewer < self.n_components:
                return uniform_complements(frames, rng=rng)
            return frames @ uniform_frames(number, fewer, fewer, rng=rng)

        shape = len(exponent), self.n_components
        return drawn_in_parts(size, shape, _BUDGET // exponent.size, some)

    def reduce(self, moment: Array) -> tuple[Array, int]:
        """Return the smaller of the two draws that give one another, see above.

        That is S and k, or -S and d - k if this is less: 0 and 1 need no `draw_frames`.
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


@dataclass(frozen=True, kw_only=True)
class DeflationExponential(PureSubspaceMechanism):
    """Columns u_j, each with density proportional to exp(c_j u^T A u) given the others.

    Parameters
    ----------
    shares : sequence of float, optional
        k public numbers > 0 in the ratio of the coefficients c_j. Default: all equal.

    Examples
    --------
    >>> mechanism = DeflationExponential(n_components=2, epsilon=1.0, shares=(3, 1))
    >>> mechanism.coefficients
    array([0.75, 0.25])
    """

    shares: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shares is None:
            return
        shares = tuple(check_positive("shares", share) for share in self.shares)
        object.__setattr__(self, "shares", shares)
        if len(shares) != self.n_components:
            raise InputError(
                f"shares must be {self.n_components} numbers, one for each component, "
                f"got {len(shares)}"
            )

    @property
    def coefficients(self) -> Array:
        """The c_j above, shape (k,)."""
        weights = np.ones(self.n_components) if self.shares is None else self.shares
        weights = np.asarray(weights) / np.sum(weights)
        if self.relation is Relation.REPLACE_ONE:
            weights = weights / (1 + weights.max())
        return weights * (self.epsilon / self.row_norm**2)

    @property
    def true_epsilon(self) -> float:
        return self.epsilon

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        moment = check_symmetric("moment", moment)
        d = len(moment)
        check_count("n_components", self.n_components, maximum=d)
        size = check_count("size", size, minimum=0)
        first, *others = self.coefficients
        releases = np.empty((size, d, self.n_components))
        # All first columns have the same law, and need one eigendecomposition.
        releases[..., 0] = VectorBingham(first * moment).draw(size, rng=rng)
        for part in _chunks(releases):
            rest, drawn = np.broadcast_to(np.eye(d), (len(part), d, d)), part[..., 0]
            for j, coefficient in enumerate(others, start=1):
                rest = deflated_frames(rest, drawn)
                inner = coefficient * _compressed(moment, rest)
                drawn = VectorBingham(inner).draw(1, rng=rng)[0]
                part[..., j] = (rest @ drawn[..., np.newaxis])[..., 0]
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        here, there = (self.moment(rows) for rows in (data, other))
        losses = [
            self._log_density(part, here) - self._log_density(part, there)
            for part in _chunks(releases)
        ]
        return np.concatenate(losses)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose loss comes to about 0.75 of the claim, if k < d.

        ADD_REMOVE: a row e_1 joins m rows e_1. REPLACE_ONE: it takes the place of a row
        e_d beside them. With more rows epsilon is approached more closely, and the
        releases that show it become rarer: those orthogonal to e_1. m is k (2d - k - 1)
        over the sum of the coefficients, and 10,000 at most. The default d is k + 1.
        """
        k = self.n_components
        dimension = check_length(dimension, k + 1, minimum=k)
        total = self.coefficients.sum() * self.row_norm**2
        copies = int(np.ceil(min(k * (2 * dimension - k - 1) / total, 1e9)))
        return repeated_direction_pair(dimension, copies, self.relation, self.row_norm)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst pair, and one with more directions (d = k + 7)."""
        return self.worst_case(), self.worst_case(self.n_components + 7)

    def _log_density(self, releases: Array, moment: Array) -> Array:
        """Return the logarithm of the density with respect to the uniform law."""
        first, *others = self.coefficients
        total = (moment @ releases * releases).sum(axis=-2) @ self.coefficients
        total -= log_bingham_normaliser(first * np.linalg.eigvalsh(moment))
        rest = np.broadcast_to(np.eye(len(moment)), (len(releases), *moment.shape))
        for j, coefficient in enumerate(others):
            before = (releases[:, np.newaxis, :, j] @ rest)[:, 0]
            rest = deflated_frames(rest, before)
            values = np.linalg.eigvalsh(_compressed(moment, rest))
            total -= log_bingham_normaliser(coefficient * values)
        return np.asarray(total)


def _chunks(releases: Array) -> Iterator[Array]:
    """Yield views whose square matrices fit into the budget; at least one."""
    for some in slices(max(1, len(releases)), _BUDGET // releases.shape[1] ** 2):
        yield releases[some]


def _compressed(moment: Array, frames: Array) -> Array:
    """Return F^T A F, symmetric to the bit; shape (size, q, q)."""
    inner = frames.swapaxes(-2, -1) @ (moment @ frames)
    return (inner + inner.swapaxes(-2, -1)) / 2
