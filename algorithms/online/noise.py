r"""Noise of prefixes: how much, in which coordinates, of which nodes, and remembered.

A deviation here is that of one coordinate of a symmetric matrix (`pack`), on one noisy
sum of which at most `uses` show any one row (where they show it with weights,
the squares of these add up to so much at most).

`CalibratedNoise`, ratio sqrt 2: one sum moves by at most sqrt 2 R^2 if a row of norm at
most R is replaced (REPLACE_ONE), so `uses` of them together, in one long vector, move
by sqrt(2 uses) R^2; with deviation sqrt(2 uses) R^2/mu they are mu-GDP. Off the
diagonal a noise matrix then has the deviation sqrt(uses) R^2/mu.

`PublishedNodeNoise`, ratio 1: section 2.3.2 of Dwork et al., N(0, 50 log^3(m/delta)/
epsilon^2) for each entry of the triangle of each node. log^3 is the cube of the natural
logarithm.

`PublishedStepNoise`, ratio 1: Algorithm 1 of Dwork et al., which Algorithm 3 uses anew
in each step, N(0, 2 log(1.25/delta)/epsilon^2).

**Coordinates** are symmetric matrices as vectors in which their noise is isotropic.
Noise on a symmetric matrix has independent entries, sd s above the diagonal and rho s
on it: rho = sqrt 2 for the Gaussian orthogonal ensemble (GOE), rho = 1 for the
triangles of Dwork et al. With the entries above the diagonal multiplied by rho, every
coordinate has the deviation rho s, and the Euclidean length of a vector is

- rho = sqrt 2: the Frobenius norm of the matrix;
- rho = 1: the l2 norm of its upper triangle.

If a row of norm at most R is replaced, x x^T moves by at most sqrt 2 R^2 in either, and
by R^2 if it is replaced by zero (`dpaudit.algorithms.covariance.second_moment`).

**Memory** is what a stream has to remember of its noise, by how that of prefixes is
made. That of the t-th prefix is a combination of the independent vectors z_1, ..., z_t.
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
from dataclasses import dataclass
from functools import cache
from math import isqrt, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.gaussian import classical_mu
from dpaudit.validation import Checked, Fraction, Positive

__all__ = [
    "CalibratedNoise",
    "NoiseMemory",
    "PrefixNoise",
    "PublishedNodeNoise",
    "PublishedStepNoise",
]


def coordinates(dimension: int) -> int:
    """Return d (d + 1)/2."""
    return dimension * (dimension + 1) // 2


@cache
def layout(
    dimension: int, ratio: float = 1.0
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Array, Array]:
    """Return rows, columns, places of the entries, weights, and their inverses."""
    rows, columns = np.triu_indices(dimension)
    place = np.empty((dimension, dimension), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    weights = np.where(rows == columns, 1.0, ratio)
    return rows, columns, place.ravel(), weights, 1 / weights


def pack(matrices: Array, ratio: float) -> Array:
    """Return the coordinates of symmetric matrices, (..., d, d) -> (..., q)."""
    rows, columns, _, weights, _ = layout(matrices.shape[-1], ratio)
    return np.asarray(matrices[..., rows, columns] * weights)


def pack_rows(rows: Array, ratio: float) -> Array:
    """Return the coordinates of x x^T for each row x, (n, d) -> (n, q)."""
    first, second, _, weights, _ = layout(rows.shape[-1], ratio)
    products = rows[..., first] * rows[..., second]
    products *= weights
    return np.asarray(products)


def unpack(vectors: Array, ratio: float) -> Array:
    """Return the symmetric matrices with these coordinates, (..., q) -> (..., d, d)."""
    dimension = (isqrt(8 * vectors.shape[-1] + 1) - 1) // 2
    _, _, place, _, inverse = layout(dimension, ratio)
    flat = np.take(vectors * inverse, place, axis=-1)
    return np.asarray(flat.reshape(*vectors.shape[:-1], dimension, dimension))


class PrefixNoise(Checked, ABC):
    """How much noise there is on one of the sums that prefixes are made of."""

    ratio: ClassVar[float]
    """Deviation on the diagonal over that above it."""

    @abstractmethod
    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return the deviation of a coordinate, for at most m rows of norm R.

        The uses are how many noisy sums show one row, at most; where they show it with
        weights, the sum of the squares of these.
        """


@dataclass(frozen=True)
class CalibratedNoise(PrefixNoise):
    """The least GOE noise that makes all sums together mu-GDP: sqrt(2 uses) R^2/mu."""

    mu: Positive

    ratio = sqrt(2)

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        return sqrt(2 * uses) * row_norm**2 / self.mu


@dataclass(frozen=True)
class _PrintedNoise(PrefixNoise):
    """Noise that is printed for (epsilon, delta)."""

    epsilon: Positive
    delta: Fraction

    ratio = 1.0


class PublishedNodeNoise(_PrintedNoise):
    """Section 2.3.2, for a node of the whole: sqrt(50 log^3(m/delta)) R^2/epsilon."""

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        return sqrt(50 * log(length / self.delta) ** 3) * row_norm**2 / self.epsilon


class PublishedStepNoise(_PrintedNoise):
    """Algorithm 1, for a single step: sqrt(2 log(1.25/delta)) R^2/epsilon."""

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        return row_norm**2 / classical_mu(self.epsilon, self.delta)


def parent(step: int) -> int:
    """Return t - low(t), the prefix that node t is added to."""
    return step & (step - 1)


def tree_height(length: int) -> int:
    """Return the most nodes that a row is in, floor(log2 m) + 1."""
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
    from_zero = np.insert(np.asarray(prefixes, dtype=np.float64), 0, 0.0, axis=-2)
    steps = np.arange(1, from_zero.shape[-2])
    return from_zero[..., 1:, :] - from_zero[..., steps & (steps - 1), :]


class NoiseMemory(ABC):
    """The noise of prefixes, one after the other, kept in an array of that name."""

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
    """That of a tree, or of prefixes with noise of their own, a tree of no levels."""

    def __init__(self, levels: int, width: int) -> None:
        super().__init__("stack", (levels, width))

    def noise(self, step: int, fresh: Array) -> Array:
        if len(self._kept):
            if before := parent(step):
                fresh += self._kept[_level(before)]
            self._kept[_level(step)] = fresh
        return fresh


class PastMemory(NoiseMemory):
    """All that was drawn, a vector for every r_0, ..., r_(m-1)."""

    def __init__(self, series: Array, width: int) -> None:
        super().__init__("past", (len(series), width))
        self._series = series[::-1].copy()

    def noise(self, step: int, fresh: Array) -> Array:
        self._kept[step - 1] = fresh
        return np.asarray(self._series[-step:] @ self._kept[:step])


class PolesMemory(NoiseMemory):
    """One vector per pole: the theta_j, and what each is worth in r."""

    def __init__(self, ratios: Array, weights: Array, width: int) -> None:
        super().__init__("poles", (len(ratios), width))
        self._ratios, self._weights = ratios, weights

    def noise(self, step: int, fresh: Array) -> Array:
        noise = fresh + self._weights @ self._kept
        self._kept += fresh
        self._kept *= self._ratios[:, np.newaxis]
        return np.asarray(noise)


def _level(step: int) -> int:
    return (step & -step).bit_length() - 1
