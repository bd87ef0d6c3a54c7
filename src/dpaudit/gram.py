r"""Second-moment matrices and sums of rows, in one pass over any amount of data.

Mechanisms read a dataset through :math:`A = \sum_i x_i x_i^T` or :math:`\sum_i x_i`,
each row clipped to a public bound by itself. Both are sums over rows, so they are
accumulated block by block: of the data, no more than one block is held in memory, and
what is done to a row (a public centre subtracted, its length measured, the row scaled
if it is too long) is done while the block is in cache. So it costs little beside the
product of the block with itself, which one call of BLAS ``syrk`` makes.

The order of the rows, and how they come in blocks, matter to rounding only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.blocks import Block, Rows, blocks
from dpaudit.errors import InputError
from dpaudit.rows import clip_into, directions
from dpaudit.validation import check_matrix, check_norm

__all__ = ["ClippedGram", "Gram", "RowSum", "clipped_gram", "gram", "row_sum"]

RowNorm: TypeAlias = float | Literal["directions"]
"""The bound that longer rows are clipped to; or all rows are brought to length 1."""


@dataclass(frozen=True, eq=False)
class Gram:
    """The second-moment matrix of a dataset, and how many rows it has.

    Both are exact: neither may be published without noise, and under ADD_REMOVE that
    includes the number of rows.

    Parameters
    ----------
    moment : ndarray, shape (d, d)
        The sum of x x^T over the rows; symmetric to the bit.
    n_rows : int
    row_norm : float or "directions", optional
        What the rows were clipped to before.
    """

    moment: Array
    n_rows: int
    row_norm: RowNorm | None = None

    def with_row(self, row: ArrayLike) -> "Gram":
        """Return that of the same rows and one more: a neighbour, without a copy.

        Examples
        --------
        >>> one = gram([[0.6, 0.8]], row_norm=1.0)
        >>> one.with_row([2.0, 0.0]).moment
        array([[1.36, 0.48],
               [0.48, 0.64]])
        """
        more = gram(np.atleast_2d(row), row_norm=self.row_norm)
        return replace(
            self, moment=self.moment + more.moment, n_rows=self.n_rows + more.n_rows
        )


@dataclass(frozen=True, eq=False)
class RowSum:
    """The sum of the rows of a dataset, and how many there are; exact, as `Gram` is.

    Parameters
    ----------
    total : ndarray, shape (d,)
    n_rows : int
    """

    total: Array
    n_rows: int


def gram(
    data: "Rows | Gram",
    *,
    row_norm: RowNorm | None = None,
    centre: ArrayLike | None = None,
    block_rows: int | None = None,
) -> Gram:
    """Return the sum of x x^T over the rows x of a dataset, in one pass.

    Parameters
    ----------
    data : array_like, iterable of array_like, path, Dask array or Gram
        Rows of length d, as `dpaudit.blocks.blocks` takes them: an array, a
        memory-mapped one, an iterator of blocks, a file, a Dask array. Numbers of other
        types than float64 are converted block by block, so that products and sums are
        of float64 for every input. Or what was made of rows clipped to the same norm:
        a mechanism that reads the second moment alone takes a `Gram` for its data.
    row_norm : float or "directions", optional
        Rows longer than that, after centring, are scaled down to it. Must be public.
        For "directions" every row is scaled to length 1, but rows of zeros.
    centre : array_like, shape (d,), optional
        Subtracted from every row. Must be public, or private already: with the mean
        of the rows themselves the result has no useful sensitivity.
    block_rows : int, optional
        The most rows held at a time. Default: as many as fill 2 MiB, and at least
        2048.

    Returns
    -------
    Gram

    Raises
    ------
    InputError
        If the data are not blocks of finite numeric rows of one length, of which there
        is at least one block (it may be empty, of shape (0, d)); a file cannot be
        read; squares overflow; a `Gram` is one of rows clipped to another norm; or
        another argument is not what it should be.

    Examples
    --------
    >>> from dpaudit.gram import gram
    >>> gram([[1.0, 0.0], [3.0, 4.0]], row_norm=1.0)
    Gram(moment=array([[1.36, 0.48],
           [0.48, 0.64]]), n_rows=2, row_norm=1.0)
    """
    if isinstance(data, Gram):
        if centre is not None or data.row_norm != row_norm:
            raise InputError(
                f"data must be a Gram of rows clipped to {row_norm}, without a centre, "
                f"got one of rows clipped to {data.row_norm}"
            )
        return data
    moment = product = np.zeros((0, 0))
    n_rows = 0
    for block, rows in prepared(data, row_norm, centre, block_rows):
        if not moment.size:
            moment = np.zeros((rows.shape[1], rows.shape[1]))
            product = np.empty_like(moment)
        with np.errstate(over="ignore", invalid="ignore"):
            # NumPy hands a product of an array with its own transpose to BLAS syrk,
            # and copies the triangle that syrk leaves out.
            np.matmul(rows.T, rows, out=product)
            moment += product
            # A NaN or an infinity in a row must show on the diagonal.
            _check_finite(np.trace(moment), block)
        n_rows += len(rows)
    return Gram(moment, n_rows, row_norm)


@dataclass(frozen=True, eq=False)
class ClippedGram:
    """What one pass over rows tells of them as they are, and as they are clipped.

    Parameters
    ----------
    whole, clipped : Gram
    n_clipped : int
        How many rows are longer than the norm.
    """

    whole: Gram
    clipped: Gram
    n_clipped: int


def clipped_gram(data: Rows, row_norm: float) -> ClippedGram:
    r"""Return the second moments of rows as they are, and as clipped, in one pass.

    Of a row x that is clipped to s x, :math:`(1 - s^2) x x^T` is what clipping takes
    away. So where few rows of a block are long, a product of these alone is added to
    that of the clipped rows. Raises as `gram` does.
    """
    norm = check_norm("row_norm", row_norm)
    moment = whole = np.zeros((0, 0))
    n_rows = n_clipped = 0
    for block, rows in prepared(data, norm):
        if not moment.size:
            moment, whole = (np.zeros((rows.shape[1],) * 2) for _ in range(2))
        with np.errstate(over="ignore", invalid="ignore"):
            product = rows.T @ rows
            moment += product
            if rows is not block.rows:
                given = np.asarray(block.rows, dtype=np.float64)
                squares = np.einsum("ij,ij->i", given, given)
                long = np.flatnonzero(np.sqrt(squares) > norm)
                n_clipped += len(long)
                if len(long) > len(rows) / 2:
                    product = given.T @ given
                elif len(long):
                    left = np.sqrt(np.maximum(1 - norm * (norm / squares[long]), 0))
                    rest = given[long] * left[:, np.newaxis]
                    product = product + rest.T @ rest
            whole += product
            _check_finite(np.trace(whole), block)
        n_rows += len(rows)
    return ClippedGram(Gram(whole, n_rows), Gram(moment, n_rows, norm), n_clipped)


def row_sum(
    data: Rows, *, row_norm: float | None = None, block_rows: int | None = None
) -> RowSum:
    """Return the sum of the rows of a dataset, in one pass.

    Parameters
    ----------
    data, row_norm, block_rows
        As for `gram`.

    Returns
    -------
    RowSum

    Raises
    ------
    InputError
        As `gram`.

    Examples
    --------
    >>> from dpaudit.gram import row_sum
    >>> row_sum([[1.0, 0.0], [3.0, 4.0]], row_norm=1.0)
    RowSum(total=array([1.6, 0.8]), n_rows=2)
    """
    total = np.zeros(0)
    n_rows = 0
    for block, rows in prepared(data, row_norm, None, block_rows):
        with np.errstate(over="ignore", invalid="ignore"):
            total = rows.sum(axis=0) + (total if total.size else 0.0)
            _check_finite(total.sum(), block)
        n_rows += len(rows)
    return RowSum(total, n_rows)


def prepared(
    data: Rows,
    row_norm: RowNorm | None,
    centre: ArrayLike | None = None,
    block_rows: int | None = None,
) -> Iterator[tuple[Block, Array]]:
    """Yield each block as it came, and its rows in float64, ready to be read.

    The rows are a view or lie in a buffer: they are to be used before the next block.
    """
    norm = row_norm
    if not (norm is None or norm == "directions"):
        norm = check_norm("row_norm", norm)
    origin = None if centre is None else _check_centre(centre)
    buffer = None
    for block in blocks(data, block_rows=block_rows):
        rows = block.rows
        if buffer is None or len(buffer) < len(rows):
            buffer = np.empty(rows.shape)
        room = buffer[: len(rows)]
        if origin is not None:
            if rows.shape[1] != len(origin):
                raise InputError(
                    f"centre must have as many entries as {block.source} has columns, "
                    f"{rows.shape[1]}, got {len(origin)}"
                )
            rows = np.subtract(rows, origin, out=room)
        elif not _suits_blas(rows):
            room[:] = rows
            rows = room
        if isinstance(norm, str):
            block.check_finite()
            yield block, directions(rows)
        else:
            yield block, rows if norm is None else clip_into(rows, norm, room)


def _suits_blas(rows: NDArray[np.generic]) -> bool:
    # One axis contiguous, the other in steps of any length.
    return rows.dtype == np.float64 and min(rows.strides) == rows.itemsize


def _check_centre(centre: ArrayLike) -> Array:
    if np.ndim(centre) != 1:
        raise InputError(f"centre must have shape (d,), got shape {np.shape(centre)}")
    return check_matrix("centre", np.atleast_2d(centre))[0]


def _check_finite(total: float, block: Block) -> None:
    """Raise if a block has made a sum over all its entries infinite or NaN."""
    if not np.isfinite(total):
        block.check_finite()
        raise InputError(
            f"{block.source} must have squares that are finite numbers, but some "
            f"overflow near row {block.first}"
        )
