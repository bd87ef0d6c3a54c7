"""The second-moment matrix in one pass, against one call of BLAS on data in memory."""

import tempfile
from pathlib import Path

import numpy as np
from scipy.linalg import get_blas_funcs

from benchmarks.samplers import median_ratio
from dpaudit.gram import gram

(dsyrk,) = get_blas_funcs(("syrk",), dtype=np.float64)

NUMBERS = 10_000_000  # 80 MB as float64


def unit_rows(dimension: int, size: int | None = None) -> np.ndarray:
    """Return rows just shorter than 1, for 80 MB unless a number is given."""
    size = NUMBERS // dimension if size is None else size
    rows = np.random.default_rng(0).standard_normal((size, dimension))
    rows /= 1.01 * np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


class Gram:
    """Time over that of ``dsyrk`` on the same rows. Target: at most 1.25.

    ``dsyrk`` leaves one triangle out, and looks neither at lengths nor for NaN.
    """

    version = "1"
    unit = "ratio"
    params = ([16, 54, 200, 784],)
    param_names = ("dimension",)
    timeout = 300.0

    def setup(self, dimension: int) -> None:
        self.rows = unit_rows(dimension)

    def ratio(self, **options: object) -> float:
        """Return the median ratio over interleaved runs."""
        return median_ratio(
            lambda: gram(self.rows, **options),  # type: ignore[arg-type]
            lambda: dsyrk(1.0, self.rows.T),
        )

    def track_no_bound(self, dimension: int) -> float:
        """Return the ratio where rows are not clipped."""
        return self.ratio()

    def track_no_row_too_long(self, dimension: int) -> float:
        """Return the ratio where all lengths are measured, and no row is scaled."""
        return self.ratio(row_norm=1.0)

    def track_all_rows_too_long(self, dimension: int) -> float:
        """Return the ratio where every row is scaled."""
        return self.ratio(row_norm=0.5)

    def track_public_centre(self, dimension: int) -> float:
        """Return the ratio where every row is centred, and its length measured."""
        return self.ratio(row_norm=2.0, centre=np.full(self.rows.shape[1], 0.01))


class GramOfTable(Gram):
    """The same for 54 columns, as many as Covertype has, by the number of rows."""

    params = ([100_000, 400_000],)
    param_names = ("rows",)

    def setup(self, rows: int) -> None:
        self.rows = unit_rows(54, rows)


class Stream:
    """Peak memory of one pass over 80 MB in a file: mapped, and clipped."""

    def setup_cache(self) -> str:
        """Write the file once."""
        path = Path(tempfile.mkdtemp()) / "rows.npy"
        np.save(path, unit_rows(54))
        return str(path)

    def peakmem_blocks(self, path: str) -> None:
        """Measure the memory of one pass over blocks that are read one by one."""
        rows = np.load(path, mmap_mode="r")
        starts = range(0, len(rows), 10_000)
        gram((np.array(rows[i : i + 10_000]) for i in starts), row_norm=0.5)

    def time_memory_mapped(self, path: str) -> None:
        """Time one pass over the mapped file."""
        gram(np.load(path, mmap_mode="r"), row_norm=0.5)
