r"""The steps of DP-PCA towards one component, for many trials side by side.

See `dpaudit.algorithms.streaming.minibatch_pca` for what they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.streaming.gradients import ProductGradients
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.moments import Moments
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.arrays import Array
from dpaudit.errors import InputError

__all__ = ["Component", "PrivateSteps", "RowBatch", "rebatched"]


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Consecutive items of a stream.

    Parameters
    ----------
    moments : Moments
    first, size : int
        The number of the first item, and B.
    """

    moments: Moments
    first: int
    size: int

    @property
    def half(self) -> int:
        """How many items the first half has; the second one has the rest."""
        return self.size // 2


@dataclass(frozen=True, eq=False)
class Component:
    """What the steps of a number of trials have come to.

    Parameters
    ----------
    vectors : ndarray, shape (trials, d)
        Unit vectors w_T, or NaN for bottom.
    scales : ndarray, shape (trials, T)
        Lambda_t, NaN for bottom and 0 for a batch without variance.
    means : ndarray, shape (trials, T, d)
        g_t, NaN for bottom.
    """

    vectors: Array
    scales: Array
    means: Array


@dataclass(frozen=True)
class PrivateSteps:
    """A way to make steps.

    Parameters
    ----------
    scale_finder : TopEigenvalue
    mean : MeanEstimation
    scale_factor : float
        What Lambda_t is multiplied by for the mean.
    zeta : float
        The probability of failure of each of both estimates in a step.
    """

    scale_finder: TopEigenvalue
    mean: MeanEstimation
    scale_factor: float
    zeta: float

    def halves(
        self, batch: RowBatch, vectors: Array, deflated: Array | None
    ) -> tuple[ProductGradients, ProductGradients]:
        """Return the gradients that the scale is estimated from, and the mean."""
        first, half = batch.first, batch.half
        return (
            ProductGradients(batch.moments, first, half, vectors, deflated),
            ProductGradients(
                batch.moments, first + half, batch.size - half, vectors, deflated
            ),
        )

    def component(
        self,
        batches: Iterable[RowBatch],
        rates: Array,
        start: Array,
        *,
        deflated: Array | None = None,
        rng: np.random.Generator,
    ) -> Component:
        """Return the component that T steps lead to.

        Parameters
        ----------
        batches : iterable of RowBatch
            One for every step.
        rates : ndarray, shape (T,)
            eta_t.
        start : ndarray, shape (trials, d)
            w_0, unit vectors; orthogonal to what is deflated.
        deflated : ndarray, shape (trials, d, j), optional
            The components that were found before. NaN in a trial makes all of it NaN.
        rng : numpy.random.Generator
        """
        failed = np.zeros(len(start), dtype=bool)
        if deflated is not None:
            failed |= np.isnan(deflated).any(axis=(1, 2))
            deflated = np.where(failed[:, np.newaxis, np.newaxis], 0.0, deflated)
        scales = np.empty((len(start), len(rates)))
        means = np.empty((len(start), len(rates), start.shape[1]))
        vectors = start
        for step, (eta, batch) in enumerate(zip(rates, batches, strict=True)):
            one, two = self.halves(batch, vectors, deflated)
            scale = self.scale_finder.estimate(one, zeta=self.zeta, rng=rng)
            scale[failed] = np.nan
            mean = self.mean.estimate(
                two, self.scale_factor * scale, zeta=self.zeta, rng=rng
            )
            scales[:, step], means[:, step] = scale, mean
            moved = vectors + eta * _orthogonal(mean, deflated)
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.linalg.norm(moved, axis=1)
                failed |= ~(np.isfinite(lengths) & (lengths > 0))
                # Trials that have failed go on with what they had, to no effect.
                moved /= np.where(failed, 1.0, lengths)[:, np.newaxis]
            vectors = np.where(failed[:, np.newaxis], vectors, moved)
        return Component(_finished(vectors, failed), scales, means)


def rebatched(blocks: Iterable[ArrayLike], size: int, count: int) -> Iterator[Array]:
    """Yield the items of blocks in batches, in one buffer that is used again.

    Parameters
    ----------
    blocks : iterable of array_like
        Arrays whose first axis runs over items.
    size : int
        Of a batch.
    count : int
        How many items there must be in all. The last count % size are left out.

    Raises
    ------
    InputError
        If there are more or fewer, or blocks have items of different shapes.
    """
    buffer: Array | None = None
    filled = seen = 0
    for block in blocks:
        items = np.asarray(block, dtype=np.float64)
        if buffer is None:
            buffer = np.empty((size, *items.shape[1:]))
        if items.ndim < 2 or items.shape[1:] != buffer.shape[1:]:
            raise InputError(
                "blocks must be arrays of rows or matrices of one shape, got shape "
                f"{items.shape}"
            )
        seen += len(items)
        while len(items) and seen <= count:
            taken = min(size - filled, len(items))
            buffer[filled : filled + taken] = items[:taken]
            items, filled = items[taken:], filled + taken
            if filled == size:
                yield buffer
                filled = 0
    if seen != count:
        raise InputError(f"blocks must have {count} rows in all, got {seen}")


def _orthogonal(vectors: Array, deflated: Array | None) -> Array:
    """Return (I - V V^T) v for every trial."""
    if deflated is None:
        return vectors
    inner = vectors[:, np.newaxis] @ deflated
    return vectors - (inner @ deflated.swapaxes(1, 2))[:, 0]


def _finished(vectors: Array, failed: NDArray[np.bool_]) -> Array:
    """Return vectors whose largest entry is positive, NaN for those that failed."""
    peaks = np.abs(vectors).argmax(axis=1)[:, np.newaxis]
    signs = np.where(np.take_along_axis(vectors, peaks, axis=1) < 0, -1.0, 1.0)
    return np.where(failed[:, np.newaxis], np.nan, vectors * signs)
