"""Robust PCA: errors step by step, where it works, and maps."""

from math import ceil, log10
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.reports import plots
from dpaudit.reports.plots import INK, MUTED, REFUTED, RULE, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust.measures import CORRECTED, PUBLISHED
from dpaudit.reports.tables import quartiles, refuted_mechanisms, standing_mechanisms
from dpaudit.reports.words import count, delta, number, percent, short

__all__ = ["error_by_step", "maps", "phases"]

_FLOOR = 1e-16  # what is drawn ends here, an angle of 1e-8
_GAP = 17.0  # CSS pixels between labels
_CELL = 34.0
_PEOPLE = 240  # dots in a map


@plots.picture(
    "robust-recovery", "Error of robust PCA by step, as published and corrected"
)
def error_by_step(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of the published mechanisms, and of the corrected, by step."""
    table, audits = results["robust-recovery"], results["robust-audits"]
    refuted, standing = refuted_mechanisms(audits), standing_mechanisms(audits)
    found = quartiles(table, ("mechanism", "iteration"), "error")
    figure = plots.canvas(680 if narrow else 380, narrow=narrow)
    panels = [("As published", PUBLISHED), ("Corrected", CORRECTED)]
    for box, (heading, names) in zip(plots.boxes(figure, 2), panels, strict=True):
        axes = plots.panel(figure, box, heading, left=52, right=112, top=44, bottom=52)
        _error_scales(axes, int(table["iteration"].max()))
        ends = []
        for name, colour in zip(names, SERIES, strict=False):
            steps = [k for other, k in found if other == name]
            curve = np.array([found[name, k] for k in steps]).T
            curve = np.maximum(curve, _FLOOR / 100)
            dashes = plots.stroke(name, refuted, standing)
            plots.band(axes, steps, curve, colour, dashes)
            last = max(float(curve[1, -1]), _FLOOR)  # or where it leaves
            text = short(name) + plots.mark(name, refuted)
            ends.append((text, REFUTED if name in refuted else colour, last))
        plots.name_ends(axes, ends, _GAP)
    return figure, " ".join(
        f"{name}: {number(found[name, k][1])} after {count(k)} steps."
        for name in (*PUBLISHED, *CORRECTED)
        for k in (max(k for other, k in found if other == name),)
    )


@plots.picture(
    "robust-phases", "Median log10 error by the number of rows and their length"
)
def phases(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the median error of each mechanism by the rows and their length."""
    refuted = refuted_mechanisms(results["robust-audits"])
    table = results["robust-phases"]
    found = quartiles(table, ("mechanism", "rows", "dimension"), "error")
    names = table["mechanism"].unique()
    rows, lengths = (np.unique(table[name]) for name in ("rows", "dimension"))
    high = round(74 + _CELL * len(lengths) + 30)
    figure = plots.canvas(high * (len(names) if narrow else 1), narrow=narrow)
    for box, name in zip(plots.boxes(figure, len(names)), names, strict=True):
        heading = name + plots.mark(name, refuted)
        axes = plots.panel(figure, box, heading, left=52, right=24, top=44, bottom=56)
        for i, n in enumerate(rows):
            for j, d in enumerate(lengths):
                _tile(axes, i, j, found[name, n, d][1])
        axes.set(xlim=(0, len(rows)), ylim=(0, len(lengths)))
        axes.set_xticks(np.arange(len(rows)) + 0.5, map(count, rows))
        axes.set_yticks(np.arange(len(lengths)) + 0.5, map(count, lengths))
        axes.tick_params(length=0, pad=6)
        axes.set_xlabel("rows N", labelpad=6)
        axes.set_ylabel("length D", labelpad=6)
    return figure, " ".join(
        f"{name}, N = {count(n)}, D = {count(d)}: {_tenfold(q[1])}."
        for (name, n, d), q in found.items()
    )


def _error_scales(axes: Axes, steps: int) -> None:
    axes.set(xscale="log", yscale="log", xlim=(1, steps), ylim=(_FLOOR, 2))
    plots.tick(axes, "y", [10.0**e for e in range(-16, 1, 4)], delta)
    plots.tick(axes, "x", plots.decades(1, steps), count)
    plots.finish(axes, "step")


def _tile(axes: Axes, i: int, j: int, error: float) -> None:
    """Draw one cell, the fuller the smaller the error."""
    depth = float(np.clip(-log10(max(error, _FLOOR)) / 10, 0, 1))
    inside: dict[str, Any] = {"facecolor": SERIES[0], "alpha": 0.06 + 0.5 * depth}
    axes.add_patch(Rectangle((i, j), 1, 1, edgecolor=RULE, linewidth=0, **inside))
    style: dict[str, Any] = {"ha": "center", "va": "center", "size": 11.5}
    style |= {"color": INK if depth > 0.1 else MUTED}
    axes.annotate(_tenfold(error), (i + 0.5, j + 0.5), **style)


def _tenfold(error: float) -> str:
    """Return log10 of the error with one decimal."""
    return f"{round(log10(max(error, 1e-30)), 1) + 0.0:.1f}".replace("-", "−")


@plots.picture("genotypes", "Maps that mechanisms find in genotypes")
def maps(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw people where each mechanism puts them, coloured by where they are from."""
    table = results["genotypes"]
    # One of the maps is by a mechanism of the wall.
    refuted = {
        name
        for audits in ("robust-audits", "privacy-wall")
        for name in refuted_mechanisms(results[audits])
    }
    found = dict(list(table.groupby("mechanism", sort=False)))
    across, high = (2, 176.0) if narrow else (4, 190.0)
    figure = plots.canvas(round(high * ceil(len(found) / across)), narrow=narrow)
    ((_, _, width, height),) = plots.boxes(figure)
    first = next(iter(found.values()))
    reach = 1.15 * float(np.abs(first[["east", "north"]].to_numpy()).max())
    quarters = np.quantile(first["east"], [0.25, 0.5, 0.75])
    fits = {name: percent(float(some["fit"].iloc[0])) for name, some in found.items()}
    for place, (name, some) in enumerate(found.items()):
        row, column = divmod(place, across)
        left, bottom = width / across * column, height - high * (row + 1)
        box = (left, bottom, width / across, high)
        axes = plots.panel(figure, box, left=6, right=6, top=42, bottom=8)
        shown = some.iloc[:: max(1, len(some) // _PEOPLE)]
        where = np.searchsorted(quarters, shown["east"])
        for quarter in range(4):
            dots = shown[where == quarter]
            style: dict[str, Any] = {"markeredgewidth": 0, "alpha": 0.75}
            colour = SERIES[quarter]
            axes.plot(dots["x"], dots["y"], "o", color=colour, markersize=3.2, **style)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        axes.spines["bottom"].set_visible(False)
        heading, top = short(name) + plots.mark(name, refuted), bottom + high
        bold = {"color": INK, "size": 12, "weight": "bold"}
        plots.write(axes, heading, (left + 8, top - 18), **bold)
        published = "as published, " if name.endswith("-published") else ""
        under = f"{published}{fits[name]}"
        plots.write(axes, under, (left + 8, top - 34), color=MUTED, size=11)
    return figure, " ".join(
        f"{name} explains {fit} of the map." for name, fit in fits.items()
    )
