r"""Noisy histograms, right and wrong.

Source: Ding, Wang, Wang, Zhang, Kifer, *Detecting violations of differential privacy*,
CCS 2018, Algorithms 9 and 10 (here for five bins, as in DP-Sniper).

1. x = the sum of the rows, each clipped to l1 norm 1; for one-hot rows, a histogram.
2. NoisyHist1 outputs x_j + Lap(1/epsilon) for every bin.
   NoisyHist2 outputs x_j + Lap(epsilon): the scale is upside down.

True epsilon. Under ADD_REMOVE the l1 sensitivity is 1, so by the argument at the head
of `dpaudit.algorithms.textbook.laplace` the true epsilon is one over the scale:
**epsilon for NoisyHist1, 1/epsilon for NoisyHist2** (10 where 0.1 is claimed; the claim
of NoisyHist2 holds for epsilon >= 1). Both are attained, on {y_1 <= x_1}.
"""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import Array
from dpaudit.algorithms.textbook.laplace import LaplaceNoise
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_matrix

__all__ = ["NoisyHist1", "NoisyHist2"]


@dataclass(frozen=True)
class _NoisyHistogram(LaplaceNoise, ABC):
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    @property
    def true_epsilon(self) -> float:
        """One over the scale of the noise, exactly."""
        return 1 / self.scale

    def answers(self, data: ArrayLike) -> Array:
        """Return the sum of the rows clipped to l1 norm 1, shape (k,)."""
        rows = check_matrix("data", data)
        return (rows / np.abs(rows).sum(axis=1, keepdims=True).clip(1.0)).sum(axis=0)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a person of the first of `dimension` bins (default 5), added."""
        bins = check_count("dimension", 5 if dimension is None else dimension)
        first, nobody = np.eye(1, bins), np.zeros((1, bins))
        return Pair(nobody, np.vstack([nobody, first]), self.relation)


@dataclass(frozen=True)
class NoisyHist1(_NoisyHistogram):
    """A histogram with noise Lap(1/epsilon): correct, and exactly epsilon-DP.

    Releases have the shape (k,) of the rows.

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    """

    @property
    def scale(self) -> float:
        """1/epsilon."""
        return 1 / self.epsilon


@dataclass(frozen=True)
class NoisyHist2(_NoisyHistogram):
    """A histogram with noise Lap(epsilon): exactly (1/epsilon)-DP.

    Releases have the shape (k,) of the rows.

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    """

    @property
    def scale(self) -> float:
        """Epsilon, where 1/epsilon is needed."""
        return self.epsilon
