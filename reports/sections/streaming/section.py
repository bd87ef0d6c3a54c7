"""The section on streaming PCA: what is measured, and how it is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import lines, plots, svg
from dpaudit.reports.lines import DOTTED, Line, Verdicts
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.streaming import findings, measures
from dpaudit.reports.sections.streaming.findings import Rate
from dpaudit.reports.svg import INK
from dpaudit.reports.tables import Quartiles, quarters
from dpaudit.reports.words import decimal, number, signed, spread

# Where privacy costs nothing, and what is left is the sampling of the rows.
_WITHOUT_NOISE = 1000.0

_LENGTH = "length of rows d"
_ACROSS, _UP = 52.0, 24.0  # CSS pixels between ticks
_AROUND: dict[str, Any] = {"left": 56.0, "right": 16.0, "top": 48.0, "bottom": 52.0}


@dataclass(frozen=True)
class _Rate:
    """A rate as it is drawn."""

    rate: Rate
    line: Line
    point: int  # the label is beside this point, ...
    # above, right: ... on this side, ...
    above: bool
    right: bool
    lift: float = 12.0  # ... so far from it, in CSS pixels


@plots.picture(
    "streaming-rates", "Error of dp-pca by the number of rows, and by their length"
)
def error_by_size(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of sampling and of noise against n, and of noise against d."""
    rates, verdicts = findings.rates(results), Verdicts.of(results["streaming-audits"])
    noise = verdicts.line(measures.DP_PCA, 0, "noise, ε = 1")
    sampling = verdicts.line(measures.DP_PCA, 1, f"sampling, ε = {_WITHOUT_NOISE:,.0f}")
    by_rows = [
        _Rate(rates["noise"], noise, 1, True, True),
        _Rate(rates["sampling"], sampling, -1, False, False),
    ]
    by_length = [_Rate(rates["dimension"], noise, -2, True, False)]
    heading = "Error (sin of the angle) against n"
    panels = {(heading, "rows n"): by_rows, ("Error against d", _LENGTH): by_length}
    return _figure(panels, 640 if narrow else 370, narrow)


@plots.picture(
    "signal-in-noise", "Error of dp-pca and minibatch-oja by the spread of the rows"
)
def error_by_spread(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the errors of both mechanisms in Example 4.1 against sigma."""
    rates, verdicts = findings.rates(results), Verdicts.of(results["streaming-audits"])
    dp_pca = verdicts.line(measures.DP_PCA, 0)
    oja = verdicts.line(measures.MINIBATCH_OJA, 2)
    every = [
        _Rate(rates["signal"], dp_pca, 1, False, True),
        _Rate(rates["floor"], oja, 0, True, True, lift=40.0),
    ]
    panels = {("Error (sin of the angle) in Example 4.1", "spread σ"): every}
    return _figure(panels, 380 if narrow else 420, narrow)


def _figure(
    panels: Mapping[tuple[str, str], Sequence[_Rate]], height: float, narrow: bool
) -> tuple[Figure, str]:
    """Draw rates under their headings, over their labels, on one vertical scale."""
    every = [each for rates in panels.values() for each in rates]
    figure, places = lines.sheet(height, len(panels), narrow=narrow)
    for box, ((heading, label), rates) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _panel(axes, rates, every, label)
    lines.key(figure, (each.line.dash for each in every), narrow=narrow)
    return figure, " ".join(map(_sentence, every))


def _panel(
    axes: Axes, drawn: Sequence[_Rate], scale: Sequence[_Rate], label: str
) -> None:
    """Draw rates, on the vertical scale of others."""
    x = sorted({x for each in drawn for x in each.rate.errors})
    axes.set(xscale="log", yscale="log", xlim=(x[0] / 1.12, x[-1] * 1.12))
    seen = [v for each in scale for q in _quartiles(each.rate).values() for v in q]
    if seen:
        axes.set_ylim(min(seen) / 2.2, max(seen) * 1.5)
    marks = plots.decades(*axes.get_ylim(), (1, 2, 5))
    plots.tick(axes, "y", marks, decimal, _UP)
    plots.tick(axes, "x", x, decimal, _ACROSS)
    plots.finish(axes, label, pad=7)
    for each in drawn:
        _draw(axes, each, label[-1])


def _draw(axes: Axes, each: _Rate, letter: str) -> None:
    """Draw medians, middle halves, the fitted law, and what is what."""
    found, law, line = _quartiles(each.rate), each.rate.fit, each.line
    colour = line.colour
    for x, (low, middle, high) in found.items():
        axes.plot([x, x], [low, high], color=colour, linewidth=6, alpha=0.35)
        axes.plot(x, middle, clip_on=False, **{**line.style, "markersize": 7})
    texts = [
        f"{_name(each)}, {letter} = {decimal(x)}: {spread(three, number)}"
        for x, three in found.items()
    ]
    svg.told(axes, list(found), [three[1] for three in found.values()], texts)
    if any(x > each.rate.limit for x in found):
        middles = [middle for _, middle, _ in found.values()]
        axes.plot(list(found), middles, color=colour, linewidth=1.4, linestyle=DOTTED)
    fitted = [x for x in found if x <= each.rate.limit]
    if not fitted or not isfinite(law.exponent):
        return
    ends = [min(fitted), max(fitted)]
    y = [law.at(x) for x in ends]
    axes.plot(ends, y, color=colour, linewidth=1.8, linestyle=line.dash)
    x = sorted(found)[each.point]
    exponent = f"exponent {signed(law.exponent)} ± {(law.high - law.low) / 2:.2f}"
    for text, row, inked, size in (
        (line.label, int(each.above), colour, 12.5),
        (exponent, int(not each.above), INK, 11.5),
    ):
        up = (each.lift + 16 * row) * (1 if each.above else -1)
        away, side = (4 if each.right else -4, up), "left" if each.right else "right"
        style = {"ha": side, "va": "bottom" if each.above else "top"}
        place = (x, found[x][1])
        plots.beside(axes, text, place, away, color=inked, size=size, **style)


def _quartiles(rate: Rate) -> dict[float, Quartiles]:
    """Return the quartiles of the errors at every point that has some."""
    usable = {x: v[np.isfinite(v) & (v > 0)] for x, v in rate.errors.items()}
    return {x: quarters(values) for x, values in usable.items() if len(values)}


def _name(each: _Rate) -> str:
    """Return whose rate it is, and of what."""
    name, label = each.rate.mechanism, each.line.label
    return label if label.startswith(name) else f"{name}, {label}"


def _sentence(each: _Rate) -> str:
    found, law = _quartiles(each.rate), each.rate.fit
    text = f"{_name(each)}: "
    if not found:
        return f"{text}bottom throughout."
    first, last = min(found), max(found)
    return (
        f"{text}{number(found[first][1])} at {decimal(first)}, "
        f"{number(found[last][1])} at {decimal(last)}; exponent "
        f"{signed(law.exponent)}, interval {law.interval}."
    )


def context(results: Results) -> dict[str, Any]:
    found = findings.rates(results)
    return {
        "batches": measures.BATCHES,
        "rows": findings.rate_rows(found),
        "size_notes": findings.size_notes(found),
        "miss_notes": findings.miss_notes(found),
        "signal_notes": findings.signal_notes(found),
    }


NOTES = {findings.TABLES: findings.exponent_lines}
