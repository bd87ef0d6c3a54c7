"""The section on tracing: what is measured, and how it is shown.

The sentences are in `dpaudit.reports.sections.tracing.findings`, the figure in
``figures`` beside it.
"""

from functools import partial
from typing import Any

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.tracing import figures, findings, measures
from dpaudit.reports.tables import refuted_mechanisms

__all__ = ["SECTION"]

_PAPER = "Dwork, Talwar, Thakurta, Zhang, STOC 2014"
_ROWS = (1, 2, 3, 4, 6, 8, 16, 64, 256, 1024, 4096)
_DRAWN = "analyze-gauss"
_CATALOGUE = tuple(
    name
    for family in ("covariance", "subspace")
    for name in names_of(family)
    if name != _DRAWN
)
_COMPONENTS = (1.0, 2.0, 4.0)
_EPSILONS = (1.0, 3000.0)


def _experiments(size: Size) -> tuple[Experiment, ...]:
    rows = tuple(map(float, size.tracing_rows))
    options = {
        **measures.HARD,
        "length": size.tracing_symbols,
        "pad_ratio": size.tracing_padding,
    }
    experiment = partial(
        Experiment,
        measure=measures.traced,
        repetitions=size.tracing_trials,
        options=options,
    )
    clusters = {"components": _COMPONENTS, "rows": rows}
    return (
        experiment(
            name="hard-instances",
            title="Hard instances",
            source=f"{_PAPER}, Lemmas 28, 30",
            measure=measures.spectra,
            mechanisms=(measures.INSTANCES,),
            grid=clusters,
        ),
        experiment(
            name="tracing-references",
            title="Tracing principal components",
            source=f"{_PAPER}, section 5",
            mechanisms=(BASELINE,),
            grid=clusters,
            effort=1.0,
        ),
        experiment(
            name="tracing",
            title="Tracing private components",
            source=f"{_PAPER}, Corollaries 25, 32",
            mechanisms=(_DRAWN,),
            grid={"epsilon": _EPSILONS, **clusters},
            effort=2.0,
        ),
        experiment(
            name="tracing-catalogue",
            title="Tracing every private subspace",
            source=f"{_PAPER}, Corollaries 25, 32",
            mechanisms=_CATALOGUE,
            grid={
                "epsilon": _EPSILONS,
                "components": _COMPONENTS,
                "rows": tuple(map(float, size.catalogue_rows)),
            },
            repetitions=size.catalogue_trials,
            effort=8.0,
        ),
        Experiment(
            name="list-culling",
            title="List culling",
            source=f"{_PAPER}, Theorem 26",
            measure=measures.culled,
            mechanisms=measures.STRATEGIES,
            grid={"length": (500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0)},
            options={"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 10_000},
            effort=0.1,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    options = results.options("tracing")
    length = int(options["length"])
    found = findings.all_shares(results)
    refuted = refuted_mechanisms(results["privacy-wall"])
    many = results["tracing-catalogue"]["rows"]
    ends = int(many.min()), int(many.max())
    return {
        "head": findings.head(found, refuted, length),
        "instances": findings.instance_notes(results["hard-instances"], length),
        "heads": findings.table_heads(found),
        "rows": findings.tracing_rows(found, refuted, ends),
        "notes": findings.tracing_notes(found, refuted),
        "refusals": findings.refusals(found),
        "setting": {**options, "dimension": measures.dimension_of(options)},
        "trials": results.experiments["tracing"].repetitions,
        "catalogue_trials": results.experiments["tracing-catalogue"].repetitions,
        "delta": 1 / length**2,
        "ends": ends,
        "culling": findings.culling_rows(results["list-culling"]),
        "culling_notes": findings.culling_notes(results["list-culling"]),
        "game": results.options("list-culling"),
    }


SECTION = Section(
    name="tracing",
    title="Tracing",
    parts=(Part("tracing", "Tracing", 600),),
    context=_context,
    figures={"tracing": figures.useful_and_traced},
    sizes=sizes(
        tracing_trials=(6, 20, 100),  # hard instances behind every point
        tracing_symbols=(64, 96, 192),  # the length of their codewords
        tracing_padding=(1, 3, 3),  # ones per symbol
        # The rows per cluster, ascending.
        tracing_rows=((1, 2, 4, 8, 128, 512), _ROWS[:-1], _ROWS),
        # For all other mechanisms: few rows, and many.
        catalogue_rows=((2, 512), (2, 64, 1024), (1, 2, 64, 1024)),
        catalogue_trials=(2, 6, 12),
    ),
    experiments=_experiments,
    uses=("privacy",),
    notes={("list-culling",): findings.culling_notes},
)
