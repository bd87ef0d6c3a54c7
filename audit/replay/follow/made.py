"""Draws that are made of others: which, and what may still be said of them.

A draw that is a function of other draws has a law of its own as long as nothing else is
known of these. So of all draws that are made of the same ones, one alone may be mixed
with data, and none after one of them was looked at.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.expressions import Expression

__all__ = ["DerivedBlock", "DerivedDraws", "Joint", "State"]


class State(IntEnum):
    """What is known of a draw."""

    CUT = -1
    """What its family says."""
    FRESH = 0
    SPENT = 1
    """Its value."""
    PARTLY = 2
    """A sum."""
    MOVED = 3
    """Nothing but that others are made of it."""


_States = NDArray[np.int8]
_UNSEEN = (State.FRESH, State.MOVED, State.CUT)
_ALL_UNSEEN = (State.FRESH, State.MOVED)
_MOST_SPLIT = 4096  # sums, of one release


@dataclass(frozen=True)
class Joint:
    """What a vector is, or a number, that is made of many draws together.

    Parameters
    ----------
    kind : str
    gamma : float
        The shape of a radius in it.
    """

    kind: str
    gamma: float = 0.0


@dataclass(frozen=True, eq=False)
class DerivedBlock:
    """What a block of draws is made of.

    Parameters
    ----------
    expression : Expression or Joint
        Over slots.
    roots : dict of int to ndarray
        Which draws are in a slot, for each draw of the block.
    start : int
        The first draw of the block.
    """

    expression: Expression | Joint
    roots: dict[int, NDArray[np.intp]]
    start: int = 0

    @property
    def size(self) -> int:
        """How many draws there are in the block."""
        return len(next(iter(self.roots.values())))


@dataclass
class DerivedDraws:
    """All blocks that are made of others, and which of them was mixed with data."""

    blocks: list[DerivedBlock] = field(default_factory=list)
    used: dict[int, int] = field(default_factory=dict)
    sums: dict[int, tuple[dict[int, float], float]] = field(default_factory=dict)
    """Of what draws some are sums, how many times over, and what is added to them."""
    apart: set[int] = field(default_factory=set)
    """Draws of which something is known: what they are made of goes by their law."""

    def of(self, draws: NDArray[np.intp]) -> DerivedBlock | None:
        """Return what draws of one block are made of, None if they are drawn."""
        if self.apart and not self.apart.isdisjoint(draws.tolist()):
            return None
        low, high = int(draws.min()), int(draws.max())
        for block in self.blocks:
            if block.start <= low and high < block.start + block.size:
                return block
        return None

    def touches(self, draws: NDArray[np.intp]) -> bool:
        """Say whether some draws are made of others."""
        return bool(self._touched(draws))

    def mixed(self, draws: NDArray[np.intp], states: _States) -> bool:
        """Say whether draws may not be mixed with data, or note that they are."""
        late = False
        for block, places in self._touched(draws):
            for roots in block.roots.values():
                own = roots[places]
                late |= bool((states[own] == State.PARTLY).any())
                for root in own.tolist():
                    late |= self.used.setdefault(root, block.start) != block.start
        return late

    def seen(self, draws: NDArray[np.intp], states: _States) -> None:
        """Note that something was seen of draws, and so of those behind them."""
        for block, places in self._touched(draws):
            for roots in block.roots.values():
                states[roots[places]] = State.PARTLY

    def part_from(self, draws: NDArray[np.intp], states: _States) -> bool:
        """Let draws stand by themselves, and use up what they are made of.

        False where that was used otherwise.
        """
        touched = self._touched(draws)
        for block, places in touched:
            for roots in block.roots.values():
                own = roots[places]
                if not np.isin(states[own], _ALL_UNSEEN).all():
                    return False
                if any(self.used.get(r, block.start) != block.start for r in own):
                    return False
        for block, places in touched:
            for roots in block.roots.values():
                states[roots[places]] = State.PARTLY
        self.apart.update(draws.tolist())
        return True

    def take_over(self, draws: NDArray[np.intp], states: _States) -> None:
        """Let draws go by what they are made of, which may be mixed again.

        They are the noise of sums with data, of which a sum is made.
        """
        for block, places in self._touched(draws):
            states[block.start + places] = State.MOVED
            for roots in block.roots.values():
                for root in roots[places].tolist():
                    if self.used.get(root) == block.start:
                        del self.used[root]

    def added(
        self,
        draws: NDArray[np.intp],
        parts: Sequence[tuple[NDArray[np.intp], Array]],
        scale: float,
        shift: float,
    ) -> None:
        """Note that draws are sums of others, less a shift and over a scale."""
        for place, draw in enumerate(draws.tolist()):
            terms = {int(d[place]): float(c[place]) / scale for d, c in parts}
            if len(terms) == len(parts):
                self.sums[draw] = terms, -shift / scale

    def apart_again(
        self, mean: Array, index: NDArray[np.intp], coef: Array, states: _States
    ) -> tuple[Array, NDArray[np.intp], Array, bool] | None:
        """Return mean and terms in which no draws are made of the same ones, and False.

        Sums of draws that do become these draws. Then all draws are independent, and
        what is said of them is the law, as long as nothing was seen of them. None if
        there are no such terms, or nothing to be done.
        """
        if not self.blocks:
            return None
        used = set(np.unique(index[index >= 0]).tolist())
        if not used or not np.isin(states[[*used]], _UNSEEN).all():
            return None
        split: set[int] = set()
        while (again := self._sharing(used)) is not None:
            if again not in self.sums or again in self.apart:
                return None
            split.add(again)
            used = (used - {again}) | self.sums[again][0].keys()
            if not np.isin(states[[*used]], _UNSEEN).all() or len(split) > _MOST_SPLIT:
                return None
        for block, places in self._touched(np.array([*used], dtype=np.intp)):
            for roots in block.roots.values():
                if not np.isin(states[roots[places]], _ALL_UNSEEN).all():
                    return None
        rows = []
        mean = mean.copy()
        for row, terms in enumerate(zip(index.tolist(), coef.tolist(), strict=True)):
            written, add = self.written(*terms, split)
            mean[row] += add
            rows.append(written)
        width = max(map(len, rows), default=0)
        places, coefs = np.full((len(mean), width), -1), np.zeros((len(mean), width))
        for row, each in enumerate(rows):
            places[row, : len(each)], coefs[row, : len(each)] = (
                [*each],
                [*each.values()],
            )
        return mean, places, coefs, False

    def written(
        self, draws: Sequence[int], coef: Sequence[float], among: Container[int]
    ) -> tuple[dict[int, float], float]:
        """Return the draws of a sum and how much of each, and what is added to them.

        Those `among` others are written as the sums that they are.
        """
        terms = [each for each in zip(draws, coef, strict=True) if each[0] >= 0]
        waiting = terms[::-1]
        written: dict[int, float] = {}
        shift = 0.0
        while waiting:
            draw, c = waiting.pop()
            if draw not in among:
                written[draw] = written.get(draw, 0.0) + c
                continue
            parts, add = self.sums[draw]
            shift += c * add
            waiting += [(part, c * a) for part, a in parts.items()][::-1]
        return written, shift

    def _sharing(self, used: set[int]) -> int | None:
        """Return the last draw that is made of another one, or of what that is."""
        behind: dict[int, int] = {draw: draw for draw in used}
        found: list[int] = []
        for block, places in self._touched(np.array([*used], dtype=np.intp)):
            for place in places.tolist():
                draw = block.start + place
                for own in block.roots.values():
                    other = behind.setdefault(int(own[place]), draw)
                    if other != draw:
                        found.append(max(other, draw))
        return max(found, default=None)

    def _touched(
        self, draws: NDArray[np.intp]
    ) -> list[tuple[DerivedBlock, NDArray[np.intp]]]:
        if not self.blocks:
            return []
        flat = np.unique(draws)
        if self.apart:
            flat = flat[~np.isin(flat, list(self.apart))]
        found = []
        for block in self.blocks:
            ends = np.searchsorted(flat, (block.start, block.start + block.size))
            if ends[0] < ends[1]:
                found.append((block, flat[ends[0] : ends[1]] - block.start))
        return found
