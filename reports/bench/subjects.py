"""Mechanisms that only the studies need."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dpaudit.algorithms import build
from dpaudit.algorithms.textbook.counts import neighbours_with
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.mechanism import HasBatchedDraw, Release
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_fraction, check_positive

CLAIMED = 0.1
"""The epsilon that every mechanism of the suite claims in the studies."""

# Best attacked on the pair of half the answers 0 and half 1, against the reverse.
_HALVES = frozenset({"svt-3", "svt-4", "svt-6", "svt-3-4-parallel"})


def subject(name: str) -> Any:
    """Return a mechanism of the suite at the claim that the studies hold it to."""
    return build(name, epsilon=CLAIMED)


def best_pair(name: str) -> Pair:
    """Return the pair on which the best event is found."""
    if name in _HALVES:
        half = subject(name).worst_case().data.shape[1] // 2
        return neighbours_with([0] * half + [1] * half, [1] * half + [0] * half)
    return subject(name).worst_case()


@dataclass(frozen=True)
class BlackBox:
    """A mechanism of which nothing is known but its releases.

    What it knows about its own density, statistic, support and worst cases is out of
    reach; releases are still drawn in batches.
    """

    mechanism: Any  # with a batched draw

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Release:
        mechanism: HasBatchedDraw = self.mechanism
        return mechanism.draw(data, size, rng=rng)

    def __call__(self, data: Array, rng: np.random.Generator) -> Release:
        """Return one release."""
        return self.mechanism.release(data, rng=rng)


class _Bit:
    """A bit, told by randomised response."""

    claim: Claim
    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def told(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Array:
        """Return the answers, 0 or 1, shape (size,)."""
        bit = float(np.rint(np.ravel(data)[0]))
        true = rng.random(size) < expit(self.claim.parameters["epsilon"])
        return np.where(true, bit, 1 - bit)

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Any:
        return self.draw(data, 1, rng=rng)[0]

    def worst_case(self, dimension: int = 1) -> Pair:
        return Pair([0.0], [1.0], self.relation)


@dataclass(frozen=True)
class LeakyResponse(_Bit):
    r"""One bit, told plainly with probability delta, else by randomised response.

    Outputs 2 + bit with probability delta; else the bit with probability
    e^epsilon/(1 + e^epsilon), or its opposite. On the two bits
    P(S) - e^t Q(S) is largest for S = {own plain value} and, for t < epsilon, {own bit}
    too: delta(t) = delta + (1 - delta)(1 - e^t e^-epsilon)_+ /(1 + e^-epsilon). So it
    is (epsilon, delta)-DP with equality, and no better at that epsilon or that delta
    (the mechanism that dominates all others, Kairouz, Oh, Viswanath, *The composition
    theorem for differential privacy*, ICML 2015).
    """

    epsilon: float = 1.0  # > 0
    delta: float = 0.05  # in (0, 1)
    claim: Claim = field(init=False)

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_fraction("delta", self.delta)
        object.__setattr__(self, "claim", ApproxDP(self.epsilon, self.delta))

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        leaked = 2 + float(np.rint(np.ravel(data)[0]))
        told = self.told(data, size, rng)
        return np.where(rng.random(size) < self.delta, leaked, told)


@dataclass(frozen=True)
class RareAnswers(_Bit):
    """Randomised response at epsilon 1 that mostly answers with an empty dictionary.

    As partition selection does. Whether it answers does not depend on the bit.
    """

    share: float  # how often it answers, in (0, 1)
    claim: Claim = field(default=PureDP(1.0), init=False)

    def __post_init__(self) -> None:
        check_fraction("share", self.share)

    def draw(
        self, data: ArrayLike, size: int, *, rng: np.random.Generator
    ) -> list[Any]:
        told, answers = self.told(data, size, rng), rng.random(size) < self.share
        return [{"0": t} if a else {} for t, a in zip(told, answers, strict=True)]


@dataclass(frozen=True)
class MixedLayouts(_Bit):
    """Randomised response at epsilon 1 that answers in one of many ways, at random.

    The way does not depend on the bit, and shows it as plainly as any other.
    """

    claim: Claim = field(default=PureDP(1.0), init=False)

    def draw(
        self, data: ArrayLike, size: int, *, rng: np.random.Generator
    ) -> list[Any]:
        told, way = self.told(data, size, rng), rng.integers(7, size=size)
        noise = rng.normal(size=size)
        return [
            _in_words(int(bit), ways, hue)
            for bit, ways, hue in zip(told, way, noise, strict=True)
        ]


def _in_words(bit: int, way: int, noise: float) -> Any:
    ways: tuple[Any, ...] = (
        bit,
        {"bit": float(bit), "noise": noise},
        [[noise], [float(bit), noise]],
        "yes" if bit else "no",
        f"{noise}, {bit}",
        [np.nan, bit],
        [noise] * (2 + bit),
    )
    return ways[way]


@dataclass(frozen=True)
class SpoiltCompany(_Bit):
    """Randomised response at epsilon 1 that answers 1 by 1e150, and NaN now and then.

    How a release is scored must not depend on the NaN beside it.
    """

    claim: Claim = field(default=PureDP(1.0), init=False)

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        hue = rng.random((size, 2))
        huge = self.told(data, size, rng)[:, np.newaxis] == 1
        releases = np.where(huge, 1e150 * (2 + hue), hue)
        releases[rng.random(size) < 0.02, 0] = np.nan
        return np.asarray(releases)
