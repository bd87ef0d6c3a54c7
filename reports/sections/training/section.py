"""The section on training: DP-SGD, and the mistakes that are made of it."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.wall import wall
from dpaudit.reports.tables import records, verdict_rows
from dpaudit.reports.words import sentences

_RIGHT = "dp-sgd"


def training_notes(audits: pd.DataFrame) -> list[str]:
    """Return which mistakes were found, after how many releases."""
    others = audits[audits["mechanism"] != _RIGHT]
    fell = others["verdict"] == "REFUTED"
    found = others[fell].sort_values("samples_to_refute", kind="stable")
    return sentences(
        *("training", "training_notes"),
        found=list(zip(found["mechanism"], found["samples_to_refute"], strict=True)),
        mistakes=len(others),
        missed=list(others["mechanism"][~fell]),
        right=list(audits["verdict"][audits["mechanism"] == _RIGHT]),
    )


@plots.picture("training-wall", "Claimed and audited loss of DP-SGD and its mistakes")
def training_wall(results: Results, narrow: bool) -> tuple[Figure, str]:
    return wall(records(results["training-audits"]), narrow)


def context(results: Results) -> dict[str, Any]:
    audits = results["training-audits"]
    return {"notes": training_notes(audits), "rows": verdict_rows(audits)}


NOTES = {("training-audits",): training_notes}
