r"""Oja's algorithm, which is not private, and with noise on shuffled rows.

Source: Oja, *Simplified neuron model as a principal component analyzer*, Journal of
Mathematical Biology 15, 1982; as Algorithm 1 of Liu, Kong, Jain, Oh, *DP-PCA:
statistically optimal and differentially private PCA*, NeurIPS 2022:

1. w_0: uniformly random on the unit sphere.
2. For t = 1, ..., T: w' = w_(t-1) + eta_t A_t w_(t-1); w_t = w'/||w'||.
3. Output w_T.

With batches of B > 1, A_t is the mean of the t-th batch.

**Nothing is promised**, and `claim` is None. The start is random and nothing else is:
w_T = P w_0/||P w_0|| with P the product of all I + eta_t A_t, an angular central
Gaussian vector with the matrix P P^T. On two datasets with the matrices L and L' the
density ratio is (w^T L^-1 w/w^T L'^-1 w)^(d/2) up to a constant, so for a given number
of rows the loss is bounded; but not over all numbers of rows. In `Oja.worst_case` all
rows but the last are e_1, which stretches P by K = (1 + eta)^(n-1) in that direction,
and the last row turns it one way or the other: the ratio reaches the order of K^d where
one of the two is thin. In the catalogue it has a false claim, for audits to refute:
`ClaimedOja`, private Oja that forgot its noise.

Its error for i.i.d. matrices, with the step sizes of Theorem 2.2 (`step_sizes`):
sin^2(w_T, v_1) is of order kappa^2 V/n.

**PrivateOja**, on shuffled rows, with noise in every step: Algorithm 2 of the latter.

1. Permute A_1, ..., A_n at random; w_0: uniformly random on the unit sphere.
2. For t = 1, ..., n: w' = w_(t-1) + eta_t (clip_beta(A_t w_(t-1)) + 2 beta alpha z_t),
   z_t ~ N(0, I); w_t = w'/||w'||.
3. Output w_n.

In print alpha = C log(n/delta)/(epsilon sqrt n) with C left open, so the algorithm
cannot be run as printed; `PrivateOja.as_published` takes the C that one chooses. Here
alpha is the smallest that is proven for n, epsilon and delta by amplification by
shuffling: `dpaudit.algorithms.streaming.amplification.amplified_multiplier`. The noise
is Delta alpha with Delta = 2 beta for any matrices, and R^2 (or 2 beta, if less) for
rows in a ball of radius R.

Privacy, under REPLACE_ONE. Publish all noisy products Y_1, ..., Y_n, but not the order;
w_n is a function of w_0 and these. Y_t is normal with a mean that depends on the person
whose turn it is and on w_(t-1), which earlier outputs determine. Given w_(t-1) = w the
means lie in a ball of radius Delta/2 about a centre that w determines:

- the centre 0 and the radius beta, as clipped;
- for rows also (R^2/2) w and R^2/2: a clipped product is y y^T w for a y with ||y|| <=
  R (`dpaudit.algorithms.streaming.moment_products`); ||y y^T w - (||y||^2/2) w|| =
  ||y||^2/2, because 2 y y^T/||y||^2 - I is a reflection; and from there to the centre
  it is (R^2 - ||y||^2)/2.

So step t is a local randomiser of the kind that the theorem wants, adaptive in the
outputs before it, and the theorem covers adaptive ones.

Every epsilon is covered, and every n: where shuffling hides nothing, alpha is that of
one Gaussian step. `dpaudit.algorithms.streaming.minibatch_oja` needs less noise, and is
much faster; it is the algorithm to use.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import solve_triangular

from dpaudit import ApproxDP, Claim, InputError, Pair, PureDP, Relation
from dpaudit.algorithms.shared.bases import (
    Batched,
    ReleasesVector,
    Rng,
    Values,
    drawn_in_parts,
    end_of,
    slices,
    transcribed,
)
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HarmonicSteps,
    Stepped,
    StepSizes,
    TakesSteps,
)
from dpaudit.algorithms.streaming.amplification import amplified_multiplier
from dpaudit.algorithms.streaming.moment_products import own_products
from dpaudit.algorithms.streaming.moments import Moments, OnProducts, Stream, as_moments
from dpaudit.algorithms.streaming.pairs import oblique_pair
from dpaudit.arrays import Array
from dpaudit.validation import (
    Checked,
    Count,
    Positive,
    check_count,
    check_fraction,
    check_length,
    check_positive,
)

__all__ = ["ClaimedOja", "Oja", "PrivateOja"]

_WORK = 2**20  # entries of the vectors of the trials that run side by side
_READ = 2**17  # entries of the rows that are read at a time
_TOGETHER = 64  # steps that are taken at a time
_NUMERATOR, _OFFSET = 20.0, 300.0
_ORDERS = 2**22  # entries of the orders of the trials that run side by side
_ROWS = 500  # of the canonical pair


@dataclass(frozen=True)
class Oja(ReleasesVector, Batched[Stream], Checked):
    """Oja's algorithm with a random start; the release is w_T, shape (d,).

    Where a step gives zero or overflows there is no direction, and the release is NaN.

    Parameters
    ----------
    step_sizes : StepSizes, float or sequence of float
        eta_t > 0, one per batch.
    batch_size : int
        B; the last n - B floor(n/B) of the stream are not looked at.
    claim : Claim, optional
        A claim to hold it to. It has none of its own.

    Examples
    --------
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [90, 10], axis=0)
    >>> rows = np.random.default_rng(0).permutation(rows)
    >>> np.abs(Oja(0.1).release(rows, rng=np.random.default_rng(1))).round(1)
    array([0.6, 0.8])
    """

    step_sizes: Stepped
    batch_size: Count = 1
    claim: Claim | None = None

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        """Return `size` releases from independent starts, on B rows or matrices."""
        moments = as_moments(data)
        if moments.count < self.batch_size:
            raise InputError(
                f"batch_size must be at most the number of rows, {moments.count}, got "
                f"{self.batch_size}"
            )
        rates = self.step_sizes.sizes(moments.count // self.batch_size)
        d = moments.dimension
        return drawn_in_parts(
            size,
            (d,),
            _WORK // d,
            lambda number: self._run(moments, rates, number, rng),
        )

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return rows at e_1, and one half-way to e_2, or to -e_2 in the neighbour.

        There are 20 batches of them. The default d is 2, and for 1 there is no pair
        that shows anything.
        """
        d = check_length(dimension, 2, minimum=2)
        return oblique_pair(d, count=20 * self.batch_size, unit=1.0)

    def _run(self, moments: Moments, rates: Array, size: int, rng: Rng) -> Array:
        start = rng.standard_normal((size, moments.dimension))
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        # Overflow and 0/0 give NaN, which is what stands for no direction.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if size == 1 and self.batch_size == 1 and moments.holds_rows:
                return _in_order(moments, rates, start)
            vectors = start
            for step, eta in enumerate(rates):
                first = step * self.batch_size
                where = slice(first, first + self.batch_size)
                vectors = vectors + eta * moments.mean_apply(where, vectors)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors[~np.isfinite(vectors).all(axis=1)] = np.nan
        return vectors


class ClaimedOja(Oja):
    """A planted bug: Oja's algorithm, held to a claim that is false."""

    claim: Claim

    @classmethod
    def planted(cls, epsilon: float) -> "ClaimedOja":
        """Return steps of 1 along every row, and the promise of pure epsilon-DP."""
        return cls(ConstantSteps(1.0), claim=PureDP(epsilon))


@dataclass(frozen=True, kw_only=True)
class PrivateOja(ReleasesVector, TakesSteps, OnProducts):
    """Oja's algorithm on shuffled rows with noise; the release is w_n, shape (d,).

    Parameters
    ----------
    claim : ApproxDP
        What is promised, under REPLACE_ONE.
    step_sizes : StepSizes, float or sequence of float, optional
        Public. Default: c1/(c2 + t) with c1 = 20 over the largest ||A_i w||, c2 = 300.
    row_norm, clip : float, optional
        See `OnProducts`.
    multiplier : float, optional
        alpha. By default the smallest that is proven for the claim and the number of
        rows.

    Examples
    --------
    >>> mechanism = PrivateOja.calibrated(0.5, 1e-5)
    >>> round(mechanism.noise_scale(10_000), 3)
    1.536
    """

    claim: ApproxDP
    step_sizes: Stepped = None  # type: ignore[assignment]
    row_norm: float | None = 1.0
    clip: float | None = None
    multiplier: Positive | None = None

    several: ClassVar[str] = "block-oja"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.claim.parameters["delta"])

    @property
    def usual_steps(self) -> StepSizes:
        return HarmonicSteps(_NUMERATOR / self.unit, _OFFSET)

    @hands_on()
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism whose noise is the least proven for the rows it gets."""
        claim = ApproxDP(epsilon, check_fraction("delta", delta))
        return cls(claim=claim, **fields)

    @hands_on("step_sizes")
    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        clip: float,
        count: int,
        constant: float,
        **fields: Any,
    ) -> Self:
        """Return Algorithm 2 to the letter, for n rows and the C that it leaves open.

        alpha = C log(n/delta)/(epsilon sqrt n). Nothing is proven about it: Lemma 3.1
        says 'large enough', of C.
        """
        made = cls.calibrated(epsilon, delta, row_norm=None, clip=clip, **fields)
        count = check_count("count", count)
        constant = check_positive("constant", constant)
        alpha = constant * log(count / delta) / (epsilon * sqrt(count))
        return replace(made, multiplier=alpha)

    def noise_scale(self, count: int) -> float:
        """Return the standard deviation of the noise for that many rows."""
        multiplier = self.multiplier
        if multiplier is None:
            epsilon, delta = (self.claim.parameters[k] for k in ("epsilon", "delta"))
            multiplier = amplified_multiplier(epsilon, delta, count)
        return multiplier * self.sensitivity_of(1)

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        moments = self.read(data)

        def some(number: int) -> Array:
            if number == 1 and moments.holds_rows:
                return _one_by_one(*self._parts(moments, 1, rng), self.clip)
            return end_of(self._walk(moments, number, rng))

        d = moments.dimension
        width = min(_ORDERS // moments.count, _WORK // d)
        return drawn_in_parts(size, (d,), width, some)

    def transcript(self, data: Stream, size: int, *, rng: Rng) -> Values:
        """Return the ``start``, w_0, and the ``steps`` of `size` independent runs.

        These are all noisy products Y_1, ..., Y_n, shape (size, n, d).
        """
        size = check_count("size", size, minimum=0)
        return transcribed(self._walk(self.read(data), size, rng))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair of 500 rows.

        All rows, or matrices x x^T, are at e_1; one is half-way between e_1 and e_2 on
        one side, and between e_1 and -e_2 on the other (R e_1 against a zero row for
        d = 1). The order is secret, so no place is worse than another. The
        default d is 2, the least in which the direction moves. This is the canonical
        pair, and not proven to be the worst.
        """
        d = check_length(dimension, 2)
        matrices = self.row_norm is None
        return oblique_pair(d, count=_ROWS, unit=self.unit, matrices=matrices)

    def _walk(self, moments: Moments, size: int, rng: Rng) -> Iterator[list[Array]]:
        """Yield w_0 twice, then each noisy product and the w that it leads to."""
        vectors, parts = self._parts(moments, size, rng)
        yield [vectors, vectors]
        for turns, rates, noise in parts:
            for turn, eta, noisy in zip(turns, rates, noise, strict=True):
                noisy += own_products(turn, vectors, self.clip)
                vectors = vectors + eta * noisy
                vectors /= np.sqrt(np.einsum("td,td->t", vectors, vectors))[:, None]
                yield [noisy, vectors]

    def _parts(
        self, moments: Moments, size: int, rng: Rng
    ) -> tuple[Array, Iterator[tuple[Array, Array, Array]]]:
        """Return w_0, (size, d), and what the steps read, some steps at a time.

        That is the items whose turn it is, (some, size, d) for rows; eta_t; the noise.
        """
        n, d = moments.count, moments.dimension
        scale, rates = self.noise_scale(n), self.step_sizes.sizes(n)
        order = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        vectors = rng.standard_normal((size, d))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        each = max(1, size) * d * (1 if moments.holds_rows else d)
        return vectors, (
            (
                moments.read(order[:, some].T),
                rates[some],
                scale * rng.standard_normal((some.stop - some.start, size, d)),
            )
            for some in slices(n, _WORK // each)
        )


def _in_order(moments: Moments, rates: Array, start: Array) -> Array:
    """Return w_T of one trial with batches of one row, in shape (1, d)."""
    vector = start[0].copy()
    for some in slices(moments.count, _READ // moments.dimension):
        rows, etas = moments.read(some), rates[some]
        for few in slices(len(rows), _TOGETHER):
            vector = _after(rows[few], etas[few], vector)
    return vector[np.newaxis]


def _after(rows: Array, rates: Array, vector: Array) -> Array:
    """Return w after a few steps of Oja's algorithm, one along each row.

    The direction does not depend on the lengths between: u_t = u_(t-1) + eta_t y_t x_t
    for y_t = x_t^T u_(t-1) = x_t^T u_0 + sum over s < t of x_t^T x_s eta_s y_s, so the
    y_t solve a triangular system. Where u leaves the range of doubles, which w need
    not, w is found step by step.
    """
    system = (rows @ rows.T) * -rates
    found = solve_triangular(
        system, rows @ vector, lower=True, unit_diagonal=True, check_finite=False
    )
    moved = vector + (rates * found) @ rows
    length = sqrt(moved.dot(moved))
    if length < inf:
        return np.asarray(moved / length)
    for row, eta in zip(rows, rates.tolist(), strict=True):
        vector = vector + (eta * row.dot(vector)) * row
        vector /= sqrt(vector.dot(vector))
    return vector


def _one_by_one(
    start: Array, parts: Iterable[tuple[Array, Array, Array]], clip: float | None
) -> Array:
    """Return w_n of one trial of private Oja on rows: the end of its `_walk`."""
    vector = start[0].copy()
    bound = inf if clip is None else clip
    for turns, rates, noises in parts:
        rows, moves = turns[:, 0], rates[:, np.newaxis] * noises[:, 0]
        # ||x x^T w|| = ||x|| |x^T w|: clipped where |x^T w| is above beta/||x||.
        with np.errstate(divide="ignore"):
            most = bound / np.linalg.norm(rows, axis=1)
        steps = zip(rows, rates.tolist(), most.tolist(), moves, strict=True)
        for row, eta, top, move in steps:
            inner = min(max(row.dot(vector), -top), top)
            move += (eta * inner) * row
            vector += move
            vector /= sqrt(vector.dot(vector))
    return vector[np.newaxis]
