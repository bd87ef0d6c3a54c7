r"""Every prefix of a stream of x x^T with published noise, and the leaders of prefixes.

**TreeAggregation**, private at the price of log m. Source: Dwork, Talwar, Thakurta,
Zhang, *Analyze Gauss: optimal bounds for privacy-preserving principal component
analysis*, STOC 2014, section 2.3.2.

1. Node t of the tree of `dpaudit.algorithms.online.noise` is noised once, when
   row t has come, N(0, s^2) per coordinate, and never again.
2. After row t, output the sum of the noisy nodes that make up prefix t.

**Privacy.** A row is in h = floor(log2 m) + 1 nodes at most, and row 1 is in so many
(proof there). If it is replaced, each of these moves by at most sqrt 2 R^2 and the rest
stay, so the vector of all nodes moves by sqrt(2 h) R^2 at most, which is attained when
e_1 replaces e_2 in row 1: the sequence is mu-GDP with mu = sqrt(2 h) R^2/s, and with no
smaller one. `calibrated` takes the least s for (epsilon, delta).

**As published.** Every node has N(0, 50 log^3(m/delta)/epsilon^2) in each entry of its
triangle, and the sequence is claimed to be (epsilon, delta)-DP by 'sequential
composition'.

- For rows that is true with far too much noise; for all symmetric W_t with ||W_t||_2
  <= 1, as the section promises it, false for large d (docs/online.md has both).
- A changed row is said to affect log m entries of the tree; it is log2(m) + 1 of the
  complete tree, and m is assumed to be a power of two. Here it is any m.
- Section 4.2 has another variance, for *each prefix*. Here the tree decides.

**Memory.** One matrix per level, and A_t: `dpaudit.algorithms.online.streams`.

**OnlinePCA** follows the leader of a noisy tree. Source: the same, section 4.2 (which
is Algorithm 3 with the noise of section 2.3.2).

1. V_1: the first k basis vectors.
2. For t = 1, ..., m: earn ||V_t^T x_t||^2, receive x_t; V_(t+1) spans the k leading
   eigenvectors of the t-th noisy prefix of `TreeAggregation`.

The whole sequence of subspaces is (epsilon, delta)-DP under REPLACE_ONE, because it is
made of the noisy prefixes. The rewards are not: who earns them knows the rows.

`as_published` and `calibrated` differ in the noise of the tree. Section 4.2 plugs the
tree into Theorem 14, whose proof (Lemma 16) wants noise of one law at all times; the
noise of a tree has as many nodes as t has ones. Algorithm 4 fills it up with more
noise (`dpaudit.algorithms.online.doubling`), section 4.2 does not say so, and here it
is not done: the noise is smaller, and what is lost is a step of the proof for
worst-case streams.

**StepwiseSums**, the noisy prefixes that Algorithm 3 makes. Row i is in the prefixes i,
i + 1, ..., m, so in m of them at most. If it is replaced, each moves by at most sqrt 2
R^2, and their noise is independent: the sequence is mu-GDP with mu = sqrt(2 m) R^2/s,
attained by row 1.

**FollowPerturbedLeader.** Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC
2014, Algorithm 3.

1. V_1: the first k basis vectors.
2. For t = 1, ..., m: earn ||V_t^T x_t||^2, receive x_t; V_(t+1) spans the k leading
   eigenvectors of A_t + E_t, the E_t independent.

**What is claimed, and what is true.** As published, E_t is the noise of Algorithm 1, an
i.i.d. N(0, s^2) triangle with s = sqrt(2 log(1.25/delta))/epsilon, and the claim is
about *one* step: V_(t+1), by itself, is (epsilon, delta)-DP. Of a step it is true for
epsilon < 1 if a row is replaced by zero (sensitivity 1), and false in part if it is
replaced by any row (sqrt 2; see `dpaudit.algorithms.covariance.entrywise`). Of the
sequence it is false, as the paper says itself ('overall it is not'): row 1 is in all m
steps, which by GDP is mu = sqrt(2 m)/s for them together, tightly for the noisy sums
under REPLACE_ONE. `as_published` holds the sequence to the claim of a step, which
audits refute; `step_claim` and `composed_claim` say what is true of either.

`calibrated` is what section 4.2 mentions and then improves upon ('make each step
O(epsilon/sqrt m, delta') private'): GOE noise of deviation sqrt m/mu above the
diagonal, (epsilon, delta)-DP as a whole. A prefix of a tree has sqrt(t' h)/mu in its
place, with t' <= h the ones of t and h = floor(log2 m) + 1: less from m = 37 on.

**Planted bugs**: trees whose noise is drawn too often, or not often enough. Both have
the noise that is right for `TreeAggregation`, and its promise, which is false for them.
An audit must refute them: do not use them.

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
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, GaussianDP, Pair, UnsupportedError
from dpaudit.algorithms.online.noise import (
    NoiseMemory,
    PublishedNodeNoise,
    PublishedStepNoise,
    StackMemory,
    accumulate,
    differences,
    tree_height,
)
from dpaudit.algorithms.online.prefix_sums import PrefixSums
from dpaudit.algorithms.online.streams import StreamableSums
from dpaudit.algorithms.online.subspace_sequence import SubspaceSequence
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array

__all__ = [
    "FollowPerturbedLeader",
    "FreshNoiseTree",
    "OnlinePCA",
    "ReusedNoiseTree",
    "TreeAggregation",
]


@dataclass(frozen=True, kw_only=True)
class PublishedSums(StreamableSums):
    """Prefix sums with a stream, of which a paper prints the noise."""

    published: ClassVar[type[PublishedNodeNoise | PublishedStepNoise]]
    """What the paper prints."""

    @hands_on()
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return what the paper prints, with its claim for the whole sequence."""
        noise = cls.published(epsilon, delta)
        return cls(noise=noise, claim=ApproxDP(epsilon, delta), **fields)


@dataclass(frozen=True, kw_only=True)
class TreeAggregation(PublishedSums):
    """Noisy prefixes from noisy nodes; releases have shape (n, d, d).

    `as_published` is section 2.3.2 to the letter.

    Examples
    --------
    >>> mechanism = TreeAggregation.calibrated(1.0, 1e-5, length=1000)
    >>> round(mechanism.deviation() / 2**0.5, 3)  # above the diagonal of a node
    11.797
    """

    published = PublishedNodeNoise

    def uses(self, length: int) -> int:
        """Return floor(log2 m) + 1."""
        return tree_height(length)

    def memory(self, width: int) -> NoiseMemory:
        return StackMemory(tree_height(self.length_for(None)), width)

    def mixed(self, sums: Array) -> Array:
        return accumulate(sums)

    def unmixed(self, prefixes: Array) -> Array:
        return differences(prefixes)

    def mu(self, n_rows: int | None = None) -> float:
        """Return the least mu for which the sequence is mu-GDP, over all pairs."""
        height = tree_height(self.length_for(n_rows))
        return sqrt(2 * height) * self.row_norm**2 / self.deviation(n_rows)


@dataclass(frozen=True, kw_only=True)
class StepwiseSums(PublishedSums):
    """Prefixes with independent noise; releases have shape (n, d, d).

    `as_published` are the sums of Algorithm 3, with the claim of one step for them all.
    """

    published = PublishedStepNoise

    def uses(self, length: int) -> int:
        """Return m."""
        return length

    def memory(self, width: int) -> NoiseMemory:
        return StackMemory(0, width)  # every prefix has noise of its own

    def mixed(self, sums: Array) -> Array:
        return sums

    def unmixed(self, prefixes: Array) -> Array:
        return prefixes

    def step_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of any one prefix, by itself, under REPLACE_ONE."""
        return GaussianDP(sqrt(2) * self.row_norm**2 / self.deviation(n_rows))

    def composed_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of all prefixes together: sqrt m times the mu of one."""
        length = n_rows if self.length is None else self.length
        mu = self.step_claim(n_rows).parameters["mu"]
        return GaussianDP(mu * sqrt(length or 1))


@dataclass(frozen=True, kw_only=True)
class PublishedSequence(SubspaceSequence):
    """The leading subspaces of prefixes of which a paper prints the noise."""

    kind: ClassVar[type[PublishedSums]]

    @hands_on(to="kind")
    @classmethod
    def as_published(
        cls, epsilon: float, delta: float, *, n_components: int = 1, **fields: Any
    ) -> Self:
        """Return the paper's algorithm with the noise and the claim that it prints."""
        sums = cls.kind.as_published(epsilon, delta, **fields)
        return cls(sums=sums, n_components=n_components)


@dataclass(frozen=True, kw_only=True)
class OnlinePCA(PublishedSequence):
    """Private online PCA; releases have shape (n, d, k).

    `as_published` is section 4.2 with the noise that section 2.3.2 prints.
    """

    kind = TreeAggregation


@dataclass(frozen=True, kw_only=True)
class FollowPerturbedLeader(PublishedSequence):
    """Follow the leader with new noise in each step; releases have shape (n, d, k).

    `as_published` is Algorithm 3, held as a whole to what it claims of one step.

    Examples
    --------
    >>> published = FollowPerturbedLeader.as_published(0.5, 1e-5, length=100)
    >>> published.step_claim()
    GaussianDP(mu=0.14595...)
    >>> published.composed_claim()
    GaussianDP(mu=1.4595...)
    """

    sums: StepwiseSums

    kind = StepwiseSums

    def step_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of one step by itself, under REPLACE_ONE."""
        return self.sums.step_claim(n_rows)

    def composed_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of all m steps together."""
        return self.sums.composed_claim(n_rows)


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
    """Nodes are noised anew for every prefix that they are part of."""

    def mixed(self, sums: Array) -> Array:
        return np.asarray(sums * _root_of_ones(sums.shape[-2])[:, None])

    def unmixed(self, prefixes: Array) -> Array:
        return np.asarray(prefixes / _root_of_ones(prefixes.shape[-2])[:, None])


@dataclass(frozen=True, kw_only=True)
class ReusedNoiseTree(_PlantedTree):
    """All nodes of a level have the same noise."""

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
