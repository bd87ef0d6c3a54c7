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
from dpaudit.reports.sections.streaming.measures import streaming_errors
from dpaudit.reports.sections.theorems.measures import (
    FLAT,
    GAP,
    check_point,
    oja_error,
    second_moment_errors,
)
from dpaudit.validation import check_positive

__all__ = ["GRIDS", "Grid", "check_grid"]


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


_EPSILONS = tuple(2.0**-i for i in range(6))
_GAPS = tuple(1e4 * 2**i for i in range(6))
_LENGTHS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
_RANKS = tuple(2.0**i for i in range(6))
_DELTA = 1e-6


def _spectrum(
    kind: str, variable: str, values: tuple[float, ...], **fixed: Any
) -> Grid:
    setting = {"spectrum": kind, "delta": _DELTA, **fixed}
    return Grid(
        name=f"theorems-{kind}-{variable}",
        variable=variable,
        values=values,
        fixed=setting,
        measure=second_moment_errors,
        effort=4.0 if variable == "d" else 1.0,
    )


def _oja(variable: str, values: tuple[float, ...], **fixed: float) -> Grid:
    return Grid(
        name=f"theorems-oja-{variable}",
        variable=variable,
        values=values,
        fixed={"delta": _DELTA, **fixed},
        measure=oja_error,
        share=0.25,
        effort=4.0,
    )


GRIDS = (
    _spectrum(FLAT, "k", _RANKS, d=100, epsilon=1.0),
    _spectrum(FLAT, "d", _LENGTHS, k=2, epsilon=1.0),
    _spectrum(FLAT, "epsilon", _EPSILONS, d=100, k=2),
    _spectrum(FLAT, "n", tuple(1e4 * 4**i for i in range(6)), d=100, k=2, epsilon=1.0),
    _spectrum(GAP, "k", _RANKS, d=100, gap=4e4, epsilon=1.0),
    _spectrum(GAP, "d", _LENGTHS, k=2, gap=4e4, epsilon=1.0),
    _spectrum(GAP, "epsilon", _EPSILONS, d=50, k=2, gap=8e4),
    _spectrum(GAP, "gap", _GAPS, d=50, k=2, epsilon=1.0),
    _oja("n", tuple(1000.0 * 2**i for i in range(6)), d=10),
    _oja("d", (5.0, 10.0, 20.0, 40.0, 80.0, 160.0), n=8000),
    Grid(
        name="theorems-dp-pca-epsilon",
        variable="epsilon",
        values=(0.8, 0.6, 0.45, 0.34),
        fixed={"delta": _DELTA, "d": 20},
        measure=streaming_errors,
        most=0.9,
        share=1 / 24,
        effort=10.0,
    ),
)


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
            if grid.measure is second_moment_errors:
                for name in mechanisms:
                    check_point(name, {**grid.fixed, grid.variable: value})
        except InputError as error:
            raise InputError(f"{at}: {error}") from error
