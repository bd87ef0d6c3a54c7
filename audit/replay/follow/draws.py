"""The draws of one execution, in columns: values, families, and what was seen of them.

A draw is *fresh* until the code looks at some value that it is part of. Then it is
*spent*: the code knows it, and it is an ordinary number from then on. Or it is known
*in part*: the code saw a sum of several draws, and no law is known of it any more.

**Terms** say which draws are part of each entry of an array, and how much of them.

The terms of most arrays are never asked for one by one. So they are written out when
they are asked for, and until then known by what they are: a *block* of draws, or an
*image* of fewer numbers with noise.

An image is A n + b, where n is an array with noise, A an ordinary linear map without a
kernel, and b ordinary numbers: the difference of a noisy vector and every row of a
matrix, or its product with a tall matrix. With A and b known, it shows as much as n. So
it is n that the code looks at if it looks at an image: the noisy value then does not
change its shape, or its scale, with ordinary numbers that come after it.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy import asarray, full  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.made import DerivedBlock, DerivedDraws, State
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.expressions import Expression

__all__ = ["DrawBlock", "Draws", "Image", "Terms"]

Recipe: TypeAlias = Callable[[int], Array]
"""Makes the draws that another seed would have given."""

_Written: TypeAlias = tuple[NDArray[np.intp], Array]
_MANY = 1_000_000  # draws from which on there is less room to spare
_CANCELLED = 1e-3  # what is smaller beside its parts is a difference of them
_ROUGH = 1e-14  # of these parts: many times what one operation leaves
_NOTHING = 1e-12  # beside the scale of the noise


@dataclass(eq=False, slots=True)
class DrawBlock:
    """Draws that were made at once, and that have no numbers before these are needed.

    Parameters
    ----------
    draws : Draws
    family : Family
    drawn : ndarray, shape (size,), or callable
        The draws, or what makes them once they are asked for.
    size : int
    place : str
    recipe : callable, optional
    state : int
        What the code knows of them, before they have numbers.
    start : int, optional
        The number of the first.
    choose : callable, optional
        Looks at them where they are the outcomes of choices.
    """

    draws: "Draws"
    family: int
    drawn: Array | Callable[[], Array]
    size: int
    place: str
    recipe: Recipe | None
    state: int = State.FRESH
    start: int | None = None
    choose: Callable[[Array], Array] | None = None

    @property
    def values(self) -> Array:
        """The draws, flat."""
        if callable(self.drawn):
            self.drawn = np.ravel(self.drawn())
        return self.drawn

    @property
    def numbers(self) -> slice:
        """The numbers of the draws."""
        if self.start is None:
            self.start = self.draws.add(self)
        return slice(self.start, self.start + self.size)

    @property
    def is_fresh(self) -> bool:
        """Whether the code saw nothing of them yet."""
        if self.start is None:
            return self.state == State.FRESH
        return not self.draws.states[self.numbers].any()

    def look(self) -> tuple[Array, bool, bool]:
        """Return the draws, whether one is known in part, and whether all are spent."""
        if self.start is None:
            return (
                self.values.copy(),
                self.state == State.PARTLY,
                self.state == State.SPENT,
            )
        states = self.draws.states[self.numbers]
        seen, known = (states == State.PARTLY).any(), (states == State.SPENT).all()
        return self.draws.values[self.numbers].copy(), bool(seen), bool(known)

    def spend(self, *, partly: bool = False) -> None:
        """Mark the draws as known, or as parts of others, not to be used again."""
        state = State.PARTLY if partly else State.SPENT
        if self.start is None:
            self.state = state
        else:
            self.draws.states[self.numbers] = state
            numbers = self.numbers
            self.draws.saw(np.arange(numbers.start, numbers.stop))


class Draws:
    """The numbered draws of an execution, and by how much numbers may be off.

    Attributes
    ----------
    values : ndarray of float
    states : ndarray of int
    made : DerivedDraws
    fits : list of tuple
        Draws, from the first to before the last, of which the law is what a simulation
        fits, and what they are made of.
    """

    def __init__(self) -> None:
        self._size = 0
        self.rough = 0.0  # what rounding leaves of differences of large numbers
        self.values = np.empty(256)
        self._family = np.empty(256, dtype=np.int32)
        self.states = np.zeros(256, dtype=np.int8)
        self._starts = array("q")
        self._places: list[str] = []
        self._recipes: list[Recipe | None] | None = []
        self.made = DerivedDraws()
        self.fits: list[tuple[int, int, Expression]] = []
        self.texts: list[Any] = []  # that may become numbers

    @property
    def families(self) -> NDArray[np.int32]:
        """The family of every draw."""
        return self._family[: self._size]

    def add(self, block: DrawBlock) -> int:
        """Give numbers to the draws of a block, and return the first."""
        start, end = self._size, self._size + block.size
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

    def leave_gap(self, place: str) -> None:
        """Let no two vectors follow on each other."""
        zero, none = np.zeros(1), int(Family.UNKNOWN)
        self.add(DrawBlock(self, none, zero, 1, place, lambda seed: zero))

    def place_of(self, draw: int) -> str:
        """Return where a draw was made."""
        return self._places[bisect_right(self._starts, draw) - 1]

    def blocks_of(self, draws: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which draws were made at once: the number of each one's block."""
        return np.searchsorted(asarray(self._starts), draws, side="right") - 1

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
            and not (self.states[draws] > 0).any()
            and not self.made.mixed(draws, self.states)
        )

    def may_go_into(self, draws: NDArray[np.intp]) -> bool:
        """Say whether others may be made of draws: nothing was seen of them."""
        return bool(
            np.isin(self.states[draws], (State.FRESH, State.MOVED, State.CUT)).all()
        )

    def go_into(self, draws: NDArray[np.intp], made: DerivedBlock) -> None:
        """Note that draws, one block, are made of others."""
        for roots in made.roots.values():
            self.states[roots] = State.MOVED
        self.made.blocks.append(replace(made, start=int(draws[0])))

    def saw(self, draws: NDArray[np.intp]) -> None:
        """Note that something was seen of draws."""
        self.made.seen(draws, self.states)

    def settled(
        self, mean: Array, index: NDArray[np.intp], coef: Array, *, mixes: bool = True
    ) -> tuple[Array, NDArray[np.intp], Array, bool]:
        """Return mean and terms, draws that are known by now being part of the mean.

        The last says whether a draw is among them of which only a sum was seen, or one
        that is made of what is mixed with data elsewhere.
        """
        late = mixes and self.made.mixed(index[index >= 0], self.states)
        # An index of -1 reads some draw or other, which at worst is looked up again.
        if not (index.size and self.states[index].any()):
            return mean, index, coef, late
        state = np.where(index >= 0, self.states[index], State.FRESH)
        known = state == State.SPENT
        partly = late or bool((state >= State.PARTLY).any())
        if known.any():
            with np.errstate(all="ignore"):
                add = np.where(known, coef * self.values[index], 0.0).sum(axis=1)
            self.cancels(mean + add, mean, add)
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
            self.cancels(numbers - mean, numbers, mean)
            u = (numbers - mean) / law.ratio[law.first]
        self.values[law.draw[law.alone]] = u[law.alone]

    def spend(self, index: NDArray[np.intp], law: AffineLaw) -> None:
        """Mark the draws of a value: known, or known by a sum alone."""
        if index is not law.draw:
            self.states[index[index >= 0]] = State.PARTLY
        self.states[law.draw[law.alone]] = State.SPENT
        self.saw(index[index >= 0])

    def cancels(self, result: Array, *parts: Array) -> None:
        """Note what rounding leaves of a sum, or difference, of parts.

        A number between them that ought to be 0, or the same on both sides, is off by
        some units in the last place of these.
        """
        with np.errstate(all="ignore"):
            size = np.max([float(np.abs(part).max(initial=0.0)) for part in parts])
            if not 4 * self.rough < _ROUGH * size < math.inf:
                return  # nothing is lost, or not much more than was already
            least = float(np.abs(result).min(initial=math.inf))
            if least >= _CANCELLED * size:
                return
            # Of a vector, only where an entry is small beside those it is made of.
            wide = np.zeros(result.shape)
            for part in parts:
                wide = np.maximum(wide, np.abs(part))
            gone = np.abs(result) < _CANCELLED * wide
            lost = _ROUGH * float(wide[gone].max(initial=0.0))
            self.rough = max(self.rough, lost)

    def with_rounding(self, law: AffineLaw, noisy: Any = True) -> AffineLaw:
        """Return a law that knows by how much its noisy entries may be off."""
        if not self.rough:
            return law
        apart = law.known and len(law.first) == len(law.mean)
        if apart and (self.rough <= _NOTHING * law.scale).all():
            return law
        return replace(law, rough=np.where(noisy, self.rough, np.zeros(len(law.mean))))

    def use_up(self, draws: NDArray[np.intp]) -> None:
        """Mark draws that became part of others, and may not be used again."""
        self.states[draws] = State.PARTLY
        self.saw(draws)


@dataclass(frozen=True, eq=False, slots=True)
class Image:
    """What an array is a linear image of.

    Parameters
    ----------
    origin : Tracked
        The array with noise, which may have changed since.
    source : Tracked
        A copy of it as it was.
    apply : callable
        The linear map, of arrays that are like the source. What it returns may be of
        fewer entries, each of which stands for many.
    injective : callable
        Says whether it has no kernel.
    """

    origin: Any
    source: Any
    apply: Callable[[Array], Array]
    injective: Callable[[], bool]


class Terms:
    """Which draws are part of each entry of an array; they never change.

    Parameters
    ----------
    index, coef : ndarray, shape (size, m), optional
        An index of -1 is no term.
    make : callable, optional
        Returns both; it is called when one is asked for.
    block : DrawBlock, optional
        Whose draws the entries are,
    factor : float
        so many times over.
    image : Image, optional
    """

    __slots__ = ("_coef", "_index", "_make", "block", "factor", "image")

    def __init__(
        self,
        index: NDArray[np.intp] | None = None,
        coef: Array | None = None,
        *,
        make: Callable[[], _Written] | None = None,
        block: DrawBlock | None = None,
        factor: float = 1.0,
        image: Image | None = None,
    ) -> None:
        self._index, self._coef, self._make = index, coef, make
        self.block, self.factor, self.image = block, factor, image

    @staticmethod
    @lru_cache(maxsize=256)
    def none(size: int) -> "Terms":
        """Return the terms of numbers without noise."""
        return Terms(np.empty((size, 0), dtype=np.intp), np.empty((size, 0)))

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self._index is None or self._index.shape[1] > 0

    @property
    def index(self) -> NDArray[np.intp]:
        return self._written()[0]

    @property
    def coef(self) -> Array:
        return self._written()[1]

    def _written(self) -> _Written:
        if self._index is None or self._coef is None:
            if self._make is not None:
                self._index, self._coef = self._make()
                self._make = None
            elif self.block is not None:
                numbers = self.block.numbers
                self._index = np.arange(numbers.start, numbers.stop).reshape(-1, 1)
                self._coef = full(self._index.shape, self.factor)
        assert self._index is not None
        assert self._coef is not None
        return self._index, self._coef
