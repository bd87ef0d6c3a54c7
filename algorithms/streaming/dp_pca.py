r"""DPPCA: a private principal component whose noise follows the spread of gradients.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Algorithm 3 (with Algorithms 4 and 5), corrected where that can be
had for nothing: as published it is `PublishedDPPCA`. The steps are at the head of
`dpaudit.algorithms.streaming.minibatch_pca`, with f = 1.

**Privacy.** If the top eigenvalue of one half of a batch and the mean of the other are
each (epsilon, delta)-DP under REPLACE_ONE, whatever came before, then so is the whole,
for the *same* (epsilon, delta).

Proof. The outputs are Y_1, Z_1, Y_2, Z_2, ...: the noisy counts of a batch's first
half, then the noisy counts and the noisy mean of the second. Each is made of the rows
of one half, and of outputs before it (through w_(t-1), Lambda_t and the bins). Let D
and D' differ in one row, of the half that, say, Z_b is made of. Up to Y_b the outputs
have the same law on D and D'. Given those, Z_b is (epsilon, delta)-DP, by assumption.
Given those and Z_b, what follows has the same law again, because it is made of other
rows: it is a randomised function of outputs before it, the same on both. w_T is a
function of them all, and of w_0, which is drawn without the data. QED.

That both assumptions hold is shown in `dpaudit.algorithms.streaming.private_histogram`
with `dpaudit.algorithms.streaming.top_eigenvalue`, and in
`dpaudit.algorithms.streaming.mean_budget` with
`dpaudit.algorithms.streaming.mean_estimation`. Neither T nor the length of a row is
paid for. The paper gives either half (epsilon/2, delta/2), which is not needed for
disjoint halves.

**Utility, and the defaults** of K, a, C1, c and the steps, which the paper has without
numbers: docs/streaming.md#noise-that-follows-the-spread.

**DP-PCA tuned** (`DPPCA.tuned`) is the same class with other parts. The theorem above
asks of a part nothing but its promise, so each needs a proof of its own, and no more:

- Normal noise on the counts of the mean's histograms, which has less spread and lower
  thresholds at the same price (`dpaudit.algorithms.streaming.mean_budget`,
  `dpaudit.algorithms.streaming.thresholded_counts`).
- Gradients are cut to an l2 ball about the middle of a bin, not to a box: two of them
  are 2 r apart at most, and r is about sqrt(Lambda d), where a box has 2 W sqrt d
  (`dpaudit.algorithms.streaming.windows`).
- The scale gets a fifth of a batch and the mean the rest. The parts are disjoint, and
  which a row is in follows from its place, so any share costs the same.
- Steps of the power method (`POWER_STEPS`). Steps 20/(1 + t) leave part of the start,
  4e-4 after T = 5, below which no error can fall however little noise there is; with
  these it shrinks by lambda_2/lambda_1 each. Nor do they depend on the unit of rows.

**DP-PCA as published.** The steps are the same, with f = 2: line 4 of Algorithm 3 hands
on twice the estimate, so that it is no less than the eigenvalue itself.

In each batch the top eigenvalue and the mean are (epsilon/2, delta/2)-DP each, and the
two are added up, although they are of different rows. So the claim holds with a factor
of 2 to spare, wherever those of both parts hold, which the paper says of epsilon < 0.9
(Theorem 5.1): every row is in one half of one batch, and the proof above shows that the
whole is (epsilon/2, delta/2)-DP.
What is lost is accuracy: the deviation of the noise is 6.6 times ours at (1, 1e-6), of
which f = 2 is sqrt 2, and the bins of Algorithm 4 are a factor of 2^(1/4) wide, which
makes bottom frequent (`dpaudit.algorithms.streaming.top_eigenvalue`). The bins and the
thresholds are the paper's; K, a, C1 and c, which it has without numbers, are ours (and
c = 50 is twice that of the corrected form: more noise asks for larger batches).

The paper's neighbours are multisets that differ by a row added or removed, for which
batches by position promise nothing. The relation here is REPLACE_ONE.

**k components** (`RankKDPPCA`), by Hotelling's deflation. Section 7 of the source names
the extension; the composition is ours.

1. V = (). For j = 1, ..., k: the T steps of DP-PCA on all n items, in the same batches
   and halves, with the gradients (I - V V^T) A_i w and a start that is uniformly random
   on the unit sphere orthogonal to V; v_j = w_T joins V. (The noise of g_t is made
   orthogonal to V as well, which costs nothing.)
2. Output V, or bottom if a component was.

It is (epsilon, delta)-DP under REPLACE_ONE.

Proof. As above the row that differs is in one half of one batch, b say; but that is
read k times, once for each component, in knowledge of all outputs before. Everything
else is made of rows that are the same on D and D' and of earlier outputs.

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
from math import sqrt
from typing import Any, Self

import numpy as np

from dpaudit import ApproxDP, Pair
from dpaudit.algorithms.shared.bases import ReleasesBasis, enough_rows
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.minibatch_pca import (
    POWER_STEPS,
    MinibatchPCA,
    OneComponent,
    RowBatch,
)
from dpaudit.algorithms.streaming.moments import ProductGradients
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.streaming.windows import (
    DEFAULT_BALL,
    DEFAULT_TAIL,
    Tail,
    Window,
)
from dpaudit.arrays import Array
from dpaudit.validation import (
    Count,
    check_count,
    check_fraction,
    check_length,
    check_positive,
)

__all__ = ["DPPCA", "OverlappingDPPCA", "PublishedDPPCA", "RankKDPPCA"]

_SIZES = "step_sizes", "batch_constant", "batch_size", "row_norm"
_SPREAD = 0.05  # noise of the mean over its length, with the larger scale
_PULLING = 4  # rows that say which scale has won
_LOUD = 2.0**40  # by how much the data exceed w_0


@dataclass(frozen=True, kw_only=True)
class DPPCA(OneComponent):
    """DP-PCA corrected: each half of a batch has all of epsilon and delta.

    Examples
    --------
    >>> mechanism = DPPCA.calibrated(1.0, 1e-6)
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((60_000, 3)) * [1.0, 0.3, 0.3]
    >>> mechanism.batches(len(rows))
    (15000, 4)
    >>> np.abs(mechanism.release(rows, rng=rng)).round()
    array([1., 0., 0.])
    >>> mechanism.release(rows[:1000], rng=rng)
    array([nan, nan, nan])
    """

    title = "dp-pca"
    note = "and so do all batches"

    @hands_on(*_SIZES, also="_scaled")
    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, tail: Tail = DEFAULT_TAIL, **fields: Any
    ) -> Self:
        """Return the mechanism at the smallest noise that is proven.

        The tail is that of the gradients; its own zeta is not used.
        """
        fields["mean"] = MeanEstimation.calibrated(epsilon, delta, tail=tail)
        return cls._scaled(epsilon, delta, claim=ApproxDP(epsilon, delta), **fields)

    @hands_on(*_SIZES, also="_scaled", scale_share=0.2, step_sizes=POWER_STEPS)
    @classmethod
    def tuned(
        cls,
        epsilon: float,
        delta: float,
        *,
        window: Window = DEFAULT_BALL,
        **fields: Any,
    ) -> Self:
        """Return the mechanism with parts that the paper does not have.

        What they are, and their proofs: head of the module. It differs from
        `calibrated` in the window, what gradients are truncated to, in its share for
        the scale, and in its step sizes, `POWER_STEPS`.
        """
        split = GaussianSplit(epsilon, delta)
        fields["mean"] = MeanEstimation(split=split, tail=window)
        return cls._scaled(epsilon, delta, claim=ApproxDP(epsilon, delta), **fields)


@dataclass(frozen=True, kw_only=True)
class PublishedDPPCA(OneComponent):
    """Algorithm 3 to the letter: both halves of a batch share epsilon and delta.

    Examples
    --------
    >>> print(PublishedDPPCA.as_published(0.5, 1e-6).budget)
    dp-pca-published: (0.5, 1e-06), parts read disjoint rows; all batches
      a batch: (0.5, 1e-06), the sum of its parts
        top-eigenvalue: (0.25, 5e-07); histogram of 383 groups, Lap(8), threshold 122.6
        mean-estimation: (0.25, 5e-07), the sum of its parts
          d histograms: (0.125, 2.5e-07); advanced composition
          mean of truncated vectors: (0.125, 2.5e-07); classical Gaussian
    """

    scale_factor = 2.0
    title = "dp-pca-published"
    of_halves = staticmethod(BudgetTree.sequential)  # by the paper's account

    @hands_on("step_sizes", "batch_size", "row_norm", batch_constant=50.0)
    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        tail: Tail = DEFAULT_TAIL,
        group_constant: float = 5.0,
        zeta: float = 0.01,
        **fields: Any,
    ) -> Self:
        """Return Algorithm 3 with the claim of Theorem 5.1, whatever epsilon is."""
        epsilon = check_positive("epsilon", epsilon)
        halves = epsilon / 2, check_fraction("delta", delta) / 2
        return cls(
            scale_finder=TopEigenvalue.as_published(
                *halves, group_constant=group_constant, zeta=zeta
            ),
            mean=MeanEstimation.as_published(*halves, tail=tail),
            claim=ApproxDP(epsilon, delta),
            **fields,
        )


@dataclass(frozen=True, kw_only=True)
class OverlappingDPPCA(DPPCA):
    """A planted bug: the mean is taken over the whole batch, at the price of a half.

    Both parts are paid for as if they read different rows. A row of the first half is
    then paid for once and used twice, (2 epsilon, 2 delta) by adding up. An audit must
    refute it: do not use it.

    Neither part breaks the promise by itself, so the event to look at is that both
    happen: an unlikely scale wins, and the noise of the mean favours one side. The row
    moves a group of the scale from a bin to another. Where its bin is behind by b =
    2/epsilon or so, that changes the chances of the bin by nearly e^epsilon: from 0.163
    to 0.0095 at (3.5, 1e-5), a loss of 2.8. Given the scale, the row moves the mean by
    its full mu, 0.73 there, and a tail of the mean adds the rest: on an event of
    probability 0.02 the loss is above 4.
    """

    @classmethod
    def planted(
        cls, epsilon: float, delta: float, *, batch_size: int | None = None
    ) -> Self:
        """Return `DPPCA.calibrated` with its halves overlapping, by default one batch.

        The scale has the bins of the paper, and windows are ten times narrower than by
        default: a row that is beyond them need not be in a bin of a larger scale.
        """
        return cls.calibrated(
            epsilon,
            delta,
            tail=Tail(scale=0.01),
            bins_per_octave=4,
            batch_constant=1e4,
            batch_size=batch_size,
        )

    def halves(
        self, batch: RowBatch, vectors: Array, deflated: Array | None
    ) -> tuple[ProductGradients, ProductGradients]:
        first, _ = super().halves(batch, vectors, deflated)
        return first, ProductGradients(*batch, vectors, deflated)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row that moves a bin of the scale, and the mean as well.

        Items are matrices A_i; A_i w is w_1 times their first column, all else is 0.
        With v = (1, ..., 1) and u = (1, -1, 1, ...), the columns are s v, but for the
        first pair of each group in the first half: s v - u and s v + u where the scale
        is the larger one, s v - u/8 and s v where it is the smaller. Fewer groups have
        the larger scale, by b or so. Its windows end short of s v - u and s v + u.

        In the neighbour the s v - u of the first group is s v + 7/8 u: the group has
        the smaller scale now, and a row that was below all windows is above them.

        s is such that g_t has noise of a twentieth of its length if the larger scale
        has won, and much less if not. A few rows s v - u of the second half, which the
        wide windows let pull further, move g_t in the direction of -u then. So the
        event to look at is that w is far in that direction. The default d is 2; at
        least 2.
        """
        d = check_length(dimension, 2, minimum=2)
        v, u = np.ones(d), (-1.0) ** np.arange(d)
        k = self.scale_finder.groups(self.scale_finder.zeta / 2)
        noise = self.mean.split.noise(d)
        # The bin of s v must be shown, which all but a few of each group are in.
        full = int(noise.counts.threshold + 8 * noise.counts.scale)
        half = enough_rows(max(2 * k, full // 2 + k + _PULLING))
        pairs = half // 2 // k
        scale = 2 * d / pairs  # of a difference of 2 u among them
        mean_noise = self.mean.deviation(scale, 2 * half, d, self.scale_finder.zeta / 2)
        s = float(mean_noise) / (_SPREAD * sqrt(d))
        columns = np.tile(s * v, (2 * half, 1))
        firsts = 2 * pairs * np.arange(k)
        larger = round((k - self.scale_finder.noise.scale) / 2)
        columns[firsts[:larger]] -= u
        columns[firsts[:larger] + 1] += u
        columns[firsts[larger:]] -= u / 8
        columns[-_PULLING:] -= u
        items = np.zeros((2 * half, d, d))
        items[:, :, 0] = _LOUD * columns
        other = items.copy()
        other[0, :, 0] = _LOUD * (s * v + 7 / 8 * u)
        return Pair(items, other, self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        return (self.worst_case(),)


@dataclass(frozen=True, kw_only=True)
class RankKDPPCA(ReleasesBasis, MinibatchPCA):
    """DP-PCA for k components, one after the other.

    Releases have shape (d, k) and orthonormal columns, or are NaN; 1 <= k <= d.
    """

    n_components: Count

    title = "dp-pca-rank-k"

    @hands_on(*_SIZES, also="_scaled")
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
        epsilon = check_positive("epsilon", epsilon)
        share = epsilon / k, check_fraction("delta", delta) / k
        fields["mean"] = MeanEstimation.calibrated(epsilon, delta, tail=tail, uses=k)
        fields |= {"n_components": k, "claim": ApproxDP(epsilon, delta)}
        return cls._scaled(*share, **fields)

    @property
    def _scale_budget(self) -> BudgetTree:
        each = self.scale_finder.budget
        name = f"{each.name} of component"
        scales = (replace(each, name=f"{name} {j + 1}") for j in range(self.rank))
        return BudgetTree.sequential("top eigenvalues", *scales)
