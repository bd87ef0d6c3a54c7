"""What adapters to the mechanisms of other libraries share.

An adapter repeats the claim that the library makes, under the relation for which the
library makes it; where that is from is said at each adapter. An audit of it is an audit
of the code that the library ships: the noise, the rejection sampling and the random
numbers are the library's own.

**Randomness.** A library that takes a source of random numbers draws them from the
generator that a release is handed, and the same seed gives the same release. One that
does not (`seedable` is false) draws from the operating system. Its releases are
independent draws of one law all the same, which is all that an audit needs, but no
second run repeats the first, and the audit says so in its warnings. Of a mechanism that
does not say `seedable = False` it would come to no verdict.

**The pair for eigenvectors**, of adapters that release principal components. Half of
the rows are plus or minus the first basis vector, half the second: two directions are
nearly equal, all others out of reach. In the neighbour one row of the first kind is of
the second instead. Opposite signs keep the mean at 0, so that subtracting it, privately
or not, changes next to nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import ApproxDP, Claim, DPAuditError, InputError, Pair, PureDP, Relation
from dpaudit.algorithms.shared.bases import ReleasesVector, Rng, check_components
from dpaudit.algorithms.textbook.base import check_dimension, check_scalars
from dpaudit.arrays import Array
from dpaudit.extras import how_to_install
from dpaudit.mechanism import Release
from dpaudit.rows import clip_rows
from dpaudit.subspace import second_moment
from dpaudit.validation import (
    Checked,
    Count,
    Fraction,
    Norm,
    Positive,
    check_count,
    check_length,
    check_matrix,
)

__all__ = ["MissingLibraryError"]

Sampler: TypeAlias = Callable[[], Release]
"""What makes one release each time."""


class MissingLibraryError(DPAuditError, ImportError):
    """The library that an adapter calls is not installed, or does not work."""


@contextmanager
def _installed(library: str) -> Iterator[None]:
    """Say how to install a library if it cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise MissingLibraryError(
            f"{library} cannot be imported: {how_to_install(library)} ({error})"
        ) from error


@dataclass(frozen=True)
class ThirdPartyMechanism(Checked, ABC):
    """A mechanism of another library, which claims `epsilon`."""

    epsilon: Positive = 1.0
    claim: Claim = field(init=False)
    """What the library promises under `relation`."""

    relation: ClassVar[Relation]
    """The neighbouring relation under which the library makes the claim."""

    library: ClassVar[str]
    """The name that is imported; the extra that installs it has the same."""

    seedable: ClassVar[bool]
    """Whether the library draws from the generator that a release is handed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "claim", self._promise())

    def _promise(self) -> Claim:
        return PureDP(self.epsilon)

    @abstractmethod
    def _sampler(self, data: ArrayLike, rng: Rng) -> Sampler:
        """Return a function that makes one release on `data` each time.

        Here, and only here, the library is imported.
        """

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Release:
        """Return `size` independent releases, at least one, along the first axis."""
        size = check_count("size", size)
        with _installed(self.library):
            sample = self._sampler(data, rng)
            return _stack([sample() for _ in range(size)])

    def release(self, data: ArrayLike, *, rng: Rng) -> Release:
        """Return one release; raises as `draw` does."""
        with _installed(self.library):
            return self._sampler(data, rng)()


def _stack(releases: list[Release]) -> Release:
    if isinstance(first := releases[0], np.ndarray):
        return np.stack([np.asarray(release) for release in releases])
    named = [release for release in releases if not isinstance(release, np.ndarray)]
    return {key: np.stack([release[key] for release in named]) for key in first}


@dataclass(frozen=True)
class ScalarSum(ThirdPartyMechanism):
    """The sum of scalar rows in [0, 1], with noise of the library.

    Releases are scalars, shape (). Rows are scalars, shape (n,) or (n, 1); others are
    clipped to [0, 1], each by itself, so that adding or removing a row moves the sum by
    at most 1, the sensitivity that the library is told.
    """

    relation = Relation.ADD_REMOVE

    @abstractmethod
    def _noisy_sum(self, rng: Rng) -> Callable[[Array], float]:
        """Return a function from rows in [0, 1], shape (n,), to their noisy sum."""

    def _sampler(self, data: ArrayLike, rng: Rng) -> Sampler:
        rows = check_scalars(data).clip(0.0, 1.0)
        noisy_sum = self._noisy_sum(rng)
        return lambda: np.asarray(noisy_sum(rows), dtype=np.float64)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row of 1, added to one of 0; rows have length 1."""
        check_dimension(dimension, 1)
        return Pair([0.0], [0.0, 1.0], self.relation)


@dataclass(frozen=True, kw_only=True)
class ApproximateScalarSum(ScalarSum):
    """The same under a claim of approximate differential privacy."""

    delta: Fraction = 1e-5

    def _promise(self) -> Claim:
        return ApproxDP(self.epsilon, self.delta)


_ROWS = 5998  # 3000 and 2998 of the two kinds
_DIMENSION = 8


@dataclass(frozen=True, kw_only=True)
class RowMechanism(ThirdPartyMechanism):
    """A mechanism on rows clipped to a public l2 norm, for principal components."""

    row_norm: Norm = 1.0

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
class EigenvectorMechanism(ReleasesVector, RowMechanism):
    """A private first eigenvector of the second-moment matrix.

    Releases are unit vectors, shape (d,). The library takes the matrix; the adapter
    computes it, without noise, from the clipped rows.
    """

    @abstractmethod
    def _eigenvector(self, moment: Array, size: int, rng: Rng) -> Sampler:
        """Return a sampler for the second-moment matrix A of `size` rows."""

    def _sampler(self, data: ArrayLike, rng: Rng) -> Sampler:
        rows = self._rows(data)
        moment = second_moment(clip_rows(rows, self.row_norm))
        return self._eigenvector(moment, len(rows), rng)


@dataclass(frozen=True, kw_only=True)
class PCAMechanism(RowMechanism):
    """A fitted model of principal component analysis.

    Releases are dictionaries of what a user reads off the fitted model, so far as it
    depends on the data; ``"components"`` has shape (k, d) and orthonormal rows.
    """

    n_components: Count = 1

    def _rows(self, data: ArrayLike) -> Array:
        rows = super()._rows(data)
        check_count("n_components", self.n_components, maximum=rows.shape[1])
        return rows

    def components(self, releases: Release, n_components: int) -> Array:
        check_components(n_components, self.n_components)
        if isinstance(releases, np.ndarray):
            raise InputError("releases must be dictionaries with 'components'")
        return releases["components"].swapaxes(-2, -1)


VARIANCES = ("singular_values", "explained_variance", "noise_variance")


def read_off(model: Any, *names: str) -> dict[str, Array]:
    """Return what a fitted model shows, by the names of its attributes."""
    return {name: np.asarray(getattr(model, f"{name}_"), dtype=float) for name in names}


def near_degenerate_pair(
    dimension: int | None = None, *, row_norm: float = 1.0
) -> Pair:
    """Return neighbours whose two largest eigenvalues are nearly equal.

    With unit rows, A = diag(3000, 2998, 0, ...) and A' = diag(2999, 2999, 0, ...); by
    default d = 8. See the head of this module.
    """
    dimension = check_length(dimension, _DIMENSION, minimum=2)
    data = np.zeros((_ROWS, dimension))
    first = _ROWS // 2 + 1
    data[:first, 0] = data[first:, 1] = row_norm
    data[1::2] *= -1
    neighbour = data.copy()
    neighbour[0, :2] = 0.0, row_norm
    return Pair(data, neighbour, Relation.REPLACE_ONE)


_DISTRIBUTIONS = {
    "diffprivlib": ("diffprivlib", "scikit-learn", "numpy"),
    "opendp": ("opendp", "randomgen", "scikit-learn", "numpy"),
}


def library_versions(extra: str | None) -> dict[str, str]:
    """Return the versions of a library and of what its noise depends on, if any.

    Raises `MissingLibraryError` if one of them is not installed.
    """
    try:
        return {name: version(name) for name in _DISTRIBUTIONS.get(extra or "", ())}
    except PackageNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: {how_to_install(str(extra))}"
        ) from error
