"""The section on privacy: what is audited, and how it is shown.

The sentences are chosen by the data.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.wall import wall
from dpaudit.reports.tables import fallen, point, records, verdict_rows
from dpaudit.reports.words import count, delta, listed, number, setting, spelt


def privacy_answer(wall: pd.DataFrame, exact: pd.DataFrame) -> list[str]:
    """Return what the verdicts say, the most important first: one item per finding."""
    refuted = wall["verdict"] == "REFUTED"
    return [
        *map(_refutation, records(wall[refuted])),
        *_survivors(wall[~refuted]),
        *(
            f"The claim of {name} holds at the audited ε but is {where}."
            for name, where in false_elsewhere(wall, exact).items()
        ),
    ]


def verdict_note(wall: pd.DataFrame) -> str:
    """Return whose claims are contradicted, by audits or by the exact loss.

    In one sentence; of the audited epsilon, for at another one a claim may be false.
    """
    fell, at = wall[fallen(wall)], setting(wall["claimed_epsilon"].iloc[0])
    all_of, rest = spelt(len(wall)), spelt(len(wall) - len(fell))
    nothing = "nothing found there contradicts the claims, which proves none of them"
    if fell.empty:
        return f"None of {all_of} claims fell at ε = {at}: {nothing}."
    whose = listed(f"{row['mechanism']} ({row['source']})" for row in records(fell))
    unseen = fell["mechanism"][fell["verdict"] != "REFUTED"]
    alone = f", for {listed(unseen)} by the exact loss alone" if len(unseen) else ""
    beside = f"; of the other {rest} {nothing}" if len(fell) < len(wall) else ""
    return (
        f"{spelt(len(fell)).capitalize()} of {all_of} claims fell at ε = {at}: what is "
        f"claimed for {whose} is contradicted{alone}{beside}."
    )


def wall_notes(wall: pd.DataFrame) -> list[str]:
    """Return what a large delta means, for every mechanism that has one.

    A delta at some epsilon is P(S) - e^epsilon Q(S) of an event S. It is at most the
    probability that the loss is above epsilon, on one of the two datasets.
    """
    notes = []
    for row in records(wall[fallen(wall)]):
        exact = row["claim"] == "false"
        known = row["exact_delta"] if exact else row["delta_lower"]
        if known >= 0.1:
            epsilon = setting(row["claimed_epsilon"])
            notes.append(
                f"While {row['mechanism']} promises δ = {delta(row['claimed_delta'])} "
                f"at ε = {epsilon}, the privacy loss is above {epsilon} in at least "
                f"{math.floor(100 * known)} of 100 releases on one of the two datasets"
                + ("." if exact else f", at {100 * row['confidence']:g} % confidence.")
            )
    return notes


def _refutation(row: Record) -> str:
    text = (
        f"The claim of {row['mechanism']}, {' and '.join(point(row, 'claimed_{}'))}, "
        f"falls after {count(row['samples_to_refute'])} releases a side, at "
        f"{100 * row['confidence']:g} % confidence."
    )
    if row["claim"] == "false":
        text += (
            f" In truth ε is {number(row['exact_epsilon'])} at the claimed δ, and δ is "
            f"{delta(row['exact_delta'])} at the claimed ε, instead of "
            f"{delta(row['claimed_delta'])}."
        )
    return text


def _survivors(standing: pd.DataFrame) -> list[str]:
    if standing.empty:
        return []
    names, claim = standing["mechanism"], standing["claim"]
    kept, false = names[claim == "kept"], names[claim == "false"]
    texts = [
        f"The audit did not refute {listed(names)} with up to "
        f"{count(standing['samples'].max())} releases a side. That is no proof of "
        "privacy."
    ]
    if len(kept):
        every = "each of them" if len(kept) > 1 else "it"
        texts.append(
            f"For {every if len(kept) == len(names) else listed(kept)} the exact loss "
            "on the worst pair is known as well, and it is within the claim."
        )
    if len(false):
        texts.append(
            f"Yet the exact loss shows the claim of {listed(false)} to be false: "
            "sampling was too weak to see it."
        )
    return [" ".join(texts)]


def false_elsewhere(wall: pd.DataFrame, exact: pd.DataFrame) -> dict[str, str]:
    """Return whose claims fall at another epsilon than the audited one, and where."""
    broken = wall["mechanism"][fallen(wall)]
    false = exact[exact["claim"].eq("false") & ~exact["mechanism"].isin(broken)]
    found = {}
    for name, rows in false.groupby("mechanism", sort=False):
        least = rows.loc[rows["epsilon"].idxmin()]
        place = "at ε =" if len(rows) == 1 else "from ε ="
        found[name] = (
            f"false {place} {setting(least['claimed_epsilon'])}: the exact ε there is "
            f"{number(least['exact_epsilon'])}"
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


def answer(results: Results) -> list[str]:
    return privacy_answer(results["privacy-wall"], results["exact-privacy"])


def remarks(results: Results) -> dict[str, list[str]]:
    found = false_elsewhere(results["privacy-wall"], results["exact-privacy"])
    return {
        name: [f"The claim holds at the audited ε but is {where}."]
        for name, where in found.items()
    }
