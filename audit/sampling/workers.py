"""Who draws: this thread, or the workers of an executor.

Releases are named before any work is done on them (`dpaudit.audit.sampling.sampler`),
and come back in their order. So an audit is the same for no executor, one worker or
eight, on this machine or on a cluster, and when workers die, join, or work twice.

The mechanism and the pair are placed once with each worker, under a hash of their
content (`dpaudit.audit.sampling.parcels`); what is submitted holds their name, seeds,
and numbers of releases: as many as are two seconds of work by what one has cost so far,
or fewer, so that there is work for all. What costs less than its way there and back is
drawn here. Whole batches are read where they were drawn, and counts come back instead
of releases (`dpaudit.audit.game.fitted.Scoring`). None of this changes a result: single
releases do not depend on how they are cut, and batches are never cut.

BLAS rounds by the number of its threads, so it has one with each worker, as in the
audit's own thread (its threads would fight over the cores with the workers besides).
"""

import math
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from contextlib import closing, nullcontext, suppress
from copy import copy
from itertools import chain
from os import cpu_count, getpid
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple
from weakref import finalize

from dpaudit.audit.sampling.draws import Here, Piece, Source, ways_to_draw
from dpaudit.audit.sampling.parcels import Parcel, WorkerSubject, one_thread
from dpaudit.batches import Batch
from dpaudit.errors import DPAuditError, ExecutorError, InputError
from dpaudit.outputs import raised_by_signal

__all__ = ["Workers"]

_TOKEN = token_hex(8)
# Seconds of work: of what is drawn here, and of what is submitted at once.
_WORTH, _LEAST, _MOST = 0.2, 0.1, 2.0
_OVERHEAD = 0.005  # about, of this process for what it submits
_SHARES, _AMPLE = 4, 3  # of a worker in a round, if each is so many times the least
_PLACES = 8  # pairs that workers hold at a time
_PATIENCE, _LOOK_AFTER = 60.0, 5.0  # seconds without any worker
_TIMES = 20  # that a cluster may lose what it holds, without a result in between

_UNSENDABLE = (
    "the mechanism cannot be sent to another process ({}): define it at the top level "
    "of a module, as a function or a dataclass, or use a ThreadPoolExecutor"
)
_COPIED = (
    "the mechanism holds a generator of its own ({}), of which all workers would have "
    "copies in one state, and release the same again and again: let it draw from the "
    "rng that it is handed, or have this process draw"
)
_AGAIN = "; with a store, the same audit goes on from its last checkpoint"
_LOST = (
    "a worker was lost ({}): it was killed or ran out of memory, the mechanism ended "
    "its process, or cannot be imported there" + _AGAIN
)
_GONE = "the scheduler is gone" + _AGAIN
_ALONE = "the cluster has had no worker for a minute; start some, or let it start some"


class _Task(NamedTuple):
    """What is submitted at once: pieces, or parts of one, and whether they are read."""

    pieces: tuple[Piece, ...]
    reading: Parcel | None

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Workers(Here):
    """Draws by workers, and returns what they draw in order.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Or a Dask client.

    Raises
    ------
    InputError
        If it is none.
    """

    def __init__(self, executor: Executor) -> None:
        executor = getattr(executor, "get_executor", lambda: executor)()
        if not callable(getattr(executor, "submit", None)):
            raise InputError(
                f"executor must be a concurrent.futures.Executor, got {executor!r}"
            )
        self._executor = executor
        on_dask = type(executor).__module__.startswith("distributed.")
        self._dask: Any = vars(executor)["_client"] if on_dask else None
        self._parcels: dict[int, tuple[Any, Parcel]] = {}
        # By mechanism and pair: these, so that nothing else has their ids, and where
        # they are.
        self._placed: dict[tuple[int, int], tuple[Source, Any]] = {}
        self._folder: Path | None = None  # for processes of this machine
        self._each: float | None = None  # seconds of a release
        self._counted = (0, -math.inf)  # workers, and when

    def check(self, mechanism: Any = None) -> None:
        """Find out before any work whether the mechanism can be sent to the workers.

        Raises
        ------
        InputError
            If it cannot, or takes a generator along, of which every unit would have a
            copy: the same numbers in each (of other executors than Python's own and
            Dask's this is not known); if a worker on Dask has other versions.
        ExecutorError
            If a Dask cluster has no workers.
        """
        if self._dask is not None:
            self._greet()
        if mechanism is not None and self._sends:
            self._parcel(mechanism)

    def others(self) -> list[Here]:
        if not self._placed:
            return []
        again = copy(self)
        again._each = None  # so that it sends all
        return [again]

    def _greet(self) -> None:
        """Compare the versions of all workers of a cluster with those here."""
        wanted = WorkerSubject.here()
        try:
            # One that starts workers where there is work has none yet.
            self._executor.submit(getpid).result(timeout=_PATIENCE)
            found = self._dask.run(WorkerSubject.differences, wanted, on_error="return")
        except TimeoutError:
            raise ExecutorError(_ALONE) from None
        except Exception as error:
            raise _failure(error, self._dask) from error
        for worker, said in found.items():
            if isinstance(said, OSError):
                continue  # it is gone; who takes its place is asked with a first task
            if isinstance(said, Exception):
                said = f"it has no dpaudit like here: {type(said).__name__}: {said}"
            if said:
                raise InputError(f"worker {worker}: {said}")

    def _parcel(self, mechanism: Any) -> Parcel:
        """Return the mechanism as it was first seen."""
        if id(mechanism) not in self._parcels:
            try:
                parcel = Parcel.of(mechanism, by_value=self._dask is not None)
            except BaseException as error:
                if raised_by_signal(error):
                    raise
                raise InputError(_UNSENDABLE.format(error)) from error
            if parcel.generator:
                raise InputError(_COPIED.format(parcel.generator))
            self._parcels[id(mechanism)] = mechanism, parcel
        return self._parcels[id(mechanism)][1]

    def draw(
        self, source: Source, pieces: Sequence[Piece], room: int, reading: Any = None
    ) -> Generator[Any, None, None]:
        total = sum(piece.size for piece in pieces)
        if self._each is not None and self._each * total < _WORTH:
            for piece in pieces:
                started = time.perf_counter()
                (batch,) = super().draw(source, [piece], room)
                self._note(time.perf_counter() - started, piece.size)
                yield batch
            return
        tasks = self._tasks(source, pieces, room, reading)
        with closing(self._answers(source, tasks, room)) as answers:
            for piece in pieces:
                parts, held = [], 0
                while held < piece.size:
                    part, answer = next(answers)
                    parts.append(answer)
                    held += part.size
                yield parts[0] if len(parts) == 1 else Batch.join(parts)

    def _note(self, seconds: float, size: int) -> None:
        before = seconds / size if self._each is None else self._each
        self._each = (before + seconds / size) / 2

    def _tasks(
        self, source: Source, pieces: Sequence[Piece], room: int, reading: Any
    ) -> Iterator[_Task]:
        """Yield what is submitted, by what a release has cost so far."""
        workers = max(self._count(), 1)
        total = sum(piece.size for piece in pieces)
        most = math.ceil(total / self._number(total, workers))
        asked = None
        if reading is not None and most >= pieces[0].size and self._sends:
            with suppress(Exception):  # else it is read here
                known = source.mechanism, source.pair
                asked = Parcel.of(reading, *known, by_value=self._dask is not None)
        # A worker that cannot read what it draws sends that back.
        most = max(min(most, room // (2 * workers + 1) if asked is None else room), 1)
        whole = asked is not None or ways_to_draw(source.mechanism)[1] is not None
        together: list[Piece] = []
        held = 0
        for side, first, size, unit in pieces:
            if whole and together and held + size > most:
                yield _Task(tuple(together), asked)
                together, held = [], 0
            end = first + size
            while first < end:
                size = end - first if whole else min(end - first, most - held)
                together.append(Piece(side, first, size, min(unit, size)))
                first, held = first + size, held + size
                if held >= most:
                    yield _Task(tuple(together), asked)
                    together, held = [], 0
        if together:
            yield _Task(tuple(together), asked)

    def _number(self, total: int, workers: int) -> int:
        """Return how many tasks so many releases make, by what one has cost so far."""
        if not self._each:
            return _SHARES * workers
        cost, least = total * self._each, max(_LEAST, 1e-9)
        shares = min(cost / (_AMPLE * least), _SHARES * workers)
        number = int(max(min(cost / least, workers), shares, 1))
        number -= number % workers if number > workers else 0  # the same for all
        return max(number, math.ceil(cost / max(_MOST, workers * _OVERHEAD)))

    def _answers(
        self, source: Source, tasks: Iterator[_Task], room: int
    ) -> Generator[tuple[Piece, Any], None, None]:
        """Have tasks carried out; yield each piece with what came of it, in order."""
        waiting: deque[tuple[_Task, Future[Any]]] = deque()
        most = 2 * max(self._count(), 1)
        try:
            for task in chain(tasks, [None]):
                if task is not None:
                    waiting.append((task, self._submit(source, task)))
                while waiting and (
                    task is None
                    or len(waiting) > most
                    or sum(each.size for each, _ in waiting if not each.reading) >= room
                ):
                    first, future = waiting.popleft()
                    seconds, answers = self._result(source, first, future)
                    self._note(seconds, first.size)
                    yield from zip(first.pieces, answers, strict=True)
        finally:
            with suppress(Exception):  # of a client that is closed
                for _, future in waiting:
                    future.cancel()  # after an error; else there are none

    def _submit(self, source: Source, task: _Task) -> "Future[Any]":
        try:
            where = self._place(source)
            what = source.seed, source.key, *task
            return self._executor.submit(_work, _this_process(), where, *what)
        except Exception as error:
            if isinstance(error, DPAuditError):
                raise
            raise _failure(error, self._dask) from error

    def _place(self, source: Source) -> Any:
        """Return the name under which workers find a mechanism and a pair."""
        key = id(source.mechanism), id(source.pair)
        _, placed = self._placed.pop(key, (None, None))
        if placed is None or getattr(placed, "status", "finished") != "finished":
            placed = self._sent(source)
        self._placed[key] = source, placed
        for old in [*self._placed][:-_PLACES]:
            _, gone = self._placed.pop(old)
            if isinstance(gone, Path):
                gone.unlink(missing_ok=True)
        return placed

    def _sent(self, source: Source) -> Any:
        if not self._sends:
            return WorkerSubject(source.mechanism, source.pair)
        parcel = self._parcel(source.mechanism)
        if self._dask is None:
            subject = WorkerSubject(parcel, source.pair)
            try:
                if self._folder is None:
                    self._folder = Path(tempfile.mkdtemp(prefix="dpaudit-"))
                    finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
                return subject.filed(self._folder)
            except OSError:  # there is no room: it goes along with every task
                return subject
        subject = WorkerSubject(parcel, source.pair, WorkerSubject.here())
        for _ in range(_TIMES):
            try:
                return self._dask.scatter(subject, broadcast=True, hash=True)
            except (OSError, TimeoutError):  # a worker dies meanwhile
                time.sleep(1.0)
        raise ExecutorError(_ALONE)

    def _result(
        self, source: Source, task: _Task, future: "Future[Any]"
    ) -> tuple[float, list[Any]]:
        for _ in range(_TIMES):
            try:
                return self._waited(future)
            except CancelledError as error:
                if self._dask is None:
                    raise _failure(error, self._dask) from error
                # With its last worker a cluster loses the pair: it is placed anew.
                future = self._submit(source, task)
        raise ExecutorError(_LOST.format("time and again"))

    def _waited(self, future: "Future[Any]") -> tuple[float, list[Any]]:
        alone = 0.0
        try:
            while self._dask is not None:
                try:
                    return future.result(timeout=_LOOK_AFTER)
                except TimeoutError:
                    if future.done():
                        raise
                    alone = 0.0 if self._count() else alone + _LOOK_AFTER
                    if alone >= _PATIENCE:
                        raise ExecutorError(_ALONE) from None
            return future.result()
        except CancelledError:
            raise
        except DPAuditError:
            self._placed.clear()  # what was written to is not used again
            raise
        except BaseException as error:  # those of the mechanism are outputs
            if raised_by_signal(error):
                raise
            raise _failure(error, self._dask) from error

    @property
    def _sends(self) -> bool:
        """Whether workers are processes that can be told what they hold."""
        return self._dask is not None or isinstance(self._executor, ProcessPoolExecutor)

    def _count(self) -> int:
        """Return how many workers there are, of a cluster with some delay."""
        if self._dask is None:
            return getattr(self._executor, "_max_workers", None) or cpu_count() or 1
        count, when = self._counted
        if not count or time.monotonic() > when + _LOOK_AFTER:
            count = sum(self._dask.nthreads().values())
            self._counted = count, time.monotonic()
        return count


def _this_process() -> tuple[int, str]:
    """Return what no other process has: its children have its token, but not its id."""
    return getpid(), _TOKEN


def _work(
    audit: tuple[int, str],
    where: Any,
    seed: int,
    key: int,
    pieces: tuple[Piece, ...],
    reading: Parcel | None,
) -> tuple[float, list[Any]]:
    """Draw for the audit of that process."""
    # The audit itself sees to its own process, and for longer than any of its tasks.
    with nullcontext() if audit == _this_process() else one_thread():
        return WorkerSubject.found(where).draw(seed, key, pieces, reading)


def _failure(error: BaseException, client: Any) -> ExecutorError:
    """Say what an executor's error means, and what helps."""
    if client is not None and client.status in ("closing", "closed"):
        return ExecutorError(_GONE)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause = _UNSENDABLE if "pickle" in said.lower() else _LOST
    return ExecutorError(cause.format(said))
