"""The section on robust PCA: what is measured, and how it is shown."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.measures import audited_privacy
from dpaudit.reports.sections import Notes, Part, Results, Section
from dpaudit.reports.sections.robust.figures import error_by_step, maps, phases
from dpaudit.reports.sections.robust.findings import (
    map_notes,
    phase_notes,
    recovery_notes,
    recovery_rows,
)
from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    MAPS,
    NOISELESS,
    PUBLISHED,
    genotype_map,
    recovery,
    recovery_paths,
)
from dpaudit.reports.tables import refuted_mechanisms, standing_mechanisms

__all__ = ["AUDITED", "SECTION", "Size"]

AUDITED = (*PUBLISHED, *CORRECTED)
_PAPER = "Maunu, Yu, Lerman, MSML 2022"
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    haystacks : int
        Data sets behind every point of the figures.
    haystack_rows : int
        N of those whose errors are shown step by step.
    phase_rows, phase_lengths : tuple of int
        N and D of those of which the final errors are shown, ascending.
    robust_samples : int
        Most releases a side in the audits.
    genotypes : tuple of int
        How many people are on the map and off it, and their loci.
    """

    haystacks: int
    haystack_rows: int
    phase_rows: tuple[int, ...]
    phase_lengths: tuple[int, ...]
    robust_samples: int
    genotypes: tuple[int, int, int]


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    inliers, outliers, dimension = size.genotypes
    experiment = partial(Experiment, seed=seed)
    return (
        experiment(
            name="robust-audits",
            title="Audits of robust PCA",
            question="Which claims of robust PCA do releases refute?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=AUDITED,
            grid={"epsilon": (1.0,)},
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": size.robust_samples,
            },
            effort=10.0,
        ),
        experiment(
            name="robust-recovery",
            title="Recovery of a subspace, step by step",
            question="How fast does private robust PCA find a subspace?",
            source=f"{_PAPER}, Figure 1",
            measure=recovery_paths,
            mechanisms=(*PUBLISHED, *CORRECTED, NOISELESS),
            repetitions=size.haystacks,
            options={**_HAYSTACK, "rows": size.haystack_rows, "dimension": 20},
            effort=4.0,
        ),
        experiment(
            name="robust-phases",
            title="Recovery by size",
            question="For which sizes does private robust PCA find a subspace?",
            source=f"{_PAPER}, Figure 2",
            measure=recovery,
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
            measure=genotype_map,
            mechanisms=MAPS,
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
        "rows": recovery_rows(paths, results["robust-audits"]),
        "notes": recovery_notes(paths),
        "phase_notes": phase_notes(results["robust-phases"]),
        "map_notes": map_notes(results["genotypes"]),
        "delta": results.options("robust-audits")["delta"],
        "setting": results.options("robust-recovery"),
        "genotypes": results.options("genotypes"),
    }


def _recovery(found: Results, narrow: bool) -> str:
    audits = found["robust-audits"]
    return error_by_step(
        found["robust-recovery"],
        refuted=refuted_mechanisms(audits),
        standing=standing_mechanisms(audits),
        narrow=narrow,
    )


def _phases(found: Results, narrow: bool) -> str:
    refuted = refuted_mechanisms(found["robust-audits"])
    return phases(found["robust-phases"], refuted=refuted, narrow=narrow)


def _maps(found: Results, narrow: bool) -> str:
    # One of the maps is by a mechanism of the wall.
    audits = found["robust-audits"], found["privacy-wall"]
    refuted = [name for each in audits for name in refuted_mechanisms(each)]
    return maps(found["genotypes"], refuted=refuted, narrow=narrow)


SECTION = Section(
    name="robust",
    parts=(Part("robust", "Robust PCA", 400),),
    context=_context,
    figures={
        "robust-recovery": _recovery,
        "robust-phases": _phases,
        "genotypes": _maps,
    },
    sizes={
        "quick": Size(
            haystacks=8,
            haystack_rows=1000,
            phase_rows=(250, 500, 1000),
            phase_lengths=(10, 40, 160),
            robust_samples=3_000,
            genotypes=(600, 400, 300),
        ),
        "standard": Size(
            haystacks=40,
            haystack_rows=2000,
            phase_rows=(500, 1000, 2000),
            phase_lengths=(10, 20, 50, 100, 200),
            robust_samples=20_000,
            genotypes=(1387, 1000, 1000),
        ),
        "paper": Size(
            haystacks=100,
            haystack_rows=2000,
            phase_rows=(500, 1000, 2000, 4000),
            phase_lengths=(10, 20, 50, 100, 200, 400),
            robust_samples=100_000,
            genotypes=(1387, 1000, 10_000),
        ),
    },
    experiments=_experiments,
    uses=("privacy",),
    notes=(
        Notes(
            ("robust-recovery",), lambda found: recovery_notes(found["robust-recovery"])
        ),
        Notes(("robust-phases",), lambda found: phase_notes(found["robust-phases"])),
        Notes(("genotypes",), lambda found: map_notes(found["genotypes"])),
    ),
)
