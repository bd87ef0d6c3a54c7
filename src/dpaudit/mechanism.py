"""The protocol that mechanisms implement, and the optional capabilities beside it.

What is audited is a `Mechanism`, or a plain callable ``(data, rng) -> release``.
A capability is one small protocol, discovered with `isinstance`; an algorithm has
those that its mathematics supports and no others. A capability that holds only in
some cases raises `~dpaudit.errors.UnsupportedError` in the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array, Release
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair, Relation

__all__ = [
    "HasBatchedDraw",
    "HasCanonicalPairs",
    "HasComponents",
    "HasExactClaim",
    "HasGaussianSteps",
    "HasPrivacyLoss",
    "HasStatistic",
    "HasSupport",
    "HasTranscript",
    "HasTranscriptLoss",
    "HasTrueEpsilon",
    "HasWorstCase",
    "MatrixNorm",
    "Mechanism",
    "Release",
    "Sensitivity",
]


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


MatrixNorm: TypeAlias = Literal[
    "frobenius", "upper-triangle", "upper-triangle-l1", "nuclear", "larger-part"
]


@dataclass(frozen=True)
class Sensitivity:
    """How far the statistics of two neighbours can lie apart, in a named norm.

    Parameters
    ----------
    value : float
        The proven bound.
    norm : str
        One of `MatrixNorm`. For a symmetric matrix: the Frobenius norm; the l2 norm of
        the upper triangle with its diagonal; the l1 norm of the same, divided by the
        (d + 1)/2 that a matrix x x^T with ||x|| = 1 can reach; the sum of the absolute
        eigenvalues; the larger of the sums of the positive and of the negative ones.
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
            case "upper-triangle-l1":
                total = np.abs(np.triu(difference)).sum(axis=(-2, -1))
                return np.asarray(total / ((difference.shape[-1] + 1) / 2))
            case "nuclear":
                return np.asarray(np.abs(np.linalg.eigvalsh(difference)).sum(axis=-1))
            case "larger-part":
                values = np.linalg.eigvalsh(difference)
                positive = np.maximum(values, 0).sum(axis=-1)
                return np.asarray(np.maximum(positive, positive - values.sum(axis=-1)))


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
    """The tightest claim of its form, known without sampling."""

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the tightest claim that holds on this pair, both ways round."""
        ...


@runtime_checkable
class HasWorstCase(Protocol):
    """A canonical pair on which the mechanism's privacy is worst."""

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a worst neighbouring pair.

        Parameters
        ----------
        dimension : int, optional
            Length of a row. By default one of the mechanism's own choosing: the only
            one that it takes, or the least in which its privacy is at its worst, or
            the one for which it is usually published. Its own docstring says which.

        Raises
        ------
        InputError
            If rows cannot have that length.
        UnsupportedError
            If it takes more rows than fit into memory.
        """
        ...


@runtime_checkable
class HasCanonicalPairs(Protocol):
    """Pairs on which the mechanism's privacy is known, or suspected, to be worst."""

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return neighbouring pairs, the most promising first."""
        ...


@runtime_checkable
class HasComponents(Protocol):
    """Releases from which principal components follow without the data."""

    def components(self, releases: Array, n_components: int) -> Array:
        """Return orthonormal bases of the private principal subspaces.

        Parameters
        ----------
        releases : ndarray, shape (..., *release)
        n_components : int
            k.

        Returns
        -------
        ndarray, shape (..., d, k)
            NaN where a release says that there is none.

        Raises
        ------
        InputError
            If the releases do not determine that many components.
        """
        ...


@runtime_checkable
class HasTrueEpsilon(Protocol):
    """Privacy that is known over all neighbours, apart from the claim."""

    @property
    def true_epsilon(self) -> float:
        """The smallest true epsilon at the claim's delta; infinite if there is none."""
        ...


@runtime_checkable
class HasTranscript(Protocol):
    """Every noisy value that the privacy proof releases on the way."""

    def transcript(
        self, data: Array, size: int, *, rng: np.random.Generator
    ) -> Mapping[str, Array]:
        """Return `size` independent transcripts: named values, trials leading."""
        ...


@runtime_checkable
class HasTranscriptLoss(Protocol):
    """A transcript whose log-density ratio is known."""

    def transcript_loss(
        self, transcript: Mapping[str, Array], data: Array, other: Array
    ) -> Array:
        """Return log(density on `data` / density on `other`) for each transcript.

        Infinite where exactly one of the densities is zero; shape (size,).

        Raises
        ------
        UnsupportedError
            If it is not known on this pair.
        """
        ...


@runtime_checkable
class HasGaussianSteps(Protocol):
    """A transcript whose values are Gaussian, given the values before them."""

    def step_means(
        self, transcript: Mapping[str, Array], data: Array
    ) -> Mapping[str, Array]:
        """Return the conditional mean of each noisy value on `data`.

        Parameters
        ----------
        transcript : mapping of ndarray
            Transcripts, each value of shape (size, ...).
        data : ndarray
            The dataset on which the conditional means are wanted; the transcripts may
            have been made on another one.

        Returns
        -------
        mapping of ndarray
            Under the same names, and of the same shapes; names of values that are
            functions of others are left out.
        """
        ...

    @property
    def step_scales(self) -> Mapping[str, float]:
        """The standard deviation of each entry, > 0, for the names of the means."""
        ...
