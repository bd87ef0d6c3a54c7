r"""Products of a stream of d x d matrices with vectors: the class `Moments`.

See `dpaudit.algorithms.streaming.moments` for the streams that there are.

Clipping, to ||A_i V||_F <= beta for orthonormal V, scales the whole product:
clip(G) = G min(1, beta/||G||_F). For rows ||x x^T V||_F = ||x|| ||V^T x||, so
clip(x x^T V) = y y^T V for a y = s x with 0 <= s <= 1: a clipped product is that of a
shorter row.

Sensitivity of one sum, for every V with orthonormal columns that does not depend on the
batch: one A_i is replaced by another one, so the sum moves by ||clip(A V) -
clip(A' V)||_F, which is at most

- 2 beta for any matrices. Attained by A = beta I/sqrt k and A' = -A whatever V is; with
  rows, A = x x^T, it is approached for d > k.
- R^2 for rows of norm at most R and k = 1, and sqrt 2 R^2 for k >= 2: a clipped product
  is that of a shorter row, and for two rows in the ball see
  `dpaudit.algorithms.subspace.power_method`. Attained, as said there.

`batch_sensitivity` is the smaller one; with beta >= R^2 nothing is ever clipped.

All trials (independent runs, each with its own w) are done at once: for a batch that
they share the products are two matrix multiplications, of (B, d) with (d, trials) and
of (d, B) with (B, trials); means of unclipped products over more trials than d go by
way of the mean of the batch's matrices. Means are accumulated over parts of a batch, so
that what is held besides the batch and the result is at most about 32 MiB.
"""

from abc import ABC, abstractmethod
from math import inf, sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.shared.bases import slices
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_norm, check_positive

__all__ = ["Moments", "Where", "batch_sensitivity"]

Where: TypeAlias = slice | NDArray[np.intp]

WORK = 2**21
"""Entries of a temporary array: 16 MiB."""


class Moments(ABC):
    """A stream of n matrices of order d that can be applied to vectors.

    Batches are slices of it, which all trials share.

    Parameters
    ----------
    count : int
        n, the length of the stream, at least 1.
    dimension : int
        d, the order of the matrices, at least 1.
    """

    holds_rows: bool
    """Whether A_i = x_i x_i^T, and `read` returns the x_i."""

    def __init__(self, count: int, dimension: int) -> None:
        self.count: Final = check_count("count", count)
        self.dimension: Final = check_count("dimension", dimension)

    @abstractmethod
    def read(self, where: Where) -> Array:
        """Return part of the stream: rows (..., d), or matrices (..., d, d).

        A slice has a start and a stop, and no step; an index array may have any shape.
        """

    def apply(self, where: slice, vectors: Array) -> Array:
        """Return A_i w for every i of a batch and every trial's own w.

        Shape (trials, d) -> (trials, B, d); the caller keeps it from being too large.
        """
        vectors = self._check_vectors(vectors, 2)
        part = self.read(self._check_where(where))
        if self.holds_rows:
            return np.asarray((vectors @ part.T)[:, :, np.newaxis] * part)
        products = vectors @ part.reshape(-1, self.dimension).T
        return products.reshape(len(vectors), *part.shape[:2])

    def mean_apply(
        self, where: slice, vectors: Array, *, clip: float | None = None
    ) -> Array:
        """Return the mean of A_i w over a batch, for every trial's own w, (trials, d).

        As `mean_block` for one column.
        """
        vectors = self._check_vectors(vectors, 2)
        return self.mean_block(where, vectors[:, :, np.newaxis], clip=clip)[:, :, 0]

    def mean_block(
        self, where: slice, bases: Array, *, clip: float | None = None
    ) -> Array:
        """Return the mean of A_i V over a batch, for every trial's own V.

        Parameters
        ----------
        where : slice
            A batch, not empty, and in the stream.
        bases : ndarray, shape (trials, d, k)
        clip : float, optional
            The largest Frobenius norm that a product A_i V may have; larger ones are
            scaled down to it before the mean is taken.
        """
        bases = self._check_vectors(bases, 3)
        where = self._check_where(where)
        bound = np.inf if clip is None else check_positive("clip", clip)
        return self._sum(where, bases, bound) / (where.stop - where.start)

    def _sum(self, where: slice, bases: Array, bound: float) -> Array:
        trials, d, k = bases.shape
        width = max(trials * k, d) * (1 if self.holds_rows else d)
        flat = bases.transpose(1, 0, 2).reshape(d, trials * k)
        total = np.zeros((d, trials * k))
        for some in slices(where.stop - where.start, WORK // width):
            first = where.start
            part = self.read(slice(first + some.start, first + some.stop))
            if self.holds_rows and bound == np.inf and trials * k > d:
                # For many vectors the sum of the x x^T costs less than going by row.
                total += (part.T @ part) @ flat
            elif self.holds_rows:
                weights = part @ flat
                _clip_rows(weights.reshape(len(part), trials, k), part, bound)
                total += part.T @ weights
            elif bound == np.inf:
                total += part.sum(axis=0) @ flat
            else:
                products = (part.reshape(-1, d) @ flat).reshape(len(part), d, trials, k)
                norms = np.sqrt(np.einsum("bdtk,bdtk->bt", products, products))
                scales = bound / np.maximum(norms, bound)
                total += np.einsum("bdtk,bt->dtk", products, scales).reshape(d, -1)
        return total.reshape(d, trials, k).transpose(1, 0, 2)

    def _check_vectors(self, vectors: Array, axes: int) -> Array:
        shape = np.shape(vectors)
        if len(shape) != axes or shape[1] != self.dimension:
            wanted = "(trials, d)" if axes == 2 else "(trials, d, k)"
            raise InputError(
                f"vectors must have shape {wanted} with d = {self.dimension}, "
                f"got shape {shape}"
            )
        return np.asarray(vectors, dtype=np.float64)

    def _check_where(self, where: slice) -> slice:
        known = isinstance(where, slice)
        first, last, step = where.indices(self.count) if known else (0, 0, 1)
        if step != 1 or first >= last:
            raise InputError(
                f"where must be a slice in 0 .. {self.count}, of one or more and in "
                f"order, got {where!r}"
            )
        return slice(first, last)


def own_products(part: Array, vectors: Array, clip: float | None = None) -> Array:
    """Return A w, (trials, d), for one A of every trial, scaled down to a clip.

    The A are what `Moments.read` returns for one index per trial.
    """
    if part.ndim == 2:
        products = np.einsum("td,td->t", part, vectors)[:, np.newaxis] * part
    else:
        products = (part @ vectors[..., np.newaxis])[..., 0]
    if clip is not None:
        norms = np.sqrt(np.einsum("td,td->t", products, products))
        products *= (clip / np.maximum(norms, clip))[:, np.newaxis]
    return np.asarray(products)


def batch_sensitivity(
    n_components: int, *, row_norm: float | None = None, clip: float | None = None
) -> float:
    """Return how far the sum of a batch's clipped products moves, in Frobenius norm.

    Parameters
    ----------
    n_components : int
        k.
    row_norm : float, optional
        R, for rows; without it the A_i may be any matrices.
    clip : float, optional
        beta. One of the two must be given.
    """
    unit_of(row_norm, clip)
    of_clip = inf if clip is None else 2 * clip
    several = check_count("n_components", n_components) > 1
    of_rows = inf if row_norm is None else row_norm**2 * (sqrt(2) if several else 1)
    return min(of_clip, of_rows)


def unit_of(row_norm: float | None, clip: float | None) -> float:
    """Return the largest norm of a product A_i w, the inverse unit of step sizes."""
    if row_norm is None and clip is None:
        raise InputError("clip must be given where there is no row_norm, got None")
    of_rows = inf if row_norm is None else check_norm("row_norm", row_norm) ** 2
    return min(of_rows, inf if clip is None else check_positive("clip", clip))


def _clip_rows(weights: Array, rows: Array, bound: float) -> None:
    """Scale V^T x, (B, trials, k), in place, so that ||x|| ||V^T x|| <= bound."""
    if bound == np.inf:
        return
    lengths = np.sqrt(np.einsum("bd,bd->b", rows, rows))[:, np.newaxis]
    norms = lengths * np.sqrt(np.einsum("btk,btk->bt", weights, weights))
    weights *= (bound / np.maximum(norms, bound))[..., np.newaxis]
