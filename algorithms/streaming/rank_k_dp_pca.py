r"""RankKDPPCA: k private components by DP-PCA and Hotelling's deflation.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, section 7, which names the extension; the composition is ours.

1. V = (). For j = 1, ..., k: the T steps of `dpaudit.algorithms.streaming.dp_pca` on
   all n items, in the same batches and halves, with the gradients (I - V V^T) A_i w and
   a start that is uniformly random on the unit sphere orthogonal to V; v_j = w_T joins
   V. (The noise of g_t is made orthogonal to V as well, which costs nothing.)
2. Output V, or bottom if a component was.

**Privacy.** (epsilon, delta)-DP under REPLACE_ONE.

Proof. As in `dpaudit.algorithms.streaming.dp_pca` the row that differs is in one half
of one batch, b say; but that is read k times, once for each component, in knowledge of
all outputs before. Everything else is made of rows that are the same on D and D' and
of earlier outputs.

- If it is in the first half, k private histograms read it, each (epsilon/k,
  delta/k)-DP: epsilons add, and deltas.
- If it is in the second half, Algorithm 5 reads it k times. That is composed by the
  accountant of `dpaudit.algorithms.streaming.mean_budget`, with uses = k: 2 k d counts
  and k means together cost mu_*. So each mean has noise that is larger by about sqrt k,
  not by k. QED.

Dividing the rows among the components instead, each with all of epsilon, would make
batches smaller by k: the same for the histograms of the scale, worse for the means.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from dpaudit.algorithms.shared.bases import ReleasesBasis
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.minibatch_pca import MinibatchPCA
from dpaudit.algorithms.streaming.windows import DEFAULT_TAIL, Tail
from dpaudit.checked import Count
from dpaudit.claims import ApproxDP
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["RankKDPPCA"]


@dataclass(frozen=True, kw_only=True)
class RankKDPPCA(ReleasesBasis, MinibatchPCA):
    """DP-PCA for k components, one after the other.

    Releases have shape (d, k) and orthonormal columns, or are NaN; 1 <= k <= d.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = RankKDPPCA.calibrated(2.0, 1e-6, n_components=2)
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((60_000, 3)) * [1.0, 0.3, 0.02]
    >>> np.abs(mechanism.release(rows, rng=rng)).round()
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """

    n_components: Count

    @hands_on("step_sizes", "batch_constant", "batch_size", "row_norm", also="_scaled")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int,
        tail: Tail = DEFAULT_TAIL,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the noise of the proof above.

        That is what all k components together promise; see `DPPCA.calibrated`.
        """
        k = check_count("n_components", n_components)
        share = (
            check_positive("epsilon", epsilon) / k,
            check_fraction("delta", delta) / k,
        )
        return cls(
            n_components=k,
            mean=MeanEstimation.calibrated(epsilon, delta, tail=tail, uses=k),
            claim=ApproxDP(epsilon, delta),
            **cls._scaled(*share, **fields),
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what: halves are disjoint, components read the same rows."""
        each = self.scale_finder.budget
        first = BudgetTree.sequential(
            "top eigenvalues",
            *(
                replace(each, name=f"{each.name} of component {j + 1}")
                for j in range(self.rank)
            ),
        )
        batch = BudgetTree.parallel("a batch", first, self.mean.budget)
        return BudgetTree.parallel("dp-pca-rank-k", batch, note="all batches")
