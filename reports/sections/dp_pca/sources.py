"""Rows that are drawn when they are read, so that any number of them can be measured.

A `RowSource` is n rows in blocks, each from a random stream of its own: whoever reads a
block, and however often, finds the same rows. Of long streams a few blocks are held,
so memory does not grow with n.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from dpaudit.algorithms.streaming.moment_products import Where
from dpaudit.algorithms.streaming.moments import StreamedMoments
from dpaudit.arrays import Array
from dpaudit.datasets import spiked_gaussian
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.gram import gram
from dpaudit.streams import stream

__all__ = ["FIRST", "REST", "RowSource", "example", "gaussian"]

FIRST = 2**0.25  # as in `dpaudit.reports.sections.streaming.measures`
REST = FIRST / 4

_BLOCK = 2**15  # rows
_HELD = 2**25  # numbers, of the blocks that are held


@dataclass(eq=False)
class RowSource:
    """Rows of one law, and the direction that is looked for.

    Parameters
    ----------
    count : int
        n.
    truth : ndarray, shape (d,)
        v, of length 1.
    square : float
        The mean squared length of a row, which is public.
    draw : callable
        Takes a number of rows and a generator.
    seed : int
    key : tuple of int
        Names the streams of the blocks.
    """

    count: int
    truth: Array
    square: float
    draw: Callable[[int, np.random.Generator], Array]
    seed: int
    key: tuple[int, ...]
    _kept: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return len(self.truth)

    @property
    def row_norm(self) -> float:
        """R: to which mechanisms that need a bound scale longer rows down."""
        return sqrt(self.square)

    def blocks(self) -> Iterator[Array]:
        """Yield all rows in order, shape (some, d)."""
        for i in range(-(-self.count // _BLOCK)):
            yield self._block(i)

    def moments(self, row_norm: float | None) -> StreamedMoments:
        """Return the stream of x x^T that the algorithms of the family read."""
        return StreamedMoments(
            self._read, count=self.count, dimension=self.dimension, row_norm=row_norm
        )

    def second_moment(self) -> Array:
        """Return the sum of x x^T over rows that are scaled down to R."""
        return gram(self.blocks(), row_norm=self.row_norm).moment

    def _read(self, where: Where) -> Array:
        if not isinstance(where, slice):
            return self._all()[where]
        first, last = where.start // _BLOCK, (where.stop - 1) // _BLOCK
        parts = []
        for i in range(first, last + 1):
            begin = max(where.start - i * _BLOCK, 0)
            parts.append(self._block(i)[begin : where.stop - i * _BLOCK])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _all(self) -> Array:
        """Return all rows, for what reads them in an order of its own."""
        if -1 not in self._kept:
            self._kept = {-1: np.concatenate(list(self.blocks()))}
        return self._kept[-1]

    def _block(self, i: int) -> Array:
        if i not in self._kept:
            if len(self._kept) >= max(2, _HELD // (_BLOCK * self.dimension)):
                del self._kept[next(iter(self._kept))]
            size = min(_BLOCK, self.count - i * _BLOCK)
            self._kept[i] = self.draw(size, stream(self.seed, *self.key, i))
        return self._kept[i]


def random_direction(d: int, rng: np.random.Generator) -> Array:
    """Return a uniformly random unit vector, shape (d,)."""
    vector = rng.standard_normal(d)
    return np.asarray(vector / np.linalg.norm(vector))


def gaussian(
    count: int,
    d: int,
    seed: int,
    key: tuple[int, ...],
    *,
    first: float = FIRST,
    rest: float = REST,
) -> RowSource:
    """Return Gaussian rows with the eigenvalues first, rest, ..., rest."""
    v = random_direction(d, stream(seed, *key))

    def draw(size: int, rng: np.random.Generator) -> Array:
        return spiked_gaussian(
            size,
            d,
            spikes=[first - rest],
            noise=sqrt(rest),
            basis=v[:, np.newaxis],
            rng=rng,
        ).rows

    return RowSource(count, v, first + (d - 1) * rest, draw, seed, key)


def example(
    count: int, d: int, noise: float, seed: int, key: tuple[int, ...]
) -> RowSource:
    """Return rows of Example 4.1: v or -v, with a deviation in every entry."""
    v = random_direction(d, stream(seed, *key))

    def draw(size: int, rng: np.random.Generator) -> Array:
        return signal_in_noise(size, d, noise=noise, direction=v, rng=rng).rows

    return RowSource(count, v, 1 + d * noise**2, draw, seed, key)
