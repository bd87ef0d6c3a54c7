"""The entries in the catalogue of mechanisms that others wrote.

Expected to be refuted are those whose claim is false by what their source computes
(see the heads of the modules of the libraries), by so much that an audit shows it in
minutes. Of the others nothing is said beforehand: ``make third-party`` audits them.
"""

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
from dpaudit.neighbours import Relation

__all__ = ["THIRD_PARTY"]

THIRD_PARTY = (
    Entry(
        name="diffprivlib-bingham",
        family="third-party",
        source="diffprivlib, mechanisms.Bingham",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=DiffprivlibBingham,
        approximate=False,
        falls=Fall(2_000),
        relations=(Relation.REPLACE_ONE,),
        extra="diffprivlib",
    ),
    Entry(
        name="diffprivlib-pca",
        family="third-party",
        source="diffprivlib, models.PCA",
        summary="eigenvalues with bounded Laplace noise, eigenvectors from Bingham",
        constructor=DiffprivlibPCA,
        approximate=False,
        relations=(Relation.REPLACE_ONE,),
        has_components=True,
        extra="diffprivlib",
    ),
    Entry(
        name="diffprivlib-laplace",
        family="third-party",
        source="diffprivlib, mechanisms.Laplace",
        summary="a sum with Laplace noise",
        constructor=DiffprivlibLaplace,
        approximate=False,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra="diffprivlib",
    ),
    Entry(
        name="diffprivlib-gaussian",
        family="third-party",
        source="diffprivlib, mechanisms.Gaussian",
        summary="a sum with Gaussian noise, classical constant",
        constructor=DiffprivlibGaussian,
        approximate=True,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra="diffprivlib",
    ),
    Entry(
        name="diffprivlib-gaussian-analytic",
        family="third-party",
        source="diffprivlib, mechanisms.GaussianAnalytic",
        summary="a sum with the least Gaussian noise",
        constructor=DiffprivlibGaussianAnalytic,
        approximate=True,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra="diffprivlib",
    ),
    Entry(
        name="opendp-eigenvector",
        family="third-party",
        source="OpenDP, extras.sklearn._make_eigenvector",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=OpenDPEigenvector,
        approximate=False,
        falls=Fall(2_000),
        relations=(Relation.REPLACE_ONE,),
        extra="opendp",
    ),
    Entry(
        name="opendp-pca",
        family="third-party",
        source="OpenDP, sklearn.decomposition.PCA",
        summary="private mean, eigenvalues, eigenvectors; PCA(epsilon=1) claims 2",
        constructor=OpenDPPCA,
        approximate=False,
        epsilon=2.0,
        relations=(Relation.REPLACE_ONE,),
        has_components=True,
        extra="opendp",
    ),
    Entry(
        name="opendp-pca-centred",
        family="third-party",
        source="OpenDP, sklearn.decomposition.make_private_pca",
        summary="eigenvalues (a tenth of epsilon) and eigenvectors of centred data",
        constructor=OpenDPCentredPCA,
        approximate=False,
        relations=(Relation.REPLACE_ONE,),
        has_components=True,
        extra="opendp",
    ),
    Entry(
        name="opendp-laplace",
        family="third-party",
        source="OpenDP, measurements.make_laplace",
        summary="a sum with Laplace noise",
        constructor=OpenDPLaplace,
        approximate=False,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra="opendp",
    ),
    Entry(
        name="opendp-gaussian",
        family="third-party",
        source="OpenDP, measurements.make_gaussian",
        summary="a sum with Gaussian noise, by way of zero-concentrated DP",
        constructor=OpenDPGaussian,
        approximate=True,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra="opendp",
    ),
)
"""Every mechanism of another library."""
