"""The entries in the catalogue of mechanisms that others wrote.

Expected to be refuted are those whose claim is false by what their source computes
(see the heads of the modules of the libraries), by so much that an audit shows it in
minutes. Of the others nothing is said beforehand: ``make third-party`` audits them.
"""

from functools import partial

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.third_party.diffprivlib import (
    DiffprivlibBingham,
    DiffprivlibGaussian,
    DiffprivlibGaussianAnalytic,
    DiffprivlibLaplace,
    DiffprivlibPCA,
)
from dpaudit.algorithms.third_party.opendp import (
    OpenDPCentredPCA,
    OpenDPEigenvector,
    OpenDPGaussian,
    OpenDPLaplace,
    OpenDPPCA,
)

__all__ = ["THIRD_PARTY"]

_entry = partial(Entry, family="third-party")

THIRD_PARTY = (
    _entry(
        name="diffprivlib-bingham",
        source="diffprivlib, mechanisms.Bingham",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=DiffprivlibBingham,
        falls=Fall(2_000),
        extra="diffprivlib",
    ),
    _entry(
        name="diffprivlib-pca",
        source="diffprivlib, models.PCA",
        summary="eigenvalues with bounded Laplace noise, eigenvectors from Bingham",
        constructor=DiffprivlibPCA,
        extra="diffprivlib",
    ),
    _entry(
        name="diffprivlib-laplace",
        source="diffprivlib, mechanisms.Laplace",
        summary="a sum with Laplace noise",
        constructor=DiffprivlibLaplace,
        extra="diffprivlib",
    ),
    _entry(
        name="diffprivlib-gaussian",
        source="diffprivlib, mechanisms.Gaussian",
        summary="a sum with Gaussian noise, classical constant",
        constructor=DiffprivlibGaussian,
        extra="diffprivlib",
    ),
    _entry(
        name="diffprivlib-gaussian-analytic",
        source="diffprivlib, mechanisms.GaussianAnalytic",
        summary="a sum with the least Gaussian noise",
        constructor=DiffprivlibGaussianAnalytic,
        extra="diffprivlib",
    ),
    _entry(
        name="opendp-eigenvector",
        source="OpenDP, extras.sklearn._make_eigenvector",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=OpenDPEigenvector,
        falls=Fall(2_000),
        extra="opendp",
    ),
    _entry(
        name="opendp-pca",
        source="OpenDP, sklearn.decomposition.PCA",
        summary="private mean, eigenvalues, eigenvectors; PCA(epsilon=1) claims 2",
        constructor=OpenDPPCA,
        epsilon=2.0,
        extra="opendp",
    ),
    _entry(
        name="opendp-pca-centred",
        source="OpenDP, sklearn.decomposition.make_private_pca",
        summary="eigenvalues (a tenth of epsilon) and eigenvectors of centred data",
        constructor=OpenDPCentredPCA,
        extra="opendp",
    ),
    _entry(
        name="opendp-laplace",
        source="OpenDP, measurements.make_laplace",
        summary="a sum with Laplace noise",
        constructor=OpenDPLaplace,
        extra="opendp",
    ),
    _entry(
        name="opendp-gaussian",
        source="OpenDP, measurements.make_gaussian",
        summary="a sum with Gaussian noise, by way of zero-concentrated DP",
        constructor=OpenDPGaussian,
        extra="opendp",
    ),
)
"""Every mechanism of another library."""
