"""Robust PCA: errors step by step and second by second, and maps."""

from math import ceil
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Verdicts
from dpaudit.reports.plots import MUTED, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust.measures import CORRECTED, NOISELESS, PUBLISHED
from dpaudit.reports.tables import quartiles
from dpaudit.reports.words import (
    count,
    delta,
    duration,
    number,
    percent,
    setting,
    short,
    spread,
)

_FLOOR = 1e-16  # what is drawn ends here, an angle of 1e-8
_BLINK = 1e-6  # seconds: what a clock may show as none
_PEOPLE = (160, 80)  # dots in a map, for wide screens and for phones
_WEST_TO_EAST = (0, 6, 1, 3)  # series whose colours lie apart, neighbours most


@plots.picture(
    "robust-recovery", "Error of robust PCA by step, as published and corrected"
)
def error_by_step(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of the published mechanisms, and of the corrected, by step."""
    return _curves(results, narrow, "iteration")


@plots.picture(
    "robust-clock", "Error of robust PCA by time, as published and corrected"
)
def error_by_time(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the same by the median time until there, in seconds of one core."""
    return _curves(results, narrow, "seconds")


def _curves(results: Results, narrow: bool, against: str) -> tuple[Figure, str]:
    table, verdicts = results["robust-recovery"], Verdicts.of(results["robust-audits"])
    found = quartiles(table, ("mechanism", "iteration"), "error")
    clock = table.groupby(["mechanism", "iteration"])[against].median().to_dict()
    ends = [max(k for other, k in found if other == name) for name in CORRECTED]
    first, last = 1.0, float(max(ends))
    if against == "seconds":
        drawn = [max(x, _BLINK) for (name, _), x in clock.items() if name != NOISELESS]
        first, last = min(drawn), max(drawn)
    foot = lines.FOOT[narrow]
    figure = plots.canvas((680 if narrow else 380) + foot, narrow=narrow)
    panels = [("As published", PUBLISHED), ("Corrected", CORRECTED)]
    places = plots.boxes(figure, 2, foot=foot)
    said, dashes = [], []
    for box, (heading, names) in zip(places, panels, strict=True):
        axes = plots.panel(figure, box, heading, left=52, right=122, top=44, bottom=52)
        _error_scales(axes, first, last, against)
        labels = []
        for place, name in enumerate(names):
            line = verdicts.line(name, place, short(name))
            steps = [k for other, k in found if other == name]
            curve = np.array([found[name, k] for k in steps]).T
            x = np.maximum([clock[name, k] for k in steps], _BLINK)
            texts = []
            for k, seconds in zip(steps, x, strict=True):
                when = f"step {count(k)}"
                if against == "seconds":
                    when += f", after {duration(float(seconds))}"
                errors = spread(found[name, k], delta)
                texts.append(f"{name}{verdicts.said(name)}, {when}: {errors}")
            lines.band(axes, x, np.maximum(curve, _FLOOR / 100), line, texts)
            # Where it ends, or leaves.
            labels.append((line, (float(x[-1]), max(float(curve[1, -1]), _FLOOR))))
            dashes.append(line.dash)
            after = f"{count(steps[-1])} steps"
            if against == "seconds":
                after = duration(float(x[-1]))
            said.append(
                f"{name}{verdicts.said(name)}: {number(curve[1, -1])} after {after}."
            )
        lines.name_ends(axes, labels)
    lines.key(figure, dashes, narrow=narrow)
    return figure, " ".join(said)


def _error_scales(axes: Axes, first: float, last: float, against: str) -> None:
    axes.set(xscale="log", yscale="log", xlim=(first, last), ylim=(_FLOOR, 2))
    plots.tick(axes, "y", [10.0**e for e in range(-16, 1, 4)], delta)
    if against == "seconds":
        plots.tick(axes, "x", plots.decades(first, last), setting)
        plots.finish(axes, "seconds")
    else:
        plots.tick(axes, "x", plots.decades(first, last), count)
        plots.finish(axes, "step")


@plots.picture("genotypes", "Maps that mechanisms find in genotypes")
def maps(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw people where each mechanism puts them, coloured by where they are from."""
    return _maps(results, narrow, "genotypes")


@plots.picture("genotypes-reaper", "Maps that descent on REAPER finds in genotypes")
def reaper_maps(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the same for descent on REAPER, at fewer loci."""
    return _maps(results, narrow, "genotypes-reaper")


def _maps(results: Results, narrow: bool, experiment: str) -> tuple[Figure, str]:
    table = results[experiment]
    # One of the maps is by a mechanism of the wall.
    verdicts = Verdicts.of(results["robust-audits"], results["privacy-wall"])
    found = dict(list(table.groupby("mechanism", sort=False)))
    (across, high), foot = (2, 176.0) if narrow else (4, 190.0), lines.FOOT[narrow]
    figure = plots.canvas(high * ceil(len(found) / across) + foot, narrow=narrow)
    ((_, _, width, height),) = plots.boxes(figure, foot=foot)
    first = next(iter(found.values()))
    reach = 1.15 * float(np.abs(first[["east", "north"]].to_numpy()).max())
    quarters = np.quantile(first["east"], [0.25, 0.5, 0.75])
    sentences = []
    for place, (name, some) in enumerate(found.items()):
        row, column = divmod(place, across)
        left, bottom = width / across * column, foot + height - high * (row + 1)
        box = (left, bottom, width / across, high)
        axes = plots.panel(figure, box, left=6, right=6, top=42, bottom=8)
        shown = some.iloc[:: max(1, len(some) // _PEOPLE[narrow])]
        where = np.searchsorted(quarters, shown["east"])
        for quarter in range(4):
            dots = shown[where == quarter]
            style: dict[str, Any] = {"markeredgewidth": 0, "alpha": 0.75}
            style |= {"color": SERIES[_WEST_TO_EAST[quarter]], "markersize": 3.4}
            axes.plot(dots["x"], dots["y"], "os^D"[quarter], **style)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        axes.spines["bottom"].set_visible(False)
        heading, top = verdicts.line(name, 0, short(name)).label, bottom + high
        bold = {"color": verdicts.heading(name), "size": 12, "weight": "bold"}
        plots.write(axes, heading, (left + 8, top - 18), **bold)
        form = "as published, " if name in PUBLISHED else ""
        form = "corrected, " if name in CORRECTED else form
        fit = percent(float(some["fit"].iloc[0]))
        plots.write(axes, f"{form}{fit}", (left + 8, top - 34), color=MUTED, size=11)
        said = f"{name}{verdicts.said(name)} explains {fit} of the map."
        plots.told_whole(axes, said)
        sentences.append(said)
    dashes = [verdicts.line(name, 0).dash for name in found]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(sentences)
