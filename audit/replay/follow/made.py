"""Draws that are made of others: which, and what may still be said of them.

A draw that is a function of other draws has a law of its own as long as nothing else is
known of these. So of all draws that are made of the same ones, one alone may be mixed
with data, and none after one of them was looked at.
"""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.replay.laws.expressions import Expression

__all__ = ["Joint", "Made", "MadeOf", "State"]


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
class MadeOf:
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
class Made:
    """All blocks that are made of others, and which of them was mixed with data."""

    blocks: list[MadeOf] = field(default_factory=list)
    used: dict[int, int] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)
    """Draws of which something is known: what they are made of goes by their law."""

    def of(self, draws: NDArray[np.intp]) -> MadeOf | None:
        """Return what draws are made of, if they are all from one block."""
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

    def take_over(self, draws: NDArray[np.intp], states: _States) -> None:
        """Let no one look at draws any more, and what they are made of be mixed again.

        They are the noise of sums with data, of which a sum is made.
        """
        for block, places in self._touched(draws):
            states[block.start + places] = State.PARTLY
            for roots in block.roots.values():
                for root in roots[places].tolist():
                    if self.used.get(root) == block.start:
                        del self.used[root]

    def _touched(
        self, draws: NDArray[np.intp]
    ) -> list[tuple[MadeOf, NDArray[np.intp]]]:
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
