"""The section on robust PCA: what is measured, and how it is shown."""

from functools import partial
from typing import Any

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.robust import figures, findings, measures
from dpaudit.reports.tables import refuted_mechanisms, standing_mechanisms

__all__ = ["AUDITED", "SECTION"]

AUDITED = (*measures.PUBLISHED, *measures.CORRECTED)
_PAPER = "Maunu, Yu, Lerman, MSML 2022"
_LENGTHS = (10, 20, 50, 100, 200, 400)
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}


def _experiments(size: Size) -> tuple[Experiment, ...]:
    inliers, outliers, dimension = size.genotypes
    experiment = partial(Experiment)
    return (
        audit_experiment(
            AUDITED,
            size.robust_samples,
            name="robust-audits",
            title="Audits of robust PCA",
            question="Which claims of robust PCA do releases refute?",
            effort=10.0,
        ),
        experiment(
            name="robust-recovery",
            title="Recovery of a subspace, step by step",
            question="How fast does private robust PCA find a subspace?",
            source=f"{_PAPER}, Figure 1",
            measure=measures.recovery_paths,
            mechanisms=(*measures.PUBLISHED, *measures.CORRECTED, measures.NOISELESS),
            repetitions=size.haystacks,
            options={**_HAYSTACK, "rows": size.haystack_rows, "dimension": 20},
            effort=4.0,
        ),
        experiment(
            name="robust-phases",
            title="Recovery by size",
            question="For which sizes does private robust PCA find a subspace?",
            source=f"{_PAPER}, Figure 2",
            measure=measures.recovery,
            mechanisms=("dp-sggd-published", "dp-sggd"),
            grid={
                "rows": tuple(map(float, size.phase_rows)),
                "dimension": tuple(map(float, size.phase_lengths)),
            },
            repetitions=size.haystacks,
            options={**_HAYSTACK, "steps_per_row": 2.0},
            effort=4.0,
        ),
        experiment(
            name="genotypes",
            title="Maps from genotypes",
            question="Does the map of where people are from survive noise?",
            source=f"{_PAPER}, Figures 3, 10",
            measure=measures.genotype_map,
            mechanisms=measures.MAPS,
            options={
                "epsilon": 0.8,
                "inliers": inliers,
                "outliers": outliers,
                "dimension": dimension,
            },
            effort=2.0,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    paths = results["robust-recovery"]
    return {
        "rows": findings.recovery_rows(paths, results["robust-audits"]),
        "notes": findings.recovery_notes(paths),
        "phase_notes": findings.phase_notes(results["robust-phases"]),
        "map_notes": findings.map_notes(results["genotypes"]),
        "delta": results.options("robust-audits")["delta"],
        "setting": results.options("robust-recovery"),
        "genotypes": results.options("genotypes"),
    }


def _recovery(found: Results, narrow: bool) -> str:
    audits = found["robust-audits"]
    return figures.error_by_step(
        found["robust-recovery"],
        refuted=refuted_mechanisms(audits),
        standing=standing_mechanisms(audits),
        narrow=narrow,
    )


def _phases(found: Results, narrow: bool) -> str:
    refuted = refuted_mechanisms(found["robust-audits"])
    return figures.phases(found["robust-phases"], refuted=refuted, narrow=narrow)


def _maps(found: Results, narrow: bool) -> str:
    # One of the figures.maps is by a mechanism of the wall.
    audits = found["robust-audits"], found["privacy-wall"]
    refuted = [name for each in audits for name in refuted_mechanisms(each)]
    return figures.maps(found["genotypes"], refuted=refuted, narrow=narrow)


SECTION = Section(
    name="robust",
    parts=(Part("robust", "Robust PCA", 400),),
    context=_context,
    figures={
        "robust-recovery": _recovery,
        "robust-phases": _phases,
        "genotypes": _maps,
    },
    sizes=sizes(
        haystacks=(8, 40, 100),  # data sets behind every point
        haystack_rows=(1000, 2000, 2000),  # N where errors are shown step by step
        # N and D where the final errors are shown, ascending.
        phase_rows=((250, 500, 1000), (500, 1000, 2000), (500, 1000, 2000, 4000)),
        phase_lengths=((10, 40, 160), _LENGTHS[:5], _LENGTHS),
        robust_samples=(3_000, 20_000, 100_000),  # releases a side of an audit
        # People on the map and off it, and their loci.
        genotypes=((600, 400, 300), (1387, 1000, 1000), (1387, 1000, 10_000)),
    ),
    experiments=_experiments,
    uses=("privacy",),
    notes={
        ("robust-recovery",): findings.recovery_notes,
        ("robust-phases",): findings.phase_notes,
        ("genotypes",): findings.map_notes,
    },
)
