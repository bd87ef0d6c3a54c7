r"""Randomised response: one person's bit, told truly with a known probability.

Source: Warner, *Randomized response*, JASA 1965; with e^epsilon/(1 + e^epsilon) as the
probability of the truth it is the binary mechanism that dominates every pure
epsilon-DP mechanism (Kairouz, Oh, Viswanath, *The composition theorem for differential
privacy*, ICML 2015).

1. b = the row, clipped to [0, 1] and rounded.
2. Output b with probability e^epsilon/(1 + e^epsilon), else 1 - b.

True epsilon. The two outputs have the losses +-epsilon, so the claim is exact, and
attained on each output; the whole trade-off curve of the worst pair is that of the
claim.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dpaudit.algorithms.textbook.base import (
    Array,
    PureTextbookMechanism,
    check_dimension,
    check_one_scalar,
)
from dpaudit.claims import NO_LOSS, Claim, PureDP
from dpaudit.neighbours import Pair, Relation

__all__ = ["RandomisedResponse"]


@dataclass(frozen=True)
class RandomisedResponse(PureTextbookMechanism):
    """One bit, flipped at random; releases are 0.0 or 1.0, shape ().

    Parameters
    ----------
    epsilon : float
        The claim, > 0.

    Examples
    --------
    >>> round(RandomisedResponse(np.log(3)).truth, 12)
    0.75
    """

    epsilon: float = 1.0

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    @property
    def truth(self) -> float:
        """The probability that the bit is told truly."""
        return float(expit(self.epsilon))

    @property
    def true_epsilon(self) -> float:
        """The claim is exact."""
        return self.epsilon

    def answers(self, data: ArrayLike) -> Array:
        """Return the bit, shape ()."""
        return np.rint(np.clip(check_one_scalar(data), 0.0, 1.0))

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        truly = rng.random(size) < self.truth
        return np.where(truly, answers, 1 - answers)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, +-epsilon or 0, shape (size,)."""
        bit, other_bit = self.answers(data), self.answers(other)
        return self.epsilon * (bit - other_bit) * np.where(releases > 0.5, 1.0, -1.0)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return pure epsilon-DP if the bits differ."""
        differ = self.answers(pair.data) != self.answers(pair.neighbour)
        return PureDP(self.epsilon) if differ else NO_LOSS

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the two bits: attained on either output."""
        check_dimension(dimension, 1)
        return Pair([0.0], [1.0], self.relation)
