"""The privacy wall: claimed, exact and audited."""

import math
from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes

from dpaudit.reports.plots import (
    INK,
    MUTED,
    NARROW,
    PAPER,
    REFUTED,
    SERIES,
    WIDE,
    canvas,
    names_width,
    pixels,
    row_name,
    row_panel,
    to_svg,
)
from dpaudit.reports.tables import Row, records
from dpaudit.reports.words import delta, number, verdict

__all__ = ["privacy_wall"]


def privacy_wall(table: pd.DataFrame, *, narrow: bool = False) -> str:
    """Draw claimed, exact and audited privacy: epsilon beside (or above) delta.

    Epsilon runs over all of [0, inf] on the scale epsilon / (epsilon + claim), so
    that the claim stands in the middle and an infinite loss at the end.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``privacy-wall``; the claimed epsilon is the same in all rows.
    narrow : bool
    """
    rows = records(table)
    claim = rows[0]["claimed_epsilon"]
    panel = (66 if narrow else 48) * len(rows)
    width, height = (NARROW, 2 * panel + 180) if narrow else (WIDE, panel + 84)

    def place(epsilon: float) -> float:
        return 1.0 if math.isinf(epsilon) else epsilon / (epsilon + claim)

    with canvas(width, height) as figure:
        if narrow:
            left = pixels(figure, 10, height - 50 - panel, width - 24, panel)
            right = pixels(figure, 10, 34, width - 24, panel)
        else:
            names = names_width(row["mechanism"] for row in rows)
            room = WIDE - names - 58
            left = pixels(figure, names, 34, 0.575 * room, panel)
            right = pixels(figure, names + 0.575 * room + 40, 34, 0.425 * room, panel)
        marks = [0.0, claim / 4, claim / 2, claim, 2 * claim, 4 * claim, math.inf]
        row_panel(
            left,
            len(rows),
            "Loss ε at the claimed δ",
            [(place(m), "∞" if math.isinf(m) else f"{m:g}") for m in marks],
        )
        row_panel(
            right,
            len(rows),
            "δ at the claimed ε",
            [(m, f"{m:g}") for m in (0, 0.25, 0.5, 0.75, 1)],
        )
        for i, row in enumerate(rows):
            _bar(left, i, row, "epsilon", place, number, narrow)
            _bar(right, i, row, "delta", float, delta, narrow)
            refuted = row["verdict"] == "REFUTED"
            for axes in (left, right) if narrow else (left,):
                row_name(axes, i, row["mechanism"], refuted, narrow)
        return to_svg(
            figure,
            "privacy-wall",
            narrow=narrow,
            title="Claimed, exact and audited privacy loss of every mechanism",
            description=" ".join(map(_wall_sentence, rows)),
        )


def _bar(
    axes: Axes,
    i: int,
    row: Row,
    kind: str,
    place: Callable[[float], float],
    text: Callable[[float], str],
    narrow: bool,
) -> None:
    """Draw one mechanism: the bar that the audit proved, the claim, the truth."""
    claimed, lower = row[f"claimed_{kind}"], row[f"{kind}_lower"]
    exact = row[f"exact_{kind}"]
    y, half = i + (0.0 if narrow else -0.12), 0.13
    within = place(min(lower, claimed))
    axes.barh(y, within, height=2 * half, color=SERIES[0], linewidth=0)
    if lower > claimed:
        beyond = place(lower) - within
        axes.barh(y, beyond, left=within, height=2 * half, color=REFUTED, linewidth=0)
    axes.plot(
        [place(claimed)] * 2,
        [y - half - 0.08, y + half + 0.08],
        color=INK,
        linewidth=2.5,
        clip_on=False,
        solid_capstyle="butt",
    )
    if not math.isnan(exact):
        axes.plot(
            place(exact),
            y,
            color=INK,
            marker="D",
            markersize=8,
            markerfacecolor=PAPER,
            markeredgecolor=INK,
            markeredgewidth=1.6,
            clip_on=False,
            zorder=5,
        )
    known = "" if math.isnan(exact) else f" · exact {text(exact)}"
    axes.annotate(
        f"audit ≥ {text(lower)}{known}",
        (0, y + half + 0.1),
        va="top",
        color=MUTED,
        size=11,
    )


def _wall_sentence(row: Row) -> str:
    found = verdict(row["verdict"]).lower()
    return (
        f"{row['mechanism']}: claimed epsilon {number(row['claimed_epsilon'])}, "
        f"audited at least {number(row['epsilon_lower'])}, "
        f"exact {number(row['exact_epsilon'])}; "
        f"delta claimed {delta(row['claimed_delta'])}, "
        f"audited at least {delta(row['delta_lower'])}, "
        f"exact {delta(row['exact_delta'])}; {found}."
    )
