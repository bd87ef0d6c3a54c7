r"""GLAD, the sum of distances to a subspace, and the terms of its gradient.

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
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.parts import Objective, Space
from dpaudit.algorithms.shared.bases import Replaced
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.rows import normalise_rows
from dpaudit.validation import check_matrix

__all__ = ["Glad", "spherise"]

_ZERO_RESIDUAL = 1e-12
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


def term_sum(rows: Array, bases: Array) -> Array:
    """Return the sum of the terms g_i(V) for each basis of a stack, (trials, D, r).

    Minus N or B times the gradient of their mean distance.
    """
    if rows.ndim == 3:
        width = max(1, _WORK // max(1, rows[0].size))
        pieces = [
            _terms(rows[first : first + width], bases[first : first + width])
            for first in range(0, len(bases), width)
        ]
        return np.concatenate([np.empty((0, *bases.shape[1:])), *pieces])
    total = np.zeros(bases.shape)
    width = max(1, _WORK // max(1, rows.size))
    for first in range(0, len(bases), width):
        some = slice(first, first + width)
        for part in _parts(rows, len(bases[some])):
            total[some] += _terms(part, bases[some])
    return total


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
        return term_sum(rows, points)

    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        coefficients = rows @ points
        residuals = rows - coefficients @ points.swapaxes(-2, -1)
        lengths = np.linalg.norm(residuals, axis=-1, keepdims=True)
        unit = np.divide(
            residuals,
            lengths,
            out=np.zeros_like(residuals),
            where=lengths > _ZERO_RESIDUAL,
        )
        inner = np.sum((unit @ noisy) * coefficients, axis=-1)
        gram = unit @ unit.swapaxes(1, 2)
        return inner, gram * (coefficients @ coefficients.swapaxes(1, 2))


def _terms(rows: Array, bases: Array) -> Array:
    coefficients = rows @ bases
    residuals = coefficients @ bases.swapaxes(-2, -1)
    np.subtract(rows, residuals, out=residuals)
    lengths = np.sqrt(np.einsum("...d,...d->...", residuals, residuals))
    scale = np.divide(
        1.0, lengths, out=np.zeros_like(lengths), where=lengths > _ZERO_RESIDUAL
    )
    coefficients *= scale[..., np.newaxis]
    return np.asarray(residuals.swapaxes(-2, -1) @ coefficients)


def _parts(rows: Array, trials: int) -> list[Array]:
    """Cut rows into parts whose residuals in that many trials are few."""
    width = max(1, _WORK // (trials * rows.shape[1]))
    return [rows[first : first + width] for first in range(0, len(rows), width)]
