"""Six published sparse vector techniques, the numerical one, and two side by side.

Their table, sources and proofs are at the head of
`dpaudit.algorithms.textbook.sparse_vector`.

**SVT34Parallel** (Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021):
SVT3 and SVT4 with cutoff 2, each at the epsilon that is claimed for both. The releases
are independent, so the losses of their events add up; SVT3 alone is private at no
epsilon (its loss on streams of length k reaches k epsilon/4). At k = 10 more is lost on
another pair, the worst case of SVT4: there SVT4 alone comes close to (1 + 12)/4
epsilon.
"""

from dataclasses import KW_ONLY, dataclass
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng, laplace_noise
from dpaudit.algorithms.textbook import sparse_vector
from dpaudit.algorithms.textbook.counts import CountingMechanism, neighbours_with
from dpaudit.algorithms.textbook.stream_losses import ABOVE, BELOW, log_laplace_interval
from dpaudit.arrays import Array
from dpaudit.neighbours import Pair
from dpaudit.validation import Count, Nonnegative

__all__ = [
    "SVT1",
    "SVT2",
    "SVT3",
    "SVT4",
    "SVT5",
    "SVT6",
    "NumericalSVT",
    "SVT34Parallel",
]


@dataclass(frozen=True)
class SVT1(sparse_vector.StoppingSparseVector):
    """The sparse vector technique as it should be: exactly epsilon-DP."""

    _: KW_ONLY
    threshold: float = 0.5

    @property
    def scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 4 * self.cutoff / self.epsilon


@dataclass(frozen=True)
class SVT2(sparse_vector.StoppingSparseVector):
    """The sparse vector technique with renewed thresholds: exactly epsilon-DP."""

    @property
    def scales(self) -> tuple[float, float]:
        return 2 * self.cutoff / self.epsilon, 4 * self.cutoff / self.epsilon

    def _renew(self, thresholds: Array, above: sparse_vector.Mask, rng: Rng) -> None:
        count = int(np.count_nonzero(above))
        fresh = laplace_noise(count, self.scales[0], rng=rng)
        thresholds[above] = self.threshold + fresh

    def _log_density(self, streams: sparse_vector.Streams, answers: Array) -> Array:
        law, total = self._law(answers), np.zeros(len(streams.codes))
        for codes in streams.runs():
            total += law.log_mass(codes)
        return total[streams.of]

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a vote for the last query of each run, against all the others.

        Event: each of `cutoff` equal runs below, then above. `true_epsilon` is
        approached as `dimension`, the length of the stream, grows.
        """
        length = sparse_vector.check_length(dimension, 2 * self.cutoff)
        run = length // self.cutoff
        ends = [int(j % run == run - 1) for j in range(length)]
        return neighbours_with(ends, [1 - end for end in ends])


@dataclass(frozen=True)
class SVT3(sparse_vector.StoppingSparseVector):
    """A sparse vector technique that releases the values compared: not private.

    Releases have the shape (k,) of a row: the noisy answer where it is above, NaN where
    it is below, -inf where it is not reached.
    """

    quiet = nan, -inf

    @property
    def scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 2 * self.cutoff / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """Infinite; k epsilon/(2 cutoff) for streams of length k."""
        return inf

    def _above(self, noisy: Array, answer: float, rng: Rng) -> Array:
        return noisy

    def _log_density(self, streams: sparse_vector.Streams, answers: Array) -> Array:
        law = self._law(answers)
        mass = law.log_mass_up_to(streams.least_values, streams.codes, streams.of)
        return streams.log_noise(answers, self.scales[1]) + mass

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return all answers 0 against all 1, `dimension` of them (default 10).

        Attained on {below until the last `cutoff`, then values <= 0}.
        """
        length = sparse_vector.check_length(dimension, self.cutoff + 1)
        return neighbours_with([0] * length, [1] * length)


@dataclass(frozen=True)
class SVT4(sparse_vector.StoppingSparseVector):
    """A sparse vector technique with too little noise: (1 + 6 cutoff)/4 epsilon-DP."""

    @property
    def scales(self) -> tuple[float, float]:
        return 4 / self.epsilon, 4 / (3 * self.epsilon)

    @property
    def true_epsilon(self) -> float:
        """(1 + 6 cutoff)/4 times epsilon, as a supremum."""
        return (1 + 6 * self.cutoff) * self.epsilon / 4


@dataclass(frozen=True)
class SVT5(sparse_vector.EndlessSparseVector):
    """A sparse vector technique without noise on the queries: not private."""

    @property
    def scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 0.0

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return (0, 2, 2, 4, 4, ...) and (1, 1, 3, 3, ...) (default 10 answers).

        For thresholds above 5 all answers are larger by a constant, so that the
        threshold is in their middle. Event: an even answer is above and the one before
        it, 2 less, below.
        """
        length = sparse_vector.check_length(dimension, 2)
        first = max(0, round(self.threshold) - length // 2)
        places = np.arange(length)
        stairs = first + (places + 1) // 2 * 2, first + places // 2 * 2 + 1
        return neighbours_with(*(answers.tolist() for answers in stairs))

    def _log_density(self, streams: sparse_vector.Streams, answers: Array) -> Array:
        # s is above each answer below, and at most each answer above.
        low = np.where(streams.codes == BELOW, answers, -inf).max(axis=1)
        high = np.where(streams.codes == ABOVE, answers, inf).min(axis=1)
        logs = log_laplace_interval(
            low - self.threshold, high - self.threshold, scale=self.scales[0]
        )
        return logs[streams.of]


@dataclass(frozen=True)
class SVT6(sparse_vector.EndlessSparseVector):
    """A sparse vector technique that never stops: not private."""

    @property
    def scales(self) -> tuple[float, float]:
        return 2 / self.epsilon, 2 / self.epsilon


@dataclass(frozen=True)
class NumericalSVT(sparse_vector.StoppingSparseVector):
    """The sparse vector technique with fresh noisy answers: exactly epsilon-DP.

    Releases have the shape (k,) of a row: a fresh noisy answer where the stream is
    above, NaN where it is below, -inf where it is not reached.
    """

    _: KW_ONLY
    cutoff: int = 2

    quiet = nan, -inf

    @property
    def scales(self) -> tuple[float, float]:
        return 3 / self.epsilon, 6 * self.cutoff / self.epsilon

    @property
    def value_scale(self) -> float:
        """The b3 of the table."""
        return 3 * self.cutoff / self.epsilon

    def _above(self, noisy: Array, answer: float, rng: Rng) -> Array:
        return answer + laplace_noise(len(noisy), self.value_scale, rng=rng)

    def _log_density(self, streams: sparse_vector.Streams, answers: Array) -> Array:
        told = super()._log_density(streams, answers)
        return told + streams.log_noise(answers, self.value_scale)


@dataclass(frozen=True)
class SVT34Parallel(CountingMechanism):
    """SVT3 and SVT4 side by side: not private.

    Releases have shape (2 k,), k the length of a row: the k codes of `SVT3`, then the k
    codes of `SVT4`.

    They share the threshold, and the number of answers above that end a stream.
    """

    _: KW_ONLY
    threshold: Nonnegative = 1.0
    cutoff: Count = 2

    @property
    def parts(self) -> tuple[SVT3, SVT4]:
        """The two mechanisms."""
        shared: dict[str, Any] = {"threshold": self.threshold, "cutoff": self.cutoff}
        return SVT3(self.epsilon, **shared), SVT4(self.epsilon, **shared)

    @property
    def true_epsilon(self) -> float:
        return inf  # as that of SVT3

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        return np.hstack([p._sample(answers, size, rng=rng) for p in self.parts])

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, what the parts lose together; NaN where impossible."""
        length = len(self.answers(data))
        halves = np.split(sparse_vector.check_releases(releases, 2 * length), 2, axis=1)
        first, second = (
            part.privacy_loss(half, data, other)
            for part, half in zip(self.parts, halves, strict=True)
        )
        return first + second

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the worst case of SVT4.

        Event: both streams below throughout, then `cutoff` times above; SVT3 with
        values >= 1.
        """
        return self.parts[1].worst_case(dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, that of SVT3, then the other pairs of SVT4."""
        first, second = self.parts
        return self.worst_case(), first.worst_case(), *second.canonical_pairs()[1:]
