r"""Programs in any language, as mechanisms.

The program reads requests on its standard input and writes releases on its standard
output, one line each, in JSON, until its input ends::

    <- {"data": [[0.3], [0.9]], "seed": 1234567}
    -> 1.0723
    <- {"data": [[0.3], [0.9]], "seed": 7654321}
    -> {"mean": [0.2, 0.1], "count": 3}

1. ``data`` is the list of rows, and ``seed`` an integer in [0, 2^31), drawn anew for
   every request: the program seeds its generator with it, or takes fresh randomness,
   which has to be said (``seedable=False``). It keeps nothing from one request to the
   next.
2. A reply is a number, a list of lists of numbers, or an object whose values are such.
   NaN, Infinity and -Infinity may be written so. Flush after every line.
3. All else on standard output counts as an answer: write diagnostics to
   standard error.

Batched programs (``batched=True``) get a ``size`` too, and answer with a list of that
many releases, or with an object of such lists::

    <- {"data": [[0.3], [0.9]], "seed": 1234567, "size": 3}
    -> [1.0723, 0.4411, 1.9046]

A mechanism may leak by failing, so that failures are outputs that an audit looks at
like any other: to end without an answer is to raise `ProcessCrashed`, to take too long
to raise `ProcessTimedOut`, and a line that is no JSON is the release of that text. For
the next request the program is started again, if it has to be. A program that does
nothing but fail is an error (`~dpaudit.errors.MechanismError`) and no leak.

What is in the program is no part of the mechanism that dpaudit sees: a witness names
the command, and a store (`dpaudit.audit.keeping.store`) does not notice that its files
have changed.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.adapters.base import Adapter
from dpaudit.adapters.process import Conversation, ProcessCrashed, ProcessTimedOut
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.streams import draw_seed
from dpaudit.validation import Positive

__all__ = [
    "BadReply",
    "CommandMechanism",
    "ProcessCrashed",
    "ProcessTimedOut",
    "from_command",
]


def _words(name: str, argv: Any) -> tuple[str, ...]:
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence) or not argv:
        raise InputError(
            f"{name} must be a sequence of words, the program first, got {argv!r}"
        )
    for word in argv:
        if not isinstance(word, str | os.PathLike):
            raise InputError(
                f"{name} must be a sequence of strings, got {word!r} in it"
            )
    return tuple(os.fspath(word) for word in argv)


class BadReply(Exception):
    """A batched program answered with something else than so many releases."""


@dataclass(frozen=True)
class CommandMechanism(Adapter):
    """A program as a mechanism: one process, started when it is first needed.

    Parameters
    ----------
    argv : tuple of str
        See `from_command`, as for the rest.
    timeout : float
    seedable : bool
    claim : Claim, optional
    relation : Relation, optional
    """

    argv: Annotated[tuple[str, ...], _words]
    _: KW_ONLY
    timeout: Positive = 10.0
    seedable: bool = True

    @cached_property
    def _talk(self) -> Conversation:
        return Conversation(self.argv, self.timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the process: a copy elsewhere starts its own.
        arguments = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return partial(type(self), **arguments), ()

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Any:
        """Ask for one release.

        Raises
        ------
        ProcessCrashed, ProcessTimedOut
            Instead of a release.
        MechanismError
            If the program cannot be started.
        """
        line = self._ask(data, seed=draw_seed(rng))
        try:
            return _numbers(json.loads(line))
        except (ValueError, RecursionError):
            return line.decode("utf-8", "backslashreplace").rstrip()

    def close(self) -> None:
        """End the process; the next release starts another.

        That happens by itself when the mechanism is collected, and at exit.
        """
        self._talk.close()

    def _ask(self, data: ArrayLike, **rest: int) -> bytes:
        rows = np.asarray(data, dtype=np.float64)
        head = _rows_as_json(rows.shape, rows.tobytes())
        return self._talk.ask(f'{{"data": {head}, {json.dumps(rest)[1:]}\n'.encode())


@dataclass(frozen=True)
class BatchedCommandMechanism(CommandMechanism):
    """A program that answers one request with many releases."""

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Any:
        """Ask for `size` releases, stacked along the first axis.

        Raises
        ------
        BadReply, ProcessCrashed, ProcessTimedOut
            If one release or more has failed.
        """
        line = self._ask(data, seed=draw_seed(rng), size=size)
        try:
            releases = _numbers(json.loads(line))
        except (ValueError, RecursionError):
            raise BadReply("the answer is not JSON") from None
        parts = releases.values() if isinstance(releases, dict) else [releases]
        for part in parts:
            if not isinstance(part, np.ndarray) or part.shape[:1] != (size,):
                raise BadReply(f"the answer is not a list of {size} releases")
        return releases

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Any:
        """Ask for one release; raises what `draw` does."""
        drawn = self.draw(data, 1, rng=rng)
        if isinstance(drawn, dict):
            return {name: part[0] for name, part in drawn.items()}
        return drawn[0]


def from_command(
    argv: Sequence[str | os.PathLike[str]],
    *,
    timeout: float = 10.0,
    batched: bool = False,
    seedable: bool = True,
    claim: Claim | None = None,
    relation: Relation | str | None = None,
) -> CommandMechanism:
    """Return a mechanism that is a program; see `dpaudit.adapters.command`.

    Parameters
    ----------
    argv : sequence of str
        The program and its arguments; no shell reads them.
    timeout : float
        Seconds for one answer, > 0; the start of the program counts too. Choose it far
        above what an answer takes: how busy the machine is must not decide an output.
    batched : bool
        Whether the program understands ``size``.
    seedable : bool
        Whether all its randomness follows from ``seed``. If not, you answer for it that
        releases are independent draws of one law; no audit can come to a verdict on a
        program that takes fresh randomness and does not say so.
    claim : Claim, optional
        What is promised.
    relation : Relation or str, optional
        Under which relation.

    Returns
    -------
    CommandMechanism
        Picklable. The process ends when it is collected, and at exit.

    Raises
    ------
    InputError
        If an argument is not allowed.

    Examples
    --------
    >>> import sys
    >>> program = "for line in iter(input, ''): print(len(line), flush=True)"
    >>> mechanism = from_command([sys.executable, "-c", program])
    >>> float(mechanism.release([[0.5]], rng=np.random.default_rng(0)))
    37.0
    """
    kind = BatchedCommandMechanism if batched else CommandMechanism
    return kind(
        argv,  # type: ignore[arg-type]
        timeout=timeout,
        seedable=seedable,
        claim=claim,
        relation=relation,  # type: ignore[arg-type]
    )


@lru_cache(maxsize=8)
def _rows_as_json(shape: tuple[int, ...], content: bytes) -> str:
    """Return the rows as text; an audit asks for the same few datasets all the time."""
    return json.dumps(np.frombuffer(content).reshape(shape).tolist())


def _numbers(value: Any) -> Any:
    """Return numbers as float arrays, and anything else as it is."""
    if isinstance(value, dict):
        return {name: _numbers(part) for name, part in value.items()}
    try:
        array = np.asarray(value)
    except ValueError:
        return value  # ragged
    return array.astype(np.float64) if array.dtype.kind in "biuf" else value
