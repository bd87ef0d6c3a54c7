r"""The sparse vector technique: which counts of a stream pass a threshold.

Sources: Lyu, Su, Li, *Understanding the sparse vector technique for differential
privacy*, VLDB 2017, Algorithms 1 to 6 (their sources in turn: SVT1 is the authors' own;
SVT2 Dwork, Roth 2014; SVT3 Roth 2011; SVT4 Lee, Clifton 2014; SVT5 Stoddard et al.
2014; SVT6 Chen et al. 2015); Wang, Ding, Wang, Kifer, Zhang, *Proving differential
privacy with shadow execution*, PLDI 2019, for NumericalSVT. Thresholds and cutoffs as
in DP-Sniper.

1. Noisy threshold: T + Lap(b1), once (SVT2: again after every answer above).
2. For each query in turn, x_j + Lap(b2) (SVT5: x_j itself) against the noisy threshold:
   above or below. SVT3 releases that noisy answer where it is above, NumericalSVT
   x_j + Lap(b3), fresh.
3. Stop after `cutoff` answers above (SVT5, SVT6: never).

=============  ===========  =============  ========  ==============================
mechanism      b1           b2             cutoff c  true epsilon, over all streams
=============  ===========  =============  ========  ==============================
SVT1           2/epsilon    4c/epsilon     1         epsilon
SVT2           2c/epsilon   4c/epsilon     1         epsilon
SVT3           2/epsilon    2c/epsilon     1         infinite
SVT4           4/epsilon    4/(3 epsilon)  1         (1 + 6c) epsilon/4
SVT5           2/epsilon    0              none      infinite
SVT6           2/epsilon    2/epsilon      none      infinite
NumericalSVT   3/epsilon    6c/epsilon     2         epsilon (b3 = 3c/epsilon)
=============  ===========  =============  ========  ==============================

The claims are about streams of any length k, so the data may have any number of
columns, and the true epsilon is the supremum over k as well. Write f for the density of
the threshold noise, F for the distribution function of the query noise, s for the noisy
threshold. A stream of answers has the probability (density, where values are released)

.. math:: \int f(s - T) \prod_{below} F(s - x_j) \prod_{above} (1 - F(s - x_j)) \, ds .

**Upper bounds** of SVT1, SVT4, NumericalSVT. Shift s by 1: no answer below becomes less
likely; f costs 1/b1, each of at most c answers above has moved by at most 2 against s
and costs 2/b2, and each value released costs 1/b3. SVT1: epsilon/2 + 2c epsilon/(4c) =
epsilon. SVT4: epsilon/4 + 2c 3 epsilon/4 = (1 + 6c) epsilon/4. NumericalSVT:
epsilon/3 + 2c epsilon/(6c) + c epsilon/(3c) = epsilon. SVT2 pays 1/b1 + 2/b2 =
epsilon/c for each run of answers that ends above, of which there are at most c, and
less for a run without an end.

**They are approached**, as k grows, by the answers (0, ..., 0, 1, ..., 1) against
(1, ..., 1, 0, ..., 0), the last c differing from the rest, event "below throughout,
then c times above" (and values >= 1). The k - c factors F vanish double-exponentially
for s below b2 log k, so that all mass moves to s > T and s > 1. There the ratios
f(s - T)/f(s + 1 - T) and (1 - F(s - 1))/(1 - F(s + 1)) are exactly e^(1/b1) and
e^(2/b2), and the shift of the upper bound loses nothing. At k = 10 and epsilon = 0.1,
SVT4 has 0.1748 of 0.175. SVT2 with c > 1 needs c runs of k/c answers, the last of each
above.

**SVT3.** A released value v tells that s <= v. On the answers (0, ..., 0) against
(1, ..., 1), event "below until the last c, then c values v <= 0", s <= 0, so that each
factor F(s - x_j), and the density of each v, changes by exactly e^(1/b2). The loss is
k/b2 = k epsilon/(2c) **exactly**. Since none of k factors can change by more, that is
the true epsilon of streams of length k: 0.5 at epsilon = 0.1 and k = 10, and unbounded
in k.

**SVT5.** On (0, 1) against (1, 0) the event "below, above" needs 0 < s <= 1, and is
impossible on the neighbour. Its probability at T = 1 is (1 - e^(-epsilon/2))/2. On
(0, 2) against (1, 1) it needs 0 < s <= 2 only. And stairs have many such places: on
(0, 2, 2, 4, ..., 2m - 2, 2m) against (1, 1, 3, 3, ..., 2m - 1, 2m - 1) two answers that
are equal on the neighbour are told apart whenever 0 < s <= 2m, in one place or another.
At epsilon = 0.1, T = 1 and k = 2m = 10 that has the probability 0.2056, against 0.0244
for the first event.

**SVT6.** On (0, ..., 0, 1, ..., 1) against (1, ..., 1, 0, ..., 0), half and half, event
"below, then above throughout", each of k/2 pairs of factors has the ratio

.. math:: \frac{F(s)}{F(s - 1)} \cdot \frac{1 - F(s - 1)}{1 - F(s)} \ge e^{1/b_2}

for every s. The first factor is e^(1/b2) for s <= 0, the second for s >= 1, and neither
is ever below 1. Between, the product is (2 e^(s/b2) - 1)(2 e^((1 - s)/b2) - 1), and
2y - 1 >= y for y >= 1. So the loss is at least k epsilon/4, unbounded in k; and at most
k/b2 = k epsilon/2, by the argument for SVT3. At epsilon = 0.1 and k = 10 that is
[0.25, 0.5]; this event has 0.4145, by quadrature.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import inf, isnan, log
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import InputError, Pair
from dpaudit.algorithms.shared.bases import Rng, laplace_noise, slices
from dpaudit.algorithms.textbook.counts import CountingMechanism, neighbours_with
from dpaudit.algorithms.textbook.stream_losses import (
    ABOVE,
    BELOW,
    UNREACHED,
    Codes,
    StreamLaw,
)
from dpaudit.arrays import Array
from dpaudit.validation import Count, Nonnegative, check_count, check_real

__all__ = ["EndlessSparseVector", "StoppingSparseVector"]

Mask = NDArray[np.bool_]

_STREAM = 10  # queries in DP-Sniper
_BLOCK = 2**18  # releases whose loss is computed together
_NOTHING = 3  # that a mechanism tells
_DIGITS = 16  # base 4: they and the number of one of 2^20 patterns are exact as a float


@dataclass(frozen=True, eq=False)
class Streams:
    """Releases of a sparse vector mechanism, sorted by the pattern of their answers.

    Patterns are few where releases are many, at most 2^20, so a law is evaluated once
    for each of the `codes` that occur, BELOW, ABOVE, UNREACHED, of shape (count, k).
    `of` says which pattern each release has, `possible` which patterns are those of a
    stream; the codes of the others mean nothing.
    """

    releases: Array
    codes: Codes
    of: Codes
    possible: Mask

    @classmethod
    def read(cls, releases: Array, mechanism: "SparseVector") -> "Streams":
        """Read releases of a mechanism, shape (size, k)."""
        digits = np.full(releases.shape, _NOTHING, dtype=np.int8)
        below, unreached = mechanism.quiet
        values = isnan(below)
        above = np.isfinite(releases) if values else releases == 1.0
        is_below: Mask = np.isnan(releases) if values else releases == below
        np.copyto(digits, ABOVE, where=above)
        np.copyto(digits, BELOW, where=is_below)
        np.copyto(digits, UNREACHED, where=releases == unreached)
        of = np.zeros(len(releases), dtype=np.intp)
        for start in range(0, releases.shape[1], _DIGITS):
            block = digits[:, start : start + _DIGITS].astype(np.float64)
            keys = of * 4.0**_DIGITS + block @ 4.0 ** np.arange(block.shape[1])
            of = np.unique(keys, return_inverse=True)[1]
        example = np.zeros(of.max(initial=-1) + 1, dtype=np.intp)
        example[of] = np.arange(len(of))
        codes = digits[example].astype(np.intp)
        earlier = np.cumsum(codes == ABOVE, axis=1) - (codes == ABOVE)
        ended = earlier >= mechanism.limit
        as_told = np.where(ended, codes == UNREACHED, codes < UNREACHED)
        possible = np.asarray(as_told.all(axis=1))
        codes[~possible] = UNREACHED
        return cls(releases, codes, of, possible)

    def runs(self) -> Iterator[Codes]:
        """Yield the codes of the first run that ends above, of the second, ..."""
        above = self.codes == ABOVE
        run = np.cumsum(above, axis=1) - above
        for number in range(run.max(initial=-1) + 1):
            yield np.where(run == number, self.codes, UNREACHED)

    @cached_property
    def least_values(self) -> Array:
        """The least value of each release, infinite if it has none, shape (size,)."""
        values = np.where(np.isfinite(self.releases), self.releases, np.inf)
        return np.asarray(values.min(axis=1))

    def log_noise(self, answers: Array, scale: float) -> Array:
        """Return the log-density of values that are answers + Lap(scale), (size,)."""
        row, column = self._told
        distance = np.abs(self.releases[row, column] - answers[column])
        logs = -distance / scale - log(2 * scale)
        sums = np.bincount(row, logs, minlength=len(self.releases))
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def _told(self) -> tuple[Codes, Codes]:
        row, column = np.nonzero(np.isfinite(self.releases))
        return row, column


def check_releases(releases: ArrayLike, length: int) -> Array:
    """Return releases as floats, shape (size, length), or raise if they are not."""
    checked = check_real("releases", releases)
    if checked.ndim != 2 or checked.shape[1] != length:
        raise InputError(
            f"releases must have shape (size, {length}), got {checked.shape}"
        )
    return checked


@dataclass(frozen=True)
class SparseVector(CountingMechanism, ABC):
    """A public threshold T, a stream of queries, and what is said of each.

    Releases have the shape (k,) of a row: 1.0 above, 0.0 below, -1.0 not reached, where
    a class says nothing else.
    """

    _: KW_ONLY
    threshold: Nonnegative = 1.0

    quiet: ClassVar[tuple[float, float]] = 0.0, -1.0
    """What is released below and not reached: NaN, -inf where values are released."""

    @property
    @abstractmethod
    def scales(self) -> tuple[float, float]:
        """The b1 and the b2 of the table."""

    @property
    def limit(self) -> float:
        """How many answers above end the stream."""
        return inf

    def _above(self, noisy: Array, answer: float, rng: Rng) -> Array:
        """Return what is released for noisy answers above the threshold."""
        return np.ones_like(noisy)

    def _renew(self, thresholds: Array, above: Mask, rng: Rng) -> None:
        """Draw thresholds anew, in place, where the answer was above."""

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,).

        Infinite where a release is impossible on one dataset, NaN where it is on both.
        See `dpaudit.algorithms.textbook.stream_losses`.
        """
        answers, other_answers = self.answers(data), self.answers(other)
        releases = check_releases(releases, len(answers))
        check_releases(releases, len(other_answers))
        loss = np.empty(len(releases))
        for block in slices(len(releases), _BLOCK):
            streams = Streams.read(releases[block], self)
            with np.errstate(invalid="ignore"):  # impossible on both
                loss[block] = self._log_density(streams, answers)
                loss[block] -= self._log_density(streams, other_answers)
            loss[block][~streams.possible[streams.of]] = np.nan
        return loss

    def _log_density(self, streams: Streams, answers: Array) -> Array:
        """Return the log-density of each stream, shape (size,)."""
        return self._law(answers).log_mass(streams.codes)[streams.of]

    def _law(self, answers: Array) -> StreamLaw:
        return StreamLaw(answers, self.threshold, *self.scales)

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        releases = np.full((len(answers), size), self.quiet[1])
        b1, b2 = self.scales
        thresholds = laplace_noise(size, b1, rng=rng)
        thresholds += self.threshold
        running = np.arange(size)  # the streams that go on, with what they need
        left = np.full(size, self.limit)
        for column, answer in zip(releases, answers, strict=True):
            noisy = np.full(len(running), answer)
            if b2 > 0:
                noisy += laplace_noise(len(running), b2, rng=rng)
            above = noisy >= thresholds
            coded = np.full(len(running), self.quiet[0])
            coded[above] = self._above(noisy[above], answer, rng)
            column[running] = coded
            self._renew(thresholds, above, rng)
            left[above] -= 1
            going = left > 0
            if not going.all():
                running, left = running[going], left[going]
                thresholds = thresholds[going]
        return np.ascontiguousarray(releases.T)


@dataclass(frozen=True)
class StoppingSparseVector(SparseVector, ABC):
    """A sparse vector mechanism that stops after `cutoff` answers above."""

    _: KW_ONLY
    cutoff: Count = 1

    @property
    def limit(self) -> float:
        return float(self.cutoff)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a last vote for the last `cutoff` queries, against all the others.

        Event: below throughout, then `cutoff` times above (values >= 1 where values
        are released). `true_epsilon` is approached as `dimension`, the length of the
        stream, grows.
        """
        length = check_length(dimension, self.cutoff + 1)
        return self._late_votes(length - self.cutoff, length)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, one of a likelier event, then the usual patterns.

        The likelier event ends the stream after three answers below: it loses less.
        """
        worst, *patterns = super().canonical_pairs()
        length = worst.data.shape[1]
        return worst, self._late_votes(min(3, length - self.cutoff), length), *patterns

    def _late_votes(self, below: int, length: int) -> Pair:
        """Return votes for `cutoff` queries after the first, against the first."""
        rest = [0] * (length - below - self.cutoff)
        return neighbours_with(
            [0] * below + [1] * self.cutoff + rest,
            [1] * below + [0] * self.cutoff + rest,
        )


@dataclass(frozen=True)
class EndlessSparseVector(SparseVector, ABC):
    """A sparse vector mechanism that answers every query: never private."""

    @property
    def true_epsilon(self) -> float:
        return inf

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return half of the answers 0, half 1, and the reverse (default 10 in all).

        Event: below throughout the first half, then above throughout.
        """
        length = check_length(dimension, 2)
        half = length // 2
        return neighbours_with(
            [0] * half + [1] * (length - half), [1] * half + [0] * (length - half)
        )


def check_length(dimension: int | None, minimum: int) -> int:
    """Return the length of a stream, by default DP-Sniper's, or raise."""
    length = max(_STREAM, minimum) if dimension is None else dimension
    return check_count("dimension", length, minimum=minimum)
