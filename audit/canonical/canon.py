"""The grids of an audit: one for each layout of releases, learned from the past."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import flatten
from dpaudit.audit.canonical.grid import BITS, SMALLEST, Grid
from dpaudit.audit.canonical.sizes import learned_grid
from dpaudit.mechanism import Release
from dpaudit.outputs import Batch, Part, arrays_of, map_arrays
from dpaudit.streams import stream

__all__ = ["BITS_ONLY", "Canon", "data_size"]

BITS_ONLY = (
    "what seemed a violation differs in its last bits only: over the real numbers this "
    "is no violation; attacks.BITS audit the doubles themselves"
)
"""What is said of a refutation that vanished when releases were nudged."""

_LEARNED = 2**20  # entries that a grid is learned from
_SEEN = 5  # releases a side: equal laws lie apart by chance once in 126 entries, then
_AGAIN, _ENOUGH = 4, 2000  # more releases before a grid is learned again; and the last


@dataclass
class Canon:
    """The grids of an audit on one pair: one for each layout, learned from the past.

    Parameters
    ----------
    seed, key : int
        The offset is drawn from the stream of that name.
    data : float
        The size of the data.
    """

    seed: int
    key: int
    data: float = 0.0
    grids: dict[str, Grid] = field(default_factory=dict)
    _learned_on: dict[str, int] = field(default_factory=dict)
    _doubts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        offset, binade, self.score_offset = stream(self.seed, self.key).random(3)
        self._offset, self._binade = float(offset), float(2.0 ** (binade - 1))

    def is_due(self, counts: Mapping[str, int]) -> bool:
        """Say whether so many past outputs teach more than those learned from."""
        return any(self._is_due(layout, count) for layout, count in counts.items())

    def _is_due(self, layout: str, count: int) -> bool:
        before = self._learned_on.get(layout, 0)
        return before < _ENOUGH and count >= _AGAIN * before

    def learn(self, on_data: Batch, on_neighbour: Batch) -> list[str]:
        """Learn from past releases as they were returned; return what changed.

        Returns
        -------
        list of str
            The layouts whose canonical releases are others now.
        """
        changed = []
        for layout in {**on_data.parts, **on_neighbour.parts}:
            count = on_data.count(layout) + on_neighbour.count(layout)
            if not self._is_due(layout, count):
                continue
            self._learned_on[layout] = count
            sides = [_few(batch, layout) for batch in (on_data, on_neighbour)]
            if all(side is None for side in sides):
                continue
            arrays = _by_array([side for side in sides if side is not None])
            grid = learned_grid(arrays, self.data, self._offset, self._binade)
            if layout not in self.grids or not grid.resembles(self.grids[layout]):
                self.grids[layout] = grid
                changed.append(layout)
            self._doubts[layout] = _told_by_rounding(self.grids[layout], *sides)
        return changed

    def __call__(self, batch: Batch) -> Batch:
        """Return canonical outputs."""
        return self._changed(batch, Grid.apply)

    def nudged(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Return canonical outputs, moved by a little before they were put on grids."""
        return self(self._changed(batch, lambda grid, x: grid.nudged(x, rng)))

    def nudges(self) -> np.random.Generator:
        """Return the generator of the nudges."""
        return stream(self.seed, self.key, 0)

    @property
    def doubts(self) -> tuple[str, ...]:
        """What was read as rounding though it seemed to tell D from D', in words."""
        doubted = sum(differ for differ, _ in self._doubts.values())
        among = sum(entries for _, entries in self._doubts.values())
        if not doubted:
            return ()
        return (
            f"{doubted} of {among} entries of a release differ between D and D' by no "
            "more than rounding does: over the real numbers this is no violation, and "
            "they were read as equal; attacks.BITS audit the doubles themselves",
        )

    def _changed(self, batch: Batch, change: Any) -> Batch:
        parts = {}
        for layout, part in batch.parts.items():
            numbers = part.numbers
            if numbers is not None:
                numbers = change(self._grid(layout), numbers)
            parts[layout] = Part(part.places, numbers)
        return Batch(batch.size, parts)

    def _grid(self, layout: str) -> Grid:
        """Return the grid of a layout; of one that is new, of sizes of its entries."""
        known = self.grids.get(layout)
        if known is not None:
            return known
        return Grid(
            np.array([SMALLEST]),
            np.array([BITS]),
            np.zeros(1),
            self._offset,
            self._binade,
        )


def data_size(*datasets: Any) -> float:
    """Return the largest finite magnitude in datasets, 0 where there are no numbers."""
    largest = 0.0
    for data in datasets:
        try:
            numbers = np.abs(np.asarray(data, dtype=np.float64))
        except (TypeError, ValueError):
            continue
        finite = np.isfinite(numbers)
        largest = max(largest, float(numbers.max(initial=0.0, where=finite)))
    return largest


def _few(batch: Batch, layout: str) -> Release | None:
    """Return some releases of a layout as they were returned."""
    numbers = batch.numbers(layout)
    if numbers is None:
        return None
    width = sum(a.size // max(len(a), 1) for a in arrays_of(numbers))
    most = max(_LEARNED // max(width, 1), 10)
    return map_arrays(numbers, lambda array: array[:most])


def _by_array(sides: list[Release]) -> list[list[Array]]:
    """Return the arrays of releases, flat, in the order of `flatten`; each by sides."""
    of_sides = (
        [side[key] for key in sorted(side)] if isinstance(side, Mapping) else [side]
        for side in sides
    )
    return [
        [array.reshape(len(array), -1) for array in arrays]
        for arrays in zip(*of_sides, strict=True)
    ]


def _told_by_rounding(
    grid: Grid, first: Release | None, second: Release | None
) -> tuple[int, int]:
    """Return how many entries tell D from D' but on the grid, and of how many."""
    if first is None or second is None:
        return 0, 0
    raw = flatten(first), flatten(second)
    if min(map(len, raw)) < _SEEN:
        return 0, 0
    both = np.vstack([flatten(grid.apply(side)) for side in (first, second)])
    apart = (raw[0].max(axis=0) < raw[1].min(axis=0)) | (
        raw[0].min(axis=0) > raw[1].max(axis=0)
    )
    constant = (both == both[0]).all(axis=0)
    return int((apart & constant).sum()), len(apart)
