"""The section on robust PCA: its grids and mechanisms, and how much of them is run.

The parameters are those of Maunu, Yu, Lerman, MSML 2022, section 5 and appendix C, in
the full profile. Noise is for a replaced row everywhere, the paper's relation, as
published and as corrected.
"""

from functools import partial
from typing import Any

from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust import conditions, findings, measures

_PHASES = ("robust-phases", "robust-phases-full", "robust-phases-reaper")

_NOTES: dict[str, Any] = {
    "robust-recovery": findings.recovery_notes,
    "robust-stability": findings.condition_notes,
    **dict.fromkeys(_PHASES, findings.phase_notes),
    "robust-budgets": partial(findings.tile_notes, where=["epsilon", "delta"]),
    "robust-batches": findings.batch_notes,
    "robust-ranks": partial(findings.tile_notes, where=["dimension", "n_components"]),
    **dict.fromkeys(("genotypes", "genotypes-reaper"), findings.map_notes),
}


def context(results: Results) -> dict[str, Any]:
    audits, people = results["robust-audits"], results.options("genotypes")
    runs = {name: each.repetitions for name, each in results.experiments.items()}
    loci, few = (
        int(results.options(name)["dimension"])
        for name in ("genotypes", "genotypes-reaper")
    )
    steps = int(people["inliers"] + people["outliers"])
    maps = [
        (results["genotypes"], loci, steps),
        (results["genotypes-reaper"], few, measures.REAPER_STEPS),
    ]
    return {
        "rows": findings.recovery_rows(results["robust-recovery"], audits),
        "constants": conditions.constant_rows(results["robust-constants"]),
        "notes": {
            **{name: find(results[name]) for name, find in _NOTES.items()},
            _PHASES[0]: findings.phase_notes(*(results[name] for name in _PHASES)),
        },
        "times": findings.map_rows(maps, audits),
        "delta": results.options("robust-audits")["delta"],
        "runs": {"phases": runs[_PHASES[0]], "slow": runs[_PHASES[2]]},
        "reaper_loci": few,
        "reaper_steps": measures.REAPER_STEPS,
    }


NOTES = {(name,): find for name, find in _NOTES.items()}
