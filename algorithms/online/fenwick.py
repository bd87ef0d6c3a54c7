r"""The binary tree of prefix sums, reduced to the nodes that a prefix ever needs.

Write low(t) for the lowest set bit of t = 1, 2, ..., m. Node t holds the rows
t - low(t) + 1, ..., t, and

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

import numpy as np

from dpaudit.arrays import Array

__all__ = ["accumulate", "differences", "parent", "tree_height"]


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
