"""What the experiments on robust PCA say: sentences that the data choose, and rows."""

from math import exp, inf, isfinite, log10, nan

import numpy as np
import pandas as pd

from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    NOISELESS,
    PRINTED_SECONDS,
    PUBLISHED,
    TOLERANCE,
)
from dpaudit.reports.tables import Printed, refuted_mechanisms, verdict_rows
from dpaudit.reports.words import (
    count,
    delta,
    duration,
    listed,
    number,
    percent,
    setting,
    short,
)

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
    first = {
        name: _first_within(medians[name].dropna()) for name in (*PUBLISHED, *CORRECTED)
    }
    found = sum(isfinite(first[name]) for name in CORRECTED)
    notes.append(
        f"Corrected, {found} of {len(CORRECTED)} come within {TOLERANCE:g} to "
        f"stay: the median error of dp-sggd {_steps(first['dp-sggd'])}, as published "
        f"{_steps(first['dp-sggd-published'])}. (It may cross that line before, and "
        "come back.)"
    )
    clock = paths.groupby(["mechanism", "iteration"])["seconds"].median()
    for form, names in (("As published", PUBLISHED), ("Corrected", CORRECTED)):
        there = [name for name in names if isfinite(first[name])]
        times = {name: float(clock[name, first[name]]) for name in there}
        if times:
            soonest = min(there, key=lambda name: times[name])
            notes.append(
                f"{form}, {short(soonest)} is the first by the clock, with "
                f"{duration(times[soonest])} until it is within {TOLERANCE:g} to stay."
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


def condition_notes(table: pd.DataFrame) -> list[str]:
    """Return on how many haystacks the theorems' conditions are met, and are enough."""
    known = table["pca_error_bound"].notna()
    kept = (table["pca_error"] <= table["pca_error_bound"])[known]
    share = (table["pca_error"] / table["pca_error_bound"]).max()
    every = len(table)
    stable = int((table["stability"] > 0).sum())
    reaper = int((table["reaper_stability"] > 0).sum())
    return [
        "The statistic of Theorem 1, with sin 2γ for the 2 sin γ of the print (which "
        f"is false), is positive for some γ on {count(known.sum())} of {count(every)} "
        f"haystacks; on {count(kept.sum())} of these PCA is as near as it says, at "
        f"{percent(float(share))} of the bound at most.",
        f"What Theorems 2 to 5 ask of a start there, a positive stability, holds on "
        f"{count(stable)}; that of Theorem 10, for REAPER, on {count(reaper)}.",
    ]


def phase_notes(*tables: pd.DataFrame) -> list[str]:
    """Return up to which length of rows the subspace is found, in most rows."""
    notes: dict[str, list[str]] = {}
    for table in tables:
        most = table[table["rows"] == table["rows"].max()]
        reach, longest = {}, count(most["dimension"].max())
        for name, own in most.groupby("mechanism", sort=False):
            found = _within(own, ["dimension"])
            reach[str(name)] = count(found.max()) if len(found) else "none"
        parts = _in_pairs(reach)
        rows = count(most["rows"].iloc[0])
        notes.setdefault(f"With N = {rows}, of D up to {longest}", []).extend(parts)
    return [
        f"{start}, the median error is within {TOLERANCE:g} up to these, as published "
        f"and corrected: {'; '.join(parts)}."
        for start, parts in notes.items()
    ]


def tile_notes(table: pd.DataFrame, where: list[str]) -> list[str]:
    """Return in how many cells the subspace is found, as published and corrected."""
    cells = len(table.groupby(where))
    found = {
        str(name): str(len(_within(own, where)))
        for name, own in table.groupby("mechanism", sort=False)
    }
    return [
        f"The median error is within {TOLERANCE:g} in so many of {count(cells)} cells, "
        f"as published and corrected: {'; '.join(_in_pairs(found))}."
    ]


def batch_notes(table: pd.DataFrame) -> list[str]:
    """Return at which share of inliers half of the runs succeed, with some batch."""
    least = {}
    for name, own in table.groupby("mechanism", sort=False):
        cells = own.groupby(["inlier_share", "batch_size"])
        enough = cells.apply(failed, include_groups=False) <= 0.5
        good = enough[enough].index.get_level_values(0)
        least[str(name)] = setting(float(good.min())) if len(good) else "none tried"
    return [
        f"With the best batch half of the runs or more come within {TOLERANCE:g} at "
        "shares of inliers as low as, published and corrected: "
        f"{'; '.join(_in_pairs(least))}."
    ]


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
    others = "; ".join(f"{n} {fit}" for n, fit in fits.items() if n not in own)
    both = f"As published and corrected: {'; '.join(_in_pairs(fits))}."
    return [f"{others}.", both] if others else [both]


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
