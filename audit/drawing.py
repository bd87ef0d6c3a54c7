"""Drawing one unit of work: some releases on one dataset, from a stream of its own.

A unit is what is handed to a worker. What it gives depends on the mechanism, the
dataset and the name of its stream, and on nothing else: not on who draws it, nor on
what was drawn before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.interrupts import raised_by_signal, telling_interrupts
from dpaudit.mechanism import HasBatchedDraw, Mechanism
from dpaudit.outputs import Output, arrays_of, map_arrays, raised, read, read_stack
from dpaudit.printable import said
from dpaudit.streams import stream

__all__ = ["Drawn", "draw", "draw_unit", "ways_to_draw"]

Drawn: TypeAlias = Output | list[Output]
"""Outputs of one layout stacked by the mechanism's own draw, or single ones."""

_PATIENCE = 1000


def draw_unit(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    count: int,
    seed: int,
    key: tuple[int, ...],
) -> Drawn:
    """Draw `count` releases from the stream of that seed and key.

    Parameters
    ----------
    mechanism : Mechanism or callable
    data : ndarray
    count : int
    seed : int
    key : tuple of int

    Raises
    ------
    MechanismError
        If a batched draw returns another number of outputs, or what is no sequence of
        outputs, or fails where single releases do not.
    DPAuditError
        Whatever the mechanism raises of dpaudit's own: it refuses the data.
    """
    return draw(mechanism, data, count, stream(seed, *key))


@telling_interrupts()
def draw(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    count: int,
    rng: np.random.Generator,
) -> Drawn:
    """Draw `count` releases from a generator; otherwise as `draw_unit`."""
    one, many = ways_to_draw(mechanism)
    if many is None:
        return [_attempt(one, data, rng) for _ in range(count)]
    try:
        drawn = many(data, count, rng)
        outputs = read_stack(drawn)
    except BaseException as error:
        if isinstance(error, DPAuditError) or raised_by_signal(error):
            raise
        return _failing_singles(one, data, count, rng, error)
    if outputs is None:
        raise MechanismError(
            "the mechanism's draw must return numbers, or a list of outputs, got "
            + type(drawn).__name__
        )
    lengths = [len(outputs)] if isinstance(outputs, list) else _lengths(outputs)
    if any(length != count for length in lengths):
        other = next(length for length in lengths if length != count)
        raise MechanismError(
            f"the mechanism's draw returned {other} releases instead of {count}"
        )
    return outputs


def _lengths(stacked: Output) -> list[int]:
    """Return over how many outputs the first axis of each array runs."""
    assert stacked.numbers is not None
    return [len(a) if a.ndim else 1 for a in arrays_of(stacked.numbers)]


def ways_to_draw(
    mechanism: Mechanism | Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return functions for one release and perhaps for many, of (data, [size,] rng).

    Raises
    ------
    InputError
        If the mechanism has neither a release method nor a draw, and is no callable.
    """
    # The first test is quick, and made for every unit.
    batched = hasattr(mechanism, "draw") and isinstance(mechanism, HasBatchedDraw)
    many = partial(_many, mechanism) if batched else None
    if hasattr(mechanism, "release"):
        return partial(_one, mechanism), many
    if many is not None:
        return partial(_one_of_many, mechanism), many
    if callable(mechanism):
        return mechanism, None
    raise InputError(
        "mechanism must have a release method or be a callable (data, rng) -> "
        f"array, got {type(mechanism).__name__}"
    )


def _many(mechanism: Any, data: Any, size: int, rng: np.random.Generator) -> Any:
    return mechanism.draw(data, size, rng=rng)


def _one(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    return mechanism.release(data, rng=rng)


def _one_of_many(mechanism: Any, data: Any, rng: np.random.Generator) -> Any:
    drawn = read_stack(mechanism.draw(data, 1, rng=rng))
    if isinstance(drawn, list):
        return drawn[0]
    if drawn is None or drawn.numbers is None:
        return drawn
    return Output(drawn.layout, map_arrays(drawn.numbers, lambda array: array[0]))


def _failing_singles(
    one: Callable[..., Any],
    data: Any,
    count: int,
    rng: np.random.Generator,
    error: BaseException,
) -> list[Output]:
    """Return single outputs in place of a batch of which some release failed.

    That some failed is known by then. To draw anew without that condition would make
    failures rarer than they are; drawn until one fails, the outputs have the law of
    `count` independent ones.
    """
    for _ in range(_PATIENCE):
        outputs = [_attempt(one, data, rng) for _ in range(count)]
        if any(output.layout.startswith("raises ") for output in outputs):
            return outputs
    raise MechanismError(
        f"the mechanism's draw raised {said(error)}; single "
        "releases did not, though both must have the same distribution"
    ) from error


def _attempt(one: Callable[..., Any], data: Any, rng: np.random.Generator) -> Output:
    """Return one output; an exception is one, too."""
    try:
        output = one(data, rng)
        return output if type(output) is Output else read(output)
    except BaseException as error:  # in reading it, too
        if isinstance(error, DPAuditError) or raised_by_signal(error):
            raise
        return raised(error)
