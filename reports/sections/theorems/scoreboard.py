"""All rows of the scoreboard, and the experiments that they need.

Each paper has a module: its rows, and the grids that only they read. Rows of one grid
share its draws, with all mechanisms that some row asks for.
"""

from dataclasses import replace

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.streaming.measures import streaming_errors
from dpaudit.reports.sections.theorems import analyze_gauss, dp_pca, robust
from dpaudit.reports.sections.theorems.grids import check_grid

__all__ = ["CHANCES", "GRIDS", "ROWS", "experiments"]

_PAPERS = (analyze_gauss, dp_pca, robust)
GRIDS = tuple(grid for paper in _PAPERS for grid in paper.GRIDS)
ROWS = tuple(row for paper in _PAPERS for row in paper.ROWS)
CHANCES = dp_pca.CHANCES


def experiments(size: Size) -> tuple[Experiment, ...]:
    """Return what the rows need that no other section measures.

    Parameters
    ----------
    size : Size
        With ``theorem_draws``, the repetitions, ``theorem_points``, how many values a
        grid has, both 2 or more, and ``theorem_stream``, the n of dp-pca.
    """
    found = []
    for grid in GRIDS:
        every = (*ROWS, *CHANCES)
        names = (row.mechanism for row in every if row.experiment == grid.name)
        mechanisms = tuple(dict.fromkeys(names))
        check_grid(grid, mechanisms)
        if grid.measure is streaming_errors:
            grid = replace(grid, fixed={**grid.fixed, "n": size.theorem_stream})
        found.append(
            Experiment(
                name=grid.name,
                title=f"Theorems, in {grid.variable}",
                source="the theorems' papers",
                measure=grid.measure,
                mechanisms=mechanisms,
                grid={grid.variable: grid.values[: size.theorem_points]},
                repetitions=max(2, round(grid.share * size.theorem_draws)),
                options=grid.fixed,
                effort=grid.effort,
            )
        )
    return tuple(found)
