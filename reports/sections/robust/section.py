"""The section on robust PCA: how what is measured is shown."""

from typing import Any

from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.robust import figures, findings
from dpaudit.reports.sections.robust.constants import constant_rows
from dpaudit.reports.sections.robust.experiments import SIZES, experiments
from dpaudit.reports.sections.robust.genotypes import REAPER_STEPS
from dpaudit.reports.sections.robust.heatmaps import HEAT_MAPS, drawn

__all__ = ["SECTION"]

_PHASES = ("robust-phases", "robust-phases-full", "robust-phases-reaper")
_NOTES: dict[str, Any] = {
    "robust-recovery": findings.recovery_notes,
    "robust-stability": findings.condition_notes,
    **dict.fromkeys(_PHASES, findings.phase_notes),
    "robust-budgets": lambda table: findings.tile_notes(table, "epsilon", "delta"),
    "robust-batches": findings.batch_notes,
    "robust-ranks": lambda table: findings.tile_notes(
        table, "dimension", "n_components"
    ),
    "genotypes": findings.map_notes,
    "genotypes-reaper": findings.map_notes,
}


def _context(results: Results) -> dict[str, Any]:
    audits, people = results["robust-audits"], results.options("genotypes")
    loci = {
        name: int(results.options(name)["dimension"])
        for name in ("genotypes", "genotypes-reaper")
    }
    rows = int(people["inliers"] + people["outliers"])
    slow = results.experiments["robust-phases-reaper"]
    return {
        "rows": findings.recovery_rows(results["robust-recovery"], audits),
        "constants": constant_rows(results["robust-constants"]),
        "notes": {
            **{name: find(results[name]) for name, find in _NOTES.items()},
            _PHASES[0]: findings.phase_notes(*(results[name] for name in _PHASES)),
        },
        "times": findings.map_rows(
            [
                (results["genotypes"], loci["genotypes"], rows),
                (results["genotypes-reaper"], loci["genotypes-reaper"], REAPER_STEPS),
            ],
            audits,
        ),
        "delta": results.options("robust-audits")["delta"],
        "setting": results.options("robust-recovery"),
        "tiles": results.options("robust-budgets"),
        "batches": results.options("robust-batches"),
        "runs": {
            "phases": results.experiments["robust-phases"].repetitions,
            "slow": slow.repetitions,
        },
        "genotypes": people,
        "reaper_loci": loci["genotypes-reaper"],
        "reaper_steps": REAPER_STEPS,
    }


SECTION = Section(
    name="robust",
    title="Robust PCA",
    parts=(Part("robust", "Robust PCA", 400),),
    context=_context,
    figures={
        "robust-recovery": figures.error_by_step,
        "robust-clock": figures.error_by_time,
        **{each.name: drawn(each) for each in HEAT_MAPS},
        "genotypes": figures.maps,
        "genotypes-reaper": figures.reaper_maps,
    },
    sizes=SIZES,
    experiments=experiments,
    uses=("privacy",),
    audits=("robust-audits",),
    notes={(name,): find for name, find in _NOTES.items()},
)
