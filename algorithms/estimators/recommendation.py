r"""Which mechanism for private PCA to take: what was measured once, looked up.

How far noise turns the principal components depends on few numbers: the length d of a
row, the number k of components, the budget and the relation, and on

.. math:: \text{signal} = \frac{n \, \varepsilon \, \text{gap}}{R^2}

with n rows no longer than R, and the gap that separates the k-th eigenvalue of their
mean second moment from the next. (The noise of a mechanism that releases the second
moment has a law that no data change, and where it is small the components turn by the
noise over n times the gap; for all of them scaling the rows scales R^2 and the gap.)
On a grid of these numbers every mechanism that reads the second moment alone, and whose
claim is proven, was run on a second moment with k equal eigenvalues, a gap, and equal
ones below it, in random axes. Kept is the sine of the largest angle between the
components and those without noise: its median, and the quantiles between which four of
five releases are. Between the points of the grid logarithms are interpolated.

`recommend` looks them up; the estimator's ``mechanism="auto"`` is its answer where
neither the number of rows nor the gap is known, among the mechanisms that release a
second moment: of others some release nothing where the signal is too weak. ``dpaudit
report run recommend-grid`` measures the grid (`dpaudit.reports.sections.choosing`).
"""

import csv
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["GRID", "Choice", "Grid", "Recommendation", "recommend", "shipped_grid"]

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
_USUAL_SHARE = 0.1  # of R^2/k: the gap for which errors are shown where none is given
_INTERPOLATED = ("epsilon", "d", "k", "signal")


@dataclass(frozen=True)
class Choice:
    """A mechanism, and the error that it was measured to have.

    Parameters
    ----------
    mechanism : str
        Name in the catalogue.
    error, low, high : float
        The sine of the largest angle between the released components and those without
        noise: the median of releases, and the quantiles at 10 % and 90 %.
    """

    mechanism: str
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Recommendation:
    """Mechanisms, the best one first.

    Parameters
    ----------
    choices : tuple of Choice
    notes : tuple of str
        What was assumed, and what was not measured.
    """

    choices: tuple[Choice, ...]
    notes: tuple[str, ...] = ()


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

        At a point of the grid these are the very numbers that are kept.
        """
        point = {"epsilon": epsilon, "d": d, "k": k, "signal": signal}
        beyond = max(signal / GRID["signal"][-1], 1.0)
        slices = [0] if delta == 0 else [0, _nearest("delta", delta)]
        found = {}
        for mechanism, errors in self.errors.items():
            here = errors[int(replaced)]
            if not (_measured(here, "d", d) and _measured(here, "k", k)):
                continue
            for place in slices:
                value = _interpolated(here[place], point)
                if value is not None:
                    found[mechanism] = value / beyond
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


def recommend(
    *,
    d: int,
    k: int,
    epsilon: float,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
    n: int | None = None,
    gap: float | None = None,
    row_norm: float = 1.0,
    among: Collection[str] | None = None,
    grid: Grid | None = None,
) -> Recommendation:
    """Return the mechanisms for private PCA with the least measured error.

    Where n and the gap are known they are ranked by their errors there. Otherwise the
    first is the one that is never much worse than the best: mechanisms are ranked by
    the largest ratio of their error to the least one, over all signals of the grid.

    Parameters
    ----------
    d, k : int
        Columns, and components; k < d.
    epsilon, delta : float
        The budget; delta = 0 asks for pure DP.
    relation : Relation
    n : int, optional
        Rows.
    gap : float, optional
        Between the k-th and the next eigenvalue of the mean second moment of the rows,
        in their units; at most row_norm^2/k.
    row_norm : float
        Bound on the length of a row.
    among : collection of str, optional
        The mechanisms that are to be compared.
    grid : Grid, optional
        Default: the one that ships with dpaudit.

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        If an argument is not what it should be.

    Examples
    --------
    >>> found = recommend(d=20, k=3, epsilon=1.0, delta=1e-6, n=100_000, gap=0.05)
    >>> found.choices[0].mechanism
    'private-subspace'
    """
    check_count("k", k)
    check_count("d", d, minimum=k + 1)
    check_positive("epsilon", epsilon)
    check_fraction("delta", delta, allow_zero=True)
    check_positive("row_norm", row_norm)
    grid = shipped_grid() if grid is None else grid
    widest = row_norm**2 / k
    if n is not None:
        check_count("n", n)
    if gap is not None:
        check_positive("gap", gap, largest=widest * (1 + 1e-9))
    notes = list(_outside(d=d, k=k, epsilon=epsilon, delta=delta))

    def at(signal: float) -> dict[str, Array]:
        found = grid.at(
            replaced=relation is Relation.REPLACE_ONE,
            delta=delta,
            epsilon=epsilon,
            d=d,
            k=k,
            signal=signal,
        )
        return {x: found[x] for x in found if among is None or x in among}

    shown_gap = _USUAL_SHARE * widest if gap is None else gap
    signal = math.inf if n is None else n * epsilon * shown_gap / row_norm**2
    if n is not None and gap is not None:
        shown = at(signal)
        rank = {name: float(error[1]) for name, error in shown.items()}
        notes += _beyond(signal)
    else:
        everywhere = [at(each) for each in GRID["signal"]]
        rank = {
            name: max(
                float(found[name][1] / min(error[1] for error in found.values()))
                for found in everywhere
            )
            for name in everywhere[0]
        }
        what = "neither n nor a gap is" if n is None and gap is None else "no gap is"
        what = "n is not" if n is None and gap is not None else what
        notes.append(
            f"{what} given: ranked by the largest ratio to the least error, over all "
            "signals measured"
        )
        if n is None:
            signal = GRID["signal"][len(GRID["signal"]) // 2]
            notes.append(f"errors are those at n epsilon gap/row_norm^2 = {signal:g}")
        else:
            notes.append(f"errors are those for a gap of {shown_gap:g}")
            notes += _beyond(signal)
        shown = at(signal)
    order = sorted(rank, key=lambda name: (rank[name], shown[name][1]))
    choices = (Choice(x, *(float(shown[x][i]) for i in (1, 0, 2))) for x in order)
    return Recommendation(tuple(choices), tuple(notes))


@cache
def shipped_grid() -> Grid:
    """Return the grid that ships with dpaudit."""
    path = files("dpaudit.algorithms.estimators").joinpath(_FILE)
    return Grid.parse(path.read_text(encoding="utf-8"))


def _outside(**point: float) -> Iterator[str]:
    """Say of which numbers the grid has no measurement, and what is taken instead."""
    for axis, value in point.items():
        points = [each for each in GRID[axis] if each > 0]
        if value > 0 and not points[0] <= value <= points[-1]:
            end = points[0] if value < points[0] else points[-1]
            yield f"{axis} = {value:g} is outside the grid: measured at {end:g}"


def _beyond(signal: float) -> list[str]:
    """Say so if a signal is off the grid."""
    first, last = GRID["signal"][0], GRID["signal"][-1]
    if signal < first:
        return [
            f"n epsilon gap/row_norm^2 = {signal:.3g} is below the grid: measured at "
            f"{first:g}, where hardly anything is found"
        ]
    if signal > last:
        return [
            f"n epsilon gap/row_norm^2 = {signal:.3g} is beyond the grid: errors "
            f"measured at {last:g} are taken to fall like 1/n"
        ]
    return []


def _nearest(axis: str, value: float) -> int:
    """Return the positive point of an axis that is nearest, in ratio."""
    ratios = [abs(math.log(p / value)) if p > 0 else math.inf for p in GRID[axis]]
    return int(np.argmin(ratios))


def _interpolated(values: Array, point: Mapping[str, float]) -> Array | None:
    """Return what is between the points of a grid, linear in logarithms.

    Corners that were not measured are left out; None if all of those near were not.
    """
    places, weights = [0], np.ones(1)
    flat = values.reshape(-1, values.shape[-1])
    for axis in _INTERPOLATED:
        points = GRID[axis]
        value = min(max(point[axis], points[0]), points[-1])
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
