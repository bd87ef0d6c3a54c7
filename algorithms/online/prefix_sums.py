r"""What all noisy prefix sums share: rows in, A_t + noise out, for every t.

After row t = 1, ..., n the prefix A_t = x_1 x_1^T + ... + x_t x_t^T is released with
noise. The noise of the whole sequence is an invertible linear map of n independent
matrices, one per step, with i.i.d. coordinates N(0, deviation^2)
(`dpaudit.algorithms.online.noise`): a subclass says which map.

**Relation.** REPLACE_ONE: one row of the stream is another row, all others stay at
their places, and how many there are is public ('event level'). To be left out is to be
replaced by a row of zeros, which costs less by sqrt 2. Under ADD_REMOVE one row more
would move all rows behind it by a place, out of their nodes into others.

**Privacy.** Let U be the inverse of the map, and S the sequence of differences A_t -
A'_t in coordinates. U applied to the releases is a bijection of them; it is normal
with covariance deviation^2 I, and its mean moves by U S. So the pair is mu-GDP with
mu = ||U S||/deviation, tightly, and the loss of a release y is
<U (y - (A + A')/2), U S>/deviation^2.

A stream may also be adaptive, x_t chosen by somebody who has seen all releases before
and wants to tell x_i from x_i' at some place i: the noise of a step is drawn after its
row is known and is independent of all before, so given the past each value has the same
shift and the sum of their squares has the same bound.

Everything computed from noisy prefixes, with no further look at the rows, is
post-processing and as private as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, GaussianDP, InputError, Pair, Relation
from dpaudit.algorithms.online.noise import (
    CalibratedNoise,
    PrefixNoise,
    coordinates,
    pack,
    pack_rows,
    unpack,
)
from dpaudit.algorithms.shared.bases import Batched, Rng, Values, slices
from dpaudit.algorithms.shared.constructors import GaussianCalibrated
from dpaudit.arrays import Array
from dpaudit.claims.profile import lost
from dpaudit.rows import clip_rows
from dpaudit.subspace import top_components
from dpaudit.validation import (
    Checked,
    Count,
    Norm,
    check_count,
    check_length,
    check_matrix,
)

__all__ = ["PrefixSums"]

_WORK = 2**20  # coordinates of the noise of the trials that are made side by side


def replaced_row(length: int, dimension: int, place: int, *, row_norm: float) -> Pair:
    """Return zero rows but for one, at e_1 on one side and at e_2 on the other.

    For d = 1 the other side is all zeros. Places are counted from 0.
    """
    first, second = np.zeros((2, length, dimension))
    first[place, 0] = row_norm
    if dimension > 1:
        second[place, 1] = row_norm
    return Pair(first, second, Relation.REPLACE_ONE)


class RowSequence(Batched[ArrayLike]):
    """A release after each row of a stream, whose length and row norm are public."""

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    pair_length: ClassVar[int]
    """How many rows its pairs have where no length is declared."""

    @property
    @abstractmethod
    def length(self) -> int | None:
        """m, if it is declared."""

    @property
    @abstractmethod
    def row_norm(self) -> float:
        """R, public: longer rows are scaled down to it, each on its own."""

    @abstractmethod
    def _pair(self, place: int, dimension: int | None) -> Pair:
        """Return a pair whose sides differ in the row at that place."""

    def prepared(self, data: ArrayLike) -> Array:
        """Return the rows, clipped, or raise `InputError` if they do not do."""
        rows = clip_rows(check_matrix("data", data, min_rows=1), self.row_norm)
        if self.length is not None and len(rows) > self.length:
            raise InputError(
                f"data must have at most the {self.length} rows of the declared "
                f"length, got {len(rows)}"
            )
        return rows

    def length_for(self, n_rows: int | None) -> int:
        """Return m as declared, or else the number of rows there are."""
        return check_count("length", n_rows if self.length is None else self.length)

    @property
    def step_scales(self) -> dict[str, float]:
        return {"sums": 1.0}  # in units of the deviation of their noise

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, then the middle row, then the last."""
        n = self._pair_length
        places = dict.fromkeys((0, n // 2, n - 1))
        return tuple(self._pair(place, None) for place in places)

    @property
    def _pair_length(self) -> int:
        return self.pair_length if self.length is None else self.length


@dataclass(frozen=True, kw_only=True)
class PrefixSums(RowSequence, Checked, GaussianCalibrated, ABC):
    """A_t + noise for every t; releases have shape (n, d, d).

    Parameters
    ----------
    noise : PrefixNoise
        How much.
    claim : Claim
        What is promised for the whole sequence, under REPLACE_ONE.
    length : int, optional
        m, the most rows that a stream may have; public. By default as many as the data
        have; a stream that arrives row by row needs it.
    row_norm : float
        R, public: longer rows are scaled down to it, each on its own.
    """

    noise: PrefixNoise
    claim: Claim
    length: Count | None = None
    row_norm: Norm = 1.0

    pair_length: ClassVar[int] = 8

    @classmethod
    def _at(cls, mu: float, claim: Claim, /, **fields: Any) -> Self:
        return cls(noise=CalibratedNoise(mu), claim=claim, **fields)

    # What a subclass says

    @abstractmethod
    def uses(self, length: int) -> float:
        """Return how many noisy sums show one row at most, as the noise is paid for.

        Where they show it with weights: the sum of the squares of these.
        """

    @abstractmethod
    def mixed(self, sums: Array) -> Array:
        """Return the noise of the prefixes, made of independent one, (..., n, q)."""

    @abstractmethod
    def unmixed(self, prefixes: Array) -> Array:
        """Return the inverse of `mixed`, shape (..., n, q)."""

    # What follows

    def deviation(self, n_rows: int | None = None) -> float:
        """Return the deviation of a coordinate of the independent noise."""
        length = self.length_for(n_rows)
        return self.noise.deviation(
            uses=self.uses(length), length=length, row_norm=self.row_norm
        )

    def statistic(self, data: ArrayLike) -> Array:
        """Return the prefixes A_1, ..., A_n without noise, shape (n, d, d)."""
        return unpack(self._prefixes(self.prepared(data)), self.noise.ratio)

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        rows = self.prepared(data)
        size = check_count("size", size, minimum=0)
        n, d = rows.shape
        releases = np.empty((size, n, d, d))
        for trials, noisy in self.noisy_prefixes(rows, size, rng=rng):
            releases[trials] = noisy
        return releases

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the leading eigenvectors of the last prefixes, (..., d, k)."""
        return top_components(releases[..., -1, :, :], n_components)

    def noisy_prefixes(
        self, rows: Array, size: int, *, rng: Rng
    ) -> Iterator[tuple[slice, Array]]:
        """Yield releases, shape (trials, n, d, d), and which trials of all they are."""
        prefixes = self._prefixes(rows)
        for some in slices(size, _WORK // prefixes.size):
            noise = rng.standard_normal((some.stop - some.start, *prefixes.shape))
            noise *= self.deviation(len(rows))
            noise = self.mixed(noise)
            noise += prefixes
            yield some, unpack(noise, self.noise.ratio)

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return the noisy ``sums`` that the prefixes are made of, shape (size, n, q).

        One per step, in coordinates, in units of the deviation of their noise.
        """
        sums = self._exact_sums(data)
        size = check_count("size", size, minimum=0)
        return {"sums": sums + rng.standard_normal((size, *sums.shape))}

    def step_means(self, transcript: Values, data: ArrayLike) -> Values:
        sums = self._exact_sums(data)
        return {"sums": np.broadcast_to(sums, transcript["sums"].shape)}

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss: linear in the release, shape (size,)."""
        ours, theirs = (self._exact_sums(each) for each in (data, other))
        deviation = self.deviation(len(ours))
        n, d = releases.shape[1:3]
        packed = pack(releases, self.noise.ratio).reshape(-1, n, coordinates(d))
        sums = self.unmixed(packed) / deviation
        shift = ours - theirs
        offset = np.vdot(shift, (ours + theirs) / 2)
        sums = sums.reshape(len(releases), shift.size)
        return np.asarray(sums @ shift.ravel() - offset)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return mu-GDP, with the mu of the pair."""
        ours, theirs = (self._exact_sums(each) for each in (pair.data, pair.neighbour))
        return lost(GaussianDP, float(np.linalg.norm(ours - theirs)))

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a stream whose first row is e_1 on one side and e_2 on the other.

        All other rows are zero: noise is added, so they do not matter. For d = 1 the
        row is replaced by zero. The default d is 2, the least with room for two
        orthogonal rows; there are as many rows as declared, or 8.
        """
        return self._pair(0, dimension)

    def _pair(self, place: int, dimension: int | None) -> Pair:
        d = check_length(dimension, 2)
        return replaced_row(self._pair_length, d, place, row_norm=self.row_norm)

    def _prefixes(self, rows: Array) -> Array:
        return np.cumsum(pack_rows(rows, self.noise.ratio), axis=0)

    def _exact_sums(self, data: ArrayLike) -> Array:
        """Return the mean of the independent values, in units of their deviation."""
        rows = self.prepared(data)
        return self.unmixed(self._prefixes(rows)) / self.deviation(len(rows))
