"""What mechanisms of many kinds share: how one release is drawn, and components of it.

Where releases are principal components already, as many as their mechanism makes, what
`dpaudit.mechanism.HasComponents` asks for is the release itself, and any other number
of components is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_count

__all__ = [
    "Batched",
    "ReleasesBasis",
    "ReleasesVector",
    "Rng",
    "check_components",
    "check_one_component",
    "check_rank",
    "drawn_in_parts",
    "first_accepted",
    "laplace_noise",
    "orient",
]


Data = TypeVar("Data", contravariant=True)

Rng: TypeAlias = np.random.Generator
"""Where randomness is from."""

Replaced: TypeAlias = Literal["opposite", "orthogonal"]
"""How the terms of a row and of its replacement lie where they are worst."""


class Batched(ABC, Generic[Data]):
    """A mechanism that draws many releases at once, on data of some type."""

    @abstractmethod
    def draw(self, data: Data, size: int, *, rng: Rng) -> Array:
        """Return `size` independent releases, stacked along the first axis."""

    def release(self, data: Data, *, rng: Rng) -> Array:
        """Return one release, as those of `draw`."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])


class ReleasesBasis:
    """A mechanism with `n_components` whose release is a basis, shape (d, k)."""

    if TYPE_CHECKING:

        @property
        def n_components(self) -> int:
            """K."""

    @property
    def rank(self) -> int:
        """The number of components, k."""
        return self.n_components

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the bases themselves, shape (..., d, k); k is that of the mechanism.

        Raises
        ------
        InputError
            For any other number of components.
        """
        check_components(n_components, self.rank)
        return releases


class ReleasesVector:
    """A mechanism whose release is a unit vector, shape (d,)."""

    @property
    def rank(self) -> int:
        """The number of components, 1."""
        return 1

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the vectors as bases of one column, shape (..., d, 1)."""
        check_components(n_components, self.rank)
        return releases[..., np.newaxis]


def check_rank(n_components: int, dimension: int) -> None:
    """Raise unless k <= d."""
    if n_components > dimension:
        raise InputError(
            f"n_components must be at most the length of a row, {dimension}, "
            f"got {n_components}"
        )


def check_components(n_components: int, released: int) -> None:
    """Raise unless as many components are asked for as a mechanism releases."""
    if n_components != released or isinstance(n_components, bool):
        raise InputError(
            f"n_components must be the {released} that the mechanism releases, "
            f"got {n_components!r}"
        )


def check_one_component(name: str, n_components: int, *, others: str) -> None:
    """Raise unless the number of components is 1.

    Parameters
    ----------
    name : str
        Of the mechanism, which releases no more.
    n_components : int
    others : str
        The mechanism that releases several.
    """
    if n_components != 1 or isinstance(n_components, bool):
        raise InputError(
            f"n_components of {name} must be 1, got {n_components!r}; for more see "
            f"{others}"
        )


def drawn_in_parts(
    size: int, shape: tuple[int, ...], width: int, draw: Callable[[int], Array]
) -> Array:
    """Return `size` releases of a shape, of which at most `width` are made together.

    Parameters
    ----------
    size : int
        >= 0.
    shape : tuple of int
        Of one release.
    width : int
        What fits in memory; 1 is made if nothing does.
    draw : callable
        Takes a number of releases, and makes them.
    """
    size, width = check_count("size", size, minimum=0), max(1, width)
    releases = np.empty((size, *shape))
    for first in range(0, size, width):
        part = releases[first : first + width]
        part[:] = draw(len(part))
    return releases


def first_accepted(
    size: int,
    propose: Callable[[int], Array],
    *,
    shape: tuple[int, ...],
    fewest: int,
    most: int,
) -> Array:
    """Return the first draws that rejection leaves, of shape ``(size, *shape)``.

    Parameters
    ----------
    size : int
    propose : callable
        From a number of proposals to those of them that are accepted.
    shape : tuple of int
        Of one draw.
    fewest, most : int
        Proposals at a time. As many are made as seem needed, from what was accepted
        before.
    """
    kept: list[Array] = [np.empty((0, *shape))]
    count = tried = 0
    while count < size:
        expected = (size - count) * (tried + 1) / (count + 1)
        tries = min(max(int(expected), fewest), most)
        kept.append(propose(tries))
        count += len(kept[-1])
        tried += tries
    return np.concatenate(kept)[:size]


def laplace_noise(shape: int | tuple[int, ...], scale: float, *, rng: Rng) -> Array:
    """Draw independent centred Laplace variables, density exp(-|x|/scale)/(2 scale).

    An exponential with a random sign: a third of the time that
    `numpy.random.Generator.laplace` takes.
    """
    noise = rng.standard_exponential(shape)
    noise *= scale
    signs = rng.random(shape)
    signs -= 0.5
    return np.copysign(noise, signs, out=noise)


def orient(bases: Array) -> Array:
    """Return bases with the largest entry of each column positive, (..., d, k)."""
    peaks = np.argmax(np.abs(bases), axis=-2, keepdims=True)
    signs = np.sign(np.take_along_axis(bases, peaks, axis=-2))
    return np.asarray(bases * signs)
