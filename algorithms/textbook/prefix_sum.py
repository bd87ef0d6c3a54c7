r"""PrefixSum: running totals of noisy counts.

Source: Wang, Ding, Wang, Kifer, Zhang, *Proving differential privacy with shadow
execution*, PLDI 2019; ten queries in DP-Sniper.

1. Output x_1 + noise_1, then that plus x_2 + noise_2, and so on, noise Lap(1/epsilon).

True epsilon. Totals and increments determine each other, so the release is k answers
with independent Lap(1/epsilon) noise. Where one person moves one answer by 1 (the
setting of the source) that is exactly epsilon-DP. Under REPLACE_ONE with counts a
person moves all k by 1, the l1 sensitivity is k, and by the argument at the head of
`dpaudit.algorithms.textbook.laplace` the true epsilon is **k epsilon**, attained on
{all increments <= 0} for the answers (0, ..., 0) against (1, ..., 1). At epsilon = 0.1
and k = 10 it is 1.0: the claim is false under this relation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import Array, check_dimension
from dpaudit.algorithms.textbook.counts import FixedQueriesMechanism, neighbours_with
from dpaudit.algorithms.textbook.laplace import LaplaceNoise
from dpaudit.neighbours import Pair

__all__ = ["PrefixSum"]


@dataclass(frozen=True)
class PrefixSum(FixedQueriesMechanism, LaplaceNoise):
    """Running totals of noisy counts; releases have shape (queries,).

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    queries : int
        Columns of the data, >= 1; the true epsilon depends on it.

    Examples
    --------
    >>> PrefixSum(0.1).true_epsilon
    1.0
    """

    @property
    def scale(self) -> float:
        """1/epsilon."""
        return 1 / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """Queries times epsilon, exactly."""
        return self.queries * self.epsilon

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        increments = super()._sample(answers, size, rng=rng)
        return np.cumsum(increments, axis=1, out=increments)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,)."""
        increments = np.diff(releases, axis=1, prepend=0.0)
        return super().privacy_loss(increments, data, other)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return all answers 0 against all 1: attained on {all increments <= 0}."""
        queries = check_dimension(dimension, self.queries)
        return neighbours_with([0] * queries, [1] * queries)
