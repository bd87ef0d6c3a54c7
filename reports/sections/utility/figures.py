"""What privacy costs: captured variance against epsilon, and time."""

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.plots import (
    DOTTED,
    INK,
    MUTED,
    NARROW,
    PAPER,
    REFUTED,
    SERIES,
    WIDE,
    apart,
    canvas,
    crossings,
    finish,
    names_width,
    panel,
    pixels,
    row_name,
    row_panel,
    thinned,
    to_svg,
    write,
)
from dpaudit.reports.sections.utility.findings import captured
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT
from dpaudit.reports.tables import quartiles, records
from dpaudit.reports.words import number, percent, setting

__all__ = ["captured_variance", "run_time"]


_SHARES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
_LABEL_GAP, _TICK_GAP, _KEY_STEP = 18.0, 20.0, 24  # CSS pixels
_RATIO_GAP = 44.0
_NOTE = (170.0, 24.0)  # width and height


@dataclass(frozen=True)
class _Curve:
    """One mechanism's line; `false` says where its claim is."""

    name: str
    colour: str
    epsilon: Array
    quartiles: Array
    false: NDArray[np.bool_]
    refuted: bool


def captured_variance(
    table: pd.DataFrame,
    exact: pd.DataFrame,
    references: pd.DataFrame,
    *,
    refuted: Collection[str] = (),
    narrow: bool = False,
) -> str:
    """Draw the captured share against epsilon, with quartile bands.

    The vertical scale is logarithmic in what is *lost*, so that 90 %, 99 % and 99.9 %
    are equally far apart. Stretches where the claim is false are dashed and crossed.

    Parameters
    ----------
    table, exact, references : pandas.DataFrame
        Of the experiments ``captured-variance``, ``exact-privacy`` and
        ``variance-references``.
    refuted : collection of str
        The mechanisms that the audit refuted.
    narrow : bool
        For a phone: the names stand below instead of at the ends of the lines.
    """
    curves = _curves(table, exact, refuted)
    without_noise = captured(references)
    key = _KEY_STEP * len(curves) if narrow else 0
    width, height = (NARROW, 400 + key) if narrow else (WIDE, 490)
    margin = 14 if narrow else 222
    with canvas(width, height) as figure:
        axes = panel(
            figure,
            (0, 0, width, height),
            left=60,
            right=margin,
            top=38,
            bottom=52 + key,
        )
        for curve in curves:
            _draw(axes, curve)
        _scales(axes, curves, without_noise[FIRST_COMPONENT])
        _references(axes, curves, without_noise)
        if narrow:
            _key_below(axes, curves)
        else:
            _label_ends(axes, curves)
        return to_svg(
            figure,
            "captured-variance",
            narrow=narrow,
            title="Share of the variance that private components capture, by epsilon",
            description=" ".join(map(_sentence, curves)),
        )


def _curves(
    table: pd.DataFrame, exact: pd.DataFrame, refuted: Collection[str]
) -> list[_Curve]:
    """Return the curves, the best at the smallest epsilon first."""
    found = quartiles(table, ("mechanism", "epsilon"), "captured_share")
    false = {
        (row["mechanism"], row["epsilon"])
        for row in records(exact)
        if row["claim"] == "false"
    }
    curves, colours = [], itertools.cycle(SERIES)
    for name in dict.fromkeys(name for name, _ in found):
        epsilon = [e for other, e in found if other == name]
        curves.append(
            _Curve(
                name=name,
                colour=REFUTED if name in refuted else next(colours),
                epsilon=np.array(epsilon),
                quartiles=np.array([found[name, e] for e in epsilon]).T,
                false=np.array([(name, e) in false for e in epsilon]),
                refuted=name in refuted,
            )
        )
    return sorted(curves, key=lambda curve: -curve.quartiles[1, 0])


def _nines(share: Any) -> Any:
    """Return where a share stands on the scale 90 %, 99 %, 99.9 %."""
    return -np.log10(np.maximum(1 - np.asarray(share, dtype=float), 1e-6))


def _draw(axes: Axes, curve: _Curve) -> None:
    low, middle, high = _nines(curve.quartiles)
    axes.fill_between(
        curve.epsilon, low, high, color=curve.colour, alpha=0.2, linewidth=0
    )
    dashed = curve.false[1:] | curve.false[:-1]
    for broken, stretch in itertools.groupby(
        range(len(dashed)), key=dashed.__getitem__
    ):
        segments = list(stretch)
        points = slice(segments[0], segments[-1] + 2)
        axes.plot(
            curve.epsilon[points],
            middle[points],
            color=curve.colour,
            linestyle=(0, (3, 2)) if broken else "-",
            linewidth=2.2,
        )
    axes.plot(
        curve.epsilon[curve.false],
        middle[curve.false],
        "X",
        color=curve.colour,
        markersize=9,
        markeredgecolor=PAPER,
        clip_on=False,
        zorder=4,
    )


def _scales(axes: Axes, curves: list[_Curve], first: float) -> None:
    low = min(first, *(curve.quartiles.min() for curve in curves))
    high = max(curve.quartiles.max() for curve in curves)
    axes.set_ylim(_nines(low) - 0.08, _nines(high) + 0.06)
    shares = [s for s in _SHARES if _nines(low) - 0.08 <= _nines(s) <= _nines(high)]
    shares = [shares[i] for i in thinned(_place(axes, 1.0, shares)[1], _TICK_GAP)]
    axes.set_yticks([_nines(s) for s in shares], [f"{100 * s:g} %" for s in shares])
    epsilon = curves[0].epsilon
    axes.set_xscale("log")
    axes.set_xlim(epsilon[0], epsilon[-1])
    marks = [e for e in (0.1, 0.3, 1, 3, 10) if epsilon[0] <= e <= epsilon[-1] * 1.001]
    axes.set_xticks(marks, [f"{e:g}" for e in marks])
    finish(axes, "claimed ε", pad=7)
    top = axes.get_window_extent().y1
    write(
        axes,
        "Captured share of the best possible variance",
        (8, top + 22),
        weight="bold",
    )


def _references(
    axes: Axes, curves: list[_Curve], without_noise: Mapping[str, float]
) -> None:
    """Say what components capture that owe nothing to privacy."""
    first, best = without_noise[FIRST_COMPONENT], without_noise[BASELINE]
    axes.axhline(_nines(first), color=MUTED, linewidth=1.4, linestyle=DOTTED)
    right, above = _freest_side(axes, curves, first)
    for text, x, y, up, over in (
        ("first component, no noise", int(right), _nines(first), above, right),
        (f"↑ no noise: {percent(best)}", 0, axes.get_ylim()[1], False, False),
    ):
        axes.annotate(
            text,
            (x, y),
            (-2 if over else 4, 6 if up else -6),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right" if over else "left",
            va="bottom" if up else "top",
            color=MUTED,
            size=12,
        )


def _freest_side(axes: Axes, curves: list[_Curve], share: float) -> tuple[bool, bool]:
    """Return where a note on a level line meets fewest curves.

    Whether it is at the right end, and whether above the line.
    """
    box, line = axes.get_window_extent(), float(_place(axes, 1.0, share)[1])
    lines = [_place(axes, curve.epsilon, curve.quartiles[1]) for curve in curves]

    def met(side: tuple[bool, bool]) -> int:
        right, above = side
        left = box.x1 - _NOTE[0] if right else box.x0
        bottom = line if above else line - _NOTE[1]
        return crossings(lines, (left, bottom), _NOTE)

    return min(((True, True), (True, False), (False, True), (False, False)), key=met)


def _place(axes: Axes, epsilon: Any, share: Any) -> Array:
    """Return places in CSS pixels from the lower left of the figure, (2,) or (2, n)."""
    at = np.broadcast_arrays(epsilon, _nines(share))
    return np.asarray(axes.transData.transform(np.stack(at, axis=-1))).T


def _label_ends(axes: Axes, curves: list[_Curve]) -> None:
    """Write every name at the end of its line, moved apart where they would touch."""
    edge = float(axes.transAxes.transform((1.0, 0.0))[0])
    ends = _place(axes, 1.0, [curve.quartiles[1, -1] for curve in curves])[1].tolist()
    for curve, end, place in zip(curves, ends, apart(ends, _LABEL_GAP), strict=True):
        _stroke(axes, (edge + 5, end), (edge + 24, place), curve.colour, 1.2)
        _name(axes, (edge + 28, place), curve, 12.5)


def _key_below(axes: Axes, curves: list[_Curve]) -> None:
    """List the names below the plot, in the order of the lines at their left ends."""
    for i, curve in enumerate(curves):
        y = _KEY_STEP * (len(curves) - 1 - i) + 14
        style = (0, (2, 1)) if curve.false.all() else "-"
        _stroke(axes, (12, y), (40, y), curve.colour, 3, style)
        _name(axes, (50, y), curve, 13)


def _stroke(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    width: float,
    style: Any = "-",
) -> None:
    """Draw a straight line between two places in CSS pixels of the figure."""
    line = {"arrowstyle": "-", "color": colour, "linewidth": width, "linestyle": style}
    axes.annotate(
        "",
        start,
        end,
        xycoords="figure pixels",
        textcoords="figure pixels",
        arrowprops={**line, "shrinkA": 0, "shrinkB": 0},
    )


def _name(axes: Axes, place: tuple[float, float], curve: _Curve, size: float) -> None:
    text = f"{curve.name} · REFUTED" if curve.refuted else curve.name
    write(axes, text, place, va="center", color=curve.colour, size=size)


def _sentence(curve: _Curve) -> str:
    first, last = curve.quartiles[1, [0, -1]]
    text = (
        f"{curve.name}: {percent(first)} at epsilon {setting(curve.epsilon[0])}, "
        f"{percent(last)} at epsilon {setting(curve.epsilon[-1])}"
    )
    if curve.false.any():
        text += f"; claim false from epsilon {setting(curve.epsilon[curve.false][0])}"
    return text + "."


def run_time(table: pd.DataFrame, *, narrow: bool = False) -> str:
    """Draw how much longer a fit takes than PCA without privacy, with quartiles.

    The ratio is drawn, and not the time, because each fit was timed right beside one
    without privacy: another program that slows both down leaves it as it is.

    Parameters
    ----------
    table : pandas.DataFrame
        Of the experiment ``run-time``.
    narrow : bool
    """
    ratios = quartiles(table, ("mechanism",), "ratio")
    del ratios[BASELINE]
    panel = (46 if narrow else 34) * len(ratios)
    width, height = (NARROW if narrow else WIDE), panel + 72
    labels = []
    with canvas(width, height) as figure:
        names = names_width(ratios)
        axes = (
            pixels(figure, 10, 34, width - 24, panel)
            if narrow
            else pixels(figure, names, 34, WIDE - names - 90, panel)
        )
        row_panel(axes, len(ratios), "Time of a fit, in fits without privacy", [])
        _ratio_scale(axes, [x for quarters in ratios.values() for x in quarters])
        for i, (name, (low, middle, high)) in enumerate(ratios.items()):
            y = i + (0.14 if narrow else 0.0)
            axes.plot([1, 1], [y - 0.25, y + 0.25], color=INK, linewidth=2)
            axes.plot([low, high], [y, y], color=SERIES[0], linewidth=6, alpha=0.35)
            axes.plot(middle, y, "o", color=SERIES[0], markersize=9, clip_on=False)
            text = f"{number(middle) if middle >= 10 else f'{middle:.2f}'} ×"
            labels.append(f"{name}: {text}.")
            if narrow:
                axes.annotate(
                    f"{name}  {text}",
                    (0, i - 0.25),
                    xycoords=("axes fraction", "data"),
                    va="center",
                )
                continue
            row_name(axes, i, name, False, narrow)
            axes.annotate(
                text,
                (1, i),
                (14, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
            )
        return to_svg(
            figure,
            "run-time",
            narrow=narrow,
            title="Median time of a fit, as a multiple of PCA without privacy",
            description=" ".join(labels),
        )


def _ratio_scale(axes: Axes, ratios: list[float]) -> None:
    """Make the horizontal axis logarithmic: samplers differ by orders of magnitude."""
    axes.set_xscale("log")
    low, high = min(1.0, *ratios) / 1.1, max(2.0, *ratios) * 1.1
    axes.set_xlim(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    marks = [m * 10.0**e for e in decades for m in (1, 2, 3, 5)]
    marks = [mark for mark in marks if low <= mark <= high]
    places = axes.transData.transform([(mark, 0.0) for mark in marks])[:, 0]
    marks = [marks[i] for i in thinned(places, _RATIO_GAP)]
    axes.set_xticks(marks, [f"{mark:g} ×" for mark in marks])
    axes.set_xticks([], minor=True)
