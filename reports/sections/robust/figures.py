"""Robust PCA: errors step by step and second by second, maps, and heat maps.

A heat map has a panel for each mechanism and a tile for each cell of its grid, as in
Figures 2 and 4 to 9 of the paper. The published and the corrected form of a mechanism
are neighbours. What no run has (an error, a time) is written into its tile, and what
was not run is left blank.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, isnan, log10
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.reports import lines, plots, svg
from dpaudit.reports.lines import Curve, Verdicts, by_mechanism
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.robust.measures import CORRECTED, NOISELESS, PUBLISHED
from dpaudit.reports.sections.robust.section import (
    PHASES,
    failed,
    final_error,
    time_taken,
)
from dpaudit.reports.svg import INK, MUTED, RULE, SERIES
from dpaudit.reports.words import (
    count,
    delta,
    duration,
    listed,
    number,
    percent,
    setting,
    short,
)

_FLOOR = 1e-16  # what is drawn ends here, an angle of 1e-8
_BLINK = 1e-6  # seconds: what a clock may show as none
_PEOPLE = (160, 80)  # dots in a map, for wide screens and for phones
_WEST_TO_EAST = (0, 6, 1, 3)  # series whose colours lie apart, neighbours most

_BY, _FORMS = "Error of robust PCA by", "as published and corrected"


@plots.picture("robust-recovery", f"{_BY} step, {_FORMS}", against="iteration")
@plots.picture("robust-clock", f"{_BY} time, {_FORMS}", against="seconds")
def errors(results: Results, narrow: bool, against: str) -> tuple[Figure, str]:
    """Draw the errors of the published mechanisms, and of the corrected.

    By step, or by the median time until there, in seconds of one core.
    """
    table, verdicts = results["robust-recovery"], Verdicts.of(results["robust-audits"])
    found, timed = by_mechanism(table, "iteration", "error"), against == "seconds"
    clock = table.groupby(["mechanism", "iteration"])[against].median()
    first, last = 1.0, float(max(max(found[name]) for name in CORRECTED))
    if timed:
        drawn = np.maximum(clock.drop(NOISELESS, level="mechanism"), _BLINK)
        first, last = drawn.min(), drawn.max()
    figure, places = lines.sheet(680 if narrow else 380, 2, narrow=narrow)
    panels = [("As published", PUBLISHED), ("Corrected", CORRECTED)]
    said, dashes = [], []
    for box, (heading, names) in zip(places, panels, strict=True):
        axes = plots.panel(figure, box, heading, left=52, right=122, top=44, bottom=52)
        axes.set(xscale="log", yscale="log", xlim=(first, last), ylim=(_FLOOR, 2))
        plots.tick(axes, "y", [10.0**e for e in range(-16, 1, 4)], delta)
        marks = plots.decades(first, last)
        plots.tick(axes, "x", marks, setting if timed else count)
        plots.finish(axes, "seconds" if timed else "step")
        labels = []
        for place, name in enumerate(names):
            line = verdicts.line(name, place, short(name))
            steps, three = list(found[name]), np.array(list(found[name].values())).T
            x = np.maximum(clock[name][steps].to_numpy(), _BLINK)
            at = [f"step {count(k)}" for k in steps]
            after = f"{count(steps[-1])} steps"
            if timed:
                times = [duration(float(seconds)) for seconds in x]
                at = [f"{k}, after {t}" for k, t in zip(at, times, strict=True)]
                after = times[-1]
            curve = Curve(f"{name}{verdicts.said(name)}", line, x, three)
            curve.draw(axes, at, delta, lambda errors: np.maximum(errors, _FLOOR / 100))
            (end, error) = curve.last
            labels.append((line, (end, max(error, _FLOOR))))  # it ends, or leaves
            dashes.append(line.dash)
            said.append(f"{curve.said}: {number(error)} after {after}.")
        lines.name_ends(axes, labels)
    lines.key(figure, dashes, narrow=narrow)
    return figure, " ".join(said)


def _multiples(
    below: Mapping[str, str],
    verdicts: Verdicts,
    size: tuple[int, float],
    *,
    narrow: bool,
    **around: Any,
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a small panel for each mechanism, and these panels.

    Given is what stands below the name of each, and the size: how many panels there are
    in a row, and their height.
    """
    (across, high), panels, number = size, {}, len(below)
    height = high * ceil(number / across)
    figure, places = lines.sheet(height, number, narrow=narrow, across=across)
    for box, (name, text) in zip(places, below.items(), strict=True):
        left, top = box[0], box[1] + high
        panels[name] = axes = plots.panel(figure, box, **around)
        heading = verdicts.line(name, 0, short(name)).label
        bold = {"color": verdicts.heading(name), "size": 12, "weight": "bold"}
        plots.write(axes, heading, (left + 8, top - 18), **bold)
        plots.write(axes, text, (left + 8, top - 34), color=MUTED, size=11)
    return figure, panels


@plots.picture("genotypes", "Maps that mechanisms find in genotypes", of="genotypes")
@plots.picture(
    *("genotypes-reaper", "Maps that descent on REAPER finds in genotypes"),
    of="genotypes-reaper",
)
def maps(results: Results, narrow: bool, of: str) -> tuple[Figure, str]:
    """Draw people where each mechanism puts them, coloured by where they are from.

    The same for descent on REAPER, at fewer loci.
    """
    # One of the maps is by a mechanism of the wall.
    verdicts = Verdicts.of(results["robust-audits"], results["privacy-wall"])
    found = dict(list(results[of].groupby("mechanism", sort=False)))
    fits = {name: percent(float(some["fit"].iloc[0])) for name, some in found.items()}
    forms = dict.fromkeys(PUBLISHED, "as published, ")
    forms |= dict.fromkeys(CORRECTED, "corrected, ")
    figure, panels = _multiples(
        {name: f"{forms.get(name, '')}{fit}" for name, fit in fits.items()},
        verdicts,
        (2, 176.0) if narrow else (4, 190.0),
        narrow=narrow,
        **{"left": 6, "right": 6, "top": 42, "bottom": 8},
    )
    first = next(iter(found.values()))
    reach = 1.15 * float(np.abs(first[["east", "north"]].to_numpy()).max())
    quarters = np.quantile(first["east"], [0.25, 0.5, 0.75])
    sentences = []
    for name, some in found.items():
        axes = panels[name]
        shown = some.iloc[:: max(1, len(some) // _PEOPLE[narrow])]
        where = np.searchsorted(quarters, shown["east"])
        for quarter in range(4):
            dots = shown[where == quarter]
            style: dict[str, Any] = {"markeredgewidth": 0, "alpha": 0.75}
            style |= {"color": SERIES[_WEST_TO_EAST[quarter]], "markersize": 3.4}
            axes.plot(dots["x"], dots["y"], "os^D"[quarter], **style)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        axes.spines["bottom"].set_visible(False)
        said = f"{name}{verdicts.said(name)} explains {fits[name]} of the map."
        svg.told_whole(axes, said)
        sentences.append(said)
    dashes = [verdicts.line(name, 0).dash for name in found]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(sentences)


_CELL = 24.0  # CSS pixels of height
_AROUND: dict[str, Any] = {"left": 46.0, "right": 8.0, "top": 46.0, "bottom": 46.0}
_BOTTOM, _NEVER, _FEW = "⊥", "none", "few"


def _tenfold(value: float) -> str:
    """Return log10 of an error: one decimal where it counts."""
    text = f"{value:.0f}" if value <= -9.95 else f"{round(value, 1) + 0.0:.1f}"
    return text.replace("-", "−")


def _brief(seconds: float) -> str:
    """Return a time in few letters.

    >>> _brief(0.000042), _brief(0.00042), _brief(0.0021)
    ('42µs', '.4ms', '2ms')
    >>> _brief(0.5), _brief(3.14), _brief(31.4)
    ('.50s', '3.1s', '31s')
    """
    if seconds < 0.0000995:
        return f"{1e6 * seconds:.0f}µs"
    if seconds < 0.00095:
        return f"{1e3 * seconds:.1f}ms"[1:]
    if seconds < 0.0995:
        return f"{1e3 * seconds:.0f}ms"
    if seconds < 0.995:
        return f"{seconds:.2f}s"[1:]
    return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


@dataclass(frozen=True)
class Quantity:
    """What a heat map shows, and how."""

    name: str
    # from the runs of a cell to a number; NaN if no run has one, infinite if less than
    # half of them have
    value: Callable[[pd.DataFrame], float]
    text: Callable[[float], str]  # how a finite number is written
    depth: Callable[[float], float]  # how full a tile is, from 0 to 1
    unit: str = ""  # what follows the number
    nothing: str = _BOTTOM  # what stands for NaN

    def label(self, value: float) -> str:
        if isnan(value):
            return self.nothing
        return self.text(value) if isfinite(value) else _FEW


_GOOD = "an error of 0.01"
_ERROR = Quantity("log10 of the median error", final_error, _tenfold, lambda x: -x / 10)
_TIME = Quantity(
    f"median time to {_GOOD}",
    time_taken,
    _brief,
    lambda seconds: (1 - log10(max(seconds, 1e-9))) / 4,
    nothing=_NEVER,
)
_MISSES = Quantity(f"runs that miss {_GOOD}", failed, _percent, lambda x: 1 - x, " %")
_HITS = Quantity(
    f"runs with {_GOOD}", lambda cell: 1 - failed(cell), _percent, lambda x: x, " %"
)

_AXES: dict[str, tuple[str, Callable[[float], str]]] = {
    "rows": ("rows N", count),
    "dimension": ("length D", count),
    "epsilon": ("ε", setting),
    "delta": ("δ", delta),
    "batch_size": ("batch B", count),
    "inlier_share": ("inliers", setting),
    "n_components": ("rank r", count),
}
"""Columns of grids: what is written beside an axis, and how its values are."""

_PHASES = {"of": PHASES, "grid": ("rows", "dimension")}
_BY_SIZE = "by the number of rows and their length"


@plots.picture(
    "robust-phases", f"Median log10 error {_BY_SIZE}", shown=_ERROR, **_PHASES
)
@plots.picture("robust-times", f"Time to {_GOOD} {_BY_SIZE}", shown=_TIME, **_PHASES)
@plots.picture(
    "robust-failures", f"Runs that miss {_GOOD} {_BY_SIZE}", shown=_MISSES, **_PHASES
)
@plots.picture(
    "robust-budgets",
    "Median log10 error by epsilon and delta",
    shown=_ERROR,
    of=["robust-budgets"],
    grid=("epsilon", "delta"),
)
@plots.picture(
    "robust-batches",
    f"Runs with {_GOOD} by the size of a batch and share of inliers",
    shown=_HITS,
    of=["robust-batches"],
    grid=("batch_size", "inlier_share"),
)
@plots.picture(
    "robust-ranks",
    "Median log10 error by the length of rows and the components",
    shown=_ERROR,
    of=["robust-ranks"],
    grid=("dimension", "n_components"),
)
def heat_map(
    results: Results,
    narrow: bool,
    shown: Quantity,
    of: Sequence[str],
    grid: tuple[str, str],
) -> tuple[Figure, str]:
    """Draw a number of each cell of some experiments: columns across, and upwards."""
    verdicts = Verdicts.of(results["robust-audits"])
    table = pd.concat([results[name] for name in of])
    ticks = {column: np.unique(table[column]) for column in grid}
    found = {
        str(name): {at: shown.value(cell) for at, cell in own.groupby(list(grid))}
        for name, own in table.groupby("mechanism", sort=False)
    }
    high = _AROUND["top"] + _CELL * len(ticks[grid[1]]) + _AROUND["bottom"]
    forms = {n: "corrected" if n == short(n) else "as published" for n in found}
    size = 2 if narrow else 4, high
    figure, panels = _multiples(forms, verdicts, size, narrow=narrow, **_AROUND)
    sentences = []
    for name, cells in found.items():
        said = f"{name}{verdicts.said(name)}"
        _draw(panels[name], shown, cells, ticks, said)
        sentences.append(_said(shown, said, cells))
    dashes = [verdicts.line(name, 0).dash for name in found]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(sentences)


def _draw(
    axes: Axes,
    shown: Quantity,
    cells: Mapping[Any, float],
    ticks: Mapping[str, Any],
    name: str,
) -> None:
    (across, words), (up, others) = (_AXES[column] for column in ticks)
    xs, ys = ticks.values()
    for (x, y), value in cells.items():
        i, j = int(np.searchsorted(xs, x)), int(np.searchsorted(ys, y))
        depth = float(np.clip(shown.depth(value), 0, 1)) if isfinite(value) else 0.0
        inside: dict[str, Any] = {"facecolor": SERIES[0], "alpha": 0.05 + 0.45 * depth}
        axes.add_patch(Rectangle((i, j), 1, 1, edgecolor=RULE, linewidth=0, **inside))
        style: dict[str, Any] = {"ha": "center", "va": "center", "size": 10}
        style |= {"color": INK if depth > 0.1 else MUTED}
        axes.annotate(shown.label(value), (i + 0.5, j + 0.5), **style)
        place = f"{across} = {words(x)}, {up} = {others(y)}"
        said = f"{name}, {place}, {shown.name}: {shown.label(value)}{shown.unit}"
        svg.told(axes, [i], [j], [said], (1, 1))
    axes.set(xlim=(0, len(xs)), ylim=(0, len(ys)))
    for axis, label, text, values in (
        (axes.xaxis, across, words, xs),
        (axes.yaxis, up, others, ys),
    ):
        places = np.arange(len(values)) + 0.5
        axis.set_ticks(places, labels=[text(value) for value in values], size=10)
        axis.set_label_text(label, size=11)
        axis.labelpad = 4
    axes.tick_params(length=0, pad=4)


def _said(shown: Quantity, name: str, cells: Mapping[Any, float]) -> str:
    """Return the range of what is drawn of a mechanism, in words."""
    known = sorted(value for value in cells.values() if isfinite(value))
    parts = [f"{shown.text(known[0])} to {shown.text(known[-1])}"] if known else []
    for text, missing in ((_FEW, np.isinf), (shown.nothing, np.isnan)):
        if lacking := sum(missing(value) for value in cells.values()):
            parts.append(f"{text!r} in {lacking} of {len(cells)} cells")
    return f"{name}: {listed(parts)}."
