r"""Randomised response of one bit, and RAPPOR, which is that of a Bloom filter.

**Randomised response**: one person's bit, told truly with a known probability.
Source: Warner, *Randomized response*, JASA 1965; with e^epsilon/(1 + e^epsilon) as the
probability of the truth it is the binary mechanism that dominates every pure
epsilon-DP mechanism (Kairouz, Oh, Viswanath, *The composition theorem for differential
privacy*, ICML 2015).

1. b = the row, clipped to [0, 1] and rounded.
2. Output b with probability e^epsilon/(1 + e^epsilon), else 1 - b.

True epsilon. The two outputs have the losses +-epsilon, so the claim is exact, and
attained on each output; the whole trade-off curve of the worst pair is that of the
claim.

**RAPPOR**: a value in a Bloom filter whose bits are flipped at random. Sources:
Erlingsson, Pihur, Korolova, *RAPPOR: randomized aggregatable privacy-preserving ordinal
response*, CCS 2014, sections 2 and 3; parameters of DP-Sniper: 4 hashes into 20 bits; f
= 0.75, p = 0.45, q = 0.55, and f = 0.95 for the one-time version. Hash functions are
part of the mechanism and public; here they are BLAKE2b, salted by their number.

1. Set the bits of an empty filter that the hashes of the value name: at most 4.
2. Permanent response: each bit becomes 1 with probability f/2, 0 with f/2, else stays.
   OneTimeRappor outputs this.
3. Instantaneous response: each 1 is told as 1 with probability q, each 0 with p.
   Rappor outputs this, once, without keeping step 2.

True epsilon. Bits are independent, 1 with probability q* where the filter has a 1 and
p* where it has a 0: q* = 1 - f/2 and p* = f/2 after step 2; after step 3,
q* = (1 - f/2) q + (f/2) p and p* = (f/2) q + (1 - f/2) p. Two values change at most 4
bits from 1 to 0 and 4 from 0 to 1. Together, one of either kind has the loss
log(q*/p*) + log((1 - p*)/(1 - q*)) at most, attained where the first is told as 1 and
the second as 0 (for q* > p*). Two values whose filters are full and disjoint exist
(`worst_case`), so

.. math:: \epsilon = 4 \left| \log \frac{q^* (1 - p^*)}{p^* (1 - q^*)} \right|

**exactly**, whatever is claimed: 8 log(0.5125/0.4875) = 0.4001 for Rappor and
8 log(0.525/0.475) = 0.8007 for OneTimeRappor. The claim of 0.1 is that of one bit flip
of OneTimeRappor. (The published lower bound for Rappor, 0.301, is six bits' worth.)
"""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import binom, expit

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.textbook import base
from dpaudit.arrays import Array
from dpaudit.claims import NO_LOSS, Claim, Profile
from dpaudit.claims.profile import LARGEST_DELTA
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import Fraction

__all__ = ["OneTimeRappor", "RandomisedResponse", "Rappor"]


@dataclass(frozen=True)
class RandomisedResponse(base.OneLoss):
    """One bit, flipped at random; releases are 0.0 or 1.0, shape ().

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

    def answers(self, data: ArrayLike) -> Array:
        """Return the bit, shape ()."""
        return np.rint(np.clip(base.check_one_scalar(data), 0.0, 1.0))

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        # A truth next to 1 has no digits for lies: these are at least as many as said.
        lie = np.nextafter(expit(-self.epsilon), 0.5)
        lies = LARGEST_DELTA - rng.random(size) < lie
        return np.where(lies, 1 - answers, answers)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, +-epsilon or 0, shape (size,)."""
        bit, other_bit = self.answers(data), self.answers(other)
        return self.epsilon * (bit - other_bit) * np.where(releases > 0.5, 1.0, -1.0)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the two bits: attained on either output."""
        base.check_dimension(dimension, 1)
        return Pair([0.0], [1.0], self.relation)


_HASHES = 4
_BITS = 20
_ENOUGH_VALUES = 50  # to hold two with full and disjoint filters


@dataclass(frozen=True)
class _BloomFilterResponse(base.PureTextbookMechanism, ABC):
    """Releases are bits as floats, shape (20,); the row is one number, rounded."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    @property
    @abstractmethod
    def told_as_one(self) -> tuple[float, float]:
        """The probabilities q* and p* that a 1, or a 0, is told as 1."""

    @property
    @abstractmethod
    def _told_as_zero(self) -> tuple[float, float]:
        """1 - q* and 1 - p*, with their digits where they are small."""

    @property
    def bit_losses(self) -> tuple[float, float]:
        """The losses of a bit that is 1 here and 0 there, told as 1 and told as 0."""
        (one, zero), (not_one, not_zero) = self.told_as_one, self._told_as_zero
        return float(np.log(one / zero)), float(np.log(not_one / not_zero))

    @property
    def true_epsilon(self) -> float:
        """The loss of eight differing bits, exactly."""
        as_one, as_zero = self.bit_losses
        return _HASHES * abs(as_one - as_zero)

    def answers(self, data: ArrayLike) -> Array:
        """Return the Bloom filter of the value, rounded, shape (20,)."""
        bits = np.zeros(_BITS)
        bits[list(_hashes(int(np.rint(base.check_one_scalar(data)))))] = 1.0
        return bits

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        one, zero = self.told_as_one
        told = rng.random((size, _BITS)) < np.where(answers > 0, one, zero)
        return told.astype(np.float64)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        as_one, as_zero = self.bit_losses
        differing = self.answers(data) - self.answers(other)
        return np.asarray((releases * as_one + (1 - releases) * as_zero) @ differing)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the privacy profile of the pair: exact at each value of the loss.

        The loss depends on how many of the bits that are set on one side only are told
        as 1, two independent binomials.
        """
        difference = self.answers(pair.data) - self.answers(pair.neighbour)
        here, there = (int(np.count_nonzero(difference == s)) for s in (1, -1))
        if here + there == 0:
            return NO_LOSS
        one, zero = zip(self.told_as_one, self._told_as_zero, strict=True)
        from_here = np.arange(here + 1)[:, np.newaxis]
        from_there = np.arange(there + 1)
        on_data = _binomial(from_here, here, one) * _binomial(from_there, there, zero)
        on_other = _binomial(from_here, here, zero) * _binomial(from_there, there, one)
        as_one, as_zero = self.bit_losses
        told = from_here - from_there
        losses = told * as_one + (here - there - told) * as_zero
        knots = np.unique(np.append(np.abs(losses).round(12), 0.0))  # but for rounding
        if knots[-1] > base.MAX_LOSS:
            raise UnsupportedError(
                f"the profile is known of losses of at most {base.MAX_LOSS:g}, got "
                f"{knots[-1]:g}"
            )
        deltas = [
            max(
                np.maximum(p - np.exp(knot) * q, 0.0).sum()
                for p, q in ((on_data, on_other), (on_other, on_data))
            )
            for knot in knots[:-1]
        ]
        # Nothing loses more than the last.
        return Profile(knots, np.minimum([*deltas, 0.0], LARGEST_DELTA))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return two small whole numbers with full, disjoint filters.

        Attained where the bits of the first are told as 1, those of the second as 0.
        """
        base.check_dimension(dimension, 1)
        full = [n for n in range(_ENOUGH_VALUES) if len(_hashes(n)) == _HASHES]
        first, second = next(
            (one, other)
            for one, other in combinations(full, 2)
            if not _hashes(one) & _hashes(other)
        )
        return Pair([first], [second], self.relation)


@dataclass(frozen=True)
class Rappor(_BloomFilterResponse):
    """A Bloom filter after the permanent and the instantaneous response.

    The noise does not depend on epsilon, but on f, p and q: see the head of the module.
    """

    _: KW_ONLY
    f: Fraction = 0.75
    p: Fraction = 0.45
    q: Fraction = 0.55

    @property
    def told_as_one(self) -> tuple[float, float]:
        kept, changed = 1 - self.f / 2, self.f / 2
        return kept * self.q + changed * self.p, changed * self.q + kept * self.p

    @property
    def _told_as_zero(self) -> tuple[float, float]:
        kept, changed, p, q = 1 - self.f / 2, self.f / 2, 1 - self.p, 1 - self.q
        return kept * q + changed * p, changed * q + kept * p


@dataclass(frozen=True)
class OneTimeRappor(_BloomFilterResponse):
    """A Bloom filter after the permanent response.

    The noise does not depend on epsilon, but on f: see the head of the module.
    """

    _: KW_ONLY
    f: Fraction = 0.95

    @property
    def told_as_one(self) -> tuple[float, float]:
        return 1 - self.f / 2, self.f / 2

    @property
    def _told_as_zero(self) -> tuple[float, float]:
        return self.f / 2, 1 - self.f / 2


def _binomial(
    successes: NDArray[np.intp], trials: int, chances: tuple[float, float]
) -> Array:
    """Return the probabilities of so many successes, by the chances of both."""
    success, failure = chances
    weights = binom(trials, successes)
    return np.asarray(weights * success**successes * failure ** (trials - successes))


def _hashes(value: int) -> frozenset[int]:
    """Return the bits that the hash functions name for a value."""
    digests = (
        blake2b(str(value).encode(), digest_size=8, salt=bytes([number])).digest()
        for number in range(_HASHES)
    )
    return frozenset(int.from_bytes(digest, "big") % _BITS for digest in digests)
