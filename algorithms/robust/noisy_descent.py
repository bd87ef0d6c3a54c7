"""What every private descent of this family is: steps along noisy sums of terms.

`dpaudit.algorithms.robust.descent` moves subspaces down GLAD, and
`dpaudit.algorithms.robust.reaper_descent` matrices down REAPER. Both take a sum of
terms over a batch of spherised rows, add noise, divide by a public number, and go that
way by a public step; both release a basis of shape (D, r).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.glad import Array, spherise
from dpaudit.algorithms.shared.bases import ReleasesBasis
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count

__all__ = ["DEFAULT_ITERATIONS", "NoisyDescent", "Summing"]

DEFAULT_ITERATIONS = 20
_WORK = 2**20  # entries of the state of the trials that run side by side

Summing: TypeAlias = Callable[[Array], Array]
"""From the states of trials, leading, to a sum of terms for each, drawn afresh."""


@dataclass(frozen=True, kw_only=True)
class NoisyDescent(ReleasesBasis, ABC):
    """Descent with noise of some size in every step.

    Parameters
    ----------
    n_components : int
        r; less than the length of a row.
    claim : Claim, optional
        What is promised under `relation`; None if nothing is.
    iterations : int
        T >= 1; public.
    step_sizes : StepSizes
        eta_k, for the mean of the terms; public.
    """

    n_components: int
    claim: Claim | None
    iterations: int = DEFAULT_ITERATIONS
    step_sizes: StepSizes

    _least_rows: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.claim is not None and not isinstance(self.claim, Claim):
            raise InputError(f"claim must be a Claim, got {self.claim!r}")
        if not isinstance(self.step_sizes, StepSizes):
            raise InputError(f"step_sizes must be StepSizes, got {self.step_sizes!r}")
        for name in ("n_components", "iterations"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        self.step_sizes.sizes(self.iterations)

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """The relation of the claim."""

    @abstractmethod
    def noise_scale(self, count: int) -> float:
        """Return sigma, the deviation of the noise on a sum, for `count` rows."""

    @abstractmethod
    def denominator(self, count: int) -> float:
        """Return B, by which a sum becomes a mean, for `count` rows."""

    @abstractmethod
    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        """Return what draws a batch of spherised rows and sums its terms.

        Rows have the shape (N, D), for all trials, or (trials, N, D).
        """

    @abstractmethod
    def state_size(self, dimension: int) -> int:
        """Return how many numbers the state of one trial has."""

    @abstractmethod
    def released(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        """Return releases of `size` runs side by side, shape (size, D, r)."""

    def check_rows(self, count: int) -> None:
        """Raise if the mechanism cannot take so many rows."""

    def rows(self, data: ArrayLike) -> Array:
        """Return spherised rows, or raise if the mechanism cannot take them."""
        rows = spherise(data, min_rows=self._least_rows, n_components=self.n_components)
        self.check_rows(len(rows))
        return rows

    def rates(self, count: int) -> Array:
        """Return eta_k/B for `count` rows, shape (T,)."""
        return self.step_sizes.sizes(self.iterations) / self.denominator(count)

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent releases, shape (size, D, r).

        Parameters
        ----------
        data : array_like, shape (N, D)
            Finite; no row of zeros; D > r.
        size : int
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            If the data are not such an array.
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        width = max(1, _WORK // self.state_size(rows.shape[1]))
        parts = [
            self.released(rows, min(width, size - first), rng)
            for first in range(0, size, width)
        ]
        return np.concatenate([np.empty((0, rows.shape[1], self.n_components)), *parts])

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return one release, shape (D, r)."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])
