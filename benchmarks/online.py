"""A subspace after each of a hundred thousand rows, and the many releases of an audit.

``python -m benchmarks.online`` prints what a stream takes, wall and CPU seconds, how
often its subspaces were computed exactly, and its regret.
"""

from functools import partial
from itertools import product
from time import perf_counter, process_time

import numpy as np

from dpaudit.algorithms.online.doubling import DoublingOnlinePCA
from dpaudit.algorithms.online.factorised import FactorisedOnlinePCA
from dpaudit.algorithms.online.leading_subspace import DEFAULT_TOLERANCE
from dpaudit.algorithms.online.tree_aggregation import OnlinePCA, TreeAggregation

ROWS, DIMENSION, RANK = 100_000, 50, 5


def rows(count: int, dimension: int, rank: int) -> np.ndarray:
    """Return clipped Gaussian rows: 0.6 of their variance in a turned subspace."""
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    variances = np.full(dimension, 0.4 / (dimension - rank))
    variances[:rank] = 0.6 / rank
    drawn = rng.standard_normal((count, dimension)) * np.sqrt(variances) @ turned.T
    return drawn / np.maximum(1, np.linalg.norm(drawn, axis=1, keepdims=True))


class OnlinePCAStream:
    """Row by row, a fiftieth of the rows that have a target: 60 s on one core."""

    params = ([ROWS // 50], [0.0, DEFAULT_TOLERANCE])
    param_names = ("rows", "tolerance")
    timeout = 300.0
    repeat, number, warmup_time = 1, 1, 0.0
    maker = staticmethod(OnlinePCA.calibrated)

    def setup(self, count: int, tolerance: float) -> None:
        self.rows = rows(count, DIMENSION, RANK)

    def run(self, count: int, tolerance: float) -> tuple[float, int]:
        """Return the reward, and how many subspaces were computed exactly."""
        mechanism = self.maker(1.0, 1e-6, n_components=RANK, length=count)
        stream = mechanism.start(
            DIMENSION, tolerance=tolerance, rng=np.random.default_rng(1)
        )
        earned = 0.0
        for row in self.rows:
            seen = row @ stream.basis
            earned += seen @ seen
            stream.add(row)
        return earned, stream.leading.exact_steps

    def time_stream(self, count: int, tolerance: float) -> None:
        """Time it."""
        self.run(count, tolerance)

    def peakmem_stream(self, count: int, tolerance: float) -> None:
        """Measure the peak of the memory, the rows and the interpreter included."""
        self.run(count, tolerance)

    def track_regret(self, count: int, tolerance: float) -> float:
        """Track the regret."""
        earned, _ = self.run(count, tolerance)
        return optimum(self.rows) - earned


class FactorisedStream(OnlinePCAStream):
    """The same with noise of a root with 12 poles."""

    maker = staticmethod(partial(FactorisedOnlinePCA.calibrated, poles=12))


class DoublingStreams:
    """Row by row with the doubling trick, where all subspaces are exact."""

    params = ([ROWS // 50],)
    param_names = ("rows",)
    timeout = 300.0
    repeat, number, warmup_time = 1, 1, 0.0

    def setup(self, count: int) -> None:
        self.rows = rows(count, DIMENSION, RANK)

    def time_stream(self, count: int) -> None:
        """Time it."""
        mechanism = DoublingOnlinePCA.calibrated(
            1.0, 1e-6, n_components=RANK, length=count
        )
        stream = mechanism.start(DIMENSION, rng=np.random.default_rng(1))
        for row in self.rows:
            stream.add(row)


class OnlineAudits:
    """Ten thousand releases of 16 rows."""

    params = (["prefixes", "subspaces", "doubling"],)
    param_names = ("kind",)
    timeout = 300.0
    repeat, number, warmup_time = 2, 1, 0.0

    def setup(self, kind: str) -> None:
        self.mechanism = {
            "prefixes": TreeAggregation.calibrated(1.0, 1e-5, length=16),
            "subspaces": OnlinePCA.calibrated(1.0, 1e-5, length=16),
            "doubling": DoublingOnlinePCA.calibrated(1.0, 1e-5, length=16),
        }[kind]
        self.pair = self.mechanism.worst_case()

    def time_draw_10000(self, kind: str) -> None:
        """Time them."""
        self.mechanism.draw(self.pair.data, 10_000, rng=np.random.default_rng(1))


def optimum(data: np.ndarray) -> float:
    """Return what the best fixed subspace would have earned."""
    return float(np.linalg.eigvalsh(data.T @ data)[-RANK:].sum())


if __name__ == "__main__":
    for kind, case in product(
        (OnlinePCAStream, FactorisedStream), (DEFAULT_TOLERANCE, 0.0)
    ):
        bench = kind()
        bench.setup(ROWS, case)
        wall, cpu = perf_counter(), process_time()
        reward, exact = bench.run(ROWS, case)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        print(
            f"{kind.__name__}: m = {ROWS}, d = {DIMENSION}, k = {RANK}, "
            f"tolerance {case:g}: "
            f"{wall:.1f} s wall, {cpu:.1f} s CPU, {exact} exact subspaces, "
            f"regret {optimum(bench.rows) - reward:.0f} of {optimum(bench.rows):.0f}"
        )
