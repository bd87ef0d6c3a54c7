"""Comparisons on files larger than memory, against reading them and one `dsyrk`.

`python -m benchmarks.large` writes rows of 50 columns, 1e7 of them unless told
otherwise, as a ``.npy`` file and, where pyarrow is installed, as Parquet. For each, in
processes of their own: reading it in blocks with one product of BLAS to a block, and
``compare`` of three mechanisms. Targets: 1.3 times the time, and 1 GB.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.linalg import get_blas_funcs

from dpaudit.blocks import blocks

COLUMNS, BLOCK = 50, 100_000
NAMES = "goe-gaussian", "symmetrised-wishart", "power-method"


def write(path: Path, n_rows: int) -> None:
    """Write rows of which one in eight is longer than 1."""
    rng = np.random.default_rng(0)
    parts = (
        0.055 * rng.standard_normal((min(BLOCK, n_rows - first), COLUMNS)) * scales()
        for first in range(0, n_rows, BLOCK)
    )
    if path.suffix == ".npy":
        with path.open("wb") as file:
            header = {
                "descr": "<f8",
                "fortran_order": False,
                "shape": (n_rows, COLUMNS),
            }
            np.lib.format.write_array_header_1_0(file, header)
            for part in parts:
                part.tofile(file)
        return
    pyarrow, parquet = map(import_module, ("pyarrow", "pyarrow.parquet"))
    names = [f"c{j}" for j in range(COLUMNS)]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for part in parts:
            writer.write_table(pyarrow.table(list(part.T), schema=schema))


def scales() -> np.ndarray:
    """Return deviations of which the first few are largest."""
    return np.geomspace(4.0, 0.8, COLUMNS)


def measure(what: str, path: Path) -> None:
    """Print the seconds of one way, and the peak of its memory in MB."""
    from dpaudit.reports.comparison.run import compared

    started = time.perf_counter()
    if what == "compare":
        compared(NAMES, data=path, epsilons=[1.0], repetitions=20, budget=200)
    else:
        (dsyrk,) = get_blas_funcs(("syrk",), dtype=np.float64)
        total = np.zeros((COLUMNS, COLUMNS))
        for block in blocks(path):
            total += dsyrk(1.0, block.rows.T)
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{path.suffix} {what}: {seconds:.1f} s, {most:.0f} MB", flush=True)


def main() -> None:
    """Write the files, and measure each way in a process of its own."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="for the files [temporary]")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FILE"))
    given = parser.parse_args()
    if given.measure:
        measure(given.measure[0], Path(given.measure[1]))
        return
    kinds = [".npy", *([".parquet"] if find_spec("pyarrow") else [])]
    for kind in kinds:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            path = Path(folder) / f"rows{kind}"
            write(path, given.rows)
            for what in ("read", "compare"):
                own = [sys.executable, "-m", "benchmarks.large", "--measure", what]
                subprocess.run([*own, str(path)], check=True)


if __name__ == "__main__":
    main()
