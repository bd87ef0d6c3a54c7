"""Audits on a Dask cluster of this machine against one process: time, bytes, kills.

    python -m benchmarks.clusters [--kills 10] [--rows 10000000]

All figures of a line are of one run, and most are ratios. On two quiet cores: at least
1.8 times the throughput of one process at a millisecond a release, no less than it at
10 microseconds, at most 1.1 times its processor time, and the bytes of a task whatever
the rows. The extra 'cluster' is needed.
"""

import argparse
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.audit import Budget, Run, audit

PAIR = Pair([0.0], [0.0, 1.0])


@dataclass(frozen=True)
class Busy:
    """A release that keeps a core busy for so many seconds of processor time."""

    seconds: float
    claim: PureDP = field(default=PureDP(1.0))

    def release(self, data: np.ndarray, *, rng: np.random.Generator) -> float:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return float(data[-1] + rng.laplace())


def values(result: Any) -> dict[str, Any]:
    """Return the fields of a result that do not hang on who computed it, and when."""
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}


def processor_seconds(client: Any = None) -> float:
    """Return the processor time of this process, and of the workers of a cluster."""
    here = resource.getrusage(resource.RUSAGE_SELF)
    spent = here.ru_utime + here.ru_stime
    return spent + sum(client.run(time.process_time).values() if client else [])


def audited(
    mechanism: Any, releases: int, client: Any = None, pair: Pair | None = PAIR
) -> tuple[Any, float, float]:
    """Return the result of an audit, its seconds and those of the processor."""
    before, started = processor_seconds(client), time.perf_counter()
    run = Run(executor=client)
    budget = Budget(releases, stop=False)
    result = audit(mechanism, pair=pair, budget=budget, run=run)
    seconds = time.perf_counter() - started
    return values(result), seconds, processor_seconds(client) - before


@contextmanager
def cluster() -> Iterator[Any]:
    """Yield a client of two workers on this machine."""
    dask = import_module("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with dask.LocalCluster(**options) as two, dask.Client(two) as client:
        audited(Busy(1e-3), 100, client)  # all is imported
        yield client


def compare(name: str, mechanism: Any, releases: int, client: Any, **more: Any) -> None:
    """Print what two workers take, over what one process takes."""
    one, alone, spent_alone = audited(mechanism, releases, **more)
    two, seconds, spent = audited(mechanism, releases, client, **more)
    same = "the same result" if one == two else "ANOTHER RESULT"
    print(
        f"{name}, {releases:,} releases a side: throughput {alone / seconds:.2f} times "
        f"one process ({alone:.1f} s), processor time {spent / spent_alone:.2f} times; "
        f"{same}",
        flush=True,
    )


def task_bytes(rows: int, client: Any) -> int:
    """Return the bytes of the largest task of an audit of so many rows."""
    pair = Pair(np.zeros(rows), np.append(np.zeros(rows), 1.0))
    largest = [0]
    submit = client.submit

    def measured(function: Any, *arguments: Any, **options: Any) -> Any:
        # In place of what is placed, its name: so it travels.
        sent = [getattr(each, "key", each) for each in arguments]
        largest[0] = max(largest[0], len(pickle.dumps((function, sent))))
        return submit(function, *arguments, **options)

    client.submit = measured
    try:
        audited(Busy(1e-4), 3_000, client, pair)
    finally:
        client.submit = submit
    return largest[0]


def kills(count: int, seconds: float, client: Any) -> None:
    """Print whether an audit is the same where workers are killed meanwhile."""
    mechanism: Any = Busy(1e-3)
    releases = int(700 * seconds)
    one, alone, _ = audited(mechanism, releases)
    killed, over = [0], threading.Event()

    def kill() -> None:
        while killed[0] < count and not over.wait(seconds / (count + 1)):
            try:
                found = sorted(client.run(os.getpid).items())
                os.kill(found[killed[0] % len(found)][1], signal.SIGKILL)
            except (OSError, ZeroDivisionError):  # it is dying, or none is left
                continue
            killed[0] += 1

    thread = threading.Thread(target=kill)
    thread.start()
    started = time.perf_counter()
    result = audit(
        mechanism,
        pair=PAIR,
        budget=Budget(releases, stop=False),
        run=Run(executor=client),
    )
    taken = time.perf_counter() - started
    over.set()
    thread.join()
    same = "the same result" if one == values(result) else "ANOTHER RESULT"
    print(
        f"{killed[0]} kills in {taken:.0f} s ({alone:.0f} s in one process): {same}",
        flush=True,
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="of a run of kills"
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of all releases")
    asked = parser.parse_args()
    with cluster() as client:
        for seconds, releases in ((1e-3, 40_000), (1e-5, 1_000_000)):
            name = f"{seconds * 1e6:,.0f} microseconds a release"
            compare(name, Busy(seconds), int(releases * asked.scale), client)
        cheap = int(10_000_000 * asked.scale)
        compare("vectorised Laplace", Laplace(1.0), cheap, client, pair=None)
        for rows in (1_000, asked.rows):
            print(
                f"{task_bytes(rows, client):,} bytes a task at {rows:,} rows",
                flush=True,
            )
        if asked.kills:
            kills(asked.kills, asked.seconds, client)


if __name__ == "__main__":
    main()
