"""What adapters to the mechanisms of other libraries share.

An adapter repeats the claim that the library makes, under the relation for which the
library makes it; where that is from is said at each adapter. An audit of it is an audit
of the code that the library ships: the noise, the rejection sampling and the random
numbers are the library's own.

**Randomness.** A library that takes a source of random numbers draws them from the
generator that a release is handed, and the same seed gives the same release. One that
does not (`seedable` is false) draws from the operating system. Its releases are
independent draws of one law all the same, which is all that an audit needs, but no
second run repeats the first, and the audit says so in its warnings.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.textbook.base import check_dimension, check_scalars
from dpaudit.checked import Checked, Fraction, Positive
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.errors import DPAuditError
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count

__all__ = [
    "ApproximateScalarSum",
    "Array",
    "MissingLibraryError",
    "ScalarSum",
    "ThirdPartyMechanism",
]

Array = NDArray[np.float64]


class MissingLibraryError(DPAuditError, ImportError):
    """The library that an adapter calls is not installed, or does not work."""


@contextmanager
def _installed(library: str) -> Iterator[None]:
    """Say how to install a library if it cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise MissingLibraryError(
            f"{library} cannot be imported: pip install 'dpaudit[{library}]' ({error})"
        ) from error


@dataclass(frozen=True)
class ThirdPartyMechanism(Checked, ABC):
    """A mechanism of another library.

    Parameters
    ----------
    epsilon : float
        What the library claims, > 0.
    """

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
    def _sampler(
        self, data: ArrayLike, rng: np.random.Generator
    ) -> Callable[[], Release]:
        """Return a function that makes one release on `data` each time.

        Here, and only here, the library is imported.
        """

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Release:
        """Return `size` independent releases, at least one, along the first axis.

        Raises
        ------
        MissingLibraryError
            If the library is not installed.
        InputError
            If `data` is not what the mechanism takes.
        """
        size = check_count("size", size)
        with _installed(self.library):
            sample = self._sampler(data, rng)
            return _stack([sample() for _ in range(size)])

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Release:
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
    def _noisy_sum(self, rng: np.random.Generator) -> Callable[[Array], float]:
        """Return a function from rows in [0, 1], shape (n,), to their noisy sum."""

    def _sampler(
        self, data: ArrayLike, rng: np.random.Generator
    ) -> Callable[[], Array]:
        rows = check_scalars(data).clip(0.0, 1.0)
        noisy_sum = self._noisy_sum(rng)
        return lambda: np.asarray(noisy_sum(rows), dtype=np.float64)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row of 1, added to one of 0; rows have length 1."""
        check_dimension(dimension, 1)
        return Pair([0.0], [0.0, 1.0], self.relation)


@dataclass(frozen=True, kw_only=True)
class ApproximateScalarSum(ScalarSum):
    """The same under a claim of approximate differential privacy.

    Parameters
    ----------
    delta : float
        In (0, 1).
    """

    delta: Fraction = 1e-5

    def _promise(self) -> Claim:
        return ApproxDP(self.epsilon, self.delta)
