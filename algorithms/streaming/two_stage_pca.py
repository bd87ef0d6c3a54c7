r"""TwoStagePCA: noise on a covariance, then one step whose noise follows the spread.

Source: dpaudit, from the parts of Liu et al., NeurIPS 2022, and the noise of
`dpaudit.algorithms.covariance.entrywise`. DP-PCA spends most of its rows on the way
from a random start, and its noise is as small as it is wherever that starts. Noise on
the second-moment matrix needs no start, but is in proportion to the squared length of a
row, however little rows vary. So:

1. V: the first k eigenvectors of a private second-moment matrix (GOE noise) of the
   first m = floor(n/2) rows; l_1 >= ... >= l_(k+1): its eigenvalues, over m, none
   below 0. Rows are in a ball of radius R, which is public; longer ones are scaled
   down to it.
2. Lambda: `TopEigenvalue` of the gradients G_i = x_i x_i^T V, as vectors in R^(d k), of
   the first floor(s m) of the next m rows, at least 2; s = 0.1.
3. G: `MeanEstimation` of the gradients of the others, given Lambda: normal noise on the
   counts of the histograms, and an l2 ball about the place that they find.
4. Output the orthonormal factor of the QR decomposition of the matrix with the columns
   (1 - a_j) l_j v_j + a_j g_j, which for a_j < 1 is Oja's step v_j + eta_j g_j, with
   a_j = min(1, l_j/(l_j - l_(k+1)) t^2/(t^2 + s_G^2)) (1 if l_j = l_(k+1)). t is the
   deviation of the noise on an off-diagonal entry in step 1, over m; s_G that on an
   entry of G. Each column has the sign by which its largest entry, in absolute value,
   is positive. If Lambda or G is bottom, a_j = 0: output V, with such signs.

The last row of an odd number is not looked at. n is public.

**Privacy.** If step 1 is (epsilon, delta)-DP for the rows that it reads, and so is step
2, and step 3, whatever V and Lambda are, then the whole is, for the *same* (epsilon,
delta), under REPLACE_ONE.

Proof. Which of three parts a row is in follows from its place and n, which neighbours
share, and each step reads one part. Let D and D' differ in a row of the part of step j.
The outputs of the steps before j have the same law on D and D': they are made of rows
that are the same. Given them, that of step j is (epsilon, delta)-DP by assumption. What
comes after it, the release too, is made of outputs and of other rows, the same on both
sides: a randomised function of what is known, so it is post-processing. With h(y) the
probability of an event after the output y of steps up to j, P(event) = E_D h(y) <=
e^epsilon E_D' h(y) + delta, since 0 <= h <= 1. QED.

The assumptions. Step 1 is `dpaudit.algorithms.covariance.entrywise` under REPLACE_ONE,
and eigenvectors are made of what it releases. Step 2: for given V, row i becomes the
one vector G_i, so a row that is replaced is a vector that is
(`dpaudit.algorithms.streaming.top_eigenvalue`, for vectors of any length). Step 3
likewise, for vectors of length d k (`dpaudit.algorithms.streaming.mean_budget`, with
d k histograms). Step 4 is a function of outputs: V, l, Lambda and G, and of public
numbers. So is the bottom of steps 2 and 3, and nothing is lost by showing what is known
already instead.

**k components.** They share one step: one scale, and one mean of d x k matrices, whose
ball has the radius of d k entries. Taken one after the other, with deflation, each mean
would have the noise of d entries, but k reads of the same rows: sqrt k times the noise
for each, which is the same, and k scales at epsilon/k besides.

**ADD_REMOVE is refused.** Under it n is no longer public: a row that is added moves the
border between the halves, and one row from either side of every border changes its
part. By group privacy those few rows cost a multiple of epsilon; nothing better is
proven.

**The weights.** To first order v_j = v + e, where e has entries of the deviation t/(l_j
- l_(k+1)) orthogonally to the subspace, and g_j = l_j v + l_(k+1) e + z at most, with
entries s_G of z. So the j-th column over l_j is v + (1 - a g) e + a z/l_j with g = (l_j
- l_(k+1))/l_j, whose square is least at the a_j of step 4. Where the noise of the step
is small, a_j = 1, and nothing is taken from V but the subspace that the step begins at;
where it is large, the step is short. That is why there are no step sizes to tune.

**Utility**: docs/streaming.md#what-goes-beyond-the-paper.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, InputError, Pair
from dpaudit.algorithms.covariance.entrywise import GOEGaussian
from dpaudit.algorithms.shared.bases import (
    ReleasesBasis,
    Rng,
    Values,
    check_rank,
    orient,
    slices,
)
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.moments import (
    Moments,
    OnStream,
    ProductGradients,
    Stream,
    rebatched,
)
from dpaudit.algorithms.streaming.pairs import far_row_of_a_half, half_pairs, scale_rows
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.streaming.windows import DEFAULT_BALL, Window
from dpaudit.arrays import Array
from dpaudit.validation import Count, Fraction, check_count

__all__ = ["TwoStagePCA"]

_WORK = 2**19  # numbers of half the gradients, over the trials side by side
_LEAST = 4  # rows of a half: a difference, and a mean


@dataclass(frozen=True, kw_only=True)
class TwoStagePCA(ReleasesBasis, OnStream):
    """GOE noise on one half of the rows, one DP-PCA step from there on the other.

    Releases have shape (d, k) and orthonormal columns. They are never bottom.

    Parameters
    ----------
    claim : Claim
        What is promised under REPLACE_ONE.
    covariance : GOEGaussian
        Step 1, under REPLACE_ONE; its row norm is R.
    scale_finder : TopEigenvalue
        Step 2.
    mean : MeanEstimation
        Step 3.
    scale_share : float
        s, in (0, 1).
    """

    n_components: Count
    covariance: GOEGaussian
    scale_finder: TopEigenvalue
    mean: MeanEstimation
    claim: Claim
    scale_share: Fraction = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance.relation is not self.relation:
            raise InputError(
                "covariance must be calibrated for replace-one, got "
                f"{self.covariance.relation.value!r}"
            )

    @hands_on("scale_share", n_components=1)
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        row_norm: float = 1.0,
        window: Window = DEFAULT_BALL,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the least noise that is proven.

        R is public; gradients are truncated to the window.
        """
        return cls(
            covariance=GOEGaussian.calibrated(
                epsilon, delta, relation=cls.relation, row_norm=row_norm
            ),
            scale_finder=TopEigenvalue.calibrated(epsilon, delta),
            mean=MeanEstimation(split=GaussianSplit(epsilon, delta), tail=window),
            claim=ApproxDP(epsilon, delta),
            **fields,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what: three parts of the rows, each read by one step."""
        return BudgetTree.parallel(
            "two-stage-pca",
            BudgetTree.of_claim(
                "covariance",
                self.covariance.claim,
                note=f"GOE noise, sigma {self.covariance.sigma:.4g}",
            ),
            self.scale_finder.budget,
            self.mean.budget,
        )

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        """Return `size` releases; a `Moments` for data must clip its rows to R."""
        moments = self.read(data)
        runs = self.transcript(moments, size, rng=rng)
        return self._released(runs, moments.count // 2)

    def transcript(self, data: Stream, size: int, *, rng: Rng) -> Values:
        """Return what is found on the way of `size` independent runs.

        ``starts``: V, shape (size, d, k); ``eigenvalues``: l, (size, k + 1), with
        l_(d+1) = 0; ``scales``: Lambda, (size,); ``means``: G, (size, d, k). Bottom is
        NaN.
        """
        moments = self.read(data)
        half = self._half(moments.count)
        moment = self._second_moment(moments, half)
        size = check_count("size", size, minimum=0)
        d, k = moments.dimension, self.rank
        runs = _empty(size, d, k)
        for some in slices(size, _WORK // (half * d * k)):
            part = {key: value[some] for key, value in runs.items()}
            self._start(moment, half, part, rng)
            self._step(moments, half, half, part, rng)
        return runs

    def release_stream(
        self, blocks: Iterable[ArrayLike], *, count: int, rng: Rng
    ) -> Array:
        """Return one release on data that are never all in memory, shape (d, k).

        From the same state of `rng` it is `release` on the blocks of rows put together:
        `count` in all, which sets the halves. Besides the block at hand, half are held.
        """
        half = self._half(check_count("count", count))
        stream = rebatched(blocks, half, count)
        first = self.read(next(stream))
        runs = _empty(1, first.dimension, self.rank)
        self._start(self._second_moment(first, half), half, runs, rng)
        second = self.read(next(stream))
        self._step(second, 0, half, runs, rng)
        for _ in stream:  # Raises if there are more rows, or fewer.
            pass
        return np.asarray(self._released(runs, half)[0])

    @property
    def row_norm(self) -> float:
        return self.covariance.row_norm

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a far row of the second half that changes sides.

        See `dpaudit.algorithms.streaming.pairs`. The default d is the larger one of 3
        and k + 1; at least k + 1.
        """
        return far_row_of_a_half(self, dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, a pair in the first half, and others in the second."""
        return self.worst_case(), *half_pairs(self)

    def _half(self, count: int) -> int:
        """Return how many rows a half has."""
        if count < 2 * _LEAST:
            raise InputError(f"data must have at least {2 * _LEAST} rows, got {count}")
        return count // 2

    def _second_moment(self, moments: Moments, half: int) -> Array:
        """Return the sum of x x^T over the first half; not private."""
        d = moments.dimension
        check_rank(self.rank, d)
        total = np.zeros((d, d))
        for some in slices(half, _WORK // d):
            part = moments.read(some)
            total += part.T @ part
        return total

    def _start(
        self, moment: Array, half: int, runs: dict[str, Array], rng: Rng
    ) -> None:
        """Fill in the starts and eigenvalues of some trials."""
        d, k = len(moment), self.rank
        releases = self.covariance.draw_from(moment, len(runs["scales"]), rng=rng)
        values, vectors = np.linalg.eigh(releases)
        runs["starts"][:] = vectors[:, :, : -k - 1 : -1]
        runs["eigenvalues"][:] = 0.0
        few = min(d, k + 1)
        runs["eigenvalues"][:, :few] = np.maximum(values[:, : -few - 1 : -1], 0) / half

    def _step(
        self, moments: Moments, first: int, half: int, runs: dict[str, Array], rng: Rng
    ) -> None:
        """Fill in the scales and means of some trials, given their starts."""
        starts = runs["starts"]
        part = scale_rows(half, self.scale_share)
        one = ProductGradients(moments, first, part, starts)
        two = ProductGradients(moments, first + part, half - part, starts)
        runs["scales"][:] = self.scale_finder.estimate(one, rng=rng)
        means = self.mean.estimate(two, runs["scales"], rng=rng)
        runs["means"][:] = means.reshape(starts.shape)

    def _released(self, runs: Values, half: int) -> Array:
        """Return the bases of step 4, shape (trials, d, k)."""
        starts, means, values = runs["starts"], runs["means"], runs["eigenvalues"]
        found = np.isfinite(means).all(axis=(1, 2), keepdims=True)
        count = half - scale_rows(half, self.scale_share)
        own = (self.covariance.sigma / half) ** 2
        length = means.shape[1] * means.shape[2]
        noise = self.mean.deviation(runs["scales"], count, length) ** 2
        gaps = values[:, :-1] - values[:, -1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            best = values[:, :-1] / gaps * (own / (own + noise))[:, np.newaxis]
        weights = np.where(gaps > 0, np.minimum(best, 1.0), 1.0)[:, np.newaxis]
        moved = (1 - weights) * values[:, np.newaxis, :-1] * starts + weights * means
        bases = np.where(found, moved, starts)
        return orient(np.linalg.qr(bases)[0])


def _empty(size: int, d: int, k: int) -> dict[str, Array]:
    """Return runs that are still to be filled in."""
    return {
        "starts": np.empty((size, d, k)),
        "eigenvalues": np.empty((size, k + 1)),
        "scales": np.empty(size),
        "means": np.empty((size, d, k)),
    }
