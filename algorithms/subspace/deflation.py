r"""DeflationExponential: components one after the other, each drawn exactly.

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

Against `dpaudit.algorithms.subspace.matrix_bingham`: there the coefficient of all
components is epsilon/R^2, here that is what they share. It is the price of exact draws
in any dimension, at k eigendecompositions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.base import PureSubspaceMechanism, deflated_frames
from dpaudit.algorithms.subspace.bingham import VectorBingham, log_bingham_normaliser
from dpaudit.algorithms.subspace.perturbation import repeated_direction_pair
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import (
    check_count,
    check_length,
    check_positive,
    check_symmetric,
)

__all__ = ["DeflationExponential"]

_BUDGET = 2**18  # numbers in a temporary array


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
    >>> rows = np.repeat(np.eye(4), [300, 200, 50, 10], axis=0)
    >>> releases = mechanism.draw(rows, 500, rng=np.random.default_rng(0))
    >>> (releases**2).mean(axis=0).round(1)
    array([[1., 0.],
           [0., 1.],
           [0., 0.],
           [0., 0.]])
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
        """epsilon: the supremum over all pairs of rows with d > k."""
        return self.epsilon

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the second-moment matrix A, shape (size, d, k).

        Raises
        ------
        InputError
            If A is not finite and symmetric, or k > d.
        """
        moment = check_symmetric("moment", moment)
        d = len(moment)
        check_count("n_components", self.n_components, maximum=d)
        size = check_count("size", size, minimum=0)
        first, *others = self.coefficients
        releases = np.empty((size, d, self.n_components))
        # All first columns have the same law, and need one eigendecomposition.
        releases[..., 0] = VectorBingham(first * moment).draw(size, rng=rng)
        for part in _chunks(releases):
            rest, drawn = _identities(len(part), d), part[..., 0]
            for j, coefficient in enumerate(others, start=1):
                rest = deflated_frames(rest, drawn)
                inner = coefficient * _compressed(moment, rest)
                drawn = VectorBingham(inner).draw(1, rng=rng)[0]
                part[..., j] = (rest @ drawn[..., np.newaxis])[..., 0]
        return releases

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size, d, k) -> (size,)."""
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
        rest = _identities(len(releases), len(moment))
        for j, coefficient in enumerate(others):
            before = (releases[:, np.newaxis, :, j] @ rest)[:, 0]
            rest = deflated_frames(rest, before)
            values = np.linalg.eigvalsh(_compressed(moment, rest))
            total -= log_bingham_normaliser(coefficient * values)
        return np.asarray(total)


def _chunks(releases: Array) -> Iterator[Array]:
    """Yield views whose square matrices fit into the budget; at least one."""
    length = max(1, _BUDGET // releases.shape[1] ** 2)
    for start in range(0, max(1, len(releases)), length):
        yield releases[start : start + length]


def _identities(size: int, dimension: int) -> Array:
    return np.broadcast_to(np.eye(dimension), (size, dimension, dimension))


def _compressed(moment: Array, frames: Array) -> Array:
    """Return F^T A F, symmetric to the bit; shape (size, q, q)."""
    inner = frames.swapaxes(-2, -1) @ (moment @ frames)
    return (inner + inner.swapaxes(-2, -1)) / 2
