"""What an execution takes from the system, and leaves behind in the process.

**Entropy** of the system (``os.urandom``, and so ``secrets`` and ``uuid4``) may be
noise, or a name that is not released. So it counts neither as a draw nor as a coin:
bytes come from the seed of the execution, each variant of an execution gets others, and
a note keeps the line that asks for them. If they make a difference, then executions of
one seed have different releases, and the note says where. Devices that are read, and
processes that are started, are treated in the same way.

**The process** is restored after an execution: functions of NumPy and Python that the
code replaced, handlers of signals, the working directory. Changes that may affect later
executions are noted as not followed.
"""

import builtins
import io
import math
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence  # the real ones

from dpaudit.audit.replay.follow.outside import note_outside
from dpaudit.audit.replay.follow.tape import Tape

__all__ = ["global_generators_kept", "system_of"]

_STAYS = "is replaced by the code, and stays so"
_MODULES = (np, np.random, np.linalg, math, random, os, builtins)
_DEVICES = ("/dev/urandom", "/dev/random", "/dev/hwrng")
_ENTROPY = 2**31 + 9  # of the streams that stand for it
_STARTED = "another process is started"
_SIGNALS = tuple(map(int, signal.valid_signals()))
_handler_of = import_module("_signal").getsignal  # no number becomes one with a name


@contextmanager
def system_of(
    tape: Tape, rng: Any, variant: int, owners: Iterable[Any]
) -> Iterator[None]:
    """Let entropy come from a seed in the block, and leave the process as it was.

    Parameters
    ----------
    tape : Tape
        Of the execution.
    rng : RecordingGenerator
    variant : int
        Of one seed, each takes other entropy.
    owners : iterable
        Modules and classes where functions are replaced meanwhile.
    """
    with _as_it_was(tape, owners), _entropy_of(tape, rng, variant):
        yield


@contextmanager
def _entropy_of(tape: Tape, rng: Any, variant: int) -> Iterator[None]:
    """Let entropy come from a seed in the block, and note what else may be random."""

    @cache
    def source() -> Generator:
        key = _ENTROPY, variant, int(rng.follows)
        return Generator(PCG64(SeedSequence(tape.seed, spawn_key=key)))

    def of_seed(name: str, real: Any) -> Callable[..., Any]:
        def call(size: Any, *args: Any) -> bytes:
            if tape.inside and tape.is_mine:
                return tape.inner.bytes(size)
            note_outside(tape, f"{name} is called")
            if not tape.is_mine:
                return bytes(real(size, *args))
            drawn = source().bytes(size)
            rng.may_be_seeds(drawn)
            return drawn

        return call

    def opened(name: str, real: Any) -> Callable[..., Any]:
        def call(file: Any, *args: Any, **kwargs: Any) -> Any:
            named = getattr(type(file), "__fspath__", str)
            if isinstance(file, str | os.PathLike) and named(file) in _DEVICES:
                note_outside(tape, f"{named(file)} is read")
            return real(file, *args, **kwargs)

        return call

    def started(name: str, real: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            note_outside(tape, _STARTED)
            return real(*args, **kwargs)

        return call

    every: list[tuple[Any, str, Callable[[str, Any], Any]]] = [
        *((os, name, of_seed) for name in ("urandom", "getrandom")),
        (random, "_urandom", of_seed),
        *((owner, "open", opened) for owner in (builtins, io, os)),
        *((os, name, started) for name in ("posix_spawn", "posix_spawnp", "system")),
        (subprocess.Popen, "__init__", started),
    ]
    there = [
        (owner, name, vars(owner)[name], made)
        for owner, name, made in every
        if vars(owner).get(name) is not None  # of this system
    ]
    try:
        for owner, name, real, made in there:
            setattr(owner, name, made(name.strip("_"), real))
        yield
    finally:
        for owner, name, real, _ in there:
            setattr(owner, name, real)


@contextmanager
def global_generators_kept() -> Iterator[None]:
    """Put the states of global generators, and the process, back after the block."""
    ours, python = np.random.mtrand._rand, random._inst
    state, other = ours.get_state(legacy=False), python.getstate()
    try:
        with _as_it_was(None):
            yield
    finally:
        ours.set_state(state)
        python.setstate(other)


@contextmanager
def _as_it_was(tape: Tape | None, owners: Iterable[Any] = ()) -> Iterator[None]:
    """Make the process after the block what it was before."""
    every = dict.fromkeys((*_MODULES, *owners))
    modules = [(each, vars(each).copy()) for each in every]
    folder, handlers = os.getcwd(), _handlers()
    alarm = signal.getitimer(signal.ITIMER_REAL) if handlers else (0.0, 0.0)
    try:
        yield
    finally:
        for module, before in modules:
            now = vars(module)
            with suppress(Exception):  # of arrays that are not the same
                if now == before:  # as the same objects are, without a look at each
                    continue
            for name in [n for n, each in before.items() if now.get(n) is not each]:
                setattr(module, name, before[name])
                _note_replaced(tape, module, name)
        for number, handler in handlers:
            if handler is not None and _handler_of(number) is not handler:
                if number == signal.SIGALRM and not alarm[0]:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
                signal.signal(number, handler)
        if os.getcwd() != folder:
            os.chdir(folder)


def _note_replaced(tape: Tape | None, owner: Any, name: str) -> None:
    """Note that code leaves something else where a function was, if it is the first."""
    known = tape is None or any(_STAYS in each.why for each in tape.unfollowed)
    if tape is not None and not known and not name.startswith("_"):
        tape.cannot_follow(f"{owner.__name__}.{name} {_STAYS}")


def _handlers() -> list[tuple[int, Any]]:
    """Return the handlers of signals, None if not Python's own; none in a thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [*zip(_SIGNALS, map(_handler_of, _SIGNALS), strict=True)]
