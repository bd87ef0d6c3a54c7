"""The section on streaming PCA: what is measured, and how it is shown."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Notes, Part, Results, Section
from dpaudit.reports.sections.streaming.figures import error_by_size, error_by_spread
from dpaudit.reports.sections.streaming.findings import (
    exponent_lines,
    miss_notes,
    rate_rows,
    rates,
    signal_notes,
    size_notes,
)
from dpaudit.reports.sections.streaming.measures import (
    BATCHES,
    DP_PCA,
    MINIBATCH_OJA,
    streaming_errors,
)

__all__ = ["SECTION", "Size"]

# Where privacy costs nothing, and what is left is the sampling of the rows.
_WITHOUT_NOISE = 1000.0
_OPTIONS = {"epsilon": 1.0, "delta": 1e-6}
_TABLES = ("streaming-rates", "streaming-dimensions", "signal-in-noise")


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    streams : int
        Independent data sets behind every point.
    stream_rows : tuple of int
        Their sizes, ascending, two or more.
    """

    streams: int
    stream_rows: tuple[int, ...]


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.stream_rows))
    experiment = partial(
        Experiment, measure=streaming_errors, repetitions=size.streams, seed=seed
    )
    return (
        experiment(
            name="streaming-rates",
            title="Rates of streaming PCA in n",
            question="How does the error fall with n: of sampling, and of privacy?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Theorem 5.1, Corollary 5.2",
            mechanisms=(DP_PCA,),
            grid={"epsilon": (1.0, _WITHOUT_NOISE), "n": rows},
            options={**_OPTIONS, "d": 20},
            effort=3.0,
        ),
        experiment(
            name="streaming-dimensions",
            title="Rates of streaming PCA in d",
            question="How does the error of privacy grow with d?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Corollary 5.2",
            mechanisms=(DP_PCA,),
            grid={"d": (5.0, 10.0, 20.0, 40.0)},
            options={**_OPTIONS, "n": rows[-2]},
            effort=1.5,
        ),
        experiment(
            name="signal-in-noise",
            title="Signal in noise",
            question="Does the price of privacy vanish with the spread of the rows?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Example 4.1",
            mechanisms=(DP_PCA, MINIBATCH_OJA),
            grid={"noise": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)},
            options={**_OPTIONS, "d": 20, "n": rows[1]},
            effort=2.0,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    found = rates(results)
    return {
        "dimensions": results.options("streaming-dimensions"),
        "signal": results.options("signal-in-noise"),
        "batches": BATCHES,
        "rows": rate_rows(found),
        "size_notes": size_notes(found),
        "miss_notes": miss_notes(found),
        "signal_notes": signal_notes(found),
    }


def _by_size(found: Results, narrow: bool) -> str:
    return error_by_size(rates(found), narrow=narrow)


def _by_spread(found: Results, narrow: bool) -> str:
    return error_by_spread(rates(found), narrow=narrow)


SECTION = Section(
    name="streaming",
    parts=(Part("streaming", "Streaming", 300),),
    context=_context,
    figures={"streaming-rates": _by_size, "signal-in-noise": _by_spread},
    sizes={
        "quick": Size(streams=4, stream_rows=(100_000, 200_000, 400_000)),
        "standard": Size(streams=60, stream_rows=(100_000, 200_000, 400_000, 800_000)),
        "paper": Size(streams=120, stream_rows=(100_000, 200_000, 400_000, 800_000)),
    },
    experiments=_experiments,
    notes=(Notes(_TABLES, exponent_lines),),
)
