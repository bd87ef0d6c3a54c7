"""The section on tracing: what is measured, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Notes, Part, Results, Section
from dpaudit.reports.sections.tracing.figures import useful_and_traced
from dpaudit.reports.sections.tracing.findings import (
    Shares,
    culling_notes,
    culling_rows,
    shares,
    tracing_notes,
    tracing_rows,
)
from dpaudit.reports.sections.tracing.measures import (
    HARD,
    STRATEGIES,
    culled,
    dimension_of,
    traced,
)
from dpaudit.reports.tables import refuted_mechanisms

__all__ = ["SECTION", "Size"]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_PANELS = 3  # components without noise, and the first mechanism at two epsilons


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    tracing_trials : int
        Hard instances behind every point.
    tracing_symbols : int
        The length of their codewords.
    tracing_rows : tuple of int
        The rows per cluster, ascending.
    tracing_mechanisms : tuple of str
        Whose releases are traced; the first is drawn.
    """

    tracing_trials: int
    tracing_symbols: int
    tracing_rows: tuple[int, ...]
    tracing_mechanisms: tuple[str, ...]


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.tracing_rows))
    options = {**HARD, "length": size.tracing_symbols}
    return (
        Experiment(
            name="tracing-references",
            title="Tracing principal components",
            question="Are rows traced in components that owe nothing to privacy?",
            source=f"{_PAPER}, section 5",
            measure=traced,
            mechanisms=(BASELINE,),
            grid={"rows": rows},
            repetitions=size.tracing_trials,
            seed=seed,
            options=options,
            effort=2.0,
        ),
        Experiment(
            name="tracing",
            title="Tracing private components",
            question="Is what is useful on hard instances traced, and what is private?",
            source=f"{_PAPER}, Corollaries 25, 32",
            measure=traced,
            mechanisms=size.tracing_mechanisms,
            grid={"epsilon": (1.0, 3000.0), "rows": rows},
            repetitions=size.tracing_trials,
            seed=seed,
            options=options,
            effort=5.0,
        ),
        Experiment(
            name="list-culling",
            title="List culling",
            question="Does it help to ignore half of what one knows?",
            source=f"{_PAPER}, Theorem 26",
            measure=culled,
            mechanisms=STRATEGIES,
            grid={"length": (500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0)},
            seed=seed,
            options={"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 10_000},
            effort=0.1,
        ),
    )


def _shares(results: Results) -> Sequence[Shares]:
    return shares(results["tracing-references"], results["tracing"])


def _context(results: Results) -> dict[str, Any]:
    options, rows = results.options("tracing"), results["tracing"]["rows"]
    found, dimension = _shares(results), dimension_of(options)
    return {
        "rows": tracing_rows(found),
        "notes": tracing_notes(found, dimension),
        "setting": {**options, "dimension": dimension},
        "trials": results.experiments["tracing"].repetitions,
        "delta": 1 / options["length"] ** 2,
        "least": int(rows.min()),
        "most": int(rows.max()),
        "culling": culling_rows(results["list-culling"]),
        "culling_notes": culling_notes(results["list-culling"]),
        "game": results.options("list-culling"),
    }


def _draw(results: Results, narrow: bool) -> str:
    dimension = dimension_of(results.options("tracing"))
    refuted = refuted_mechanisms(results["privacy-wall"])
    found = _shares(results)[:_PANELS]
    return useful_and_traced(found, dimension, refuted=refuted, narrow=narrow)


SECTION = Section(
    name="tracing",
    parts=(Part("tracing", "Tracing", 600),),
    context=_context,
    figures={"tracing": _draw},
    sizes={
        "quick": Size(
            tracing_trials=8,
            tracing_symbols=64,
            tracing_rows=(1, 2, 3, 4, 8, 128, 1024),
            tracing_mechanisms=("analyze-gauss",),
        ),
        "standard": Size(
            tracing_trials=30,
            tracing_symbols=96,
            tracing_rows=(1, 2, 3, 4, 6, 8, 16, 64, 256, 1024),
            tracing_mechanisms=(
                "analyze-gauss",
                "symmetrised-wishart",
                "laplace-covariance",
                "power-method",
            ),
        ),
        "paper": Size(
            tracing_trials=100,
            tracing_symbols=192,
            tracing_rows=(1, 2, 3, 4, 6, 8, 16, 64, 256, 1024, 4096),
            tracing_mechanisms=(
                "analyze-gauss",
                "goe-gaussian",
                "symmetrised-wishart",
                "laplace-covariance",
                "power-method",
                "private-subspace",
                "exponential-pca",
            ),
        ),
    },
    experiments=_experiments,
    uses=("privacy",),
    notes=(
        Notes(("list-culling",), lambda found: culling_notes(found["list-culling"])),
    ),
)
