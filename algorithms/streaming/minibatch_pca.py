r"""What the forms of DP-PCA share: batches of two halves, private gradients, Oja steps.

With n matrices A_i (x_i x_i^T for rows x_i) in T batches of B = floor(n/T), one after
the other, and w_0 uniformly random on the unit sphere:

1. Lambda_t: `TopEigenvalue` of the gradients A_i w_(t-1) of the first floor(s B) items
   of batch t, at least 2; s = 1/2 in the paper.
2. g_t: `MeanEstimation` of those of the other part, with f Lambda_t for its Lambda.
   It is bottom if Lambda_t is bottom or 0.
3. w_t = (w_(t-1) + eta_t g_t)/||...||; bottom if a g_t was.

The last n - T B < T items are not looked at. T = floor(log(n)^2/c), at least 1, by the
paper's rule B = c n/log(n)^2; or batches have a given size. n is public: the relation
is REPLACE_ONE, and which half of which batch an item is in follows from its place.
(Under ADD_REMOVE one row more or less would move all the rows behind it.)

Both estimates may fail with probability zeta/(2 T) by the paper's analysis, which sets
the number of groups and the width of the windows.

A component has the sign by which its largest entry, in absolute value, is positive.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import floor, frexp, log
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, InputError, Pair
from dpaudit.algorithms.shared.bases import (
    ReleasesComponents,
    ReleasesVector,
    Rng,
    Values,
    check_rank,
    orient,
    slices,
)
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HarmonicSteps,
    Stepped,
    StepSizes,
    TakesSteps,
)
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.moments import (
    Moments,
    OnStream,
    ProductGradients,
    Stream,
    rebatched,
)
from dpaudit.algorithms.streaming.pairs import batch_pairs, far_row, scale_rows
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.arrays import Array
from dpaudit.validation import Fraction, Norm, Positive, check_count, check_norm

__all__ = ["MinibatchPCA"]

_WORK = 2**19  # numbers of half a batch's gradients, over the trials side by side
_LEAST = 4  # a difference in the one half, and a mean in the other

POWER_STEPS = ConstantSteps(2.0**500)
"""With which w_t is g_t/||g_t||, a step of the power method, in any unit of row_norm.

To 2^-60 if ||g_t|| is above 2^-440. Above 2^511 its square overflows: bottom.
"""


class RowBatch(NamedTuple):
    """Consecutive items of a stream: the number of the first, and B."""

    moments: Moments
    first: int
    size: int


@dataclass(frozen=True, kw_only=True)
class MinibatchPCA(ReleasesComponents, TakesSteps, OnStream):
    """Principal components by Oja steps with private means of gradients.

    Parameters
    ----------
    claim : Claim
        What is promised under REPLACE_ONE.
    scale_finder : TopEigenvalue
        Step 1, at what it may cost for one component.
    mean : MeanEstimation
        Step 2, at what it may cost for all components.
    step_sizes : StepSizes, float or sequence of float, optional
        Public, in the inverse unit of A_i. Default: c1/(1 + t), c1 = 60/row_norm^2, or
        20 if there is no norm. The 20 is for rows whose largest eigenvalue is about 1,
        the 60 for rows in a ball where it is a sixth of the squared radius.
    batch_constant : float
        c > 0; more of it makes fewer and larger batches.
    batch_size : int, optional
        B >= 4. Default: by c.
    row_norm : float, optional
        Longer rows are scaled down to it, each on its own. Privacy does not need it.
    scale_share : float
        s, in (0, 1): how much of a batch the scale is estimated from. What it is costs
        nothing, as both parts of a batch have all of the budget.
    """

    scale_finder: TopEigenvalue
    mean: MeanEstimation
    claim: Claim
    step_sizes: Stepped = None  # type: ignore[assignment]
    batch_constant: Positive = 25.0
    batch_size: Annotated[int, partial(check_count, minimum=_LEAST)] | None = None
    row_norm: Norm | None = None
    scale_share: Fraction = 0.5

    scale_factor: ClassVar[float] = 1.0
    """f: what Lambda_t is multiplied by in step 2."""
    title: ClassVar[str]
    """Who spends the whole budget."""
    note: ClassVar[str] = "all batches"
    of_halves = staticmethod(BudgetTree.parallel)

    @property
    def usual_steps(self) -> StepSizes:
        if self.row_norm is None:
            return HarmonicSteps(20.0, 1.0)
        return HarmonicSteps(60 / check_norm("row_norm", self.row_norm) ** 2, 1.0)

    @classmethod
    def _scaled(
        cls,
        epsilon: float,
        delta: float,
        *,
        group_constant: float = 5.0,
        bins_per_octave: int = 1,
        zeta: float = 0.01,
        **fields: Any,
    ) -> Self:
        """Return a mechanism with a finder of the scale; see `TopEigenvalue`."""
        options = {"bins_per_octave": bins_per_octave, "group_constant": group_constant}
        finder = TopEigenvalue.calibrated(epsilon, delta, zeta=zeta, **options)
        return cls(scale_finder=finder, **fields)

    @property
    def budget(self) -> BudgetTree:
        """Who spends what: batches read disjoint rows, and so do their halves."""
        batch = self.of_halves("a batch", self._scale_budget, self.mean.budget)
        return BudgetTree.parallel(self.title, batch, note=self.note)

    @property
    def _scale_budget(self) -> BudgetTree:
        return self.scale_finder.budget

    def batches(self, count: int) -> tuple[int, int]:
        """Return (B, T) for n items, or raise if they are too few."""
        least = _LEAST if self.batch_size is None else self.batch_size
        if count < least:
            raise InputError(f"data must have at least {least} rows, got {count}")
        if self.batch_size is not None:
            return self.batch_size, count // self.batch_size
        steps = max(1, floor(log(count) ** 2 / self.batch_constant))
        steps = min(steps, count // _LEAST)
        return count // steps, steps

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        return self._shaped(self._draw(data, size, rng)["components"])

    def transcript(self, data: Stream, size: int, *, rng: Rng) -> Values:
        """Return every estimate on the way of `size` independent runs.

        ``starts``: w_0, shape (size, k, d); ``scales``: Lambda_t, (size, k, T);
        ``means``: g_t, (size, k, T, d). Bottom is NaN. (The bins on the way to g_t,
        which the proof gives away too, are left out.)
        """
        runs = self._draw(data, size, rng)
        del runs["components"]
        return runs

    def _draw(self, data: Stream, size: int, rng: Rng) -> dict[str, Array]:
        """Return transcripts, and the components, shape (size, d, k)."""
        moments = self.read(data)
        d = moments.dimension
        check_rank(self.rank, d)
        batch_size, steps = self.batches(moments.count)
        batches = [
            RowBatch(moments, step * batch_size, batch_size) for step in range(steps)
        ]
        size = check_count("size", size, minimum=0)
        runs = {
            "components": np.empty((size, d, self.rank)),
            "starts": np.empty((size, self.rank, d)),
            "scales": np.empty((size, self.rank, steps)),
            "means": np.empty((size, self.rank, steps, d)),
        }
        for some in slices(size, _WORK // (batch_size * d)):
            part = {key: value[some] for key, value in runs.items()}
            self._run(batches, part, rng)
        return runs

    def _run(self, batches: list[RowBatch], runs: dict[str, Array], rng: Rng) -> None:
        """Fill in the runs of some trials."""
        found = runs["components"]
        rates = self.step_sizes.sizes(len(batches))
        for j in range(self.rank):
            deflated = found[:, :, :j] if j else None
            start = self._start(runs["starts"][:, j].shape, deflated, rng)
            own = self.batches_of(j, batches)
            found[:, :, j], runs["scales"][:, j], runs["means"][:, j] = self._component(
                own, rates, start, deflated=deflated, rng=rng
            )
            runs["starts"][:, j] = start
        # Bottom in one component is bottom in all.
        found[np.isnan(found).any(axis=(1, 2))] = np.nan

    def batches_of(self, component: int, batches: list[RowBatch]) -> list[RowBatch]:
        """Return the batches that a component reads: all of them read the same."""
        return batches

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a far-away row of the last batch that changes sides.

        See `dpaudit.algorithms.streaming.pairs`. The default d is the larger one of 3
        and k + 1; at least 2, and more of them show sqrt((d - 1)/d) of the privacy of
        the mean. It is seen by the first component; others differ by noise.
        """
        return far_row(self, dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, a row that moves a bin of the scale, and others."""
        return self.worst_case(), *batch_pairs(self)

    def halves(
        self, batch: RowBatch, vectors: Array, deflated: Array | None
    ) -> tuple[ProductGradients, ProductGradients]:
        """Return the gradients that the scale is estimated from, and the mean."""
        moments, first, size = batch
        part = scale_rows(size, self.scale_share)
        return (
            ProductGradients(moments, first, part, vectors, deflated),
            ProductGradients(moments, first + part, size - part, vectors, deflated),
        )

    def _component(
        self,
        batches: Iterable[RowBatch],
        rates: Array,
        start: Array,
        *,
        deflated: Array | None = None,
        rng: Rng,
    ) -> tuple[Array, Array, Array]:
        """Return the component that T steps lead to, and the estimates on the way.

        The start is w_0, (trials, d), orthogonal to the components before, which are
        deflated, (trials, d, j); NaN in them makes all of a trial NaN. Returned are
        w_T, (trials, d), or NaN for bottom; Lambda_t, (trials, T), NaN for bottom and 0
        for a batch without variance; and g_t, (trials, T, d), NaN for bottom.
        """
        zeta = self.scale_finder.zeta / (2 * len(rates))
        failed = np.zeros(len(start), dtype=bool)
        if deflated is not None:
            failed |= np.isnan(deflated).any(axis=(1, 2))
            deflated = np.where(failed[:, np.newaxis, np.newaxis], 0.0, deflated)
        scales = np.empty((len(start), len(rates)))
        means = np.empty((len(start), len(rates), start.shape[1]))
        vectors = start
        for step, (eta, batch) in enumerate(zip(rates, batches, strict=True)):
            one, two = self.halves(batch, vectors, deflated)
            scale = self.scale_finder.estimate(one, zeta=zeta, rng=rng)
            scale[failed] = np.nan
            mean = self.mean.estimate(
                two, self.scale_factor * scale, zeta=zeta, rng=rng
            )
            scales[:, step], means[:, step] = scale, mean
            # Eta and the gradient may both be huge: lengths do not matter.
            shrink = 0.5 ** max(0, frexp(eta)[1])
            moved = shrink * vectors + shrink * eta * _orthogonal(mean, deflated)
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.linalg.norm(moved, axis=1)
                failed |= ~(np.isfinite(lengths) & (lengths > 0))
                # Trials that have failed go on with what they had, to no effect.
                moved /= np.where(failed, 1.0, lengths)[:, np.newaxis]
            vectors = np.where(failed[:, np.newaxis], vectors, moved)
        vectors = orient(vectors[..., np.newaxis])[..., 0]
        return np.where(failed[:, np.newaxis], np.nan, vectors), scales, means

    def _start(self, shape: tuple[int, ...], deflated: Array | None, rng: Rng) -> Array:
        """Return uniformly random unit vectors, orthogonal to what was found."""
        start = rng.standard_normal(shape)
        if deflated is not None:
            start -= (start[:, np.newaxis] @ deflated @ deflated.swapaxes(1, 2))[:, 0]
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        return np.nan_to_num(start)


@dataclass(frozen=True, kw_only=True)
class OneComponent(ReleasesVector, MinibatchPCA):
    """DP-PCA for one component; releases are unit vectors, shape (d,), or NaN."""

    several: ClassVar[str] = "dp-pca-rank-k"

    def release_stream(
        self, blocks: Iterable[ArrayLike], *, count: int, rng: Rng
    ) -> Array:
        """Return one release on data that are never all in memory, shape (d,).

        From the same state of `rng` it is `release` on the blocks put together: of rows
        or matrices, `count` in all, which is public and sets the batches. Besides the
        block at hand, one batch is held.
        """
        size, steps = self.batches(check_count("count", count))
        stream = rebatched(blocks, size, count)
        rates = self.step_sizes.sizes(steps)
        first = self._batch(next(stream))
        start = self._start((1, first.moments.dimension), None, rng)
        rest = (self._batch(items) for items in stream)
        chained = (batch for part in ([first], rest) for batch in part)
        vectors, _, _ = self._component(chained, rates, start, rng=rng)
        return vectors[0]

    def _batch(self, items: Array) -> RowBatch:
        return RowBatch(self.read(items), 0, len(items))


def _orthogonal(vectors: Array, deflated: Array | None) -> Array:
    """Return (I - V V^T) v for every trial."""
    if deflated is None:
        return vectors
    inner = vectors[:, np.newaxis] @ deflated
    return vectors - (inner @ deflated.swapaxes(1, 2))[:, 0]
