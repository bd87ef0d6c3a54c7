"""What a descent is composed of: an objective, a geometry, noise.

`dpaudit.algorithms.robust.descent.NoisyDescent` takes steps along noisy sums of terms.
Whose terms they are says an `Objective`; where a step leads, a `Geometry`; how large
the noise is, a `Noise`. The objectives are `dpaudit.algorithms.robust.glad.Glad` and
`dpaudit.algorithms.robust.reaper.Reaper`; the geometries are in
`dpaudit.algorithms.robust.grassmannian` for the first, whose points are subspaces, and
in `dpaudit.algorithms.robust.fantope` for the second, whose points are matrices. Which
rows a step reads is up to `dpaudit.algorithms.shared.batches`, and where descent begins
to `dpaudit.algorithms.robust.initialisation`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Literal, TypeAlias

from dpaudit.algorithms.shared.subsampling import Replaced
from dpaudit.arrays import Array
from dpaudit.checked import Checked, Nonnegative, Positive
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["FixedNoise", "Geometry", "Noise", "Objective", "PublishedNoise", "Space"]


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

        Parameters
        ----------
        rows : ndarray, shape (N, D) or (trials, B, D)
            The same rows for all trials, or a batch for each; rows of zeros add
            nothing.
        points : ndarray, shape (trials, ...)
        """

    @abstractmethod
    def products(self, rows: Array, points: Array, noisy: Array) -> tuple[Array, Array]:
        """Return the inner products of the terms of few rows with a noisy sum.

        Parameters
        ----------
        rows : ndarray, shape (m, D)
        points : ndarray, shape (trials, ...)
        noisy : ndarray, shape (trials, ...)
            In coordinates.

        Returns
        -------
        tuple of ndarray, shapes (trials, m) and (trials, m, m)
            With the sum, and with each other.
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
    def moved(
        self, state: Array, step: Array, n_components: int
    ) -> tuple[Array, Array]:
        """Return the next state, and the next points."""


class Noise(Checked, ABC):
    """The size of normal noise on a sum."""

    @abstractmethod
    def scale(self, batch_size: float, count: int) -> float:
        """Return the deviation in every coordinate, for a batch of `count` rows."""


@dataclass(frozen=True)
class FixedNoise(Noise):
    """The same noise for all data.

    Parameters
    ----------
    sigma : float
        > 0.
    """

    sigma: Positive

    def scale(self, batch_size: float, count: int) -> float:
        return self.sigma


@dataclass(frozen=True)
class PublishedNoise(Noise):
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
    def of_claim(
        cls, epsilon: float, delta: float, iterations: int
    ) -> "PublishedNoise":
        """Return the noise of T steps that claim (epsilon, delta)."""
        log_term = log(1 / check_fraction("delta", delta))
        iterations = check_count("iterations", iterations)
        return cls(sqrt(iterations * log_term) / check_positive("epsilon", epsilon))

    def scale(self, batch_size: float, count: int) -> float:
        return (batch_size / count) ** 2 * self.unit
