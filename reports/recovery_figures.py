"""The figures of robust PCA: errors step by step, where it works, and maps.

As for `dpaudit.reports.figures`: tables in, SVG for light and dark out.
"""

from collections.abc import Collection, Sequence
from math import log10

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.reports.formats import count, number
from dpaudit.reports.labels import apart
from dpaudit.reports.recovery import CORRECTED, PUBLISHED
from dpaudit.reports.svg import (
    INK,
    MUTED,
    NARROW,
    REFUTED,
    RULE,
    SERIES,
    WIDE,
    canvas,
    stroke,
    to_svg,
)
from dpaudit.reports.tables import quartiles

__all__ = ["error_by_step", "phases"]

_FLOOR = 1e-16  # what is drawn ends here, an angle of 1e-8
_GAP = 17.0  # CSS pixels between labels
_CELL = 34.0


def error_by_step(
    table: pd.DataFrame,
    *,
    refuted: Collection[str] = (),
    standing: Collection[str] = (),
    narrow: bool = False,
) -> str:
    """Draw the errors of the published mechanisms, and of the corrected, by step.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``robust-recovery``.
    refuted, standing : collection of str
        Mechanisms that audits have refuted, or not: see `dpaudit.reports.svg.stroke`.
    narrow : bool
        For a phone: one panel below the other.
    """
    found = quartiles(table, ("mechanism", "iteration"), "error")
    panels = [("As published", PUBLISHED), ("Corrected", CORRECTED)]
    width, height = (NARROW, 680) if narrow else (WIDE, 380)
    with canvas(width, height) as figure:
        for place, (heading, names) in enumerate(panels):
            box = (
                (0.0, 340.0 * (1 - place), float(width), 340.0)
                if narrow
                else (width / 2 * place, 0.0, width / 2, float(height))
            )
            axes = _axes(figure, box, heading, left=52, right=112, top=44, bottom=52)
            _error_scales(axes, int(table["iteration"].max()))
            ends = []
            for name, colour in zip(names, SERIES, strict=False):
                steps = [k for other, k in found if other == name]
                curve = np.array([found[name, k] for k in steps]).T
                curve = np.maximum(curve, _FLOOR / 100)
                axes.fill_between(
                    steps, curve[0], curve[2], color=colour, alpha=0.2, linewidth=0
                )
                dashes = stroke(name, refuted, standing)
                axes.plot(steps, curve[1], color=colour, linestyle=dashes, linewidth=2)
                ends.append((name, colour, float(curve[1, -1])))
            _name_ends(axes, ends, refuted)
        return to_svg(
            figure,
            f"figure-robust-recovery-{'narrow' if narrow else 'wide'}",
            title="Error of robust PCA by step, as published and corrected",
            description=" ".join(
                f"{name}: {number(found[name, k][1])} after {count(k)} steps."
                for name in (*PUBLISHED, *CORRECTED)
                for k in (max(k for other, k in found if other == name),)
            ),
        )


def phases(
    table: pd.DataFrame, *, refuted: Collection[str] = (), narrow: bool = False
) -> str:
    """Draw the median error of each mechanism by the rows and their length.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``robust-phases``.
    refuted : collection of str
        Mechanisms that audits have refuted.
    narrow : bool
        See `error_by_step`.
    """
    found = quartiles(table, ("mechanism", "rows", "dimension"), "error")
    names = list(dict.fromkeys(name for name, *_ in found))
    rows = sorted({n for _, n, _ in found})
    lengths = sorted({d for *_, d in found})
    high = 74 + _CELL * len(lengths) + 30
    across = 1 if narrow else len(names)
    down = len(names) if narrow else 1
    width, height = (NARROW if narrow else WIDE), round(high * down)
    with canvas(width, height) as figure:
        for place, name in enumerate(names):
            box = (
                width / across * (place if across > 1 else 0),
                high * (down - 1 - (place if down > 1 else 0)),
                width / across,
                high,
            )
            mark = " ✗" if name in refuted else ""
            axes = _axes(
                figure, box, f"{name}{mark}", left=52, right=24, top=44, bottom=56
            )
            for i, n in enumerate(rows):
                for j, d in enumerate(lengths):
                    _tile(axes, i, j, found[name, n, d][1])
            axes.set_xlim(0, len(rows))
            axes.set_ylim(0, len(lengths))
            middles = [i + 0.5 for i in range(max(len(rows), len(lengths)))]
            axes.set_xticks(middles[: len(rows)], [count(n) for n in rows])
            axes.set_yticks(middles[: len(lengths)], [count(d) for d in lengths])
            axes.tick_params(length=0, pad=6)
            axes.set_xlabel("rows N", labelpad=6)
            axes.set_ylabel("length D", labelpad=6)
        return to_svg(
            figure,
            f"figure-robust-phases-{'narrow' if narrow else 'wide'}",
            title="Median log10 error by the number of rows and their length",
            description=" ".join(
                f"{name}, N = {count(n)}, D = {count(d)}: {_tenfold(q[1])}."
                for (name, n, d), q in found.items()
            ),
        )


def _axes(
    figure: Figure,
    box: tuple[float, float, float, float],
    heading: str,
    *,
    left: float,
    right: float,
    top: float,
    bottom: float,
) -> Axes:
    """Return axes in a box in CSS pixels, with a heading above them."""
    x, y, width, height = box
    across, up = figure.get_size_inches() * 72
    axes = figure.add_axes(
        (
            (x + left) / across,
            (y + bottom) / up,
            (width - left - right) / across,
            (height - top - bottom) / up,
        )
    )
    axes.annotate(
        heading, (x + 8, y + height - 22), xycoords="figure pixels", weight="bold"
    )
    return axes


def _error_scales(axes: Axes, steps: int) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, steps)
    axes.set_ylim(_FLOOR, 2)
    marks = [10.0**e for e in range(-16, 1, 4)]
    labels = ["10⁻¹⁶", "10⁻¹²", "10⁻⁸", "10⁻⁴", "1"]
    axes.set_yticks(marks, labels)
    axes.set_yticks([], minor=True)
    decades = [10**e for e in range(int(log10(steps)) + 1)]
    axes.set_xticks(decades, [count(k) for k in decades])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("step", labelpad=6)
    axes.tick_params(which="both", length=0, pad=6)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _name_ends(
    axes: Axes, ends: Sequence[tuple[str, str, float]], refuted: Collection[str]
) -> None:
    """Write the names of lines where they end, or leave at the bottom."""
    last = axes.get_xlim()[1]
    wanted = [
        float(axes.transData.transform((last, max(error, _FLOOR)))[1])
        for *_, error in ends
    ]
    for (name, colour, _), y in zip(ends, apart(wanted, _GAP), strict=True):
        mark = " ✗" if name in refuted else ""
        axes.annotate(
            f"{name.removesuffix('-published')}{mark}",
            (axes.get_window_extent().x1 + 8, y),
            xycoords="figure pixels",
            va="center",
            color=REFUTED if mark else colour,
            size=12.5,
        )


def _tile(axes: Axes, i: int, j: int, error: float) -> None:
    """Draw one cell, the fuller the smaller the error."""
    depth = float(np.clip(-log10(max(error, _FLOOR)) / 10, 0, 1))
    axes.add_patch(
        Rectangle(
            (i, j),
            1,
            1,
            facecolor=SERIES[0],
            alpha=0.06 + 0.5 * depth,
            edgecolor=RULE,
            linewidth=0,
        )
    )
    axes.annotate(
        _tenfold(error),
        (i + 0.5, j + 0.5),
        ha="center",
        va="center",
        size=11.5,
        color=INK if depth > 0.1 else MUTED,
    )


def _tenfold(error: float) -> str:
    """Return log10 of the error with one decimal."""
    return f"{log10(max(error, 1e-30)):.1f}".replace("-", "−")
