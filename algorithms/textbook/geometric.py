r"""The truncated geometric mechanism of the DP-Sniper suite, with its logarithm.

Sources: Balcer, Vadhan, *Differential privacy on finite computers*, JPC 2019,
Algorithm 4.8 (GeoSample) and Theorem 4.7, for at most n people; Bichsel et al.,
*DP-Sniper*, IEEE S&P 2021 (n = 5).

1. k = ceil(log(2/epsilon)), a = 2^k/(2^k + 1).
2. c = the number of people, at most n, whose bit is 1.
3. Output z in {0, ..., n} with P(Z <= z) = a^(c - z)/(1 + a) for z < c, and
   1 - a^(z - c + 1)/(1 + a) for c <= z < n.

Step 3 is two-sided geometric noise, P(noise = m) proportional to a^|m|, clamped to the
range: every probability is a rational number with a known denominator, which is why
the algorithm exists.

True epsilon. Clamping moves no mass between {Z <= c} and {Z > c}, and for neighbours c
and c + 1 the loss is -log a on the one and log a on the other: both atoms and clamped
tails are multiplied by a for every unit of distance. So the mechanism is, on every
worst pair, randomised response at

.. math:: -\log a = \log(1 + 2^{-k})

exactly. With the logarithm to base 2, 2^-k <= epsilon/2 and the claim holds with room
to spare. **The suite takes the natural logarithm**: then 2^-k can be as large as
(epsilon/2)^(log 2), and the claim fails for small epsilon. At epsilon = 0.1, k is 3 in
place of 5, and the true epsilon is log(9/8) = 0.1178.
"""

from dataclasses import KW_ONLY, dataclass
from math import ceil, log, log1p
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import (
    Array,
    PureTextbookMechanism,
    check_dimension,
    check_scalars,
)
from dpaudit.checked import Count
from dpaudit.claims import NO_LOSS, Claim, PureDP
from dpaudit.neighbours import Pair, Relation

__all__ = ["TruncatedGeometric"]


@dataclass(frozen=True)
class TruncatedGeometric(PureTextbookMechanism):
    """A count in {0, ..., people}, with clamped geometric noise.

    Releases are whole numbers as floats, shape (). Rows are bits: scalars, clipped to
    [0, 1] and rounded; a count beyond `people` is reduced to it.

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    people : int
        Public bound n on the count, >= 1.

    Examples
    --------
    >>> round(TruncatedGeometric(0.1).true_epsilon, 4)
    0.1178
    """

    _: KW_ONLY
    people: Count = 5

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    @property
    def true_epsilon(self) -> float:
        """log(1 + 2^-k) with k = ceil(log(2/epsilon)), exactly."""
        return log1p(2.0 ** -ceil(log(2 / self.epsilon)))

    def distribution(self, count: int) -> Array:
        """Return the probabilities of 0, ..., people on that count."""
        ratio = np.exp(-self.true_epsilon)
        outputs = np.arange(self.people)
        below = ratio ** np.maximum(count - outputs, 0) / (1 + ratio)
        above = ratio ** np.maximum(outputs - count + 1, 0) / (1 + ratio)
        up_to = np.where(outputs < count, below, 1 - above)
        return np.diff(up_to, prepend=0.0, append=1.0)

    def answers(self, data: ArrayLike) -> Array:
        """Return the count, shape ()."""
        bits = np.rint(check_scalars(data).clip(0.0, 1.0))
        return np.minimum(bits.sum(), float(self.people))

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        up_to = np.cumsum(self.distribution(int(answers)))[:-1]
        return np.searchsorted(up_to, rng.random(size), side="right").astype(np.float64)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,)."""
        places = releases.astype(np.intp)
        probability, other_probability = (
            self.distribution(int(self.answers(rows)))[places] for rows in (data, other)
        )
        return np.asarray(np.log(probability / other_probability))

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the true pure epsilon if the counts differ."""
        differ = self.answers(pair.data) != self.answers(pair.neighbour)
        return PureDP(self.true_epsilon) if differ else NO_LOSS

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return counts 0 and 1: attained on {Z = 0} and on {Z > 0}."""
        check_dimension(dimension, 1)
        return Pair([0.0], [0.0, 1.0], self.relation)
