"""Regret of online PCA against the length of the stream and against OPT."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.reports.plots import (
    DOTTED,
    INK,
    MUTED,
    NARROW,
    REFUTED,
    SERIES,
    WIDE,
    Box,
    apart,
    boxes,
    canvas,
    finish,
    panel,
    stroke,
    thinned,
    to_svg,
    write,
)
from dpaudit.reports.power_law import fit_power_law
from dpaudit.reports.sections.online.measures import (
    ALGORITHM_3,
    ALGORITHM_4,
    CORRECTED_ONLINE,
    LEADER,
    PUBLISHED_ONLINE,
)
from dpaudit.reports.tables import Quartiles, quartiles
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


def regret_by_length(
    table: pd.DataFrame,
    *,
    refuted: Collection[str] = (),
    standing: Collection[str] = (),
    narrow: bool = False,
) -> str:
    """Draw the regret of the published mechanisms, and of the corrected, against m.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``online-regret``.
    refuted, standing : collection of str
        Mechanisms that audits have refuted, or not: see `dpaudit.reports.plots.stroke`.
    narrow : bool
        For a phone: one panel below the other.
    """
    found = quartiles(table, ("mechanism", "rows"), "regret")
    nothing = quartiles(table, ("rows",), "nothing")
    bounds = quartiles(table[table["mechanism"] == ALGORITHM_3], ("rows",), "proven")
    around = [
        _Line("random\nsubspace", MUTED, nothing, DOTTED),
        _Line("follow-the-\nleader", INK, _of(found, LEADER), stroke(LEADER, (), ())),
    ]
    panels = [
        (
            "Regret, as published",
            [
                *_lines(found, PUBLISHED_ONLINE, refuted, standing),
                _Line("proven bound", SERIES[2], bounds, DOTTED),
                *around,
            ],
        ),
        (
            "Regret, corrected",
            [*_lines(found, CORRECTED_ONLINE, refuted, standing), *around],
        ),
    ]
    width, height = (NARROW, 720) if narrow else (WIDE, 380)
    with canvas(width, height) as figure:
        scale = [line for _, each in panels for line in each]
        places = boxes(2, width, height, narrow=narrow)
        for box, (heading, lines) in zip(places, panels, strict=True):
            _panel(figure, box, heading, "rows m", lines, scale)
        return to_svg(
            figure,
            "online-regret",
            narrow=narrow,
            title="Regret of online PCA by the length of the stream",
            description=" ".join(
                f"{name}: {count(values[max(values)][1])} after "
                f"{count(max(values))} rows."
                for name in (*PUBLISHED_ONLINE, *CORRECTED_ONLINE, LEADER)
                for values in (_of(found, name),)
            ),
        )


def regret_by_optimum(table: pd.DataFrame, *, narrow: bool = False) -> str:
    """Draw the regret on rivals against OPT, and the proven bound.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``regret-optimum``.
    narrow : bool
        For a phone.
    """
    found = quartiles(table, ("mechanism", "optimum"), "regret")
    names = {ALGORITHM_3: "Algorithm 3,\ntuned to OPT", ALGORITHM_4: "Algorithm 4"}
    first = table[table["mechanism"] == ALGORITHM_3]
    lines, sentences = [], []
    for (name, label), colour in zip(names.items(), SERIES[2:0:-1], strict=True):
        values = _of(found, name)
        rows = table[table["mechanism"] == name]
        law = fit_power_law(
            {float(x): group["regret"] for x, group in rows.groupby("optimum")}
        )
        lines.append(
            _Line(
                f"{label}\nexponent {signed(law.exponent)}"
                if isfinite(law.exponent)
                else label,
                colour,
                values,
            )
        )
        sentences.append(
            f"{name}: {count(values[max(values)][1])} at OPT = "
            f"{count(max(values))}, exponent {signed(law.exponent)}, interval "
            f"{signed(law.low)} to {signed(law.high)}."
        )
    lines += [
        _Line(
            "proven bound",
            SERIES[2],
            quartiles(first, ("optimum",), "proven"),
            DOTTED,
        ),
        _Line("follow-the-\nleader", INK, _of(found, LEADER)),
    ]
    width, height = (NARROW, 380) if narrow else (WIDE, 400)
    with canvas(width, height) as figure:
        box = (0.0, 0.0, float(width), float(height))
        _panel(figure, box, "Regret among rivals", "OPT", lines, lines)
        return to_svg(
            figure,
            "regret-optimum",
            narrow=narrow,
            title="Regret of Algorithms 3 and 4 on a hard stream, by OPT",
            description=" ".join(sentences),
        )


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
            _short(name) + (" ✗" if name in refuted else ""),
            colour,
            _of(found, name),
            stroke(name, refuted, standing),
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


def _panel(
    figure: Figure,
    box: Box,
    heading: str,
    label: str,
    lines: Sequence[_Line],
    scale: Sequence[_Line],
) -> None:
    """Draw lines in a box in CSS pixels, on the scales of others."""
    axes = panel(figure, box, heading, **_AROUND)
    _scales(axes, scale, label)
    ends = []
    for line in lines:
        x = sorted(line.values)
        low, middle, high = np.maximum(np.array([line.values[i] for i in x]).T, 0.5)
        axes.fill_between(x, low, high, color=line.colour, alpha=0.2, linewidth=0)
        axes.plot(x, middle, color=line.colour, linestyle=line.style, linewidth=2)
        ends.append(float(axes.transData.transform((x[-1], middle[-1]))[1]))
    _name(axes, lines, ends)


def _scales(axes: Axes, lines: Sequence[_Line], label: str) -> None:
    x = sorted({each for line in lines for each in line.values})
    seen = [v for line in lines for q in line.values.values() for v in q]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(x[0], x[-1])
    low, high = max(min(seen), 1.0), max(seen)
    axes.set_ylim(low / 1.5, high * 1.5)
    decades = range(floor(log10(low / 1.5)), ceil(log10(high * 1.5)) + 1)
    marks = [10.0**e for e in decades if low / 1.5 <= 10.0**e <= high * 1.5]
    axes.set_yticks(marks, [count(mark) for mark in marks])
    kept = thinned([axes.transData.transform((m, low))[0] for m in x], _ACROSS)
    axes.set_xticks([x[i] for i in kept], [count(x[i]) for i in kept])
    finish(axes, label)


def _name(axes: Axes, lines: Sequence[_Line], ends: Sequence[float]) -> None:
    """Write labels where lines end, each of their lines of text apart from others."""
    frame = axes.get_window_extent()
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
    places = apart(wanted, _GAP)
    for text, y, colour in zip(texts, places, colours, strict=True):
        place = (frame.x1 + 8, y)
        write(axes, text, place, va="center", color=colour, size=12)
