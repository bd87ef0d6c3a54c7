"""Terms: which draws are part of each entry of an array, and how much of them.

Most arrays with noise are looked at without anybody asking for their terms one by one.
So these are written out when they are asked for, and until then known by what they are:
a *block* of draws, or an *image* of fewer numbers with noise.

An image is A n + b, where n is an array with noise, A an ordinary linear map without a
kernel, and b ordinary numbers: the difference of a noisy vector and every row of a
matrix, or its product with a tall matrix. Whoever knows A and b learns as much from it
as from n. So it is n that the code looks at if it looks at an image: the noisy value
then does not change its shape, or its scale, with ordinary numbers that come after it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy import full  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import DrawBlock

__all__ = ["Image", "Terms", "no_kernel"]

_Written: TypeAlias = tuple[NDArray[np.intp], Array]

_ENOUGH = 4  # rows that are tried first, in multiples of the columns
_SMALLEST = 1e-9  # relative eigenvalue of A^T A, of what counts as without a kernel


@dataclass(frozen=True, eq=False, slots=True)
class Image:
    """What an array is a linear image of.

    Parameters
    ----------
    origin : Tracked
        The array with noise, which may have changed since.
    source : Tracked
        A copy of it as it was.
    apply : callable
        The linear map, of arrays that are like the source. What it returns may be of
        fewer entries, each of which stands for many.
    injective : callable
        Says whether it has no kernel.
    """

    origin: Any
    source: Any
    apply: Callable[[Array], Array]
    injective: Callable[[], bool]


class Terms:
    """Which draws are part of each entry of an array; they never change.

    Parameters
    ----------
    index, coef : ndarray, shape (size, m), optional
        An index of -1 is no term.
    make : callable, optional
        Returns both; it is called when one is asked for.
    block : DrawBlock, optional
        Whose draws the entries are,
    factor : float
        so many times over.
    image : Image, optional
    """

    __slots__ = ("_coef", "_index", "_make", "block", "factor", "image")

    def __init__(
        self,
        index: NDArray[np.intp] | None = None,
        coef: Array | None = None,
        *,
        make: Callable[[], _Written] | None = None,
        block: DrawBlock | None = None,
        factor: float = 1.0,
        image: Image | None = None,
    ) -> None:
        self._index, self._coef, self._make = index, coef, make
        self.block, self.factor, self.image = block, factor, image

    @staticmethod
    @lru_cache(maxsize=256)
    def none(size: int) -> "Terms":
        """Return the terms of numbers without noise."""
        return Terms(np.empty((size, 0), dtype=np.intp), np.empty((size, 0)))

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self._index is None or self._index.shape[1] > 0

    @property
    def index(self) -> NDArray[np.intp]:
        return self._written()[0]

    @property
    def coef(self) -> Array:
        return self._written()[1]

    def _written(self) -> _Written:
        if self._index is None or self._coef is None:
            if self._make is not None:
                self._index, self._coef = self._make()
                self._make = None
            elif self.block is not None:
                numbers = self.block.numbers
                self._index = np.arange(numbers.start, numbers.stop).reshape(-1, 1)
                self._coef = full(self._index.shape, self.factor)
        assert self._index is not None
        assert self._coef is not None
        return self._index, self._coef


def no_kernel(matrix: Array) -> bool:
    """Say whether a matrix maps no vector but 0 to 0, by a wide margin.

    Some rows are enough if the map to them alone has no kernel.
    """
    rows, columns = matrix.shape
    if rows < columns:
        return False
    step = max(1, rows // (_ENOUGH * columns))
    return _positive(matrix[::step]) or (step > 1 and _positive(matrix))


def _positive(matrix: Array) -> bool:
    with np.errstate(all="ignore"):
        gram = matrix.T @ matrix
        shift = _SMALLEST * np.trace(gram)
        gram.flat[:: len(gram) + 1] -= shift
        if not (np.isfinite(gram).all() and shift > 0):
            return False
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True
