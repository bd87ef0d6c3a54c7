r"""dp-SGGD: descent on GLAD on random batches with normal noise, corrected.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, (NSGGD); the steps are those of `dpaudit.algorithms.robust.descent`. Three things
differ from the paper (`dpaudit.algorithms.robust.published_ggd`), each because the
privacy proof needs it:

- batches are Poisson samples of rate q, not drawn with replacement;
- a sum becomes a mean by the public expected batch size B = q times a public number of
  rows, not by the size that the batch happens to have;
- sigma is what `dpaudit.algorithms.robust.subsampling` computes, for the promised
  (epsilon, delta) of the start and all T steps. The proof is there. The terms of two
  rows can be nearly opposite and of length 1, so under REPLACE_ONE, the paper's
  relation and the default, they are taken to be.

The default rate is the paper's, B = max(N sqrt(epsilon/(4 T)), 1). At N = 2000,
T = 2000, epsilon = 0.8, delta = 1/sqrt N it is q = 0.01, and the multiplier 1.697
without a start: 0.085 on the mean, where the print has 5.4e-4. Under ADD_REMOVE it is
1.075, noise that a replaced row sees through to epsilon = 1.63 at that delta.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpaudit.algorithms.robust.descent import HalvingSteps
from dpaudit.algorithms.robust.ggd_pairs import added_pair, shown_pair
from dpaudit.algorithms.robust.glad import Array, term_sum
from dpaudit.algorithms.robust.initialisation import (
    GaussianStart,
    Start,
    check_start,
)
from dpaudit.algorithms.robust.minibatch_descent import MinibatchDescent
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS, Summing
from dpaudit.algorithms.robust.private_ggd import DEFAULT_START_SHARE
from dpaudit.algorithms.robust.random_batches import (
    PoissonBatches,
    published_batch_size,
)
from dpaudit.algorithms.robust.subsampling import noise_multiplier
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_fraction

__all__ = ["DEFAULT_ROWS", "PrivateSGGD"]

DEFAULT_ROWS = 2000


@dataclass(frozen=True, kw_only=True)
class PrivateSGGD(PoissonBatches, MinibatchDescent):
    """Minibatch descent with normal noise; the release is a basis of V_T, (D, r).

    Parameters
    ----------
    sigma, rate, batch_size, relation
        See `dpaudit.algorithms.robust.random_batches.PoissonBatches`.
    n_components, claim, start, iterations, step_sizes
        See `Descent`.

    Examples
    --------
    >>> mechanism = PrivateSGGD.calibrated(1.0, 1e-5, n_components=2)
    >>> mechanism.batch_size, round(mechanism.rate, 3)
    (224.0, 0.112)
    """

    def __post_init__(self) -> None:
        self.check_batches()
        super().__post_init__()

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.REPLACE_ONE,
        n_components: int = 1,
        rows: int = DEFAULT_ROWS,
        batch_size: int | None = None,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | None = None,
        start: Start | None = None,
        start_share: float = DEFAULT_START_SHARE,
    ) -> "PrivateSGGD":
        """Return the mechanism at the smallest noise of the accountant.

        Parameters
        ----------
        epsilon, delta : float
            The promise for start and steps together.
        relation : Relation or str
        rows : int
            A public number of about as many rows as there are.
        batch_size : int, optional
            B, at most `rows`: how many of them are in a batch on average. Default:
            `published_batch_size`.
        n_components, iterations, step_sizes, start, start_share
            See `dpaudit.algorithms.robust.private_ggd.PrivateGGD.calibrated`.
        """
        relation = Relation.parse(relation)
        rows = check_count("rows", rows)
        if batch_size is None:
            batch_size = published_batch_size(epsilon, iterations, rows)
        batch_size = check_count("batch_size", batch_size, maximum=rows)
        if start is None:
            share = check_fraction("start_share", start_share)
            mu = sqrt(share) * gaussian_mu(epsilon, delta)
            start = GaussianStart(mu, relation)
        sigma = noise_multiplier(
            float(epsilon),
            float(delta),
            rate=batch_size / rows,
            steps=iterations,
            start=check_start(start, relation).claim,
            replaced="opposite" if relation is Relation.REPLACE_ONE else None,
        )
        return cls(
            sigma=sigma,
            rate=batch_size / rows,
            batch_size=float(batch_size),
            relation=relation,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            start=start,
            iterations=iterations,
            step_sizes=HalvingSteps() if step_sizes is None else step_sizes,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what."""
        epsilon, delta = (self.claim.parameters[key] for key in ("epsilon", "delta"))
        spent = self.start.claim
        note = f"{self.iterations} Poisson samples of rate {self.rate:g}"
        if spent is None:
            return BudgetTree("dp-sggd", epsilon, delta, note=note)
        start = BudgetTree("start", spent.epsilon(delta), delta, note=f"{spent}")
        return BudgetTree.accounted("dp-sggd", epsilon, delta, start, note=note)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        batch = self.batches(rows, rng)
        return lambda bases: term_sum(batch(len(bases)), bases)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row shows in the steps that it is in.

        See `dpaudit.algorithms.robust.ggd_pairs`: `added_pair` under ADD_REMOVE,
        `shown_pair` under REPLACE_ONE. The default D is r + 1.
        """
        adds = self.relation is Relation.ADD_REMOVE
        pair = added_pair if adds else shown_pair
        return pair(self.n_components, dimension, count=4 * self.n_components)
