r"""DP-PCA as published.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Algorithm 3, with Algorithms 4 and 5; the steps are at the head of
`dpaudit.algorithms.streaming.minibatch_pca`, with f = 2: line 4 of Algorithm 3 hands on
twice the estimate, so that it is no less than the eigenvalue itself.

In each batch the top eigenvalue and the mean are (epsilon/2, delta/2)-DP each, and the
two are added up, although they are of different rows. So the claim holds with a factor
of 2 to spare, wherever those of both parts hold, which the paper says of epsilon < 0.9
(Theorem 5.1): every row is in one half of one batch, and
`dpaudit.algorithms.streaming.dp_pca` shows that the whole is (epsilon/2, delta/2)-DP.
What is lost is accuracy: the deviation of the noise is 6.6 times ours at (1, 1e-6), of
which f = 2 is sqrt 2, and the bins of Algorithm 4 are a factor of 2^(1/4) wide, which
makes bottom frequent (`dpaudit.algorithms.streaming.top_eigenvalue`). The bins and the
thresholds are the print's; K, a, C1 and c, which it has without numbers, are ours (and
c = 50 is twice that of the corrected form: more noise asks for larger batches).

The paper's neighbours are multisets that differ by a row added or removed, for which
batches by position promise nothing. The relation here is REPLACE_ONE.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import StepSizes, as_step_sizes
from dpaudit.algorithms.streaming.dp_pca import OneComponent, check_one_component
from dpaudit.algorithms.streaming.mean_estimation import (
    DEFAULT_TAIL,
    MeanEstimation,
    Tail,
)
from dpaudit.algorithms.streaming.minibatch_pca import default_steps
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.claims import ApproxDP
from dpaudit.validation import check_fraction, check_positive

__all__ = ["PublishedDPPCA"]


@dataclass(frozen=True, kw_only=True)
class PublishedDPPCA(OneComponent):
    """Algorithm 3 to the letter: both halves of a batch share epsilon and delta.

    Parameters
    ----------
    scale_finder, mean, claim, step_sizes, batch_constant, batch_size, row_norm
        See `MinibatchPCA`.

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

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        row_norm: float | None = None,
        tail: Tail = DEFAULT_TAIL,
        group_constant: float = 5.0,
        zeta: float = 0.01,
        batch_constant: float = 50.0,
        batch_size: int | None = None,
        step_sizes: StepSizes | float | Sequence[float] | None = None,
    ) -> "PublishedDPPCA":
        """Return Algorithm 3 with the claim of Theorem 5.1, whatever epsilon is.

        Parameters
        ----------
        epsilon, delta, n_components, row_norm, tail, group_constant, zeta
            As for `dpaudit.algorithms.streaming.dp_pca.DPPCA.calibrated`.
        batch_constant, batch_size, step_sizes
            Likewise.
        """
        check_one_component(n_components)
        halves = (
            check_positive("epsilon", epsilon) / 2,
            check_fraction("delta", delta) / 2,
        )
        return cls(
            scale_finder=TopEigenvalue.as_published(
                *halves, group_constant=group_constant, zeta=zeta
            ),
            mean=MeanEstimation.as_published(*halves, tail=tail),
            claim=ApproxDP(epsilon, delta),
            step_sizes=default_steps(row_norm)
            if step_sizes is None
            else as_step_sizes(step_sizes),
            batch_constant=batch_constant,
            batch_size=batch_size,
            row_norm=row_norm,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what, by the paper's account."""
        batch = BudgetTree.sequential(
            "a batch", self.scale_finder.budget, self.mean.budget
        )
        return BudgetTree.parallel("dp-pca-published", batch, note="all batches")
