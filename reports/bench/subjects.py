"""Mechanisms that only the studies need."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dpaudit.claims import ApproxDP, Claim
from dpaudit.mechanism import HasBatchedDraw, Release
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_fraction, check_positive

__all__ = ["BlackBox", "LeakyResponse"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlackBox:
    """A mechanism of which nothing is known but its releases.

    What it knows about its own density, statistic, support and worst cases is out of
    reach; releases are still drawn in batches.

    Parameters
    ----------
    mechanism : Mechanism
        With a batched draw.
    """

    mechanism: Any

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Release:
        """Return `size` independent releases."""
        mechanism: HasBatchedDraw = self.mechanism
        return mechanism.draw(data, size, rng=rng)

    def __call__(self, data: Array, rng: np.random.Generator) -> Release:
        """Return one release."""
        return self.mechanism.release(data, rng=rng)


@dataclass(frozen=True)
class LeakyResponse:
    r"""One bit, told plainly with probability delta, else by randomised response.

    Outputs 2 + bit with probability delta; else the bit with probability
    e^epsilon/(1 + e^epsilon), or its opposite. On the two bits
    P(S) - e^t Q(S) is largest for S = {own plain value} and, for t < epsilon, {own bit}
    too: delta(t) = delta + (1 - delta)(1 - e^t e^-epsilon)_+ /(1 + e^-epsilon). So it
    is (epsilon, delta)-DP with equality, and no better at that epsilon or that delta
    (the mechanism that dominates all others, Kairouz, Oh, Viswanath, *The composition
    theorem for differential privacy*, ICML 2015).

    Parameters
    ----------
    epsilon : float
        > 0.
    delta : float
        In (0, 1).
    """

    epsilon: float = 1.0
    delta: float = 0.05
    claim: Claim = field(init=False)

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_fraction("delta", self.delta)
        object.__setattr__(self, "claim", ApproxDP(self.epsilon, self.delta))

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent releases, shape (size,)."""
        bit = float(np.rint(np.ravel(data)[0]))
        told = np.where(rng.random(size) < expit(self.epsilon), bit, 1 - bit)
        return np.where(rng.random(size) < self.delta, 2 + bit, told)

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return one release."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])

    def worst_case(self, dimension: int = 1) -> Pair:
        """Return the two bits."""
        return Pair([0.0], [1.0], self.relation)
