"""The section on robust PCA: how what is measured is shown.

The experiments on robust PCA: grids, mechanisms, and how much of them is run.

The parameters are those of Maunu, Yu, Lerman, MSML 2022, section 5 and appendix C, in
the full profile. Noise is for a replaced row everywhere, the paper's relation, as
published and as corrected.
"""

from typing import Any

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.robust import conditions, findings, measures
from dpaudit.reports.sections.robust.conditions import audited_constants, constant_rows
from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    NOISELESS,
    PAIRED,
    PUBLISHED,
    REAPER_STEPS,
)

__all__ = ["SECTION"]

_LENGTH = 20  # D, where it is not said
_PAPER = "Maunu, Yu, Lerman, MSML 2022"
_LENGTHS = (10, 20, 50, 100, 200, 400)
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}
_ON_BATCHES = tuple(name for name in PAIRED if name.startswith("dp-s"))
_REAPER = tuple(name for name in PAIRED if "reap" in name)

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


def experiments(size: Size) -> tuple[Experiment, ...]:
    """Return the experiments of a size."""
    people = dict(zip(("inliers", "outliers"), size.genotypes, strict=False))
    recovery = {**_HAYSTACK, "rows": size.haystack_rows, "dimension": _LENGTH}
    tiles = {**_HAYSTACK, "rows": size.tile_rows, "dimension": _LENGTH}
    return (
        audit_experiment(
            names_of("robust"),
            size.robust_samples,
            name="robust-audits",
            title="Audits of robust PCA",
            effort=10.0,
        ),
        Experiment(
            name="robust-constants",
            title="Theorem 6 with other constants",
            source=f"{_PAPER}, Theorem 6",
            measure=audited_constants,
            mechanisms=("dp-sggd-published",),
            grid={"constant": size.constants, "ratio": size.ratios},
            options={
                **{"epsilon": 0.8, "delta": DELTA, "confidence": CONFIDENCE},
                "max_samples": size.transcripts,
            },
            effort=4.0,
        ),
        Experiment(
            name="robust-recovery",
            title="Recovery of a subspace, step by step",
            source=f"{_PAPER}, Figure 1",
            measure=measures.recovery_paths,
            mechanisms=(*PUBLISHED, *CORRECTED, NOISELESS),
            repetitions=size.haystacks,
            options=recovery,
            effort=4.0,
        ),
        Experiment(
            name="robust-stability",
            title="Conditions of the theorems",
            source=f"{_PAPER}, Theorem 1, (3.2), (4.5)",
            measure=conditions.conditions,
            mechanisms=(NOISELESS,),
            repetitions=size.haystacks,
            options=recovery,
        ),
        _phases(size, "robust-phases", PAIRED[:2], size.phase_runs),
        _phases(
            size,
            "robust-phases-full",
            PAIRED[2:4],
            size.slow_runs,
            dimension=size.full_lengths,
        ),
        _phases(
            size,
            "robust-phases-reaper",
            _REAPER,
            size.slow_runs,
            rows=size.reaper_rows,
            dimension=size.reaper_lengths,
        ),
        _tiles(
            "robust-budgets",
            "Recovery by epsilon and delta",
            "4",
            tiles,
            size.slow_runs,
            epsilon=size.epsilons,
            delta=size.deltas,
        ),
        _tiles(
            "robust-batches",
            "Recovery by batch and inliers",
            "5",
            tiles,
            size.slow_runs,
            _ON_BATCHES,
            batch_size=size.batch_sizes,
            inlier_share=size.inlier_shares,
        ),
        _tiles(
            "robust-ranks",
            "Recovery by length and components",
            "6",
            tiles,
            size.slow_runs,
            dimension=size.rank_lengths,
            n_components=size.ranks,
        ),
        _genotypes("genotypes", measures.MAPS, people, size.genotypes[2]),
        _genotypes("genotypes-reaper", measures.REAPER_MAPS, people, size.reaper_loci),
    )


def _tiles(
    name: str,
    title: str,
    figures: str,
    options: dict[str, Any],
    runs: int,
    mechanisms: tuple[str, ...] = PAIRED,
    **grid: tuple[float, ...],
) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        source=f"{_PAPER}, Figure {figures}",
        measure=measures.recovery,
        mechanisms=mechanisms,
        grid={column: tuple(map(float, values)) for column, values in grid.items()},
        repetitions=runs,
        options={key: value for key, value in options.items() if key not in grid},
        effort=4.0,
    )


def _phases(
    size: Size, name: str, mechanisms: tuple[str, ...], runs: int, **grid: Any
) -> Experiment:
    grid = {"rows": size.phase_rows, "dimension": size.phase_lengths, **grid}
    options = {**_HAYSTACK, "steps_per_row": 2.0}
    title = "Recovery by size"
    return _tiles(name, title, "2, 7, 8, 9", options, runs, mechanisms, **grid)


def _genotypes(
    name: str, mechanisms: tuple[str, ...], people: dict[str, int], loci: int
) -> Experiment:
    return Experiment(
        name=name,
        title="Maps from genotypes",
        source=f"{_PAPER}, Figures 3, 10",
        measure=measures.genotype_map,
        mechanisms=mechanisms,
        options={"epsilon": 0.8, **people, "dimension": loci},
        effort=2.0,
    )


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


def context(results: Results) -> dict[str, Any]:
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
    sizes=_SIZES,
    uses=("privacy",),
    audits=("robust-audits",),
    notes={(name,): find for name, find in _NOTES.items()},
)
