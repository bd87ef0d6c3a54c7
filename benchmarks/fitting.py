"""Private PCA from data to components: run time and peak memory by dimension."""

import numpy as np

from dpaudit.algorithms import build, names_of
from dpaudit.datasets import spiked_gaussian
from dpaudit.rows import normalise_rows
from dpaudit.subspace import top_components

ROWS = 10_000
COMPONENTS = 5


class Fit:
    """One release and its top components."""

    params = ([16, 64, 256], list(names_of("covariance")))
    param_names = ("dimension", "mechanism")

    def setup(self, dimension: int, name: str) -> None:
        dataset = spiked_gaussian(
            ROWS, dimension, spikes=[4.0] * COMPONENTS, rng=np.random.default_rng(0)
        )
        self.rows = normalise_rows(dataset.rows)
        self.mechanism = build(name)

    def run(self) -> None:
        """Fit once."""
        release = self.mechanism.release(self.rows, rng=np.random.default_rng(1))
        top_components(np.asarray(release), COMPONENTS)

    def time_fit(self, dimension: int, name: str) -> None:
        """Time one fit."""
        self.run()

    def peakmem_fit(self, dimension: int, name: str) -> None:
        """Measure the peak memory of the process during one fit."""
        self.run()
