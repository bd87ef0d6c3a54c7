"""The section on the textbook suite: what is measured, and how it is shown."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.wall import wall
from dpaudit.reports.tables import Printed, proved, records, verdict_rows
from dpaudit.reports.words import delta, number, sentences, setting

_ROUNDING = 1 + 1e-9  # a ratio up to here is one of rounding


def suite_rows(suite: pd.DataFrame) -> list[Printed]:
    """Return the table of the textbook suite: that of verdicts, and what is true."""
    rows = verdict_rows(suite)
    for shown, row in zip(rows, records(suite), strict=True):
        at = f", δ = {delta(row['claimed_delta'])}" if row["claimed_delta"] else ""
        shown.claim = setting(row["claimed_epsilon"]) + at
        shown.summary, shown.truth = row["summary"], number(row["true_epsilon"])
        shown.audited = proved(row, "epsilon")
    return rows


def suite_notes(suite: pd.DataFrame) -> list[str]:
    """Return how the audit did where the truth is known."""
    refuted, names = suite["verdict"] == "REFUTED", suite["mechanism"]
    false = suite["true_epsilon"] > suite["claimed_epsilon"] * _ROUNDING
    beyond = suite["epsilon_lower"] > suite["true_epsilon"] * _ROUNDING
    return sentences(
        *("suite", "suite_notes"),
        untrue=false.sum(),
        fell=(false & refuted).sum(),
        unseen=list(names[false & ~refuted]),
        drawn=suite["samples"][false & ~refuted].max(),
        wrong=list(names[refuted & ~false]),
        beyond=list(names[beyond]),
    )


@plots.picture("suite-wall", "Claimed, true and audited epsilon of textbook mechanisms")
def suite_wall(results: Results, narrow: bool) -> tuple[Figure, str]:
    suite = results["textbook-suite"]
    return wall(records(suite.assign(exact_epsilon=suite["true_epsilon"])), narrow)


def context(results: Results) -> dict[str, Any]:
    suite = results["textbook-suite"]
    return {"suite": suite_rows(suite), "suite_notes": suite_notes(suite)}
