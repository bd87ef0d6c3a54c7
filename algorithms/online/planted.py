r"""Planted bugs: trees whose noise is drawn too often, or not often enough.

Both have the noise that is right for `TreeAggregation`, and its promise, which is false
for them. An audit must refute them; nobody should use them.

- `FreshNoiseTree`: a node is noised anew at every use, where a program that keeps only
  the exact sums of nodes and adds noise to what it puts out would do just that. All
  prefixes show row 1 then, with independent noise of |t| nodes each (|t| the number of
  ones of t), so the sequence is mu'-GDP with mu'^2/mu^2 = (1/|1| + ... + 1/|m|)/h,
  tightly. Averaging over prefixes is the attack. The ratio of the mu is 1.2 for m = 8,
  1.4 for m = 16, and 1.9 for m = 64.
- `ReusedNoiseTree`: one noise matrix per level for all nodes of that level, as a cache
  with too short a key would have it. Then prefix_3 - prefix_2 - prefix_1 =
  x_3 x_3^T - x_1 x_1^T, with no noise at all: nothing is private, at no epsilon.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.online.fenwick import tree_height
from dpaudit.algorithms.online.prefix_sums import PrefixSums
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair

__all__ = ["FreshNoiseTree", "ReusedNoiseTree"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _PlantedTree(PrefixSums):
    """A tree with the noise and the claim of the right one.

    Parameters
    ----------
    noise, claim, length, row_norm
        See `PrefixSums`.
    """

    @classmethod
    def planted(
        cls,
        epsilon: float,
        delta: float,
        *,
        length: int | None = 64,
        row_norm: float = 1.0,
    ) -> Self:
        """Return `TreeAggregation.calibrated` with the bug."""
        return cls.calibrated(epsilon, delta, length=length, row_norm=row_norm)

    def uses(self, length: int) -> int:
        """Return what the author of the bug believes."""
        return tree_height(length)


@dataclass(frozen=True, kw_only=True)
class FreshNoiseTree(_PlantedTree):
    """Nodes are noised anew for every prefix that they are part of.

    Parameters
    ----------
    noise, claim, length, row_norm
        See `PrefixSums`.

    Examples
    --------
    >>> planted = FreshNoiseTree.planted(1.0, 1e-5)
    >>> exact = planted.exact_claim(planted.worst_case())
    >>> round(exact.parameters["mu"] / planted.noise.mu, 2)
    1.94
    """

    def mixed(self, sums: Array) -> Array:
        return np.asarray(sums * _root_of_ones(sums.shape[-2])[:, None])

    def unmixed(self, prefixes: Array) -> Array:
        return np.asarray(prefixes / _root_of_ones(prefixes.shape[-2])[:, None])


@dataclass(frozen=True, kw_only=True)
class ReusedNoiseTree(_PlantedTree):
    """All nodes of a level have the same noise.

    Parameters
    ----------
    noise, claim, length, row_norm
        See `PrefixSums`.

    Examples
    --------
    >>> planted = ReusedNoiseTree.planted(1.0, 1e-5)
    >>> one, two, three = planted.release(np.eye(3), rng=np.random.default_rng(0))
    >>> np.abs((three - two - one).round(9))
    array([[1., 0., 0.],
           [0., 0., 0.],
           [0., 0., 1.]])
    """

    def mixed(self, sums: Array) -> Array:
        n = sums.shape[-2]
        levels = np.arange(tree_height(n))
        ones = (np.arange(1, n + 1)[:, None] >> levels) & 1
        # The first node of level j is node 2^j; its noise serves for all of them.
        return np.asarray(ones.astype(np.float64) @ sums[..., (1 << levels) - 1, :])

    def unmixed(self, prefixes: Array) -> Array:
        raise UnsupportedError("the noise of the prefixes is singular: no inverse")

    def exact_claim(self, pair: Pair) -> Claim:
        raise UnsupportedError("the noise of the prefixes is singular")

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        raise UnsupportedError("the noise of the prefixes is singular")


def _root_of_ones(length: int) -> Array:
    """Return the root of the number of ones of 1, ..., m."""
    return np.sqrt([step.bit_count() for step in range(1, length + 1)])
