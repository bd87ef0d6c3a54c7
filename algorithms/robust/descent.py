r"""What geodesic descent on GLAD and its private forms share.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 2.2, (NGGD) and (NSGGD). Rows are spherised, and with g_i(V) the terms of
`dpaudit.algorithms.robust.glad`, for k = 0, ..., T - 1:

1. Y_k = sum of g_i(V_k) over a batch + sigma Z_k, Z_k i.i.d. N(0, 1): minus B times the
   paper's noisy gradient, and sigma is B times the paper's.
2. V_(k+1) = P(V_k + (eta_k/B) Y_k), P the polar retraction.

The release is V_T, in the basis that the subspace names (`retraction.settle`): so
nothing but the subspace is released, and two releases can be compared entry by entry.
The transcript is what the start publishes, and all Y_k; every V_k follows from it,
since P commutes with rotations of the columns and V_0 is settled too.

Step sizes as in section 5: eta_k = 2^-floor(k/50), k = 0, 1, ... After `iterates` the
runs of many trials are side by side: every array has a leading axis of trials.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.bases import ReleasesBasis
from dpaudit.algorithms.robust.glad import Array, spherise
from dpaudit.algorithms.robust.initialisation import Start, check_start
from dpaudit.algorithms.robust.retraction import polar, settle
from dpaudit.algorithms.streaming.step_sizes import StepSizes
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count, check_positive

__all__ = ["DEFAULT_ITERATIONS", "Descent", "HalvingSteps", "Summing"]

DEFAULT_ITERATIONS = 20
_WORK = 2**20  # entries of the bases of the trials that run side by side

Summing = Callable[[Array], Array]
"""From bases of shape (trials, D, r) to a sum of terms for each, drawn afresh."""


@dataclass(frozen=True)
class HalvingSteps(StepSizes):
    """eta_k = first 2^-floor(k/period), k = 0, 1, ...: Theorem 5's restarts.

    Parameters
    ----------
    first : float
        > 0.
    period : int
        How many steps are equally long.

    Examples
    --------
    >>> HalvingSteps(period=2).sizes(5)
    array([1.  , 1.  , 0.5 , 0.5 , 0.25])
    """

    first: float = 1.0
    period: int = 50

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", check_positive("first", self.first))
        object.__setattr__(self, "period", check_count("period", self.period))

    def sizes(self, count: int) -> Array:
        restarts = np.arange(check_count("count", count, minimum=0)) // self.period
        # 2^-1000 moves nothing, and is not 0.
        return np.asarray(self.first * 0.5 ** np.minimum(restarts, 1000))


@dataclass(frozen=True, kw_only=True)
class Descent(ReleasesBasis, ABC):
    """Descent on GLAD with noise of some size in every step.

    Parameters
    ----------
    n_components : int
        r; less than the length of a row.
    claim : Claim, optional
        What is promised under `relation`; None if nothing is.
    start : Start
        How V_0 is chosen.
    iterations : int
        T >= 1; public.
    step_sizes : StepSizes
        eta_k, for the mean of the terms; public.
    """

    n_components: int
    claim: Claim | None
    start: Start
    iterations: int = DEFAULT_ITERATIONS
    step_sizes: StepSizes = field(default_factory=HalvingSteps)

    def __post_init__(self) -> None:
        if self.claim is not None and not isinstance(self.claim, Claim):
            raise InputError(f"claim must be a Claim, got {self.claim!r}")
        if not isinstance(self.step_sizes, StepSizes):
            raise InputError(f"step_sizes must be StepSizes, got {self.step_sizes!r}")
        check_start(self.start, self.relation)
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

    _least_rows = 1

    def rows(self, data: ArrayLike) -> Array:
        """Return spherised rows, or raise if the mechanism cannot take them."""
        return spherise(data, min_rows=self._least_rows, n_components=self.n_components)

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
        width = max(1, _WORK // (rows.shape[1] * self.n_components))
        parts = [np.empty((0, rows.shape[1], self.n_components))]
        for first in range(0, size, width):
            for _, last in self._walk(rows, min(width, size - first), rng):
                bases = last
            parts.append(settle(bases))
        return np.concatenate(parts)

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return one release, shape (D, r)."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])

    def iterates(
        self, data: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Yield V_0, ..., V_T of runs side by side, one on each dataset.

        Parameters
        ----------
        data : sequence of array_like, each of shape (N, D)
        rng : numpy.random.Generator

        Yields
        ------
        ndarray, shape (len(data), D, r)
        """
        rows = np.stack([self.rows(each) for each in data])
        for _, bases in self._walk(rows, len(rows), rng):
            yield bases

    def transcript(
        self, data: ArrayLike, size: int, *, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return what the start publishes, and every noisy sum, of `size` runs.

        Returns
        -------
        dict of ndarray
            Names that begin with "start", see `initialisation`; ``steps``: Y_0, ...,
            Y_(T-1), shape (size, T, D, r). From the same state of `rng`, `draw`
            returns the V_T that follow (unless it splits so many runs that they do
            not fit together).
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        shape = size, self.iterations, rows.shape[1], self.n_components
        steps = np.empty(shape)
        values: dict[str, Array] = {}
        for place, (seen, _) in enumerate(self._walk(rows, size, rng)):
            if isinstance(seen, dict):
                values = seen
            else:
                steps[:, place - 1] = seen
        return {**values, "steps": steps}

    def rates(self, count: int) -> Array:
        """Return eta_k/B for `count` rows, shape (T,)."""
        return self.step_sizes.sizes(self.iterations) / self.denominator(count)

    def _walk(
        self, rows: Array, size: int, rng: np.random.Generator
    ) -> Iterator[tuple[dict[str, Array] | Array, Array]]:
        """Yield what is published and the basis after it: the start, then each step."""
        count, dimension = rows.shape[-2:]
        values = self._begun(rows, size, rng)
        bases = self.start.bases(values, dimension, self.n_components)
        yield values, bases
        add = self.summing(rows, rng)
        sigma = self.noise_scale(count)
        for rate in self.rates(count):
            noisy = add(bases)
            if sigma:
                noise = rng.standard_normal(noisy.shape)
                noise *= sigma
                noisy += noise
            bases = self._moved(bases, rate * noisy)
            yield noisy, bases

    def _begun(
        self, rows: Array, size: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return what `size` starts publish: on the same rows, or each on its own."""
        if rows.ndim == 2:
            return self.start.draw(rows, self.n_components, size, rng=rng)
        each = [self.start.draw(own, self.n_components, 1, rng=rng) for own in rows]
        return {key: np.concatenate([one[key] for one in each]) for key in each[0]}

    def _moved(self, bases: Array, step: Array) -> Array:
        return polar(bases + step)
