"""A program that is asked line by line, and may do anything.

Reading and writing are left to threads, so that nothing that the program does (not to
read, not to answer, to answer without end) holds up the caller for longer than the
time limit. That works alike on all systems; polling pipes does not.
"""

import contextlib
import os
import queue
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import IO

from dpaudit.errors import MechanismError

__all__ = ["Conversation", "ProcessCrashed", "ProcessTimedOut"]

_LONGEST = 2**26  # bytes of a reply
_AHEAD = 4  # replies that may lie about unread, so that chatter fills no memory
_GRACE = 1.0  # seconds for a process to end by itself, for a thread to end after it
_LAST_WORDS = 200


class ProcessCrashed(Exception):
    """The program ended without an answer. Its end is an output, not an error."""


class ProcessTimedOut(Exception):
    """The program took longer than it may. That is an output, not an error."""


class Conversation:
    """Questions to a program, one at a time; it is started again whenever it has to be.

    Parameters
    ----------
    argv : sequence of str
    timeout : float
        Seconds for one answer, the start of the program included.
    """

    def __init__(self, argv: Sequence[str], timeout: float) -> None:
        self._argv, self._timeout = argv, timeout
        self._lock = threading.Lock()
        self._process: _LineProcess | None = None

    def ask(self, line: bytes) -> bytes:
        """Return the answer to one line, a line too.

        One that is longer than 64 MiB is cut off there.

        Raises
        ------
        ProcessCrashed, ProcessTimedOut
            Instead of an answer.
        MechanismError
            If the program cannot be started.
        """
        with self._lock:
            process = self._at_rest()
            try:
                reply = process.ask(line, self._timeout)
            except BaseException:  # an interrupt too: a late answer must not be taken
                self._stop()
                raise
            if reply is None:
                self._process = None
                raise ProcessCrashed(process.post_mortem())
            if not reply.endswith(b"\n"):
                self._stop()
            return reply

    def close(self) -> None:
        """End the program."""
        with self._lock:
            self._stop()

    def _at_rest(self) -> "_LineProcess":
        """Return a running program that owes no answer and has given none unasked."""
        if self._process is not None and not self._process.at_rest:
            self._stop()
        if self._process is None:
            self._process = _LineProcess(self._argv)
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


class _LineProcess:
    """One run of a program: requests on its standard input, replies on its output.

    It is killed when it is closed, collected or when the interpreter ends, and with it
    all that it has started.

    Parameters
    ----------
    argv : sequence of str

    Raises
    ------
    MechanismError
        If the program cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise MechanismError(
                f"cannot start {argv[0]!r}: {error.strerror or error}"
            ) from error
        self._owner = os.getpid()
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.Queue[bytes | None] = queue.Queue(_AHEAD)
        self._complaints: deque[bytes] = deque(maxlen=1)
        closed = threading.Event()
        work = (
            (_write, self._process.stdin, self._requests),
            (_read, self._process.stdout, self._replies, closed),
            (_keep_last, self._process.stderr, self._complaints),
        )
        channels = (self._requests, self._replies, closed)
        # They must not hold this object, which could never be collected then.
        threads = [
            threading.Thread(target=target, args=arguments, daemon=True)
            for target, *arguments in work
        ]
        for thread in threads:
            thread.start()
        self._end = weakref.finalize(
            self, _end, self._process, self._owner, threads, channels
        )

    @property
    def at_rest(self) -> bool:
        """Whether it has said nothing since it answered, nor ended, for all we know.

        After a fork, the program goes on talking to the parent.
        """
        return self._owner == os.getpid() and self._replies.empty()

    def ask(self, line: bytes, timeout: float) -> bytes | None:
        """Return the reply to one line, None if the program ended instead.

        Raises
        ------
        ProcessTimedOut
            After `timeout` seconds without a whole line.
        """
        self._requests.put(line)
        try:
            return self._replies.get(timeout=timeout)
        except queue.Empty:
            raise ProcessTimedOut(f"no answer in {timeout:g} s") from None

    def close(self) -> None:
        """Kill the program, if it has not ended, and what it has started."""
        self._end()

    def post_mortem(self) -> str:
        """Say how it ended, and the last line of its standard error."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)  # or it would seem to have died of our signal
        self.close()
        code = self._process.returncode
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        words = b"".join(self._complaints).decode("utf-8", "backslashreplace").strip()
        return f"{how}: {words[:_LAST_WORDS]}" if words else how


def _write(pipe: IO[bytes], requests: "queue.SimpleQueue[bytes | None]") -> None:
    # A program that has ended is noticed by its silence.
    with contextlib.suppress(OSError), pipe:
        while (line := requests.get()) is not None:
            pipe.write(line)
            pipe.flush()


def _read(
    pipe: IO[bytes], replies: "queue.Queue[bytes | None]", closed: threading.Event
) -> None:
    with pipe:
        while (line := pipe.readline(_LONGEST)).endswith(b"\n"):
            replies.put(line)
            if closed.is_set():
                return
        # What has no end for us is an answer, what has none at all is not.
        replies.put(line if len(line) == _LONGEST else None)


def _keep_last(pipe: IO[bytes], lines: "deque[bytes]") -> None:
    with pipe:
        while line := pipe.readline(_LONGEST):
            if line.strip():
                lines.append(line)


def _end(
    process: "subprocess.Popen[bytes]",
    owner: int,
    threads: Sequence[threading.Thread],
    channels: tuple[
        "queue.SimpleQueue[bytes | None]", "queue.Queue[bytes | None]", threading.Event
    ],
) -> None:
    """Kill a process and those that it has started; let the threads run out."""
    if owner != os.getpid():
        return
    requests, replies, closed = channels
    closed.set()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    requests.put(None)
    with contextlib.suppress(queue.Empty):  # room for the one that waits to put
        while True:
            replies.get_nowait()
    for thread in threads:
        thread.join(_GRACE)
