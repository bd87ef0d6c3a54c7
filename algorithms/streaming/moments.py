r"""The stream A_1, ..., A_n of d x d matrices that Oja's algorithm and DP-PCA read.

Liu et al., NeurIPS 2022, section 2: the data are matrices A_i in R^(d x d), not
necessarily symmetric, whose mean is the covariance; usually A_i = x_i x_i^T for rows
x_i. The algorithms of the family need the products A_i w only: for rows (x_i^T w) x_i,
and no d x d matrix is formed but where that is cheaper. `as_moments` makes a stream of
an array of rows, or of a stack of matrices; a `StreamedMoments` is a function that
reads any part of either, so that no more than one batch need be in memory.

How they are applied to vectors, and clipping: `Moments`, in
`dpaudit.algorithms.streaming.moment_products`.

`Gradients` are the A_i w of consecutive items, for many w. Algorithms 4 and 5 of DP-PCA
look at those of half a batch more than once. They are never all held: each look reads
them again, in parts of at most 4 MiB for all trials together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import InputError, Relation
from dpaudit.algorithms.shared.bases import Batched, slices
from dpaudit.algorithms.streaming.moment_products import (
    WORK,
    Moments,
    Where,
    batch_sensitivity,
    unit_of,
)
from dpaudit.arrays import Array
from dpaudit.rows import clip_into
from dpaudit.validation import Checked, check_norm, check_numbers

__all__ = [
    "FixedGradients",
    "Gradients",
    "Moments",
    "ProductGradients",
    "StreamedMoments",
    "as_moments",
]

Stream: TypeAlias = ArrayLike | Moments
"""Rows x_i, shape (n, d), for x_i x_i^T; or matrices; or what reads either."""

_LARGEST = 2.0**1000
_PART = 2**19  # numbers in a part of the gradients


class HeldMoments(Moments):
    """The stream of an array, which is not copied; see `as_moments`."""

    def __init__(self, data: ArrayLike, row_norm: float | None = None) -> None:
        held = check_numbers("data", data, "an array of numbers")
        self.holds_rows = held.ndim != 3
        held = _numbers("data", held, 2 if self.holds_rows else 3)
        if not self.holds_rows and row_norm is not None:
            raise InputError(
                "data must be rows, shape (n, d), where a row_norm bounds them, got "
                f"shape {held.shape}"
            )
        if not self.holds_rows and held.shape[-1] != held.shape[-2]:
            raise InputError(f"data must be square matrices, got shape {held.shape}")
        super().__init__(*held.shape[:2])
        self._norm = None if row_norm is None else check_norm("row_norm", row_norm)
        _check_entries("data", held, squares=self._norm is None)
        self._held = held

    def read(self, where: Where) -> Array:
        return _clipped(np.asarray(self._held[where], dtype=np.float64), self._norm)


class StreamedMoments(Moments):
    """A stream of which any part can be read, and nothing is kept.

    Parameters
    ----------
    read : callable
        Takes a slice, or an index array of any shape, and returns that part of the
        stream as an array of rows (..., d) or of matrices (..., d, d). The
        ``__getitem__`` of a memory-mapped array is one.
    count, dimension : int
        n and d, both at least 1.
    matrices : bool
        Whether it reads matrices; default: rows.
    row_norm : float, optional
        Rows longer than that are scaled down to it; not for matrices.

    Raises
    ------
    InputError
        If an argument is not what it should be; later, if what was read is not.

    Examples
    --------
    >>> def read(where):
    ...     index = np.arange(3)[where]
    ...     return np.eye(2) * index[..., np.newaxis, np.newaxis]
    >>> stream = StreamedMoments(read, count=3, dimension=2, matrices=True)
    >>> stream.mean_apply(slice(0, 3), np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    def __init__(
        self,
        read: Callable[[Where], ArrayLike],
        *,
        count: int,
        dimension: int,
        matrices: bool = False,
        row_norm: float | None = None,
    ) -> None:
        super().__init__(count, dimension)
        if not callable(read):
            raise InputError(f"read must be a function, got {read!r}")
        if matrices and row_norm is not None:
            raise InputError(f"row_norm must be None for matrices, got {row_norm!r}")
        self._norm = None if row_norm is None else check_norm("row_norm", row_norm)
        self._source, self.holds_rows = read, not matrices

    def read(self, where: Where) -> Array:
        batch = (where.stop - where.start,) if isinstance(where, slice) else where.shape
        shape = (*batch, *[self.dimension] * (1 if self.holds_rows else 2))
        name, part = "what read returns", self._source(where)
        if np.shape(part) != shape:
            raise InputError(
                f"{name} must have shape {shape}, got shape {np.shape(part)}"
            )
        held = np.asarray(_numbers(name, part, len(shape)), dtype=np.float64)
        flat = held.reshape(-1, *shape[len(batch) :])
        _check_entries(name, flat, squares=self._norm is None)
        return _clipped(held, self._norm)


class Gradients(ABC):
    """Vectors g_1, ..., g_m of length d, of each of a number of trials."""

    def __init__(self, trials: int, count: int, dimension: int) -> None:
        self.trials, self.count, self.dimension = trials, count, dimension

    @abstractmethod
    def read(self, first: int, last: int) -> Array:
        """Return g_first, ..., g_(last - 1), shape (trials, last - first, d)."""

    def parts(self, last: int | None = None, multiple: int = 1) -> Iterator[Array]:
        """Yield all up to `last`, shape (trials, some, d), in order.

        The last is m by default, and all parts have a multiple of `multiple`.
        """
        last = self.count if last is None else last
        each = multiple * self.trials * self.dimension
        step = multiple * max(1, _PART // each)
        for first in range(0, last, step):
            yield self.read(first, min(last, first + step))


class FixedGradients(Gradients):
    """Vectors, shape (m, d), that are the same in one trial as in the data."""

    def __init__(self, vectors: Array) -> None:
        super().__init__(1, *vectors.shape)
        self._vectors = vectors

    def read(self, first: int, last: int) -> Array:
        return self._vectors[np.newaxis, first:last]


class ProductGradients(Gradients):
    """The products A_i w of consecutive items of a stream, for every trial's own w.

    Or A_i V for a basis V, as vectors of length d k: a d x k matrix row by row. The w,
    or V, have the shape (trials, d), or (trials, d, k). With orthonormal columns U of
    each trial, (trials, d, j), vectors are deflated: (I - U U^T) A_i w.
    """

    def __init__(
        self,
        moments: Moments,
        first: int,
        count: int,
        vectors: Array,
        deflated: Array | None = None,
    ) -> None:
        self._rank = vectors.shape[2] if vectors.ndim == 3 else 1
        super().__init__(len(vectors), count, moments.dimension * self._rank)
        self._moments, self._first, self._deflated = moments, first, deflated
        columns = vectors.swapaxes(1, 2) if vectors.ndim == 3 else vectors
        self._columns = columns.reshape(-1, moments.dimension)

    def read(self, first: int, last: int) -> Array:
        where = slice(self._first + first, self._first + last)
        products = self._moments.apply(where, self._columns)
        if self._deflated is not None:
            inner = products @ self._deflated
            products -= inner @ self._deflated.swapaxes(-2, -1)
        if self._rank == 1:
            return products
        shape = (self.trials, self._rank, last - first, self._moments.dimension)
        products = products.reshape(shape).transpose(0, 2, 3, 1)
        return products.reshape(self.trials, last - first, self.dimension)


def as_moments(data: Stream, *, row_norm: float | None = None) -> Moments:
    """Return the stream that some data stand for.

    Parameters
    ----------
    data : array_like, shape (n, d) or (n, d, d), or Moments
        Rows x_i, for x_i x_i^T; or the matrices themselves, which need not be
        symmetric; n and d at least 1. A `Moments` is returned as it is.
    row_norm : float, optional
        Rows longer than that are scaled down to it, when they are read; only for an
        array of rows.

    Raises
    ------
    InputError
        If the data are not finite numbers of such a shape, or a row norm is given with
        what is no array of rows.
    """
    if isinstance(data, Moments):
        if row_norm is not None and getattr(data, "_norm", None) != row_norm:
            raise InputError(
                f"row_norm must be that of the stream itself, got {row_norm!r}"
            )
        return data
    return HeldMoments(data, row_norm)


class OnStream(Batched[Stream], Checked):
    """A mechanism on a stream, by places: n is public, and claims for REPLACE_ONE."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    @property
    @abstractmethod
    def row_norm(self) -> float | None:
        """R, if there is one."""

    def read(self, data: Stream) -> Moments:
        """Return the stream, or raise if the mechanism cannot take it."""
        return as_moments(data, row_norm=self.row_norm)


class OnProducts(OnStream):
    """A mechanism on bounded products; it has a `row_norm`, or a `clip`, or both.

    Rows are scaled down to a norm R, each on its own. Without R they may be matrices,
    shape (n, d, d). Products A_i V longer than the clip, beta, are scaled down to it.
    """

    @property
    @abstractmethod
    def clip(self) -> float | None:
        """beta, if there is one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.unit  # or raises

    @property
    def unit(self) -> float:
        """The largest norm of a product A_i w, the inverse unit of step sizes."""
        return unit_of(self.row_norm, self.clip)

    def sensitivity_of(self, n_components: int) -> float:
        """Return how far the sum of a batch's products A_i V moves, for k columns."""
        bounds = {"row_norm": self.row_norm, "clip": self.clip}
        return batch_sensitivity(n_components, **bounds)


def rebatched(blocks: Iterable[ArrayLike], size: int, count: int) -> Iterator[Array]:
    """Yield the items of blocks in batches, in one buffer that is used again.

    There must be `count` items in all, of one shape, or it raises `InputError`; the
    last count % size are left out.
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


def _numbers(name: str, value: ArrayLike, axes: int) -> NDArray[np.generic]:
    """Return an array of numbers with that many axes, none of them empty."""
    held = check_numbers(name, value, "an array of numbers")
    if held.ndim != axes or not held.size:
        shape = "(n, d)" if axes == 2 else "(n, d, d)"
        other = ", or (n, d, d) for matrices" if axes == 2 else ""
        raise InputError(
            f"{name} must have shape {shape} with n >= 1 and d >= 1{other}, got shape "
            f"{held.shape}"
        )
    return held


def _check_entries(name: str, held: NDArray[np.generic], *, squares: bool) -> None:
    """Raise unless each item along the first axis is finite, and its square small.

    So that no product of an item with a unit vector overflows, whatever is rounded.
    """
    for some in slices(len(held), WORK // held[0].size):
        part = np.asarray(held[some], dtype=np.float64)
        part = part.reshape(len(part), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            # Summed as one, a NaN, an infinity or a large square anywhere shows.
            if np.vdot(part, part) <= _LARGEST:
                continue
            finite = np.isfinite(part).all(axis=1)
            square = np.einsum("ij,ij->i", part, part) <= _LARGEST
        if not finite.all():
            raise InputError(
                f"{name} must be finite, but item "
                f"{some.start + int(np.argmin(finite))} has a NaN or infinity"
            )
        if squares and not square.all():
            raise InputError(
                f"{name} must have squares that sum to 2^1000 at most, but those of "
                f"item {some.start + int(np.argmin(square))} are larger"
            )


def _clipped(rows: Array, norm: float | None) -> Array:
    if norm is None:
        return rows
    flat = rows.reshape(-1, rows.shape[-1])
    return clip_into(flat, norm, np.empty(flat.shape)).reshape(rows.shape)
