"""The section on training: DP-SGD, and the mistakes that are made of it."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.wall import wall
from dpaudit.reports.tables import records, verdict_rows
from dpaudit.reports.words import count, listed, spelt

_RIGHT = "dp-sgd"


def training_notes(audits: pd.DataFrame) -> list[str]:
    """Return which mistakes were found, after how many releases."""
    rows = records(audits[audits["mechanism"] != _RIGHT])
    found = [row for row in rows if row["verdict"] == "REFUTED"]
    missed = [row["mechanism"] for row in rows if row["verdict"] != "REFUTED"]
    notes = []
    if found:
        told = listed(
            f"{row['mechanism']} after {count(row['samples_to_refute'])}"
            for row in sorted(found, key=lambda row: row["samples_to_refute"])
        )
        notes.append(
            f"Audits found {spelt(len(found))} of {spelt(len(rows))} mistakes: {told} "
            "releases a side."
        )
    if missed:
        notes.append(f"Not found with these releases: {listed(missed)}.")
    right = audits[audits["mechanism"].eq(_RIGHT)]
    if len(right):
        fell = right["verdict"].eq("REFUTED").any()
        notes.append(f"The right version was {'' if fell else 'not '}refuted.")
    return notes


@plots.picture("training-wall", "Claimed and audited loss of DP-SGD and its mistakes")
def training_wall(results: Results, narrow: bool) -> tuple[Figure, str]:
    return wall(records(results["training-audits"]), narrow)


def context(results: Results) -> dict[str, Any]:
    audits = results["training-audits"]
    return {"notes": training_notes(audits), "rows": verdict_rows(audits)}


NOTES = {("training-audits",): training_notes}
