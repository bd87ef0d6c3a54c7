r"""OnlinePCA: follow the leader of a noisy tree.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, section 4.2 (which
is Algorithm 3 with the noise of section 2.3.2).

1. V_1: the first k basis vectors.
2. For t = 1, ..., m: earn ||V_t^T x_t||^2, receive x_t; V_(t+1) spans the k leading
   eigenvectors of the t-th noisy prefix of
   `dpaudit.algorithms.online.tree_aggregation`.

The whole sequence of subspaces is (epsilon, delta)-DP under REPLACE_ONE, because it is
made of the noisy prefixes. The rewards are not: who earns them knows the rows.

`as_published` and `calibrated` differ in the noise of the tree. Section 4.2 plugs the
tree into Theorem 14, whose proof (Lemma 16) wants noise of one law at all times; the
noise of a tree has as many nodes as t has ones. Algorithm 4 fills it up with more
noise (`dpaudit.algorithms.online.doubling`), section 4.2 does not say so, and here it
is not done: the noise is smaller, and what is lost is a step of the proof for
worst-case streams.
"""

from dataclasses import dataclass

from dpaudit.algorithms.online.subspace_sequence import PublishedSequence
from dpaudit.algorithms.online.tree_aggregation import TreeAggregation

__all__ = ["OnlinePCA"]


@dataclass(frozen=True, kw_only=True)
class OnlinePCA(PublishedSequence):
    """Private online PCA; releases have shape (n, d, k).

    `as_published` is section 4.2 with the noise that section 2.3.2 prints.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = OnlinePCA.calibrated(1.0, 1e-5, n_components=1)
    >>> rows = np.repeat([[0.6, 0.8]], 2000, axis=0)
    >>> bases = mechanism.release(rows, rng=np.random.default_rng(0))
    >>> bases.shape
    (2000, 2, 1)
    >>> bases[-1, :, 0].round(1)
    array([0.6, 0.8])
    """

    kind = TreeAggregation
