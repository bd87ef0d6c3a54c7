"""Throughput of the samplers, and their overhead over bare NumPy in the same run."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.algorithms import CATALOGUE, build, entry, names_of
from dpaudit.algorithms.covariance.second_moment import symmetric_gaussian, wishart
from dpaudit.neighbours import Relation

DIMENSION = 64
BATCH = 200
REPEATS = 5


def median_ratio(
    first: Callable[[], object], second: Callable[[], object], repeats: int = REPEATS
) -> float:
    """Return the median of time(first)/time(second) over interleaved runs."""

    def seconds(call: Callable[[], object]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    for call in (first, second):
        call()
    return float(np.median([seconds(first) / seconds(second) for _ in range(repeats)]))


class Draw:
    """Batched releases of the mechanisms on matrices, by dimension."""

    params = (
        [16, 64, 128],
        # In so many dimensions that one takes seconds a draw.
        [name for name in names_of("covariance") if name != "k-norm-covariance"],
    )
    param_names = ("dimension", "mechanism")

    def setup(self, dimension: int, name: str) -> None:
        self.mechanism = build(name)
        self.data = np.eye(dimension)
        self.rng = np.random.default_rng(0)

    def time_draw_100(self, dimension: int, name: str) -> None:
        """Time 100 releases."""
        self.mechanism.draw(self.data, 100, rng=self.rng)  # type: ignore[attr-defined]


class KNorm:
    """Draws of k-norm noise in batches of a hundred.

    Targets, in seconds of processor time a draw: .002 at d = 6, .01 there under
    replace-one, .2 at d = 20, and 5 in batches of ten at d = 54 (`LARGE`), which take
    most of a minute: `python -m benchmarks.samplers` draws one.
    """

    version = "2"
    unit = "s"
    params = (
        [
            (Relation.ADD_REMOVE, 6),
            (Relation.REPLACE_ONE, 6),
            (Relation.ADD_REMOVE, 20),
        ],
    )
    param_names = ("case",)
    timeout = 1200.0
    LARGE = (Relation.ADD_REMOVE, 54)

    def track_draw(self, case: tuple[Relation, int]) -> float:
        """Return the processor time of a draw."""
        relation, dimension = case
        mechanism: Any = entry("k-norm-covariance").build(relation=relation)
        rng, size = np.random.default_rng(0), 10 if dimension > 20 else 100
        started = time.process_time()
        mechanism.noise(size, dimension, rng=rng)
        return (time.process_time() - started) / size


class KNormSize:
    """The spectral norm of symmetrised Wishart noise over that of k-norm noise.

    Under replace-one. Targets: at least 1.6 at d = 2, and 1.2 at d = 5.
    """

    version = "1"
    unit = "ratio"
    params = ([2, 5],)
    param_names = ("dimension",)

    def track_ratio(self, dimension: int) -> float:
        """Return the ratio of the means of 50,000 draws of either."""
        sizes = []
        for name in ("symmetrised-wishart", "k-norm-covariance"):
            mechanism: Any = entry(name).build(relation=Relation.REPLACE_ONE)
            rng = np.random.default_rng(0)
            noise = mechanism.noise(50_000, dimension, rng=rng)
            sizes.append(np.abs(np.linalg.eigvalsh(noise)).max(axis=1).mean())
        return float(sizes[0] / sizes[1])


class DrawOnWorstCase:
    """Batched releases of every mechanism, on the data that audits draw on.

    Not of those that are other libraries': some take hours for so many.
    """

    params = ([name for name, entry in CATALOGUE.items() if entry.extra is None],)
    param_names = ("mechanism",)

    def setup(self, name: str) -> None:
        self.mechanism = build(name)
        self.data = self.mechanism.worst_case().data  # type: ignore[attr-defined]
        self.rng = np.random.default_rng(0)

    def time_draw_1_000(self, name: str) -> None:
        """Time 1,000 releases."""
        self.mechanism.draw(self.data, 1_000, rng=self.rng)  # type: ignore[attr-defined]


class Overhead:
    """Batched noise against the same normals and products in bare NumPy.

    Target: at most 2.
    """

    version = "1"
    unit = "ratio"

    def setup(self) -> None:
        self.rng = np.random.default_rng(0)

    def track_symmetric_gaussian_ratio(self) -> float:
        """Return the time of the sampler over that of its normals."""
        normals = DIMENSION * (DIMENSION + 1) // 2
        return median_ratio(
            lambda: symmetric_gaussian(
                BATCH, DIMENSION, off_diagonal=1.0, diagonal=1.4, rng=self.rng
            ),
            lambda: self.rng.standard_normal((BATCH, normals)),
        )

    def track_wishart_ratio(self) -> float:
        """Return the time of the sampler over that of its normals and products."""

        def bare() -> object:
            factors = self.rng.standard_normal((BATCH, DIMENSION, DIMENSION + 1))
            return factors @ factors.swapaxes(-2, -1)

        return median_ratio(
            lambda: wishart(
                BATCH, DIMENSION, degrees=DIMENSION + 1, scale=0.5, rng=self.rng
            ),
            bare,
        )


if __name__ == "__main__":
    for case in (*KNorm.params[0], KNorm.LARGE):
        print(f"k-norm, {case[0]}, d = {case[1]}: {KNorm().track_draw(case):.5f} s")
    for dimension in KNormSize.params[0]:
        ratio = KNormSize().track_ratio(dimension)
        print(f"less noise, replace-one, d = {dimension}: {ratio:.3f} times")
