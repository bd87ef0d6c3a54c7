"""What a command minds that takes long: workers, Ctrl-C, a line of progress."""

import io
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from typing import Any

import click

from dpaudit.cli.terminal import one_line
from dpaudit.errors import InputError
from dpaudit.printable import printable, said

__all__ = ["Interrupt", "auditing", "printing_aside", "watch", "working"]

_NOTE = b"dpaudit: stopping after this round; Ctrl-C again stops at once\n"
_QUIET, _PAUSE = 1.0, 0.1  # seconds before the first line, and between two
_TIMEOUT = 5  # seconds, for a scheduler to answer


class Interrupt:
    """Makes the first Ctrl-C a question, and leaves the second to who was there before.

    Examples
    --------
    >>> with Interrupt() as interrupt:
    ...     interrupt.asked()
    False
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def asked(self) -> bool:
        """Say whether Ctrl-C was pressed."""
        return self._asked

    def __enter__(self) -> "Interrupt":
        # Only the main thread may say what a signal does; and where this one is
        # ignored, as under nohup, it stays ignored.
        here = threading.current_thread() is threading.main_thread()
        if here and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        self._asked = True
        signal.signal(signal.SIGINT, self._before)
        # Not by a stream, which may be in the middle of something.
        with suppress(OSError):
            os.write(2, b"\n" + _NOTE if os.isatty(2) else _NOTE)


@contextmanager
def printing_aside() -> Iterator[None]:
    """Let Python code in the block print to standard error.

    What is under audit may print, or close what it prints to, but results alone go to
    standard output. The workers of a `dpaudit.audit.process_pool` do so by themselves.
    """
    if sys.stderr is None:
        with redirect_stdout(None):
            yield
        return
    aside = _ErrorStream(sys.stderr.buffer, sys.stderr.encoding, "backslashreplace")
    with redirect_stdout(aside):
        try:
            yield
        finally:
            aside.end()


class _ErrorStream(io.TextIOWrapper):
    """Standard error under another name, whose end is not its end."""

    _line = ""

    def write(self, text: str, /) -> int:
        written = super().write(text)
        self.flush()
        self._line = text or self._line
        return written

    def close(self) -> None:
        """Leave it open: it belongs to others."""

    def end(self) -> None:
        """End a line that was begun: what comes next is dpaudit's own."""
        if self._line and not self._line.endswith("\n"):
            with suppress(OSError):
                self.write("\n")


class _LazyPool(Executor):
    """A pool of processes that are started when there is work for them."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: Executor | None = None

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        from dpaudit.audit import process_pool

        if self._pool is None:
            self._pool = process_pool(self._workers)
        return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)


async def _answers(dask: Any, address: str) -> None:
    """Raise if no scheduler answers: a client alone waits for ever if others listen."""
    from asyncio import wait_for

    client = dask.Client(
        address, timeout=_TIMEOUT, set_as_default=False, asynchronous=True
    )
    try:
        await wait_for(client, _TIMEOUT)
    finally:
        await client.close(timeout=1)


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Yield an executor of the Dask cluster whose scheduler is at an address."""
    from asyncio import run

    from dpaudit.audit.sampling.workers import Workers

    if not re.fullmatch(r"([a-z]+://)?\S+:\d+/?", address):
        raise InputError(
            f"--scheduler must be an address such as tcp://HOST:8786, got {address!r}"
        )
    try:
        dask = import_module("distributed")
    except ImportError:
        raise InputError("--scheduler needs the extra 'cluster'") from None
    try:
        run(_answers(dask, address))
    except Exception as error:  # also those of what is there, and is no scheduler
        raise InputError(
            f"--scheduler: no scheduler answers at {address} ({said(error)})"
        ) from None
    with dask.Client(address, timeout=_TIMEOUT, set_as_default=False) as client:
        executor = client.get_executor()
        try:
            Workers(executor).check()
            yield executor
        except BaseException:
            with suppress(Exception):  # of a scheduler that is gone
                executor.shutdown(wait=False)  # it is not waited for
            raise


@contextmanager
def _executor(
    workers: int | None, scheduler: str | None, *, later: bool = False
) -> Iterator[Any]:
    """Yield who works: a cluster, so many processes, one per core, or None for one.

    Processes are started at once, or later, when there is work for them.
    """
    from multiprocessing import active_children

    from dpaudit.audit import process_pool
    from dpaudit.validation import check_count

    if scheduler is not None:
        if workers not in (None, 1):
            raise InputError("--workers and --scheduler exclude each other")
        with _cluster(scheduler) as executor:
            yield executor
        return
    if workers is None:
        workers = os.cpu_count() or 1
    if check_count("workers", workers) == 1:
        yield None
        return
    executor = _LazyPool(workers) if later else process_pool(workers)
    told = threading.excepthook
    try:
        yield executor
    except BaseException:
        # Their work is not waited for, nor is it shown how a thread of the pool fails
        # that finds them dead (Python 3.11, where what they had to do was cancelled).
        threading.excepthook = lambda _: None
        for child in active_children():
            child.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
        threading.excepthook = told


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show what befalls a store like every other message of this program."""
    from dpaudit.audit import StoreWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", StoreWarning)
        usual = warnings.showwarning

        def show(message: Any, category: Any, *rest: Any, **options: Any) -> None:
            if issubclass(category, StoreWarning):
                click.echo(f"dpaudit: {printable(message)}", err=True)
            else:
                usual(message, category, *rest, **options)

        warnings.showwarning = show
        yield


@contextmanager
def watch() -> Iterator[Callable[[Any], None]]:
    """Yield a callback that keeps one line on a terminal, and hardly speaks off it."""
    last = time.monotonic() + _QUIET - _PAUSE
    begun = False

    def show(progress: Any) -> None:
        nonlocal last, begun
        if not begun and progress.resumed_at:
            click.echo(
                f"dpaudit: resumed after {progress.resumed_at:,} releases a side",
                err=True,
            )
        begun = True
        if line is not None and time.monotonic() >= last + _PAUSE:
            last = time.monotonic()
            line(progress)

    with one_line() as line:
        yield show


@contextmanager
def auditing(workers: int, scheduler: str | None) -> Iterator[dict[str, Any]]:
    """Yield what an audit is run with, by the names of the fields of a `Run`."""
    with (
        printing_aside(),
        Interrupt() as interrupt,
        _short_warnings(),
        _executor(workers, scheduler) as executor,
        watch() as progress,
    ):
        yield {
            "executor": executor,
            "progress": progress,
            "should_stop": interrupt.asked,
        }


@contextmanager
def working(
    workers: int | None, scheduler: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what long work is done with, by name: an executor, and the progress."""
    with _executor(workers, scheduler, later=True) as executor, _steps() as show:
        yield {"executor": executor, "progress": show}


@contextmanager
def _steps() -> Iterator[Callable[[Any], None]]:
    """Yield a callback that tells on standard error how far a long command is.

    On a terminal that is one line, elsewhere one for every part of the work.
    """
    told = set[str]()

    def show(progress: Any) -> None:
        if line is not None:
            line("" if progress.done == progress.total else progress)
        elif progress.label not in told or progress.done == progress.total:
            click.echo(str(progress), err=True)
        told.add(progress.label)

    with one_line() as line, _short_warnings():
        yield show
