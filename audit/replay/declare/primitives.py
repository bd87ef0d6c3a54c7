"""Declared primitives, and values that must not depend on the data.

A call of a declared primitive is one noisy value, with the place where it is called.
What happens inside is not followed: its draws come from a stream of its own, and are
neither draws on the tape nor coins. When it is replayed the function is called too, for
what else it does (it may raise an exception), but what it returns is the recorded
output.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.declare.declaration import Declaration
from dpaudit.audit.replay.declare.untrusted import UntrustedCall, called
from dpaudit.audit.replay.follow.foreign import foreign_draws_allowed
from dpaudit.audit.replay.follow.observations import Observation
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import (
    has_noise,
    isinstance_tracked,
    looked_at_within,
)
from dpaudit.audit.replay.laws.choices import NamedChoiceLaw
from dpaudit.audit.replay.laws.comparison import AnyLaw

__all__ = ["declared", "invariant", "primitive", "recording"]

P = ParamSpec("P")
R = TypeVar("R")

_recorded: list[Tape] = []  # the execution that runs now, the innermost last


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Let declared primitives and invariants of the block write on a tape."""
    _recorded.append(tape)
    try:
        yield
    finally:
        _recorded.remove(tape)


def primitive(
    kernel: str, *, trusted: bool = True, bits: bool = False, **fields: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare what law the output of a function has, for `replay`.

    A call is then one noisy value, a part of the transcript. Its code is not followed:
    all statements about it rest on this declaration. It must depend on its
    arguments alone, and have no effect but its output, which may be an argument that it
    writes over. Outside of a replay it is the function itself.

    Parameters
    ----------
    kernel : str
        See the notes.
    trusted : bool
        Whether the declaration is taken for granted. If not, `replay` audits the
        function by itself, too, from its releases on the inputs that it was handed on
        D and on D' (`dpaudit.audit.replay.judge.primitive_audits`).
    bits : bool
        Whether that audit is of the doubles that it returns, rather than of real
        numbers. Its refutation is no proof against a claim over real numbers.
    **fields
        The fields of the kernel. Each is the name of an argument of the function, or
        an attribute of one (``"self.scale"``); a function of some of the arguments,
        which go by their names (``lambda epsilon: 1 / epsilon``); or a constant that is
        no text.

    Returns
    -------
    callable
        A decorator.

    Raises
    ------
    InputError
        If there is no such kernel, or field; if a field is missing, names an argument
        that the function lacks, or is a constant that is not allowed.

    Notes
    -----
    ======================= ==================================================
    kernel                  fields
    ======================= ==================================================
    ``laplace``             ``value``, ``scale``; ``lower``, ``upper``, to
                            which the output is clamped
    ``truncated-laplace``   the same fields: drawn until it is within the bounds
    ``folded-laplace``      the same fields: reflected at the bounds
    ``gaussian``            ``value``, ``scale``: a standard deviation
    ``discrete-laplace``    ``value``, ``scale``; ``lower``, ``upper``: integer
                            noise, P(k) proportional to exp(-abs(k)/scale)
    ``discrete-gaussian``   ``value``, ``scale``: integer noise, P(k)
                            proportional to exp(-k**2/(2 scale**2))
    ``exponential``         ``scores``, ``scale``: P(i) proportional to
                            exp(scores[i]/scale), times ``measure[i]`` if given
    ``permute-and-flip``    ``scores``, ``scale``
    ``noisy-max``           ``scores``, ``scale`` of the Laplace noise
    ``randomised-response`` ``value``, ``truth``: the probability that an entry
                            stays; ``outcomes``, a number or a list (0 and 1)
    ``trusted``             ``value``, ``sensitivity``, ``epsilon``; ``delta``
                            (0), ``norm`` (1, as in `numpy.linalg.norm`), or a
                            ``distance``: a function of two values of any kind
    ======================= ==================================================

    The output of the three choices is a place among the scores, or one of the
    ``candidates`` if these are given. Of a trusted primitive no law is known: its
    epsilon is added up where its inputs lie no further apart than its sensitivity, and
    otherwise that is a finding. Inputs that are no numbers (sets, texts, records) need
    a ``distance``, the one field that is a function itself: it returns a number >= 0.

    Examples
    --------
    >>> from dpaudit import Pair, PureDP
    >>> from dpaudit.audit.replay import primitive, replay
    >>> from secrets import SystemRandom
    >>> @primitive("laplace", value="value", scale=lambda epsilon: 1 / epsilon)
    ... def noisy(value, epsilon):
    ...     sign, size = SystemRandom().choice((-1, 1)), SystemRandom().expovariate(1)
    ...     return value + sign * size / epsilon
    >>> def count(data, rng):
    ...     return noisy(float(len(data)), epsilon=2.0)
    >>> pair = Pair([[0.2], [0.5]], [[0.2], [0.5], [1.0]])
    >>> result = replay(count, pair=pair, claim=PureDP(1.0), sees="transcript")
    >>> str(result.verdict), result.findings[0].kind, round(result.loss, 6)
    ('REFUTED', 'distance', 2.0)
    """
    declaration = Declaration.of(kernel, fields, trusted=trusted, bits=bits)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return declared(declaration, function)

    return decorate


def declared(declaration: Declaration, function: Callable[..., Any]) -> Any:
    """Return a function whose calls are noisy values during an execution."""
    signature = declaration.signature_of(function)
    name = getattr(function, "__qualname__", repr(function))

    def law_of(*args: Any, **kwargs: Any) -> AnyLaw:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return declaration.read(bound.arguments)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tape = _recorded[-1] if _recorded else None
        if tape is None or not tape.follows:
            return called("" if declaration.trusted else name, function, args, kwargs)
        given = [*args, *kwargs.values()]
        args = tuple(map(_ordinary, args))
        kwargs = {name: _ordinary(each) for name, each in kwargs.items()}
        made, number = None, len(tape.observations)
        if not declaration.trusted:
            more = law_of, declaration.bits
            made = UntrustedCall.of(name, function, args, kwargs, *more)
        output = _noted(tape, law_of, function, args, kwargs)
        if made is not None and len(tape.observations) > number:
            tape.untrusted[number] = made
        # An array that noise can be written into stays one.
        pairs = zip(given, (*args, *kwargs.values()), strict=True)
        return next((one for one, other in pairs if other is output), output)

    return call


def _noted(
    tape: Tape,
    law_of: Callable[..., AnyLaw],
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> Any:
    """Call a function with ordinary arguments, and note its output on the tape."""
    several = [each for each in (*args, *kwargs.values()) if _may_change(each)]
    before = [each.copy() for each in several]
    with tape.within(), foreign_draws_allowed():
        law: Any = None
        why = ""
        try:
            law = law_of(*args, **kwargs)
        except Exception as error:
            why = f"a declared primitive has no law here: {error}"
        try:
            output = function(*args, **kwargs)
        except BaseException as error:
            reason = f"a declared primitive raises {type(error).__name__}"
            tape.cannot_follow(reason, within=True)
            raise
    if not why:
        try:
            value, shape = _value(law, output)
        except (LookupError, TypeError, ValueError):
            kind = type(output).__name__
            why = f"what a declared primitive returns is no output of it: {kind}"
    if why:
        tape.cannot_follow(why)
        return output
    for each, old in zip(several, before, strict=True):
        if each is not output and not _is_still(each, old):
            tape.cannot_follow("a declared primitive changes one of its arguments")
    given = tape.declare(law, value, shape)
    if given is None:
        return output
    found = _output(given, output)
    if any(each is output for each in several):  # an argument, written over
        output[:] = found
        return output
    return found


def _ordinary(argument: Any) -> Any:
    """Return an argument with all noise in it looked at, itself where there is none."""
    if isinstance_tracked(argument) and not argument.noisy:
        return argument.centre  # an array that noise could have been written into
    parts = argument.values() if type(argument) is dict else (argument,)
    return looked_at_within(argument) if any(map(has_noise, parts)) else argument


def _may_change(argument: Any) -> bool:
    """Say whether an argument is numbers that could be written over."""
    return type(argument) is list or (
        type(argument) is np.ndarray and argument.ndim > 0
    )


def _is_still(argument: Any, old: Any) -> bool:
    """Say whether an argument is what it was before a call."""
    if isinstance(old, np.ndarray):
        if old.dtype.kind == "f":
            return np.array_equal(argument, old, equal_nan=True)
        return np.array_equal(argument, old)
    same = len(argument) == len(old)
    return same and all(a is b for a, b in zip(argument, old, strict=True))


def _value(law: AnyLaw, output: Any) -> tuple[Array, tuple[int, ...]]:
    """Return an output as flat numbers, and its shape; raise if it is none."""
    if isinstance(law, NamedChoiceLaw):
        places, shape = law.places(output)
        return places.astype(np.float64), shape
    array = np.asarray(output)
    if array.dtype.kind not in "fiub":
        raise TypeError
    value = array.astype(np.float64).ravel()
    if len(value) != len(getattr(law, "mean", value)):
        raise ValueError
    return value, array.shape


def _output(given: Observation, like: Any) -> Any:
    """Return a recorded output in the form of another."""
    law, value = given.law, given.value
    if isinstance(law, NamedChoiceLaw):
        named = [law.names[int(place)] for place in value]
        if not given.shape:
            return named[0]
        array = np.array(named, dtype=np.asarray(like).dtype).reshape(given.shape)
        return array if isinstance(like, np.ndarray) else type(like)(array.tolist())
    array = np.asarray(like)
    with np.errstate(invalid="ignore"):
        numbers: Any = value.astype(array.dtype)
    # A bound that noise is cut at may be an integer, and what is within it is none.
    fits = array.dtype.kind not in "iub" or np.array_equal(numbers, value)
    numbers = (numbers if fits else value).reshape(array.shape)
    if isinstance(like, np.ndarray):
        return numbers
    if isinstance(like, list | tuple):
        return type(like)(numbers.tolist())
    return type(like)(numbers[()]) if fits else float(numbers)


def invariant(**values: Any) -> None:
    """Note values that must not depend on the data, for `replay`.

    A value that differs on the neighbour, all noisy values being the same, is a finding
    of kind ``release`` with this line and its name. That refutes a claim for those
    who see every noisy value and all that is noted as public (``sees="transcript"``).
    It is no proof against a claim about the release: the value may not show there.
    Outside of a replay nothing happens.

    Parameters
    ----------
    **values
        By their names: numbers, arrays, texts, and lists of such.

    Examples
    --------
    >>> from dpaudit import Pair, PureDP
    >>> from dpaudit.audit.replay import invariant, replay
    >>> def total(data, rng):
    ...     n = len(data)
    ...     invariant(n=n)
    ...     return data.sum() + rng.laplace(scale=1.0)
    >>> pair = Pair([[0.2], [0.5]], [[0.2], [0.5], [1.0]])
    >>> result = replay(total, pair=pair, claim=PureDP(1.0))
    >>> str(result.verdict), result.findings[0].message
    ('NOT_FOLLOWED', "n must not depend on the data, and is 2 on D and 3 on D'")
    """
    if _recorded and _recorded[-1].follows:
        for name, value in values.items():
            _recorded[-1].note_public(name, _ordinary(value))
