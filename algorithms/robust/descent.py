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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.initialisation import Start, check_start
from dpaudit.algorithms.robust.noisy_descent import NoisyDescent
from dpaudit.algorithms.robust.retraction import polar, settle
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.validation import check_count, check_positive

__all__ = ["Descent", "HalvingSteps"]


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
class Descent(NoisyDescent):
    """Descent on GLAD with noise of some size in every step.

    Parameters
    ----------
    start : Start
        How V_0 is chosen.
    n_components, claim, iterations, step_sizes
        See `NoisyDescent`.
    """

    start: Start
    step_sizes: StepSizes = field(default_factory=HalvingSteps)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_start(self.start, self.relation)

    def state_size(self, dimension: int) -> int:
        return dimension * self.n_components

    def released(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        for _, latest in self._walk(rows, size, rng):
            bases = latest
        return settle(bases)

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
