"""The section on streaming PCA: what is measured, and how it is shown."""

from functools import partial
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.streaming import figures, findings, measures

__all__ = ["SECTION"]

# Where privacy costs nothing, and what is left is the sampling of the rows.
_WITHOUT_NOISE = 1000.0
_ROWS = (100_000, 200_000, 400_000, 800_000)
_OPTIONS = {"epsilon": 1.0, "delta": 1e-6}


def _experiments(size: Size) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.stream_rows))
    experiment = partial(
        Experiment,
        measure=measures.streaming_errors,
        repetitions=size.streams,
    )
    return (
        experiment(
            name="streaming-rates",
            title="Rates of streaming PCA in n",
            question="How does the error fall with n: of sampling, and of privacy?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Theorem 5.1, Corollary 5.2",
            mechanisms=(measures.DP_PCA,),
            grid={"epsilon": (1.0, _WITHOUT_NOISE), "n": rows},
            options={**_OPTIONS, "d": 20},
            effort=3.0,
        ),
        experiment(
            name="streaming-dimensions",
            title="Rates of streaming PCA in d",
            question="How does the error of privacy grow with d?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Corollary 5.2",
            mechanisms=(measures.DP_PCA,),
            grid={"d": (5.0, 10.0, 20.0, 40.0)},
            options={**_OPTIONS, "n": rows[-2]},
            effort=1.5,
        ),
        experiment(
            name="signal-in-noise",
            title="Signal in noise",
            question="Does the price of privacy vanish with the spread of the rows?",
            source="Liu, Kong, Jain, Oh, NeurIPS 2022, Example 4.1",
            mechanisms=(measures.DP_PCA, measures.MINIBATCH_OJA),
            grid={"noise": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)},
            options={**_OPTIONS, "d": 20, "n": rows[1]},
            effort=2.0,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    found = findings.rates(results)
    return {
        "dimensions": results.options("streaming-dimensions"),
        "signal": results.options("signal-in-noise"),
        "batches": measures.BATCHES,
        "rows": findings.rate_rows(found),
        "size_notes": findings.size_notes(found),
        "miss_notes": findings.miss_notes(found),
        "signal_notes": findings.signal_notes(found),
    }


def _by_size(found: Results, narrow: bool) -> str:
    return figures.error_by_size(findings.rates(found), narrow=narrow)


def _by_spread(found: Results, narrow: bool) -> str:
    return figures.error_by_spread(findings.rates(found), narrow=narrow)


SECTION = Section(
    name="streaming",
    parts=(Part("streaming", "Streaming", 300),),
    context=_context,
    figures={"streaming-rates": _by_size, "signal-in-noise": _by_spread},
    sizes=sizes(
        streams=(4, 60, 120),  # independent data sets behind every point
        stream_rows=(_ROWS[:3], _ROWS, _ROWS),  # two or more
    ),
    experiments=_experiments,
    notes={findings.TABLES: findings.exponent_lines},
)
