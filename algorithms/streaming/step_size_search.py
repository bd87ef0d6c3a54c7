r"""Private choice of the step sizes: MinibatchOja on a grid, and the best of the runs.

Source: Liu et al., NeurIPS 2022, section 5, end: eta_t = c1/(c2 + t), and (c1, c2) from
rings of the grid of powers of two, round by round, until a run is good enough.

In print round i runs [2^(i-1), 2^(1-i)] x [2^(1-i), ..., 2^(i-1)] and the same with the
factors exchanged, each at epsilon_i = epsilon/(2^(i+1) (2i - 1)), delta likewise. That
does not add up: those are 4 (2i - 1) pairs, 2 epsilon in total over all rounds, and
with the repeated corners left out (8 (i - 1) pairs, 1 in the first round) 1.0035
epsilon, from the tenth round on; and it is not said who pays for looking how good a run
is. Here the grid is public and finite, and it is

1. the first n_1 = n - floor(q n) rows that all m runs of
   `dpaudit.algorithms.streaming.minibatch_oja` see, one run for each candidate, with
   noise sigma on the sum of every batch;
2. the other floor(q n) rows that judge them: u_j is the sum of w_j^T clip(A_i w_j) over
   these, and j is chosen with probability proportional to exp(epsilon u_j/(2 Delta_u)).
   What is released is w_j.

Privacy, under REPLACE_ONE: (epsilon, delta), all of it for either part, because a row
that is replaced is in one of them only.

- It is in the first: each run moves by one normal vector, mean moved by Delta at most
  (`dpaudit.algorithms.streaming.minibatch_oja`). Together the m runs are (sqrt m
  Delta/sigma)-GDP, by composition (Dong, Roth, Su 2022, Corollary 3.3), and sigma =
  sqrt m Delta/mu(epsilon, delta). The choice is a function of the runs, of rows that
  both datasets share, and of its own randomness.
- It is in the second: the w_j have the same law. Given them, every u_j moves by Delta_u
  at most, so the choice is epsilon-DP (exponential mechanism: McSherry, Talwar 2007).

For unit w, w^T clip(A w) is in [-beta, beta], so Delta_u = 2 beta; for rows in [0,
min(beta, R^2)], and Delta_u is that. Nothing is paid for the number of candidates in
the choice; in the runs noise grows as sqrt m. When that is worth it:
docs/streaming.md#where-we-differ-from-the-paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit import ApproxDP, InputError, Pair, UnsupportedError
from dpaudit.algorithms.shared.bases import ReleasesVector, Rng, Values, drawn_in_parts
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.minibatch_oja import (
    DEFAULT_ITERATIONS,
    DEFAULT_NUMERATOR,
    MinibatchOja,
)
from dpaudit.algorithms.streaming.moment_products import batch_sensitivity, unit_of
from dpaudit.algorithms.streaming.moments import Moments, OnProducts, Stream
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import Count, Fraction, Positive, check_count, check_positive

__all__ = ["StepSizeSearch"]

DEFAULT_ROUNDS = 2
_RATIO = 4.0
_WORK = 2**20  # entries of the vectors of the runs that go side by side


def step_size_grid(
    rounds: int, *, numerator: float = 1.0, offset: float = 1.0, ratio: float = 2.0
) -> tuple[HarmonicSteps, ...]:
    """Return the (2 r - 1)^2 candidates of the first r rounds of the paper's search.

    The exponents of both factors are -(r - 1), ..., r - 1. In print (c1, c2) is (1, 1)
    in the middle, and the ratio, from one to the next, 2.
    """
    rounds = check_count("rounds", rounds)
    numerator = check_positive("numerator", numerator)
    offset = check_positive("offset", offset)
    ratio = check_positive("ratio", ratio)
    if ratio <= 1:
        raise InputError(f"ratio must be > 1, got {ratio!r}")
    factors = [ratio**power for power in range(1 - rounds, rounds)]
    return tuple(
        HarmonicSteps(numerator * one, offset * two)
        for one in factors
        for two in factors
    )


@dataclass(frozen=True, kw_only=True)
class StepSizeSearch(ReleasesVector, OnProducts):
    """Minibatch Oja with step sizes chosen privately; the release is w_j, shape (d,).

    Parameters
    ----------
    claim : ApproxDP
        What is promised, under REPLACE_ONE; its epsilon is also that of the choice.
    sigma : float
        Standard deviation of every entry of the noise on the sum of a batch.
    candidates : sequence of HarmonicSteps
        At least one; public.
    share : float
        q in (0, 1), of the rows that judge the runs.
    iterations, row_norm, clip
        See `MinibatchOja`.

    Examples
    --------
    >>> mechanism = StepSizeSearch.calibrated(1.0, 1e-5)
    >>> len(mechanism.candidates), round(mechanism.sigma, 4)
    (9, 11.1919)
    """

    claim: ApproxDP
    sigma: Positive
    candidates: tuple[HarmonicSteps, ...]
    share: Fraction = 0.2
    iterations: Count = DEFAULT_ITERATIONS
    row_norm: float | None = 1.0
    clip: float | None = None

    several: ClassVar[str] = "block-oja"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "candidates", tuple(self.candidates))
        if not self.candidates or not all(
            isinstance(each, HarmonicSteps) for each in self.candidates
        ):
            raise InputError(
                f"candidates must be one or more HarmonicSteps, got {self.candidates!r}"
            )

    @hands_on("row_norm", "clip", "iterations", "share")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        candidates: Sequence[HarmonicSteps] | None = None,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the smallest proven sigma, sqrt(m) Delta/mu.

        The candidates are by default two rounds of `step_size_grid`, by factors of 4
        about those of `MinibatchOja`.
        """
        mu = gaussian_mu(epsilon, delta)
        bounds = fields.get("row_norm", 1.0), fields.get("clip")
        if candidates is None:
            numerator = DEFAULT_NUMERATOR / unit_of(*bounds)
            candidates = step_size_grid(
                DEFAULT_ROUNDS, numerator=numerator, ratio=_RATIO
            )
        moved = batch_sensitivity(1, row_norm=bounds[0], clip=bounds[1])
        return cls(
            claim=ApproxDP(epsilon, delta),
            sigma=sqrt(max(1, len(candidates))) * moved / mu,
            candidates=tuple(candidates),
            **fields,
        )

    @property
    def utility_sensitivity(self) -> float:
        """Delta_u: how far the utility of a candidate can move."""
        return self.unit if self.row_norm is not None else 2 * self.unit

    def draw(self, data: Stream, size: int, *, rng: Rng) -> Array:
        moments = self.read(data)

        def chosen(number: int) -> Array:
            runs, choice = self._run(moments, number, rng)
            picked = np.take_along_axis(runs, choice[:, None, None], axis=1)
            return np.asarray(picked[:, 0])

        d = moments.dimension
        width = _WORK // (d * len(self.candidates))
        return drawn_in_parts(size, (d,), width, chosen)

    def transcript(self, data: Stream, size: int, *, rng: Rng) -> Values:
        """Return the results of all ``runs``, (size, m, d), and the ``choice``."""
        moments = self.read(data)
        size = check_count("size", size, minimum=0)
        runs, choice = self._run(moments, size, rng)
        return {"runs": runs, "choice": choice.astype(np.float64)}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair that differs in the last row of the first part.

        It is the worst case of `MinibatchOja` with the same noise, followed by rows (or
        matrices) at e_1 that judge. The default d is 2.
        """
        one = MinibatchOja(
            sigma=self.sigma,
            step_sizes=self.candidates[0],
            claim=self.claim,
            iterations=self.iterations,
            row_norm=self.row_norm,
            clip=self.clip,
        ).worst_case(dimension)
        n = len(one.data)
        judges = next(each for each in count(1) if int(self.share * (n + each)) <= each)
        if not int(self.share * (n + judges)):
            raise UnsupportedError(
                f"no pair is made for a share of {self.share:g}, which is no row of {n}"
            )
        rest = np.repeat(one.data[:1], judges, axis=0)
        first, second = (
            np.concatenate([side, rest]) for side in (one.data, one.neighbour)
        )
        return Pair(first, second, self.relation)

    def read(self, data: Stream) -> Moments:
        moments = super().read(data)
        judges = int(self.share * moments.count)
        if not judges or moments.count - judges < self.iterations:
            raise InputError(
                f"data must have at least {self.iterations} rows to run on, and one to "
                f"judge by, a share {self.share:g} of all, got {moments.count}"
            )
        return moments

    def _run(
        self, moments: Moments, size: int, rng: Rng
    ) -> tuple[Array, NDArray[np.intp]]:
        """Return the results of the runs of each trial, and the choices."""
        m, d = len(self.candidates), moments.dimension
        judges = int(self.share * moments.count)
        runners = moments.count - judges
        batch = runners // self.iterations
        rates = np.array([each.sizes(self.iterations) for each in self.candidates])
        vectors = rng.standard_normal((size, m, d))
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        for step in range(self.iterations):
            where = slice(step * batch, (step + 1) * batch)
            noisy = rng.standard_normal((size, m, d))
            noisy *= self.sigma / batch
            noisy += self._means(moments, where, vectors)
            vectors = vectors + rates[:, step, np.newaxis] * noisy
            vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        means = self._means(moments, slice(runners, moments.count), vectors)
        utilities = judges * np.einsum("smd,smd->sm", vectors, means)
        weights = self.claim.parameters["epsilon"] / (2 * self.utility_sensitivity)
        # The largest of logits with Gumbel noise is a draw in proportion to their exp.
        scores = weights * utilities + rng.gumbel(size=(size, m))
        return vectors, scores.argmax(axis=1)

    def _means(self, moments: Moments, where: slice, vectors: Array) -> Array:
        flat = vectors.reshape(-1, moments.dimension)
        means = moments.mean_apply(where, flat, clip=self.clip)
        return means.reshape(vectors.shape)
