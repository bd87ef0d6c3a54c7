"""Drawing releases from whatever is under audit, in batches of bounded memory.

Whatever comes back is an output (`dpaudit.audit.outputs`), an exception too.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.audit.outputs import (
    Batch,
    arrays_of,
    as_numbers,
    layout_of,
    map_arrays,
    stack,
)
from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.mechanism import HasBatchedDraw, Mechanism
from dpaudit.neighbours import Pair
from dpaudit.streams import stream

__all__ = ["DATA", "NEIGHBOUR", "Sampler"]

DATA, NEIGHBOUR = 0, 1
"""The two sides of a pair: D and D'."""

_BATCH_BYTES = 16 * 2**20
_MAX_BATCH = 2**16
_FIRST_BATCH = 16
_LONGEST_LABEL = 80
_PATIENCE = 1000


class Sampler:
    """Outputs on either side of a pair, from reproducible streams.

    Parameters
    ----------
    mechanism : Mechanism or callable
        An object with ``release(data, rng=...)`` and perhaps ``draw``, or a plain
        function ``(data, rng) -> array``.
    pair : Pair
    seed : int
    key : int
        Which pair of the audit this is. A batch depends on the seed, the key, its
        round, side and place in the round.
    layout : str, optional
        What counts as an ordinary release, as `Sampler.layout` had it; by default
        whatever most of the first outputs are like.

    Raises
    ------
    InputError
        If the mechanism is neither.
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Any],
        pair: Pair,
        seed: int,
        key: int = 0,
        layout: str | None = None,
    ) -> None:
        self.layout = layout
        self._one, self._many = _ways_to_draw(mechanism)
        self._sides = (pair.data, pair.neighbour)
        self._seed, self._key = seed, key
        self._batch = _FIRST_BATCH
        self._settled = False

    def batches(self, side: int, round_: int, size: int) -> Iterator[Batch]:
        """Yield `size` outputs of one side and round, in batches.

        Raises
        ------
        MechanismError
            If a batched draw returns another number of releases than asked for.
        DPAuditError
            Whatever the mechanism raises of dpaudit's own: it refuses the data.
        """
        step = self._batch
        for index, start in enumerate(range(0, size, step)):
            count = min(step, size - start)
            rng = stream(self._seed, self._key, round_, side, index)
            batch = self._draw(self._sides[side], count, rng)
            if not self._settled and batch.values is not None:
                # The first look at a release fixes the size of later batches.
                self._batch = int(
                    np.clip(_BATCH_BYTES / batch.bytes_each, 1, _MAX_BATCH)
                )
                self._settled = True
            yield batch

    def uses_rng(self) -> bool:
        """Say whether a release draws from the generator that it is handed."""
        for data in self._sides:
            rng = np.random.default_rng(0)
            before = _position(rng)
            self._draw(data, 1, rng)
            if _position(rng) != before:
                return True
        return False

    def last_words(self) -> str:
        """Return the message with which a release fails, in brackets, or nothing."""
        try:
            self._one(self._sides[DATA], np.random.default_rng(0))
        except Exception as error:
            return f" ({error})" if str(error) else ""
        return ""

    def _draw(self, data: Any, count: int, rng: np.random.Generator) -> Batch:
        if self._many is not None:
            try:
                drawn = self._many(data, count, rng)
            except DPAuditError:
                raise
            except Exception as error:
                return self._sort(self._failing_singles(data, count, rng, error))
            return self._ordinary(drawn, count)
        return self._sort([_attempt(self._one, data, rng) for _ in range(count)])

    def _failing_singles(
        self, data: Any, count: int, rng: np.random.Generator, error: Exception
    ) -> list[Any]:
        """Return single outputs in place of a batch of which some release failed.

        That some failed is known by then. To draw anew without that condition would
        make failures rarer than they are; drawn until one fails, the outputs have the
        law of `count` independent ones.
        """
        for _ in range(_PATIENCE):
            outputs = [_attempt(self._one, data, rng) for _ in range(count)]
            if any(isinstance(o, str) and o.startswith("raises ") for o in outputs):
                return outputs
        raise MechanismError(
            f"the mechanism's draw raised {type(error).__name__}: {error}; single "
            "releases did not, though both must have the same distribution"
        ) from error

    def _ordinary(self, drawn: Any, count: int) -> Batch:
        # Scored before the next draw; `Batch.join` copies what is kept.
        values = as_numbers(drawn, copy=False)
        if values is None:
            raise MechanismError(
                "the mechanism's draw must return numbers, got " + type(drawn).__name__
            )
        layout = layout_of(values)
        if any(len(array) != count for array in arrays_of(values)):
            raise MechanismError(
                f"the mechanism's draw returned {len(arrays_of(values)[0])} releases "
                f"instead of {count}"
            )
        if self.layout is None:
            self.layout = layout
        if layout != self.layout:
            return Batch(count, None, np.full(count, layout[:_LONGEST_LABEL]))
        return Batch(count, values)

    def _sort(self, outputs: list[Any]) -> Batch:
        """Separate ordinary outputs from those that get a label."""
        if self.layout is None:
            layouts = Counter(
                layout_of(o, single=True) for o in outputs if not isinstance(o, str)
            )
            if layouts:
                self.layout = layouts.most_common(1)[0][0]
        labels = [
            output
            if isinstance(output, str)
            else ""
            if (layout := layout_of(output, single=True)) == self.layout
            else layout[:_LONGEST_LABEL]
            for output in outputs
        ]
        ordinary = [o for o, label in zip(outputs, labels, strict=True) if not label]
        return Batch(
            len(outputs),
            stack(ordinary) if ordinary else None,
            np.array(labels) if any(labels) else None,
        )


def _position(rng: np.random.Generator) -> object:
    """Return what changes when numbers are drawn, or other generators spawned."""
    spawned = getattr(rng.bit_generator.seed_seq, "n_children_spawned", 0)
    return rng.bit_generator.state, spawned


def _ways_to_draw(
    mechanism: Mechanism | Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return functions for one release and perhaps for many, of (data, [size,] rng)."""
    many = None
    if isinstance(mechanism, HasBatchedDraw):
        draw = mechanism.draw

        def many(data: Any, size: int, rng: np.random.Generator) -> Any:
            return draw(data, size, rng=rng)

    if hasattr(mechanism, "release"):
        release = mechanism.release

        def one(data: Any, rng: np.random.Generator) -> Any:
            return release(data, rng=rng)

        return one, many
    if many is not None:

        def single(data: Any, rng: np.random.Generator) -> Any:
            values = as_numbers(many(data, 1, rng))
            return (
                None if values is None else map_arrays(values, lambda array: array[0])
            )

        return single, many
    if callable(mechanism):
        return mechanism, None
    raise InputError(
        "mechanism must have a release method or be a callable (data, rng) -> "
        f"array, got {type(mechanism).__name__}"
    )


def _attempt(one: Callable[..., Any], data: Any, rng: np.random.Generator) -> Any:
    """Return one release as numbers, or a label."""
    try:
        output = one(data, rng)
    except DPAuditError:
        raise
    except Exception as error:
        return f"raises {type(error).__name__}"
    if isinstance(output, str | bytes):
        return f"value {output!r}"[:_LONGEST_LABEL]
    values = as_numbers(output)
    return f"returns {type(output).__name__}" if values is None else values
