"""What privacy costs: captured variance against epsilon, and time."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpaudit.reports import lines, plots, svg
from dpaudit.reports.lines import DOTTED, Curve, Line, Verdicts, by_mechanism
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.plots import WIDE
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT
from dpaudit.reports.svg import INK, MUTED, PAPER, REFUTED, SERIES
from dpaudit.reports.tables import quartiles
from dpaudit.reports.words import nines, percent, setting, spread, times

_SHARES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
_LABEL_GAP, _TICK_GAP, _KEY_STEP = 18.0, 20.0, 24  # CSS pixels
_RATIO_GAP = 44.0
_FALSE = Line("claim false at this ε, by the exact loss", REFUTED, marker="X")


@dataclass(frozen=True, eq=False)
class FalseCurve(Curve):
    """A curve that says where the claim is false, by the exact loss."""

    false: NDArray[np.bool_]


@plots.picture(
    "captured-variance",
    "Share of the variance that private components capture, by epsilon",
)
def captured_variance(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the captured share against epsilon, with quartile bands.

    The vertical scale is logarithmic in what is *lost*, so that 90 %, 99 % and 99.9 %
    are equally far apart. Stretches where the claim is false are dashed and crossed.
    The names stand at the ends of the lines, or below on phones.
    """
    verdicts = Verdicts.of(results["privacy-wall"])
    curves = _curves(results["captured-variance"], results["exact-privacy"], verdicts)
    without_noise = captured(results["variance-references"])
    below = _KEY_STEP * len(curves) if narrow else 0
    height = 400 + below if narrow else 490
    figure, (box,) = lines.sheet(height, narrow=narrow, more=lines.ENTRY)
    margin, bottom = 14 if narrow else 236, 52 + below
    axes = plots.panel(figure, box, left=60, right=margin, top=38, bottom=bottom)
    _scales(axes, curves, without_noise[FIRST_COMPONENT])
    for curve in curves:
        _draw(axes, curve)
    _references(axes, without_noise)
    named = [curve.line for curve in curves]
    if narrow:
        lines.list_below(axes, named, box[1] + 14, _KEY_STEP)
    else:
        lasts = ((curve.line, curve.last) for curve in curves)
        ends = [(line, (epsilon, float(nines(y)))) for line, (epsilon, y) in lasts]
        lines.name_ends(axes, ends, _LABEL_GAP, size=12.5)
    dashes = (line.dash for line in named)
    lines.key(figure, dashes, narrow=narrow, more=[_FALSE])
    return figure, " ".join(map(_sentence, curves))


def captured(references: pd.DataFrame) -> dict[str, float]:
    """Return what each yardstick without noise captures."""
    return dict(zip(references["mechanism"], references["captured_share"], strict=True))


def _curves(
    table: pd.DataFrame, exact: pd.DataFrame, verdicts: Verdicts
) -> list[FalseCurve]:
    """Return the curves, the best at the smallest epsilon first."""
    broken = exact[exact["claim"] == "false"].groupby("mechanism")["epsilon"]
    false = {name: set(epsilons) for name, epsilons in broken}
    found = by_mechanism(table, "epsilon", "captured_share")
    curves = [
        FalseCurve(
            name + verdicts.said(name),
            verdicts.line(name, place),
            np.array(list(own)),
            np.array(list(own.values())).T,
            np.isin(list(own), list(false.get(name, ()))),
        )
        for place, (name, own) in enumerate(found.items())
    ]
    return sorted(curves, key=lambda curve: -curve.quartiles[1, 0])


def _draw(axes: Axes, curve: FalseCurve) -> None:
    """Draw a curve as its verdict says, but dashed where its claim is false."""
    epsilon, line = curve.x, curve.line
    low, middle, high = nines(curve.quartiles)
    axes.fill_between(epsilon, low, high, color=line.colour, alpha=0.2, linewidth=0)
    dashed = curve.false[1:] | curve.false[:-1]
    stretches = itertools.groupby(range(len(dashed)), key=dashed.__getitem__)
    for broken, stretch in stretches:
        segments = list(stretch)
        points = slice(segments[0], segments[-1] + 2)
        dash = lines.FALLEN if broken else line.dash
        style = {"color": line.colour, "linestyle": dash, "linewidth": 2.2}
        axes.plot(epsilon[points], middle[points], **style)
    true = ~curve.false
    lines.markers(axes, epsilon[true], middle[true], line)
    crosses: dict[str, Any] = {"markersize": 9, "markeredgecolor": PAPER}
    crosses |= {"color": REFUTED, "clip_on": False, "zorder": 4}
    axes.plot(epsilon[curve.false], middle[curve.false], _FALSE.marker, **crosses)
    texts = [
        f"{curve.said}, ε = {setting(e)}: {spread(three, percent)}"
        + (", claim false by the exact loss" if false else "")
        for e, three, false in zip(epsilon, curve.quartiles.T, curve.false, strict=True)
    ]
    svg.told(axes, epsilon, middle, texts)


def _scales(axes: Axes, curves: list[FalseCurve], first: float) -> None:
    low = nines(min(first, *(curve.quartiles.min() for curve in curves)))
    high = nines(max(curve.quartiles.max() for curve in curves))
    axes.set_ylim(low - 0.08, high + 0.06)
    places = [nines(share) for share in _SHARES]
    shown = dict(zip(places, _SHARES, strict=True))
    places = [place for place in places if low - 0.08 <= place <= high]
    plots.tick(axes, "y", places, lambda place: f"{100 * shown[place]:g} %", _TICK_GAP)
    epsilon = curves[0].x
    axes.set(xscale="log", xlim=(epsilon[0], epsilon[-1]))
    marks = [e for e in (0.1, 0.3, 1, 3, 10) if epsilon[0] <= e <= epsilon[-1] * 1.001]
    axes.set_xticks(marks, [f"{e:g}" for e in marks])
    plots.finish(axes, "claimed ε", pad=7)
    place = (8, axes.get_window_extent().y1 + 22)
    text = "Captured share of the best possible variance"
    plots.write(axes, text, place, weight="bold")


def _references(axes: Axes, without_noise: Mapping[str, float]) -> None:
    """Say what components capture that owe nothing to privacy."""
    first, best = nines(without_noise[FIRST_COMPONENT]), without_noise[BASELINE]
    top = axes.get_ylim()[1]
    axes.axhline(first, color=MUTED, linewidth=1.4, linestyle=DOTTED)
    style: dict[str, Any] = {"size": 12, "color": MUTED, "zorder": 5}
    style["bbox"] = {"facecolor": PAPER, "linewidth": 0, "pad": 1, "alpha": 0.8}
    for text, place, away, side, up in (
        ("first component, no noise", (1, first), (-4, 6), "right", "bottom"),
        (f"↑ no noise: {percent(best)}", (0, top), (4, -6), "left", "top"),
    ):
        plots.beside(axes, text, place, away, plots.ROW, ha=side, va=up, **style)


def _sentence(curve: FalseCurve) -> str:
    first, last = curve.quartiles[1, [0, -1]]
    text = (
        f"{curve.said}: {percent(first)} at epsilon {setting(curve.x[0])}, "
        f"{percent(last)} at epsilon {setting(curve.x[-1])}"
    )
    if curve.false.any():
        text += f"; claim false from epsilon {setting(curve.x[curve.false][0])}"
    return text + "."


@plots.picture("run-time", "Median time of a fit, as a multiple of PCA without privacy")
def run_time(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw how much longer a fit takes than PCA without privacy, with quartiles.

    The ratio is drawn, and not the time, because each fit was timed right beside one
    without privacy: another program that slows both down leaves it as it is.
    """
    ratios = quartiles(results["run-time"], "mechanism", "ratio")
    del ratios[BASELINE]
    verdicts = Verdicts.of(results["privacy-wall"])
    room = (50 if narrow else 34) * len(ratios)
    figure, (box,) = lines.sheet(room + 72, narrow=narrow)
    shown = {name: verdicts.line(name, 0).label for name in ratios}
    names = plots.names_width(shown.values())
    left, width = (10, plots.NARROW - 24) if narrow else (names, WIDE - names - 90)
    axes = plots.pixels(figure, left, 34 + box[1], width, room)
    plots.row_panel(axes, len(ratios), "Time of a fit, in fits without privacy", [])
    # Logarithmic: samplers differ by orders of magnitude.
    seen = [x for quarters in ratios.values() for x in quarters]
    low, high = min(1.0, *seen) / 1.1, max(2.0, *seen) * 1.1
    axes.set(xscale="log", xlim=(low, high))
    marks = plots.decades(low, high, (1, 2, 3, 5))
    plots.tick(axes, "x", marks, lambda mark: f"{mark:g} ×", _RATIO_GAP)
    axes.set_xticks([], minor=True)
    said = []
    for i, (name, (low, middle, high)) in enumerate(ratios.items()):
        y = i + (0.2 if narrow else 0.0)
        axes.plot([1, 1], [y - 0.2, y + 0.2], color=INK, linewidth=2)
        axes.plot([low, high], [y, y], color=SERIES[0], linewidth=6, alpha=0.35)
        axes.plot(middle, y, "o", color=SERIES[0], markersize=9, clip_on=False)
        named = name + verdicts.said(name)
        said.append(f"{named}: {times(middle)}.")
        text = f"{named}: {spread((low, middle, high), times)}"
        svg.told(axes, [middle], [y], [text])
        style: dict[str, Any] = {"va": "center", "color": verdicts.heading(name)}
        if narrow:
            above = (0, i - 0.26)
            text = f"{shown[name]}  {times(middle)}"
            axes.annotate(text, above, xycoords=plots.ROW, **style)
        else:
            style |= {"ha": "right"}
            plots.beside(axes, shown[name], (0, i), (-14, 0), plots.ROW, **style)
            text = times(middle)
            plots.beside(axes, text, (1, i), (14, 0), plots.ROW, va="center")
    dashes = [verdicts.line(name, 0).dash for name in ratios]
    lines.key(figure, dashes, narrow=narrow, names=True)
    return figure, " ".join(said)
