"""Regret of online PCA against the length of the stream and against OPT."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports import plots
from dpaudit.reports.plots import DOTTED, INK, MUTED, REFUTED, SERIES
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.online import measures
from dpaudit.reports.tables import (
    Quartiles,
    grouped,
    quartiles,
    refuted_mechanisms,
    standing_mechanisms,
)
from dpaudit.reports.words import count, short, signed

__all__ = ["regret_by_length", "regret_by_optimum"]

_GAP, _ACROSS = 15.0, 46.0  # CSS pixels between lines of text, and between ticks
_AROUND = {"left": 52.0, "right": 124.0, "top": 44.0, "bottom": 52.0}


@dataclass(frozen=True)
class _Line:
    """A line, with what is written where it ends: one or two lines of text."""

    label: str
    colour: str
    values: dict[float, Quartiles]
    style: Any = "-"
    refuted: bool = False


@plots.picture("online-regret", "Regret of online PCA by the length of the stream")
def regret_by_length(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret of the published mechanisms, and of the corrected, against m."""
    table, audits = results["online-regret"], results["online-audits"]
    refuted, standing = refuted_mechanisms(audits), standing_mechanisms(audits)
    found = quartiles(table, ("mechanism", "rows"), "regret")
    nothing = quartiles(table, "rows", "nothing")
    third = table[table["mechanism"] == measures.ALGORITHM_3]
    bounds = quartiles(third, "rows", "proven")
    whole = plots.stroke(measures.LEADER, (), ())
    around = [
        _Line("random\nsubspace", MUTED, nothing, DOTTED),
        _Line("follow-the-\nleader", INK, _of(found, measures.LEADER), whole),
    ]
    panels = {
        "Regret, as published": [
            *_lines(found, measures.PUBLISHED_ONLINE, refuted, standing),
            _Line("proven bound", SERIES[2], bounds, DOTTED),
            *around,
        ],
        "Regret, corrected": [
            *_lines(found, measures.CORRECTED_ONLINE, refuted, standing),
            *around,
        ],
    }
    figure = plots.canvas(720 if narrow else 380, narrow=narrow)
    _panels(figure, panels, "rows m")
    names = (*measures.PUBLISHED_ONLINE, *measures.CORRECTED_ONLINE, measures.LEADER)
    return figure, " ".join(
        f"{name}: {count(values[max(values)][1])} after {count(max(values))} rows."
        for name in names
        for values in (_of(found, name),)
    )


@plots.picture(
    "regret-optimum", "Regret of Algorithms 3 and 4 on a hard stream, by OPT"
)
def regret_by_optimum(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the regret on rivals against OPT, and the proven bound."""
    table = results["regret-optimum"]
    found = quartiles(table, ("mechanism", "optimum"), "regret")
    lines, sentences = [], []
    for name, label, colour in (
        (measures.ALGORITHM_3, "Algorithm 3,\ntuned to OPT", SERIES[2]),
        (measures.ALGORITHM_4, "Algorithm 4", SERIES[1]),
    ):
        values = _of(found, name)
        rows = table[table["mechanism"] == name]
        law = fit_power_law(grouped(rows, "optimum", "regret"))
        if isfinite(law.exponent):
            label += f"\nexponent {signed(law.exponent)}"
        lines.append(_Line(label, colour, values))
        sentences.append(
            f"{name}: {count(values[max(values)][1])} at OPT = "
            f"{count(max(values))}, exponent {signed(law.exponent)}, interval "
            f"{law.interval}."
        )
    third = table[table["mechanism"] == measures.ALGORITHM_3]
    bounds = quartiles(third, "optimum", "proven")
    lines += [
        _Line("proven bound", SERIES[2], bounds, DOTTED),
        _Line("follow-the-\nleader", INK, _of(found, measures.LEADER)),
    ]
    figure = plots.canvas(380 if narrow else 400, narrow=narrow)
    _panels(figure, {"Regret among rivals": lines}, "OPT")
    return figure, " ".join(sentences)


def _of(found: dict[tuple[str, float], Quartiles], name: str) -> dict[float, Quartiles]:
    return {x: q for (other, x), q in found.items() if other == name}


def _lines(
    found: dict[tuple[str, float], Quartiles],
    names: Sequence[str],
    refuted: Collection[str],
    standing: Collection[str],
) -> list[_Line]:
    return [
        _Line(
            _short(name) + plots.mark(name, refuted),
            colour,
            _of(found, name),
            plots.stroke(name, refuted, standing),
            name in refuted,
        )
        for name, colour in zip(names, SERIES, strict=False)
    ]


def _short(name: str) -> str:
    """Return a name in two lines where it is long."""
    name = short(name)
    for end in ("doubling", "leader"):
        if name.endswith(f"-{end}"):
            return f"{name.removesuffix(end)}\n{end}"
    return name


def _panels(figure: Figure, panels: dict[str, list[_Line]], label: str) -> None:
    """Draw lines under their headings, all on the same scales."""
    every = [line for lines in panels.values() for line in lines]
    places = plots.boxes(figure, len(panels))
    for box, (heading, lines) in zip(places, panels.items(), strict=True):
        axes = plots.panel(figure, box, heading, **_AROUND)
        _scales(axes, every, label)
        ends = []
        for line in lines:
            x = sorted(line.values)
            curve = np.maximum(np.array([line.values[i] for i in x]).T, 0.5)
            plots.band(axes, x, curve, line.colour, line.style)
            ends.append(float(axes.transData.transform((x[-1], curve[1, -1]))[1]))
        _name(axes, lines, ends)


def _scales(axes: Axes, lines: Sequence[_Line], label: str) -> None:
    x = sorted({each for line in lines for each in line.values})
    seen = [v for line in lines for q in line.values.values() for v in q]
    low, high = max(min(seen), 1.0) / 1.5, max(seen) * 1.5
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(low, high))
    plots.tick(axes, "y", plots.decades(low, high), count)
    plots.tick(axes, "x", x, count, _ACROSS)
    plots.finish(axes, label)


def _name(axes: Axes, lines: Sequence[_Line], ends: Sequence[float]) -> None:
    """Write labels where lines end, each of their lines of text apart from others."""
    edge = axes.get_window_extent().x1 + 8
    texts, wanted, colours = [], [], []
    for line, end in sorted(zip(lines, ends, strict=True), key=lambda pair: pair[1]):
        # From the bottom up, as places grow.
        parts = line.label.split("\n")[::-1]
        texts += parts
        wanted += [end + _GAP * (i - (len(parts) - 1) / 2) for i in range(len(parts))]
        colours += [REFUTED if line.refuted else line.colour] * len(parts)
    # `apart` keeps the order of what is wanted; a label must not take in another.
    for i in range(1, len(wanted)):
        wanted[i] = max(wanted[i], wanted[i - 1] + 1e-3)
    places = plots.apart(wanted, _GAP)
    for text, y, colour in zip(texts, places, colours, strict=True):
        plots.write(axes, text, (edge, y), va="center", color=colour, size=12)
