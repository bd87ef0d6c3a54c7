r"""Private descent on robust PCA: steps along noisy sums of terms.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, sections 2.2 (NGGD, NSGGD) and 4.3, appendix A. A `NoisyDescent` is composed of an
objective with its terms g_i, a geometry, batches of rows, noise and a start (see
`dpaudit.algorithms.robust.parts`). Rows are spherised, and for k = 0, ..., T - 1:

1. Y_k = sum of g_i(P_k) over a batch + noise of deviation sigma: minus B times the
   paper's noisy gradient, and sigma is B times the paper's.
2. P_(k+1) = where the step (eta_k/B) Y_k leads in the geometry.

The release is a basis of shape (D, r), the one that its subspace names
(`dpaudit.algorithms.robust.geometries.settle`): so nothing but the subspace is
released, and two releases can be compared entry by entry. On GLAD the subspace is the
last point, on REAPER that of the average of all but the first.

The transcript is what the start publishes, and all Y_k in the coordinates of the
objective. Every P_k follows from it, and so does the release: on GLAD because
geometries commute with rotations of the columns, and V_0 is settled too. What is known
of its law depends on the batches:

- `FullBatchDescent`: given what came before, Y_k is normal about the sum over all rows.
- `RandomBatchDescent`: it is a mixture of normal laws, one for every batch
  (`dpaudit.algorithms.shared.batch_mixtures`); by the chain rule the product over the
  steps, times the law of what the start publishes, is the exact likelihood of a
  transcript, and no attack on it is better (Neyman, Pearson).

Privacy proofs are where calibrations are:
`dpaudit.algorithms.robust.private_mechanisms`. Noise on a mean, sigma/B, grows with
sqrt(T) whatever the step sizes are: a step of length eta_k = 2^-40 costs as much as one
of length 1.

After `iterates` the runs of many trials are side by side: every array has a leading
axis of trials.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, InputError, Relation
from dpaudit.algorithms.robust.geometries import Polar, settle
from dpaudit.algorithms.robust.objectives import Glad, spherise
from dpaudit.algorithms.robust.parts import (
    Geometry,
    Objective,
    Start,
    SumNoise,
    check_start,
)
from dpaudit.algorithms.shared.bases import (
    Batched,
    ReleasesBasis,
    Rng,
    Values,
    drawn_in_parts,
)
from dpaudit.algorithms.shared.batches import AllRows, Batches
from dpaudit.algorithms.shared.step_sizes import HalvingSteps, StepSizes
from dpaudit.arrays import Array
from dpaudit.neighbours import Neighbouring
from dpaudit.validation import Checked, Count, check_count

__all__ = ["NoisyDescent"]

DEFAULT_ITERATIONS = 20
_WORK = 2**20  # entries of the points of the trials that run side by side


@dataclass(frozen=True, kw_only=True)
class NoisyDescent(ReleasesBasis, Batched[ArrayLike], Checked):
    """Descent with noise of some size in every step; by default on GLAD, all rows.

    Parameters
    ----------
    n_components : int
        r; less than the length of a row.
    claim : Claim, optional
        What is promised under `relation`; None if nothing is.
    relation : Relation
        ADD_REMOVE only with batches that do not depend on the number of rows.
    objective : Objective
        Whose terms are added up.
    geometry : Geometry
        Where steps lead; of the space of the objective, as is the start.
    batches : Batches
        Which rows a step reads.
    noise : SumNoise, optional
        None for none at all.
    start : Start
        How the first point is chosen.
    iterations : int
        T >= 1; public.
    step_sizes : StepSizes
        eta_k, for the mean of the terms; public.
    """

    n_components: Count
    claim: Claim | None
    relation: Neighbouring = Relation.REPLACE_ONE
    objective: Objective = field(default_factory=Glad)
    geometry: Geometry = field(default_factory=Polar)
    batches: Batches = field(default_factory=AllRows)
    noise: SumNoise | None = None
    start: Start
    iterations: Count = DEFAULT_ITERATIONS
    step_sizes: StepSizes = field(default_factory=HalvingSteps)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.step_sizes.sizes(self.iterations)
        for name in ("geometry", "start"):
            part = getattr(self, name)
            if part.space != self.objective.space:
                raise InputError(
                    f"{name} must be for {self.objective.space}, as is "
                    f"{self.objective!r}, got {part!r}"
                )
        self.batches.check_relation(self.relation)
        check_start(self.start, self.relation)

    def noise_scale(self, count: int) -> float:
        """Return sigma, the deviation of the noise on a sum, for `count` rows."""
        if self.noise is None:
            return 0.0
        return self.noise.scale(self.batches.size_for(count), count)

    def rates(self, count: int) -> Array:
        """Return eta_k/B for `count` rows, shape (T,)."""
        sizes = self.step_sizes.sizes(self.iterations)
        return sizes / float(self.batches.size_for(count))

    def rows(self, data: ArrayLike) -> Array:
        """Return spherised rows, or raise if the mechanism cannot take them."""
        least = self.batches.least_rows
        rows = spherise(data, min_rows=least, n_components=self.n_components)
        self.batches.size_for(len(rows))
        return rows

    def summing(self, rows: Array, rng: Rng) -> Callable[[Array], Array]:
        """Return what draws a batch of spherised rows and sums its terms at points.

        Rows have the shape (N, D), for all trials, or (trials, N, D).
        """
        batch = self.batches.drawing(rows, rng)
        return lambda points: self.objective.term_sum(batch(len(points)), points)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        """Return `size` independent releases; no row may be zero, and D > r."""
        rows = self.rows(data)
        r, dimension = self.n_components, rows.shape[1]

        def some(number: int) -> Array:
            for latest in self._followed(rows, number, rng):
                last = latest
            return settle(self.objective.bases(last, r))

        width = _WORK // self.objective.point_size(dimension, r)
        return drawn_in_parts(size, (dimension, r), width, some)

    def iterates(self, data: Sequence[ArrayLike], *, rng: Rng) -> Iterator[Array]:
        """Yield what would be released after 0, ..., T steps, of runs side by side.

        Each run has a dataset of its own, (N, D). Yielded are on GLAD bases of V_k, on
        REAPER P_0 and averages of P_1, ..., P_k, which the next one overwrites.
        `Objective.bases` has their subspaces.
        """
        rows = np.stack([self.rows(each) for each in data])
        yield from self._followed(rows, len(rows), rng)

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return what the start publishes, and every noisy sum, of `size` runs.

        Names begin with "start", see `initialisation`; ``steps`` are all Y_k in the
        coordinates of the objective, shape (size, T, ...). From the same state of
        `rng`, `draw` returns the releases that follow, if all runs fit together.
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        shape = self.objective.shape(rows.shape[1], self.n_components)
        steps = np.empty((size, self.iterations, *shape))
        values: Values = {}
        for place, (seen, _) in enumerate(self._walk(rows, size, rng)):
            if isinstance(seen, Mapping):
                values = seen
            else:
                steps[:, place - 1] = self.objective.flattened(seen)
        return {**values, "steps": steps}

    def replayed(
        self, transcript: Values, count: int, dimension: int
    ) -> Iterator[Array]:
        """Yield P_0, ..., P_(T-1) of transcripts on `count` rows of that length."""
        steps, r = transcript["steps"], self.n_components
        shape = len(steps), dimension, r
        points = self.start.points(published_values(transcript), shape)
        state = self.geometry.begin(points)
        for place, rate in enumerate(self.rates(count)):
            yield points
            step = rate * self.objective.unflattened(steps[:, place], dimension)
            state, points = self.geometry.moved(state, step, r)

    def _followed(self, rows: Array, size: int, rng: Rng) -> Iterator[Array]:
        walk = self._walk(rows, size, rng)
        return self.objective.followed(points for _, points in walk)

    def _walk(
        self, rows: Array, size: int, rng: Rng
    ) -> Iterator[tuple[Values | Array, Array]]:
        """Yield what is published and the points after it: the start, then each step.

        Rows are the same for all runs, or each run has its own.
        """
        count, dimension = rows.shape[-2:]
        objective, r = self.objective, self.n_components
        if rows.ndim == 2:
            values = self.start.draw(rows, r, size, rng=rng)
        else:
            each = [self.start.draw(own, r, 1, rng=rng) for own in rows]
            values = {k: np.concatenate([one[k] for one in each]) for k in each[0]}
        points = self.start.points(values, (size, dimension, r))
        yield values, points
        state = self.geometry.begin(points)
        add = self.summing(rows, rng)
        sigma = self.noise_scale(count)
        for rate in self.rates(count):
            noisy = add(points)
            if sigma:
                noise = rng.standard_normal((size, *objective.shape(dimension, r)))
                noise *= sigma
                noisy += objective.unflattened(noise, dimension)
            state, points = self.geometry.moved(state, rate * noisy, r)
            yield noisy, points


def published_values(transcript: Values) -> Values:
    """Return what the start publishes."""
    return {key: value for key, value in transcript.items() if key != "steps"}
