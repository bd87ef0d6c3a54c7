"""One release of every mechanism for private PCA: run time and peak memory.

The catalogue says which there are. Not those of other libraries, of which some take
hours; textbook mechanisms know neither rows nor columns (`benchmarks.samplers`).
"""

from typing import Any

import numpy as np

from dpaudit.algorithms import CATALOGUE, build, entry
from dpaudit.datasets import spiked_gaussian
from dpaudit.errors import InputError
from dpaudit.rows import normalise_rows

NAMES = [
    name
    for name, each in CATALOGUE.items()
    if each.family != "textbook" and each.extra is None
]
MOST_ROWS = {"online": 1_000}  # each row makes a release
# Perfect simulation takes 40 s at 64 columns; `benchmarks.samplers` has its sizes.
MOST_COLUMNS = {"k-norm-covariance": 16}


class Release:
    """By rows and columns: spiked Gaussian rows of length 1."""

    params = ([1_000, 10_000], [16, 64], NAMES)
    param_names = ("rows", "dimension", "mechanism")
    repeat = (1, 5, 2.0)
    timeout = 120.0

    def setup(self, rows: int, dimension: int, name: str) -> None:
        if dimension > MOST_COLUMNS.get(name, dimension):
            raise NotImplementedError
        self.mechanism: Any = build(name)
        if not takes(self.mechanism, rows, dimension):
            raise NotImplementedError
        if rows > MOST_ROWS.get(entry(name).family, rows):
            raise NotImplementedError
        dataset = spiked_gaussian(
            rows, dimension, spikes=[4.0] * 5, rng=np.random.default_rng(0)
        )
        self.rows = normalise_rows(dataset.rows)

    def time_release(self, rows: int, dimension: int, name: str) -> None:
        """Time one release."""
        self.mechanism.release(self.rows, rng=np.random.default_rng(1))

    def peakmem_release(self, rows: int, dimension: int, name: str) -> None:
        """Measure the peak of the memory, the rows and the interpreter included."""
        self.mechanism.release(self.rows, rng=np.random.default_rng(1))

    peakmem_release.params = ([1_000, 10_000], [64], NAMES)  # type: ignore[attr-defined]


def takes(mechanism: Any, rows: int, dimension: int) -> bool:
    """Say whether a mechanism takes so many rows, and so many columns."""
    try:
        mechanism.worst_case(dimension)
    except InputError:
        return False
    length: int | None = getattr(mechanism, "length", None)  # of a stream
    return length is None or rows <= length
