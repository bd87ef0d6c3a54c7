"""Drawing releases from whatever is under audit, in batches of bounded memory."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.mechanism import HasBatchedDraw, Mechanism, Release
from dpaudit.neighbours import Pair
from dpaudit.streams import stream

__all__ = [
    "DATA",
    "NEIGHBOUR",
    "Sampler",
    "bytes_per_release",
    "concatenate",
    "length",
    "section",
]

DATA, NEIGHBOUR = 0, 1
"""The two sides of a pair: D and D'."""

_BATCH_BYTES = 32 * 2**20
_MAX_BATCH = 2**16


class Sampler:
    """Releases on either side of a pair, from reproducible streams.

    Parameters
    ----------
    mechanism : Mechanism or callable
        An object with ``release(data, rng=...)`` and perhaps ``draw``, or a plain
        function ``(data, rng) -> array``.
    pair : Pair
    seed : int
        A batch depends on the seed, its round, side and place in the round, and on
        nothing else.

    Raises
    ------
    InputError
        If the mechanism is neither.
    """

    def __init__(
        self, mechanism: Mechanism | Callable[..., Any], pair: Pair, seed: int
    ) -> None:
        self._draw = _batched(mechanism)
        self._sides = (pair.data, pair.neighbour)
        self._seed = seed
        self._layout: object = None
        self._batch = 16

    def batches(self, side: int, round_: int, size: int) -> Iterator[Release]:
        """Yield `size` releases of one side and round, in batches.

        Raises
        ------
        MechanismError
            If the mechanism raises, returns something that is not numeric, or changes
            the shape of its output.
        """
        for index, start in enumerate(range(0, size, self._batch)):
            count = min(self._batch, size - start)
            rng = stream(self._seed, round_, side, index)
            yield self._checked(self._draw(self._sides[side], count, rng), count)

    def settle_batch_size(self, releases: Release) -> None:
        """Fix the size of batches from a first look at the releases."""
        each = bytes_per_release(releases)
        self._batch = int(np.clip(_BATCH_BYTES / each, 1, _MAX_BATCH))

    def _checked(self, releases: Release, count: int) -> Release:
        layout = _layout(releases)
        if self._layout is None:
            self._layout = layout
        if layout != self._layout:
            raise MechanismError(
                f"the mechanism changed the shape of its output: {layout} after "
                f"{self._layout}"
            )
        if length(releases) != count:
            raise MechanismError(
                f"the mechanism's draw returned {length(releases)} releases instead "
                f"of {count}"
            )
        return releases


def _batched(
    mechanism: Mechanism | Callable[..., Any],
) -> Callable[[NDArray[np.float64], int, np.random.Generator], Release]:
    """Return a function (data, size, rng) -> batch that translates every failure."""
    if isinstance(mechanism, HasBatchedDraw):
        draw = mechanism.draw

        def attempt(data: Any, size: int, rng: np.random.Generator) -> Any:
            return draw(data, size, rng=rng)

    elif hasattr(mechanism, "release"):
        release = mechanism.release

        def attempt(data: Any, size: int, rng: np.random.Generator) -> Any:
            return _stack([release(data, rng=rng) for _ in range(size)])

    elif callable(mechanism):

        def attempt(data: Any, size: int, rng: np.random.Generator) -> Any:
            return _stack([mechanism(data, rng) for _ in range(size)])

    else:
        raise InputError(
            "mechanism must have a release method or be a callable (data, rng) -> "
            f"array, got {type(mechanism).__name__}"
        )

    def translate(data: Any, size: int, rng: np.random.Generator) -> Release:
        try:
            releases = attempt(data, size, rng)
        except DPAuditError:
            raise
        except Exception as error:
            raise MechanismError(
                f"the mechanism raised {type(error).__name__}: {error}"
            ) from error
        return _numeric(releases)

    return translate


def _stack(outputs: list[Any]) -> Release:
    """Stack single releases along a new leading axis."""
    if isinstance(outputs[0], Mapping):
        if any(set(output) != set(outputs[0]) for output in outputs):
            raise MechanismError("the mechanism changed the keys of its output")
        return {key: _stack_arrays([o[key] for o in outputs]) for key in outputs[0]}
    return _stack_arrays(outputs)


def _stack_arrays(outputs: list[Any]) -> NDArray[np.float64]:
    arrays = [_as_float(output) for output in outputs]
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise MechanismError(
                f"the mechanism changed the shape of its output: {array.shape} after "
                f"{arrays[0].shape}"
            )
    return np.stack(arrays)


def _as_float(output: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(output)
    except (TypeError, ValueError):
        array = np.array(None)  # ragged
    if array.dtype.kind not in "biuf":
        raise MechanismError(
            "the mechanism must return numbers or numeric arrays, got "
            f"{type(output).__name__}"
        )
    return array.astype(np.float64, copy=False)


def _numeric(releases: Any) -> Release:
    if isinstance(releases, Mapping):
        return {key: _as_float(value) for key, value in releases.items()}
    return _as_float(releases)


def _arrays(releases: Release) -> list[NDArray[np.float64]]:
    return list(releases.values()) if isinstance(releases, Mapping) else [releases]


def _layout(releases: Release) -> object:
    """Return the shape of one release."""
    if isinstance(releases, Mapping):
        return {key: value.shape[1:] for key, value in releases.items()}
    return releases.shape[1:]


def length(releases: Release) -> int:
    """Return how many releases a batch holds."""
    first = _arrays(releases)[0]
    return len(first) if first.ndim else 0


def bytes_per_release(releases: Release) -> float:
    """Return the memory that one release takes, at least one byte."""
    total = sum(array.nbytes for array in _arrays(releases))
    return max(total / max(length(releases), 1), 1.0)


def section(releases: Release, part: slice) -> Release:
    """Return some of the releases of a batch."""
    if isinstance(releases, Mapping):
        return {key: value[part] for key, value in releases.items()}
    return releases[part]


def concatenate(batches: list[Release]) -> Release:
    """Join batches along the trial axis."""
    if isinstance(batches[0], Mapping):
        mappings = cast(list[Mapping[str, NDArray[np.float64]]], batches)
        return {key: np.concatenate([m[key] for m in mappings]) for key in mappings[0]}
    return np.concatenate(cast(list[NDArray[np.float64]], batches))
