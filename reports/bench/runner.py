"""Carrying out the units of a study that are not in its store yet.

Workers only measure; the one process that started them writes the store. Which worker
does what, and in which order units finish, leaves no trace in a record.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from dpaudit.reports.bench.store import Store
from dpaudit.reports.bench.study import Record, Study, Unit

__all__ = ["carry_out"]


def carry_out(
    study: Study,
    profile: str,
    store: Store,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[Unit, Record]:
    """Finish the work of a profile, and return all its records.

    Parameters
    ----------
    study : Study
    profile : str
    store : Store
        Units found in it are not repeated.
    workers : int
        Processes; 1 works in this one, as does a study that measures times.
    progress : callable, optional
        Called with the number of units done and of all, first for those found.
    """
    units = study.units(profile)
    records = store.load(units)
    tell = progress or (lambda done, total: None)
    tell(len(records), len(units))
    missing = [unit for unit in units if unit not in records]
    alone = workers == 1 or not study.parallel
    work = _here(study, missing) if alone else _spread(study, missing, workers)
    for unit, record, seconds in work:
        store.append(unit, record, seconds)
        records[unit] = record
        tell(len(records), len(units))
    return {unit: records[unit] for unit in units}


def _work(study: Study, unit: Unit) -> tuple[Unit, Record, float]:
    started = time.perf_counter()
    # BLAS rounds differently for every number of threads, and its threads would fight
    # over the cores with the workers.
    with threadpool_limits(limits=1):
        record = study.measure(unit)
    return unit, record, time.perf_counter() - started


def _here(study: Study, units: list[Unit]) -> Iterator[tuple[Unit, Record, float]]:
    for unit in units:
        yield _work(study, unit)


def _spread(
    study: Study, units: list[Unit], workers: int
) -> Iterator[tuple[Unit, Record, float]]:
    # Spawned: a forked copy of a process with BLAS threads may hang.
    executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        futures = [executor.submit(_work, study, unit) for unit in units]
        for future in as_completed(futures):
            yield future.result()
    finally:
        executor.shutdown(cancel_futures=True)
