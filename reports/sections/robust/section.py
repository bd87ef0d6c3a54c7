"""The section on robust PCA: what is measured, and how it is shown.

The sentences are chosen by the data.
"""

from math import exp, isfinite, nan
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.robust import figures, measures
from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    NOISELESS,
    PUBLISHED,
    TOLERANCE,
)
from dpaudit.reports.tables import Printed, verdict_rows
from dpaudit.reports.words import count, delta, duration, listed, number, percent, short

__all__ = [
    "AUDITED",
    "SECTION",
    "map_notes",
    "phase_notes",
    "recovery_notes",
    "recovery_rows",
    "restart_factor",
]

AUDITED = (*PUBLISHED, *CORRECTED)
_PAPER = "Maunu, Yu, Lerman, MSML 2022"
_LENGTHS = (10, 20, 50, 100, 200, 400)
_HAYSTACK = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}
_RESTART = 50  # steps of one length
_ROUNDING = 1e-20  # errors below are those of floating point


def _experiments(size: Size) -> tuple[Experiment, ...]:
    inliers, outliers, dimension = size.genotypes
    return (
        audit_experiment(
            AUDITED,
            size.robust_samples,
            name="robust-audits",
            title="Audits of robust PCA",
            effort=10.0,
        ),
        Experiment(
            name="robust-recovery",
            title="Recovery of a subspace, step by step",
            source=f"{_PAPER}, Figure 1",
            measure=measures.recovery_paths,
            mechanisms=(*PUBLISHED, *CORRECTED, NOISELESS),
            repetitions=size.haystacks,
            options={**_HAYSTACK, "rows": size.haystack_rows, "dimension": 20},
            effort=4.0,
        ),
        Experiment(
            name="robust-phases",
            title="Recovery by size",
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
        Experiment(
            name="genotypes",
            title="Maps from genotypes",
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


def recovery_rows(paths: pd.DataFrame, audits: pd.DataFrame) -> list[Printed]:
    """Return a row for each mechanism that was audited, as in the table of audits."""
    medians = _medians(paths)
    seconds = paths.groupby("mechanism", sort=False)["seconds"].max()
    rows = []
    for verdict in verdict_rows(audits):
        curve = medians[verdict.name].dropna()
        reached = _first_within(curve)
        rows.append(
            Printed(
                verdict=verdict,
                error=delta(curve.iloc[-1]),
                reached=count(reached) if isfinite(reached) else "–",
                time=duration(float(seconds[verdict.name])),
            )
        )
    return rows


def recovery_notes(paths: pd.DataFrame) -> list[str]:
    """Return how errors fall, in which order, and what correct noise costs."""
    medians = _medians(paths)
    ends = medians.ffill().iloc[-1]
    order = sorted(PUBLISHED, key=lambda name: ends[name])
    notes = [
        "As published, the median errors at the end are in the order "
        f"{' < '.join(map(short, order))}."
    ]
    for convex in ("dp-sgd-reap-published", "dp-smd-reap-published"):
        ahead = medians.index[medians[convex] < medians["dp-sggd-published"]]
        if len(ahead):
            notes.append(
                f"{short(convex)} is ahead of dp-sggd up to step {count(ahead[-1])}."
            )
    lost = [name for name in PUBLISHED if ends[name] > 0.5]
    if lost:
        notes.append(
            f"{listed(map(short, lost))} find{'s' if len(lost) == 1 else ''} nothing "
            "with the printed noise, which is far more than the claim needs."
        )
    half = {name: _first_within(medians[name].dropna()) for name in CORRECTED}
    published = _first_within(medians["dp-sggd-published"].dropna())
    found = [name for name in CORRECTED if isfinite(half[name])]
    notes.append(
        f"Corrected, {len(found)} of {len(CORRECTED)} come within {TOLERANCE:g}; "
        f"dp-sggd takes {_steps(half['dp-sggd'])}, as published {_steps(published)}."
    )
    factor = restart_factor(paths)
    if isfinite(factor):
        notes.append(
            f"Without noise ({NOISELESS}) the error falls by a factor of "
            f"{number(factor)} with each restart of {_RESTART} steps, where Theorem 5 "
            "promises 2."
        )
    return notes


def restart_factor(paths: pd.DataFrame) -> float:
    """Return the factor by which the noiseless error falls in 50 steps; NaN if unseen.

    From a straight line through the logarithms of the medians, after the first two
    restarts and before rounding.
    """
    curve = _medians(paths)[NOISELESS].loc[2 * _RESTART :]
    curve = curve[curve > _ROUNDING]
    if len(curve) < 2:
        return nan
    slope = np.polyfit(curve.index, np.log(curve), 1)[0]
    return exp(-slope * _RESTART)


def phase_notes(phases: pd.DataFrame) -> list[str]:
    """Return up to which length of rows the subspace is found, by mechanism."""
    most = phases["rows"].max()
    notes = []
    for name, own in phases[phases["rows"] == most].groupby("mechanism", sort=False):
        medians = own.groupby("dimension")["error"].median()
        found = medians.index[medians <= TOLERANCE]
        reach = "at no D that was tried"
        if len(found):
            reach = f"up to D = {count(found[-1])}"
        notes.append(f"{name} comes within {TOLERANCE:g} {reach}")
    return [f"With N = {count(most)}, " + "; ".join(notes) + "."]


def map_notes(maps: pd.DataFrame) -> list[str]:
    """Return how much of the map each mechanism explains."""
    fits = maps.groupby("mechanism", sort=False)["fit"].first()
    return [
        "; ".join(f"{name} {percent(float(fit))}" for name, fit in fits.items()) + "."
    ]


def _medians(paths: pd.DataFrame) -> pd.DataFrame:
    """Return the median errors: a row for each step, ascending, and NaN if unseen."""
    return paths.pivot_table("error", "iteration", "mechanism", aggfunc="median")


def _first_within(curve: "pd.Series[float]") -> float:
    """Return the first step from which on the median error is small; NaN if none."""
    within = curve.index[(curve <= TOLERANCE)[::-1].cummin()[::-1]]
    return float(within[0]) if len(within) else nan


def _steps(steps: float) -> str:
    return f"{count(steps)} steps" if isfinite(steps) else "more steps than there were"


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


SECTION = Section(
    name="robust",
    parts=(Part("robust", "Robust PCA", 400),),
    context=_context,
    figures={
        "robust-recovery": figures.error_by_step,
        "robust-phases": figures.phases,
        "genotypes": figures.maps,
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
        ("robust-recovery",): recovery_notes,
        ("robust-phases",): phase_notes,
        ("genotypes",): map_notes,
    },
)
