"""Releases that are principal components already, as many as their mechanism makes.

What `dpaudit.mechanism.HasComponents` asks for is then the release itself, and any
other number of components is refused.
"""

from typing import TYPE_CHECKING

import numpy as np

from dpaudit.arrays import Array
from dpaudit.errors import InputError

__all__ = [
    "ReleasesBasis",
    "ReleasesVector",
    "check_components",
    "check_one_component",
]


class ReleasesBasis:
    """A mechanism with `n_components` whose release is a basis, shape (d, k)."""

    if TYPE_CHECKING:

        @property
        def n_components(self) -> int:
            """K."""

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the bases themselves, shape (..., d, k); k is that of the mechanism.

        Raises
        ------
        InputError
            For any other number of components.
        """
        check_components(n_components, self.n_components)
        return releases


class ReleasesVector:
    """A mechanism whose release is a unit vector, shape (d,)."""

    def components(self, releases: Array, n_components: int) -> Array:
        """Return the vectors as bases of one column, shape (..., d, 1).

        Raises
        ------
        InputError
            For any other number of components than 1.
        """
        check_components(n_components, 1)
        return releases[..., np.newaxis]


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
