r"""Planted bugs in trees and in epochs, which an audit must refute.

**Trees whose noise is drawn too often, or not often enough.** Both have the noise that
is right for `TreeAggregation`, and its promise, which is false for them. An audit must
refute them; nobody should use them.

- `FreshNoiseTree`: a node is noised anew at every use, where a program that keeps only
  the exact sums of nodes and adds noise to what it puts out would do just that. All
  prefixes show row 1 then, with independent noise of |t| nodes each (|t| the number of
  ones of t), so the sequence is mu'-GDP with mu'^2/mu^2 = (1/|1| + ... + 1/|m|)/h,
  tightly. Averaging over prefixes is the attack. The ratio of the mu is 1.2 for m = 8,
  1.4 for m = 16, and 1.9 for m = 64.
- `ReusedNoiseTree`: one noise matrix per level for all nodes of that level, as a cache
  with too short a key would have it. Then prefix_3 - prefix_2 - prefix_1 =
  x_3 x_3^T - x_1 x_1^T, with no noise at all: nothing is private, at no epsilon.

**Algorithm 4 that looks at the rows to see whether its guess is too low.**
`ExactTestDoubling` takes X in line 8 from the exact prefix in place of the private one.
Its noise is right, and so is all else; but at which row an epoch ends, and V_1 comes
again, is then a function of the rows that has no noise. Where one row more in the
direction of the leader makes X pass the guess, everybody sees it: private at no
epsilon, and at no delta < 1. An audit must refute it; nobody should use it.

`EagerRule` makes epochs short, so that audits need few rows: the guess is 6 R^2 and the
margin 0. Privacy does not depend on either, so with the right line 8 it is as private
as any other rule.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.online.doubling import DoublingOnlinePCA
from dpaudit.algorithms.online.doubling_rules import (
    CalibratedRule,
    DoublingStream,
    EpochPlan,
)
from dpaudit.algorithms.online.noise import unpack
from dpaudit.algorithms.online.noise_memory import tree_height
from dpaudit.algorithms.online.prefix_sums import PrefixSums
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_length

__all__ = ["ExactTestDoubling", "FreshNoiseTree", "ReusedNoiseTree"]


@dataclass(frozen=True, kw_only=True)
class _PlantedTree(PrefixSums):
    """A tree with the noise and the claim of the right one."""

    @hands_on("row_norm", length=64)
    @classmethod
    def planted(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return `TreeAggregation.calibrated` with the bug."""
        return cls.calibrated(epsilon, delta, **fields)

    def uses(self, length: int) -> int:
        """Return what the author of the bug believes."""
        return tree_height(length)


@dataclass(frozen=True, kw_only=True)
class FreshNoiseTree(_PlantedTree):
    """Nodes are noised anew for every prefix that they are part of.

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


_GUESS = 6


@dataclass(frozen=True)
class EagerRule(CalibratedRule):
    """Least proven noise, and epochs of a few rows that begin with V_1.

    Parameters
    ----------
    mu : float
        The whole sequence is mu-GDP, if line 8 is right.
    """

    def plan(
        self, *, dimension: int, n_components: int, length: int, row_norm: float
    ) -> EpochPlan:
        plan = super().plan(
            dimension=dimension,
            n_components=n_components,
            length=length,
            row_norm=row_norm,
        )
        return replace(plan, guess=_GUESS * row_norm**2, margin=0.0, forgets=True)


@dataclass(frozen=True, kw_only=True)
class ExactTestDoubling(DoublingOnlinePCA):
    """Online PCA with the doubling trick, and a test that is not private."""

    @hands_on(but=("rule", "claim"))
    @classmethod
    def planted(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism with the noise that is right, and the bug."""
        right = cls.calibrated(epsilon, delta, **fields)
        return replace(right, rule=EagerRule(gaussian_mu(epsilon, delta)))

    def start(self, dimension: int, *, rng: Rng) -> DoublingStream:
        """Raise: nobody should run it on rows that arrive."""
        raise UnsupportedError("a planted bug has no stream")

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return 7 rows at e_1 of which one is zero on the other side.

        X is 7 R^2 after them or 6 R^2, and the guess is 6 R^2. The default d is k + 1;
        at least that.
        """
        k = self.n_components
        d = check_length(dimension, k + 1, minimum=k + 1)
        rows = np.zeros((_GUESS + 1, d))
        rows[:, 0] = self.row_norm
        other = rows.copy()
        other[0] = 0
        return Pair(rows, other, Relation.REPLACE_ONE)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case."""
        return (self.worst_case(),)

    def _tested(self, exact: Array, values: Array) -> Array:
        matrices = unpack(exact, self.rule.noise.ratio)
        spectra: Array = np.linalg.eigvalsh(matrices).astype(np.float64)
        return super()._tested(exact, spectra)
