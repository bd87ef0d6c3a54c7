"""When an execution that does not end by itself is ended.

Code that draws until a number fits may draw for ever, for example where noise is given
back to it and no draw can fit beside that noise. So an execution has two limits.

**Steps.** A step is a draw, a new array with noise, a look at it, or a request to the
system. An execution that is given noise takes about as many steps as the execution
that the noise comes from. It is ended if it takes a thousand times as many
(`StepCount.given`). An execution on D' is ended if it takes a million more than a
thousand times those on D (`StepCount.beside`).

**Time.** With a budget of seconds no execution takes longer than the budget, or than
one second if the budget is smaller. Each step reads the clock. Code that takes no steps
(``while True: pass``) is ended by another thread (`TimeLimit`), which raises `Ended` in
it. The thread does so only where the innermost function belongs to the code under
audit: never while functions are replaced, or put back. Compiled code runs to its end
first.

Code that catches everything goes on, and is ended again; what it returns does not
count.
"""

import ctypes
import math
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeVar

from dpaudit.audit.replay.follow.places import is_told, place_in, place_of_caller

__all__ = ["Ended", "StepCount", "TimeLimit", "watched"]

R = TypeVar("R")

_TIMES, _FEWEST, _MANY = 1_000, 10_000, 1_000_000
_LEAST_SECONDS = 1.0
_LOOPS = 1_000
_POLL, _LATER = 0.02, 0.25  # seconds: between two looks, and after the steps' own
_GIVEN = (
    "draws, or looks at noise, go on here: {:,} steps beside noise that is given back, "
    "and {:,} in all where it was drawn"
)
_BESIDE = "draws, or looks at noise, go on here on D': {:,} steps, and {:,} on D in all"
_TOO_LONG = (
    "an execution takes longer than the seconds of the budget, and is ended here"
)

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_watching = threading.local()


class Ended(BaseException):
    """An execution went on for too long, and was ended.

    Parameters
    ----------
    place : str
        ``file:line`` of the code under audit.
    why : str
    ordinary : bool
        Whether it had draws of its own alone, so that releases may take as long.
    """

    def __init__(
        self, place: str = "", why: str = _TOO_LONG, *, ordinary: bool = False
    ) -> None:
        super().__init__(why)
        self.place, self.why, self.ordinary = place, why, ordinary


class StepCount:
    """How many steps an execution took, and how many it may take.

    Parameters
    ----------
    most : float
    before : int
        Of the execution beside it.
    why : str

    Attributes
    ----------
    taken : int
    ended : Ended or None
        What was raised; the code may have caught it.

    Examples
    --------
    >>> [StepCount.given(before).most for before in (1, 50, 20_000)]
    [10000, 50000, 1020000]
    """

    def __init__(
        self, most: float = math.inf, before: int = 0, why: str = _GIVEN
    ) -> None:
        self.most, self._before, self._why = most, before, why
        self.taken = 0
        self.ended: Ended | None = None
        watch = TimeLimit.current()
        self._until = math.inf if watch is None else watch.deadline()

    @classmethod
    def given(cls, before: int) -> "StepCount":
        """Return those of an execution that is given the noise of another one."""
        most = max(_FEWEST, min(_TIMES * before, before + _MANY))
        return cls(most, before)

    @classmethod
    def beside(cls, before: int) -> "StepCount":
        """Return those of one on D' that draws by itself, as another one did on D."""
        return cls(_TIMES * before + _MANY, before, _BESIDE)

    def take(self) -> None:
        """Count one more.

        Raises
        ------
        Ended
            If it is one too many, or too late.
        """
        self.taken += 1
        if self.taken > self.most:
            why = self._why.format(int(self.most), self._before)
            self._end(why, ordinary=self._why == _BESIDE)
        if self._until < math.inf and time.perf_counter() > self._until:
            self._end(_TOO_LONG)

    def _end(self, why: str, *, ordinary: bool = False) -> None:
        if self.ended is None:
            self.ended = Ended(place_of_caller(), why, ordinary=ordinary)
        raise self.ended


class TimeLimit:
    """A thread beside this one, which ends what takes longer than so many seconds.

    Without seconds there is none, and nothing ends.

    Parameters
    ----------
    seconds : float, optional
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else max(seconds, _LEAST_SECONDS)
        self._until, self._place, self._struck = math.inf, "?", False
        self._over, self._striking = threading.Event(), threading.Lock()
        self._ident = ctypes.c_ulong(threading.get_ident())

    @staticmethod
    def current() -> "TimeLimit | None":
        """Return the watch of this thread."""
        return getattr(_watching, "watch", None)

    def __enter__(self) -> Self:
        self._outer, _watching.watch = TimeLimit.current(), self
        self._thread = threading.Thread(target=self._run, daemon=True)
        if self.seconds < math.inf:
            self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        _watching.watch = self._outer
        self._over.set()
        if self.seconds < math.inf:
            self._thread.join()

    def deadline(self, times: float = 1.0) -> float:
        """Return when what begins now has taken its seconds, or so many times these."""
        return time.perf_counter() + times * self.seconds

    def call(self, function: Callable[[], R], *, times: float = 1.0) -> R:
        """Call a function, and end it if it takes longer.

        Raises
        ------
        Ended
            Also if the code caught it, and went on.
        """
        # What is struck notices when it enters a function, or goes on with a loop: no
        # later than on entering `_calm`, which is not struck itself.
        before = self._until
        try:
            try:
                self._until = self.deadline(times) + _LATER
                return function()
            finally:
                self._calm(before)
        except Ended as error:
            self._calm(before)
            error.place = error.place or self._place
            raise

    def _calm(self, before: float) -> None:
        """Let nothing be struck from now on; raise if something was."""
        self._until = before
        with self._striking:
            struck, self._struck = self._struck, False
        if struck:
            # What has not come yet comes in a loop. To take it back would leave the
            # interpreter on the watch for it, for ever where a profiler's hook is set.
            for _ in range(_LOOPS):
                pass
            raise Ended(self._place)

    def _run(self) -> None:
        while not self._over.wait(_POLL):
            with self._striking:
                if time.perf_counter() < self._until:
                    continue
                frame = sys._current_frames().get(self._ident.value)
                if frame is not None and _is_called(frame):
                    code, line = frame.f_code, frame.f_lineno
                    self._struck, self._place = True, place_in(code.co_filename, line)
                    _raise_in(self._ident, ctypes.py_object(Ended))


def watched(function: Callable[[], R], *, times: float = 1.0) -> R:
    """Call a function under the watch of this thread, if there is one."""
    watch = TimeLimit.current()
    return function() if watch is None else watch.call(function, times=times)


def _is_called(frame: FrameType) -> bool:
    """Say whether code under audit runs, and was called by a watch."""
    if not is_told(frame.f_code.co_filename):
        return False
    above: FrameType | None = frame
    while above is not None and above.f_code is not TimeLimit.call.__code__:
        above = above.f_back
    return above is not None
