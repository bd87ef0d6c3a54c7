"""The section on privacy: what is audited, and how it is shown."""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.wall import wall
from dpaudit.reports.tables import fallen, records, verdict_rows
from dpaudit.reports.words import sentences


def answer(results: Results) -> list[str]:
    """Return what the verdicts say, the most important first: one item per finding."""
    wall = results["privacy-wall"]
    refuted, names = wall["verdict"] == "REFUTED", wall["mechanism"]
    return sentences(
        *("privacy", "answer"),
        refuted=records(wall[refuted]),
        standing=list(names[~refuted]),
        kept=list(names[~refuted & wall["claim"].eq("kept")]),
        lies=list(names[~refuted & wall["claim"].eq("false")]),
        drawn=wall["samples"][~refuted].max(),
        elsewhere=false_elsewhere(wall, results["exact-privacy"]),
    )


def verdict_note(wall: pd.DataFrame) -> str:
    """Return whose claims are contradicted, by audits or by the exact loss.

    In one sentence; of the audited epsilon, for at another one a claim may be false.
    """
    fell = wall[fallen(wall)]
    (note,) = sentences(
        *("privacy", "verdict_note"),
        claims=len(wall),
        epsilon=wall["claimed_epsilon"].iloc[0],
        fell=list(zip(fell["mechanism"], fell["source"], strict=True)),
        unseen=list(fell["mechanism"][fell["verdict"] != "REFUTED"]),
    )
    return note


def wall_notes(wall: pd.DataFrame) -> list[str]:
    """Return what a large delta means, for every mechanism that has one.

    A delta at some epsilon is P(S) - e^epsilon Q(S) of an event S. It is at most the
    probability that the loss is above epsilon, on one of the two datasets.
    """
    fell = wall[fallen(wall)]
    known = fell["exact_delta"].where(fell["claim"] == "false", fell["delta_lower"])
    large = fell.assign(share=known)[known >= 0.1]
    return sentences("privacy", "wall_notes", large=records(large))


def false_elsewhere(wall: pd.DataFrame, exact: pd.DataFrame) -> dict[str, str]:
    """Return whose claims fall at another epsilon than the audited one, and where."""
    broken = wall["mechanism"][fallen(wall)]
    false = exact[exact["claim"].eq("false") & ~exact["mechanism"].isin(broken)]
    found = {}
    for name, rows in false.groupby("mechanism", sort=False):
        least = rows.loc[rows["epsilon"].idxmin()]
        (found[name],) = sentences(
            "privacy", "false_elsewhere", several=len(rows) > 1, least=least
        )
    return found


@plots.picture(
    "privacy-wall", "Claimed, exact and audited privacy loss of every mechanism"
)
def privacy_wall(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw claimed, exact and audited privacy: epsilon beside (or above) delta."""
    return wall(records(results["privacy-wall"]), narrow)


def context(results: Results) -> dict[str, Any]:
    wall = results["privacy-wall"]
    audited, rows = records(wall), verdict_rows(wall)
    return {
        "confidence": audited[0]["confidence"],
        "delta": results.options("privacy-wall")["delta"],
        # A refuted audit ended early, and was blind to no less than it needed.
        "rarest_event": max(
            (r["rarest_event"] for r in audited if r["verdict"] != "REFUTED"),
            default=math.nan,
        ),
        "verdicts": rows,
        "verdict_note": verdict_note(wall),
        "wall_notes": wall_notes(wall),
    }


def remarks(results: Results) -> dict[str, list[str]]:
    found = false_elsewhere(results["privacy-wall"], results["exact-privacy"])
    return {
        name: [f"The claim holds at the audited ε but is {where}."]
        for name, where in found.items()
    }
