r"""dp-GGD and dp-SGGD as published.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, Theorem 6 (sigma is per entry of the noise on the *mean* of the terms; its
constants c and c_2 are left open, and 1 here), sections 3.3 and 5.1:

- dp-GGD: sigma^2 = T log^2(1/delta)/(epsilon^2 N^2), all rows in every step;
- dp-SGGD: sigma^2 = (B/N)^2 T log(1/delta)/(epsilon^2 N^2), batches of
  B = max(N sqrt(epsilon/(4 T)), 1) rows drawn with replacement.

V_0 is from the Wishart mechanism at epsilon
(`dpaudit.algorithms.robust.initialisation.PublishedStart`), which the claim of
(epsilon, delta) does not count. N is the number of rows, so the relation is
REPLACE_ONE ("only differ in at most one data point").

**dp-SGGD's claim is false.** A batch mean moves by up to 2/B when one of its rows is
replaced, and a row is in a step with probability about B/N; so the noise that hides a
mean over B rows is about what hides a mean over N, sigma^2 = c_2 T log(1/delta)/
(epsilon^2 N^2): c_2 q^2 T log(1/delta)/epsilon^2 is the variance of the noise on the
*sum*, in units of the clip, in Abadi et al. 2016, Theorem 1, and over B^2 that is the
former. The print has it over N^2, too small by (B/N)^2. At N = 2000, T = 2000,
epsilon = 0.8, delta = 1/sqrt N it is 5.4e-4 against a movement of up to 0.1: a
transcript shows each of the about 20 steps that a row is in, and which row it was.

dp-GGD's steps keep the claim (`dpaudit.algorithms.robust.private_ggd` says where),
without their start. A transcript that has the Wishart mechanism's noisy matrix shows
what that hides badly: on some pairs it is impossible on the other side. V_T does not
show it.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dpaudit.algorithms.robust.descent import HalvingSteps
from dpaudit.algorithms.robust.ggd_pairs import odd_pair
from dpaudit.algorithms.robust.glad import Array, term_sum
from dpaudit.algorithms.robust.initialisation import PublishedStart, Start
from dpaudit.algorithms.robust.minibatch_descent import MinibatchDescent
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS, Summing
from dpaudit.algorithms.robust.private_ggd import PrivateGGD
from dpaudit.algorithms.robust.random_batches import PublishedBatches
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP
from dpaudit.neighbours import Pair
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_positive,
)

__all__ = ["PublishedGGD", "PublishedSGGD"]


@dataclass(frozen=True, kw_only=True)
class PublishedGGD(PrivateGGD):
    """dp-GGD with the noise of Theorem 6; the release is a basis of V_T, (D, r).

    Parameters
    ----------
    sigma, n_components, claim, start, iterations, step_sizes
        See `PrivateGGD`.

    Examples
    --------
    >>> mechanism = PublishedGGD.as_published(0.8, 2000**-0.5, iterations=2000)
    >>> round(mechanism.sigma / 2000, 3)  # on the mean of 2000 rows
    0.106
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
        start: Start | None = None,
    ) -> "PublishedGGD":
        """Return Theorem 6 to the letter, with its claim and c = 1.

        Parameters
        ----------
        epsilon, delta : float
        n_components, iterations, step_sizes
            See `PrivateGGD.calibrated`.
        start : Start, optional
            Default: a `PublishedStart` at epsilon.
        """
        epsilon = check_positive("epsilon", epsilon)
        log_term = log(1 / check_fraction("delta", delta))
        return cls(
            sigma=sqrt(check_count("iterations", iterations)) * log_term / epsilon,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            start=PublishedStart(epsilon) if start is None else start,
            iterations=iterations,
            step_sizes=HalvingSteps() if step_sizes is None else step_sizes,
        )


@dataclass(frozen=True, kw_only=True)
class PublishedSGGD(PublishedBatches, MinibatchDescent):
    """dp-SGGD with the noise of Theorem 6; the release is a basis of V_T, (D, r).

    Parameters
    ----------
    unit, batch_size
        See `dpaudit.algorithms.robust.random_batches.PublishedBatches`.
    n_components, claim, start, iterations, step_sizes
        See `Descent`; the claim is made under REPLACE_ONE.

    Examples
    --------
    >>> mechanism = PublishedSGGD.as_published(0.8, 2000**-0.5, iterations=2000)
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
        start: Start | None = None,
    ) -> "PublishedSGGD":
        """Return Theorem 6 to the letter, with its claim and c_2 = 1.

        Parameters
        ----------
        epsilon, delta, n_components, iterations, step_sizes, start
            See `PublishedGGD.as_published`.
        batch_size : int, optional
            B. Default: the paper's rule, for the rows there are.
        """
        return cls(
            unit=cls.unit_for(epsilon, delta, iterations),
            batch_size=batch_size,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            start=PublishedStart(epsilon) if start is None else start,
            iterations=iterations,
            step_sizes=HalvingSteps() if step_sizes is None else step_sizes,
        )

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        batch = self.batches(rows, rng)
        return lambda bases: term_sum(batch(len(bases)), bases)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return rows at r basis vectors, and one that leans out of their span, or not.

        See `dpaudit.algorithms.robust.ggd_pairs.odd_pair`. For r = 1 there are two
        distinct rows, so that the likelihood of a transcript is a short sum. The
        default D is r + 1.
        """
        return odd_pair(self.n_components, dimension, count=99)
