"""The privacy wall: what mechanisms claim, what they lose, and what an audit proved."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots, svg
from dpaudit.reports.experiment import Record
from dpaudit.reports.plots import WIDE
from dpaudit.reports.svg import INK, MUTED, PAPER, REFUTED, SERIES
from dpaudit.reports.tables import proved
from dpaudit.reports.words import delta, number, verdict


def wall(rows: Sequence[Record], narrow: bool) -> tuple[Figure, str]:
    """Draw claimed, exact and audited privacy: epsilon beside (or above) delta.

    Epsilon runs over all of [0, inf] on the scale epsilon / (epsilon + claim), so
    that the claim of the first row stands in the middle and an infinite loss at the
    end. ``rows``: of a table of audits.
    """
    claim = rows[0]["claimed_epsilon"]
    high = (66 if narrow else 48) * len(rows)
    key = 48 if narrow else 36
    height = 2 * high + 180 + key if narrow else high + 84 + key
    figure = plots.canvas(height, narrow=narrow)
    _key(figure, height, narrow)

    def place(epsilon: float) -> float:
        return 1.0 if math.isinf(epsilon) else epsilon / (epsilon + claim)

    if narrow:
        left, right = (
            plots.pixels(figure, 10, bottom, plots.NARROW - 24, high)
            for bottom in (height - key - 50 - high, 34)
        )
    else:
        names = plots.names_width(row["mechanism"] for row in rows)
        room = WIDE - names - 58
        left = plots.pixels(figure, names, 34, 0.575 * room, high)
        right = plots.pixels(figure, names + 0.575 * room + 40, 34, 0.425 * room, high)
    marks = [0.0, claim / 4, claim / 2, claim, 2 * claim, 4 * claim, math.inf]
    ticks = [(place(m), "∞" if math.isinf(m) else f"{m:g}") for m in marks]
    plots.row_panel(left, len(rows), "Loss ε at the claimed δ", ticks)
    ticks = [(m, f"{m:g}") for m in (0, 0.25, 0.5, 0.75, 1)]
    plots.row_panel(right, len(rows), "δ at the claimed ε", ticks)
    for i, row in enumerate(rows):
        _bar(left, i, row, "epsilon", place, number, narrow)
        _bar(right, i, row, "delta", float, delta, narrow)
        refuted = row["verdict"] == "REFUTED"
        for axes in (left, right) if narrow else (left,):
            plots.row_name(axes, i, row["mechanism"], refuted, narrow)
    return figure, " ".join(map(_wall_sentence, rows))


KEY = ("proved by the audit", "beyond the claim", "claimed", "exact")
"""What the marks of the privacy wall mean."""

_MARKS: tuple[dict[str, Any], ...] = (
    {"color": SERIES[0], "linewidth": 0},
    {"color": REFUTED, "linewidth": 0},
    {"color": INK, "clip_on": False, "linewidth": 2.5, "solid_capstyle": "butt"},
    {
        **{"color": INK, "clip_on": False, "zorder": 5, "marker": "D", "markersize": 8},
        **{"markerfacecolor": PAPER, "markeredgecolor": INK, "markeredgewidth": 1.6},
    },
)
"""How they look: in the rows, and in the key above them."""

_LETTERS = {"epsilon": "ε", "delta": "δ"}


def _bar(
    axes: Axes,
    i: int,
    row: Record,
    kind: str,
    place: Callable[[float], float],
    text: Callable[[float], str],
    narrow: bool,
) -> None:
    """Draw one mechanism: the bar that the audit proved, the claim, the truth."""
    claimed, lower = row[f"claimed_{kind}"], row[f"{kind}_lower"]
    of_proof, of_excess, of_claim, of_truth = _MARKS
    exact = row[f"exact_{kind}"]
    y, half = i + (0.0 if narrow else -0.12), 0.13
    within = place(min(lower, claimed))
    axes.barh(y, within, height=2 * half, **of_proof)
    if lower > claimed:
        beyond = place(lower) - within
        axes.barh(y, beyond, left=within, height=2 * half, **of_excess)
    axes.plot([place(claimed)] * 2, (y - half - 0.08, y + half + 0.08), **of_claim)
    said = f"audit {proved(row, kind)}"
    if not math.isnan(exact):
        said += f" · exact {text(exact)}"
        axes.plot(place(exact), y, **of_truth)
    axes.annotate(said, (0, y + half + 0.1), va="top", color=MUTED, size=11)
    for value, words in (
        (lower, f"audit {proved(row, kind)}"),
        (claimed, f"claimed {text(claimed)}"),
        (exact, f"exact {text(exact)}"),
    ):
        if not math.isnan(value):
            told = f"{row['mechanism']}, {_LETTERS[kind]} {words}"
            svg.told(axes, [place(value)], [y], [told])


def _key(figure: Figure, height: int, narrow: bool) -> None:
    """Say above the rows what their marks mean, in two columns on phones."""
    across = plots.NARROW if narrow else plots.WIDE
    axes = plots.pixels(figure, 0, 0, across, height)
    axes.set(xlim=(0, across), ylim=(0, height))
    axes.set_axis_off()
    lefts = (10, 190) if narrow else (10, 190, 350, 460)
    for i, text in enumerate(KEY):
        x, y = lefts[i % len(lefts)], height - 14 - 22 * (i // len(lefts))
        if i < 2:
            axes.barh(y, 26, left=x, height=11, **_MARKS[i])
        else:
            places = ([x + 13] * 2, (y - 9, y + 9)) if i == 2 else ([x + 13], [y])
            axes.plot(*places, **_MARKS[i])
        axes.annotate(text, (x + 34, y), va="center", color=MUTED, size=12)


def _wall_sentence(row: Record) -> str:
    found = verdict(row["verdict"]).lower()
    return (
        f"{row['mechanism']}: claimed epsilon {number(row['claimed_epsilon'])}, "
        f"audited {proved(row, 'epsilon')}, "
        f"exact {number(row['exact_epsilon'])}; "
        f"delta claimed {delta(row['claimed_delta'])}, "
        f"audited {proved(row, 'delta')}, "
        f"exact {delta(row['exact_delta'])}; {found}."
    )
