"""What is left to statistics: suspicions that executions by themselves do not prove.

Three mechanisms for `dpaudit.audit.audit`, whose sequential test is valid whatever they
say of their own losses, which serve it as an attack:

- `Simulated`: both laws of the release are known exactly, and are drawn from;
- `Followed`: whole transcripts, each with its exact loss from replays on both datasets;
- the mechanism itself: releases, with all attacks of a black-box audit.
"""

from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws import Law, losses
from dpaudit.neighbours import Pair

__all__ = ["Simulated"]


@dataclass(frozen=True, eq=False)
class Simulated:
    """Releases on the two datasets of a pair, drawn from their exact laws.

    Parameters
    ----------
    pair : Pair
    law, other : Law
    """

    pair: Pair
    law: Law
    other: Law

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent releases as flat arrays, shape (size, n)."""
        return self._law(data).sample(size, rng=rng)

    def release(self, data: Array, *, rng: np.random.Generator) -> Array:
        """Return one release, shape (n,)."""
        return self.draw(data, 1, rng=rng)[0]

    def privacy_loss(self, releases: Array, data: Array, other: Array) -> Array:
        """Return the exact losses, shape (size,)."""
        return losses(self._law(data), self._law(other), releases)

    def _law(self, data: Array) -> Law:
        same = np.array_equal(data, self.pair.data, equal_nan=True)
        return self.law if same else self.other
