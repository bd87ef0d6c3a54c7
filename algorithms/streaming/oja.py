r"""Oja's algorithm, which is not private: the baseline of the streaming family.

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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import (
    Batched,
    ReleasesVector,
    Rng,
    drawn_in_parts,
)
from dpaudit.algorithms.shared.step_sizes import StepSizes, as_step_sizes
from dpaudit.algorithms.streaming.moments import Moments, as_moments
from dpaudit.arrays import Array
from dpaudit.claims import Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_length

__all__ = ["ClaimedOja", "Oja", "oblique_pair"]

_WORK = 2**20  # entries of the vectors of the trials that run side by side
_READ = 2**17  # entries of the rows that are read at a time


@dataclass(frozen=True)
class Oja(ReleasesVector, Batched[ArrayLike | Moments]):
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
    >>> import numpy as np
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [90, 10], axis=0)
    >>> rows = np.random.default_rng(0).permutation(rows)
    >>> np.abs(Oja(0.1).release(rows, rng=np.random.default_rng(1))).round(1)
    array([0.6, 0.8])
    """

    step_sizes: StepSizes
    batch_size: int = 1
    claim: Claim | None = None

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def __init__(
        self,
        step_sizes: StepSizes | float | Sequence[float],
        batch_size: int = 1,
        claim: Claim | None = None,
    ) -> None:
        object.__setattr__(self, "step_sizes", as_step_sizes(step_sizes))
        object.__setattr__(self, "batch_size", check_count("batch_size", batch_size))
        object.__setattr__(self, "claim", claim)

    def draw(self, data: ArrayLike | Moments, size: int, *, rng: Rng) -> Array:
        """Return `size` releases from independent starts, shape (size, d).

        Parameters
        ----------
        data : array_like, shape (n, d) or (n, d, d), or Moments
            At least B rows or matrices.
        """
        moments = as_moments(data)
        if moments.count < self.batch_size:
            raise InputError(
                f"batch_size must be at most the number of rows, {moments.count}, got "
                f"{self.batch_size}"
            )
        rates = self.step_sizes.sizes(moments.count // self.batch_size)
        return drawn_in_parts(
            size,
            (moments.dimension,),
            _WORK // moments.dimension,
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
                return _one_by_one(moments, rates, start)
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
        return cls(1.0, claim=PureDP(epsilon))


def oblique_pair(
    dimension: int, *, count: int, unit: float, matrices: bool = False
) -> Pair:
    """Return rows at e_1, and one half-way to e_2, or to -e_2 on the other side.

    For d = 1 the last one is at e_1 or zero.

    Parameters
    ----------
    dimension : int
        d.
    count : int
        n.
    unit : float
        The squared length of every row.
    matrices : bool
        Whether to return the matrices x x^T instead.
    """
    rows = np.zeros((count, dimension))
    rows[:, 0] = sqrt(unit)
    other = rows.copy()
    if dimension > 1:
        rows[-1, :2] = sqrt(0.5 * unit)
        other[-1, :2] = rows[-1, :2] * (1, -1)
    else:
        other[-1] = 0
    if matrices:
        rows, other = (each[:, :, None] * each[:, None] for each in (rows, other))
    return Pair(rows, other, Relation.REPLACE_ONE)


def _one_by_one(moments: Moments, rates: Array, start: Array) -> Array:
    """Return w_T of one trial with batches of one row, in shape (1, d)."""
    vector = start[0].copy()
    width = max(1, _READ // moments.dimension)
    for first in range(0, moments.count, width):
        rows = moments.read(slice(first, min(first + width, moments.count)))
        for row, eta in zip(rows, rates[first : first + width].tolist(), strict=True):
            vector += (eta * row.dot(vector)) * row
            vector /= sqrt(vector.dot(vector))
    return vector[np.newaxis]
