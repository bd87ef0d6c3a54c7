r"""What private descent on REAPER has in common.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 4.3 and appendix A. Rows are spherised, and with h_i(P) the terms of
`dpaudit.algorithms.robust.reaper`, for k = 1, ..., T:

1. Y_k = sum of h_i(P_(k-1)) over a batch + symmetric noise: minus B times the paper's
   noisy subgradient, and sigma is B times the paper's.
2. P_k = where the step (eta_k/B) Y_k leads in the geometry of the descent
   (`dpaudit.algorithms.robust.reaper_steps`).

The release is the top-r subspace of the average of P_1, ..., P_T, in the basis that it
names (`dpaudit.algorithms.robust.retraction.settle`): two releases can be compared
entry by entry. The transcript is what the start publishes, and all Y_k; every P_k
follows from it. In it Y_k is its upper triangle, with its diagonal divided by
`diagonal_ratio`, so that its noise is independent of one deviation sigma.

With a ratio of sqrt 2 the noise is the Gaussian orthogonal ensemble: a Frobenius norm
of S becomes ||S||_F/sqrt 2 in these coordinates, whatever the direction of S.

The problem is convex, so where descent starts does not matter to where it leads, and
P_0 = (r/D) I: public, and without cost. There the first term of a row x is x x^T, so
step 1 is a private PCA.

Every P is dense, with a full eigendecomposition in every step, and about eight D x D
matrices are held for each trial: D is in the hundreds, or at most a few thousand. (At
D = 10,000, the genotypes of `dpaudit.datasets.genotypes`, a step would be 1000 times
the half second that it takes at D = 1000, and the matrices 6 GB; run those at 2000.)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.noisy_descent import NoisyDescent
from dpaudit.algorithms.robust.reaper_steps import Euclidean, Geometry, RootSteps
from dpaudit.algorithms.robust.retraction import settle
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import Claim
from dpaudit.subspace import top_components
from dpaudit.validation import check_count

__all__ = ["ReaperDescent"]


@dataclass(frozen=True, kw_only=True)
class ReaperDescent(NoisyDescent):
    """Descent on REAPER with noise in every step.

    Parameters
    ----------
    n_components, claim, iterations, step_sizes
        See `NoisyDescent`.
    """

    claim: Claim
    step_sizes: StepSizes = field(default_factory=RootSteps)

    geometry: ClassVar[Geometry] = Euclidean()
    diagonal_ratio: ClassVar[float] = sqrt(2)

    def state_size(self, dimension: int) -> int:
        return dimension**2

    def released(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        for latest in self._averages(rows, size, rng):
            average = latest
        return settle(top_components(average, self.n_components))

    def averages(
        self, data: Sequence[ArrayLike], *, rng: np.random.Generator
    ) -> Iterator[Array]:
        """Yield the average of P_1, ..., P_k for k = 1, ..., T, of runs side by side.

        Parameters
        ----------
        data : sequence of array_like, each of shape (N, D)
            One dataset for each run.
        rng : numpy.random.Generator

        Yields
        ------
        ndarray, shape (len(data), D, D)
            Overwritten by the next. The top-r subspace of the last is the release.
        """
        rows = np.stack([self.rows(each) for each in data])
        yield from self._averages(rows, len(rows), rng)

    def transcript(
        self, data: ArrayLike, size: int, *, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return what the start publishes, and every noisy sum, of `size` runs.

        Returns
        -------
        dict of ndarray
            ``steps``: Y_1, ..., Y_T, shape (size, T, D(D + 1)/2), in the coordinates
            that the module explains; ``start``, if P_0 is random. From the same state
            of `rng`, `draw` returns the bases that follow (unless it splits so many
            runs that they do not fit together).
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        dimension = rows.shape[1]
        steps = np.empty((size, self.iterations, dimension * (dimension + 1) // 2))
        values: dict[str, Array] = {}
        for place, (seen, _) in enumerate(self._walk(rows, size, rng)):
            if isinstance(seen, dict):
                values = seen
            else:
                steps[:, place - 1] = self._flattened(seen)
        return {**values, "steps": steps}

    def replayed(
        self, transcript: Mapping[str, Array], count: int, dimension: int
    ) -> Iterator[Array]:
        """Yield P_0, ..., P_(T-1) of transcripts on `count` rows, (size, D, D)."""
        steps = transcript["steps"]
        matrices = self._begun(transcript, len(steps), dimension)
        state = self.geometry.begin(matrices)
        for place, rate in enumerate(self.rates(count)):
            yield matrices
            step = rate * self._unflattened(steps[:, place], dimension)
            state, matrices = self.geometry.moved(state, step, self.n_components)

    def _averages(
        self, rows: Array, size: int, rng: np.random.Generator
    ) -> Iterator[Array]:
        walk = self._walk(rows, size, rng)
        next(walk)
        average = np.zeros((size, rows.shape[-1], rows.shape[-1]))
        for place, (_, matrices) in enumerate(walk, start=1):
            average += (matrices - average) / place
            yield average

    def _walk(
        self, rows: Array, size: int, rng: np.random.Generator
    ) -> Iterator[tuple[dict[str, Array] | Array, Array]]:
        """Yield what is published and the P after it: the start, then each step."""
        count, dimension = rows.shape[-2:]
        values = self._start(size, dimension, rng)
        matrices = self._begun(values, size, dimension)
        state = self.geometry.begin(matrices)
        yield values, matrices
        add = self.summing(rows, rng)
        sigma = self.noise_scale(count)
        for rate in self.rates(count):
            noisy = add(matrices)
            noise = rng.standard_normal((size, dimension * (dimension + 1) // 2))
            noise *= sigma
            noisy += self._unflattened(noise, dimension)
            state, matrices = self.geometry.moved(
                state, rate * noisy, self.n_components
            )
            yield noisy, matrices

    def _start(
        self, size: int, dimension: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return what is public of P_0 beyond the dimension."""
        return {}

    def _begun(self, values: Mapping[str, Array], size: int, dimension: int) -> Array:
        """Return P_0, shape (size, D, D)."""
        centre = np.eye(dimension) * (self.n_components / dimension)
        return np.repeat(centre[np.newaxis], size, axis=0)

    def _flattened(self, matrices: Array) -> Array:
        """Return upper triangles, the diagonal divided by `diagonal_ratio`."""
        dimension = matrices.shape[-1]
        scaled = matrices.copy()
        scaled[..., range(dimension), range(dimension)] /= self.diagonal_ratio
        return np.asarray(scaled[..., *np.triu_indices(dimension)])

    def _unflattened(self, values: Array, dimension: int) -> Array:
        """Return the symmetric matrices of flattened values, shape (..., D, D)."""
        matrices = np.zeros((*values.shape[:-1], dimension, dimension))
        matrices[..., *np.triu_indices(dimension)] = values
        # The diagonal is counted twice below.
        matrices[..., range(dimension), range(dimension)] *= self.diagonal_ratio / 2
        return np.asarray(matrices + matrices.swapaxes(-2, -1))
