"""The gradients A_i w of consecutive items of a stream, for many w, read in parts.

Algorithms 4 and 5 of DP-PCA look at the gradients of half a batch more than once. They
are never all held: each look reads them again, in parts of at most 4 MiB for all
trials together.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from dpaudit.algorithms.streaming.moments import Moments
from dpaudit.arrays import Array

__all__ = ["FixedGradients", "Gradients", "ProductGradients"]


_WORK = 2**19  # numbers in a part


class Gradients(ABC):
    """Vectors g_1, ..., g_m of length d, of each of a number of trials.

    Parameters
    ----------
    trials, count, dimension : int
        All at least 1; the count is m.
    """

    def __init__(self, trials: int, count: int, dimension: int) -> None:
        self.trials, self.count, self.dimension = trials, count, dimension

    @abstractmethod
    def read(self, first: int, last: int) -> Array:
        """Return g_first, ..., g_(last - 1), shape (trials, last - first, d)."""

    def parts(self, last: int | None = None, multiple: int = 1) -> Iterator[Array]:
        """Yield all up to `last`, shape (trials, some, d), in order.

        Parameters
        ----------
        last : int, optional
            A multiple of `multiple`. Default: m.
        multiple : int
            All parts have a multiple of that many.
        """
        last = self.count if last is None else last
        each = multiple * self.trials * self.dimension
        step = multiple * max(1, _WORK // each)
        for first in range(0, last, step):
            yield self.read(first, min(last, first + step))


class FixedGradients(Gradients):
    """Vectors that are the same in one trial as they are in the data.

    Parameters
    ----------
    vectors : ndarray, shape (m, d)
    """

    def __init__(self, vectors: Array) -> None:
        super().__init__(1, *vectors.shape)
        self._vectors = vectors

    def read(self, first: int, last: int) -> Array:
        return self._vectors[np.newaxis, first:last]


class ProductGradients(Gradients):
    """The products A_i w of consecutive items of a stream, for every trial's own w.

    Parameters
    ----------
    moments : Moments
    first, count : int
        Which items: A_first and the count - 1 after it, numbered from 0.
    vectors : ndarray, shape (trials, d)
        The w.
    deflated : ndarray, shape (trials, d, j), optional
        Orthonormal columns V; the vectors are then (I - V V^T) A_i w.
    """

    def __init__(
        self,
        moments: Moments,
        first: int,
        count: int,
        vectors: Array,
        deflated: Array | None = None,
    ) -> None:
        super().__init__(len(vectors), count, moments.dimension)
        self._moments, self._first = moments, first
        self._vectors, self._deflated = vectors, deflated

    def read(self, first: int, last: int) -> Array:
        where = slice(self._first + first, self._first + last)
        products = self._moments.apply(where, self._vectors)
        if self._deflated is not None:
            inner = products @ self._deflated
            products -= inner @ self._deflated.swapaxes(-2, -1)
        return products
