"""One runner for every experiment.

The work is cut into cells in a way that does not depend on who does it, every cell has
a random stream of its own, named by what the cell is, and the records are put together
in the order of the cells: the table is the same for one worker or eight, and a point
of the grid keeps its numbers when other points come or go.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dpaudit.reports.experiments import Experiment
from dpaudit.reports.measures import Cell, Measure, Record

__all__ = ["cells", "run"]

# Repetitions drawn at once: at d = 64, 256 matrices and their temporaries take 40 MiB.
_BATCH = 256


def run(
    experiment: Experiment,
    *,
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
) -> pd.DataFrame:
    """Carry out an experiment.

    Parameters
    ----------
    experiment : Experiment
    executor : concurrent.futures.Executor, optional
        Where to work, unless the experiment is not `parallel`; by default here.
    progress : callable, optional
        Called with the fraction done after every cell.

    Returns
    -------
    pandas.DataFrame
        Tidy: the mechanism, the point of the grid, then what the measure returns.
    """
    work = list(cells(experiment))
    tell = progress or (lambda fraction: None)
    if executor is None or not experiment.parallel:
        found = []
        for done, cell in enumerate(work, start=1):
            found.append(_measure(experiment.measure, cell))
            tell(done / len(work))
    else:
        found = _spread(experiment.measure, work, executor, tell)
    records: list[dict[str, Any]] = [
        {"mechanism": cell.mechanism, **cell.point, **record}
        for cell, several in zip(work, found, strict=True)
        for record in several
    ]
    return pd.DataFrame.from_records(records)


def cells(experiment: Experiment) -> Iterator[Cell]:
    """Yield the units of work of an experiment, in the order of its table.

    Examples
    --------
    >>> from dpaudit.reports.experiments import PROFILES, plan
    >>> _, exact, *_ = plan(PROFILES["quick"], seed=0)
    >>> [(cell.mechanism, cell.point) for cell in cells(exact)][0]
    ('analyze-gauss', {'epsilon': 0.1})
    """
    for mechanism in experiment.mechanisms:
        for values in itertools.product(*experiment.grid.values()):
            point = dict(zip(experiment.grid, values, strict=True))
            for first in range(0, experiment.repetitions, _BATCH):
                yield Cell(
                    mechanism=mechanism,
                    point=point,
                    options=experiment.options,
                    first=first,
                    size=min(_BATCH, experiment.repetitions - first),
                    seed=experiment.seed,
                    key=_key(experiment.name, mechanism, *values, first),
                )


def _key(*parts: str | float) -> tuple[int, ...]:
    """Return what names a stream: checksums of words, the bits of numbers."""
    return tuple(
        zlib.crc32(part.encode())
        if isinstance(part, str)
        else int(np.float64(part).view(np.uint64))
        for part in parts
    )


def _measure(measure: Measure, cell: Cell) -> list[Record]:
    # BLAS rounds differently for every number of threads, and its threads would fight
    # over the cores with the workers.
    with threadpool_limits(limits=1):
        return measure(cell)


def _spread(
    measure: Measure,
    work: list[Cell],
    executor: Executor,
    tell: Callable[[float], None],
) -> list[list[Record]]:
    futures: list[Future[list[Record]]] = [
        executor.submit(_measure, measure, cell) for cell in work
    ]
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            tell(done / len(work))
    finally:
        for future in futures:
            future.cancel()  # after an error or an interruption; else nothing is left
    return [future.result() for future in futures]
