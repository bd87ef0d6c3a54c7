"""What the verdicts say, in words chosen by the data."""

import pandas as pd

from dpaudit.reports.tables import Row, point, records, refuted_mechanisms
from dpaudit.reports.words import count, delta, listed, number, setting, spelt

__all__ = ["headline", "privacy_answer", "wall_notes"]


def headline(wall: pd.DataFrame) -> str:
    """Return the title of the page: the verdicts in one line."""
    refuted, total = len(refuted_mechanisms(wall)), len(wall)
    if refuted == 0:
        return f"No privacy promise of {spelt(total)} was refuted"
    breaks = "breaks its privacy promise"
    if refuted > 1:
        breaks = "break their privacy promises"
    return f"{spelt(refuted).capitalize()} of {spelt(total)} mechanisms {breaks}"


def privacy_answer(wall: pd.DataFrame, exact: pd.DataFrame) -> list[str]:
    """Return what the verdicts say, the most important first: one item per finding."""
    audited = records(wall)
    return [
        *(_refutation(row) for row in audited if row["verdict"] == "REFUTED"),
        *_survivors([row for row in audited if row["verdict"] != "REFUTED"]),
        *_false_elsewhere(audited, records(exact)),
    ]


def wall_notes(wall: pd.DataFrame) -> list[str]:
    """Return what a large delta means, for every mechanism that has one."""
    notes = []
    for row in records(wall):
        proven = row["exact_delta"] if row["claim"] == "false" else row["delta_lower"]
        if row["verdict"] == "REFUTED" and proven >= 0.1:
            notes.append(
                f"While {row['mechanism']} promises δ = {delta(row['claimed_delta'])}, "
                f"in truth about {100 * proven:.0f} of 100 releases can give away for "
                "certain from which of the two datasets they come."
            )
    return notes


def _refutation(row: Row) -> str:
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


def _survivors(standing: list[Row]) -> list[str]:
    if not standing:
        return []
    most = count(max(row["samples"] for row in standing))
    text = (
        f"The audit did not refute {_names(standing)} with up to {most} releases a "
        "side. That is no proof of privacy."
    )
    kept = [row for row in standing if row["claim"] == "kept"]
    if kept:
        who = _names(kept)
        if len(kept) == len(standing):
            who = "each of them" if len(kept) > 1 else "it"
        text += (
            f" For {who} the exact loss on the worst pair is known as well, and it is "
            "within the claim."
        )
    false = [row for row in standing if row["claim"] == "false"]
    if false:
        text += (
            f" Yet the exact loss shows the claim of {_names(false)} to be false: "
            "sampling was too weak to see it."
        )
    return [text]


def _false_elsewhere(audited: list[Row], exact: list[Row]) -> list[str]:
    """Report claims that fall at some other epsilon than the audited one."""
    broken = {
        row["mechanism"]
        for row in audited
        if row["verdict"] == "REFUTED" or row["claim"] == "false"
    }
    false: dict[str, list[Row]] = {}
    for row in exact:
        if row["claim"] == "false" and row["mechanism"] not in broken:
            false.setdefault(row["mechanism"], []).append(row)
    sentences = []
    for name, rows in false.items():
        least = min(rows, key=lambda row: row["epsilon"])
        places = "at ε =" if len(rows) == 1 else "from ε ="
        sentences.append(
            f"The claim of {name} holds at the audited ε but is false {places} "
            f"{setting(least['claimed_epsilon'])}: the exact ε there is "
            f"{number(least['exact_epsilon'])}."
        )
    return sentences


def _names(rows: list[Row]) -> str:
    return listed(row["mechanism"] for row in rows)
