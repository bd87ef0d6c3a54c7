"""Datasets as blocks of rows: arrays, files and streams, also larger than memory.

What is computed in one pass reads its rows through `blocks`, which takes

- an array of shape (n, d), or what converts to one (nested lists, a data frame); a
  memory-mapped array is read piece by piece;
- an iterable of such arrays, a generator for example: the caller decides how
  large they are;
- the path of a Parquet file of numeric columns or of a folder ``.parquet`` of such
  (needs pyarrow), of an ``.npy`` file, or of an array that Zarr keeps in a folder
  ``.zarr`` (needs zarr);
- an array of Zarr or of an HDF5 file (h5py), whole rows of its chunks at a time;
- a Dask array of two axes, one chunk of rows at a time, in order.

Nothing is copied that is an array already, and no more than one block is held.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.printable import said
from dpaudit.validation import check_count, check_numbers

__all__ = ["Block", "Rows", "blocks", "is_table", "peek", "restarts"]

Rows: TypeAlias = ArrayLike | Iterable[ArrayLike] | str | os.PathLike[str]
"""What `blocks` takes; arrays of Dask, Zarr and h5py too."""

# What can be gone through, and has neither rows nor blocks of them.
_NO_BLOCKS = (Mapping, Set, bytes, bytearray)
# Numbers in a block: 2 MiB as float64, which stays in cache; and the least
# number of rows, so that work per block, d^2 for a matrix, is little beside that of
# its rows.
_NUMBERS = 2**18
_ROWS = 2**11
# Of Parquet: bytes of a group of rows that is read at once; rows at a time of others.
_GROUP, _BATCH = 2**28, 2**16


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a dataset.

    Parameters
    ----------
    rows : ndarray, shape (m, d)
        Real numbers of any type.
    source : str
        What to call, in an error, that which the rows are part of.
    first : int
        The number of the first row in the source.
    """

    rows: NDArray[Any]
    source: str
    first: int

    def check_finite(self) -> None:
        """Raise `InputError`, naming the row, if there is a NaN or an infinity."""
        finite = np.isfinite(self.rows).all(axis=1)
        if not finite.all():
            row = self.first + int(np.argmin(finite))
            raise InputError(
                f"{self.source} must be finite, but row {row} has a NaN or infinity"
            )


def blocks(data: Rows, *, block_rows: int | None = None) -> Iterator[Block]:
    """Yield the rows of a dataset in order, block by block.

    Parameters
    ----------
    data : array_like, iterable of array_like, path, array of Dask, Zarr or h5py
        See the head of this module.
    block_rows : int, optional
        The most rows in a block. Default: as many as fill 2 MiB, and at least 2048.

    Yields
    ------
    Block
        At least one; it may have no rows. Views where `data` has arrays.

    Raises
    ------
    InputError
        If there is no block (then the length of a row is not known), a block is not a
        numeric matrix with at least one column, blocks differ in their width, or a
        file cannot be read.

    Examples
    --------
    >>> from dpaudit.blocks import blocks
    >>> for block in blocks(([[i, 1.0]] for i in range(2))):
    ...     print(block.rows, block.source)
    [[0. 1.]] block 0 of data
    [[1. 1.]] block 1 of data
    """
    if block_rows is not None:
        check_count("block_rows", block_rows)
    width = None
    for part in _parts(data, block_rows):
        columns = part.rows.shape[1]
        width = columns if width is None else width
        if columns != width:
            raise InputError(
                f"{part.source} must have {width} columns, as all before, got {columns}"
            )
        yield from _slices(part, block_rows or _default_rows(width))
    if width is None:
        raise InputError(
            "data has no block, so that the length of a row is unknown; "
            "a dataset without rows is one block of shape (0, d)"
        )


def peek(data: Rows) -> tuple[int, Rows]:
    """Return the length of a row, and data to be used from now on in place of `data`.

    No more than the first block is read, and nothing is lost of an iterator.

    Examples
    --------
    >>> width, data = peek(iter([[[1.0, 2.0]], [[3.0, 4.0]]]))
    >>> width, list(data)
    (2, [[[1.0, 2.0]], [[3.0, 4.0]]])
    """
    sample = data
    if isinstance(data, Iterator):
        first = tuple(islice(data, 1))
        sample, data = iter(first), chain(first, data)
    block = next(blocks(sample))
    return block.rows.shape[1], data


def is_table(data: object) -> bool:
    """Say whether `data` is one array, or converts to one: no path, blocks or chunks.

    Examples
    --------
    >>> is_table([[1.0, 2.0]]), is_table([np.ones((1, 2))]), is_table("rows.parquet")
    (True, False, False)
    """
    if isinstance(data, str | os.PathLike) or _is_chunked(data) or _is_stored(data):
        return False
    if isinstance(data, list | tuple):
        return not (data and np.ndim(data[0]) == 2)
    # A sparse matrix has a shape; that it does not convert is said later.
    like_array = hasattr(data, "__array__") or hasattr(data, "shape")
    iterable = isinstance(data, Iterable) and not isinstance(data, _NO_BLOCKS)
    return like_array or not iterable


def restarts(data: object) -> bool:
    """Say whether `data` can be read more than once, as an iterator cannot.

    Examples
    --------
    >>> restarts([np.ones((1, 2))]), restarts(iter([np.ones((1, 2))]))
    (True, False)
    """
    return not isinstance(data, Iterator)


def _default_rows(width: int) -> int:
    return max(_NUMBERS // width, _ROWS)


def _is_chunked(data: object) -> bool:
    # By its interface, so that Dask need not be imported.
    return all(hasattr(data, name) for name in ("blocks", "numblocks", "rechunk"))


def _is_stored(data: object) -> bool:
    return all(hasattr(data, name) for name in ("chunks", "shape", "dtype"))


def _parts(data: Any, block_rows: int | None) -> Iterator[Block]:
    """Yield the dataset in the parts in which it comes."""
    if isinstance(data, np.ndarray):  # first: mechanisms ask for small ones often
        yield Block(_matrix("data", data), "data", 0)
    elif isinstance(data, str | os.PathLike):
        yield from _of_file(os.fspath(data), block_rows)
    elif _is_chunked(data):
        yield from _chunks(data)
    elif _is_stored(data):
        yield from _stored("data", data, block_rows)
    elif is_table(data):
        yield Block(_matrix("data", data), "data", 0)
    else:
        for index, part in enumerate(data):
            name = f"block {index} of data"
            yield Block(_matrix(name, part), name, 0)


def _slices(part: Block, block_rows: int) -> Iterator[Block]:
    rows = part.rows
    for start in range(0, max(len(rows), 1), block_rows):
        piece = rows[start : start + block_rows]
        yield Block(piece, part.source, part.first + start)


def _matrix(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as a real matrix with a column at least, without a copy if it is.

    Whether its entries are finite is not looked at: that costs a pass of its own.
    """
    matrix = check_numbers(name, value, "a numeric array of shape (n, d)")
    if matrix.ndim != 2 or matrix.shape[1] < 1:
        raise InputError(
            f"{name} must have shape (n, d) with d >= 1, got shape {matrix.shape}"
        )
    return matrix


def _chunks(data: Any) -> Iterator[Block]:
    """Yield the chunks of a Dask array, each computed when it is asked for."""
    if data.ndim != 2 or np.isnan(data.shape[1]):
        raise InputError(f"data must have shape (n, d), d known, got {data.shape}")
    yield Block(np.empty((0, data.shape[1])), "data", 0)
    data = data.rechunk({1: -1})
    first = 0
    for index in range(data.numblocks[0]):
        rows = _matrix("data", data.blocks[index].compute())
        yield Block(rows, "data", first)
        first += len(rows)


def _no_rows(name: str, shape: tuple[int, ...], kind: Any) -> Block:
    """Return a block without rows of an array of that shape, if it is a matrix."""
    return Block(_matrix(name, np.broadcast_to(np.empty((), kind), shape))[:0], name, 0)


def _stored(name: str, data: Any, block_rows: int | None) -> Iterator[Block]:
    """Yield whole chunks of rows of an array that is kept elsewhere."""
    yield _no_rows(name, data.shape, data.dtype)
    high = data.chunks[0] if data.chunks else 1
    high = high if isinstance(high, int) else max(high)  # xarray says all of them
    size = high * max((block_rows or _default_rows(data.shape[1])) // high, 1)
    for first in range(0, data.shape[0], size):
        yield Block(_matrix("data", data[first : first + size]), "data", first)


def _of_file(path: str, block_rows: int | None) -> Iterator[Block]:
    def state() -> list[tuple[int, ...]]:
        try:
            found = [x.stat() for x in (Path(path), *sorted(Path(path).rglob("*")))]
        except OSError:
            return []
        return [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in found]

    ends = path.endswith((".parquet", ".pq", ".npy", ".zarr"))
    if "\0" in path or not (ends or _has_magic(path)):
        allowed = "a path must be of rows in a file .parquet, .npy or .zarr"
        raise InputError(f"cannot read {path!r}: {allowed}")
    before, read = state(), _parquet_files(path)
    if path.endswith(".npy"):
        read = _npy_pieces(path, block_rows)
    elif path.endswith(".zarr"):
        read = _zarr_pieces(path, block_rows)
    try:
        yield from read
    except InputError:
        if state() == before:
            raise
    if state() != before:
        raise InputError(f"{path!r} has changed while it was read")


def _needed(path: str, *names: str) -> list[Any]:
    try:
        return list(map(import_module, names))
    except ImportError:
        what = f"reading {path!r} needs {names[0]} (pip install {names[0]})"
        nothing = "arrays and iterables of arrays need nothing"
        raise InputError(f"{what}; {nothing}") from None


def _has_magic(path: str) -> bool:
    """Say whether a file of another name begins as those of Parquet do."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def _npy_pieces(path: str, block_rows: int | None) -> Iterator[Block]:
    """Read an array piece by piece, not mapped: its size would count as memory."""
    form: Any = np.lib.format
    try:
        with open(path, "rb") as file:
            version = "1_0" if form.read_magic(file)[0] == 1 else "2_0"
            read = getattr(form, f"read_array_header_{version}")
            shape, in_columns, kind = read(file)
            if kind.hasobject:
                raise InputError(f"{path!r} must hold numbers, got Python objects")
            yield _no_rows(repr(path), shape, kind)
            if in_columns:
                raise InputError(
                    f"{path!r} holds an array column by column, and cannot be read in "
                    "rows: save numpy.ascontiguousarray of it"
                )
            size = block_rows or _default_rows(shape[1])
            for first in range(0, shape[0], size):
                piece = min(size, shape[0] - first), shape[1]
                rows = np.fromfile(file, kind, piece[0] * piece[1])
                if rows.size < piece[0] * piece[1]:
                    raise InputError(f"{path!r} ends before its {shape[0]:,} rows do")
                yield Block(_matrix("data", rows.reshape(piece)), "data", first)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error.strerror or error}") from None
    except ValueError as error:  # of its head
        raise InputError(f"{path!r} is not a NumPy file: {error}") from None


def _zarr_pieces(path: str, block_rows: int | None) -> Iterator[Block]:
    (zarr,) = _needed(path, "zarr")
    try:
        yield from _stored(repr(path), zarr.open_array(path, mode="r"), block_rows)
    except InputError:
        raise
    except Exception as error:  # its own are of many kinds
        raise InputError(f"cannot read {path!r}: {said(error)}") from None


def _parquet_files(path: str) -> Iterator[Block]:
    """Read a file, or those of a folder as Dask and Spark write it, by their names."""
    files, columns, first = [path], list[str](), 0
    if Path(path).is_dir():
        found = [f.relative_to(path).as_posix() for f in Path(path).rglob("*.parquet")]
        shown = sorted(name for name in found if not re.search(r"(^|/)[._]", name))
        files = [f"{path}/{name}" for name in shown]
        if not files or any(re.search("=.*/", name) for name in shown):
            wanted = "Parquet files, and no columns in the names of folders"
            raise InputError(f"cannot read {path!r}: a folder must hold {wanted}")
    for file in files:
        for rows in _parquet_batches(file, columns):
            yield Block(rows, "data", first)
            first += len(rows)


def _parquet_batches(path: str, columns: list[str]) -> Iterator[Array]:
    """Read a file whose columns are those of the files before it."""
    pyarrow, parquet = _needed(path, "pyarrow", "pyarrow.parquet")
    try:
        file = parquet.ParquetFile(path)
    except OSError as error:
        raise InputError(f"cannot read {path!r}: {error}") from None
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path!r} is not a Parquet file: {error}") from None
    types = pyarrow.types
    numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal)
    with file:
        schema = file.schema_arrow
        if not schema.names:
            raise InputError(f"{path!r} has no columns")
        columns[:] = columns or schema.names
        if schema.names != columns:
            told = f"{path!r} must have the columns {columns}, got {schema.names}"
            raise InputError(told)
        for column in schema:
            if not any(is_of_kind(column.type) for is_of_kind in numeric):
                told = f"column {column.name!r} of {path!r}"
                raise InputError(f"{told} must be numeric, got {column.type}")
        yield np.empty((0, len(schema.names)))
        try:
            for batch in _batches(file):
                # Column by column: what is contiguous in the file is so in memory.
                rows = np.empty((batch.num_columns, batch.num_rows))
                for row, column in zip(rows, batch.columns, strict=True):
                    row[:] = column.to_numpy(zero_copy_only=False)
                yield rows.T
        except (OSError, pyarrow.ArrowException) as error:
            raise InputError(f"cannot read {path!r}: {error}") from None


def _batches(file: Any) -> Iterator[Any]:
    """Yield the rows of a Parquet file, a group of them at once unless it is large."""
    for place in range(file.num_row_groups):
        if file.metadata.row_group(place).total_byte_size <= _GROUP:
            yield file.read_row_group(place)
        else:
            yield from file.iter_batches(_BATCH, row_groups=[place])
