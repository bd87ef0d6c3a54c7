"""Drawing one unit of work: some releases on one dataset, from a stream of its own.

A unit is what is handed to a worker. What it gives depends on the mechanism, the
dataset and the name of its stream, and on nothing else: not on who draws it, nor on
what was drawn before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpaudit.audit.outputs import as_numbers, map_arrays
from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.interrupts import raised_by_signal, telling_interrupts
from dpaudit.mechanism import HasBatchedDraw, Mechanism, Release
from dpaudit.streams import stream

__all__ = ["LONGEST_LABEL", "Drawn", "draw", "draw_unit", "ways_to_draw"]

Drawn: TypeAlias = Release | list[Release | str]
"""Releases stacked by the mechanism's own draw, or single ones, some of them labels."""

LONGEST_LABEL = 80
_PATIENCE = 1000


def draw_unit(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    count: int,
    seed: int,
    key: tuple[int, ...],
    *,
    copy: bool = False,
) -> Drawn:
    """Draw `count` releases from the stream of that seed and key.

    Parameters
    ----------
    mechanism : Mechanism or callable
    data : ndarray
    count : int
    seed : int
    key : tuple of int
    copy : bool
        Whether the mechanism may draw again before the caller is done with what its
        ``draw`` returned, which may be a buffer that it uses again.

    Raises
    ------
    MechanismError
        If a batched draw returns no numbers, or fails where single releases do not.
    DPAuditError
        Whatever the mechanism raises of dpaudit's own: it refuses the data.
    """
    return draw(mechanism, data, count, stream(seed, *key), copy=copy)


@telling_interrupts()
def draw(
    mechanism: Mechanism | Callable[..., Any],
    data: Any,
    count: int,
    rng: np.random.Generator,
    *,
    copy: bool = False,
) -> Drawn:
    """Draw `count` releases from a generator; otherwise as `draw_unit`."""
    one, many = ways_to_draw(mechanism)
    if many is None:
        return [_attempt(one, data, rng) for _ in range(count)]
    try:
        drawn = many(data, count, rng)
    except DPAuditError:
        raise
    except BaseException as error:
        if raised_by_signal(error):
            raise
        return _failing_singles(one, data, count, rng, error)
    values = as_numbers(drawn, copy=copy)
    if values is None:
        raise MechanismError(
            "the mechanism's draw must return numbers, got " + type(drawn).__name__
        )
    return values


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
    values = as_numbers(mechanism.draw(data, 1, rng=rng))
    return None if values is None else map_arrays(values, lambda array: array[0])


def _failing_singles(
    one: Callable[..., Any],
    data: Any,
    count: int,
    rng: np.random.Generator,
    error: BaseException,
) -> list[Release | str]:
    """Return single outputs in place of a batch of which some release failed.

    That some failed is known by then. To draw anew without that condition would make
    failures rarer than they are; drawn until one fails, the outputs have the law of
    `count` independent ones.
    """
    for _ in range(_PATIENCE):
        outputs = [_attempt(one, data, rng) for _ in range(count)]
        if any(isinstance(o, str) and o.startswith("raises ") for o in outputs):
            return outputs
    raise MechanismError(
        f"the mechanism's draw raised {type(error).__name__}: {error}; single "
        "releases did not, though both must have the same distribution"
    ) from error


def _attempt(
    one: Callable[..., Any], data: Any, rng: np.random.Generator
) -> Release | str:
    """Return one release as numbers, or a label."""
    try:
        output = one(data, rng)
    except DPAuditError:
        raise
    except BaseException as error:
        if raised_by_signal(error):
            raise
        return f"raises {type(error).__name__}"
    if isinstance(output, str | bytes):
        return f"value {output!r}"[:LONGEST_LABEL]
    values = as_numbers(output)
    return f"returns {type(output).__name__}" if values is None else values
