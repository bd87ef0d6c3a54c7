"""The figures of a comparison: each measure against epsilon, a line for a mechanism."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from dpaudit.arrays import Array
from dpaudit.reports.comparison.run import Comparison
from dpaudit.reports.plots import (
    NARROW,
    PAPER,
    REFUTED,
    SERIES,
    STYLE,
    WIDE,
    apart,
    canvas,
    finish,
    names_width,
    panel,
    stroke,
    thinned,
    to_svg,
    write,
)
from dpaudit.reports.tables import records
from dpaudit.reports.words import listed, number, percent, setting

__all__ = [
    "SHOWN",
    "compared_names",
    "comparison_figure",
    "has_figure",
    "refuted_names",
]

_LABEL_GAP, _KEY_STEP, _TICK_GAP = 18.0, 24, 26.0  # CSS pixels
_LONGEST = 34  # characters of a name in a figure
_MARKERS = ("o", "s", "^", "D", "v")
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999)
_TIMES = (1.0, 1.01, 1.03, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True)
class _Measure:
    """How a measure is shown.

    Parameters
    ----------
    title, heading : str
        Of its part of the page, and of the figure.
    meaning : str
        A sentence or two for the page.
    height : callable
        Where a value stands.
    ticks : tuple of float
    text : callable
        From a value to what is printed.
    unit : str
        What that ends with.
    scale : float
        From a value to what is in front of the unit.
    """

    title: str
    heading: str
    meaning: str
    height: Callable[[Any], Any]
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    unit: str
    scale: float = 1.0

    def span(self, low: float, high: float) -> str:
        """Return two values as they are printed, the unit once."""
        return f"{self.text(low).removesuffix(self.unit)} – {self.text(high)}"


def _nines(share: Any) -> Any:
    """Return where a share stands on a scale on which 90 %, 99 %, ... are even."""
    return -np.log10(np.maximum(1 - np.asarray(share, dtype=float), 1e-6))


def _times(ratio: float) -> str:
    return f"{ratio:.2f} ×" if ratio < 10 else f"{number(ratio)} ×"


SHOWN = {
    "captured_variance": _Measure(
        "Captured variance",
        "Captured share of what PCA without noise captures",
        "How much of the variance that PCA without noise captures is left. The scale "
        "is logarithmic in what is lost.",
        _nines,
        _SHARES,
        percent,
        " %",
        100.0,
    ),
    "largest_angle_degrees": _Measure(
        "Largest angle",
        "Largest principal angle to PCA without noise",
        "The largest angle between the private subspace and that of PCA without noise: "
        "0° if they are the same, 90° if one direction is missed altogether. It is the "
        "sternest of the measures, for one missed direction may hold little variance.",
        np.asarray,
        (0.0, 10.0, 20.0, 30.0, 45.0, 60.0, 75.0, 90.0),
        lambda degrees: f"{degrees:.1f}°",
        "°",
    ),
    "error_ratio": _Measure(
        "Reconstruction error",
        "Reconstruction error, as a multiple of that of PCA without noise",
        "The sum of the squared distances of rows from the subspace, as a multiple of "
        "that for PCA without noise, which is the least that there can be.",
        lambda ratio: np.log10(np.asarray(ratio, dtype=float)),
        (*_TIMES, *(100.0 * 10**i for i in range(10))),
        _times,
        " ×",
    ),
}


def compared_names(found: Comparison) -> list[str]:
    """Return who was compared."""
    return list(dict.fromkeys(each["mechanism"] for each in found.audits))


def refuted_names(found: Comparison) -> list[str]:
    """Return whose claim was refuted at any epsilon."""
    names = (e["mechanism"] for e in found.audits if e["verdict"] == "REFUTED")
    return list(dict.fromkeys(names))


def has_figure(found: Comparison, measure: str) -> bool:
    """Say whether there is anything to draw."""
    return bool(_curves(found, measure))


def comparison_figure(found: Comparison, measure: str, *, narrow: bool = False) -> str:
    """Draw the medians of a measure against epsilon, with quartile bands.

    The line of a mechanism is dashed if an audit refuted it at any epsilon, and of dots
    and dashes if it was not audited.

    Parameters
    ----------
    found : Comparison
    measure : str
    narrow : bool
        For a phone: the names stand below instead of at the ends of the lines.
    """
    shown, curves = SHOWN[measure], _curves(found, measure)
    key = _KEY_STEP * len(curves) if narrow else 0
    width = NARROW if narrow else WIDE
    height = 330 + key if narrow else max(430, int(_LABEL_GAP * len(curves)) + 120)
    names = [curve.label for curve in curves]
    right = 16.0 if narrow else 18 + names_width(names)
    with matplotlib.rc_context(STYLE):
        figure = canvas(height, narrow=narrow)
        axes = panel(
            figure,
            (0, 0, width, height),
            left=62,
            right=right,
            top=42,
            bottom=52 + key,
        )
        _scales(axes, shown, curves)
        for curve in curves:
            _draw(axes, shown, curve)
        heading = shown.heading if not narrow else _folded(shown.heading)
        write(axes, heading, (8, height - 26), weight="bold", va="center")
        (_key_below if narrow else _label_ends)(axes, shown, curves)
        return to_svg(
            figure,
            f"compare-{measure.replace('_', '-')}",
            narrow=narrow,
            title=f"{shown.heading}, by epsilon",
            description=" ".join(_sentence(shown, curve) for curve in curves),
        )


@dataclass(frozen=True, eq=False)
class _Curve:
    """One mechanism's line: quartiles (3, n) at n epsilons."""

    name: str
    colour: str
    marker: str
    line: Any
    refuted: bool
    epsilon: Array
    quartiles: Array

    @property
    def label(self) -> str:
        name = self.name
        if len(name) > _LONGEST:
            name = f"…{name[1 - _LONGEST :]}"
        return f"{name} · REFUTED" if self.refuted else name


def _curves(found: Comparison, measure: str) -> list[_Curve]:
    rows = [
        row
        for row in records(found.table)
        if row["measure"] == measure and math.isfinite(row["median"])
    ]
    refuted = refuted_names(found)
    standing = {e["mechanism"] for e in found.audits if e["verdict"] == "NOT_REFUTED"}
    styles = itertools.product(_MARKERS, SERIES)
    curves = []
    for name in compared_names(found):
        marker, colour = next(styles, (_MARKERS[0], SERIES[0]))
        own = sorted(
            (row for row in rows if row["mechanism"] == name),
            key=lambda row: row["epsilon"],
        )
        if not own:
            continue
        values = [[row[part] for row in own] for part in ("low", "median", "high")]
        curves.append(
            _Curve(
                name=name,
                colour=REFUTED if name in refuted else colour,
                marker=marker,
                line=stroke(name, refuted, standing),
                refuted=name in refuted,
                epsilon=np.array([row["epsilon"] for row in own]),
                quartiles=np.array(values),
            )
        )
    return curves


def _scales(axes: Axes, shown: _Measure, curves: Sequence[_Curve]) -> None:
    values = shown.height(np.concatenate([c.quartiles.ravel() for c in curves]))
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.1
    axes.set_ylim(low - margin, high + margin)
    ticks = [t for t in shown.ticks if low - margin <= shown.height(t) <= high + margin]
    texts = {t: f"{shown.scale * t:,g}{shown.unit}" for t in ticks}
    if len(ticks) < 2:
        medians = [float(m) for c in curves for m in c.quartiles[1]]
        texts = {m: shown.text(m) for m in (min(medians), max(medians))}
        ticks = list(texts)
    places = axes.transData.transform([(1.0, shown.height(t)) for t in ticks])[:, 1]
    ticks = [ticks[i] for i in thinned(places, _TICK_GAP)]
    axes.set_yticks([shown.height(t) for t in ticks], [texts[t] for t in ticks])
    epsilons = sorted({float(e) for curve in curves for e in curve.epsilon})
    axes.set_xscale("log")
    span = (epsilons[-1] / epsilons[0]) ** 0.03 * (1.5 if len(epsilons) == 1 else 1.0)
    axes.set_xlim(epsilons[0] / span, epsilons[-1] * span)
    across = axes.transData.transform([(e, low) for e in epsilons])[:, 0]
    marks = [epsilons[i] for i in thinned(across, 1.4 * _TICK_GAP)]
    axes.set_xticks(marks, [setting(e) for e in marks])
    finish(axes, "claimed ε", pad=7)


def _draw(axes: Axes, shown: _Measure, curve: _Curve) -> None:
    low, middle, high = shown.height(curve.quartiles)
    if len(middle) == 1:
        axes.vlines(
            curve.epsilon, low, high, color=curve.colour, alpha=0.4, linewidth=6
        )
    else:
        axes.fill_between(
            curve.epsilon, low, high, color=curve.colour, alpha=0.16, linewidth=0
        )
    axes.plot(
        curve.epsilon,
        middle,
        color=curve.colour,
        linestyle=curve.line,
        linewidth=2,
        marker=curve.marker,
        markersize=7,
        markeredgecolor=PAPER,
        clip_on=False,
    )


def _label_ends(axes: Axes, shown: _Measure, curves: Sequence[_Curve]) -> None:
    """Write every name beside the end of its line, led to it where it had to move."""
    box = axes.get_window_extent()
    ends = axes.transData.transform(
        [(c.epsilon[-1], float(shown.height(c.quartiles[1, -1]))) for c in curves]
    )
    places = _inside(apart(ends[:, 1].tolist(), _LABEL_GAP), box.y0, box.y1)
    for curve, (x, y), place in zip(curves, ends, places, strict=True):
        _stroke(axes, (x + 6, y), (box.x1 + 22, place), curve.colour, 1.0)
        _sample(axes, (box.x1 + 22, box.x1 + 22), place, curve, 0.0)
        where = (box.x1 + 30, place)
        write(axes, curve.label, where, va="center", color=curve.colour, size=12.5)


def _inside(places: list[float], low: float, high: float) -> list[float]:
    """Return places pushed between two others, as far apart as before or the gap.

    Examples
    --------
    >>> _inside([90.0, 108.0], 0.0, 100.0)
    [82.0, 100.0]
    """
    found = list(places)
    order = np.argsort(places, kind="stable").tolist()
    limit = high
    for i in reversed(order):
        found[i] = min(found[i], limit)
        limit = found[i] - _LABEL_GAP
    limit = low
    for i in order:
        found[i] = max(found[i], limit)
        limit = found[i] + _LABEL_GAP
    return found


def _key_below(axes: Axes, shown: _Measure, curves: Sequence[_Curve]) -> None:
    """List the names below the plot, in the order of the lines at their right ends."""
    ordered = sorted(curves, key=lambda c: -float(shown.height(c.quartiles[1, -1])))
    for i, curve in enumerate(ordered):
        y = _KEY_STEP * (len(ordered) - 1 - i) + 14
        _sample(axes, (12, 40), y, curve, 2.0)
        write(axes, curve.label, (50, y), va="center", color=curve.colour, size=13)


def _sample(
    axes: Axes, across: tuple[float, float], y: float, curve: _Curve, width: float
) -> None:
    """Draw a piece of a line with its marker, in CSS pixels of the figure."""
    if width:
        _stroke(axes, (across[0], y), (across[1], y), curve.colour, width, curve.line)
    middle = sum(across) / 2
    place = axes.transData.inverted().transform((middle, y))
    axes.plot(
        *place,
        marker=curve.marker,
        color=curve.colour,
        markersize=7,
        markeredgecolor=PAPER,
        clip_on=False,
        scalex=False,
        scaley=False,
    )


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


def _folded(text: str) -> str:
    """Break a heading in two where a phone is too narrow for it."""
    if len(text) <= 44:
        return text
    cut = text.rfind(" ", 0, 44)
    return f"{text[:cut]}\n{text[cut + 1 :]}"


def _sentence(shown: _Measure, curve: _Curve) -> str:
    points = [
        f"{shown.text(float(value))} at epsilon {setting(float(epsilon))}"
        for epsilon, value in zip(curve.epsilon, curve.quartiles[1], strict=True)
    ]
    return f"{curve.label}: {listed(points)}."
