"""The section on robust PCA: sentences that the data choose, and rows."""

from functools import partial
from math import exp, inf, isfinite, log10, nan
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    NOISELESS,
    PRINTED_SECONDS,
    PUBLISHED,
    REAPER_STEPS,
    TOLERANCE,
)
from dpaudit.reports.tables import Printed, records, refuted_mechanisms, verdict_rows
from dpaudit.reports.words import (
    count,
    delta,
    duration,
    percent,
    sentences,
    setting,
    short,
)

PHASES = ("robust-phases", "robust-phases-full", "robust-phases-reaper")
_RESTART = 50  # steps of one length
_ROUNDING = 1e-20  # errors below are those of floating point


def recovery_rows(paths: pd.DataFrame, audits: pd.DataFrame) -> list[Printed]:
    """Return a row for each mechanism that the paper compares, and its corrections."""
    medians = _medians(paths)
    compared = {*PUBLISHED, *CORRECTED} & set(medians)
    seconds = paths.groupby("mechanism", sort=False)["seconds"].max()
    rows = []
    for verdict in verdict_rows(audits[audits["mechanism"].isin(compared)]):
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
    ahead = []
    for convex in ("dp-sgd-reap-published", "dp-smd-reap-published"):
        there = medians.index[medians[convex] < medians["dp-sggd-published"]]
        ahead += [(convex, there[-1])] if len(there) else []
    first = {
        name: _first_within(medians[name].dropna()) for name in (*PUBLISHED, *CORRECTED)
    }
    clock, soonest = paths.groupby(["mechanism", "iteration"])["seconds"].median(), []
    for form, names in (("As published", PUBLISHED), ("Corrected", CORRECTED)):
        times = {n: float(clock[n, first[n]]) for n in names if isfinite(first[n])}
        if times:
            name = min(times, key=times.__getitem__)
            soonest.append((form, name, times[name]))
    return sentences(
        *("robust", "recovery_notes"),
        order=sorted(PUBLISHED, key=lambda name: ends[name]),
        ahead=ahead,
        lost=[name for name in PUBLISHED if ends[name] > 0.5],
        found=sum(isfinite(first[name]) for name in CORRECTED),
        corrected=len(CORRECTED),
        first=[_steps(first[name]) for name in ("dp-sggd", "dp-sggd-published")],
        soonest=soonest,
        factor=restart_factor(paths),
        **{"tolerance": TOLERANCE, "noiseless": NOISELESS, "restart": _RESTART},
    )


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


def condition_notes(table: pd.DataFrame) -> list[str]:
    """Return on how many haystacks the theorems' conditions are met, and are enough."""
    shares = table["pca_error"] / table["pca_error_bound"]
    return sentences(
        *("robust", "condition_notes"),
        haystacks=len(table),
        known=table["pca_error_bound"].notna().sum(),
        kept=(table["pca_error"] <= table["pca_error_bound"]).sum(),
        share=float(shares.max()),
        stable=(table["stability"] > 0).sum(),
        reaper=(table["reaper_stability"] > 0).sum(),
    )


def phase_notes(*tables: pd.DataFrame) -> list[str]:
    """Return up to which length of rows the subspace is found, in most rows."""
    reached: dict[tuple[float, float], list[str]] = {}
    for table in tables:
        most = table[table["rows"] == table["rows"].max()]
        reach = {}
        for name, own in most.groupby("mechanism", sort=False):
            found = _within(own, ["dimension"])
            reach[str(name)] = count(found.max()) if len(found) else "none"
        at = most["rows"].iloc[0], most["dimension"].max()
        reached.setdefault(at, []).extend(_in_pairs(reach))
    return sentences("robust", "phase_notes", reached=reached, tolerance=TOLERANCE)


def tile_notes(table: pd.DataFrame, where: list[str]) -> list[str]:
    """Return in how many cells the subspace is found, as published and corrected."""
    found = {
        str(name): str(len(_within(own, where)))
        for name, own in table.groupby("mechanism", sort=False)
    }
    told = {"pairs": _in_pairs(found), "tolerance": TOLERANCE}
    return sentences("robust", "tile_notes", cells=len(table.groupby(where)), **told)


def batch_notes(table: pd.DataFrame) -> list[str]:
    """Return at which share of inliers half of the runs succeed, with some batch."""
    least = {}
    for name, own in table.groupby("mechanism", sort=False):
        cells = own.groupby(["inlier_share", "batch_size"])
        enough = cells.apply(failed, include_groups=False) <= 0.5
        good = enough[enough].index.get_level_values(0)
        least[str(name)] = setting(float(good.min())) if len(good) else "none tried"
    told = {"pairs": _in_pairs(least), "tolerance": TOLERANCE}
    return sentences("robust", "batch_notes", **told)


def _in_pairs(words: dict[str, str]) -> list[str]:
    """Return what is said of each mechanism as published, and as corrected."""
    return [
        f"{name} {words[f'{name}-published']} and {words[name]}"
        for name in CORRECTED
        if name in words
    ]


def map_notes(maps: pd.DataFrame) -> list[str]:
    """Return how much of the map each mechanism explains."""
    firsts = maps.groupby("mechanism", sort=False)["fit"].first()
    fits = {str(name): percent(float(fit)) for name, fit in firsts.items()}
    own = {*PUBLISHED, *CORRECTED}
    others = [each for each in fits.items() if each[0] not in own]
    return sentences("robust", "map_notes", others=others, pairs=_in_pairs(fits))


def map_rows(
    tables: list[tuple[pd.DataFrame, int, int]], audits: pd.DataFrame
) -> list[Printed]:
    """Return how long descents took on genotypes, beside what is printed.

    ``tables``: of maps, their number of loci, and that of steps.
    """
    refuted = refuted_mechanisms(audits)
    return [
        Printed(
            name=name,
            refuted=name in refuted,
            loci=count(loci),
            steps=count(steps),
            time=duration(float(own["seconds"].iloc[0])),
            printed=f"{PRINTED_SECONDS[short(name)]:,} s" if name in PUBLISHED else "–",
            fit=percent(float(own["fit"].iloc[0])),
        )
        for table, loci, steps in tables
        for name, own in table.groupby("mechanism", sort=False)
        if short(name) in PRINTED_SECONDS
    ]


def final_error(cell: pd.DataFrame) -> float:
    """Return log10 of the median error; NaN if every run is bottom."""
    errors = cell["error"].to_numpy(dtype=np.float64)
    if np.isnan(errors).all():
        return nan
    return log10(max(float(np.median(np.nan_to_num(errors, nan=1.0))), 1e-30))


def failed(cell: pd.DataFrame) -> float:
    """Return the share of the runs that never came within the tolerance."""
    return float(cell["reached"].isna().mean())


def time_taken(cell: pd.DataFrame) -> float:
    """Return the median time to the tolerance, in seconds; a run may never end."""
    if failed(cell) == 1:
        return nan
    return float(cell["seconds_reached"].fillna(inf).median())


def _within(table: pd.DataFrame, where: list[str]) -> pd.Index:
    """Return the cells in which the median error is within the tolerance."""
    logs = table.groupby(where).apply(final_error, include_groups=False)
    return logs.index[10**logs <= TOLERANCE]


def _medians(paths: pd.DataFrame) -> pd.DataFrame:
    """Return the median errors: a row for each step, ascending, and NaN if unseen."""
    return paths.pivot_table("error", "iteration", "mechanism", aggfunc="median")


def _first_within(curve: "pd.Series[float]") -> float:
    """Return the first step from which on the median error is small; NaN if none."""
    within = curve.index[(curve <= TOLERANCE)[::-1].cummin()[::-1]]
    return float(within[0]) if len(within) else nan


def _steps(steps: float) -> str:
    return f"from step {count(steps)} on" if isfinite(steps) else "at no step"


_NOTES: dict[str, Any] = {
    "robust-recovery": recovery_notes,
    "robust-stability": condition_notes,
    **dict.fromkeys(PHASES, phase_notes),
    "robust-budgets": partial(tile_notes, where=["epsilon", "delta"]),
    "robust-batches": batch_notes,
    "robust-ranks": partial(tile_notes, where=["dimension", "n_components"]),
    **dict.fromkeys(("genotypes", "genotypes-reaper"), map_notes),
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
        (results["genotypes-reaper"], few, REAPER_STEPS),
    ]
    return {
        "rows": recovery_rows(results["robust-recovery"], audits),
        "constants": records(results["robust-constants"]),
        "notes": {
            **{name: find(results[name]) for name, find in _NOTES.items()},
            PHASES[0]: phase_notes(*(results[name] for name in PHASES)),
        },
        "times": map_rows(maps, audits),
        "delta": results.options("robust-audits")["delta"],
        "runs": {"phases": runs[PHASES[0]], "slow": runs[PHASES[2]]},
        "reaper_loci": few,
        "reaper_steps": REAPER_STEPS,
    }


NOTES = {(name,): find for name, find in _NOTES.items()}
