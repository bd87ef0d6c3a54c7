r"""Report-noisy-max: which of k counts is the largest, or how large it is.

Sources: Ding, Wang, Wang, Zhang, Kifer, *Detecting violations of differential privacy*,
CCS 2018, Algorithms 5 to 8; Dwork, Roth, *The algorithmic foundations of differential
privacy*, 2014, section 3.3; five queries as in DP-Sniper.

1. Add independent noise of scale b = 2/epsilon to every answer: Laplace in NoisyMax1
   and 3, exponential in NoisyMax2 and 4.
2. Output the place of the largest (NoisyMax1, 2), or the largest value (NoisyMax3, 4).

True epsilon, under REPLACE_ONE. Write f and F for density and distribution function.

**NoisyMax1: exactly epsilon** for k >= 2. P(i) is the integral of
f(z - x_i) prod_{j != i} F(z - x_j). Shift z by the 1 by which the x_j may fall: the
product does not fall, and x_i has moved by at most 2 against z, which costs 2/b =
epsilon. It is approached, never attained, by x = (1, A, ..., A) against
(0, A + 1, ..., A + 1) as A grows, event "the first wins": on 0 << z << A the integrand
goes like exp((k - 2) z/b), so its mass moves to z > 1, where the ratio of the
densities f is e^epsilon exactly. (For k = 2 the mass spreads evenly over [0, A].)

**NoisyMax2: exactly epsilon** for k >= 2, by the same shift. It is attained: if the
others are tied a >= 0 above x_i, then P(i) = e^(-a/b)/k, because the exponential has no
memory; x = (1, ..., 1) against (0, 2, ..., 2) moves a from 0 to 2.

**NoisyMax3: exactly k epsilon/2.** The density of the largest value is
sum_i f(y - x_i) prod_{j != i} F(y - x_j). When every answer moves by 1, each of the k
factors changes by at most e^(1/b), and on y <= 0 with answers (0, ..., 0) against
(1, ..., 1) all do, in the same direction. At epsilon = 0.1 and k = 5: 0.25.

**NoisyMax4: infinite.** Exponential noise is positive, so the largest value is at least
max x. With max x = A - 1 and, on the neighbour, A, the event {y < A} is impossible on
the neighbour and has probability (1 - e^(-1/b)) (1 - e^(-A/b))^(k - 1) if all other
answers are 0: close to 1 - e^(-epsilon/2) for large A.

**Losses** are exact. P(i) of NoisyMax1 is that all others stay below a noisy threshold
x_i: `dpaudit.algorithms.textbook.stream_losses`. With m the largest count and
c_j = e^(-(m - x_j)/b), P(i) of NoisyMax2 is c_i times the integral over u in [0, 1] of
prod_{j != i} (1 - c_j u), u = e^(-(z - m)/b): a polynomial of degree k - 1, for which
Gauss's rule with k/2 nodes is exact. The densities of NoisyMax3 and 4 are sum_i
f(y - x_i)/F(y - x_i) times the product of all F.
"""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from math import ceil, inf
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import InputError, Pair
from dpaudit.algorithms.shared.bases import Rng, laplace_noise
from dpaudit.algorithms.textbook.base import check_dimension
from dpaudit.algorithms.textbook.counts import FixedQueriesMechanism, neighbours_with
from dpaudit.algorithms.textbook.stream_losses import BELOW, StreamLaw, unit_rule
from dpaudit.arrays import Array

__all__ = ["NoisyMax1", "NoisyMax2", "NoisyMax3", "NoisyMax4"]

_MOST_ROWS = 1000  # of a worst case that is approached as rows are added
_TINY = 1e-300


@dataclass(frozen=True)
class _NoisyMax(FixedQueriesMechanism, ABC):
    _: KW_ONLY
    queries: int = 5

    exponential: ClassVar[bool] = False
    """Whether the noise is exponential, or Laplace."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queries < 2:
            raise InputError(f"queries must be at least 2, got {self.queries}")

    @property
    def scale(self) -> float:
        return 2 / self.epsilon

    def _noisy(self, answers: Array, size: int, rng: Rng) -> Array:
        shape = (size, self.queries)
        if self.exponential:
            noisy = rng.standard_exponential(shape)
            noisy *= self.scale
        else:
            noisy = laplace_noise(shape, self.scale, rng=rng)
        noisy += answers
        return noisy

    def _rows(self, scales: float) -> int:
        """Return how many rows make that many scales, within reason."""
        return min(ceil(scales * self.scale), _MOST_ROWS)


@dataclass(frozen=True)
class _PlaceOfMax(_NoisyMax, ABC):
    """Releases are places 0.0, ..., queries - 1.0, shape ()."""

    @abstractmethod
    def _log_chances(self, answers: Array) -> Array:
        """Return the log-probability of each place, shape (queries,)."""

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        return self._noisy(answers, size, rng).argmax(axis=1).astype(np.float64)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, NaN for what is no place, shape (size,)."""
        by_place, by_place_on_other = (
            self._log_chances(self.answers(rows)) for rows in (data, other)
        )
        loss = np.full(len(releases), np.nan)
        places = np.isin(releases, np.arange(self.queries))
        at = releases[places].astype(np.intp)
        loss[places] = (by_place - by_place_on_other)[at]
        return loss


@dataclass(frozen=True)
class _ValueOfMax(_NoisyMax, ABC):
    """Releases are real numbers, shape ()."""

    @abstractmethod
    def _log_density(self, releases: Array, answers: Array) -> Array:
        """Return the log-density of the largest noisy answer, shape (size,)."""

    def _sample(self, answers: Array, size: int, *, rng: Rng) -> Array:
        return self._noisy(answers, size, rng).max(axis=1)

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,).

        Infinite where a value is impossible on one dataset, NaN where on both.
        """
        near, far = (
            self._log_density(releases, self.answers(x)) for x in (data, other)
        )
        with np.errstate(invalid="ignore"):  # impossible on both
            return near - far


@dataclass(frozen=True)
class NoisyMax1(_PlaceOfMax):
    """The place of the largest count, Laplace noise: correct, exactly epsilon-DP."""

    def _log_chances(self, answers: Array) -> Array:
        others_below = np.full((1, self.queries - 1), BELOW)
        laws = (
            StreamLaw(np.delete(answers, place), float(answer), self.scale, self.scale)
            for place, answer in enumerate(answers)
        )
        return np.concatenate([law.log_mass(others_below) for law in laws])

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return (1, A, ..., A) and (0, A + 1, ..., A + 1): approached on {0}."""
        others = check_dimension(dimension, self.queries) - 1
        ahead = self._rows(1.0)
        return neighbours_with([1] + [ahead] * others, [0] + [ahead + 1] * others)


@dataclass(frozen=True)
class NoisyMax2(_PlaceOfMax):
    """The place of the largest count, exponential noise: exactly epsilon-DP."""

    exponential: ClassVar[bool] = True

    def _log_chances(self, answers: Array) -> Array:
        behind = (answers.max() - answers) / self.scale
        u, weights = unit_rule((self.queries + 1) // 2)
        others_below = 1 - np.exp(-behind)[:, np.newaxis] * u
        products = others_below.prod(axis=0) / others_below
        return np.asarray(np.log((weights * products).sum(axis=1)) - behind)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return (1, ..., 1) and (0, 2, ..., 2): attained on {0}."""
        queries = check_dimension(dimension, self.queries)
        return neighbours_with([1] * queries, [0] + [2] * (queries - 1))


@dataclass(frozen=True)
class NoisyMax3(_ValueOfMax):
    """The largest noisy count, Laplace noise: exactly (queries epsilon/2)-DP."""

    @property
    def true_epsilon(self) -> float:
        """Half of queries times epsilon, exactly."""
        return self.queries * self.epsilon / 2

    def _log_density(self, releases: Array, answers: Array) -> Array:
        """Return the log-density of the largest of answers + Lap(scale)."""
        # Worst cases have few different answers.
        levels, times = np.unique(answers, return_counts=True)
        excess = (releases[:, np.newaxis] - levels) / self.scale
        tail = np.exp(-np.abs(excess)) / 2
        in_tail = np.minimum(excess, 0) - np.log(2)
        log_below = np.where(excess < 0, in_tail, np.log1p(-tail))
        # f/F is 1/scale below the answer, where both are tails. Of those above the
        # nearest has the largest.
        above = np.maximum(excess, 0)
        nearest = above.min(axis=1)
        ratio = np.exp(nearest[:, np.newaxis] - above) / 2 / (1 - np.exp(-above) / 2)
        hazard = np.where(excess < 0, 1.0, ratio) / self.scale
        return np.asarray(log_below @ times + np.log(hazard @ times) - nearest)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return all answers 0 against all 1: attained on {y <= 0}."""
        queries = check_dimension(dimension, self.queries)
        return neighbours_with([0] * queries, [1] * queries)


@dataclass(frozen=True)
class NoisyMax4(_ValueOfMax):
    """The largest noisy count, exponential noise: not private at any epsilon."""

    exponential: ClassVar[bool] = True

    @property
    def true_epsilon(self) -> float:
        """Infinite: some values are impossible on a neighbour."""
        return inf

    def in_support(self, releases: Array, data: ArrayLike) -> NDArray[np.bool_]:
        """Say which releases are at least the largest answer, shape (size,)."""
        return np.asarray(releases >= self.answers(data).max())

    def _log_density(self, releases: Array, answers: Array) -> Array:
        """Return the log-density of the largest of answers + Exp(scale)."""
        levels, times = np.unique(answers, return_counts=True)
        excess = (releases[:, np.newaxis] - levels) / self.scale
        possible = excess.min(axis=1) >= 0
        # A largest count that is met exactly stands for the values that round to it.
        excess = np.where(possible[:, np.newaxis], np.maximum(excess, _TINY), 1.0)
        log_below = np.log(-np.expm1(-excess)) @ times
        # The sum of f/F, in which the count that is nearest has the largest term.
        nearest = excess.min(axis=1)
        ratios = np.exp(nearest[:, np.newaxis] - excess)
        ratios *= np.expm1(-nearest)[:, np.newaxis] / np.expm1(-excess)
        log_hazard = np.log(ratios @ times) - nearest - np.log(-np.expm1(-nearest))
        density = log_below + log_hazard - np.log(self.scale)
        return np.asarray(np.where(possible, density, -inf))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return largest answers A - 1 and A, the others 0: attained on {y < A}."""
        others = check_dimension(dimension, self.queries) - 1
        largest = self._rows(6.0)
        return neighbours_with([largest - 1] + [0] * others, [largest] + [0] * others)
