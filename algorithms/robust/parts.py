"""What a descent is composed of: an objective, a geometry, noise, and a start.

`dpaudit.algorithms.robust.descent.NoisyDescent` takes steps along noisy sums of terms.
Whose terms they are says an `Objective`; where a step leads, a `Geometry`; how large
the noise is, a `SumNoise`; where it begins, a `Start`. Which rows a step reads is up to
`dpaudit.algorithms.shared.batches`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar, Literal, Self, TypeAlias

from dpaudit import Claim, InputError, Relation
from dpaudit.algorithms.shared.bases import Replaced, Rng, Values, gaussian_loss
from dpaudit.arrays import Array
from dpaudit.validation import (
    Checked,
    Nonnegative,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

__all__ = ["FixedNoise", "Geometry", "Objective", "PublishedNoise", "Start", "SumNoise"]

Space: TypeAlias = Literal["subspaces", "matrices"]
"""Points of shape (D, r), orthonormal columns, or symmetric ones of shape (D, D)."""


class Objective(Checked, ABC):
    """A mean over rows, and the terms that sum up to minus its gradient.

    Points come as stacks with a leading axis of trials. Noise is added to a sum in
    coordinates in which it is independent and of one deviation; by default they are the
    entries of the sum.
    """

    space: ClassVar[Space]
    replaced: ClassVar[Replaced]
    """How the terms of a row and of its replacement lie at worst."""
    norm_ratio: ClassVar[float] = 1.0
    """A norm of sums over that in the coordinates of calibrated noise."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """By how much a sum moves under REPLACE_ONE, in the coordinates, in l2 norm."""

    @abstractmethod
    def point_size(self, dimension: int, n_components: int) -> int:
        """Return how many numbers a point has."""

    @abstractmethod
    def shape(self, dimension: int, n_components: int) -> tuple[int, ...]:
        """Return the shape of the coordinates of a sum."""

    @abstractmethod
    def term_sum(self, rows: Array, points: Array) -> Array:
        """Return the sum of the terms at each point.

        It is the inner loop of every descent, and checks nothing. Rows are the same for
        all trials, (N, D), or a batch for each, (trials, B, D); rows of zeros add
        nothing.
        """

    @abstractmethod
    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        """Return the inner products of the terms of few rows, (m, D), at points.

        With a noisy sum in coordinates, (trials, m), and with each other, (trials, m,
        m).
        """

    def flattened(self, sums: Array) -> Array:
        """Return the coordinates of sums."""
        return sums

    def unflattened(self, values: Array, dimension: int) -> Array:
        """Return the sums that have these coordinates."""
        return values

    def followed(self, points: Iterator[Array]) -> Iterator[Array]:
        """Yield what would be released after P_0, P_1, ...: by default the last one."""
        return points

    def bases(self, followed: Array, n_components: int) -> Array:
        """Return bases of the subspaces of what `followed` yields, (trials, D, r)."""
        return followed


class Geometry(ABC):
    """Where steps lead; stacks of points of one space."""

    space: ClassVar[Space]

    def begin(self, points: Array) -> Array:
        """Return the state at the first points: by default these."""
        return points

    @abstractmethod
    def moved(self, state: Array, step: Array, rank: int) -> tuple[Array, Array]:
        """Return the next state, and the next points."""


class SumNoise(Checked, ABC):
    """The size of normal noise on a sum."""

    @abstractmethod
    def scale(self, batch_size: float, count: int) -> float:
        """Return the deviation in every coordinate, for a batch of `count` rows."""


@dataclass(frozen=True)
class FixedNoise(SumNoise):
    """The same noise for all data."""

    sigma: Positive

    def scale(self, batch_size: float, count: int) -> float:
        return self.sigma


@dataclass(frozen=True)
class PublishedNoise(SumNoise):
    """What the paper has for random batches, too small by B/N.

    Maunu, Yu, Lerman, MSML 2022, Theorem 6 and appendix A: on the mean of B of N rows
    the variance (B/N)^2 T log(1/delta)/(epsilon^2 N^2).

    Parameters
    ----------
    unit : float
        sqrt(T log(1/delta))/epsilon: the deviation on the mean is B/N^2 times that.
    """

    unit: Nonnegative

    @classmethod
    def of_claim(cls, epsilon: float, delta: float, iterations: int) -> Self:
        """Return the noise of T steps that claim (epsilon, delta)."""
        log_term = log(1 / check_fraction("delta", delta))
        iterations = check_count("iterations", iterations)
        return cls(sqrt(iterations * log_term) / check_positive("epsilon", epsilon))

    def scale(self, batch_size: float, count: int) -> float:
        return (batch_size / count) ** 2 * self.unit


class Start(Checked, ABC):
    """A choice of the first point: published values, and the point that they give."""

    space: ClassVar[Space] = "subspaces"

    @property
    def claim(self) -> Claim | None:
        """What the values cost under the start's relation; None if nothing.

        Raises `InputError` if the start is not private at all.
        """
        return None

    @abstractmethod
    def draw(self, rows: Array, n_components: int, size: int, *, rng: Rng) -> Values:
        """Return what `size` starts publish, by names that begin with "start"."""

    def points(self, values: Values, shape: tuple[int, int, int]) -> Array:
        """Return V_0 for published values, settled, or P_0.

        By default it is what is published. The shape is (size, D, r), also where the
        points are of another one.
        """
        return values["start"]

    def means(self, values: Values, rows: Array) -> Values:
        """Return the conditional means of values that are Gaussian, by name."""
        return {}

    @property
    def scales(self) -> dict[str, float]:
        """The standard deviations that go with the `means`."""
        return {}

    def loss(self, values: Values, rows: Array, other: Array) -> Array:
        """Return log(density on `rows`/density on `other`) of the values, (size,)."""
        ours, theirs = (self.means(values, each) for each in (rows, other))
        return gaussian_loss(values, ours, theirs, self.scales)


def check_start(start: Any, relation: Relation) -> Start:
    """Return the start, if its promise is under that relation, or raise."""
    if not isinstance(start, Start):
        raise InputError(f"start must be a Start, got {start!r}")
    if getattr(start, "relation", relation) is not relation:
        raise InputError(f"start must be under {relation}, got {start!r}")
    return start
