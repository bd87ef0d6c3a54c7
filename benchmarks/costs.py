"""What audits and replays cost, one case after the other, each held to its target.

python -m benchmarks.costs [--profile {quick,standard,full}] [CASE ...]

The cases are those of ``dpaudit bench-audit --only cost --only replay``, a whole replay
of AnalyzeGauss, held to five plain executions, and short audits
(`benchmarks/engine.py`). A name may be a part of one ("DP-SGD"). Times are processor
times: what else the machine does costs little.
"""

import argparse
import time
from statistics import median

import numpy as np

from benchmarks.engine import CASES as SHORT
from dpaudit import Pair
from dpaudit.algorithms import AnalyzeGauss
from dpaudit.audit.replay import replay
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.reports.bench.cost import Cost, CostCase, Replaying


def whole(rows: int, seed: int, columns: int = 100) -> float:
    """Return the processor time of a replay over that of a plain execution a side."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((rows, columns))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    mechanism = AnalyzeGauss.calibrated(1.0, 1e-5)
    pair = Pair(data, data[:-1])
    one, _ = ways_to_draw(mechanism)
    plain, replayed = [], []
    for _ in range(4):  # the first imports
        began = time.process_time()
        for each in (pair.data, pair.neighbour):
            one(each, rng)
        between = time.process_time()
        replay(mechanism, pair=pair, seed=seed)
        plain.append(between - began)
        replayed.append(time.process_time() - between)
    return min(replayed) / min(plain)


CASES = {
    **SHORT,
    **Cost.cases,
    **Replaying.cases,
    "replay, AnalyzeGauss": CostCase(
        ("d = 100, both sides", 5.0, "times"),
        whole,
        {"quick": (1, 2_000), "standard": (1, 100_000), "full": (1, 100_000)},
        least=100_000,
    ),
}


def main() -> None:
    """Measure what is asked for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE")
    profiles = ("quick", "standard", "full")
    parser.add_argument("--profile", choices=profiles, default="standard")
    options = parser.parse_args()
    for name, case in CASES.items():
        wanted = not options.cases or any(each in name for each in options.cases)
        if not wanted or options.profile not in case.sizes:
            continue
        repetitions, size = case.sizes[options.profile]
        subject, target, unit = case.target
        found = median(case.measure(size, seed) for seed in range(repetitions))
        found *= 100 if unit == "%" else 1
        print(
            f"{name:<32}{subject:<24}{size:>10,}{found:>9.2f} {unit} "
            f"(target {target:g})",
            flush=True,
        )


if __name__ == "__main__":
    main()
