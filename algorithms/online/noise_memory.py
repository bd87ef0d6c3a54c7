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

**The tree.** It is the binary tree of prefix sums, reduced to the nodes that a prefix
ever needs. Write low(t) for the lowest set bit of t = 1, 2, ..., m. Node t holds the
rows t - low(t) + 1, ..., t, and

    prefix_t = prefix_(t - low(t)) + node_t,    prefix_0 = 0,

so a prefix is the sum of as many nodes as t has ones: the complete binary tree over the
rows with the right children left out, which no prefix needs (Fenwick 1994). It is there
for any m, not only for powers of two.

**How many nodes hold a row.** Row i is in node t if and only if t is one of i,
i + low(i), ... up to m: the smallest node that holds it is node i itself, and the next
larger one than node t ends at t + low(t). Each step at least doubles low(t) <= m, so
there are at most floor(log2 m) + 1 of them. Row 1 is in that many: 1, 2, 4, ...

**Prefixes are nodes.** The map from the m nodes to the m prefixes is linear and lower
triangular with ones on the diagonal, so it has an inverse: node_t = prefix_t -
prefix_(t - low(t)). Whoever sees all noisy prefixes sees all noisy nodes, and nothing
more: the privacy loss of either is that of the other.

Reference: Fenwick, *A new data structure for cumulative frequency tables*, Software:
Practice and Experience 24, 1994; Chan, Shi, Song, *Private and continual release of
statistics*, ACM TISSEC 2011 (the binary mechanism).
"""

from abc import ABC, abstractmethod

import numpy as np

from dpaudit.arrays import Array

__all__ = [
    "NoiseMemory",
    "PastMemory",
    "PolesMemory",
    "StackMemory",
    "accumulate",
    "differences",
    "parent",
    "tree_height",
]


def parent(step: int) -> int:
    """Return t - low(t), the prefix that node t is added to.

    Examples
    --------
    >>> [parent(t) for t in range(1, 9)]
    [0, 0, 2, 0, 4, 4, 6, 0]
    """
    return step & (step - 1)


def tree_height(length: int) -> int:
    """Return the most nodes that a row is in, floor(log2 m) + 1.

    Examples
    --------
    >>> [tree_height(m) for m in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return length.bit_length()


def accumulate(nodes: Array) -> Array:
    """Return the prefixes of nodes, shape (..., m, q)."""
    prefixes = np.array(nodes, dtype=np.float64)
    for step in range(1, prefixes.shape[-2] + 1):
        if before := parent(step):
            prefixes[..., step - 1, :] += prefixes[..., before - 1, :]
    return prefixes


def differences(prefixes: Array) -> Array:
    """Return the nodes of prefixes, shape (..., m, q)."""
    nodes = np.array(prefixes, dtype=np.float64)
    for step in range(1, nodes.shape[-2] + 1):
        if before := parent(step):
            nodes[..., step - 1, :] -= prefixes[..., before - 1, :]
    return nodes


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
    ratios, weights : ndarray, shape (J,)
        The theta_j, and what each is worth in r.
    width : int
        Coordinates of a matrix.
    """

    def __init__(self, ratios: Array, weights: Array, width: int) -> None:
        super().__init__("poles", (len(ratios), width))
        self._ratios, self._weights = ratios, weights

    def noise(self, step: int, fresh: Array) -> Array:
        """Return the noise of a prefix."""
        noise = fresh + self._weights @ self._kept
        self._kept += fresh
        self._kept *= self._ratios[:, np.newaxis]
        return np.asarray(noise)


def _level(step: int) -> int:
    return (step & -step).bit_length() - 1
