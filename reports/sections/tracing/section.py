"""The section on tracing: what is measured, and how it is shown."""

from collections.abc import Sequence
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.tracing import figures, findings, measures
from dpaudit.reports.tables import refuted_mechanisms

__all__ = ["SECTION"]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_ROWS = (1, 2, 3, 4, 6, 8, 16, 64, 256, 1024, 4096)
_TRACED = (
    "analyze-gauss",
    "goe-gaussian",
    "symmetrised-wishart",
    "laplace-covariance",
    "power-method",
    "private-subspace",
    "exponential-pca",
)
_SOME = (_TRACED[0], *_TRACED[2:5])
_PANELS = 3  # components without noise, and the first mechanism at two epsilons


def _experiments(size: Size) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.tracing_rows))
    options = {**measures.HARD, "length": size.tracing_symbols}
    return (
        Experiment(
            name="tracing-references",
            title="Tracing principal components",
            question="Are rows traced in components that owe nothing to privacy?",
            source=f"{_PAPER}, section 5",
            measure=measures.traced,
            mechanisms=(BASELINE,),
            grid={"rows": rows},
            repetitions=size.tracing_trials,
            options=options,
            effort=2.0,
        ),
        Experiment(
            name="tracing",
            title="Tracing private components",
            question="Is what is useful on hard instances traced, and what is private?",
            source=f"{_PAPER}, Corollaries 25, 32",
            measure=measures.traced,
            mechanisms=size.tracing_mechanisms,
            grid={"epsilon": (1.0, 3000.0), "rows": rows},
            repetitions=size.tracing_trials,
            options=options,
            effort=5.0,
        ),
        Experiment(
            name="list-culling",
            title="List culling",
            question="Does it help to ignore half of what one knows?",
            source=f"{_PAPER}, Theorem 26",
            measure=measures.culled,
            mechanisms=measures.STRATEGIES,
            grid={"length": (500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0)},
            options={"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 10_000},
            effort=0.1,
        ),
    )


def _shares(results: Results) -> Sequence[findings.Shares]:
    return findings.shares(results["tracing-references"], results["tracing"])


def _context(results: Results) -> dict[str, Any]:
    options, rows = results.options("tracing"), results["tracing"]["rows"]
    found, dimension = _shares(results), measures.dimension_of(options)
    return {
        "rows": findings.tracing_rows(found),
        "notes": findings.tracing_notes(found, dimension),
        "setting": {**options, "dimension": dimension},
        "trials": results.experiments["tracing"].repetitions,
        "delta": 1 / options["length"] ** 2,
        "least": int(rows.min()),
        "most": int(rows.max()),
        "culling": findings.culling_rows(results["list-culling"]),
        "culling_notes": findings.culling_notes(results["list-culling"]),
        "game": results.options("list-culling"),
    }


def _draw(results: Results, narrow: bool) -> str:
    dimension = measures.dimension_of(results.options("tracing"))
    refuted = refuted_mechanisms(results["privacy-wall"])
    found = _shares(results)[:_PANELS]
    return figures.useful_and_traced(found, dimension, refuted=refuted, narrow=narrow)


SECTION = Section(
    name="tracing",
    parts=(Part("tracing", "Tracing", 600),),
    context=_context,
    figures={"tracing": _draw},
    sizes=sizes(
        tracing_trials=(8, 30, 100),  # hard instances behind every point
        tracing_symbols=(64, 96, 192),  # the length of their codewords
        # The rows per cluster, ascending.
        tracing_rows=((1, 2, 3, 4, 8, 128, 1024), _ROWS[:-1], _ROWS),
        # Whose releases are traced; the first is drawn.
        tracing_mechanisms=(_TRACED[:1], _SOME, _TRACED),
    ),
    experiments=_experiments,
    uses=("privacy",),
    notes={("list-culling",): findings.culling_notes},
)
