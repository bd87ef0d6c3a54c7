"""What privacy costs, in words chosen by the data and in rows ready to print."""

import math

import pandas as pd

from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE
from dpaudit.reports.tables import Printed, point, quartiles, records
from dpaudit.reports.words import (
    delta,
    duration,
    listed,
    percent,
    setting,
    speed,
    verdict,
)

__all__ = [
    "captured",
    "component_rows",
    "time_rows",
    "utility_answer",
    "variance_notes",
]


def variance_notes(
    variance: pd.DataFrame, exact: pd.DataFrame, references: pd.DataFrame
) -> list[str]:
    """Return what to know when looking at the captured variance."""
    known = captured(references)
    notes = [
        f"Without noise, PCA of the clipped rows captures {percent(known[BASELINE])}, "
        f"its first component alone {percent(known[FIRST_COMPONENT])}, a random "
        f"subspace {percent(known[RANDOM_SUBSPACE])} on average."
    ]
    below: dict[str, float] = {}
    for (name, epsilon), share in _medians(variance).items():
        if share < known[FIRST_COMPONENT]:
            below[name] = max(epsilon, below.get(name, 0.0))
    if below:
        verb = "captures" if len(below) == 1 else "capture"
        who = listed(f"{name} (ε ≤ {setting(e)})" for name, e in below.items())
        notes.append(
            f"Noise can cost more than the other components are worth: {who} {verb} "
            "less than the first component alone would."
        )
    if any(row["claim"] == "false" for row in records(exact)):
        notes.append(
            "Dashed stretches with crosses are bought with a false claim: there the "
            "exact privacy loss exceeds the claimed one, so those points are no "
            "competition for the others."
        )
    return notes


def component_rows(components: pd.DataFrame, wall: pd.DataFrame) -> list[Printed]:
    """Return what each mechanism captures, the most first, beside its verdict."""
    shares = quartiles(components, ("mechanism",), "captured_share")
    audited = {row["mechanism"]: row for row in records(wall)}
    return [
        Printed(
            name=name,
            claim=point(audited[name], "claimed_{}"),
            captured=percent(middle),
            spread=f"{percent(low)} to {percent(high)}",
            refuted=audited[name]["verdict"] == "REFUTED",
            verdict=verdict(audited[name]["verdict"]),
        )
        for name, (low, middle, high) in sorted(
            shares.items(), key=lambda item: -item[1][1]
        )
    ]


def time_rows(times: pd.DataFrame) -> list[Printed]:
    """Return the table of run times, in the order of the table."""
    fits = quartiles(times, ("mechanism",), "fit_seconds")
    ratios = quartiles(times, ("mechanism",), "ratio")
    drawn = quartiles(times, ("mechanism",), "releases_per_second")
    rows = []
    for name, (low, middle, high) in fits.items():
        throughput = drawn[name][1]
        rows.append(
            Printed(
                name=name,
                fit=duration(middle),
                spread=f"{duration(low)} – {duration(high)}",
                ratio="1" if name == BASELINE else f"{ratios[name][1]:.2f}",
                throughput="" if math.isnan(throughput) else speed(throughput),
            )
        )
    return rows


def utility_answer(
    wall: pd.DataFrame, exact: pd.DataFrame, variance: pd.DataFrame
) -> list[str]:
    """Name the best mechanism whose claim stands, pure and approximate apart."""
    audited, medians = records(wall), _medians(variance)
    wanted = math.log(audited[0]["claimed_epsilon"])
    at = min((e for _, e in medians), key=lambda e: abs(math.log(e) - wanted))
    shares = {name: share for (name, e), share in medians.items() if e == at}
    ranking = sorted(shares, key=lambda name: -shares[name])
    broken = {row["mechanism"] for row in audited if row["verdict"] == "REFUTED"}
    broken |= {
        row["mechanism"]
        for row in records(exact)
        if row["claim"] == "false" and row["epsilon"] == at
    }
    deltas = {row["mechanism"]: row["claimed_delta"] for row in audited}
    standing = [name for name in ranking if name not in broken and name in deltas]
    pure = [name for name in standing if deltas[name] == 0]
    approximate = [name for name in standing if deltas[name] > 0]
    best = []
    if approximate:
        name = approximate[0]
        kind = f"δ = {delta(deltas[name])}"
        best.append(f"{name} keeps {percent(shares[name])} of the variance with {kind}")
    if pure:
        name = pure[0]
        kind = "pure privacy (δ = 0)"
        best.append(f"{name} keeps {percent(shares[name])} with {kind}")
    bought = [
        f"{name} keeps {percent(shares[name])}" for name in ranking if name in broken
    ]
    sentences = []
    if best:
        sentences.append(
            f"Among the claims that stand at ε = {setting(at)}, {listed(best)}."
        )
    if bought:
        sentences.append(f"Under a false claim, {listed(bought)}.")
    return [" ".join(sentences)] if sentences else []


def captured(references: pd.DataFrame) -> dict[str, float]:
    """Return what each yardstick without noise captures."""
    return {row["mechanism"]: row["captured_share"] for row in records(references)}


def _medians(variance: pd.DataFrame) -> dict[tuple[str, float], float]:
    found = quartiles(variance, ("mechanism", "epsilon"), "captured_share")
    return {key: middle for key, (_, middle, _) in found.items()}
