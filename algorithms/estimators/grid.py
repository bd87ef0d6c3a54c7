r"""Errors of mechanisms for private PCA, measured once on a grid of settings.

The coordinates are the length d of a row, the number k of components, the budget, the
relation, and

.. math:: \text{signal} = \frac{n \, \varepsilon \, \text{gap}}{R^2}

with n rows no longer than R, and the gap that separates the k-th eigenvalue of their
mean second moment from the next. The k largest eigenvalues are equal, and so are those
below a gap of R^2/(10 k), in random axes. Every mechanism that reads the second moment
alone, and whose claim is proven, is on the grid with the median of its error and the
quantiles between which four of five releases are. Between its points logarithms are
interpolated. ``dpaudit report run recommend-grid`` measures it.
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from dpaudit.arrays import Array

__all__ = ["GRID", "Grid", "shipped_grid"]

GRID: Mapping[str, tuple[float, ...]] = {
    "replaced": (0.0, 1.0),
    "delta": (0.0, 1e-9, 1e-5),
    "epsilon": (0.1, 1.0, 10.0),
    "d": (2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    "k": (1.0, 3.0, 10.0),
    "signal": (10.0, 30.0, 100.0, 1000.0, 10_000.0),
}
"""Where mechanisms were measured; pure ones at delta = 0 alone, for any delta."""

_FILE = "recommendations.csv"


@dataclass(frozen=True)
class Grid:
    """Measured errors.

    Parameters
    ----------
    errors : mapping of str to ndarray
        By mechanism: low, median and high at every point of `GRID`, with the digits
        they are shown with, shape (2, 3, 3, 6, 3, 5, 3); NaN where it was not measured.
    origin : str
        The command that measured them, and the version of dpaudit.
    """

    errors: Mapping[str, Array]
    origin: str

    @classmethod
    def parse(cls, text: str) -> "Grid":
        """Read the table that ``dpaudit report run recommend-grid`` writes.

        Lines that begin with # say where it is from.
        """
        lines = text.splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        shape = (*map(len, GRID.values()), 3)
        errors: dict[str, Array] = {}
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            place = tuple(
                int(np.argmin(np.abs(np.array(points) - float(row[axis]))))
                for axis, points in GRID.items()
            )
            found = errors.setdefault(row["mechanism"], np.full(shape, np.nan))
            found[place] = [float(row[x]) for x in ("low", "median", "high")]
        return cls(errors, " ".join(comments))

    def at(
        self,
        *,
        replaced: bool,
        delta: float,
        epsilon: float,
        d: float,
        k: float,
        signal: float,
    ) -> dict[str, Array]:
        """Return low, median and high of every mechanism that was measured nearby.

        At a point of the grid these are the very numbers that are kept. What is off the
        grid is taken at its end.
        """
        point = {"epsilon": epsilon, "d": d, "k": k, "signal": signal}
        found = {}
        for mechanism, errors in self.errors.items():
            here = errors[int(replaced)]
            if not (_measured(here, "d", d) and _measured(here, "k", k)):
                continue
            value = _interpolated(here[0], point)
            if delta > 0 and value is None:
                value = _interpolated(here[1:], {"delta": delta, **point})
            if value is not None:
                found[mechanism] = value
        return found


def _measured(errors: Array, axis: str, value: float) -> bool:
    """Say whether a value is between two of an axis that were measured, or one of them.

    Of the axes after the relation; what is off the grid is at its end.
    """
    place = tuple(GRID).index(axis) - 1
    others = tuple(i for i in range(errors.ndim) if i != place)
    there = np.array(GRID[axis])[(~np.isnan(errors)).any(axis=others)]
    clamped = min(max(value, GRID[axis][0]), GRID[axis][-1])
    return bool(len(there) and there[0] <= clamped <= there[-1])


@cache
def shipped_grid() -> Grid:
    """Return the grid that ships with dpaudit."""
    path = files("dpaudit.algorithms.estimators").joinpath(_FILE)
    return Grid.parse(path.read_text(encoding="utf-8"))


def _interpolated(values: Array, point: Mapping[str, float]) -> Array | None:
    """Return what is between the points of a grid, linear in logarithms.

    Corners that were not measured are left out; None if all of those near were not.
    """
    places, weights = [0], np.ones(1)
    flat = values.reshape(-1, values.shape[-1])
    for axis, wanted in point.items():
        points = [each for each in GRID[axis] if each > 0]
        value = min(max(wanted, points[0]), points[-1])
        low = (
            min(int(np.searchsorted(points, value, side="right")), len(points) - 1) - 1
        )
        share = math.log(value / points[low]) / math.log(points[low + 1] / points[low])
        places = [
            place * len(points) + index for place in places for index in (low, low + 1)
        ]
        weights = np.outer(weights, [1 - share, share]).ravel()
    corners = flat[places]
    weights = np.where(np.isnan(corners[:, 0]), 0.0, weights)
    used = weights > 0
    if not used.any():
        return None
    if used.sum() == 1:  # what was measured is not rounded once more
        return np.asarray(corners[used][0])
    return np.asarray(np.exp(weights[used] @ np.log(corners[used]) / weights.sum()))
