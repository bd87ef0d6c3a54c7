"""Numbers with noise where an array of another library than NumPy is expected.

**Rounding.** Whatever has met an array of less than double precision may be off, as
`dpaudit.audit.replay.follow.looked.Looked.rounded` has it.
"""

from typing import Any

import numpy as np
from numpy import asarray  # the real one, in an execution too

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.looked import Composed
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric

__all__ = ["HeldArray", "note_rounding"]

_HALF = 1e-4  # a step of types whose rounding is no small part of a distance


class HeldArray(Composed):
    """Numbers with noise where an array of another library than NumPy is expected.

    They are in `held`, and what converts them goes there.
    """

    __slots__ = ()
    held: Tracked

    @property
    def noisy(self) -> bool:
        return self.held.noisy

    def looked_at(self, how: str) -> Array:
        """Return the numbers as an ordinary array, with a note on the tape."""
        return self.held.looked_at(how)

    def like(self) -> Any:
        """Return ordinary zeros that are like it, of the library."""
        raise NotImplementedError

    def item(self) -> Any:
        return self.held.item()

    def tolist(self) -> Any:
        return self.held.tolist() if self.held.ndim else self.item()

    def __float__(self) -> float:
        return float(self.held.reshape(()).looked_at("float"))

    def __int__(self) -> int:
        return int(self.held.looked_at("int").reshape(()))

    def __bool__(self) -> bool:
        return bool(self.held.looked_at("bool"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return asarray(self.held, dtype=dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        asks = func in (np.iscomplexobj, np.isrealobj, np.result_type)
        return func(*_within(args, asks), **_within(kwargs, asks))


def note_rounding(result: Any, parts: list[Any], eps: float) -> None:
    """Note by how much numbers may be off, whose type has steps of `eps` at 1."""
    if isinstance_tracked(result):
        means = (each.centre if isinstance_tracked(each) else each for each in parts)
        result.rounded(eps, *map(numeric, means))
        if eps > _HALF:
            result.tape.cannot_follow("rounding in half precision hides distances")


def _within(value: Any, asks: bool) -> Any:
    """Return what NumPy knows of arrays, in lists too; zeros if it asks for types."""
    if type(value) in (list, tuple):
        return type(value)(_within(each, asks) for each in value)
    if type(value) is dict:
        return {key: _within(each, asks) for key, each in value.items()}
    if not issubclass(type(value), HeldArray):
        return value
    return asarray(value.like()) if asks else value.held
