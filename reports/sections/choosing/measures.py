"""The grid behind recommendations, and what was recommended held to fresh releases."""

from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.algorithms.estimators.measured import (
    GRID,
    MECHANISMS,
    errors,
    even,
    expected,
    quantiles,
    releases,
    shipped_grid,
    takes,
)
from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record
from dpaudit.streams import stream

__all__ = ["MECHANISMS", "held_out", "measured"]

SHARE = 0.1
"""k times the gap, of the mean squared length of a row."""

_QUICK = {("k-norm-covariance", 0.0): 20, ("k-norm-covariance", 1.0): 10}
"""Up to which d a draw takes less than a fifth of a second, by mechanism and relation.

Beyond it they are left out of the grid, and so of what is recommended."""


def falling(d: int, k: int) -> Array:
    """Return eigenvalues that all differ, with the gap of those that are even.

    Of rows of length 1: the first k fall from four gaps above the next one to one gap,
    and the others evenly to 0.
    """
    gap = SHARE / k
    above = np.linspace(4 * gap, gap, k) if k > 1 else np.array([gap])
    below = 2 * np.arange(d - k, 0, -1) / (d - k)
    middle = (1 - above.sum()) / (below.sum() + k * below[0])
    return np.asarray(
        middle * np.r_[np.full(k, below[0]), below] + np.r_[above, 0 * below]
    )


def measured(cell: Cell) -> list[Record]:
    """Measure one mechanism at one point of the grid.

    Returns
    -------
    list of dict
        One record: ``low``, ``median``, ``high`` of the sine of the largest angle. None
        where the mechanism takes no such point: one component alone, or a delta that
        it does not need.
    """
    point = {name: float(value) for name, value in cell.point.items()}
    name, delta = cell.mechanism, point["delta"]
    d, k, gap = int(point["d"]), int(point["k"]), SHARE / point["k"]
    wanted = entry(name).approximate == (delta > 0) and takes(name, k=k, delta=delta)
    if k >= d or d > _QUICK.get((name, point["replaced"]), d) or not wanted:
        return []
    n = point["signal"] / (point["epsilon"] * gap)
    spectrum = even(gap, d=d, k=k, n=n)
    drawn = errors(
        name, spectrum, n=n, size=cell.size, rng=cell.rng(), **_budget(point)
    )
    return [dict(zip(("low", "median", "high"), quantiles(drawn), strict=True))]


def held_out(cell: Cell) -> list[Record]:
    """Measure one mechanism at a setting, and what was to be expected there.

    The setting is that of the number ``setting``, the same for all mechanisms. The
    eigenvalues of every second one are `falling`, of the others even.

    Returns
    -------
    list of dict
        One record, or none: the coordinates, ``falls``, the ``expected`` error that is
        printed, the ``median`` of releases with other randomness, and what the grid
        that ships has instead (``looked_up``, NaN where it does not reach).
    """
    number = int(cell.point["setting"])
    point = _between(number, cell.options["grid"], cell.seed)
    d, k, gap = int(point["d"]), int(point["k"]), SHARE / point["k"]
    n = max(round(point["signal"] / (point["epsilon"] * gap)), d)
    spectrum = falling(d, k) if number % 2 else even(gap, d=d, k=k, n=n)
    known = expected(cell.mechanism, spectrum, n=n, **_budget(point))
    if known is None:
        return []
    size = min(cell.size, releases(cell.mechanism, d))
    drawn = errors(
        cell.mechanism, spectrum, n=n, size=size, rng=cell.rng(), **_budget(point)
    )
    found = {"expected": known[1], "median": float(np.median(drawn))}
    at = {axis: point[axis] for axis in GRID if axis != "replaced"}
    grid = shipped_grid().at(replaced=bool(point["replaced"]), **at)
    beyond = bool(number % 2) or d > GRID["d"][-1] or cell.mechanism not in grid
    found["looked_up"] = np.nan if beyond else float(grid[cell.mechanism][1])
    return [{**point, "falls": number % 2, **found}]


def _between(setting: int, grid: dict[str, Any], seed: int) -> dict[str, float]:
    """Return a point of which every coordinate is drawn between the ends of an axis."""
    rng = stream(seed, setting)
    point = {
        name: float(np.exp(rng.uniform(*np.log([axis[0], axis[-1]]))))
        for name, axis in grid.items()
        if name not in ("replaced", "delta")
    }
    point["d"] = float(round(point["d"]))
    point["k"] = float(min(round(point["k"]), point["d"] - 1))
    positive = [each for each in grid["delta"] if each > 0]
    approximate = float(np.exp(rng.uniform(*np.log([positive[0], positive[-1]]))))
    delta = approximate if rng.random() < 0.5 else 0.0
    return {"replaced": float(rng.random() < 0.5), "delta": delta, **point}


def _budget(point: dict[str, float]) -> dict[str, Any]:
    """Return what is asked of a mechanism at a point."""
    relation = Relation.REPLACE_ONE if point["replaced"] else Relation.ADD_REMOVE
    budget = {name: point[name] for name in ("epsilon", "delta")}
    return {"k": int(point["k"]), **budget, "relation": relation}
