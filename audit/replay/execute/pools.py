"""Tasks of a pool of threads, which an execution takes one after the other."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["at_once"]

_WAITED_FOR = (
    *(queue.Queue, queue.SimpleQueue, threading.Event, threading.Condition),
    *(threading.Barrier, threading.Semaphore, type(threading.Lock()), Future),
)


class _Done(Future[Any]):
    """The result of a task; sets of them are in the order in which they were made.

    Their order by address in memory would be noise that is not recorded.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __hash__(self) -> int:
        return self._number


def _may_wait(parts: list[Any]) -> bool:
    """Say whether a function or an argument has what may be waited for, where one sees.

    It is in cells, in globals that code names, in what a function is a method, or a
    part, of; and in the functions that are found there.
    """
    seen: set[int] = set()
    for part in parts:  # which grow
        if isinstance(part, _WAITED_FOR):
            return True
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, partial):
            parts += [part.func, *part.args, *part.keywords.values()]
        elif isinstance(part, MethodType):
            parts += [part.__func__, *getattr(part.__self__, "__dict__", {}).values()]
        elif isinstance(part, FunctionType):
            cells = part.__closure__ or ()
            parts += [getattr(cell, "cell_contents", None) for cell in cells]
            codes = [part.__code__]
            for code in codes:
                parts += [part.__globals__.get(name) for name in code.co_names]
                codes += [c for c in code.co_consts if isinstance(c, CodeType)]
    return False


def at_once(now: Any, real: Any) -> Callable[..., Any]:
    """Return a pool's ``submit`` that executes each task before it returns.

    So tasks draw one after the other, in the mechanism's own thread. Tasks that may
    wait for others, by what they are handed, are left to threads. `now` has the tape of
    the execution, and numbers for tasks.
    """

    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        tape = now.tape
        if tape is None or not tape.is_mine or getattr(self, "_initializer", None):
            return real(self, fn, *args, **kwargs)
        if _may_wait([fn, *args, *kwargs.values()]):
            return real(self, fn, *args, **kwargs)
        made = _Done(next(now.tasks))
        try:
            made.set_result(fn(*args, **kwargs))
        except Exception as error:
            made.set_exception(error)
        return made

    return submit
