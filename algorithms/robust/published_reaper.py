r"""The four private REAPERs as published.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, appendix A (sigma is per entry of the noise on the *mean* of the terms; the
constant c_2 is left open, and 1 here):

- dp-GD-REAP, dp-MD-REAP: sigma^2 = 32 T log^2(T/delta)/(epsilon^2 N^2), all rows in
  every step;
- dp-SGD-REAP, dp-SMD-REAP (Algorithms 1, 2): sigma^2 = (B/N)^2 T log(1/delta)/
  (epsilon^2 N^2), batches of B = max(N sqrt(epsilon/(4 T)), 1) rows drawn with
  replacement.

The noise is symmetric with the same deviation on the diagonal as above it.
P_0 = A^T A, A_ij ~ N(1, 0.01), is public, and far outside H. Step sizes 8/sqrt k. The
projection of gradient descent is the one in Algorithm 1's line, in Frobenius norm; that
of mirror descent is trace renormalisation. N is the number of rows, so the relation is
REPLACE_ONE. One thing is not to the letter: (4.1) prints a sum over rows, and its noise
is for their mean; here it is the mean, which needs N times less.

**The claims of the stochastic two are false**, for the reason given in
`dpaudit.algorithms.robust.published_ggd`: the noise is too small by B/N. A mean over B
rows moves by up to sqrt 2/B.

The other two keep theirs with much to spare. In the norm of the upper triangle, in
which the noise is independent, the sum moves by no more than in Frobenius norm, sqrt 2;
so the steps are mu-GDP with mu = sqrt(T) sqrt 2/(sigma N) = epsilon/(4 log(T/delta)).
At epsilon = 1, delta = 1e-5, T = 20 that is 0.017, for which the noise is about 15
times the least.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Self

import numpy as np

from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.gradient_reaper import PrivateGradientReaper
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS, Summing
from dpaudit.algorithms.robust.random_batches import PublishedBatches
from dpaudit.algorithms.robust.reaper import reaper_term_sum
from dpaudit.algorithms.robust.reaper_descent import ReaperDescent
from dpaudit.algorithms.robust.reaper_pairs import balanced_pair
from dpaudit.algorithms.robust.reaper_steps import Geometry, Renormalised, RootSteps
from dpaudit.algorithms.robust.stochastic_reaper import StochasticReaper
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP
from dpaudit.neighbours import Pair
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_positive,
)

__all__ = [
    "PublishedGradientReaper",
    "PublishedMirrorReaper",
    "PublishedStochasticGradientReaper",
    "PublishedStochasticMirrorReaper",
]

_START_DEVIATION = 0.1


@dataclass(frozen=True, kw_only=True)
class _PublishedSteps(ReaperDescent):
    """The print's P_0, and its kind of noise."""

    diagonal_ratio: ClassVar[float] = 1.0

    def _start(
        self, size: int, dimension: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        shape = size, dimension, dimension
        factors = 1 + _START_DEVIATION * rng.standard_normal(shape)
        return {"start": factors.swapaxes(1, 2) @ factors}

    def _begun(self, values: Mapping[str, Array], size: int, dimension: int) -> Array:
        return values["start"]


@dataclass(frozen=True, kw_only=True)
class PublishedGradientReaper(_PublishedSteps, PrivateGradientReaper):
    """dp-GD-REAP as published; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma, n_components, claim, iterations, step_sizes
        See `PrivateGradientReaper`; the deviation is the same on the diagonal.

    Examples
    --------
    >>> mechanism = PublishedGradientReaper.as_published(
    ...     0.8, 2000**-0.5, iterations=2000
    ... )
    >>> round(mechanism.sigma / 2000, 2)  # on the mean of 2000 rows
    1.8
    """

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | None = None,
    ) -> Self:
        """Return the print, with its claim.

        Parameters
        ----------
        epsilon, delta, n_components, iterations, step_sizes
            See `PrivateGradientReaper.calibrated`.
        """
        epsilon = check_positive("epsilon", epsilon)
        iterations = check_count("iterations", iterations)
        log_term = log(iterations / check_fraction("delta", delta))
        return cls(
            sigma=sqrt(32 * iterations) * log_term / epsilon,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            iterations=iterations,
            step_sizes=RootSteps() if step_sizes is None else step_sizes,
        )


@dataclass(frozen=True, kw_only=True)
class PublishedMirrorReaper(PublishedGradientReaper):
    """dp-MD-REAP as published; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma, n_components, claim, iterations, step_sizes
        See `PublishedGradientReaper`.
    """

    geometry: ClassVar[Geometry] = Renormalised()


@dataclass(frozen=True, kw_only=True)
class PublishedStochasticGradientReaper(
    PublishedBatches, _PublishedSteps, StochasticReaper
):
    """dp-SGD-REAP as published; the release is a basis of shape (D, r).

    Parameters
    ----------
    unit, batch_size
        See `dpaudit.algorithms.robust.random_batches.PublishedBatches`.
    n_components, claim, iterations, step_sizes
        See `ReaperDescent`; the claim is made under REPLACE_ONE.

    Examples
    --------
    >>> mechanism = PublishedStochasticGradientReaper.as_published(
    ...     0.8, 2000**-0.5, iterations=2000
    ... )
    >>> round(mechanism.noise_scale(2000) / 20, 6)  # on the mean of 20 rows
    0.000545
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_batches()

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        iterations: int = DEFAULT_ITERATIONS,
        batch_size: int | None = None,
        step_sizes: StepSizes | None = None,
    ) -> Self:
        """Return the print, with its claim and c_2 = 1.

        Parameters
        ----------
        epsilon, delta, n_components, iterations, step_sizes
            See `PublishedGradientReaper.as_published`.
        batch_size : int, optional
            B. Default: the paper's rule, for the rows there are.
        """
        return cls(
            unit=cls.unit_for(epsilon, delta, iterations),
            batch_size=batch_size,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            iterations=iterations,
            step_sizes=RootSteps() if step_sizes is None else step_sizes,
        )

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        batch = self.batches(rows, rng)
        return lambda matrices: reaper_term_sum(batch(len(matrices)), matrices)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return few rows, of which the last breaks a tie, so that releases show it.

        See `dpaudit.algorithms.robust.reaper_pairs.balanced_pair`. The default D is
        r + 1. (Transcripts show any row: on
        `dpaudit.algorithms.robust.ggd_pairs.odd_pair` at the paper's parameters their
        log-likelihood ratio is -20 without it, and 40,000 and more with it.)
        """
        count = 4 * (self.n_components + 1)
        return balanced_pair(self.n_components, dimension, count=count)


@dataclass(frozen=True, kw_only=True)
class PublishedStochasticMirrorReaper(PublishedStochasticGradientReaper):
    """dp-SMD-REAP as published; the release is a basis of shape (D, r).

    Parameters
    ----------
    unit, batch_size, n_components, claim, iterations, step_sizes
        See `PublishedStochasticGradientReaper`.
    """

    geometry: ClassVar[Geometry] = Renormalised()
