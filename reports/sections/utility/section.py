"""The section on utility: what is measured, and how it is shown."""

import math
from collections.abc import Collection
from typing import Any

import pandas as pd

from dpaudit.datasets import load
from dpaudit.reports import tables, words
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Fact, Results
from dpaudit.reports.sections.utility.figures import captured
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT

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
    known, medians = captured(references), _medians(variance)
    lost = medians[medians < known[FIRST_COMPONENT]].reset_index()
    below = lost.groupby("mechanism", sort=False)["epsilon"].max()
    return words.sentences(
        *("utility", "variance_notes"),
        known=known,
        below=list(below.items()),
        bought=exact["claim"].eq("false").any(),
    )


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
            captured=words.percent(middle),
            spread=f"{words.percent(low)} to {words.percent(high)}",
            refuted=audited[name]["verdict"] == "REFUTED",
            verdict=words.verdict(audited[name]["verdict"]),
        )
        for name, (low, middle, high) in sorted(
            shares.items(), key=lambda item: -item[1][1]
        )
    ]


def component_notes(components: pd.DataFrame, wall: pd.DataFrame) -> list[str]:
    """Return who captures most, and whether SN is ahead of whom its paper says."""
    shares = components.groupby("mechanism", sort=False)["captured_share"]
    middle, fell = _ranked(shares.median()), tables.refuted_mechanisms(wall)
    rivals = [middle[name] for name in _RIVALS_OF_SN if name in middle.index]
    return words.sentences(
        *("utility", "component_notes"),
        best=_best(middle, wall, fell),
        sn=middle.get(_SN),
        rivals=rivals,
        fell=_SN in fell,
    )


def _ranked(shares: "pd.Series[float]") -> "pd.Series[float]":
    return shares.sort_values(ascending=False, kind="stable")


def _best(
    ranked: "pd.Series[float]", wall: pd.DataFrame, broken: Collection[str]
) -> list[tuple[str, float, float]]:
    """Return the first with an approximate claim, and with a pure one: delta and share.

    Those are left out whose claim is broken, or is not on the wall.
    """
    deltas = dict(zip(wall["mechanism"], wall["claimed_delta"], strict=True))
    there = [name for name in ranked.index if name in deltas and name not in broken]
    approximate, pure = (
        [n for n in there if (deltas[n] > 0) == wanted] for wanted in (True, False)
    )
    return [(n, deltas[n], ranked[n]) for n in (*approximate[:1], *pure[:1])]


def time_note(times: pd.DataFrame) -> str:
    """Return which private fits take least and most time."""
    ratios = times[times["mechanism"] != BASELINE].groupby("mechanism")["ratio"]
    ranked = list(ratios.median().sort_values(kind="stable").items())
    (note,) = words.sentences("utility", "time_note", first=ranked[0], last=ranked[-1])
    return note


def time_rows(times: pd.DataFrame) -> list[tables.Printed]:
    """Return the table of run times, in the order of the table."""
    fits, ratios, drawn = (
        tables.quartiles(times, "mechanism", column)
        for column in ("fit_seconds", "ratio", "releases_per_second")
    )
    return [
        tables.Printed(
            name=name,
            fit=words.duration(middle),
            spread=f"{words.duration(low)} – {words.duration(high)}",
            ratio="1" if name == BASELINE else f"{ratios[name][1]:.2f}",
            throughput=""
            if math.isnan(drawn[name][1])
            else words.speed(drawn[name][1]),
        )
        for name, (low, middle, high) in fits.items()
    ]


def answer(results: Results) -> list[str]:
    """Name the best whose claim is not known to be false, pure and approximate."""
    wall, exact = results["privacy-wall"], results["exact-privacy"]
    variance = results["captured-variance"]
    wanted = math.log(wall["claimed_epsilon"].iloc[0])
    at = min(variance["epsilon"], key=lambda e: abs(math.log(e) - wanted))
    shares = _ranked(_medians(variance).xs(at, level="epsilon"))
    false = exact["claim"].eq("false") & exact["epsilon"].eq(at)
    broken = {*wall["mechanism"][tables.fallen(wall)], *exact["mechanism"][false]}
    return words.sentences(
        *("utility", "answer"),
        epsilon=at,
        best=_best(shares, wall, broken),
        bought=[(name, share) for name, share in shares.items() if name in broken],
    )


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


def facts(results: Results) -> list[Fact]:
    """Return what mechanisms keep of the variance, and how long they take."""
    found = []
    for (name, epsilon), share in _medians(results["captured-variance"]).items():
        if epsilon in (0.1, 1.0, 10.0):
            what = f"Variance captured at ε = {words.setting(epsilon)}"
            found.append(Fact(name, what, words.percent(share)))
    fits = results["run-time"].groupby("mechanism")["fit_seconds"].median()
    for row in time_rows(results["run-time"]):
        told = f"{row.fit} ({row.spread})"
        found.append(Fact(row.name, "A fit", told, "cost", fits[row.name]))
        if row.throughput:
            found.append(Fact(row.name, "Releases per second", row.throughput))
    return found
