"""The grids of the scoreboard: what is measured for theorems, one variable at a time.

A profile takes the first points of a grid, as many as its size says, so that a larger
one only adds to it. Each value is inside the regime of its theorem and the range of its
mechanism, or the grid is refused by name (`check_grid`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from dpaudit.errors import InputError
from dpaudit.reports.experiment import Measure
from dpaudit.reports.sections.theorems import measures
from dpaudit.validation import check_positive

__all__ = ["Grid", "check_grid", "grid_of"]


@dataclass(frozen=True)
class Grid:
    """One variable of a measurement, all else fixed.

    Parameters
    ----------
    name : str
        Of its experiment.
    variable : str
        Which coordinate changes.
    values : tuple of float
        The first of them are taken, two or more.
    fixed : mapping of str to object
        The other coordinates.
    measure : callable
    most : float
        The largest value in the regime of the theorem, or above all of them.
    share : float
        Of the repetitions of a profile.
    effort : float
        See `dpaudit.reports.experiment.Experiment`.
    """

    name: str
    variable: str
    values: tuple[float, ...]
    fixed: Mapping[str, Any]
    measure: Measure
    most: float = inf
    share: float = 1.0
    effort: float = 1.0


def grid_of(
    name: str,
    variable: str,
    values: tuple[float, ...],
    measure: Measure,
    *,
    most: float = inf,
    share: float = 1.0,
    effort: float = 1.0,
    **fixed: Any,
) -> Grid:
    """Return a `Grid` whose experiment is ``theorems-`` and the name."""
    whole = f"theorems-{name}"
    return Grid(whole, variable, values, fixed, measure, most, share, effort)


def check_grid(grid: Grid, mechanisms: Sequence[str]) -> None:
    """Raise `InputError` if a value is outside a mechanism's range or a regime."""
    if len(grid.values) < 2 or len(set(grid.values)) < len(grid.values):
        raise InputError(
            f"grid {grid.name!r} must have two different values or more, got "
            f"{grid.values}"
        )
    for value in grid.values:
        at = f"grid {grid.name!r} at {grid.variable} = {value}"
        try:
            check_positive(grid.variable, value, largest=grid.most)
            if grid.measure is measures.second_moment_errors:
                for name in mechanisms:
                    measures.check_point(name, {**grid.fixed, grid.variable: value})
        except InputError as error:
            raise InputError(f"{at}: {error}") from error
