"""Heat maps: a panel for each mechanism, a tile for each cell of its grid.

As in Figures 2 and 4 to 9 of the paper. The published and the corrected form of a
mechanism are neighbours. What no run has (an error, a time) is written into its tile,
and what was not run is left blank.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, isfinite, isnan, log10, nan
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.reports import lines, plots
from dpaudit.reports.lines import Verdicts
from dpaudit.reports.plots import INK, MUTED, RULE, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.words import count, delta, listed, setting, short

__all__ = ["failed", "final_error"]

_CELL = 24.0  # CSS pixels of height
_AROUND: dict[str, Any] = {"left": 46.0, "right": 8.0, "top": 46.0, "bottom": 46.0}
_BOTTOM, _NEVER, _FEW = "⊥", "none", "few"


@dataclass(frozen=True)
class HeatMap:
    """What is drawn of some experiments.

    Parameters
    ----------
    name, title : str
    experiments : tuple of str
        Their tables are put below each other.
    across, up : tuple of (str, str, callable)
        A column of the grid, its label, and how its values are written.
    value : callable
        From the runs of a cell to a number; NaN if no run has one, infinite if less
        than half of them have.
    text : callable
        How a finite number is written.
    depth : callable
        How full a tile is, from 0 to 1.
    quantity, unit : str
        What the number is, and what follows it.
    nothing : str
        What stands for NaN.
    """

    name: str
    title: str
    experiments: tuple[str, ...]
    across: tuple[str, str, Callable[[float], str]]
    up: tuple[str, str, Callable[[float], str]]
    value: Callable[[pd.DataFrame], float]
    text: Callable[[float], str]
    depth: Callable[[float], float]
    quantity: str
    unit: str = ""
    nothing: str = _BOTTOM

    def values(self, results: Results) -> dict[str, dict[tuple[float, float], float]]:
        """Return the numbers of every mechanism by their places, in order."""
        table = pd.concat([results[name] for name in self.experiments])
        where = [self.across[0], self.up[0]]
        return {
            str(name): {(x, y): self.value(cell) for (x, y), cell in own.groupby(where)}
            for name, own in table.groupby("mechanism", sort=False)
        }

    def label(self, value: float) -> str:
        """Return what is written into a tile."""
        if isnan(value):
            return self.nothing
        return self.text(value) if isfinite(value) else _FEW


def final_error(cell: pd.DataFrame) -> float:
    """Return log10 of the median error; NaN if every run is bottom."""
    errors = cell["error"].to_numpy(dtype=np.float64)
    if np.isnan(errors).all():
        return nan
    return log10(max(float(np.median(np.nan_to_num(errors, nan=1.0))), 1e-30))


def failed(cell: pd.DataFrame) -> float:
    """Return the share of the runs that never came within the tolerance."""
    return float(cell["reached"].isna().mean())


def time_taken(cell: pd.DataFrame) -> float:
    """Return the median time to the tolerance, in seconds; a run may never end."""
    if failed(cell) == 1:
        return nan
    return float(cell["seconds_reached"].fillna(inf).median())


def drawn(spec: HeatMap) -> Callable[..., str]:
    """Return what draws a heat map, see `dpaudit.reports.plots.picture`."""

    @plots.picture(spec.name, spec.title)
    def draw(results: Results, narrow: bool) -> tuple[Figure, str]:
        verdicts = Verdicts.of(results["robust-audits"])
        found, foot = spec.values(results), lines.FOOT[narrow]
        ticks = [
            np.unique([place[i] for cells in found.values() for place in cells])
            for i in (0, 1)
        ]
        columns = 2 if narrow else 4
        high = _AROUND["top"] + _CELL * len(ticks[1]) + _AROUND["bottom"]
        figure = plots.canvas(high * ceil(len(found) / columns) + foot, narrow=narrow)
        ((_, _, width, height),) = plots.boxes(figure, foot=foot)
        for place, (name, cells) in enumerate(found.items()):
            row, column = divmod(place, columns)
            left, bottom = width / columns * column, foot + height - high * (row + 1)
            axes = plots.panel(figure, (left, bottom, width / columns, high), **_AROUND)
            heading, top = verdicts.line(name, 0, short(name)).label, bottom + high
            style = {"color": verdicts.heading(name), "size": 12, "weight": "bold"}
            plots.write(axes, heading, (left + 8, top - 18), **style)
            form = "as published" if name != short(name) else "corrected"
            plots.write(axes, form, (left + 8, top - 34), color=MUTED, size=11)
            _draw(axes, spec, cells, ticks, f"{name}{verdicts.said(name)}")
        dashes = [verdicts.line(name, 0).dash for name in found]
        lines.key(figure, dashes, narrow=narrow, names=True)
        return figure, " ".join(
            _said(spec, f"{name}{verdicts.said(name)}", each)
            for name, each in found.items()
        )

    return draw


def _draw(
    axes: Axes,
    spec: HeatMap,
    cells: dict[tuple[float, float], float],
    ticks: list[Any],
    name: str,
) -> None:
    for (x, y), value in cells.items():
        i, j = (int(np.searchsorted(t, v)) for t, v in zip(ticks, (x, y), strict=True))
        depth = float(np.clip(spec.depth(value), 0, 1)) if isfinite(value) else 0.0
        inside: dict[str, Any] = {"facecolor": SERIES[0], "alpha": 0.05 + 0.45 * depth}
        axes.add_patch(Rectangle((i, j), 1, 1, edgecolor=RULE, linewidth=0, **inside))
        style: dict[str, Any] = {"ha": "center", "va": "center", "size": 10}
        style |= {"color": INK if depth > 0.1 else MUTED}
        axes.annotate(spec.label(value), (i + 0.5, j + 0.5), **style)
        (_, across, words), (_, up, others) = spec.across, spec.up
        place = f"{across} = {words(x)}, {up} = {others(y)}"
        said = f"{name}, {place}, {spec.quantity}: {spec.label(value)}{spec.unit}"
        plots.told(axes, [i], [j], [said], tile=True)
    axes.set(xlim=(0, len(ticks[0])), ylim=(0, len(ticks[1])))
    for axis, values, (_, label, text) in (
        (axes.xaxis, ticks[0], spec.across),
        (axes.yaxis, ticks[1], spec.up),
    ):
        places = np.arange(len(values)) + 0.5
        axis.set_ticks(places, labels=[text(value) for value in values], size=10)
        axis.set_label_text(label, size=11)
        axis.labelpad = 4
    axes.tick_params(length=0, pad=4)


def _said(spec: HeatMap, name: str, cells: dict[tuple[float, float], float]) -> str:
    """Return the range of what is drawn of a mechanism, in words."""
    known = sorted(value for value in cells.values() if isfinite(value))
    parts = [f"{spec.text(known[0])} to {spec.text(known[-1])}"] if known else []
    for text, missing in ((_FEW, np.isinf), (spec.nothing, np.isnan)):
        if lacking := sum(missing(value) for value in cells.values()):
            parts.append(f"{text!r} in {lacking} of {len(cells)} cells")
    return f"{name}: {listed(parts)}."


def _tenfold(value: float) -> str:
    """Return log10 of an error: one decimal where it counts."""
    text = f"{value:.0f}" if value <= -9.95 else f"{round(value, 1) + 0.0:.1f}"
    return text.replace("-", "−")


def _brief(seconds: float) -> str:
    """Return a time in few letters.

    Examples
    --------
    >>> _brief(0.0021), _brief(0.5), _brief(3.14), _brief(31.4)
    ('2ms', '.50s', '3.1s', '31s')
    """
    if seconds < 0.0995:
        return f"{1e3 * seconds:.0f}ms"
    if seconds < 0.995:
        return f"{seconds:.2f}s"[1:]
    return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"


def _percentage(share: float) -> str:
    return f"{100 * share:.0f}"


_ROWS = ("rows", "rows N", count)
_LENGTHS = ("dimension", "length D", count)
_ERROR: dict[str, Any] = {
    "value": final_error,
    "text": _tenfold,
    "depth": lambda value: -value / 10,
    "quantity": "log10 of the median error",
}
_PHASES: dict[str, Any] = {
    "experiments": ("robust-phases", "robust-phases-full", "robust-phases-reaper"),
    "across": _ROWS,
    "up": _LENGTHS,
}

_HEAT_MAPS = (
    HeatMap(
        name="robust-phases",
        title="Median log10 error by the number of rows and their length",
        **_PHASES,
        **_ERROR,
    ),
    HeatMap(
        name="robust-times",
        title="Time to an error of 0.01 by the number of rows and their length",
        **_PHASES,
        value=time_taken,
        text=_brief,
        depth=lambda value: (1 - log10(max(value, 1e-9))) / 4,
        quantity="median time to an error of 0.01",
        nothing=_NEVER,
    ),
    HeatMap(
        name="robust-failures",
        title="Runs that miss an error of 0.01 by the number of rows and their length",
        **_PHASES,
        value=failed,
        text=_percentage,
        depth=lambda value: 1 - value,
        quantity="runs that miss an error of 0.01",
        unit=" %",
    ),
    HeatMap(
        name="robust-budgets",
        title="Median log10 error by epsilon and delta",
        experiments=("robust-budgets",),
        across=("epsilon", "ε", setting),
        up=("delta", "δ", delta),
        **_ERROR,
    ),
    HeatMap(
        name="robust-batches",
        title="Runs with an error of 0.01 by the size of a batch and share of inliers",
        experiments=("robust-batches",),
        across=("batch_size", "batch B", count),
        up=("inlier_share", "inliers", setting),
        value=lambda cell: 1 - failed(cell),
        text=_percentage,
        depth=lambda value: value,
        quantity="runs with an error of 0.01",
        unit=" %",
    ),
    HeatMap(
        name="robust-ranks",
        title="Median log10 error by the length of rows and the components",
        experiments=("robust-ranks",),
        across=("dimension", "length D", count),
        up=("n_components", "rank r", count),
        **_ERROR,
    ),
)

DRAWN = {each.name: drawn(each) for each in _HEAT_MAPS}
