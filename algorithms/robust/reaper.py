r"""REAPER, the convex relaxation of GLAD, and the terms of its subgradient.

Source: Lerman, McCoy, Tropp, Zhang, *Robust computation of linear models by convex
relaxation*, FoCM 2015; Maunu, Yu, Lerman, MSML 2022, section 4.3. For rows on the unit
sphere and P in H (`dpaudit.algorithms.robust.fantope`),

.. math:: G(P) = \frac1N \sum_i \|(I - P) x_i\|, \quad
    \partial G(P) \ni -\frac1N \sum_i h_i(P), \quad
    h_i(P) = \frac{u_i x_i^T + x_i u_i^T}{2}, \quad
    u_i = \frac{(I - P) x_i}{\|(I - P) x_i\|}.

The print's (4.1) is the sum; the objective is the mean, and so is what is used here.
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
short. That is what random batches need (`dpaudit.algorithms.robust.subsampling`).

In floating point: residuals of length <= 1e-9 are rounding, and count as zero.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.glad import Array
from dpaudit.errors import InputError
from dpaudit.stacks import check_symmetric
from dpaudit.validation import check_matrix

__all__ = ["reaper", "reaper_subgradient", "reaper_term_sum", "reaper_terms"]

_ZERO_RESIDUAL = 1e-9
_WORK = 2**21  # entries of the residuals that are held at a time


def reaper(rows: ArrayLike, matrices: ArrayLike) -> Array:
    """Return G(P), the mean length of (I - P) x.

    Parameters
    ----------
    rows : array_like, shape (N, D)
        Taken as they are; see `dpaudit.algorithms.robust.glad.spherise`.
    matrices : array_like, shape (..., D, D)
        P, symmetric.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> float(reaper([[1.0, 0.0], [0.0, 1.0]], np.diag([1.0, 0.25])))
    0.375
    """
    points, stack, leading = _stacked(rows, matrices)
    width = max(1, _WORK // points.shape[1])
    total = np.zeros(len(stack))
    for place, matrix in enumerate(stack):
        for first in range(0, len(points), width):
            part = points[first : first + width]
            total[place] += np.linalg.norm(part - part @ matrix, axis=1).sum()
    return np.asarray(total.reshape(leading) / len(points))


def reaper_subgradient(rows: ArrayLike, matrices: ArrayLike) -> Array:
    """Return a subgradient of G, -(1/N) times the sum of all terms.

    Parameters
    ----------
    rows : array_like, shape (N, D)
    matrices : array_like, shape (..., D, D)
        P, symmetric.

    Returns
    -------
    ndarray, shape (..., D, D)
        Symmetric; of Frobenius norm at most 1 for spherised rows.

    Examples
    --------
    >>> reaper_subgradient([[1.0, 0.0], [0.0, 1.0]], np.diag([1.0, 0.25]))
    array([[-0. , -0. ],
           [-0. , -0.5]])
    """
    points, stack, _ = _stacked(rows, matrices)
    gradient = reaper_term_sum(points, stack) / -len(points)
    return np.asarray(gradient.reshape(np.shape(matrices)))


def reaper_term_sum(rows: Array, matrices: Array) -> Array:
    """Return the sum of the terms h_i(P) for each P of a stack; see the module.

    This is the inner loop of every descent, and checks nothing.

    Parameters
    ----------
    rows : ndarray, shape (N, D) or (trials, B, D)
        The same rows for all trials, or a batch for each; rows of zeros add nothing.
    matrices : ndarray, shape (trials, D, D)
        Symmetric.

    Returns
    -------
    ndarray, shape (trials, D, D)
        Symmetric.
    """
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
    """Return each term h_i(P) for each P of a stack, of few rows.

    Parameters
    ----------
    rows : ndarray, shape (N, D)
    matrices : ndarray, shape (trials, D, D)
        Symmetric.

    Returns
    -------
    ndarray, shape (trials, N, D, D)
        Symmetric.
    """
    units = _units(rows, matrices)
    outer = units[..., np.newaxis] * rows[:, np.newaxis]
    return np.asarray((outer + outer.swapaxes(-2, -1)) / 2)


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


def _stacked(
    rows: ArrayLike, matrices: ArrayLike
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return rows, matrices with one leading axis, and the axes they had."""
    points = check_matrix("rows", rows, min_rows=1)
    stack = check_symmetric("matrices", matrices)
    if stack.shape[-1] != points.shape[1]:
        raise InputError(
            f"matrices must have {points.shape[1]} columns, as rows have, "
            f"got shape {stack.shape}"
        )
    return points, stack.reshape(-1, *stack.shape[-2:]), stack.shape[:-2]
