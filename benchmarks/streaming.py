"""DP-PCA: one release on many rows, and the many releases of an audit."""

from collections.abc import Iterator

import numpy as np

from dpaudit.algorithms import DPPCA

BLOCK = 20_000


def blocks(count: int, dimension: int) -> Iterator[np.ndarray]:
    """Yield Gaussian rows in blocks, the first coordinate with twice the deviation."""
    rng = np.random.default_rng(0)
    scales = np.full(dimension, 0.5)
    scales[0] = 1.0
    for first in range(0, count, BLOCK):
        shape = (min(BLOCK, count - first), dimension)
        yield rng.standard_normal(shape) * scales


class DPPCARelease:
    """One release on a million rows of length 100.

    Targets: 20 s on 2 cores, and less than twice the memory of the rows, 1.6 GB.
    """

    params = ([(1_000_000, 100)],)
    param_names = ("shape",)
    timeout = 300.0
    repeat, number, warmup_time = 2, 1, 0.0

    def setup(self, shape: tuple[int, int]) -> None:
        self.mechanism = DPPCA.calibrated(1.0, 1e-6)
        self.rows = np.empty(shape)
        filled = 0
        for block in blocks(*shape):
            self.rows[filled : filled + len(block)] = block
            filled += len(block)

    def release(self) -> None:
        """Make the release; bottom would be no work worth timing."""
        found = self.mechanism.release(self.rows, rng=np.random.default_rng(1))
        assert abs(found[0]) > 0.9

    def time_release(self, shape: tuple[int, int]) -> None:
        """Time it."""
        self.release()

    def peakmem_release(self, shape: tuple[int, int]) -> None:
        """Measure the peak of the memory, the rows and the interpreter included."""
        self.release()


class DPPCAStream:
    """The same from blocks that are never all in memory."""

    params = ([(1_000_000, 100)],)
    param_names = ("shape",)
    timeout = 300.0

    def peakmem_release_stream(self, shape: tuple[int, int]) -> None:
        """Measure the peak of the memory. One batch is 114 MB."""
        mechanism = DPPCA.calibrated(1.0, 1e-6)
        rng = np.random.default_rng(1)
        mechanism.release_stream(blocks(*shape), count=shape[0], rng=rng)


class DPPCAAudit:
    """Ten thousand releases on small data. Target: two minutes."""

    timeout = 300.0
    repeat, number, warmup_time = 2, 1, 0.0

    def setup(self) -> None:
        self.mechanism = DPPCA.calibrated(1.0, 1e-5)
        self.rows = np.random.default_rng(0).standard_normal((2000, 3))
        self.pair = self.mechanism.worst_case()

    def time_draw_10000(self) -> None:
        """Time them on 2,000 Gaussian rows, too few for anything but bottom."""
        self.mechanism.draw(self.rows, 10_000, rng=np.random.default_rng(1))

    def time_draw_10000_worst_case(self) -> None:
        """Time them on the 2,484 rows of the worst case, where all steps are made."""
        self.mechanism.draw(self.pair.data, 10_000, rng=np.random.default_rng(1))
