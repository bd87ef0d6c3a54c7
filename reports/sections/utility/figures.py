"""What privacy costs: captured variance against epsilon, and time."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.reports import plots
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.plots import DOTTED, INK, MUTED, PAPER, REFUTED, SERIES, WIDE
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT
from dpaudit.reports.tables import quartiles, refuted_mechanisms
from dpaudit.reports.words import number, percent, setting

__all__ = ["captured", "captured_variance", "run_time"]


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


@plots.picture(
    "captured-variance",
    "Share of the variance that private components capture, by epsilon",
)
def captured_variance(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the captured share against epsilon, with quartile bands.

    The vertical scale is logarithmic in what is *lost*, so that 90 %, 99 % and 99.9 %
    are equally far apart. Stretches where the claim is false are dashed and crossed.
    The names stand at the ends of the lines, or below on phones.
    """
    refuted = refuted_mechanisms(results["privacy-wall"])
    curves = _curves(results["captured-variance"], results["exact-privacy"], refuted)
    without_noise = captured(results["variance-references"])
    key = _KEY_STEP * len(curves) if narrow else 0
    figure = plots.canvas(400 + key if narrow else 490, narrow=narrow)
    (box,) = plots.boxes(figure)
    margin, below = 14 if narrow else 222, 52 + key
    axes = plots.panel(figure, box, left=60, right=margin, top=38, bottom=below)
    for curve in curves:
        _draw(axes, curve)
    _scales(axes, curves, without_noise[FIRST_COMPONENT])
    _references(axes, curves, without_noise)
    if narrow:
        _key_below(axes, curves)
    else:
        _label_ends(axes, curves)
    return figure, " ".join(map(_sentence, curves))


def captured(references: pd.DataFrame) -> dict[str, float]:
    """Return what each yardstick without noise captures."""
    return dict(zip(references["mechanism"], references["captured_share"], strict=True))


def _curves(
    table: pd.DataFrame, exact: pd.DataFrame, refuted: Collection[str]
) -> list[_Curve]:
    """Return the curves, the best at the smallest epsilon first."""
    found = quartiles(table, ("mechanism", "epsilon"), "captured_share")
    broken = exact[exact["claim"] == "false"]
    false = set(zip(broken["mechanism"], broken["epsilon"], strict=True))
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
    epsilon, colour = curve.epsilon, curve.colour
    low, middle, high = _nines(curve.quartiles)
    axes.fill_between(epsilon, low, high, color=colour, alpha=0.2, linewidth=0)
    dashed = curve.false[1:] | curve.false[:-1]
    for broken, stretch in itertools.groupby(
        range(len(dashed)), key=dashed.__getitem__
    ):
        segments = list(stretch)
        points = slice(segments[0], segments[-1] + 2)
        style: Any = (0, (3, 2)) if broken else "-"
        line = {"color": colour, "linestyle": style, "linewidth": 2.2}
        axes.plot(epsilon[points], middle[points], **line)
    crosses: dict[str, Any] = {"markersize": 9, "markeredgecolor": PAPER}
    crosses |= {"color": colour, "clip_on": False, "zorder": 4}
    axes.plot(epsilon[curve.false], middle[curve.false], "X", **crosses)


def _scales(axes: Axes, curves: list[_Curve], first: float) -> None:
    low = _nines(min(first, *(curve.quartiles.min() for curve in curves)))
    high = _nines(max(curve.quartiles.max() for curve in curves))
    axes.set_ylim(low - 0.08, high + 0.06)
    places = [_nines(share) for share in _SHARES]
    shown = dict(zip(places, _SHARES, strict=True))
    places = [place for place in places if low - 0.08 <= place <= high]
    plots.tick(axes, "y", places, lambda place: f"{100 * shown[place]:g} %", _TICK_GAP)
    epsilon = curves[0].epsilon
    axes.set(xscale="log", xlim=(epsilon[0], epsilon[-1]))
    marks = [e for e in (0.1, 0.3, 1, 3, 10) if epsilon[0] <= e <= epsilon[-1] * 1.001]
    axes.set_xticks(marks, [f"{e:g}" for e in marks])
    plots.finish(axes, "claimed ε", pad=7)
    heading = (8, axes.get_window_extent().y1 + 22)
    text = "Captured share of the best possible variance"
    plots.write(axes, text, heading, weight="bold")


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
        away = (-2 if over else 4, 6 if up else -6)
        style: dict[str, Any] = {"ha": "right" if over else "left", "size": 12}
        style |= {"va": "bottom" if up else "top", "color": MUTED}
        plots.beside(axes, text, (x, y), away, plots.ROW, **style)


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
        return plots.crossings(lines, (left, bottom), _NOTE)

    return min(((True, True), (True, False), (False, True), (False, False)), key=met)


def _place(axes: Axes, epsilon: Any, share: Any) -> Array:
    """Return places in CSS pixels from the lower left of the figure, (2,) or (2, n)."""
    at = np.broadcast_arrays(epsilon, _nines(share))
    return np.asarray(axes.transData.transform(np.stack(at, axis=-1))).T


def _label_ends(axes: Axes, curves: list[_Curve]) -> None:
    """Write every name at the end of its line, moved apart where they would touch."""
    edge = float(axes.transAxes.transform((1.0, 0.0))[0])
    ends = _place(axes, 1.0, [curve.quartiles[1, -1] for curve in curves])[1].tolist()
    places = plots.apart(ends, _LABEL_GAP)
    for curve, end, place in zip(curves, ends, places, strict=True):
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
    line |= {"shrinkA": 0, "shrinkB": 0}
    plots.write(
        axes, "", start, xytext=end, textcoords="figure pixels", arrowprops=line
    )


def _name(axes: Axes, place: tuple[float, float], curve: _Curve, size: float) -> None:
    text = f"{curve.name} · REFUTED" if curve.refuted else curve.name
    plots.write(axes, text, place, va="center", color=curve.colour, size=size)


def _sentence(curve: _Curve) -> str:
    first, last = curve.quartiles[1, [0, -1]]
    text = (
        f"{curve.name}: {percent(first)} at epsilon {setting(curve.epsilon[0])}, "
        f"{percent(last)} at epsilon {setting(curve.epsilon[-1])}"
    )
    if curve.false.any():
        text += f"; claim false from epsilon {setting(curve.epsilon[curve.false][0])}"
    return text + "."


@plots.picture("run-time", "Median time of a fit, as a multiple of PCA without privacy")
def run_time(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw how much longer a fit takes than PCA without privacy, with quartiles.

    The ratio is drawn, and not the time, because each fit was timed right beside one
    without privacy: another program that slows both down leaves it as it is.
    """
    ratios = quartiles(results["run-time"], "mechanism", "ratio")
    del ratios[BASELINE]
    room = (46 if narrow else 34) * len(ratios)
    figure = plots.canvas(room + 72, narrow=narrow)
    names = plots.names_width(ratios)
    left, width = (10, plots.NARROW - 24) if narrow else (names, WIDE - names - 90)
    axes = plots.pixels(figure, left, 34, width, room)
    plots.row_panel(axes, len(ratios), "Time of a fit, in fits without privacy", [])
    _ratio_scale(axes, [x for quarters in ratios.values() for x in quarters])
    labels = []
    for i, (name, (low, middle, high)) in enumerate(ratios.items()):
        y = i + (0.14 if narrow else 0.0)
        axes.plot([1, 1], [y - 0.25, y + 0.25], color=INK, linewidth=2)
        axes.plot([low, high], [y, y], color=SERIES[0], linewidth=6, alpha=0.35)
        axes.plot(middle, y, "o", color=SERIES[0], markersize=9, clip_on=False)
        text = f"{number(middle) if middle >= 10 else f'{middle:.2f}'} ×"
        labels.append(f"{name}: {text}.")
        if narrow:
            above = (0, i - 0.25)
            axes.annotate(f"{name}  {text}", above, xycoords=plots.ROW, va="center")
        else:
            plots.row_name(axes, i, name, False, narrow)
            plots.beside(axes, text, (1, i), (14, 0), plots.ROW, va="center")
    return figure, " ".join(labels)


def _ratio_scale(axes: Axes, ratios: list[float]) -> None:
    """Make the horizontal axis logarithmic: samplers differ by orders of magnitude."""
    low, high = min(1.0, *ratios) / 1.1, max(2.0, *ratios) * 1.1
    axes.set(xscale="log", xlim=(low, high))
    marks = plots.decades(low, high, (1, 2, 3, 5))
    plots.tick(axes, "x", marks, lambda mark: f"{mark:g} ×", _RATIO_GAP)
    axes.set_xticks([], minor=True)
