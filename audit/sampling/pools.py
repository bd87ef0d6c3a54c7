"""Pools of processes on this machine, for audits."""

import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from os import _exit

from dpaudit.validation import check_count

__all__ = ["process_pool"]


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
    from dpaudit.audit.sampling.parcels import WorkerSubject

    WorkerSubject.remove_files()
    _exit(1)
