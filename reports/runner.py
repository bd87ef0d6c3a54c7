"""One runner for every long command: the report, the studies of the auditor, and more.

Work comes as jobs that stand alone. What a job is, and nothing else, decides its
record: its seed derives from that, so which worker does it, in which order jobs end and
what was interrupted in between leave no trace. Finished jobs are kept in a store
(`dpaudit.reports.store`), and are not done again. Workers only work; the one process
that started them writes the store.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    as_completed,
)
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from dpaudit.audit.sampling.draws import single_threaded
from dpaudit.audit.sampling.parcels import Parcel
from dpaudit.errors import ExecutorError
from dpaudit.reports.store import WorkStore, as_kept


@dataclass(frozen=True)
class Job:
    """One unit of work."""

    name: str  # all that it is
    seed: int
    # travels to other processes; returns the record, JSON-ready but for NumPy's numbers
    work: Callable[[], Any]
    label: str  # what it is part of, for who looks on
    # roughly, its share of the time; for the time left and for the order
    effort: float = 1.0
    alone: bool = False  # true for what neighbours on the same machine would disturb


@dataclass(frozen=True)
class Failure:
    """What stands in the place of the record of a job that raised an exception."""

    error: Exception


@dataclass(frozen=True)
class WorkProgress:
    """How far the work is.

    >>> print(WorkProgress("Privacy wall", 3, 60, 0.05, 190.0))
      5%  Privacy wall, 3 of 60, about 4 min left
    """

    label: str  # what was finished last
    # done, total: jobs
    done: int
    total: int
    fraction: float  # of the effort, in [0, 1]
    # about how many seconds it will take; None if there is nothing to tell from
    left: float | None = None

    def __str__(self) -> str:
        text = f"{self.fraction:4.0%}  {self.label}, {self.done:,} of {self.total:,}"
        if self.left is None or self.done == self.total:
            return text
        if self.left < 60:
            return f"{text}, less than a minute left"
        return f"{text}, about {-(-self.left // 60):,.0f} min left"


def carry_out(
    jobs: Sequence[Job],
    *,
    store: WorkStore | None = None,
    executor: Executor | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
    go_on: bool = False,
) -> dict[str, Any]:
    """Return the record of every job by its name, in the order of the jobs.

    ``store``: jobs that are in it are not done again. ``executor``: where to work, but
    for jobs that want to be alone; by default here. ``progress``: called first for what
    was found in the store, then after every job. ``go_on``: whether a job that raises
    an exception has a `Failure` for a record. By default the exception is raised, when
    all that had ended before is kept.

    Raises `ExecutorError` if a worker was lost.
    """
    jobs = list({job.name: job for job in jobs}.values())  # the same is done once
    kept = {} if store is None else store.load([job.name for job in jobs])
    found: dict[str, Any] = dict(kept)
    missing = [job for job in jobs if job.name not in found]
    started, ahead = time.monotonic(), sum(job.effort for job in missing)
    total = sum(job.effort for job in jobs)
    behind = 0.0

    def tell(label: str) -> None:
        if progress is not None:
            seconds, rest = time.monotonic() - started, ahead - behind
            fraction = 1 - rest / total if len(found) < len(jobs) else 1.0
            left = seconds * rest / behind if behind else None
            progress(WorkProgress(label, len(found), len(jobs), fraction, left))

    if jobs:
        tell((missing or jobs)[0].label)
    with nullcontext() if store is None or not missing else store.held():
        for job, record, seconds in _outcomes(missing, executor):
            if isinstance(record, Failure) and not go_on:
                raise record.error
            if not isinstance(record, Failure):
                if store is not None:
                    store.add(job.name, job.seed, record, seconds=seconds)
                record = as_kept(record)
            found[job.name] = record
            behind += job.effort
            tell(job.label)
    return {job.name: found[job.name] for job in jobs}


def _outcomes(
    jobs: list[Job], executor: Executor | None
) -> Iterator[tuple[Job, Any, float]]:
    """Yield every job with its record, or the failure to have one, and its seconds."""
    spread = [] if executor is None else [job for job in jobs if not job.alone]
    if executor is not None and spread:
        # The long ones first, so that no worker is left with one in the end.
        spread.sort(key=lambda job: -job.effort)
        futures: dict[Future[tuple[Any, float]], Job] = {}
        on_dask = type(executor).__module__.startswith("distributed.")
        try:
            for job in spread:
                work = _Sent.of(job.work) if on_dask else job.work
                futures[executor.submit(_timed, work)] = job
            for future in as_completed(futures):
                yield futures[future], *_outcome(future)
        except Exception as error:
            if not _lost(error):
                raise
            raise ExecutorError(
                "a worker process ended without notice; what was finished is kept, and "
                "the same command goes on from there"
            ) from error
        finally:
            for future in futures:
                future.cancel()  # after an error or an interruption; else none is left
    taken = {job.name for job in spread}
    for job in jobs:
        if job.name not in taken:
            here: Future[tuple[Any, float]] = Future()
            try:
                here.set_result(_timed(job.work))
            except Exception as error:
                here.set_exception(error)
            yield job, *_outcome(here)


def _outcome(future: Future[tuple[Any, float]]) -> tuple[Any, float]:
    error = future.exception()
    if error is not None and (_lost(error) or not isinstance(error, Exception)):
        raise error
    return future.result() if error is None else (Failure(error), 0.0)


def _lost(error: BaseException) -> bool:
    """Say whether it is who works that failed, rather than the work."""
    of_dask = type(error).__module__.startswith("distributed.")
    return of_dask or isinstance(error, BrokenExecutor | CancelledError)


@dataclass(frozen=True)
class _Sent:
    """Work as it goes to Dask, in one piece.

    The arrays in it would arrive at any address. Those that are not aligned NumPy
    multiplies in another way, which rounds otherwise.
    """

    parcel: Parcel

    @classmethod
    def of(cls, work: Callable[[], Any]) -> "_Sent":
        return cls(Parcel.of(work, by_value=True))

    def __call__(self) -> Any:
        return self.parcel.opened()()


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    # BLAS rounds differently for every number of threads, and its threads would fight
    # over the cores with the workers.
    with single_threaded():
        record = work()
    return record, time.perf_counter() - started
