r"""A subspace after every row, computed from noisy prefix sums.

After row t the leading k-dimensional subspace of the noisy prefix is released: V_(t+1),
with which row t + 1 is met. V_1, with which row 1 is met, is chosen without the data
(the first k basis vectors) and is no part of the release, which has the shape (n, d,
k). (The papers' algorithms output V_1, ..., V_m and compute V_(m+1) beside; the proof
covers it.)

All of it is a function of the noisy prefixes, so it is as private as they are. That
holds for anything that computes subspaces from them, exactly or not, as long as it
looks at nothing else: warm starts, tolerances and early stops cost accuracy and no
privacy.

Each column of a basis has its largest entry positive, which makes a release a function
of the subspaces where eigenvalues differ.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, Pair, Relation, UnsupportedError
from dpaudit.algorithms.online.leading_subspace import DEFAULT_TOLERANCE
from dpaudit.algorithms.online.prefix_sums import PrefixSums, RowSequence, replaced_row
from dpaudit.algorithms.online.streams import StreamableSums, Streamed, SubspaceStream
from dpaudit.algorithms.shared.bases import (
    Rng,
    Values,
    check_components,
    check_rank,
    orient,
)
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.validation import Checked, Count, check_count, check_length

__all__ = ["SubspaceSequence"]


def leading_bases(matrices: Array, n_components: int) -> Array:
    """Return the top eigenvectors of symmetric matrices, (..., d, d) -> (..., d, k)."""
    vectors = np.linalg.eigh(matrices).eigenvectors
    return orient(vectors[..., : -n_components - 1 : -1])


def oblique_row(
    length: int, dimension: int, n_components: int, place: int, *, row_norm: float
) -> Pair:
    """Return rows at the first k basis vectors in turn, but for one row.

    That is half-way from e_k to e_(k+1) on one side, and to -e_(k+1) on the other: it
    turns the leading subspace to opposite sides. For d = k, where no subspace can turn,
    it is as in `replaced_row`.
    """
    k = n_components
    if dimension <= k:
        return replaced_row(length, dimension, place, row_norm=row_norm)
    rows = row_norm * np.eye(dimension)[np.arange(length) % k]
    rows[place] = 0
    rows[place, [k - 1, k]] = row_norm * np.sqrt(0.5)
    other = rows.copy()
    other[place, k] *= -1
    return Pair(rows, other, Relation.REPLACE_ONE)


class BasisSequence(RowSequence):
    """A basis after each row; releases have shape (n, d, k).

    A subclass has k, the most rows and their norm, and says how it draws.
    """

    pair_length: ClassVar[int] = 32

    @property
    @abstractmethod
    def n_components(self) -> int:
        """k, from 1 to d."""

    @abstractmethod
    def _fill(self, releases: Array, rows: Array, rng: Rng) -> None:
        """Write releases, shape (size, n, d, k), on prepared rows."""

    def prepared(self, data: ArrayLike) -> Array:
        rows = super().prepared(data)
        check_rank(self.n_components, rows.shape[1])
        return rows

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        rows = self.prepared(data)
        size = check_count("size", size, minimum=0)
        releases = np.empty((size, *rows.shape, self.n_components))
        self._fill(releases, rows, rng)
        return releases

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the last basis of each sequence, shape (..., d, k)."""
        check_components(n_components, self.n_components)
        return np.asarray(releases[..., -1, :, :])

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a stream whose first row turns the subspaces to opposite sides.

        See `oblique_row`. The default d is k + 1; there are as many rows as declared,
        or 32: the others are the signal that makes the direction known in which the row
        turns a subspace.
        """
        return self._pair(0, dimension)

    def _pair(self, place: int, dimension: int | None) -> Pair:
        k = self.n_components
        d = check_length(dimension, k + 1, minimum=k)
        return oblique_row(self._pair_length, d, k, place, row_norm=self.row_norm)


@dataclass(frozen=True, kw_only=True)
class SubspaceSequence(Streamed, BasisSequence, Checked):
    """The leading subspaces of noisy prefixes; releases have shape (n, d, k).

    Parameters
    ----------
    sums : PrefixSums
        What makes the noisy prefixes, with its claim, its length and its row norm.
    n_components : int
        k, from 1 to d.
    """

    sums: PrefixSums
    n_components: Count = 1

    kind: ClassVar[type[StreamableSums]]
    """What the prefixes of named constructors are made by."""

    @hands_on(to="kind")
    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, *, n_components: int = 1, **fields: Any
    ) -> Self:
        """Return the mechanism on calibrated prefix sums, with their fields."""
        sums = cls.kind.calibrated(epsilon, delta, **fields)
        return cls(sums=sums, n_components=n_components)

    @property
    def claim(self) -> Claim:
        """That of the prefixes."""
        return self.sums.claim

    @property
    def row_norm(self) -> float:
        """R, that of the prefixes."""
        return self.sums.row_norm

    @property
    def length(self) -> int | None:
        return self.sums.length

    def _fill(self, releases: Array, rows: Array, rng: Rng) -> None:
        for trials, noisy in self.sums.noisy_prefixes(rows, len(releases), rng=rng):
            releases[trials] = leading_bases(noisy, self.n_components)

    def start(
        self, dimension: int, *, tolerance: float = DEFAULT_TOLERANCE, rng: Rng
    ) -> SubspaceStream:
        """Return a stream of rows of length d, which gives a basis after each.

        No reward differs by more than the tolerance, in [0, 1), from that of the exact
        subspace; see `dpaudit.algorithms.online.leading_subspace`. A length must be
        declared, and d >= k.
        """
        if not isinstance(self.sums, StreamableSums):
            raise UnsupportedError(f"{type(self.sums).__name__} has no stream")
        check_rank(self.n_components, check_count("dimension", dimension))
        return SubspaceStream(self, dimension, tolerance=tolerance, rng=rng)

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return the noisy sums from which all follows; see `PrefixSums`."""
        return self.sums.transcript(self.prepared(data), size, rng=rng)

    def step_means(self, transcript: Values, data: ArrayLike) -> Values:
        return self.sums.step_means(transcript, data)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, then the middle row, the last row, then d = k."""
        turned = super().canonical_pairs()
        if self.n_components == 1:
            return turned
        return (*turned, self._pair(0, self.n_components))
