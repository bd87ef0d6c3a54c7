"""What adapters share whose mechanisms release principal components.

**The pair for eigenvectors.** Half of the rows are plus or minus the first basis
vector, half the second, so that the second-moment matrix is about n/2 on the first two
entries of its diagonal and 0 elsewhere: two directions are nearly equal, all others out
of reach. In the neighbour one row of the first kind is of the second instead. Opposite
signs keep the mean at 0, so that subtracting it, privately or not, changes next to
nothing.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.third_party.base import Array, ThirdPartyMechanism
from dpaudit.checked import Count, Positive
from dpaudit.errors import InputError
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair, Relation
from dpaudit.rows import clip_rows
from dpaudit.subspace import second_moment
from dpaudit.validation import check_count, check_matrix

__all__ = [
    "EigenvectorMechanism",
    "PCAMechanism",
    "RowMechanism",
    "near_degenerate_pair",
]

_ROWS = 5998  # 3000 and 2998 of the two kinds
_DIMENSION = 8


@dataclass(frozen=True, kw_only=True)
class RowMechanism(ThirdPartyMechanism):
    """A mechanism on rows of bounded length, for principal components.

    Parameters
    ----------
    row_norm : float
        Public bound on the l2 norm of a row; longer rows are clipped onto it.
    """

    row_norm: Positive = 1.0

    relation = Relation.REPLACE_ONE

    def _rows(self, data: ArrayLike) -> Array:
        """Return the rows of `data`, checked: shape (n, d), d >= 2."""
        rows = check_matrix("data", data, min_rows=2)
        if rows.shape[1] < 2:
            raise InputError(
                f"data must have rows of length >= 2, got shape {rows.shape}"
            )
        return rows

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return `near_degenerate_pair`; d is 8 by default.

        Below d = 8 the violation of a false sampler is smaller, above it the samplers
        of some libraries take minutes or hours for one draw.
        """
        return near_degenerate_pair(dimension, row_norm=self.row_norm)


@dataclass(frozen=True, kw_only=True)
class EigenvectorMechanism(RowMechanism):
    """A private first eigenvector of the second-moment matrix.

    Releases are unit vectors, shape (d,). The library takes the matrix; the adapter
    computes it, without noise, from the clipped rows.
    """

    @abstractmethod
    def _eigenvector(
        self, moment: Array, size: int, rng: np.random.Generator
    ) -> Callable[[], Array]:
        """Return a sampler for the second-moment matrix A of `size` rows."""

    def _sampler(
        self, data: ArrayLike, rng: np.random.Generator
    ) -> Callable[[], Array]:
        rows = self._rows(data)
        moment = second_moment(clip_rows(rows, self.row_norm))
        return self._eigenvector(moment, len(rows), rng)

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the released vectors as bases, shape (..., d, 1).

        Raises
        ------
        InputError
            If `n_components` is not 1.
        """
        check_count("n_components", n_components, maximum=1)
        return np.asarray(releases)[..., np.newaxis]


@dataclass(frozen=True, kw_only=True)
class PCAMechanism(RowMechanism):
    """A fitted model of principal component analysis.

    Releases are dictionaries of what a user reads off the fitted model, so far as it
    depends on the data; ``"components"`` has shape (k, d) and orthonormal rows.

    Parameters
    ----------
    n_components : int
        k, at least 1 and at most the length of a row.
    """

    n_components: Count = 1

    def _rows(self, data: ArrayLike) -> Array:
        rows = super()._rows(data)
        check_count("n_components", self.n_components, maximum=rows.shape[1])
        return rows

    def components(self, releases: Release, n_components: int) -> Array:
        """Return the bases, shape (..., d, k); k is that of the mechanism.

        Raises
        ------
        InputError
            For any other number of components.
        """
        check_count(
            "n_components",
            n_components,
            minimum=self.n_components,
            maximum=self.n_components,
        )
        if isinstance(releases, np.ndarray):
            raise InputError("releases must be dictionaries with 'components'")
        return releases["components"].swapaxes(-2, -1)


def near_degenerate_pair(
    dimension: int | None = None, *, row_norm: float = 1.0
) -> Pair:
    """Return neighbours whose two largest eigenvalues are nearly equal.

    With unit rows, A = diag(3000, 2998, 0, ...) and A' = diag(2999, 2999, 0, ...):
    5998 rows, of which one is replaced (head of this module).

    Parameters
    ----------
    dimension : int, optional
        Length of a row, >= 2; 8 by default.
    row_norm : float
        Length of every row, > 0.

    Examples
    --------
    >>> pair = near_degenerate_pair(2)
    >>> (pair.data.T @ pair.data).diagonal().astype(int).tolist()
    [3000, 2998]
    >>> (pair.neighbour.T @ pair.neighbour).diagonal().astype(int).tolist()
    [2999, 2999]
    """
    dimension = check_count(
        "dimension", _DIMENSION if dimension is None else dimension, minimum=2
    )
    data = np.zeros((_ROWS, dimension))
    first = _ROWS // 2 + 1
    data[:first, 0] = data[first:, 1] = row_norm
    data[1::2] *= -1
    neighbour = data.copy()
    neighbour[0, :2] = 0.0, row_norm
    return Pair(data, neighbour, Relation.REPLACE_ONE)
