r"""dp-GD-REAP and dp-SGD-REAP: projected gradient descent on REAPER, corrected.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 4.3 and Algorithm 1; the steps are those of
`dpaudit.algorithms.robust.reaper_descent`. The noise is symmetric, from the Gaussian
orthogonal ensemble: in the coordinates of the transcript every entry has the deviation
sigma, and a movement of the sum by S is ||S||_F/sqrt 2.

Full batch, REPLACE_ONE. N is the same on both sides, hence public. Given P, the sum of
the terms moves by at most sqrt 2 in Frobenius norm
(`dpaudit.algorithms.robust.reaper`), by 1 in these coordinates, so each step is
1/sigma-GDP whatever came before, and T of them compose to sqrt(T)/sigma-GDP (Dong,
Roth, Su, JRSS B 2022, Corollary 3.3): sigma = sqrt(T)/mu. This is exact: on
`dpaudit.algorithms.robust.reaper_pairs.apart_pair` step 1 moves by that much. P_0 is
public, the release a function of the transcript.

Minibatches. Batches are Poisson samples of rate q and B is public. A term has at most
the length 1 in Frobenius norm, 1/sqrt 2 in these coordinates, and sigma is 1/sqrt 2
times what `dpaudit.algorithms.robust.subsampling` computes for terms of length 1; the
proofs there are for any statistic of such terms. Under REPLACE_ONE, the paper's
relation and the default, the terms of two rows are at worst orthogonal:
`dpaudit.algorithms.robust.reaper` shows the inequality that the proof asks for. That is
exact too: the terms of step 1 on `apart_pair` are.

What differs from the print is the noise, the kind of batch, the sum in (4.1), the
projection, and P_0: see `dpaudit.algorithms.robust.published_reaper`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.ggd_pairs import shown_pair
from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS, Summing
from dpaudit.algorithms.robust.private_sggd import DEFAULT_ROWS
from dpaudit.algorithms.robust.random_batches import (
    PoissonBatches,
    published_batch_size,
)
from dpaudit.algorithms.robust.reaper import reaper_term_sum
from dpaudit.algorithms.robust.reaper_descent import ReaperDescent
from dpaudit.algorithms.robust.reaper_pairs import apart_pair, lone_pair
from dpaudit.algorithms.robust.reaper_steps import RootSteps
from dpaudit.algorithms.robust.stochastic_reaper import StochasticReaper
from dpaudit.algorithms.robust.subsampling import noise_multiplier
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_positive

__all__ = ["PrivateGradientReaper", "PrivateStochasticGradientReaper"]


@dataclass(frozen=True, kw_only=True)
class PrivateGradientReaper(ReaperDescent):
    """dp-GD-REAP: full batches; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on the sum of the terms: above the diagonal,
        and on it sqrt 2 times as much.
    n_components, claim, iterations, step_sizes
        See `ReaperDescent`; the claim is made under REPLACE_ONE.

    Examples
    --------
    >>> mechanism = PrivateGradientReaper.calibrated(1.0, 1e-5, n_components=2)
    >>> round(mechanism.sigma, 2)
    16.68
    >>> rows = np.repeat(np.eye(5), [5000, 5000, 100, 100, 100], axis=0)
    >>> basis = mechanism.release(rows, rng=np.random.default_rng(0))
    >>> basis.shape
    (5, 2)
    """

    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", check_positive("sigma", self.sigma))

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | None = None,
    ) -> Self:
        """Return the mechanism at the smallest sigma there is.

        Parameters
        ----------
        epsilon, delta : float
            The promise for all steps together, under REPLACE_ONE.
        n_components, iterations
            See `ReaperDescent`.
        step_sizes : StepSizes, optional
            Default: `RootSteps`, the paper's 8/sqrt k.
        """
        mu = gaussian_mu(epsilon, delta)
        return cls(
            sigma=sqrt(check_count("iterations", iterations)) / mu,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            iterations=iterations,
            step_sizes=RootSteps() if step_sizes is None else step_sizes,
        )

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    @property
    def budget(self) -> BudgetTree:
        """Who spends what."""
        mu = sqrt(self.iterations) / self.sigma
        return BudgetTree.of_claim("steps", self.claim, note=f"{mu:.4g}-GDP")

    def noise_scale(self, count: int) -> float:
        return self.sigma

    def denominator(self, count: int) -> float:
        return float(count)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        return lambda matrices: reaper_term_sum(rows, matrices)

    def step_means(
        self, transcript: Mapping[str, Array], data: ArrayLike
    ) -> dict[str, Array]:
        """Return the sums without their noise, in the transcript's coordinates."""
        rows = self.rows(data)
        means = np.empty(transcript["steps"].shape)
        path = self.replayed(transcript, len(rows), rows.shape[1])
        for place, matrices in enumerate(path):
            means[:, place] = self._flattened(reaper_term_sum(rows, matrices))
        return {"steps": means}

    @property
    def step_scales(self) -> dict[str, float]:
        """The standard deviation of every entry, by name."""
        return {"steps": self.sigma}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row moves every sum by about sqrt 2.

        See `dpaudit.algorithms.robust.reaper_pairs.apart_pair`, with rows enough for
        the steps to find their span (or 100 r: noise that hides so many hides one). The
        default D is r + 2.
        """
        count = self.n_components * min(max(4, round(4 * self.sigma)), 100)
        return apart_pair(self.n_components, dimension, count=count)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and a pair whose one row turns the subspace.

        In the latter a sum moves by about 1 (`dpaudit.algorithms.robust.ggd_pairs`).
        """
        turned = shown_pair(self.n_components, None, count=2 * self.n_components)
        return self.worst_case(), turned


@dataclass(frozen=True, kw_only=True)
class PrivateStochasticGradientReaper(PoissonBatches, StochasticReaper):
    """dp-SGD-REAP: Poisson samples; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma : float
        As for `PrivateGradientReaper`.
    rate, batch_size, relation
        See `dpaudit.algorithms.robust.random_batches.PoissonBatches`.
    n_components, claim, iterations, step_sizes
        See `ReaperDescent`.

    Examples
    --------
    >>> mechanism = PrivateStochasticGradientReaper.calibrated(1.0, 1e-5)
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
    ) -> Self:
        """Return the mechanism at the smallest noise of the accountant.

        Parameters
        ----------
        epsilon, delta : float
            The promise for all steps together.
        relation : Relation or str
        rows : int
            A public number of about as many rows as there are.
        batch_size : int, optional
            B, at most `rows`: how many of them are in a batch on average. Default:
            `dpaudit.algorithms.robust.random_batches.published_batch_size`.
        n_components, iterations, step_sizes
            See `PrivateGradientReaper.calibrated`.
        """
        relation = Relation.parse(relation)
        rows = check_count("rows", rows)
        if batch_size is None:
            batch_size = published_batch_size(epsilon, iterations, rows)
        batch_size = check_count("batch_size", batch_size, maximum=rows)
        multiplier = noise_multiplier(
            float(epsilon),
            float(delta),
            rate=batch_size / rows,
            steps=iterations,
            replaced="orthogonal" if relation is Relation.REPLACE_ONE else None,
        )
        return cls(
            sigma=multiplier / sqrt(2),
            rate=batch_size / rows,
            batch_size=float(batch_size),
            relation=relation,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            iterations=iterations,
            step_sizes=RootSteps() if step_sizes is None else step_sizes,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what."""
        note = f"{self.iterations} Poisson samples of rate {self.rate:g}"
        return BudgetTree.of_claim("steps", self.claim, note=note)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        batch = self.batches(rows, rng)
        return lambda matrices: reaper_term_sum(batch(len(matrices)), matrices)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row has a term of about length 1.

        See `dpaudit.algorithms.robust.reaper_pairs`: `lone_pair` under ADD_REMOVE,
        where the default D is r + 1, `apart_pair` under REPLACE_ONE, where it is r + 2.
        """
        adds = self.relation is Relation.ADD_REMOVE
        pair = lone_pair if adds else apart_pair
        return pair(self.n_components, dimension, count=4 * self.n_components)
