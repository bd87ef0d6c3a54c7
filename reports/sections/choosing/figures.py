"""The map of winners: which mechanism errs least, where."""

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpaudit.algorithms.estimators.grid import GRID, Grid, shipped_grid
from dpaudit.reports import plots
from dpaudit.reports.plots import INK, MUTED, PAPER, RULE, SERIES
from dpaudit.reports.sections import Results
from dpaudit.reports.words import count, delta, setting

__all__ = ["LOST", "Field", "winners", "winners_map"]

LOST = 0.9
"""Where the best sine is above this, no mechanism finds the components."""

_EPSILON = 1.0
_WIDE_ROW, _NARROW_ROW, _HEAD, _KEY = 230, 210, 26, 24


@dataclass(frozen=True)
class Field:
    """The winner at one point of the grid; no name if all components are lost.

    Parameters
    ----------
    delta, d, k, signal : float
    mechanism : str
    error : float
    """

    delta: float
    d: float
    k: float
    signal: float
    mechanism: str
    error: float


def winners(grid: Grid) -> list[Field]:
    """Return the winners at epsilon = 1 under add-remove, pure and approximate."""
    fields = []
    for at_delta in (0.0, GRID["delta"][-1]):
        for k in GRID["k"]:
            for d in (each for each in GRID["d"] if each > k):
                for signal in GRID["signal"]:
                    found = grid.at(
                        replaced=False,
                        delta=at_delta,
                        epsilon=_EPSILON,
                        d=d,
                        k=k,
                        signal=signal,
                    )
                    best = min(found, key=lambda name: found[name][1])
                    error = float(found[best][1])
                    name = best if error <= LOST else ""
                    fields.append(Field(at_delta, d, k, signal, name, error))
    return fields


@plots.picture("winners", "The mechanism with the least error, by d, k and signal")
def winners_map(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw a panel for each delta and k: lengths of rows upwards, signals across."""
    fields = winners(shipped_grid())
    names = sorted({field.mechanism for field in fields} - {""})
    colours = dict(zip(names, SERIES, strict=False))
    letters = dict(zip(names, "ABCDEFGH", strict=False))
    deltas, ks = (0.0, GRID["delta"][-1]), GRID["k"]
    across = 1 if narrow else len(ks)
    rows = len(deltas) * len(ks) // across
    row = _NARROW_ROW if narrow else _WIDE_ROW
    keys = len(names) + 1 if narrow else math.ceil((len(names) + 1) / 2)
    height = rows * row + keys * _KEY + 8
    figure = plots.canvas(height, narrow=narrow)
    width = (plots.NARROW if narrow else plots.WIDE) / across
    for index, (at_delta, k) in enumerate((a, b) for a in deltas for b in ks):
        left, top = (index % across) * width, height - (index // across) * row
        budget = "pure" if at_delta == 0 else f"δ = {delta(at_delta)}"
        plots.write(
            figure.add_axes((0, 0, 1, 1), frameon=False, xticks=[], yticks=[]),
            f"{budget}, k = {setting(k)}",
            (left + 8, top - 20),
            weight="bold",
        )
        axes = plots.pixels(
            figure, left + 44, top - row + 42, width - 56, row - 42 - _HEAD - 6
        )
        lengths = [d for d in GRID["d"] if d > k]
        axes.set_xlim(0, len(GRID["signal"]))
        axes.set_ylim(0, len(lengths))
        for field in fields:
            if (field.delta, field.k) != (at_delta, k):
                continue
            x, y = GRID["signal"].index(field.signal), lengths.index(field.d)
            colour = colours.get(field.mechanism, PAPER)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor=RULE))
            plots.told(axes, [x], [y], [_sentence(field)], tile=True)
            axes.text(
                x + 0.5,
                y + 0.5,
                letters.get(field.mechanism, "–"),
                ha="center",
                va="center",
                color=PAPER if field.mechanism else MUTED,
                weight="bold",
            )
        axes.set_xticks(
            np.arange(len(GRID["signal"])) + 0.5, [count(s) for s in GRID["signal"]]
        )
        axes.set_yticks(np.arange(len(lengths)) + 0.5, [f"{d:g}" for d in lengths])
        axes.tick_params(length=0, labelsize=11)
        plots.write(axes, "d", (left + 8, top - _HEAD - 20), color=MUTED, size=11)
        if index // across == rows - 1 or narrow:
            plots.write(
                axes, "signal", (left + 44, top - row + 8), color=MUTED, size=11
            )
    base = figure.add_axes((0, 0, 1, 1), frameon=False, xticks=[], yticks=[])
    for place, name in enumerate([*names, ""]):
        column, line = (0, place) if narrow else (place % 2, place // 2)
        x, y = 8 + column * 380, keys * _KEY - (line + 1) * _KEY + 8
        text = f"{letters[name]}  {name}" if name else "–  all components are lost"
        plots.write(base, text, (x, y), color=colours.get(name, INK), weight="bold")
    return figure, " ".join(map(_sentence, fields))


def _sentence(field: Field) -> str:
    who = field.mechanism or "none"
    budget = "pure" if field.delta == 0 else f"delta {delta(field.delta)}"
    return (
        f"{budget}, k {setting(field.k)}, d {setting(field.d)}, signal "
        f"{setting(field.signal)}: {who}, error {field.error:.3g}."
    )
