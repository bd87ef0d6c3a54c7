"""Errors of all mechanisms against one variable: medians, bottoms, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.plots import INK
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.dp_pca import findings, measures
from dpaudit.reports.words import count, listed, number, setting, spread

__all__ = ["draw_panels"]

_HIGH = 290  # CSS pixels of a panel
_LISTED = 22.0  # and of a name below, on phones
_LABELS = {"n": "rows n", "d": "length of rows d", "epsilon": "ε", "noise": "spread σ"}
_LETTERS = {"n": "n", "d": "d", "epsilon": "ε", "noise": "σ"}
# Those without a claim that stands, and measured everywhere, come last: the others have
# a colour each.
_APART = (measures.PRIVATE_OJA, measures.OJA, measures.AG_PUBLISHED)
_PLACES = {
    name: place
    for place, name in enumerate(
        (*(name for name in measures.MECHANISMS if name not in _APART), *_APART)
    )
}
_FLOOR = Line("floor", INK, lines.DOTTED)


@plots.picture("dp-pca-rates", "Error of one component of Gaussian rows, by mechanism")
def draw_rates(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors on Gaussian rows against n, d and epsilon."""
    return draw_panels(results, findings.panels(results, findings.RATES), narrow)


@plots.picture("dp-pca-example", "Error in Example 4.1 by the spread of the rows")
def draw_example(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors in Example 4.1 against sigma, with default and tuned steps."""
    return draw_panels(results, findings.panels(results, findings.EXAMPLE), narrow)


def draw_panels(
    results: Results,
    shown: Sequence[findings.Panel],
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
    verdicts = Verdicts.of(results[findings.CLAIMS])
    floors = floors or {}
    there = [curve.mechanism for panel in shown for curve in panel.curves]
    names = sorted(set(there), key=_PLACES.__getitem__)
    drawn = [_line(name, verdicts) for name in names]
    foot = lines.FOOT[narrow]
    dotted = [_FLOOR] * any(any(floor.values()) for floor in floors.values())
    below = _LISTED * len(drawn + dotted) + 14 if narrow else 0.0
    height = _HIGH * len(shown) + below + foot
    figure = plots.canvas(height, narrow=narrow)
    width = plots.NARROW if narrow else plots.WIDE
    seen = [
        value
        for panel in shown
        for curve in panel.curves
        for quartiles in curve.quartiles.values()
        for value in quartiles
    ]
    seen += [v for floor in floors.values() for v in floor.values() if v > 0]
    low, high = (min(seen) / 1.6, 1.3) if seen else (0.1, 1.3)
    sentences = []
    for i, panel in enumerate(shown):
        bottom = height - _HIGH * (i + 1)
        axes = plots.panel(
            figure,
            (0.0, bottom, float(width), float(_HIGH)),
            panel.heading,
            left=64,
            right=26 if narrow else 218,
            top=64,
            bottom=50,
        )
        floor = floors.get(panel.heading, {})
        sentences.append(_draw(axes, panel, verdicts, (low, high), floor, narrow))
    if narrow:
        lines.list_below(axes, drawn + dotted, foot + 12, _LISTED)
    lines.key(figure, (line.dash for line in drawn), narrow=narrow)
    return figure, " ".join(sentences)


def _line(name: str, verdicts: Verdicts, lost: str = "") -> Line:
    line = verdicts.line(name, _PLACES[name])
    return replace(line, label=line.label + lost)


def _draw(
    axes: Axes,
    panel: findings.Panel,
    verdicts: Verdicts,
    limits: tuple[float, float],
    floor: Mapping[float, float],
    narrow: bool,
) -> str:
    found = panel.curves
    places = sorted({x for curve in found for x in (*curve.quartiles, *curve.bottoms)})
    axes.set(xscale="log", yscale="log", ylim=limits)
    axes.set_xlim(places[0] / 1.04, places[-1] * 1.04)
    words = count if panel.variable in ("n", "d") else setting
    plots.tick(axes, "x", places, words, 56.0)
    marks = plots.decades(*limits)
    plots.tick(axes, "y", marks, lambda v: np.format_float_positional(v, trim="-"))
    plots.finish(axes, _LABELS[panel.variable])
    letter = _LETTERS[panel.variable]
    around = "mean, a standard error to either side" if panel.means else "middle half"
    ends, parts = [], []
    lost = 0
    for curve in found:
        lost_last = places[-1] in curve.bottoms
        line = _line(curve.mechanism, verdicts, " ⊥" if lost_last else "")
        name = curve.mechanism + verdicts.said(curve.mechanism)
        x = sorted(curve.quartiles)
        if x:
            values = np.array([curve.quartiles[each] for each in x]).T
            texts = [
                f"{name}, {letter} = {words(each)}: "
                f"{spread(curve.quartiles[each], number, around)}"
                for each in x
            ]
            lines.band(axes, x, values, line, texts)
        for each in curve.bottoms:
            _bottom(axes, each, lost, line)
            up = axes.transData.inverted().transform((0, _height(axes, lost)))[1]
            said = f"{name}, {letter} = {words(each)}: bottom (⊥)"
            plots.told(axes, [each], [up], [said])
        lost += bool(curve.bottoms)
        end = (places[-1], limits[1])
        if not lost_last:
            end = (x[-1], curve.quartiles[x[-1]][1])
        ends.append((line, end))
        parts.append(_said(curve, name))
    if any(floor.values()):
        x = sorted(floor)
        axes.plot(x, [floor[each] for each in x], color=INK, linestyle=lines.DOTTED)
        texts = [f"floor, {letter} = {words(n)}: {number(floor[n])}" for n in x]
        plots.told(axes, x, [floor[each] for each in x], texts)
        ends.append((_FLOOR, (x[-1], floor[x[-1]])))
        parts.append(f"floor {number(floor[x[0]])} to {number(floor[x[-1]])}")
    if not narrow:
        lines.name_ends(axes, ends, 15.0)
    return f"{panel.heading}: {'; '.join(parts)}."


def _height(axes: Axes, row: int) -> float:
    """Return where the rows of bottoms stand above axes, in CSS pixels."""
    return float(axes.get_window_extent().y1) + 8.0 + 11.0 * row


def _bottom(axes: Axes, x: float, row: int, line: Line) -> None:
    """Write that a release is bottom, and whose it is."""
    across, up = float(axes.transData.transform((x, 1.0))[0]), _height(axes, row)
    style = {"ha": "center", "va": "center", "color": line.colour, "size": 11}
    plots.write(axes, "⊥", (across, up), **style)
    lines.marker_at(axes, (across - 11, up), line)


def _said(curve: findings.Curve, name: str) -> str:
    if not curve.quartiles:
        return f"{name} bottom throughout"
    x = sorted(curve.quartiles)
    text = " to ".join(number(curve.quartiles[each][1]) for each in (x[0], x[-1]))
    if curve.bottoms:
        text += f", bottom at {listed(setting(each) for each in sorted(curve.bottoms))}"
    return f"{name} {text}"
