"""GLAD and REAPER, their gradients, and projections onto H, at one point or a stack.

What descents minimise, in one line each: `dpaudit.algorithms.robust.glad` and
`dpaudit.algorithms.robust.reaper` have the formulas, and compute sums of terms only.
"""

import numpy as np

from dpaudit.algorithms.robust.fantope import Entropic, Euclidean
from dpaudit.algorithms.robust.glad import term_sum
from dpaudit.algorithms.robust.reaper import reaper_term_sum

__all__ = [
    "bregman_projection",
    "frobenius_projection",
    "glad",
    "glad_gradient",
    "reaper",
    "reaper_subgradient",
]


def glad(rows, bases):
    """Return F(V), the mean distance of rows from subspaces, (..., D, r) -> (...)."""
    return reaper(rows, bases @ bases.swapaxes(-2, -1))


def glad_gradient(rows, bases):
    """Return the Riemannian gradient of F, -(1/N) times the sum of all terms."""
    stack = bases.reshape(-1, *bases.shape[-2:])
    return term_sum(rows, stack).reshape(bases.shape) / -len(rows)


def reaper(rows, matrices):
    """Return G(P), the mean length of (I - P) x, (..., D, D) -> (...)."""
    return np.linalg.norm(rows - rows @ matrices, axis=-1).mean(axis=-1)


def reaper_subgradient(rows, matrices):
    """Return a subgradient of G, -(1/N) times the sum of all terms."""
    stack = matrices.reshape(-1, *matrices.shape[-2:])
    return reaper_term_sum(rows, stack).reshape(matrices.shape) / -len(rows)


def frobenius_projection(matrices, n_components):
    """Return the nearest points of H in Frobenius norm: a step of length zero."""
    return Euclidean().moved(matrices, 0.0, n_components)[1]


def bregman_projection(logs, n_components):
    """Return the Bregman projections of exp(M) onto H, for the von Neumann entropy."""
    return Entropic().moved(logs, 0.0, n_components)[1]
