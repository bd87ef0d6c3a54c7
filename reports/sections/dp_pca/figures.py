"""Errors of all mechanisms against one variable: medians, bottoms, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.plots import INK, REFUTED, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.dp_pca.findings import (
    CLAIMS,
    EXAMPLE,
    RATES,
    Curve,
    Panel,
    curves,
    panels,
)
from dpaudit.reports.sections.dp_pca.measures import (
    AG_PUBLISHED,
    MECHANISMS,
    OJA,
    PRIVATE_OJA,
)
from dpaudit.reports.tables import refuted_mechanisms, standing_mechanisms
from dpaudit.reports.words import count, listed, number, setting

__all__ = ["draw_example", "draw_panels", "draw_rates"]

_HIGH = 290  # CSS pixels of a panel
_LABELS = {"n": "rows n", "d": "length of rows d", "epsilon": "ε", "noise": "spread σ"}
# One colour each for those that stand and are measured everywhere; ink for the others.
_APART = (OJA, PRIVATE_OJA, AG_PUBLISHED)
_COLOURED = [name for name in MECHANISMS if name not in _APART]
_COLOURS = dict(zip(_COLOURED, SERIES, strict=True))


@plots.picture("dp-pca-rates", "Error of one component of Gaussian rows, by mechanism")
def draw_rates(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors on Gaussian rows against n, d and epsilon."""
    return draw_panels(results, panels(results, RATES), narrow)


@plots.picture("dp-pca-example", "Error in Example 4.1 by the spread of the rows")
def draw_example(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors in Example 4.1 against sigma, with default and tuned steps."""
    return draw_panels(results, panels(results, EXAMPLE), narrow)


@dataclass(frozen=True)
class _Style:
    refuted: Sequence[str]
    standing: Sequence[str]

    def colour(self, name: str) -> str:
        return REFUTED if name in self.refuted else _COLOURS.get(name, INK)

    def text(self, curve: Curve) -> str:
        lost = " ⊥" if not curve.quartiles else ""
        return curve.mechanism + plots.mark(curve.mechanism, self.refuted) + lost


def draw_panels(
    results: Results,
    shown: Sequence[Panel],
    narrow: bool,
    floors: Mapping[str, Mapping[float, float]] | None = None,
) -> tuple[Figure, str]:
    """Draw panels one below the other, on one scale of errors.

    Parameters
    ----------
    results : Results
    shown : sequence of Panel
    narrow : bool
    floors : mapping of str to mapping of float to float, optional
        By the heading of a panel: what no private mechanism can be below.
    """
    claims = results[CLAIMS]
    style = _Style(refuted_mechanisms(claims), standing_mechanisms(claims))
    figure = plots.canvas(_HIGH * len(shown), narrow=narrow)
    width = plots.NARROW if narrow else plots.WIDE
    seen = [
        value
        for panel in shown
        for curve in curves(panel)
        for quartiles in curve.quartiles.values()
        for value in quartiles
    ]
    seen += [v for floor in (floors or {}).values() for v in floor.values() if v > 0]
    low, high = (min(seen) / 1.6, 1.3) if seen else (0.1, 1.3)
    sentences = []
    for i, panel in enumerate(shown):
        box = (0.0, float(_HIGH * (len(shown) - 1 - i)), float(width), float(_HIGH))
        axes = plots.panel(
            figure,
            box,
            panel.heading,
            left=64,
            right=150 if narrow else 200,
            top=56,
            bottom=50,
        )
        floor = (floors or {}).get(panel.heading, {})
        sentences.append(_draw(axes, panel, style, (low, high), floor, narrow))
    return figure, " ".join(sentences)


def _draw(
    axes: Axes,
    panel: Panel,
    style: _Style,
    limits: tuple[float, float],
    floor: Mapping[float, float],
    narrow: bool,
) -> str:
    found = curves(panel)
    places = sorted({x for curve in found for x in (*curve.quartiles, *curve.bottoms)})
    axes.set(xscale="log", yscale="log", ylim=limits)
    axes.set_xlim(places[0] / 1.04, places[-1] * 1.04)
    words = count if panel.variable in ("n", "d") else setting
    plots.tick(axes, "x", places, words, 56.0)
    marks = plots.decades(*limits)
    plots.tick(axes, "y", marks, lambda v: np.format_float_positional(v, trim="-"))
    plots.finish(axes, _LABELS[panel.variable])
    ends, parts = [], []
    lost = 0
    for curve in found:
        colour = style.colour(curve.mechanism)
        x = sorted(curve.quartiles)
        if x:
            values = np.array([curve.quartiles[each] for each in x]).T
            dashes = plots.stroke(curve.mechanism, style.refuted, style.standing)
            plots.band(axes, x, values, colour, dashes)
            if len(x) == 1:
                axes.plot(x, values[1], "o", color=colour, markersize=5)
        for each in curve.bottoms:
            away = (0.0, 4.0 + 11.0 * lost)
            at = ("data", "axes fraction")
            axes.annotate(
                "⊥",
                (each, 1.0),
                away,
                xycoords=at,
                textcoords="offset points",
                ha="center",
                color=colour,
                size=11,
                annotation_clip=False,
            )
        lost += bool(curve.bottoms)
        end = curve.quartiles[x[-1]][1] if x else limits[1]
        ends.append((style.text(curve), colour, end))
        parts.append(_said(curve, style))
    if any(floor.values()):
        x = sorted(floor)
        axes.plot(x, [floor[each] for each in x], color=INK, linestyle=plots.DOTTED)
        ends.append(("floor", INK, floor[x[-1]]))
        parts.append(f"floor {number(floor[x[0]])} to {number(floor[x[-1]])}")
    plots.name_ends(axes, ends, 14.0, size=9.5 if narrow else 12.0)
    return f"{panel.heading}: {'; '.join(parts)}."


def _said(curve: Curve, style: _Style) -> str:
    name = curve.mechanism
    if name in style.refuted:
        name += " (claim refuted)"
    if not curve.quartiles:
        return f"{name} bottom throughout"
    x = sorted(curve.quartiles)
    text = " to ".join(number(curve.quartiles[each][1]) for each in (x[0], x[-1]))
    if curve.bottoms:
        text += f", bottom at {listed(setting(each) for each in sorted(curve.bottoms))}"
    return f"{name} {text}"
