r"""Figure 1 of the paper: the mean of a minibatch of gradients beside their range.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Figure 1: rows in the plane, Gaussian (Remark 3.4) and of Example
4.1, and 400 gradients x x^T w.

The print names neither w nor the laws' numbers. Here w is half-way between v and what
is orthogonal to it; eigenvalues are 1 and 1/4, and sigma is `SPREAD`. The range is the
largest distance between two gradients, in proportion to which DP-PCA adds noise; what
clips gradients adds it in proportion to their length.
"""

from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

from dpaudit.datasets import spiked_gaussian
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.errors import InputError
from dpaudit.reports import plots
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.plots import INK, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.words import number, setting, signed

__all__ = ["EXAMPLE", "GAUSSIAN", "TABLE", "gradient_notes", "minibatch_gradients"]

TABLE = "dp-pca-gradients"
GAUSSIAN, EXAMPLE = "gaussian", "example-4.1"
SPREAD = 0.05

_V = np.array([[1.0], [0.0]])
_W = np.array([1.0, 1.0]) / sqrt(2)
_HEADINGS = {GAUSSIAN: "Gaussian rows", EXAMPLE: f"Example 4.1, σ = {SPREAD:g}"}


def minibatch_gradients(cell: Cell) -> list[Record]:
    """Return gradients x x^T w of rows in the plane, ``along`` v and ``across`` it."""
    rng, count = cell.rng(), int(cell.options["gradients"])
    if cell.mechanism == GAUSSIAN:
        data = spiked_gaussian(count, 2, spikes=[0.75], noise=0.5, basis=_V, rng=rng)
    elif cell.mechanism == EXAMPLE:
        data = signal_in_noise(count, 2, noise=SPREAD, direction=_V[:, 0], rng=rng)
    else:
        raise InputError(f"no such law: {cell.mechanism!r}")
    found = (data.rows @ _W)[:, np.newaxis] * data.rows
    return [{"along": float(x), "across": float(y)} for x, y in found]


def _measured(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return the length of the mean and the range, by law."""
    found = {}
    for law, own in table.groupby("mechanism", sort=False):
        points = own[["along", "across"]].to_numpy()
        length = float(np.linalg.norm(points.mean(axis=0)))
        found[str(law)] = length, float(pdist(points).max())
    return found


def gradient_notes(table: pd.DataFrame) -> list[str]:
    """Return how long the mean is beside the range, and whether that is as printed."""
    found = _measured(table)
    parts = [
        f"{number(length)} long and their range {number(far)} {where}"
        for (length, far), where in (
            (found[GAUSSIAN], "for Gaussian rows"),
            (found[EXAMPLE], f"in Example 4.1 at σ = {setting(SPREAD)}"),
        )
    ]
    as_printed = [
        found[GAUSSIAN][0] < found[GAUSSIAN][1],
        found[EXAMPLE][0] > found[EXAMPLE][1],
    ]
    said = (
        "as in the print: the mean is shorter than the range there, and longer here"
        if all(as_printed)
        else "which is not as in the print"
    )
    count = len(table) // 2
    return [f"The mean of {count} gradients is {' and '.join(parts)}, {said}."]


@plots.picture(TABLE, "Mean gradient beside the range of a minibatch of gradients")
def draw_gradients(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the gradients as dots and their mean as an arrow, each law on its scale."""
    table = results[TABLE]
    figure = plots.canvas(660 if narrow else 360, narrow=narrow)
    around: dict[str, Any] = {"left": 30.0, "right": 20.0, "top": 44.0, "bottom": 46.0}
    places = plots.boxes(figure, 2)
    for box, (law, heading) in zip(places, _HEADINGS.items(), strict=True):
        axes = plots.panel(figure, box, heading, **around)
        points = table[table["mechanism"] == law][["along", "across"]].to_numpy()
        reach = 1.05 * float(np.abs(points).max())
        across, up = axes.get_window_extent().size
        half = 1.25 * reach * up / across / 2  # as far up as along
        axes.set(xlim=(-0.25 * reach, reach), ylim=(-half, half))
        axes.plot(*points.T, "o", color=SERIES[0], markersize=3, alpha=0.5)
        axes.annotate(
            "",
            points.mean(axis=0),
            (0.0, 0.0),
            arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 2},
        )
        plots.finish(axes, "along v")
        axes.grid(axis="x")
        tip = points.mean(axis=0)
        there = "{} along v, {} across".format(*map(signed, tip))
        said = f"{heading}, mean gradient: {there}"
        plots.told(axes, tip[:1], tip[1:], [said])
    return figure, " ".join(gradient_notes(table))
