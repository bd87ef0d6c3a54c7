"""What workers save, and what a store costs."""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.audit import Budget, Run, audit
from dpaudit.audit.keeping import checkpoint

RELEASE = 1e-3  # seconds


@dataclass(frozen=True)
class Laborious:
    """A release that keeps a core busy for a millisecond."""

    claim: PureDP = field(default=PureDP(1.0))

    def release(self, data: np.ndarray, *, rng: np.random.Generator) -> float:
        end = time.perf_counter() + RELEASE
        while time.perf_counter() < end:
            pass
        return float(data.sum() + rng.laplace())


class TwoWorkers:
    """An audit of a mechanism that takes a millisecond. Target: >= 1.7 for two."""

    version = "2"
    unit = "ratio"
    timeout = 600

    def track_one_over_two(self) -> float:
        """Return the time in this process over that of two workers."""
        # Forked: what workers import, asv's benchmarks are not.
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            list(pool.map(time.sleep, [0.1, 0.1]))
            two = _seconds(Run(executor=pool))
        return _seconds(Run()) / two


def _seconds(run: Run) -> float:
    mechanism: Any = Laborious()
    pair, budget = Pair([0.0], [0.0, 1.0]), Budget(2_500, stop=False)
    return audit(mechanism, pair=pair, budget=budget, run=run).seconds


class StoreShare:
    """What an audit of a quarter of a minute spends on its store. Target: <= 2 %."""

    version = "1"
    unit = "percent"
    timeout = 600

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "audits.db"

    def teardown(self) -> None:
        self.folder.cleanup()

    def track_store_share(self) -> float:
        """Return the share of the time that goes into what the store keeps."""
        spent = [0.0]
        kind = checkpoint.Recorder
        checkpoint.Recorder = _timed(kind, spent)  # type: ignore[misc]
        started = time.perf_counter()
        try:
            mechanism: Any = Laplace(1.0)
            audit(
                mechanism,
                budget=Budget(100_000_000, stop=False),
                run=Run(store=self.path),
            )
        finally:
            checkpoint.Recorder = kind  # type: ignore[misc]
        return 100 * spent[0] / (time.perf_counter() - started)


def _timed(kind: type, spent: list[float]) -> type:
    """Return a class whose methods note the time that they take."""

    def timed(method: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                spent[0] += time.perf_counter() - started

        return call

    names = ("__init__", "finished", "resume", "note", "keep", "finish")
    return type(kind.__name__, (kind,), {n: timed(getattr(kind, n)) for n in names})
