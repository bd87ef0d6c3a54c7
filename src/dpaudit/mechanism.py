"""The protocol that mechanisms implement, and the optional capabilities beside it.

Whatever is audited is a `Mechanism`, or a plain callable ``(data, rng) -> release``.
A capability is one small protocol, discovered with `isinstance`; an algorithm has
those that its mathematics supports and no others. A capability that holds only in
some cases raises `~dpaudit.errors.UnsupportedError` in the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.neighbours import Pair, Relation

__all__ = [
    "HasBatchedDraw",
    "HasExactClaim",
    "HasPrivacyLoss",
    "HasStatistic",
    "HasSupport",
    "HasWorstCase",
    "MatrixNorm",
    "Mechanism",
    "Release",
    "Sensitivity",
]

Array: TypeAlias = NDArray[np.float64]
Release: TypeAlias = Array | Mapping[str, Array]
"""One release, or a batch of them with a leading trial axis."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised algorithm with a privacy claim."""

    @property
    def claim(self) -> Claim:
        """What its author promises."""
        ...

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which the claim is made."""
        ...

    def release(self, data: Array, *, rng: np.random.Generator) -> Release:
        """Return one release on `data`."""
        ...


@runtime_checkable
class HasBatchedDraw(Protocol):
    """Many independent releases at once."""

    def draw(self, data: Array, size: int, *, rng: np.random.Generator) -> Release:
        """Return `size` independent releases, stacked along a leading axis."""
        ...


MatrixNorm: TypeAlias = Literal["frobenius", "upper-triangle", "nuclear"]


@dataclass(frozen=True)
class Sensitivity:
    """How far the statistics of two neighbours can lie apart, in a named norm.

    Parameters
    ----------
    value : float
        The proven bound.
    norm : {"frobenius", "upper-triangle", "nuclear"}
        For a symmetric matrix: the Frobenius norm; the l2 norm of the upper triangle
        with its diagonal; the sum of the absolute eigenvalues.
    """

    value: float
    norm: MatrixNorm

    def measure(self, difference: Array) -> Array:
        """Return the norm of symmetric matrices, shape (..., d, d) -> (...)."""
        match self.norm:
            case "frobenius":
                return np.asarray(np.linalg.norm(difference, axis=(-2, -1)))
            case "upper-triangle":
                return np.asarray(np.linalg.norm(np.triu(difference), axis=(-2, -1)))
            case "nuclear":
                return np.asarray(np.abs(np.linalg.eigvalsh(difference)).sum(axis=-1))


@runtime_checkable
class HasStatistic(Protocol):
    """A noiseless query that the mechanism perturbs."""

    def statistic(self, data: Array) -> Array:
        """Return the noiseless query on `data`, of the shape of one release."""
        ...

    @property
    def sensitivity(self) -> Sensitivity:
        """The proven sensitivity of the statistic under the mechanism's relation."""
        ...


@runtime_checkable
class HasPrivacyLoss(Protocol):
    """The exact log-density ratio of a release."""

    def privacy_loss(self, releases: Array, data: Array, other: Array) -> Array:
        """Return log(density on `data` / density on `other`) for each release.

        Infinite where exactly one of the densities is zero; shape (size,).
        """
        ...


@runtime_checkable
class HasSupport(Protocol):
    """Noise that does not reach everywhere."""

    def in_support(self, releases: Array, data: Array) -> NDArray[np.bool_]:
        """Say for each release whether it is possible on `data`; shape (size,)."""
        ...


@runtime_checkable
class HasExactClaim(Protocol):
    """A privacy profile known exactly."""

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the tightest claim that holds on this pair, both ways round."""
        ...


@runtime_checkable
class HasWorstCase(Protocol):
    """A canonical pair on which the mechanism's privacy is worst."""

    def worst_case(self, dimension: int = 2) -> Pair:
        """Return a worst neighbouring pair with rows of that dimension."""
        ...
