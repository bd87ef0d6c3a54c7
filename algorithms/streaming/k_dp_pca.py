r"""KDPPCA: k components by DP-PCA and deflation, each from rows of its own.

Source: Duengler, Sanyal, *An iterative algorithm for differentially private k-PCA with
adaptive noise*, NeurIPS 2025 (arXiv 2508.10879), k-DP-PCA: the top component by DP-PCA,
then again in what is orthogonal to those found. Only its abstract and introduction were
read: that every component has rows for itself is our reading, and constants and batches
are those of `DPPCA.tuned`. So nothing here is as published.

1. V = (). The n items are k parts of m = floor(n/k); what is left is not looked at.
2. For j = 1, ..., k: the T steps of `DPPCA.tuned` on part j, with T by m, the gradients
   (I - V V^T) A_i w, and a start that is uniformly random on the unit sphere orthogonal
   to V; v_j = w_T joins V.
3. Output V, or bottom if a component was.

**Privacy.** It is (epsilon, delta)-DP under REPLACE_ONE if step 2 is for a single
component, whatever V is, which is the theorem at the head of
`dpaudit.algorithms.streaming.dp_pca`: deflation by a V that is known only changes which
vectors the histograms and means are of, and their proofs ask nothing of these.

Proof. Which part an item is in follows from its place and n, which neighbours share.
Let D and D' differ in an item of part j. v_1, ..., v_(j-1) are made of items that are
the same, so they have the same law on both. Given them, v_j is (epsilon, delta)-DP.
Given v_1, ..., v_j the later ones have the same law on both again: a randomised
function of what is known, and so is V. QED.

For k = 1 this is `DPPCA.tuned`. Errors of deflation add up. Beside `RankKDPPCA`, which
reads all items k times: docs/streaming.md#several-components.
"""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from dpaudit import ApproxDP, Pair
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.dp_pca import _SIZES, DPPCA, RankKDPPCA
from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.minibatch_pca import POWER_STEPS, RowBatch
from dpaudit.algorithms.streaming.windows import DEFAULT_BALL, Window
from dpaudit.validation import check_count, check_length


@dataclass(frozen=True, kw_only=True)
class KDPPCA(RankKDPPCA):
    """DP-PCA for k components, the rows divided among them."""

    title = "k-dp-pca"
    note = "all batches and components"

    @hands_on(*_SIZES, also="_scaled", scale_share=0.2, step_sizes=POWER_STEPS)
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int,
        window: Window = DEFAULT_BALL,
        **fields: Any,
    ) -> Self:
        """Return the mechanism with the parts of `DPPCA.tuned` for each component."""
        fields["n_components"] = check_count("n_components", n_components)
        split = GaussianSplit(epsilon, delta)
        fields["mean"] = MeanEstimation(split=split, tail=window)
        return cls._scaled(epsilon, delta, claim=ApproxDP(epsilon, delta), **fields)

    @property
    def _scale_budget(self) -> BudgetTree:
        return self.scale_finder.budget  # of one component: others read other rows

    def batches(self, count: int) -> tuple[int, int]:
        """Return (B, T) of a component for n items, or raise if they are too few."""
        return super().batches(count // self.rank)

    def batches_of(self, component: int, batches: list[RowBatch]) -> list[RowBatch]:
        """Return the batches of the part that a component reads."""
        first = component * (batches[0].moments.count // self.rank)
        return [each._replace(first=each.first + first) for each in batches]

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return that of one component in the first part, and its data in the others.

        The default d is the larger one of 3 and k + 1; at least k.
        """
        d = check_length(dimension, max(3, self.rank + 1), minimum=max(2, self.rank))
        return self._in_first_part(self._one().worst_case(d))

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return those of one component, in the first part."""
        return tuple(map(self._in_first_part, self._one().canonical_pairs()))

    def _one(self) -> DPPCA:
        return DPPCA(**{each.name: getattr(self, each.name) for each in fields(DPPCA)})

    def _in_first_part(self, pair: Pair) -> Pair:
        rest = [pair.data] * (self.rank - 1)
        one, other = (np.concatenate([x, *rest]) for x in (pair.data, pair.neighbour))
        return Pair(one, other, self.relation)
