r"""Oja's algorithm on disjoint batches: `MinibatchOja` for one component, `BlockOja`.

Source: Liu et al., NeurIPS 2022, section 4, equation (7), and for k > 1 section 7,
which names the extension.

1. V_0: a basis of a uniformly random k-dimensional subspace of R^d.
2. For t = 1, ..., T, with the t-th batch of B = floor(n/T) matrices, in the order of
   the data: V_t = qr(V_(t-1) + (eta_t/B) (sum_i clip(A_i V_(t-1)) + sigma Z_t)).
3. Output V_T.

clip(G) = G min(1, beta/||G||_F), and the entries of Z_t are i.i.d. N(0, 1); qr is the Q
of a QR decomposition whose R has a positive diagonal, for k = 1 the normalised vector.
The last n - T B < T matrices are not looked at. T, beta and the step sizes are public,
and so is n: the relation is REPLACE_ONE. (Under ADD_REMOVE one row more or less would
move all the rows behind it into other places, and change every batch.)

In print the noise of a step is (w eta_t beta alpha/B) z_t
(docs/streaming.md#where-we-differ-from-the-paper), and T = O(log^2 n) steps are paid
for one after the other ('serial composition'). One thing is changed here: the batches
are disjoint, so each matrix is in one step only and the steps cost no more than one of
them: sigma = Delta/mu(epsilon, delta) with `dpaudit.gaussian.gaussian_mu`, whatever T.

Sensitivity of one sum: `dpaudit.algorithms.streaming.moment_products`.

Privacy. Let D and D' differ in one place, in batch b (or in none). The transcript V_0,
Y_1, ..., Y_T, with Y_t the noisy sums, has the same law on D and D' up to Y_(b-1);
given that, Y_b is normal with the same covariance sigma^2 I and means that are Delta
apart at most; given that, the later ones have the same law again, since their batches
are the same. So the privacy loss of the transcript is that of one normal vector, and
with mu = Delta/sigma it is mu-GDP (parallel composition: T does not enter). It is tight
where the mean moves by Delta whatever V is. V_T is a function of the transcript: for it
alone mu is an upper bound.

Utility: docs/streaming.md#noise-that-follows-the-spread.

What is paid for k components is sqrt 2 in Delta, and sqrt k in the norm of Z_t.

**Pairs** show one row as well as they can. The direction of w_T shows a row x through
the part of x x^T w that is orthogonal to w. So all rows but one point the same way,
which makes w known (up to its sign), and the one that differs lies obliquely to them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit import Claim, InputError, Pair
from dpaudit.algorithms.shared.bases import (
    ReleasesBasis,
    ReleasesComponents,
    ReleasesVector,
    Rng,
    Values,
    check_rank,
    drawn_in_parts,
    end_of,
    enough_rows,
    transcribed,
)
from dpaudit.algorithms.shared.constructors import GaussianCalibrated
from dpaudit.algorithms.shared.step_sizes import (
    HarmonicSteps,
    Stepped,
    StepSizes,
    TakesSteps,
)
from dpaudit.algorithms.streaming.moments import Moments, OnProducts, Stream
from dpaudit.algorithms.subspace.base import orthonormalise
from dpaudit.arrays import Array
from dpaudit.validation import Count, Positive, check_count, check_length

__all__ = ["DEFAULT_ITERATIONS", "BlockOja", "MinibatchOja"]

DEFAULT_ITERATIONS = 20
DEFAULT_NUMERATOR, DEFAULT_OFFSET = 60.0, 1.0
_WORK = 2**20  # entries of the bases of the trials that run side by side
_SIGNAL = 6.0  # by how much the sum of a batch of the worst pair exceeds its noise


@dataclass(frozen=True, kw_only=True)
class NoisyOja(ReleasesComponents, TakesSteps, OnProducts, GaussianCalibrated):
    """Oja's algorithm on disjoint batches, with normal noise in every step.

    Parameters
    ----------
    claim : Claim
        What is promised under REPLACE_ONE.
    sigma : float
        Standard deviation of every entry of the noise on the sum of a batch.
    step_sizes : StepSizes, float or sequence of float, optional
        Public. Default: c1/(c2 + t) with c1 = 60 over the largest ||A_i w||, and c2 =
        1, a compromise (docs/streaming.md#noise-that-follows-the-spread).
    iterations : int
        T, the number of steps and of batches; public.
    row_norm, clip : float, optional
        See `OnProducts`.
    """

    sigma: Positive
    step_sizes: Stepped = None  # type: ignore[assignment]
    claim: Claim
    iterations: Count = DEFAULT_ITERATIONS
    row_norm: float | None = 1.0
    clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.step_sizes.sizes(self.iterations)

    @property
    def usual_steps(self) -> StepSizes:
        return HarmonicSteps(DEFAULT_NUMERATOR / self.unit, DEFAULT_OFFSET)

    @classmethod
    def _at(cls, mu: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(sigma=1.0, claim=claim, **fields)
        return replace(made, sigma=made.sensitivity_of(made.rank) / mu)

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        moments = self.read(data)
        bases = drawn_in_parts(
            size,
            (moments.dimension, self.rank),
            _WORK // (moments.dimension * self.rank),
            lambda number: end_of(self._walk(moments, number, rng)),
        )
        return self._shaped(bases)

    def transcript(self, data: Stream, size: int, *, rng: Rng) -> Values:
        """Return the ``start``, V_0, and the ``steps`` of `size` independent runs.

        These are Y_1, ..., Y_T, with an axis of length T after the first. From the same
        state of `rng`, `draw` returns the V_T that follow, if all runs fit together.
        """
        size = check_count("size", size, minimum=0)
        made = transcribed(self._walk(self.read(data), size, rng))
        return {name: self._shaped(values) for name, values in made.items()}

    def step_means(self, transcript: Values, data: Stream) -> Values:
        """Return the sums without their noise, given what was seen before each."""
        moments = self.read(data)
        basis, steps = (
            self.components(transcript[name], self.rank) for name in ("start", "steps")
        )
        means = np.empty(steps.shape)
        for step, eta in enumerate(self._rates(moments)):
            means[:, step] = self._sum(moments, step, basis)
            basis = _turned(basis + eta * steps[:, step])
        return {"steps": self._shaped(means)}

    @property
    def step_scales(self) -> dict[str, float]:
        return {"steps": self.sigma}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair that differs in the last row, or matrix, of many at k vectors.

        All but the last are at the first k basis vectors in turn: enough of them in
        each batch make V known up to a turn of its columns. With rows, the last one is
        R (s e_k + sqrt(1 - s^2) e_(k+1)) on one side, and has the other sign before the
        root on the other, s = min(1/sqrt 2, beta/R^2): so the sum moves by about
        min(2 beta sqrt(1 - s^2), R^2). Without a row norm they are matrices, the common
        ones beta e_j e_j^T, the last one beta e_(k+1) e_k^T or its negative: 2 beta.

        For d = k the sum moves whatever V is, by R^2 (k = 1) or sqrt 2 R^2 if rows are
        not clipped further, and by 2 beta for matrices. The default d is k + 1, the
        least in which the subspace moves.
        """
        k = self.rank
        d = check_length(dimension, k + 1, minimum=k)
        basis = np.eye(d)
        unit, row_norm = self.unit, self.row_norm
        if row_norm is None:
            common = unit * np.einsum("ia,ib->iab", basis[:k], basis[:k])
            changed = np.outer(basis[k], basis[k - 1]) if d > k else basis / sqrt(k)
            sides = [unit * changed, -unit * changed]
        elif d > k:
            common = row_norm * basis[:k]
            share = min(sqrt(0.5), unit / row_norm**2)
            near, off = share * basis[k - 1], sqrt(1 - share**2) * basis[k]
            sides = [row_norm * (near + off), row_norm * (near - off)]
        else:
            common = row_norm * basis[:k]
            sides = [common[0], common[1] if k > 1 else 0 * common[0]]
        count = enough_rows(self.iterations * k * ceil(_SIGNAL * self.sigma / unit))
        shared = common[np.arange(count - 1) % k]
        first, second = (np.concatenate([shared, side[None]]) for side in sides)
        return Pair(first, second, self.relation)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst cases for d = k + 1, and for d = k."""
        return self.worst_case(), self.worst_case(self.rank)

    def read(self, data: Stream) -> Moments:
        moments = super().read(data)
        if moments.count < self.iterations:
            raise InputError(
                f"data must have at least {self.iterations} rows, one for every batch, "
                f"got {moments.count}"
            )
        check_rank(self.rank, moments.dimension)
        return moments

    def _rates(self, moments: Moments) -> Array:
        """Return eta_t/B."""
        batch = moments.count // self.iterations
        return self.step_sizes.sizes(self.iterations) / batch

    def _sum(self, moments: Moments, step: int, basis: Array) -> Array:
        batch = moments.count // self.iterations
        where = slice(step * batch, (step + 1) * batch)
        return moments.mean_block(where, basis, clip=self._bound) * batch

    @property
    def _bound(self) -> float | None:
        """The clip, where it can be reached."""
        if self.clip is None or (self.row_norm and self.clip >= self.row_norm**2):
            return None
        return self.clip

    def _walk(self, moments: Moments, size: int, rng: Rng) -> Iterator[list[Array]]:
        """Yield V_0 twice, then each noisy sum and the V that it leads to."""
        shape = size, moments.dimension, self.rank
        basis = _turned(rng.standard_normal(shape))
        yield [basis, basis]
        for step, eta in enumerate(self._rates(moments)):
            noisy = rng.standard_normal(shape)
            noisy *= self.sigma
            noisy += self._sum(moments, step, basis)
            basis = _turned(basis + eta * noisy)
            yield [noisy, basis]


@dataclass(frozen=True, kw_only=True)
class MinibatchOja(ReleasesVector, NoisyOja):
    """Private minibatch Oja for one component; the release is w_T, shape (d,).

    Examples
    --------
    >>> mechanism = MinibatchOja.calibrated(1.0, 1e-5)
    >>> round(mechanism.sigma, 4)
    3.7306
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [9000, 1000], axis=0)
    >>> rows = np.random.default_rng(0).permutation(rows)
    >>> np.abs(mechanism.release(rows, rng=np.random.default_rng(1))).round(1)
    array([0.6, 0.8])
    """

    several: ClassVar[str] = "block-oja"


@dataclass(frozen=True, kw_only=True)
class BlockOja(ReleasesBasis, NoisyOja):
    """Private minibatch Oja for k components; the release is V_T, shape (d, k)."""

    n_components: Count


def _turned(matrices: Array) -> Array:
    """Return the Q of each, shape (..., d, k); quickly for k = 1."""
    if matrices.shape[-1] > 1:
        return orthonormalise(matrices)
    return np.asarray(matrices / np.linalg.norm(matrices, axis=-2, keepdims=True))
