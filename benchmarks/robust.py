"""Robust PCA on long rows: stylised genotypes, as many as in the paper.

``python -m benchmarks.robust`` prints what 100 steps take on 2,387 rows of length
10,000, wall and CPU seconds, and the peak of the memory. Targets: 60 s for dp-sggd,
180 s for dp-ggd, 4 GB. Descent on REAPER holds D x D matrices with a full spectrum in
every step, so there it is one step of rows of length 2,000.
"""

import resource
from multiprocessing import get_context
from time import perf_counter, process_time
from typing import Any

import numpy as np

from dpaudit.algorithms.robust.initialisation import PowerStart
from dpaudit.datasets import stylised_genotypes
from dpaudit.reports.sections.robust.measures import build_descent

INLIERS, OUTLIERS, LENGTH, STEPS = 1387, 1000, 10_000, 100


def rows(length: int) -> np.ndarray:
    """Return centred genotypes."""
    rng = np.random.default_rng(0)
    return stylised_genotypes(INLIERS, OUTLIERS, length, centred=True, rng=rng).rows


def descent(name: str, steps: int) -> Any:
    """Return a mechanism with the paper's epsilon, delta and r."""
    count = INLIERS + OUTLIERS
    setting = {
        "epsilon": 0.8,
        "delta": count**-0.5,
        "rows": count,
        "n_components": 2,
        "iterations": steps,
    }
    made = build_descent(name, setting)
    if hasattr(made, "start"):
        relation = made.relation
        setting["start"] = PowerStart(0.5, relation)
        made = build_descent(name, setting)
    return made


class GenotypeDescent:
    """A hundred steps on rows of length 1,000."""

    params = (["dp-sggd", "dp-ggd"],)
    param_names = ("mechanism",)
    timeout = 300.0
    repeat, number, warmup_time = 2, 1, 0.0

    def setup(self, mechanism: str) -> None:
        self.rows = rows(LENGTH // 10)
        self.mechanism = descent(mechanism, STEPS)

    def time_release(self, mechanism: str) -> None:
        """Time a release."""
        self.mechanism.release(self.rows, rng=np.random.default_rng(1))

    def peakmem_release(self, mechanism: str) -> None:
        """Measure the peak of the memory, the rows and the interpreter included."""
        self.mechanism.release(self.rows, rng=np.random.default_rng(1))


def measure(name: str, length: int, steps: int) -> None:
    """Print the time of one release and the peak of the memory of this process."""
    data = rows(length)
    mechanism = descent(name, steps)
    wall, cpu = perf_counter(), process_time()
    mechanism.release(data, rng=np.random.default_rng(1))
    wall, cpu = perf_counter() - wall, process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:12} D = {length:6,}, {steps:4} steps: {wall:6.1f} s wall, "
        f"{cpu:6.1f} s CPU, peak {peak:.2f} GB",
        flush=True,
    )


def main() -> None:
    """Measure each mechanism in a process of its own."""
    context = get_context("spawn")
    for name, length, steps in (
        ("dp-sggd", LENGTH, STEPS),
        ("dp-sggd", LENGTH, INLIERS + OUTLIERS),
        ("dp-ggd", LENGTH, STEPS),
        ("dp-gd-reap", LENGTH // 5, 1),
        ("dp-md-reap", LENGTH // 5, 1),
    ):
        process = context.Process(target=measure, args=(name, length, steps))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
