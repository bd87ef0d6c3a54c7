"""Telling Ctrl-C from what the interrupted code raises by itself.

A mechanism under audit may raise anything, and what it raises is an output. But an
exception may also come out of it that is not its own: Python runs the handlers of
signals in the midst of other code, and what these raise (KeyboardInterrupt for Ctrl-C,
what ends a test that takes too long) goes through that code. Its traceback leads
through the handler, which gives it away. Python's own handler of Ctrl-C alone has no
place in tracebacks; `telling_interrupts` puts one there that has.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

__all__ = ["raised_by_signal", "telling_interrupts"]


def _interrupt(*_: object) -> None:
    """Do what Python does at Ctrl-C, in a frame of its own."""
    raise KeyboardInterrupt


@contextmanager
def telling_interrupts() -> Iterator[None]:
    """Let `raised_by_signal` tell Ctrl-C from a KeyboardInterrupt of other code.

    Other handlers of the signal than Python's own stay as they are, and so do other
    threads: only in the main thread signals are handled.
    """
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if ours and signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raised_by_signal(error: BaseException) -> bool:
    """Say whether the handler of a signal raised it, and not the code that it left.

    That is known of the handlers that are in place now. Where Python's own handles
    Ctrl-C, each KeyboardInterrupt is taken for one.

    Examples
    --------
    >>> with telling_interrupts():
    ...     try:
    ...         raise KeyboardInterrupt
    ...     except KeyboardInterrupt as error:
    ...         raised_by_signal(error)
    False
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    if (
        isinstance(error, KeyboardInterrupt)
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        return True
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    handlers = {_interrupt.__code__, *handlers} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """Return the code of a handler that is a function or a method, None of others."""
    return getattr(getattr(handler, "__func__", handler), "__code__", None)
