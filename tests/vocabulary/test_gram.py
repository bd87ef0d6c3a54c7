"""Second-moment matrices in one pass, and what is done with each row before.

Against the definition, from every source; bounds, bit-identity, extremes and bad input.
"""

import os
import sys
import tracemalloc
from fractions import Fraction
from functools import partial
from math import fsum
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refused, refuses
from scipy.sparse import csr_array

from dpaudit import blocks as blocks_module
from dpaudit.blocks import blocks, is_table, peek, restarts
from dpaudit.errors import InputError
from dpaudit.gram import clipped_gram, gram, row_sum
from dpaudit.rows import clip_rows, normalise_rows

NO_PYARROW = "the extra 'parquet' is not installed"

matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
    elements=st.floats(-1e6, 1e6),
)


def naive(rows, row_norm=None, centre=None):
    """Return sum x x^T entry by entry, each sum correctly rounded."""
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows if centre is None else rows - centre
    rows = rows if row_norm is None else clip_rows(rows, row_norm)
    columns = rows.T
    return np.array([[fsum(a * b) for b in columns] for a in columns])


def example(n=500, d=6, seed=0):
    """Return rows of which about half are longer than 1, and the centre is not 0."""
    rng = np.random.default_rng(seed)
    return 0.4 * rng.standard_normal((n, d)) + 0.1


@given(
    matrices,
    st.none() | st.floats(1e-3, 1e6),
    st.none() | st.floats(-1e3, 1e3),
    st.none() | st.integers(1, 9),
)
def test_the_sum_of_outer_products(rows, row_norm, shift, block_rows):
    centre = None if shift is None else np.full(rows.shape[1], shift)
    found = gram(rows, row_norm=row_norm, centre=centre, block_rows=block_rows)
    expected = naive(rows, row_norm, centre)
    size = np.trace(expected)
    np.testing.assert_allclose(found.moment, expected, rtol=1e-13, atol=1e-14 * size)
    np.testing.assert_array_equal(found.moment, found.moment.T)
    assert found.n_rows == len(rows)


@given(matrices, st.none() | st.floats(1e-3, 1e6), st.none() | st.integers(1, 9))
def test_the_sum_of_rows(rows, row_norm, block_rows):
    found = row_sum(rows, row_norm=row_norm, block_rows=block_rows)
    clipped = rows if row_norm is None else clip_rows(rows, row_norm)
    expected = [fsum(column) for column in clipped.T]
    size = np.abs(clipped).sum()
    np.testing.assert_allclose(found.total, expected, rtol=0, atol=1e-14 * size)
    assert found.n_rows == len(rows)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.bool_, ">f8", np.float16])
def test_other_numbers_are_converted(dtype):
    rows = np.random.default_rng(3).integers(0, 100, size=(30, 4)).astype(dtype)
    np.testing.assert_array_equal(gram(rows).moment, naive(rows))


@pytest.mark.parametrize("row_norm", [None, 1.0])
def test_any_layout_in_memory(row_norm):
    rows = example()
    views = [rows[::-1], rows[:, ::2], rows[::3, 1:]]
    views += [np.asfortranarray(rows)[5:300], np.broadcast_to(rows[0], (7, 6))]
    for rows in views:
        found = gram(rows, row_norm=row_norm, block_rows=50).moment
        np.testing.assert_allclose(found, naive(rows, row_norm), rtol=1e-12)


def test_inputs_are_left_alone_and_blocks_views_of_at_most_that_many_rows():
    rows = example()
    kept = rows.copy()
    gram(rows, row_norm=0.1, centre=np.ones(6))
    gram(rows, row_norm=0.1)
    row_sum(rows, row_norm=0.1)
    first = row_sum(iter([rows[:1]])).total
    first += 1.0
    np.testing.assert_array_equal(rows, kept)
    rows = example()
    found = list(blocks(iter([rows[:100], rows[100:]]), block_rows=64))
    assert [len(block.rows) for block in found] == [64, 36, *[64] * 6, 16]
    assert all(np.shares_memory(block.rows, rows) for block in found)
    np.testing.assert_array_equal(np.concatenate([b.rows for b in found]), rows)


class Frame:
    """What knows how to become an array, as a data frame does."""

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.rows, dtype=dtype)


class Chunked:
    """The part of a Dask array's interface that is used; 3 columns at a time."""

    ndim = 2

    def __init__(self, rows, height, columns=3):
        self.rows, self.height, self.shape = rows, height, rows.shape
        self.numblocks = (-(-len(rows) // height), -(-rows.shape[1] // columns))
        parts = np.split(rows[:, :columns], range(height, len(rows), height))
        self.blocks = [SimpleNamespace(compute=lambda x=x: x) for x in parts]

    def rechunk(self, chunks):
        assert chunks == {1: -1}
        return Chunked(self.rows, self.height, self.rows.shape[1])

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("loaded into memory")


def memory_mapped(rows, folder):
    np.save(folder / "rows.npy", rows)
    return np.load(folder / "rows.npy", mmap_mode="r")


def npy(rows, folder):
    np.save(folder / "rows.npy", np.ascontiguousarray(rows))
    return folder / "rows.npy"


def parquet(rows, folder):
    pyarrow = pytest.importorskip("pyarrow", reason=NO_PYARROW)
    writer = pytest.importorskip("pyarrow.parquet", reason=NO_PYARROW)
    columns = {f"c{j}": column for j, column in enumerate(rows.T)}
    path = folder / "rows.parquet"
    writer.write_table(pyarrow.table(columns), path, row_group_size=130)
    return path


def parquet_folder(rows, folder):
    """As Spark writes it: parts in folders, and beside them what is no rows."""
    path = folder / "parts.parquet"
    for place, part in enumerate(np.split(rows, [0, 100, 490])):
        (path / f"{place % 2}").mkdir(parents=True, exist_ok=True)
        parquet(part, folder).rename(path / f"{place % 2}" / f"part-{place}.parquet")
    for name in ("_temporary", "."):
        (path / name).mkdir(exist_ok=True)
        (path / name / "_part.parquet").write_text("no rows")
    (path / "_temporary" / "part.parquet").write_text("no rows")
    (path / "_SUCCESS").touch()
    return path


def dask_array(rows, folder):
    array = pytest.importorskip("dask.array", reason="no extra 'cluster'")
    return array.from_array(rows, chunks=(90, 4))


def zarr_array(rows, folder):
    zarr = pytest.importorskip("zarr", reason="the extra 'zarr' is not installed")
    path = folder / "rows.zarr"
    zarr.create_array(path, data=rows, chunks=(90, 4), overwrite=True)
    return path


class Stored:
    """The part of the interface of Zarr's and h5py's arrays that is used."""

    def __init__(self, rows, chunks):
        self.rows, self.chunks, self.shape = rows, chunks, rows.shape
        self.dtype = rows.dtype

    def __getitem__(self, place):
        assert not isinstance(self.chunks, tuple) or place.start % 90 == 0
        return self.rows[place]

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("loaded into memory")


SOURCES = {
    **{"array": lambda rows, folder: rows, "lists": lambda rows, folder: rows.tolist()},
    **{"frame": lambda rows, folder: Frame(rows), "memory-mapped": memory_mapped},
    "generator": lambda rows, folder: (rows[i : i + 37] for i in range(0, 500, 37)),
    "growing blocks": lambda rows, folder: np.split(rows, [0, 1, 10, 200]),
    "blocks of lists": lambda rows, folder: [rows[:9].tolist(), rows[9:].tolist()],
    "blocks, converted": lambda rows, folder: iter([Frame(rows[:9]), rows[9:]]),
    **{"chunks": lambda rows, folder: Chunked(rows, 90), "parquet": parquet},
    **{"dask": dask_array, "npy": npy, "zarr": zarr_array},
    "folder of parquet": parquet_folder,
    "stored in chunks": lambda rows, folder: Stored(rows, (90, 4)),
    "stored, each chunk told": lambda rows, folder: Stored(rows, ((90,) * 5, (4, 2))),
    "stored whole": lambda rows, folder: Stored(rows, None),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("block_rows", [None, 64])
def test_sources_agree_to_rounding(source, block_rows, tmp_path):
    rows, centre = example(), np.linspace(-0.2, 0.3, 6)
    data = SOURCES[source](rows, tmp_path)
    found = gram(data, row_norm=1.0, centre=centre, block_rows=block_rows)
    assert found.n_rows == 500
    np.testing.assert_allclose(found.moment, naive(rows, 1.0, centre), rtol=1e-12)
    data = SOURCES[source](rows, tmp_path)
    total = row_sum(data, row_norm=1.0, block_rows=block_rows).total
    np.testing.assert_allclose(total, clip_rows(rows, 1.0).sum(axis=0), rtol=1e-12)
    width, data = peek(SOURCES[source](rows, tmp_path))
    assert (width, gram(data).n_rows) == (6, 500)


def test_what_is_one_table_and_what_can_be_read_again():
    rows = example()
    assert all(map(is_table, [rows, rows.tolist(), Frame(rows)]))
    others = [[rows, rows], iter([rows]), "rows.parquet", Chunked(rows, 90)]
    others.append(Stored(rows, (90, 4)))
    assert not any(map(is_table, others))
    assert all(map(restarts, [rows, [rows], "rows.parquet"]))
    assert not any(map(restarts, [iter([rows]), (rows for _ in range(2))]))


def test_memory_is_bounded_by_the_block():
    """A hundred blocks of 400 kB pass by; a copy of a few of them would show."""

    def source():
        for i in range(100):
            yield np.full((1000, 50), i / 1000.0)

    tracemalloc.start()
    gram(source(), row_norm=0.01, centre=np.ones(50))
    row_sum(np.ones((100_000, 2), dtype=np.float32)[:, ::-1], block_rows=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


TWO = np.ones((2, 2))


test_bad_data_are_named = refused(
    (lambda: iter([]), "data has no block, so that the length of a row is unkn"),
    (lambda: [], r"data must have shape \(n, d\) with d >= 1, got shape \(0,\)"),
    (lambda: np.ones((2, 0)), r"data must have shape .* got shape \(2, 0\)"),
    (lambda: np.ones((2, 2, 2)), r"data must have shape .* got shape \(2, 2, 2\)"),
    (lambda: Stored(np.ones(2), (1,)), r"data must have shape .* got shape \(2,\)"),
    (lambda: None, "data must be a numeric array .* got NoneType"),
    (lambda: csr_array(np.eye(2)), "must be a numeric array .* got csr_array"),
    (lambda: [[0.0, 0.0], [1.0, np.nan]], "^data must be finite, but row 1 has"),
    (lambda: iter([TWO, np.ones((2, 3))]), "block 1 .* 2 columns, .*, got 3"),
    (lambda: iter([np.ones(2)]), "block 0 of data must have shape"),
    (lambda: iter([TWO, [[1, 2], [np.nan, 1]]]), "block 1 .* row 1 has a NaN"),
    by=lambda use, data: use(data()),
    each=[partial(f, row_norm=norm) for f in (gram, row_sum) for norm in (None, 1.0)],
)


def test_bad_rows_are_counted_over_all_blocks_and_none_are_fine():
    rows = example()
    rows[321, 2] = np.nan
    for data in (rows, Chunked(rows, 90), Stored(rows, (90, 6))):
        for row_norm in (None, 0.1):
            with pytest.raises(InputError, match="data must be finite, but row 321"):
                gram(data, block_rows=50, row_norm=row_norm)
    for data in (np.empty((0, 3)), iter([np.empty((0, 3))] * 2)):
        found = gram(data, row_norm=1.0)
        np.testing.assert_array_equal(found.moment, np.zeros((3, 3)))
        assert found.n_rows == 0
    np.testing.assert_array_equal(row_sum(np.empty((0, 3))).total, np.zeros(3))


test_bad_options_are_named = refused(
    ({"row_norm": 0.0}, "row_norm must be"),
    ({"row_norm": "1"}, "row_norm must be"),
    ({"block_rows": 0}, "block_rows must be"),
    ({"centre": [1.0]}, "centre must have as many entries as data has columns, 2"),
    ({"centre": [[1.0, 1.0]]}, r"centre must have shape \(d,\)"),
    ({"centre": [1.0, np.nan]}, "centre must be finite"),
    ({"data": [[1e200, 0.0]]}, "overflow near row 0"),
    by=lambda options: gram(**{"data": [[1.0, 2.0]]} | options),
)


def test_a_missing_package_is_named(monkeypatch):
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    refuses(r"'rows.parquet' needs pyarrow \(pip install", gram, "rows.parquet")
    monkeypatch.setitem(sys.modules, "zarr", None)
    refuses(r"'rows.zarr' needs zarr \(pip install", gram, "rows.zarr")


def test_files_that_hold_no_numbers_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason=NO_PYARROW)
    writer = pytest.importorskip("pyarrow.parquet", reason=NO_PYARROW)
    (tmp_path / "text.pq").write_text("no table")
    for name, column in (("words", ["a", "b"]), ("gaps", [1.0, None])):
        writer.write_table(pyarrow.table({"c": column}), tmp_path / name)
    for name, message in (
        *(("nothing", r"cannot read .*nothing"), ("text.pq", "is not a Parquet file")),
        ("words", "column 'c' of .* must be numeric, got string"),
        ("gaps", "data must be finite, but row 1 has a NaN"),
    ):
        refuses(message, gram, tmp_path / name)


def test_numpy_files_that_cannot_be_read_in_rows_are_named(tmp_path):
    for name, array in (
        ("columns", np.asfortranarray(TWO + np.eye(2))),
        *(("flat", np.ones(3)), ("words", np.array([["a"]])), ("things", [[None]])),
    ):
        np.save(tmp_path / name, array)
    whole = npy(np.ones((9, 3)), tmp_path).read_bytes()
    (tmp_path / "short.npy").write_bytes(whole[:-8])
    (tmp_path / "text.npy").write_text("no array")
    for name, message in (
        ("columns", "column by column, and cannot be read in rows: save"),
        ("flat", r"'.*flat.npy' must have shape \(n, d\) .* got shape \(3,\)"),
        *(("words", "must be a numeric array"), ("things", "got Python objects")),
        *(("short", "ends before its 9 rows do"), ("text", "is not a NumPy file")),
        ("nothing", "cannot read .*nothing.npy'?: No such file"),
    ):
        refuses(message, gram, tmp_path / f"{name}.npy")


def test_folders_of_parquet_that_cannot_be_read_are_named(tmp_path):
    path = parquet_folder(example(), tmp_path)
    other = path / "1" / "part-9.parquet"
    parquet(example()[:, ::-1], tmp_path).rename(other)
    assert gram(path).n_rows == 1000
    parquet(example()[:, 1:], tmp_path).rename(other)
    refuses("part-9.parquet' must have the columns .*'c5'], got ", gram, path)
    for name in ("year=2020", "_empty"):
        path.rename(tmp_path / "old.parquet")
        (path / name).parent.mkdir()
        (tmp_path / "old.parquet").rename(path / name)
        refuses("a folder must hold Parquet files, and no columns in", gram, path)


def test_a_file_is_not_mapped(tmp_path, monkeypatch):
    """Where the address space is limited (`ulimit -v`) a large one could not be."""
    path = npy(example(), tmp_path)
    monkeypatch.setattr(np, "memmap", None)
    assert gram(path).n_rows == 500


@pytest.mark.parametrize("kind", [npy, parquet, zarr_array])
def test_a_file_that_is_changed_under_its_time_is_named(kind, tmp_path):
    """Whoever puts the time back does not put back when that was done."""
    path = kind(example(), tmp_path)
    file = path if path.is_file() else next(path.rglob("c/*/0"))

    def changed():
        for block in blocks(path, block_rows=64):
            if block.first == 64:
                told, content = file.stat(), file.read_bytes()
                file.write_bytes(content)
                os.utime(file, ns=(told.st_atime_ns, told.st_mtime_ns))
            yield block.rows

    refuses(f"{path.name}' has changed while it was read", gram, changed())


@pytest.mark.parametrize("kind", [npy, parquet, zarr_array])
def test_a_file_that_changes_while_it_is_read_is_named(kind, tmp_path):
    path = kind(example(), tmp_path)

    def changed():
        for block in blocks(path, block_rows=64):
            if block.first == 64:
                kind(example(n=501), tmp_path)
            yield block.rows

    refuses(f"{path.name}' has changed while it was read", gram, changed())


def test_large_groups_of_parquet_are_read_in_parts_and_damage_is_named(
    tmp_path, monkeypatch
):
    path, rows = parquet(example(), tmp_path), example()
    monkeypatch.setattr(blocks_module, "_GROUP", 0)
    monkeypatch.setattr(blocks_module, "_BATCH", 50)
    found = list(blocks(path))
    assert max(len(block.rows) for block in found) == 50
    np.testing.assert_array_equal(np.concatenate([b.rows for b in found]), rows)
    content = bytearray(path.read_bytes())
    content[100:3000] = bytes(2900)
    path.write_bytes(content)
    refuses("cannot read .*rows.parquet", gram, path)


def test_what_dask_and_zarr_cannot_say_is_named(tmp_path):
    rows = dask_array(example(), tmp_path)
    refuses("shape .*, d known, got .500, nan", gram, rows[:, (rows > 9).any(axis=0)])
    path = zarr_array(example(), tmp_path)
    damaged = next(x for x in sorted(path.rglob("*")) if x.parts[-2:] == ("2", "0"))
    damaged.write_bytes(b"damaged")
    refuses("^cannot read '.*rows.zarr': ", gram, path)


some_rows = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6),
)
norms = st.floats(1e-6, 1e6)


@given(some_rows, norms)
def test_clipped_rows_obey_the_bound_in_exact_arithmetic(rows, norm):
    """Rows that do already stay as they are, to the bit; so does what is clipped."""
    lengths = np.linalg.norm(rows, axis=1)
    long, clipped = lengths > norm, clip_rows(rows, norm)
    assert (np.linalg.norm(clipped, axis=1) <= norm).all()
    for row in clipped[long]:
        assert sum(Fraction(x) ** 2 for x in row.tolist()) <= Fraction(norm) ** 2
    kept, same = rows[~long], clipped[~long]
    np.testing.assert_array_equal(same.view(np.int64), kept.view(np.int64))
    # Subnormal numbers have no 13 digits.
    scaled = rows[long] * (norm / lengths[long])[:, np.newaxis]
    np.testing.assert_allclose(clipped[long], scaled, rtol=1e-13, atol=1e-300)


@given(some_rows, norms, st.data())
def test_each_row_is_clipped_by_itself(rows, norm, data):
    """The privacy claim: other rows, and their number, do not matter."""
    i = data.draw(st.integers(0, len(rows) - 1))
    np.testing.assert_array_equal(
        clip_rows(rows, norm)[i], clip_rows(rows[i : i + 1], norm)[0]
    )


@given(some_rows)
def test_normalised_rows_have_length_one_and_keep_their_direction(rows):
    unit = normalise_rows(rows)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    positive = lengths[:, 0] > 1e-100
    np.testing.assert_allclose(np.linalg.norm(unit[positive], axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(
        unit[positive] * lengths[positive], rows[positive], rtol=1e-13, atol=1e-300
    )


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1.0, 1e200, 1e308])
def test_lengths_that_over_or_underflow_when_squared(size):
    rows = np.array([[size, -size], [0.0, 0.0]])
    root = np.sqrt(0.5)
    np.testing.assert_allclose(
        normalise_rows(rows), [[root, -root], [0.0, 0.0]], rtol=1e-15
    )
    expected = [root, -root] if size >= 1 else [size, -size]
    np.testing.assert_allclose(clip_rows(rows, 1.0)[0], expected, rtol=1e-14)


def test_rows_are_left_alone_and_bad_norms_named():
    rows = np.array([[3.0, 4.0], [0.1, 0.1]])
    kept = rows.copy()
    clipped = clip_rows(rows, 1.0)
    normalise_rows(rows)
    clipped[:] = 7.0
    np.testing.assert_array_equal(rows, kept)
    for empty in (clip_rows(np.empty((0, 3)), 1.0), normalise_rows(np.empty((0, 3)))):
        assert empty.shape == (0, 3)
    refuses("norm must be", clip_rows, [[1.0]], 0)


test_bad_rows_are_named = refused(
    ([[1.0], [-np.inf]], "rows must be finite, but row 1"),
    ([1.0, 2.0], r"rows must have shape \(n, d\)"),
    (np.ones((2, 0)), r"rows must have shape \(n, d\)"),
    by=lambda use, rows: use(rows),
    each=(normalise_rows, lambda rows: clip_rows(rows, 1.0)),
)


@given(some_rows, norms)
def test_one_pass_tells_both_moments(rows, norm):
    found = clipped_gram(rows, norm)
    np.testing.assert_array_equal(
        found.clipped.moment, gram(rows, row_norm=norm).moment
    )
    whole = gram(rows).moment
    near = {"rtol": 1e-9, "atol": 1e-9 * np.trace(whole)}
    np.testing.assert_allclose(found.whole.moment, whole, **near)
    assert found.n_clipped == (clip_rows(rows, norm) != rows).any(axis=1).sum()
    assert (found.clipped.row_norm, found.whole.row_norm) == (norm, None)
    assert found.whole.n_rows == found.clipped.n_rows == len(rows)


def test_one_pass_names_rows_as_two_do():
    refuses(
        "data must be finite, but row 1 has", clipped_gram, [[1, 1], [1, np.inf]], 1.0
    )
    refuses("squares that are finite", clipped_gram, [[1e200, 1.0]], 1.0)


def test_what_is_read_of_rows_stands_for_them():
    rows = example()
    read = gram(rows, row_norm=1.0)
    more = read.with_row([3.0, 4.0, 0, 0, 0, 0])
    wanted = gram(np.vstack([rows, [3.0, 4.0, 0, 0, 0, 0]]), row_norm=1.0)
    np.testing.assert_allclose(more.moment, wanted.moment, rtol=1e-12)
    assert (more.n_rows, more.row_norm) == (501, 1.0)
    assert gram(read, row_norm=1.0) is read
    other = "data must be a Gram of rows clipped to 2.0, .* clipped to 1.0"
    refuses(other, gram, read, row_norm=2.0)
    refuses("without a centre", gram, read, row_norm=1.0, centre=np.ones(6))
