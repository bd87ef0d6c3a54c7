"""The section on utility: what is measured, and how it is shown.

The sentences are chosen by the data.
"""

import math
from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd

from dpaudit.datasets import load
from dpaudit.reports import tables
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Fact, Results
from dpaudit.reports.sections.utility.figures import captured
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE
from dpaudit.reports.words import (
    delta,
    duration,
    listed,
    percent,
    setting,
    speed,
    verdict,
)

_SN = "symmetric-noise"
_RIVALS_OF_SN = (  # PPM with either noise, and PPCA
    "power-method-published",
    "power-method-laplace-published",
    "exponential-pca-gibbs",
)


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
    medians = _medians(variance)
    lost = medians[medians < known[FIRST_COMPONENT]].reset_index()
    below = lost.groupby("mechanism", sort=False)["epsilon"].max()
    if len(below):
        verb = "captures" if len(below) == 1 else "capture"
        who = listed(f"{name} (ε ≤ {setting(e)})" for name, e in below.items())
        notes.append(
            f"Noise can cost more than the other components are worth: {who} {verb} "
            "less than the first component alone would."
        )
    if exact["claim"].eq("false").any():
        notes.append(
            "Dashed stretches with crosses are bought with a false claim: there the "
            "exact privacy loss exceeds the claimed one, so those points are no "
            "competition for the others."
        )
    return notes


def component_rows(
    components: pd.DataFrame, wall: pd.DataFrame
) -> list[tables.Printed]:
    """Return what each mechanism captures, the most first, beside its verdict."""
    shares = tables.quartiles(components, "mechanism", "captured_share")
    audited = {row["mechanism"]: row for row in tables.records(wall)}
    return [
        tables.Printed(
            name=name,
            claim=tables.point(audited[name], "claimed_{}"),
            captured=percent(middle),
            spread=f"{percent(low)} to {percent(high)}",
            refuted=audited[name]["verdict"] == "REFUTED",
            verdict=verdict(audited[name]["verdict"]),
        )
        for name, (low, middle, high) in sorted(
            shares.items(), key=lambda item: -item[1][1]
        )
    ]


def component_notes(components: pd.DataFrame, wall: pd.DataFrame) -> list[str]:
    """Return who captures most, and whether SN is ahead of whom its paper says."""
    shares = components.groupby("mechanism", sort=False)["captured_share"]
    middle, fell = _ranked(shares.median()), tables.refuted_mechanisms(wall)
    notes = [
        f"{first} captures most of those with {'approximate' if delta_ else 'pure'} "
        f"claims that were not refuted, {percent(middle[first])}."
        for _, first, delta_ in _best(middle, wall, fell)
    ]
    rivals = [name for name in _RIVALS_OF_SN if name in middle.index]
    if _SN in middle.index and rivals:
        ahead = all(middle[_SN] > middle[name] for name in rivals)
        notes.append(
            "That SN outperforms PPM and PPCA (Imtiaz, Sarwate, ICASSP 2016) is "
            f"{'supported' if ahead else 'not seen'} on these rows: it captures "
            f"{percent(middle[_SN])}, they "
            f"{listed(percent(middle[name]) for name in rivals)}"
            f"{', but its claim of privacy was refuted' if _SN in fell else ''}."
        )
    return notes


def _ranked(shares: "pd.Series[float]") -> "pd.Series[float]":
    return shares.sort_values(ascending=False, kind="stable")


def _best(
    ranked: "pd.Series[float]", wall: pd.DataFrame, broken: Collection[str]
) -> Iterator[tuple[bool, str, float]]:
    """Yield whether a claim is approximate, who is the first of these, and its delta.

    Of an approximate claim first, and then of a pure one; those are left out whose
    claim is broken, or is not on the wall.
    """
    deltas = dict(zip(wall["mechanism"], wall["claimed_delta"], strict=True))
    there = [name for name in ranked.index if name in deltas and name not in broken]
    for approximate in (True, False):
        for name in [n for n in there if (deltas[n] > 0) == approximate][:1]:
            yield approximate, name, deltas[name]


def time_note(times: pd.DataFrame) -> str:
    """Return which private fits take least and most time."""
    ratios = times[times["mechanism"] != BASELINE].groupby("mechanism")["ratio"]
    ranked = list(ratios.median().sort_values(kind="stable").items())
    (first, least), (last, most) = ranked[0], ranked[-1]
    return (
        f"A fit takes {least:.2f} times as long as one without privacy with {first}, "
        f"the fastest, and {most:.2f} times with {last}, the slowest."
    )


def time_rows(times: pd.DataFrame) -> list[tables.Printed]:
    """Return the table of run times, in the order of the table."""
    fits, ratios, drawn = (
        tables.quartiles(times, "mechanism", column)
        for column in ("fit_seconds", "ratio", "releases_per_second")
    )
    return [
        tables.Printed(
            name=name,
            fit=duration(middle),
            spread=f"{duration(low)} – {duration(high)}",
            ratio="1" if name == BASELINE else f"{ratios[name][1]:.2f}",
            throughput="" if math.isnan(drawn[name][1]) else speed(drawn[name][1]),
        )
        for name, (low, middle, high) in fits.items()
    ]


def utility_answer(
    wall: pd.DataFrame, exact: pd.DataFrame, variance: pd.DataFrame
) -> list[str]:
    """Name the best whose claim is not known to be false, pure and approximate."""
    wanted = math.log(wall["claimed_epsilon"].iloc[0])
    at = min(variance["epsilon"], key=lambda e: abs(math.log(e) - wanted))
    shares = _ranked(_medians(variance).xs(at, level="epsilon"))
    false = exact["claim"].eq("false") & exact["epsilon"].eq(at)
    broken = {*wall["mechanism"][tables.fallen(wall)], *exact["mechanism"][false]}
    kept = {name: f"{name} keeps {percent(share)}" for name, share in shares.items()}
    best = [
        kept[name]
        + (
            f" of the variance with δ = {delta(at_delta)}"
            if approximate
            else " with pure privacy (δ = 0)"
        )
        for approximate, name, at_delta in _best(shares, wall, broken)
    ]
    bought = [text for name, text in kept.items() if name in broken]
    sentences = []
    if best:
        sentences.append(
            f"Among the claims not found false at ε = {setting(at)}, {listed(best)}."
        )
    if bought:
        sentences.append(f"Under a false claim, {listed(bought)}.")
    return [" ".join(sentences)] if sentences else []


def _medians(variance: pd.DataFrame) -> "pd.Series[float]":
    groups = variance.groupby(["mechanism", "epsilon"], sort=False)
    return groups["captured_share"].median()


def context(results: Results) -> dict[str, Any]:
    options = results.options("captured-variance")
    data = load(options["dataset"])
    n, d = data.rows.shape
    wall = results["privacy-wall"]
    return {
        "found": answer(results),
        "claimed_epsilon": wall["claimed_epsilon"].iloc[0],
        "components": component_rows(results["components"], wall),
        "component_notes": component_notes(results["components"], wall),
        "data": {"source": data.source, "n": n, "d": d, **options},
        "times": time_rows(results["run-time"]),
        "time_note": time_note(results["run-time"]),
        "variance_notes": variance_notes(
            results["captured-variance"],
            results["exact-privacy"],
            results["variance-references"],
        ),
    }


def answer(results: Results) -> list[str]:
    return utility_answer(
        results["privacy-wall"], results["exact-privacy"], results["captured-variance"]
    )


def facts(results: Results) -> list[Fact]:
    """Return what mechanisms keep of the variance, and how long they take."""
    found = []
    for (name, epsilon), share in _medians(results["captured-variance"]).items():
        if epsilon in (0.1, 1.0, 10.0):
            what = f"Variance captured at ε = {setting(epsilon)}"
            found.append(Fact(name, what, percent(share)))
    fits = results["run-time"].groupby("mechanism")["fit_seconds"].median()
    for row in time_rows(results["run-time"]):
        told = f"{row.fit} ({row.spread})"
        found.append(Fact(row.name, "A fit", told, "cost", fits[row.name]))
        if row.throughput:
            found.append(Fact(row.name, "Releases per second", row.throughput))
    return found
