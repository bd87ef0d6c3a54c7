r"""What every mechanism that perturbs the second-moment matrix shares.

The query is A = sum_i x_i x_i^T over rows x_i of norm at most `row_norm`, not divided
by the number of rows. Rows beyond the bound are clipped onto it, each on its own, so
clipping maps neighbours to neighbours and costs no privacy. The release is A plus a
random symmetric matrix; principal components of a release (its top eigenvectors) are
post-processing and inherit its privacy.

Sensitivities, for rows in the unit ball and D' = D with one change:

- Frobenius norm. ADD_REMOVE: ||x x^T||_F = ||x||^2 <= 1. REPLACE_ONE:
  ||x x^T - y y^T||_F^2 = ||x||^4 + ||y||^4 - 2 <x, y>^2 <= 2, attained at orthonormal
  x and y (so only for d >= 2).
- Upper triangle as a vector, diagonal and off-diagonal entries once each. For any
  symmetric S its squared norm is (||S||_F^2 + sum_i S_ii^2) / 2. ADD_REMOVE:
  (||x||^4 + sum_i x_i^4)/2 <= 1, attained at a basis vector. REPLACE_ONE: the sum over
  the diagonal is at most ||S||_F^2 <= 2, hence 2, attained at two basis vectors.
- Upper triangle in l1, over (d + 1)/2. ADD_REMOVE: 1, attained in every dimension.
  REPLACE_ONE: sqrt(20)/3, attained at d = 2; what it is in each dimension is proved in
  `dpaudit.algorithms.covariance.entrywise`.
- Nuclear norm. ADD_REMOVE: 1. REPLACE_ONE: 2, by the triangle inequality, attained at
  orthonormal x and y.
- Larger part, max(tr S_+, tr S_-). 1 under either: tr S_+ is the largest tr(P S) over
  0 <= P <= I, which for S = x x^T - y y^T is at most ||x||^2, and likewise tr S_-.

All scale with the square of the norm bound; for REPLACE_ONE at d = 1 they are loose.

The noise is made of random symmetric matrices, many at a time, shape (size, d, d), in
no more memory than that plus the normals they are made of.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.online.noise import coordinates, layout
from dpaudit.algorithms.shared.bases import Batched, Rng, stand_out
from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.gram import gram
from dpaudit.mechanism import MatrixNorm, Sensitivity
from dpaudit.neighbours import Neighbouring, Pair, Relation
from dpaudit.subspace import top_components
from dpaudit.validation import Checked, Norm, check_count, check_length, check_norm

__all__ = ["SecondMomentMechanism", "second_moment_sensitivity"]

_OF_REPLACED: dict[MatrixNorm, float] = {
    "frobenius": float(np.sqrt(2)),
    "upper-triangle": float(np.sqrt(2)),
    "upper-triangle-l1": float(np.sqrt(20) / 3),
    "nuclear": 2.0,
    "larger-part": 1.0,
}
"""Sensitivities to unit rows under REPLACE_ONE; under ADD_REMOVE all of them are 1."""

_DRAWS, _NUMBERS = 59, 200_000  # at most, of noise alone, to be told from it
_SURE = 0.95


def second_moment_sensitivity(
    norm: MatrixNorm, relation: Relation | str, row_norm: float = 1.0
) -> Sensitivity:
    """Return the sensitivity of A in a norm (proofs: head of this module).

    Examples
    --------
    >>> second_moment_sensitivity("nuclear", "replace-one", row_norm=3.0)
    Sensitivity(value=18.0, norm='nuclear')
    """
    replaced = Relation.parse(relation) is Relation.REPLACE_ONE
    unit = _OF_REPLACED[norm] if replaced else 1.0
    return Sensitivity(unit * check_norm("row_norm", row_norm) ** 2, norm)


def full_row_pair(dimension: int, relation: Relation, row_norm: float) -> Pair:
    """Return a row of zeros that a full row joins, or another one that e_1 replaces.

    The full row is at e_1; the other one at e_2, or zero for d = 1.
    """
    first, second = np.zeros((2, 1, dimension))
    first[0, 0] = row_norm
    if relation is Relation.ADD_REMOVE:
        return Pair(second, np.vstack([second, first]), relation)
    if dimension > 1:
        second[0, 1] = row_norm
    return Pair(second, first, relation)


@dataclass(frozen=True, kw_only=True)
class OnClippedRows(Batched[ArrayLike], Checked):
    """A mechanism for rows clipped to a public norm.

    Parameters
    ----------
    claim : Claim
        What is promised under `relation`.
    relation : Relation
    row_norm : float
        Public bound on the l2 norm of a row; longer rows are clipped onto it.
    """

    claim: Claim
    relation: Neighbouring = Relation.ADD_REMOVE
    row_norm: Norm = 1.0


@dataclass(frozen=True, kw_only=True)
class ReleasesMoment(OnClippedRows):
    """A mechanism that releases a matrix in the place of A, shape (d, d)."""

    def statistic(self, data: ArrayLike) -> Array:
        """Return A for the clipped rows of `data`, shape (d, d)."""
        return gram(data, row_norm=self.row_norm).moment

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        return self.draw_from(self.statistic(data), size, rng=rng)

    @abstractmethod
    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases for the second-moment matrix A, (size, d, d)."""

    def found(self, release: Array, n_components: int) -> bool:
        """Say whether components stand out of the noise, by one release alone.

        Whoever has the release knows it. What noise alone does is seen in draws of its
        own, from a fixed seed: its mean on the diagonal and its deviation off it, for
        `stand_out`, and `beyond_noise`.
        """
        d, k = len(release), n_components
        if k == d:
            return True
        rng = np.random.default_rng(0)
        noise = self.draw_from(np.zeros((d, d)), _draws(d), rng=rng)
        level = float(noise.trace(axis1=1, axis2=2).mean()) / d
        values = np.linalg.eigvalsh(release)[::-1] - level
        off = noise[:, ~np.eye(d, dtype=bool)].std()
        beyond = beyond_noise(release, k, lambda *_: noise)
        return bool(beyond & stand_out(np.asarray(values, dtype=float), k, off))

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the top eigenvectors of releases, shape (..., d, k)."""
        return top_components(releases, n_components)


@dataclass(frozen=True, kw_only=True)
class SecondMomentMechanism(ReleasesMoment):
    """A + noise; releases have shape (d, d)."""

    sensitivity_norm: ClassVar[MatrixNorm]
    """The norm in which the privacy proof needs the sensitivity of A."""

    @property
    def sensitivity(self) -> Sensitivity:
        norm = self.sensitivity_norm
        return second_moment_sensitivity(norm, self.relation, self.row_norm)

    @abstractmethod
    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        """Return `size` noise matrices, shape (size, d, d)."""

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        size = check_count("size", size, minimum=0)
        releases = self.noise(size, len(moment), rng=rng)
        releases += moment
        return releases

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the canonical worst pair (noise is additive: the rest is no matter).

        ADD_REMOVE: a row at a basis vector joins a zero row. REPLACE_ONE: one basis
        vector replaces another, or a zero row where d = 1. The default d is 2, the
        least with room for two orthogonal rows.
        """
        dimension = check_length(dimension, 2)
        return full_row_pair(dimension, self.relation, self.row_norm)

    def _difference(self, data: ArrayLike, other: ArrayLike) -> Array:
        return self.statistic(data) - self.statistic(other)


def _draws(dimension: int) -> int:
    return max(1, min(_DRAWS, _NUMBERS // dimension**2))


def beyond_noise(
    matrices: Array, n_components: int, drawn: Callable[[int, int, Rng], Array]
) -> NDArray[np.bool_]:
    """Say whether noise alone seldom has such a k-th eigenvalue as matrices have.

    It must lie beyond those of some draws of noise, and be as far above the next one as
    at the top of 19 draws in 20: of what is left of the noise beside k - 1 components.
    So where k - 1 stand far out, and in all other directions there is the same, this
    happens once in twenty times, over all draws. In many columns there would be one
    draw, which tells nothing: all are beyond.

    Parameters
    ----------
    matrices : ndarray of shape (..., d, d)
    n_components : int
        k.
    drawn : callable
        Returns draws of the noise, from how many, d and a generator of a fixed seed.
    """
    d, k = matrices.shape[-1], n_components
    draws = _draws(d)
    if k == d or draws == 1:
        return np.ones(matrices.shape[:-2], dtype=bool)
    noise = drawn(draws, d, np.random.default_rng(0))[:, k - 1 :, k - 1 :]
    *_, second, first = np.linalg.eigvalsh(noise).T
    gap = np.sort(first - second)[int(_SURE * (draws + 1)) - 1]
    values = np.linalg.eigvalsh(matrices)
    last, after = values[..., d - k], values[..., d - k - 1]
    return np.asarray((last > first.max()) & (last - after > gap))


def symmetric_gaussian(
    size: int, dimension: int, off_diagonal: float, diagonal: float, *, rng: Rng
) -> Array:
    """Draw symmetric matrices with independent Gaussian upper triangles.

    Given are the deviations of the entries above the diagonal and on it.
    """
    rows, columns, place, _, _ = layout(dimension)
    scale = np.where(rows == columns, diagonal, off_diagonal)
    triangle = rng.standard_normal((size, len(scale)))
    triangle *= scale
    return np.take(triangle, place, axis=1).reshape(size, dimension, dimension)


def symmetric_laplace(size: int, dimension: int, *, scale: float, rng: Rng) -> Array:
    """Draw symmetric matrices with i.i.d. Laplace upper triangles of that scale."""
    _, _, place, _, _ = layout(dimension)
    triangle = rng.laplace(scale=scale, size=(size, coordinates(dimension)))
    return np.take(triangle, place, axis=1).reshape(size, dimension, dimension)


def wishart(size: int, d: int, *, degrees: int, scale: float, rng: Rng) -> Array:
    """Draw Wishart matrices Z Z^T, Z having `degrees` columns N(0, scale I).

    They are exactly symmetric, positive semi-definite, and singular for less than d
    degrees. Of Z with many columns only its triangular factor is drawn (Bartlett 1933).
    """
    if degrees <= 2 * d:
        factors = rng.standard_normal((size, d, degrees))
    else:
        factors = _bartlett_factors(size, d, degrees, rng)
    factors *= np.sqrt(scale)
    # NumPy hands a product of an array with its own transpose to BLAS syrk.
    return np.asarray(factors @ factors.swapaxes(-2, -1))


def _bartlett_factors(size: int, dimension: int, degrees: int, rng: Rng) -> Array:
    """Draw the Cholesky factors of W_d(I, degrees), shape (size, d, d).

    Independent entries: standard normal below the diagonal, and on it the roots of
    chi-squares with degrees, degrees - 1, ... degrees of freedom.
    """
    factors = np.zeros((size, dimension, dimension))
    rows, columns = np.tril_indices(dimension, -1)
    factors[:, rows, columns] = rng.standard_normal((size, len(rows)))
    on_diagonal = np.arange(dimension)
    squares = rng.chisquare(degrees - on_diagonal, size=(size, dimension))
    factors[:, on_diagonal, on_diagonal] = np.sqrt(squares)
    return factors
