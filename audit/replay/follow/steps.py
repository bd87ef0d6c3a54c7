"""The steps of a replay, one to each noisy value: a million in little memory."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from dpaudit.arrays import Array

__all__ = ["Step", "Steps"]

_NUMBERS = 4


@dataclass(frozen=True)
class Step:
    """A noisy value of the two executions.

    Parameters
    ----------
    place : str
    family : str
    scale : float
        The smallest of its entries.
    l1, l2 : float
        The distance of its inputs on D and on D'.
    loss : float
        Of this transcript; where nothing was looked at before the release, the
        supremum over transcripts. Of a trusted primitive its epsilon.
    """

    place: str
    family: str
    scale: float
    l1: float
    l2: float
    loss: float


class Steps(Sequence[Step]):
    """Steps in their order, kept in columns."""

    def __init__(self, several: Iterable[Step] = ()) -> None:
        self._places: list[str] = []
        self._families: list[str] = []
        self._numbers = array("d")
        for each in several:
            self.append(each)

    def __len__(self) -> int:
        return len(self._places)

    def append(self, step: Step) -> None:
        """Add a step."""
        numbers = np.array([[step.scale, step.l1, step.l2, step.loss]])
        self.extend([step.place], [step.family], numbers)

    def extend(self, places: list[str], families: list[str], numbers: Array) -> None:
        """Add steps, whose scales, distances and losses are the rows of a matrix."""
        self._places.extend(places)
        self._families.extend(families)
        self._numbers.frombytes(np.ascontiguousarray(numbers, float).tobytes())

    @property
    def losses(self) -> Array:
        """The loss of each step."""
        return np.array(self._numbers).reshape(-1, _NUMBERS)[:, -1]

    @overload
    def __getitem__(self, number: int) -> Step: ...

    @overload
    def __getitem__(self, number: slice) -> list[Step]: ...

    def __getitem__(self, number: int | slice) -> Step | list[Step]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        numbers = self._numbers[_NUMBERS * number : _NUMBERS * (number + 1)]
        return Step(self._places[number], self._families[number], *numbers)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} steps>"
