"""The same mechanisms under dp-recorder and under replay: marks needed, found, seconds.

python -m benchmarks.styles.recorder [--recorder FOLDER]

dp-recorder (Cebere, Erb, Desfontaines, Bellet, Fitzsimons: Privacy in theory, bugs in
practice, 2026, arXiv:2602.17454) is not on PyPI: FOLDER is the ``src`` of its
repository. It executes code twice, too. Its user marks what adds noise, with its
sensitivity, and each value that must not depend on the data; replay is handed the plain
code. Each mechanism is of a kind of fault that its authors published, or right, and
claims epsilon = 1. Both see the same pair.
"""

import argparse
import contextlib
import importlib
import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import Pair, PureDP
from dpaudit.arrays import Array
from dpaudit.audit.replay import replay

DELTA, SAMPLES = 1e-5, 10_000
Laplace = Callable[[Array, float, float], Array]
Noted = Callable[..., Any]
ROW, CODES = (
    Pair([0.5, 0.5, 0.5], [0.5, 0.5]),
    Pair([0.0, 1.0, 2.0, 0.0], [0.0, 1.0, 0]),
)


def right_count(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """A count, with noise of scale 1."""
    return laplace(np.array([float(len(data))]), 1.0, 1.0)


def private_divisor(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """A mean over the number of rows (Synthcity)."""
    noted(n=len(data))
    return laplace(np.array([data.clip(0, 1).sum()]), 1.0, 1.0) / len(data)


def classes_of_the_data(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """Counts of the values that there are (diffprivlib, dpmm)."""
    codes = np.unique(data)
    noted(codes=len(codes))
    counts = [np.array([float((data == code).sum())]) for code in codes]
    return [laplace(count, 1.0, 1.0)[0] for count in counts]


def nan_survives(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """A sum of clipped rows, of which NaN is not (SmartNoise, Opacus, others)."""
    return laplace(np.array([np.clip(data, 0, 1).sum()]), 1.0, 1.0)


def no_scale(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """Noise whose scale comes out as zero (Synthcity's PrivBayes)."""
    return laplace(np.array([data.sum()]), float(5 - 5), 1.0)


def spent_twice(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """A sum and a count, each at the whole epsilon."""
    total = laplace(np.array([data.clip(0, 1).sum()]), 1.0, 1.0)
    return total, laplace(np.array([float(len(data))]), 1.0, 1.0)


def sum_of_raw_rows(data: Array, laplace: Laplace, noted: Noted) -> Any:
    """A sum of rows that were to be clipped (SmartNoise, dpmm, diffprivlib)."""
    data.clip(0, 1)
    return laplace(np.array([data.sum()]), 1.0, 1.0)


CASES: dict[Callable[[Array, Laplace, Noted], Any], Pair] = {
    right_count: ROW,
    private_divisor: ROW,
    classes_of_the_data: CODES,
    nan_survives: Pair([0.5, 1.0], [0.5, np.nan], "replace-one", allow_nonfinite=True),
    no_scale: Pair([1.0, 1.0], [1.0]),
    spent_twice: Pair([0.0] * 5, [*[0.0] * 5, 1.0]),
    sum_of_raw_rows: Pair([1.0, 0.0], [1.0, 97.0], "replace-one"),
}


@dataclass
class Marked:
    """What dp-recorder needs of a mechanism, and says of it."""

    found: str
    seconds: float


def recorded(auditing: Any, case: Any, pair: Pair, *, noted: bool) -> Marked:
    """Record a case on D, and replay it on D', with or without marks of values."""

    def far(x: Array, y: Array) -> float:
        return float(np.nan_to_num(np.abs(x - y).sum(), nan=np.inf))

    def noisy(values: Array, sensitivity: float, epsilon: float) -> Array:
        noise = np.random.laplace(0.0, sensitivity / epsilon, values.shape)  # noqa: NPY002
        return values + noise

    marked = auditing.audit_spec(
        kind="laplace",
        input_arg="values",
        sensitivity_arg="sensitivity",
        metric_fn=far,
    )(noisy)
    public = auditing.ensure_equality if noted else lambda **_: None
    auditor, begun, found = auditing.Auditor(), time.perf_counter(), "nothing"
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            with auditor:
                case(pair.data, marked, public)
            auditor.set_replay()
            with auditor:
                case(pair.neighbour, marked, public)
            auditor.validate_records()
            auditor.run_distributional_audit(n_samples=SAMPLES, alpha=0.95)
            auditor.compute_overall_pld()
            epsilon = float(auditor.get_overall_current_guarantee(delta=DELTA))
            found = f"epsilon {epsilon:.2f}" if epsilon > 1 else "nothing"
        except AssertionError as error:
            found = str(error).strip().splitlines()[0][:40]
        except Exception as error:  # whatever it is, the table says so
            found = f"{type(error).__name__}: {error}"[:40]
    return Marked(found, time.perf_counter() - begun)


def replayed(case: Any, pair: Pair) -> Marked:
    """Replay a case that nothing is marked in."""

    def mechanism(data: Array, rng: np.random.Generator) -> Any:
        def laplace(values: Array, sensitivity: float, epsilon: float) -> Array:
            return values + rng.laplace(0.0, sensitivity / epsilon, values.shape)

        return case(data, laplace, lambda **_: None)

    begun = time.perf_counter()
    result = replay(mechanism, pair=pair, claim=PureDP(1.0))
    found = str(result.verdict)
    if result.findings:
        first = result.findings[0]
        found += f", {first.kind} at line {first.where.rpartition(':')[2]}"
    return Marked(found, time.perf_counter() - begun)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both on all cases, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--recorder", metavar="FOLDER", help="src of dp-recorder")
    options = parser.parse_args(arguments)
    auditing = None
    if options.recorder:
        sys.path.append(options.recorder)
        auditing = importlib.import_module("dp_recorder.auditing.audit_primitives")
    for case, pair in CASES.items():
        ours = replayed(case, pair)
        print(f"{case.__name__}\n  replay: {ours.found} ({ours.seconds:.2f} s)")
        for noted in (True, False) if auditing else ():
            theirs = recorded(auditing, case, pair, noted=noted)
            words = "with its values marked" if noted else "with noise alone marked"
            print(f"  dp-recorder, {words}: {theirs.found} ({theirs.seconds:.2f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
