r"""REAPER, the convex relaxation of GLAD, and the terms of its subgradient.

Source: Lerman, McCoy, Tropp, Zhang, *Robust computation of linear models by convex
relaxation*, FoCM 2015; Maunu, Yu, Lerman, MSML 2022, section 4.3. For rows on the unit
sphere and P in H (`dpaudit.algorithms.robust.fantope`),

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
matrices are held for each trial: D is in the hundreds, or at most a few thousand. (At
D = 10,000, the genotypes of `dpaudit.datasets.genotypes`, a step would be 1000 times
the half second that it takes at D = 1000, and the matrices 6 GB; run those at 2000.)

In floating point: residuals of length <= 1e-9 are rounding, and count as zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from dpaudit.algorithms.robust.parts import Objective, Space
from dpaudit.algorithms.shared.bases import Replaced
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.subspace import top_components

__all__ = ["Reaper"]

_ENSEMBLE_RATIO = sqrt(2)  # of the Gaussian orthogonal ensemble
_ZERO_RESIDUAL = 1e-9
_WORK = 2**21  # entries of the residuals that are held at a time


def reaper_term_sum(rows: Array, matrices: Array) -> Array:
    """Return the sum of the terms h_i(P) for each P of a stack, (trials, D, D)."""
    shared = rows.ndim == 2
    count, dimension = rows.shape[-2:]
    width = max(1, _WORK // max(1, count * dimension))
    total = np.zeros(matrices.shape)
    height = max(1, _WORK // dimension)
    for first in range(0, len(matrices), width):
        some = slice(first, first + width)
        for top in range(0, count, height):
            part = slice(top, top + height)
            batch = rows[part] if shared else rows[some, part]
            units = _units(batch, matrices[some])
            total[some] += units.swapaxes(-2, -1) @ batch
    total += total.swapaxes(-2, -1).copy()
    total /= 2
    return total


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
        return reaper_term_sum(rows, points)

    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        terms = self.flattened(reaper_terms(rows, points))
        inner = (terms @ noisy[..., np.newaxis])[..., 0]
        return inner, terms @ terms.swapaxes(1, 2)

    def flattened(self, sums: Array) -> Array:
        dimension = sums.shape[-1]
        scaled = sums.copy()
        scaled[..., range(dimension), range(dimension)] /= self.diagonal_ratio
        return np.asarray(scaled[..., *np.triu_indices(dimension)])

    def unflattened(self, values: Array, dimension: int) -> Array:
        matrices = np.zeros((*values.shape[:-1], dimension, dimension))
        matrices[..., *np.triu_indices(dimension)] = values
        # The diagonal is counted twice below.
        matrices[..., range(dimension), range(dimension)] *= self.diagonal_ratio / 2
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


def _units(rows: Array, matrices: Array) -> Array:
    """Return u, or 0 where there is none."""
    residuals = rows @ matrices
    np.subtract(rows, residuals, out=residuals)
    lengths = np.sqrt(np.einsum("...d,...d->...", residuals, residuals))
    scale = np.divide(
        1.0, lengths, out=np.zeros_like(lengths), where=lengths > _ZERO_RESIDUAL
    )
    residuals *= scale[..., np.newaxis]
    return np.asarray(residuals)
