"""The section on robust PCA: its grids and mechanisms, and how much of them is run.

The parameters are those of Maunu, Yu, Lerman, MSML 2022, section 5 and appendix C, in
the full profile. Noise is for a replaced row everywhere, the paper's relation, as
published and as corrected.
"""

from functools import partial
from typing import Any

import pandas as pd

from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment, declared
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.robust import conditions, findings, measures

_LENGTH = 20  # D, where it is not said
_PAPER = "Maunu, Yu, Lerman, MSML 2022"
_LENGTHS = (10, 20, 50, 100, 200, 400)
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}
_ON_BATCHES = tuple(name for name in measures.PAIRED if name.startswith("dp-s"))
_REAPER = tuple(name for name in measures.PAIRED if "reap" in name)

_SIZES = sizes(
    haystacks=(8, 40, 100),  # data sets behind every point of curves
    haystack_rows=(1000, 2000, 2000),  # N where errors are shown step by step
    # N and D where the final errors are shown, ascending: for descent on GLAD on
    # batches, for that on all rows, and for descent on REAPER.
    phase_rows=((250, 500, 1000), (500, 1000, 2000), (500, 1000, 2000, 4000)),
    phase_lengths=((10, 40, 160), _LENGTHS[:5], _LENGTHS),
    full_lengths=((10, 40), _LENGTHS[:4], _LENGTHS[:5]),
    reaper_rows=((250, 500), (500, 1000), (500, 1000, 2000)),
    reaper_lengths=((10,), (10, 20, 50), (10, 20, 50)),
    phase_runs=(8, 40, 50),  # data sets of a cell: batches on GLAD
    slow_runs=(3, 5, 50),  # the others
    tile_rows=(300, 1000, 2000),  # N of the other heat maps
    epsilons=((0.4, 1.6), (0.2, 0.8, 1.6), (0.1, 0.2, 0.4, 0.8, 1.6)),
    deltas=((1e-6, 1e-2), (1e-8, 1e-5, 1e-2), (1e-8, 1e-6, 1e-4, 1e-2)),
    batch_sizes=((4, 32), (2, 8, 32, 128), (1, 4, 16, 64, 256)),
    inlier_shares=((0.3, 0.6), (0.2, 0.4, 0.6, 0.8), (0.2, 0.3, 0.4, 0.6, 0.8)),
    rank_lengths=((10, 20), (10, 20, 40), (10, 20, 30, 50)),
    ranks=((1, 4), (1, 2, 4), (1, 2, 4, 8)),
    robust_samples=(3_000, 20_000, 100_000),  # releases a side of an audit
    constants=((1.0, 16.0), (1.0, 100.0), (1.0, 100.0, 10_000.0)),  # c_2
    ratios=((10.0, 40.0), (10.0, 100.0), (10.0, 100.0, 1000.0)),  # N/B
    transcripts=(200, 200, 500),  # runs a side
    # People on the map and off it, and their loci; the loci for descent on REAPER.
    genotypes=((600, 400, 300), (1387, 1000, 1000), (1387, 1000, 10_000)),
    reaper_loci=(60, 200, 1000),
)


_PHASES = ("robust-phases", "robust-phases-full", "robust-phases-reaper")
_TILES = {
    **dict.fromkeys(_PHASES, ("size", "2, 7, 8, 9", "rows", "dimension")),
    "robust-budgets": ("epsilon and delta", "4", "epsilon", "delta"),
    "robust-batches": ("batch and inliers", "5", "batch_size", "inlier_share"),
    "robust-ranks": ("length and components", "6", "dimension", "n_components"),
}
"""By experiment: what its heat map is by, the figures, and the columns of its grid."""


def experiments(size: Size) -> tuple[Experiment, ...]:
    """Return the experiments of a size."""
    recovery = {**_HAYSTACK, "rows": size.haystack_rows, "dimension": _LENGTH}
    found = [
        audit_experiment(
            *("robust", "Audits of robust PCA", size.robust_samples, 10.0),
            grid={"epsilon": (1.0,)},
        ),
        declared("robust-constants", "Theorem 6 with other constants")(
            source=f"{_PAPER}, Theorem 6",
            measure=conditions.audited_constants,
            mechanisms=("dp-sggd-published",),
            grid={"constant": size.constants, "ratio": size.ratios},
            options={
                **{"epsilon": 0.8, "delta": DELTA, "confidence": CONFIDENCE},
                "max_samples": size.transcripts,
            },
            effort=4.0,
        ),
        declared("robust-recovery", "Recovery of a subspace, step by step")(
            source=f"{_PAPER}, Figure 1",
            measure=measures.recovery_paths,
            mechanisms=(*measures.PUBLISHED, *measures.CORRECTED, measures.NOISELESS),
            repetitions=size.haystacks,
            options=recovery,
            effort=4.0,
        ),
        declared("robust-stability", "Conditions of the theorems")(
            source=f"{_PAPER}, Theorem 1, (3.2), (4.5)",
            measure=conditions.conditions,
            mechanisms=(measures.NOISELESS,),
            repetitions=size.haystacks,
            options=recovery,
        ),
    ]
    mechanisms = {
        _PHASES[0]: measures.PAIRED[:2],
        _PHASES[1]: measures.PAIRED[2:4],
        _PHASES[2]: _REAPER,
    }
    mechanisms["robust-batches"] = _ON_BATCHES
    grids = (
        (size.phase_rows, size.phase_lengths),
        (size.phase_rows, size.full_lengths),
        (size.reaper_rows, size.reaper_lengths),
        (size.epsilons, size.deltas),
        (size.batch_sizes, size.inlier_shares),
        (size.rank_lengths, size.ranks),
    )
    for (name, (by, figures, *columns)), values in zip(
        _TILES.items(), grids, strict=True
    ):
        grid = dict(zip(columns, values, strict=True))
        fixed = {**_HAYSTACK, "rows": size.tile_rows, "dimension": _LENGTH}
        if name in _PHASES:
            fixed = {**_HAYSTACK, "steps_per_row": 2.0}
        found.append(
            declared(name, f"Recovery by {by}", f"{_PAPER}, Figure {figures}")(
                measure=measures.recovery,
                mechanisms=mechanisms.get(name, measures.PAIRED),
                grid={column: tuple(map(float, grid[column])) for column in grid},
                repetitions=size.phase_runs if name == _PHASES[0] else size.slow_runs,
                options={key: fixed[key] for key in fixed if key not in grid},
                effort=4.0,
            )
        )
    inliers, outliers, loci = size.genotypes
    people = {"epsilon": 0.8, "inliers": inliers, "outliers": outliers}
    for name, maps, dimension in (
        ("genotypes", measures.MAPS, loci),
        ("genotypes-reaper", measures.REAPER_MAPS, size.reaper_loci),
    ):
        found.append(
            declared(name, "Maps from genotypes", f"{_PAPER}, Figures 3, 10")(
                measure=measures.genotype_map,
                mechanisms=maps,
                options={**people, "dimension": dimension},
                effort=2.0,
            )
        )
    return tuple(found)


def _tile_notes(name: str, table: pd.DataFrame) -> list[str]:
    return findings.tile_notes(table, *_TILES[name][2:])


_NOTES: dict[str, Any] = {
    "robust-recovery": findings.recovery_notes,
    "robust-stability": findings.condition_notes,
    **dict.fromkeys(_PHASES, findings.phase_notes),
    "robust-budgets": partial(_tile_notes, "robust-budgets"),
    "robust-batches": findings.batch_notes,
    "robust-ranks": partial(_tile_notes, "robust-ranks"),
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
        "setting": results.options("robust-recovery"),
        "tiles": results.options("robust-budgets"),
        "batches": results.options("robust-batches"),
        "runs": {"phases": runs[_PHASES[0]], "slow": runs[_PHASES[2]]},
        "genotypes": people,
        "reaper_loci": few,
        "reaper_steps": measures.REAPER_STEPS,
    }


SECTION = Section(
    name="robust",
    title="Robust PCA",
    parts=(Part("robust", "Robust PCA", 400),),
    sizes=_SIZES,
    uses=("privacy",),
    audits=("robust-audits",),
    notes={(name,): find for name, find in _NOTES.items()},
)
