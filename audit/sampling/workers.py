"""Who draws: this thread, or the workers of an executor.

Units of work are cut, and named, before any work is done on them
(`dpaudit.audit.sampling.sampler`), and come back in their order. So an audit is the
same for no executor, one worker or eight, on this machine or on a cluster.

Two things differ between a worker and the audit's own thread, and are made equal here.
BLAS rounds by the number of its threads, so it has one everywhere (its threads would
fight over the cores with the workers besides). A dataset that has travelled to another
process can be written to, so it is locked again.
"""

import io
import pickle
import random
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context, parent_process
from os import _exit, getpid
from secrets import token_hex
from typing import Any

import numpy as np

from dpaudit.audit.sampling.draws import Here, Task, draw_unit, single_threaded
from dpaudit.batches import Batch
from dpaudit.errors import DPAuditError, ExecutorError, InputError, MechanismError
from dpaudit.neighbours import WRITTEN, checksum
from dpaudit.object_pairs import ObjectPair
from dpaudit.outputs import raised_by_signal
from dpaudit.validation import check_count

__all__ = ["Workers", "process_pool"]

_TOKEN = token_hex(8)

_UNSENDABLE = (
    "the mechanism cannot be sent to another process ({}): define it at the top level "
    "of a module, as a function or a dataclass, or use a ThreadPoolExecutor"
)
_COPIED = (
    "the mechanism holds a generator of its own ({}), of which all workers would have "
    "copies in one state, and release the same again and again: let it draw from the "
    "rng that it is handed, or have this process draw"
)
_GENERATORS = (
    np.random.Generator,
    np.random.BitGenerator,
    np.random.RandomState,
    random.Random,
)
_LOST = (
    "a worker was lost ({}): it was killed or ran out of memory, the mechanism ended "
    "its process, or cannot be imported there; with a store, the same audit goes on "
    "from its last checkpoint"
)


class _Sent(pickle.Pickler):
    """Pickles to nowhere, and notes a generator on the way."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.generator: Any = None

    def persistent_id(self, obj: Any) -> None:
        if self.generator is None and isinstance(obj, _GENERATORS):
            self.generator = obj


class Workers(Here):
    """Carries out units of work, and returns them in order.

    Parameters
    ----------
    executor : concurrent.futures.Executor

    Raises
    ------
    InputError
        If it is none.
    """

    def __init__(self, executor: Executor) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InputError(
                f"executor must be a concurrent.futures.Executor, got {executor!r}"
            )
        self._executor = executor

    def check(self, mechanism: Any) -> None:
        """Find out before any work whether the mechanism can be sent to the workers.

        Raises
        ------
        InputError
            If it cannot, or takes a generator along, of which every unit of work would
            have a copy: the same numbers in each. Only of Python's own pools of
            processes is this known.
        """
        if isinstance(self._executor, ProcessPoolExecutor):
            sent = _Sent()
            try:
                sent.dump(mechanism)
            except BaseException as error:
                if raised_by_signal(error):
                    raise
                raise InputError(_UNSENDABLE.format(error)) from error
            if sent.generator is not None:
                raise InputError(_COPIED.format(type(sent.generator).__name__))

    def draw(
        self, tasks: Iterable[Task], in_flight: int
    ) -> Generator[Batch, None, None]:
        waiting: deque[Future[Batch]] = deque()
        try:
            for task in tasks:
                waiting.append(self._submit(task))
                if len(waiting) >= in_flight:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()  # after an error; else there are none

    def _submit(self, task: Task) -> "Future[Batch]":
        try:
            return self._executor.submit(_draw_for, _this_process(), *task)
        except Exception as error:
            raise _failure(error) from error


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes for `audit`, to be used in a ``with`` statement.

    Unlike those of a plain pool its workers leave Ctrl-C to the process that started
    them, end when it ends, however it ends, and print to standard error.

    Parameters
    ----------
    workers : int
        >= 1.

    Examples
    --------
    >>> with process_pool(2) as executor:
    ...     executor.submit(divmod, 7, 3).result()
    (2, 1)
    """
    # Spawned: a forked copy of a process with BLAS threads may hang.
    executor = ProcessPoolExecutor(
        check_count("workers", workers),
        mp_context=get_context("spawn"),
        initializer=_begin,
    )
    if threading.current_thread() is not threading.main_thread():
        return executor
    # A worker is born deaf to Ctrl-C, or it would die of one before it can say so.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in range(workers):
            executor.submit(int)  # each has one more worker started
    finally:
        signal.signal(signal.SIGINT, before)
    return executor


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr  # what workers print is no part of any result
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    _exit(1)


def _this_process() -> tuple[int, str]:
    """Return what no other process has: its children have its token, but not its id."""
    return getpid(), _TOKEN


def _draw_for(audit: tuple[int, str], *task: Any) -> Batch:
    """Draw for the audit of that process."""
    mechanism, data, *rest = task
    data = ObjectPair.locked(data)
    # The audit itself sees to its own process, and for longer than any of its tasks.
    here = audit == _this_process()
    of_rows = isinstance(data, np.ndarray) and data.dtype == np.float64
    before = checksum(data) if of_rows else None
    with nullcontext() if here else single_threaded():
        drawn = draw_unit(mechanism, data, *rest)
    if of_rows and checksum(data) != before:  # of a copy that is not used elsewhere
        raise MechanismError(WRITTEN)
    return drawn


def _result(future: "Future[Batch]") -> Batch:
    try:
        return future.result()
    except DPAuditError:
        raise
    except BaseException as error:  # those of the mechanism are outputs
        if raised_by_signal(error):
            raise
        raise _failure(error) from error


def _failure(error: BaseException) -> ExecutorError:
    """Say what an executor's error means, and what helps."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause = _UNSENDABLE if "pickle" in said.lower() else _LOST
    return ExecutorError(cause.format(said))
