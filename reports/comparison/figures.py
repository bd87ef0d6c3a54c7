"""The figures of a comparison: each measure against epsilon, a line for a mechanism."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.comparison.page import SHOWN, MechanismComparison, ShownMeasure
from dpaudit.reports.sections.curves import Curve
from dpaudit.reports.words import listed, setting

_LABEL_GAP, _KEY_STEP, _TICK_GAP = 18.0, 24, 26.0  # CSS pixels
_LONGEST = 34  # characters of a name in a figure


def _drawing(
    found: MechanismComparison, narrow: bool, measure: str
) -> tuple[Figure, str]:
    """Draw the medians of a measure against epsilon, with quartile bands.

    A claim counts as refuted if it was at any epsilon, see
    `dpaudit.reports.lines.Verdicts`. On a phone the names stand below instead of at the
    ends of the lines.
    """
    shown, curves = SHOWN[measure], _curves(found, measure)
    foot = lines.FOOT[narrow]
    below = _KEY_STEP * len(curves) if narrow else 0
    width = plots.NARROW if narrow else plots.WIDE
    height = 330 + below if narrow else max(430, int(_LABEL_GAP * len(curves)) + 120)
    names = [curve.line.label for curve in curves]
    right = 16.0 if narrow else 32 + plots.names_width(names)
    around: Any = {"left": 62, "right": right, "top": 42, "bottom": 52 + below}
    figure = plots.canvas(height + foot, narrow=narrow)
    axes = plots.panel(figure, (0, foot, width, height), **around)
    _scales(axes, shown, curves)
    ends = [_drawn(axes, shown, curve) for curve in curves]
    heading = shown.heading if not narrow else _folded(shown.heading)
    plots.write(axes, heading, (8, height + foot - 26), weight="bold", va="center")
    if narrow:
        named = [line for line, _ in sorted(ends, key=lambda end: -end[1][1])]
        lines.list_below(axes, named, foot + 14, _KEY_STEP)
    else:
        lines.name_ends(axes, ends, _LABEL_GAP, size=12.5)
    lines.key(figure, (curve.line.dash for curve in curves), narrow=narrow)
    return figure, " ".join(_sentence(shown, curve) for curve in curves)


def comparison_figure(
    found: MechanismComparison, measure: str, *, narrow: bool = False
) -> str:
    """Return the figure of a measure as SVG."""
    name, title = _name(measure), f"{SHOWN[measure].heading}, by epsilon"
    return plots.picture(name, title, measure=measure)(_drawing)(found, narrow)


def comparison_figures(found: MechanismComparison) -> dict[str, list[str]]:
    """Return the figures of all measures that have anything to draw, by name."""
    return {
        _name(measure): [
            comparison_figure(found, measure, narrow=narrow) for narrow in (False, True)
        ]
        for measure in SHOWN
        if _curves(found, measure)
    }


def _name(measure: str) -> str:
    return f"compare-{measure.replace('_', '-')}"


def _curves(found: MechanismComparison, measure: str) -> list[Curve]:
    verdicts = lines.Verdicts.of(pd.DataFrame.from_records(found.audits))
    known = found.table[found.table["measure"] == measure].dropna(subset="median")
    curves = []
    for place, name in enumerate(found.names):
        own = known[known["mechanism"] == name].sort_values("epsilon", kind="stable")
        if len(own):
            quartiles = own[["low", "median", "high"]].to_numpy(float).T
            line = verdicts.line(
                name,
                place,
                name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}",
            )
            said, epsilon = name + verdicts.said(name), own["epsilon"].to_numpy(float)
            curves.append(Curve(said, line, epsilon, quartiles))
    return curves


def _scales(axes: Axes, shown: ShownMeasure, curves: Sequence[Curve]) -> None:
    values = shown.height(np.concatenate([c.quartiles.ravel() for c in curves]))
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.1
    axes.set_ylim(low - margin, high + margin)
    texts = {t: f"{shown.scale * t:,g}{shown.unit}" for t in shown.ticks}
    ticks = {float(shown.height(t)): text for t, text in texts.items()}
    ticks = {t: s for t, s in ticks.items() if low - margin <= t <= high + margin}
    if len(ticks) < 2:
        medians = [float(m) for c in curves for m in c.quartiles[1]]
        ends = min(medians), max(medians)
        ticks = {float(shown.height(m)): shown.text(m) for m in ends}
    plots.tick(axes, "y", list(ticks), ticks.__getitem__, _TICK_GAP)
    epsilons = sorted({float(e) for curve in curves for e in curve.x})
    axes.set_xscale("log")
    span = (epsilons[-1] / epsilons[0]) ** 0.03 * (1.5 if len(epsilons) == 1 else 1.0)
    axes.set_xlim(epsilons[0] / span, epsilons[-1] * span)
    plots.tick(axes, "x", epsilons, setting, 1.4 * _TICK_GAP)
    plots.finish(axes, "claimed ε", pad=7)


def _drawn(
    axes: Axes, shown: ShownMeasure, curve: Curve
) -> tuple[lines.Line, tuple[float, float]]:
    """Draw a curve; return its line, and where it ends."""
    if len(curve.x) == 1:
        low, _, high = shown.height(curve.quartiles)
        axes.vlines(curve.x, low, high, color=curve.line.colour, alpha=0.4, linewidth=6)
    places = [f"ε = {setting(float(epsilon))}" for epsilon in curve.x]
    return curve.draw(axes, places, shown.text, shown.height)


def _folded(text: str) -> str:
    """Break a heading in two where a phone is too narrow for it."""
    if len(text) <= 44:
        return text
    cut = text.rfind(" ", 0, 44)
    return f"{text[:cut]}\n{text[cut + 1 :]}"


def _sentence(shown: ShownMeasure, curve: Curve) -> str:
    points = [
        f"{shown.text(float(value))} at epsilon {setting(float(epsilon))}"
        for epsilon, value in zip(curve.x, curve.quartiles[1], strict=True)
    ]
    return f"{curve.said}: {listed(points)}."
