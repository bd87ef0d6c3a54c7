r"""The epochs of Algorithm 4, for many trials at a time.

Trials end their epochs at rows of their own. Each keeps the row at which its epoch
began, the number of the epoch, and a stack of the noise of prefixes, one per level, as
in `dpaudit.algorithms.online.streams`.
"""

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.online.doubling_rules import Plan

__all__ = ["Epochs"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Epochs:
    """Where each trial is, and the noise of its prefix.

    Parameters
    ----------
    plan : Plan
    trials : int
    levels : int
        Of the tree.
    width : int
        Coordinates of a matrix.

    Attributes
    ----------
    number : ndarray, shape (trials,)
        j, from 0.
    step : ndarray, shape (trials,)
        Rows of the epoch so far.
    """

    def __init__(self, plan: Plan, trials: int, levels: int, width: int) -> None:
        self._plan = plan
        self._trials = np.arange(trials)
        self.number: Integers = np.zeros(trials, dtype=np.int64)
        self.step: Integers = np.zeros(trials, dtype=np.int64)
        # Row 0 is the empty prefix, which has no noise; row v + 1 is for level v.
        self.stack = np.zeros((trials, levels + 1, width))

    @property
    def deviation(self) -> Array:
        """Of a coordinate of a node, shape (trials,)."""
        return np.asarray(self._plan.deviation * 2.0 ** (self.number / 2))

    def advance(self) -> Integers:
        """Count a row; return how many rows the node has that ends with it."""
        self.step += 1
        return self.step & -self.step

    def noise_of_prefix(self, unit: Array) -> Array:
        """Return the noise of the prefixes, given that of the nodes that end here.

        Parameters
        ----------
        unit : ndarray, shape (trials, q)
            In units of `deviation`.
        """
        before = _level(self.step & (self.step - 1))
        noise = self.stack[self._trials, before]
        noise += self.deviation[:, np.newaxis] * unit
        self.stack[self._trials, _level(self.step)] = noise
        return noise

    def padding(self) -> Array:
        """Return the deviation of what fills the noise of a prefix up, (trials,)."""
        ones = np.bitwise_count(self.step)
        missing = np.maximum(self._plan.padded_to - ones.astype(np.int64), 0)
        return np.asarray(self.deviation * np.sqrt(missing))

    def end(self, total: Array) -> NDArray[np.bool_]:
        """End the epochs in which X says so, shape (trials,), and say which did."""
        margin = self._plan.margin * (
            2.0 ** (self.number / 2) if self._plan.margin_grows else 1.0
        )
        ended = total > self._plan.guess * 2.0**self.number - margin
        self.number += ended
        self.step[ended] = 0
        return np.asarray(ended)


def _level(step: Integers) -> Integers:
    """Return 1 + log2 of the lowest set bit, or 0 where there is none."""
    low = (step & -step).astype(np.float64)
    return np.frexp(low)[1].astype(np.int64)
