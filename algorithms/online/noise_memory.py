r"""What a stream has to remember of its noise, by how the noise of prefixes is made.

The noise of the t-th prefix is a combination of the independent vectors z_1, ..., z_t.
Each memory is told z_t and returns the noise; its arrays go into the state of a stream.

- `StackMemory`: a tree. It keeps, for each level j, the noise of the prefix that ended
  with a node of level j last. Node t is on level v = log2 low(t), and prefix t - low(t)
  ended with a node of a higher level which no later step before t has written to, so
  noise(prefix_t) = noise(prefix_(t - low(t))) + noise(node_t) is one look, one addition
  and one write. Without levels every prefix has noise of its own.
- `PastMemory`: sum_s r_(t-s) z_s for any r, from all that was drawn.
- `PolesMemory`: the same for r with few poles, where S_j = sum_(s < t) theta_j^(t-s)
  z_s is all there is to know of the past, and becomes theta_j (S_j + z_t).
"""

from abc import ABC, abstractmethod

import numpy as np

from dpaudit.algorithms.online.fenwick import parent
from dpaudit.algorithms.online.toeplitz import Poles
from dpaudit.arrays import Array

__all__ = ["NoiseMemory", "PastMemory", "PolesMemory", "StackMemory"]


class NoiseMemory(ABC):
    """The noise of prefixes, one after the other.

    Parameters
    ----------
    name : str
        Of the array in a state.
    shape : tuple of int
    """

    def __init__(self, name: str, shape: tuple[int, int]) -> None:
        self._name = name
        self._kept = np.zeros(shape)

    @abstractmethod
    def noise(self, step: int, fresh: Array) -> Array:
        """Return the noise of a prefix, given z_t, which may be written to."""

    def arrays(self) -> dict[str, Array]:
        """Return what is remembered."""
        return {self._name: self._kept}

    def load(self, arrays: dict[str, Array]) -> None:
        """Go back to what `arrays` returned once."""
        self._kept = arrays[self._name]


class StackMemory(NoiseMemory):
    """That of a tree, or of prefixes with noise of their own.

    Parameters
    ----------
    levels : int
        Of the tree, or 0.
    width : int
        Coordinates of a matrix.
    """

    def __init__(self, levels: int, width: int) -> None:
        super().__init__("stack", (levels, width))

    def noise(self, step: int, fresh: Array) -> Array:
        """Return the noise of a prefix."""
        if len(self._kept):
            if before := parent(step):
                fresh += self._kept[_level(before)]
            self._kept[_level(step)] = fresh
        return fresh


class PastMemory(NoiseMemory):
    """All that was drawn: as many vectors as there are steps.

    Parameters
    ----------
    series : ndarray, shape (m,)
        r_0, ..., r_(m-1).
    width : int
        Coordinates of a matrix.
    """

    def __init__(self, series: Array, width: int) -> None:
        super().__init__("past", (len(series), width))
        self._series = series[::-1].copy()

    def noise(self, step: int, fresh: Array) -> Array:
        """Return the noise of a prefix."""
        self._kept[step - 1] = fresh
        return np.asarray(self._series[-step:] @ self._kept[:step])


class PolesMemory(NoiseMemory):
    """One vector per pole.

    Parameters
    ----------
    poles : Poles
    width : int
        Coordinates of a matrix.
    """

    def __init__(self, poles: Poles, width: int) -> None:
        super().__init__("poles", (len(poles.ratios), width))
        self._poles = poles

    def noise(self, step: int, fresh: Array) -> Array:
        """Return the noise of a prefix."""
        noise = fresh + self._poles.weights @ self._kept
        self._kept += fresh
        self._kept *= self._poles.ratios[:, np.newaxis]
        return np.asarray(noise)


def _level(step: int) -> int:
    return (step & -step).bit_length() - 1
