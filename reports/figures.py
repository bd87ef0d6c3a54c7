"""The row charts of the report: the privacy wall and the run times.

Every figure is a function of tables alone and returns an SVG that works in light and
dark (`dpaudit.reports.svg`), for a wide screen or, `narrow`, for a phone. Colour never
carries a meaning by itself: what is refuted is also spelt out.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports.formats import delta, number
from dpaudit.reports.labels import thinned
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.svg import (
    INK,
    MUTED,
    NARROW,
    PAPER,
    REFUTED,
    SERIES,
    WIDE,
    canvas,
    to_svg,
)
from dpaudit.reports.tables import Row, quartiles, records

__all__ = ["privacy_wall", "run_time"]

_LETTER = 7.3  # CSS pixels, of a name; the font of the layout is wider than most
_RATIO_GAP = 44.0


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
            left = _pixels(figure, 10, height - 50 - panel, width - 24, panel)
            right = _pixels(figure, 10, 34, width - 24, panel)
        else:
            names = _names_width(row["mechanism"] for row in rows)
            room = WIDE - names - 58
            left = _pixels(figure, names, 34, 0.575 * room, panel)
            right = _pixels(figure, names + 0.575 * room + 40, 34, 0.425 * room, panel)
        marks = [0.0, claim / 4, claim / 2, claim, 2 * claim, 4 * claim, math.inf]
        _panel(
            left,
            len(rows),
            "Loss ε at the claimed δ",
            [(place(m), "∞" if math.isinf(m) else f"{m:g}") for m in marks],
        )
        _panel(
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
                _row_name(axes, i, row["mechanism"], refuted, narrow)
        return to_svg(
            figure,
            f"figure-privacy-wall-{'narrow' if narrow else 'wide'}",
            title="Claimed, exact and audited privacy loss of every mechanism",
            description=" ".join(map(_wall_sentence, rows)),
        )


def run_time(table: pd.DataFrame, *, narrow: bool = False) -> str:
    """Draw how much longer a fit takes than PCA without privacy, with quartiles.

    The ratio is drawn, and not the time, because each fit was timed right beside one
    without privacy: another program that slows both down leaves it as it is.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``run-time``.
    narrow : bool
    """
    ratios = quartiles(table, ("mechanism",), "ratio")
    del ratios[BASELINE]
    panel = (46 if narrow else 34) * len(ratios)
    width, height = (NARROW if narrow else WIDE), panel + 72
    labels = []
    with canvas(width, height) as figure:
        names = _names_width(ratios)
        axes = (
            _pixels(figure, 10, 34, width - 24, panel)
            if narrow
            else _pixels(figure, names, 34, WIDE - names - 90, panel)
        )
        _panel(axes, len(ratios), "Time of a fit, in fits without privacy", [])
        _ratio_scale(axes, [x for quarters in ratios.values() for x in quarters])
        for i, (name, (low, middle, high)) in enumerate(ratios.items()):
            y = i + (0.14 if narrow else 0.0)
            axes.plot([1, 1], [y - 0.25, y + 0.25], color=INK, linewidth=2)
            axes.plot([low, high], [y, y], color=SERIES[0], linewidth=6, alpha=0.35)
            axes.plot(middle, y, "o", color=SERIES[0], markersize=9, clip_on=False)
            text = f"{number(middle) if middle >= 10 else f'{middle:.2f}'} ×"
            labels.append(f"{name}: {text}.")
            if narrow:
                axes.annotate(
                    f"{name}  {text}",
                    (0, i - 0.25),
                    xycoords=("axes fraction", "data"),
                    va="center",
                )
                continue
            _row_name(axes, i, name, False, narrow)
            axes.annotate(
                text,
                (1, i),
                (14, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
            )
        return to_svg(
            figure,
            f"figure-run-time-{'narrow' if narrow else 'wide'}",
            title="Median time of a fit, as a multiple of PCA without privacy",
            description=" ".join(labels),
        )


def _ratio_scale(axes: Axes, ratios: list[float]) -> None:
    """Make the horizontal axis logarithmic: samplers differ by orders of magnitude."""
    axes.set_xscale("log")
    low, high = min(1.0, *ratios) / 1.1, max(2.0, *ratios) * 1.1
    axes.set_xlim(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    marks = [m * 10.0**e for e in decades for m in (1, 2, 3, 5)]
    marks = [mark for mark in marks if low <= mark <= high]
    places = axes.transData.transform([(mark, 0.0) for mark in marks])[:, 0]
    marks = [marks[i] for i in thinned(places, _RATIO_GAP)]
    axes.set_xticks(marks, [f"{mark:g} ×" for mark in marks])
    axes.set_xticks([], minor=True)


def _names_width(names: Iterable[str]) -> float:
    """Return the room for names at the left of a panel, in CSS pixels."""
    return 20 + _LETTER * max(map(len, names))


def _pixels(
    figure: Figure, left: float, bottom: float, width: float, height: float
) -> Axes:
    """Add axes at a place given in CSS pixels."""
    across, up = figure.get_size_inches() * 72
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def _panel(axes: Axes, rows: int, heading: str, ticks: list[tuple[float, str]]) -> None:
    """Prepare axes for horizontal rows, the first one on top."""
    axes.set_xlim(0, 1)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    axes.tick_params(length=0, pad=7)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.spines["bottom"].set_visible(False)
    axes.annotate(
        heading,
        (0, 1),
        (0, 14),
        xycoords="axes fraction",
        textcoords="offset points",
        weight="bold",
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


def _row_name(axes: Axes, i: int, name: str, refuted: bool, narrow: bool) -> None:
    if narrow:
        text = f"{name} · REFUTED" if refuted else name
        colour = REFUTED if refuted else INK
        axes.annotate(text, (0, i - 0.33), va="center", color=colour)
        return
    lines: list[tuple[str, int, dict[str, Any]]] = [(name, 8 if refuted else 0, {})]
    if refuted:
        loud = {"color": REFUTED, "size": 11, "weight": "bold"}
        lines.append(("REFUTED", -9, loud))
    for text, up, style in lines:
        axes.annotate(
            text,
            (0, i),
            (-14, up),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            **style,
        )


def _wall_sentence(row: Row) -> str:
    verdict = row["verdict"].replace("_", " ").lower()
    return (
        f"{row['mechanism']}: claimed epsilon {number(row['claimed_epsilon'])}, "
        f"audited at least {number(row['epsilon_lower'])}, "
        f"exact {number(row['exact_epsilon'])}; "
        f"delta claimed {delta(row['claimed_delta'])}, "
        f"audited at least {delta(row['delta_lower'])}, "
        f"exact {delta(row['exact_delta'])}; {verdict}."
    )
