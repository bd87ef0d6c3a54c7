"""Robust PCA: errors step by step, where it works, and maps."""

from collections.abc import Collection
from math import ceil, log10

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from dpaudit.reports.plots import (
    INK,
    MUTED,
    NARROW,
    REFUTED,
    RULE,
    SERIES,
    WIDE,
    boxes,
    canvas,
    finish,
    name_ends,
    panel,
    stroke,
    to_svg,
    write,
)
from dpaudit.reports.sections.robust.measures import CORRECTED, PUBLISHED
from dpaudit.reports.tables import quartiles
from dpaudit.reports.words import count, number, percent, short

__all__ = ["error_by_step", "maps", "phases"]

_FLOOR = 1e-16  # what is drawn ends here, an angle of 1e-8
_GAP = 17.0  # CSS pixels between labels
_CELL = 34.0
_PEOPLE = 240  # dots in a map
_HIGH = 190.0  # CSS pixels


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
        Mechanisms that audits have refuted, or not: see `dpaudit.reports.plots.stroke`.
    narrow : bool
        For a phone: one panel below the other.
    """
    found = quartiles(table, ("mechanism", "iteration"), "error")
    panels = [("As published", PUBLISHED), ("Corrected", CORRECTED)]
    width, height = (NARROW, 680) if narrow else (WIDE, 380)
    with canvas(width, height) as figure:
        places = boxes(2, width, height, narrow=narrow)
        for box, (heading, names) in zip(places, panels, strict=True):
            axes = panel(figure, box, heading, left=52, right=112, top=44, bottom=52)
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
                mark = _mark(name, refuted)
                last = max(float(curve[1, -1]), _FLOOR)  # or where it leaves
                ends.append((f"{short(name)}{mark}", REFUTED if mark else colour, last))
            name_ends(axes, ends, _GAP)
        return to_svg(
            figure,
            "robust-recovery",
            narrow=narrow,
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
    width = NARROW if narrow else WIDE
    height = round(high * (len(names) if narrow else 1))
    with canvas(width, height) as figure:
        places = boxes(len(names), width, height, narrow=narrow)
        for box, name in zip(places, names, strict=True):
            heading = name + _mark(name, refuted)
            axes = panel(figure, box, heading, left=52, right=24, top=44, bottom=56)
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
            "robust-phases",
            narrow=narrow,
            title="Median log10 error by the number of rows and their length",
            description=" ".join(
                f"{name}, N = {count(n)}, D = {count(d)}: {_tenfold(q[1])}."
                for (name, n, d), q in found.items()
            ),
        )


def _error_scales(axes: Axes, steps: int) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, steps)
    axes.set_ylim(_FLOOR, 2)
    marks = [10.0**e for e in range(-16, 1, 4)]
    labels = ["10⁻¹⁶", "10⁻¹²", "10⁻⁸", "10⁻⁴", "1"]
    axes.set_yticks(marks, labels)
    decades = [10**e for e in range(int(log10(steps)) + 1)]
    axes.set_xticks(decades, [count(k) for k in decades])
    finish(axes, "step")


def _mark(name: str, refuted: Collection[str]) -> str:
    return " ✗" if name in refuted else ""


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
    return f"{round(log10(max(error, 1e-30)), 1) + 0.0:.1f}".replace("-", "−")


def maps(
    table: pd.DataFrame, *, refuted: Collection[str] = (), narrow: bool = False
) -> str:
    """Draw people where each mechanism puts them, coloured by where they are from.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``genotypes``.
    refuted : collection of str
        Mechanisms that audits have refuted.
    narrow : bool
        For a phone: two maps side by side instead of four.
    """
    names = list(dict.fromkeys(table["mechanism"]))
    across = 2 if narrow else 4
    width = NARROW if narrow else WIDE
    high = _HIGH if not narrow else 176.0
    height = round(high * ceil(len(names) / across))
    first = table[table["mechanism"] == names[0]]
    reach = 1.15 * float(np.abs(first[["east", "north"]].to_numpy()).max())
    quarters = np.quantile(first["east"], [0.25, 0.5, 0.75])
    fits = {name: float(some["fit"].iloc[0]) for name, some in _each(table, names)}
    with canvas(width, height) as figure:
        for place, (name, some) in enumerate(_each(table, names)):
            row, column = divmod(place, across)
            left = width / across * column
            bottom = height - high * (row + 1)
            box = (left, bottom, width / across, high)
            axes = panel(figure, box, left=6, right=6, top=42, bottom=8)
            shown = some.iloc[:: max(1, len(some) // _PEOPLE)]
            where = np.searchsorted(quarters, shown["east"])
            for quarter in range(4):
                dots = shown[where == quarter]
                axes.plot(
                    dots["x"],
                    dots["y"],
                    "o",
                    color=SERIES[quarter],
                    markersize=3.2,
                    markeredgewidth=0,
                    alpha=0.75,
                )
            axes.set_xlim(-reach, reach)
            axes.set_ylim(-reach, reach)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines["bottom"].set_visible(False)
            heading = f"{short(name)}{_mark(name, refuted)}"
            top = bottom + high
            write(
                axes, heading, (left + 8, top - 18), color=INK, size=12, weight="bold"
            )
            under = _under(name, fits[name])
            write(axes, under, (left + 8, top - 34), color=MUTED, size=11)
        return to_svg(
            figure,
            "genotypes",
            narrow=narrow,
            title="Maps that mechanisms find in genotypes",
            description=" ".join(
                f"{name} explains {percent(fit)} of the map."
                for name, fit in fits.items()
            ),
        )


def _each(table: pd.DataFrame, names: list[str]) -> list[tuple[str, pd.DataFrame]]:
    return [(name, table[table["mechanism"] == name]) for name in names]


def _under(name: str, fit: float) -> str:
    published = "as published, " if name.endswith("-published") else ""
    return f"{published}{percent(fit)}"
