r"""What descents minimise: GLAD and REAPER, and the terms of their gradients.

**GLAD**, the sum of distances to a subspace, and the terms of its gradient.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, sections 1.1 and 2.1. For rows x_1, ..., x_N on the unit sphere of R^D and V of
shape (D, r) with orthonormal columns, Q = I - V V^T,

.. math:: F(V) = \frac{1}{N} \sum_i \|Q x_i\|, \quad
          \nabla F(V) = -\frac{1}{N} \sum_i g_i(V), \quad
          g_i(V) = \frac{Q x_i}{\|Q x_i\|} (V^T x_i)^T .

The paper leaves out the minus sign of (2.1), and with it descent would go up. Rows in
the span of V have no direction Q x/||Q x||, and their term is 0: a subgradient.

Spherising, x -> x/||x||, is done to each row by itself, so it maps neighbours to
neighbours (`dpaudit.rows`). A row of zeros has no direction, and is refused.

Sensitivity. g_i(V) is the outer product of a unit vector and V^T x_i, so its Frobenius
norm is ||V^T x_i|| <= ||x_i|| = 1, for every V. The sum of all terms moves by at most

- 1 under ADD_REMOVE, and
- 2 under REPLACE_ONE, by the triangle inequality.

Both are suprema and are not attained: the term of a row at the angle t from the span of
V has the norm cos t, and it is 0 at t = 0. For two rows at the angles t and -t from it
in one plane, the terms are opposite, and 2 cos t apart (whatever the sum of the
others). Where the sum of the terms is used in place of their mean, no denominator is
involved, which under ADD_REMOVE would be private.

In floating point: Q x is computed as x - V (V^T x) and divided by its own length, never
by sqrt(1 - ||V^T x||^2), so a term is never longer than that by more than rounding. If
||Q x|| <= 1e-12 the residual is rounding, and counts as zero.

**REAPER**, the convex relaxation of GLAD, and the terms of its subgradient.

Source: Lerman, McCoy, Tropp, Zhang, *Robust computation of linear models by convex
relaxation*, FoCM 2015; the former, section 4.3. For rows on the unit
sphere and P in H (`dpaudit.algorithms.robust.geometries`),

.. math:: G(P) = \frac{1}{N} \sum_i \|(I - P) x_i\|, \quad
    \partial G(P) \ni -\frac{1}{N} \sum_i h_i(P), \quad
    h_i(P) = \frac{u_i x_i^T + x_i u_i^T}{2}, \quad
    u_i = \frac{(I - P) x_i}{\|(I - P) x_i\|}.

The paper's (4.1) is the sum; the objective is the mean, and so is what is used here.
Rows with (I - P) x = 0 have the term 0, a subgradient.

Sensitivity, in Frobenius norm, for every symmetric P, in H or not. With c = u^T x,
||h||_F^2 = (1 + c^2)/2 <= 1. So the sum of all terms moves by at most

- 1 under ADD_REMOVE, attained where x is an eigenvector of I - P (as at P = (r/D) I);
- sqrt 2 under REPLACE_ONE, attained by two such x that are orthogonal.

Proof of the latter. Let Q = I - P, Q x = a u, Q y = b v with a, b > 0 and unit vectors
(if a term is zero, the bound is 1). Put p = (x + u)/2, m = (x - u)/2, q = (y + v)/2,
n = (y - v)/2. Then p and m are orthogonal, ||p||^2 + ||m||^2 = 1, h_x = p p^T - m m^T;
likewise q, n, h_y. With A = p.q, B = m.n, C = p.n, E = m.q,

    ||h_x - h_y||_F^2 = ||p||^4 + ||m||^4 + ||q||^4 + ||n||^4
                        - 2 A^2 - 2 B^2 + 2 C^2 + 2 E^2,

and 2 = (||p||^2 + ||m||^2)^2 + (||q||^2 + ||n||^2)^2, so what is to be shown is

    C^2 + E^2 <= ||p||^2 ||m||^2 + ||q||^2 ||n||^2 + A^2 + B^2.

Q is symmetric: y.Q x = x.Q y says a (q + n).(p - m) = b (p + m).(q - n), that is,
(a - b) (A - B) = (a + b) (E - C), so |E - C| <= |A - B|, and

    C^2 + E^2 = (E - C)^2 + 2 C E <= A^2 + B^2 + 2 (C E - A B).

A B - C E is the inner product of the bivectors of (p, m) and (q, n), which by
orthogonality is at most ||p|| ||m|| ||q|| ||n||, in absolute value, and twice that is
at most ||p||^2 ||m||^2 + ||q||^2 ||n||^2.  QED

The same lines say more. The inner product of the terms is A^2 + B^2 - C^2 - E^2, so

    -<h_x, h_y> <= 2 (C E - A B) <= 2 ||p|| ||m|| ||q|| ||n||
                 = sqrt((1 - ||h_x||_F^2) (1 - ||h_y||_F^2)),

since 1 - ||h_x||_F^2 = 2 ||p||^2 ||m||^2: terms that lean away from each other are
short. That is what random batches need (`dpaudit.algorithms.shared.subsampling`).

Descent. The problem is convex, so where it starts does not matter to where it leads;
what is released is the top-r subspace of the average of P_1, ..., P_T. The coordinates
of a sum are its upper triangle, with the diagonal divided by `diagonal_ratio`. With a
ratio of sqrt 2, noise that is independent and of one deviation there is the Gaussian
orthogonal ensemble, and a Frobenius norm of S becomes ||S||_F/sqrt 2, whatever the
direction of S: the sum moves by 1 under REPLACE_ONE. With a ratio of 1 it is the norm
of the upper triangle, in which the sum moves by up to sqrt 2.

Every P is dense, with a full eigendecomposition in every step, and about eight D x D
matrices are held for each trial: D is in the hundreds, or at most a few thousand
(docs/robust.md#how-well-they-work has times).

In floating point: residuals of length <= 1e-9 are rounding, and count as zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.robust.parts import Objective, Space
from dpaudit.algorithms.shared.bases import Replaced, slices
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.rows import normalise_rows
from dpaudit.subspace import top_components
from dpaudit.validation import Positive, check_matrix

__all__ = ["Glad", "Reaper", "spherise"]

_ROUNDING, _REAPER_ROUNDING = 1e-12, 1e-9  # residuals that count as zero
_ENSEMBLE_RATIO = sqrt(2)  # of the Gaussian orthogonal ensemble
_WORK = 2**21  # entries of the residuals that are held at a time


def spherise(data: ArrayLike, *, min_rows: int = 1, n_components: int = 0) -> Array:
    """Scale every row to unit length, shape (N, D).

    Parameters
    ----------
    data : array_like, shape (N, D)
        Finite numbers, at least `min_rows` rows.
    min_rows : int
    n_components : int
        r, for which D must be larger: a subspace of dimension D is no choice.

    Raises
    ------
    InputError
        If a row is zero (the message names the first), or D <= r.

    Examples
    --------
    >>> spherise([[3.0, 4.0], [0.0, 0.0]])
    Traceback (most recent call last):
        ...
    dpaudit.errors.InputError: data must have rows of length > 0, but row 1 is zero
    """
    rows = check_matrix("data", data, min_rows=min_rows)
    nonzero = rows.any(axis=1)
    if not nonzero.all():
        raise InputError(
            "data must have rows of length > 0, but row "
            f"{int(np.argmin(nonzero))} is zero"
        )
    if n_components and rows.shape[1] <= n_components:
        raise InputError(
            f"n_components must be less than the length of a row, {rows.shape[1]}, "
            f"got {n_components}"
        )
    return normalise_rows(rows)


@dataclass(frozen=True)
class Glad(Objective):
    """GLAD as a part of a descent: points are bases, and the last one is released."""

    space: ClassVar[Space] = "subspaces"
    replaced: ClassVar[Replaced] = "opposite"

    @property
    def sensitivity(self) -> float:
        """By how much a sum moves under REPLACE_ONE: 2."""
        return 2.0

    def point_size(self, dimension: int, n_components: int) -> int:
        return dimension * n_components

    def shape(self, dimension: int, n_components: int) -> tuple[int, ...]:
        return dimension, n_components

    def term_sum(self, rows: Array, points: Array) -> Array:
        """Return minus N or B times the gradient of the mean distance."""
        total = np.zeros(points.shape)
        if rows.ndim == 3:
            for some in slices(len(points), _WORK // max(1, rows[:1].size)):
                total[some] = _terms(rows[some], points[some])
            return total
        for some in slices(len(points), _WORK // max(1, rows.size)):
            width = _WORK // (len(points[some]) * rows.shape[1])
            for part in slices(len(rows), width):
                total[some] += _terms(rows[part], points[some])
        return total

    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        coefficients = rows @ points
        residuals = rows - coefficients @ points.swapaxes(-2, -1)
        lengths = np.linalg.norm(residuals, axis=-1, keepdims=True)
        unit = np.divide(
            residuals, lengths, out=np.zeros_like(residuals), where=lengths > _ROUNDING
        )
        inner = np.sum((unit @ noisy) * coefficients, axis=-1)
        gram = unit @ unit.swapaxes(1, 2)
        return inner, gram * (coefficients @ coefficients.swapaxes(1, 2))


def _terms(rows: Array, bases: Array) -> Array:
    coefficients = rows @ bases
    residuals = coefficients @ bases.swapaxes(-2, -1)
    np.subtract(rows, residuals, out=residuals)
    coefficients *= _inverse_lengths(residuals, _ROUNDING)
    return np.asarray(residuals.swapaxes(-2, -1) @ coefficients)


def reaper_terms(rows: Array, matrices: Array) -> Array:
    """Return each term h_i(P) of few rows for each P, shape (trials, N, D, D)."""
    units = _units(rows, matrices)
    outer = units[..., np.newaxis] * rows[:, np.newaxis]
    return np.asarray((outer + outer.swapaxes(-2, -1)) / 2)


@dataclass(frozen=True)
class Reaper(Objective):
    """REAPER as a part of a descent: points are matrices, and their average counts.

    Parameters
    ----------
    diagonal_ratio : float
        How many times the deviation of the noise above the diagonal is that on it.
    """

    diagonal_ratio: Positive = _ENSEMBLE_RATIO

    space: ClassVar[Space] = "matrices"
    replaced: ClassVar[Replaced] = "orthogonal"
    norm_ratio: ClassVar[float] = _ENSEMBLE_RATIO

    @property
    def sensitivity(self) -> float:
        """By how much a sum moves under REPLACE_ONE, in its coordinates."""
        return max(1.0, sqrt(2) / self.diagonal_ratio)

    def point_size(self, dimension: int, n_components: int) -> int:
        return dimension**2

    def shape(self, dimension: int, n_components: int) -> tuple[int, ...]:
        return (dimension * (dimension + 1) // 2,)

    def term_sum(self, rows: Array, points: Array) -> Array:
        shared = rows.ndim == 2
        count, dimension = rows.shape[-2:]
        total = np.zeros(points.shape)
        for some in slices(len(points), _WORK // max(1, count * dimension)):
            for part in slices(count, _WORK // dimension):
                batch = rows[part] if shared else rows[some, part]
                units = _units(batch, points[some])
                total[some] += units.swapaxes(-2, -1) @ batch
        total += total.swapaxes(-2, -1).copy()
        total /= 2
        return total

    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        terms = self.flattened(reaper_terms(rows, points))
        inner = (terms @ noisy[..., np.newaxis])[..., 0]
        return inner, terms @ terms.swapaxes(1, 2)

    def flattened(self, sums: Array) -> Array:
        dimension = sums.shape[-1]
        scaled = sums.copy()
        scaled[..., range(dimension), range(dimension)] /= self.diagonal_ratio
        flat = scaled.reshape(*sums.shape[:-2], dimension**2)
        return np.asarray(flat[..., _upper(dimension)])

    def unflattened(self, values: Array, dimension: int) -> Array:
        entries = np.zeros((*values.shape[:-1], dimension**2))
        entries[..., _upper(dimension)] = values
        # The diagonal is counted twice below.
        entries[..., :: dimension + 1] *= self.diagonal_ratio / 2
        matrices = entries.reshape(*values.shape[:-1], dimension, dimension)
        return np.asarray(matrices + matrices.swapaxes(-2, -1))

    def followed(self, points: Iterator[Array]) -> Iterator[Array]:
        """Yield P_0, then averages of P_1, ..., P_k, each overwritten by the next."""
        first = next(points)
        yield first
        average = np.zeros(first.shape)
        for place, matrices in enumerate(points, start=1):
            average += (matrices - average) / place
            yield average

    def bases(self, followed: Array, n_components: int) -> Array:
        return top_components(followed, n_components)


@cache
def _upper(dimension: int) -> NDArray[np.intp]:
    """Return where the upper triangle of a matrix is among its entries, row by row."""
    return np.flatnonzero(np.tri(dimension).T)


def _units(rows: Array, matrices: Array) -> Array:
    """Return u, or 0 where there is none."""
    residuals = rows @ matrices
    np.subtract(rows, residuals, out=residuals)
    residuals *= _inverse_lengths(residuals, _REAPER_ROUNDING)
    return np.asarray(residuals)


def _inverse_lengths(residuals: Array, rounding: float) -> Array:
    """Return 1/||Q x||, or 0 for what is rounding, shape (..., 1)."""
    lengths = np.sqrt(np.einsum("...d,...d->...", residuals, residuals))
    there = lengths > rounding
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=there)
    return np.asarray(scale[..., np.newaxis])
