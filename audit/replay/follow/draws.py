"""The draws of one execution, in columns: values, families, and what was seen of them.

A draw is *fresh* until the code looks at some value that it is part of. Then it is
*spent*: the code knows it, and it is an ordinary number from then on. Or it is known
*in part*: the code saw a sum of several draws, and no law is known of it any more.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy import asarray  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.rounding import Rounding
from dpaudit.audit.replay.laws.affine import AffineLaw

__all__ = ["DrawBlock", "Draws"]

Recipe: TypeAlias = Callable[[int], Array]
"""Makes the draws that another seed would have given."""

_FRESH, _SPENT, _PARTLY = 0, 1, 2
_MANY = 1_000_000  # draws from which on there is less room to spare


@dataclass(eq=False, slots=True)
class DrawBlock:
    """Draws that were made at once, and that have no numbers before these are needed.

    Parameters
    ----------
    draws : Draws
    family : Family
    values : ndarray, shape (size,)
    place : str
    recipe : callable, optional
    state : int
        What the code knows of them, before they have numbers.
    start : int, optional
        The number of the first.
    """

    draws: "Draws"
    family: int
    values: Array
    place: str
    recipe: Recipe | None
    state: int = _FRESH
    start: int | None = None

    @property
    def numbers(self) -> slice:
        """The numbers of the draws."""
        if self.start is None:
            self.start = self.draws.add(self)
        return slice(self.start, self.start + self.values.size)

    @property
    def is_fresh(self) -> bool:
        """Whether the code saw nothing of them yet."""
        if self.start is None:
            return self.state == _FRESH
        return not self.draws.states[self.numbers].any()

    def look(self) -> tuple[Array, bool, bool]:
        """Return the draws, whether one is known in part, and whether all are spent."""
        if self.start is None:
            return self.values.copy(), self.state == _PARTLY, self.state == _SPENT
        states = self.draws.states[self.numbers]
        partly, spent = (states == _PARTLY).any(), (states == _SPENT).all()
        return self.draws.values[self.numbers].copy(), bool(partly), bool(spent)

    def spend(self, *, partly: bool = False) -> None:
        """Mark the draws as known, or as parts of others, not to be used again."""
        state = _PARTLY if partly else _SPENT
        if self.start is None:
            self.state = state
        else:
            self.draws.states[self.numbers] = state


class Draws:
    """The numbered draws of an execution.

    Parameters
    ----------
    rounding : Rounding

    Attributes
    ----------
    values : ndarray of float
    states : ndarray of int
    """

    def __init__(self, rounding: Rounding) -> None:
        self._rounding = rounding
        self._size = 0
        self.values = np.empty(256)
        self._family = np.empty(256, dtype=np.int8)
        self.states = np.zeros(256, dtype=np.int8)
        self._starts = array("q")
        self._places: list[str] = []
        self._recipes: list[Recipe | None] | None = []

    @property
    def families(self) -> NDArray[np.int8]:
        """The family of every draw."""
        return self._family[: self._size]

    def add(self, block: DrawBlock) -> int:
        """Give numbers to the draws of a block, and return the first."""
        start, end = self._size, self._size + block.values.size
        if end > len(self.values):
            spare = self._size if self._size < _MANY else self._size // 4
            room = max(end, self._size + spare)
            for column in (self.values, self._family, self.states):
                column.resize(room, refcheck=False)
        self.values[start:end] = block.values
        self._family[start:end] = block.family
        self.states[start:end] = block.state
        self._size = end
        self._places.append(block.place)
        self._starts.append(start)
        if self._recipes is not None:
            self._recipes.append(block.recipe)
        return start

    def place_of(self, draw: int) -> str:
        """Return where a draw was made."""
        return self._places[bisect_right(self._starts, draw) - 1]

    def forget_recipes(self) -> None:
        """Keep no recipes: the code looked at something, and might do other things."""
        self._recipes = None

    def redrawn(self, seed: int) -> bool:
        """Make all draws those of another seed; False if that cannot be done."""
        recipes = [recipe for recipe in self._recipes or () if recipe is not None]
        if len(recipes) < len(self._starts):
            return False
        for start, recipe in zip(self._starts, recipes, strict=True):
            values = np.ravel(recipe(seed))
            self.values[start : start + len(values)] = values
        return True

    def are_fresh(self, draws: NDArray[np.intp], family: int) -> bool:
        """Say whether draws are distinct, of a family, and nothing was seen of them."""
        return bool(
            (draws >= 0).all()
            and len(np.unique(draws)) == len(draws)
            and (self._family[draws] == family).all()
            and not self.states[draws].any()
        )

    def settled(
        self, mean: Array, index: NDArray[np.intp], coef: Array
    ) -> tuple[Array, NDArray[np.intp], Array, bool]:
        """Return mean and terms, draws that are known by now being part of the mean.

        The last says whether a draw is among them of which only a sum was seen.
        """
        # An index of -1 reads some draw or other, which at worst is looked up again.
        if not (index.size and self.states[index].any()):
            return mean, index, coef, False
        state = np.where(index >= 0, self.states[index], _FRESH)
        known = state == _SPENT
        partly = bool((state == _PARTLY).any())
        if known.any():
            with np.errstate(all="ignore"):
                add = np.where(known, coef * self.values[index], 0.0).sum(axis=1)
            self._rounding.cancels(mean + add, mean, add)
            mean = mean + add
            index, coef = np.where(known, -1, index), np.where(known, 0.0, coef)
        return mean, index, coef, partly

    def value(self, mean: Array, index: NDArray[np.intp], coef: Array) -> Array:
        """Return what a value is in this execution, without looking at it."""
        if not index.size:
            return mean.copy()
        with np.errstate(all="ignore"):
            if index.shape[1] == 1 and index.min() >= 0 and coef.all():
                return asarray(mean + coef[:, 0] * self.values[index[:, 0]])
            used = (index >= 0) & (coef != 0)
            return asarray(mean + np.where(used, coef * self.values[index], 0.0).sum(1))

    def agree(self, law: AffineLaw, value: Array) -> None:
        """Make draws what they must have been where a value is given."""
        if not (law.known and len(law.first)):
            return
        with np.errstate(all="ignore"):
            numbers, mean = value[law.first], law.mean[law.first]
            self._rounding.cancels(numbers - mean, numbers, mean)
            u = (numbers - mean) / law.ratio[law.first]
        self.values[law.draw[law.alone]] = u[law.alone]

    def spend(self, index: NDArray[np.intp], law: AffineLaw) -> None:
        """Mark the draws of a value: known, or known by a sum alone."""
        if index is not law.draw:
            self.states[index[index >= 0]] = _PARTLY
        self.states[law.draw[law.alone]] = _SPENT

    def use_up(self, draws: NDArray[np.intp]) -> None:
        """Mark draws that became part of others, and may not be used again."""
        self.states[draws] = _PARTLY
