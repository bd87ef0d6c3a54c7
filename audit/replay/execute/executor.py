"""One execution of a mechanism: recorded, replayed, or plain; patches undone after it.

What comes out is a `Trace`: the tape, and the release taken apart into its layout (all
that is no number: shapes, keys, words, the type of an exception) and its numbers, which
have a joint law given all that was looked at before.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.declare.libraries import declared_libraries, loaded_libraries
from dpaudit.audit.replay.declare.primitives import recording
from dpaudit.audit.replay.declare.training import training_libraries
from dpaudit.audit.replay.execute.generators import standing
from dpaudit.audit.replay.execute.patches import patched
from dpaudit.audit.replay.execute.reader import Reader
from dpaudit.audit.replay.follow.ending import Ended, StepCount, watched
from dpaudit.audit.replay.follow.forms import Form, form_of
from dpaudit.audit.replay.follow.frames import tables
from dpaudit.audit.replay.follow.generator import RecordingGenerator
from dpaudit.audit.replay.follow.observations import Observations, Script
from dpaudit.audit.replay.follow.places import place_of_failure, watching_returns
from dpaudit.audit.replay.follow.reached import place_of_definition
from dpaudit.audit.replay.follow.tape import DECLARED, LAZY, Mode, Tape
from dpaudit.audit.replay.follow.tracked import Tracked
from dpaudit.audit.replay.follow.trail import Trail
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import fresh
from dpaudit.outputs import raised, raised_by_signal, telling_interrupts
from dpaudit.printable import printable

__all__ = ["Trace", "both_again", "execute", "in_any_order"]

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")

_AT_MOST = 4  # executions, of which the last counts
_WORDS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\([^)]*\)|\S+""")
_LONG, _BEFORE = 70, 4  # characters of a layout, words before what differs
_ORDER = 2**31 + 1  # of the streams by which sides are executed first or second


@dataclass(eq=False)
class Trace:
    """What an execution drew, looked at and released.

    Parameters
    ----------
    mechanism : Mechanism or callable
    data : ndarray or object
    tape : Tape
    layout : str
    unread : bool
        Whether the release holds an object that is neither a number nor a word.
    law : AffineLaw
        Of the numbers of the release, in their order, given what was looked at.
    value : ndarray, shape (n,)
        The numbers.
    release : Tracked
        The numbers, before they had a law.
    returned, form : str, Form
        ``file:line`` of the mechanism's last return, and the form of the release, where
        ordinary numbers were drawn.
    """

    mechanism: Any
    data: Array
    tape: Tape
    layout: str
    unread: bool
    law: AffineLaw
    value: Array
    release: Tracked
    returned: str = ""
    form: Form = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether no draw was looked at before the release."""
        return self.tape.open

    @property
    def raises(self) -> bool:
        """Whether the mechanism raised an exception."""
        return self.layout.startswith("raises ")

    @property
    def returned_at(self) -> str:
        """The line from which the mechanism returned, or where it is defined."""
        return self.returned or place_of_definition(self.mechanism)

    def law_of(self, number: int) -> AnyLaw:
        """Return the law of a noisy value; -1 is the release."""
        return self.law if number < 0 else self.tape.observations.law(number)

    def place_of(self, draw: int) -> str:
        """Return where a draw was made; of what is no draw, where it is returned."""
        return self.returned_at if draw < 0 else self.tape.draws.place_of(int(draw))

    def has_noise_at(self, entry: int) -> bool:
        """Say whether a number of the release has noise."""
        return bool(self.release.index[entry : entry + 1].max(initial=-1) >= 0)

    def origin(self, entry: int) -> tuple[str, str]:
        """Return which kind of finding a number of the release is, and where."""
        whole = self.release
        terms = whole.index[entry] if entry < len(whole.index) else np.empty(0, np.intp)
        used = terms[terms >= 0]
        if not len(used):
            return "release", self.returned_at
        coef = whole.coef[entry][terms >= 0]
        return ("scale" if (coef == 0).all() else "release"), self.place_of(used[0])

    def again(
        self, seed: int | None = None, *, data: Array | None = None, **more: Any
    ) -> "Trace":
        """Execute the mechanism again; by default on the same data from the same seed.

        All other parameters are those of `execute`.

        Raises
        ------
        Ended
            If it is given noise, and draws and looks a thousand times as often.
        """
        data = self.data if data is None else data
        seed = self.tape.seed if seed is None else seed
        if more.get("script"):
            more["steps"] = partial(StepCount.given, self.tape.steps.taken)
        return execute(self.mechanism, data, seed, mode=self.tape.mode, **more)

    def plainly(self) -> "Trace":
        """Execute the mechanism again with ordinary draws, those of the same seed.

        The outputs of declared primitives, whose draws are not seen, are given back.
        """
        script = self.tape.observations.seen_by(DECLARED)
        return self.again(script=script, follows=False)

    def told_beside(self, other: "Trace") -> str:
        """Return in words what this one, on D, and another, on D', release."""
        sides = [
            [_word(each) for each in _WORDS.findall(trace.layout) if each != "value"]
            for trace in (self, other)
        ]
        both = [*takewhile(lambda two: two[0] == two[1], zip(*sides, strict=False))]
        opened = [n for n, (word, _) in enumerate(both) if word in "[{"]
        start = max(len(both) - _BEFORE, *opened, 0)
        if start and max(len(self.layout), len(other.layout)) > _LONG:
            sides = [["...", *side[start:]] for side in sides]
        here, there = (printable(" ".join(side), longest=_LONG) for side in sides)
        return f"{here} on D and {there} on D'"

    def agrees(self, other: "Trace", *, rtol: float, atol: float) -> bool:
        """Say whether another execution releases the same, up to rounding."""
        if other.layout != self.layout or len(other.value) != len(self.value):
            return False
        values, atol = (other.value, self.value), atol + self.tape.draws.rough
        return bool(np.allclose(*values, rtol=rtol, atol=atol, equal_nan=True))


def _word(part: str) -> str:
    """Return a part of a layout in words: numbers by how many there are."""
    if part == "raises":
        return "an exception:"
    if not part.startswith("("):
        return part
    shape = " x ".join(re.findall(r"\d+", part))
    plural = "" if shape in ("", "1") else "s"
    return f"{shape or 'a'} number{plural}" if shape != "0" else "no number"


def execute(
    mechanism: Any,
    data: Array,
    seed: int,
    *,
    script: Observations | None = None,
    follows: bool = True,
    mode: Mode = LAZY,
    goes_on: bool = False,
    variant: int = 0,
    trail: Trail | None = None,
    steps: Callable[[], StepCount] = StepCount,
) -> Trace:
    """Execute a mechanism once.

    Parameters
    ----------
    mechanism : Mechanism or callable
    data : ndarray or object
        Each execution gets a copy.
    seed : int
        The same seed gives the same draws, followed or not.
    script : Observations, optional
        Of an execution whose noisy values are given back.
    follows : bool
        Whether draws are followed; if not, they are ordinary numbers.
    mode : Mode
    goes_on : bool
        As for `Script`.
    variant : int
        Of one seed, each takes other entropy from the system.
    trail : Trail, optional
        Keeps every line.
    steps : callable
        Makes what counts draws and looks at noise.

    Raises
    ------
    Ended
        If it takes too many of these, or more time than there is.
    DPAuditError
        If the mechanism raises one: it refuses the data.
    """
    one, _ = ways_to_draw(mechanism)
    loaded: Any = None
    tape: Tape | None = None
    for _ in range(_AT_MOST):
        # What is loaded meanwhile was not followed, or drew as it was loaded.
        before, loaded = loaded, (loaded_libraries(), tables())
        if tape is not None and before == loaded and not tape.loading:
            break
        calls = tape.calls if tape is not None and before == loaded else None
        if tape is not None:
            tape.closed = True
        tape = Tape(seed, Script(script, goes_on), mode, trail=trail)
        tape.steps = steps()
        given = fresh(data)
        rng = RecordingGenerator(tape, follows=follows)
        watching: AbstractContextManager[list[str]] = nullcontext([])
        if trail is not None:
            watching = trail.recording()
        elif not follows:
            watching = watching_returns()
        with (
            patched(
                mechanism, tape, rng, follows=follows, variant=variant
            ) as functions,
            declared_libraries(),
            training_libraries(rng) as drawing,
            standing(mechanism, rng, {**functions, **drawing}),
            recording(tape),
            watching as returned,
            tape.running(),
        ):
            try:
                released, failure, line = watched(partial(_attempt, one, given, rng))
            except Ended as ended:
                ended.ordinary |= not script
                raise
            rng.end()
        tape.calls = tape.calls if calls is None else calls  # of the first one
    assert tape is not None
    reader = Reader(tape)
    if failure is not None:
        reader.words.append(raised(failure).layout)
    else:
        try:
            with tape.running():
                reader.read(released if tape.final is None else tape.final)
        except DPAuditError:
            raise
        except Exception as error:  # an object of its own that fails when it is read
            reader.words.append(raised(error).layout)
    whole = reader.joined()
    terms = whole.centre, whole.index, whole.coef
    law = tape.law(*terms)
    value = tape.draws.value(*terms) if whole.noisy else whole.centre
    tape.closed = True
    layout, line = " ".join(reader.words), line or "".join(returned)
    form = {} if follows else form_of(released if failure is None else failure)
    how = tape, layout, reader.unread, law, value, whole, line, form
    return Trace(mechanism, data, *how)


def in_any_order(
    seed: int, turn: int, first: Callable[[], T], second: Callable[[], U]
) -> tuple[T, U]:
    """Execute two sides, either of them before the other, and return both results."""
    order = np.random.SeedSequence(seed, spawn_key=(_ORDER, turn))
    if order.generate_state(1)[0] % 2:
        return first(), second()
    found = second()
    return first(), found


def both_again(
    seed: int, turn: int, sides: tuple[S, S], again: Callable[[S, int], T]
) -> tuple[T, T]:
    """Execute two sides for the n-th time, n >= 1, in any order.

    Each is executed from a seed of its own: none is used twice.
    """
    first = partial(again, sides[0], seed + 2 * turn - 1)
    second = partial(again, sides[1], seed + 2 * turn)
    return in_any_order(seed, turn, first, second)


@telling_interrupts()
def _attempt(
    one: Callable[..., Any], data: Array, rng: RecordingGenerator
) -> tuple[Any, BaseException | None, str]:
    """Return a release, or what was raised instead, and its line."""
    try:
        with np.errstate(all="ignore"):
            return one(data, rng), None, ""
    except BaseException as error:
        ends = isinstance(error, DPAuditError | Ended)
        if ends or raised_by_signal(error):
            raise
        return None, error, place_of_failure(error)
    finally:
        if rng.tape.steps.ended is not None:  # which the code may have caught
            raise rng.tape.steps.ended
