"""GLAD and REAPER, their gradients, projections onto H; and whether noise is normal.

What descents minimise, in one line each: `dpaudit.algorithms.robust.objectives` has the
formulas, and computes sums of terms only.
"""

import numpy as np
from scipy import stats

from dpaudit.algorithms.robust.geometries import Entropic, Euclidean
from dpaudit.algorithms.robust.objectives import Glad, Reaper

TYPE_I_ERROR = 1e-9


def glad(rows, bases):
    """Return F(V), the mean distance of rows from subspaces, (..., D, r) -> (...)."""
    return reaper(rows, bases @ bases.swapaxes(-2, -1))


def glad_gradient(rows, bases):
    """Return the Riemannian gradient of F, -(1/N) times the sum of all terms."""
    stack = bases.reshape(-1, *bases.shape[-2:])
    return Glad().term_sum(rows, stack).reshape(bases.shape) / -len(rows)


def reaper(rows, matrices):
    """Return G(P), the mean length of (I - P) x, (..., D, D) -> (...)."""
    return np.linalg.norm(rows - rows @ matrices, axis=-1).mean(axis=-1)


def reaper_subgradient(rows, matrices):
    """Return a subgradient of G, -(1/N) times the sum of all terms."""
    stack = matrices.reshape(-1, *matrices.shape[-2:])
    return Reaper().term_sum(rows, stack).reshape(matrices.shape) / -len(rows)


def frobenius_projection(matrices, n_components):
    """Return the nearest points of H in Frobenius norm: a step of length zero."""
    return Euclidean().moved(matrices, 0.0, n_components)[1]


def bregman_projection(logs, n_components):
    """Return the Bregman projections of exp(M) onto H, for the von Neumann entropy."""
    return Entropic().moved(logs, 0.0, n_components)[1]


def looks_standard_normal(values):
    """Test the shape by Kolmogorov and Smirnov, and the scale by the sum of squares.

    Numbers that are independent N(0, 1) fail with probability 1e-9, half for each.
    """
    flat = np.ravel(values)
    tail = stats.chi2(flat.size).cdf(np.sum(flat**2))
    shape = stats.kstest(flat, "norm").pvalue
    return shape > TYPE_I_ERROR / 2 and abs(tail - 0.5) < 0.5 - TYPE_I_ERROR / 4
