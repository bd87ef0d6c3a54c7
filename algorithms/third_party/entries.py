"""The entries in the catalogue of mechanisms that others wrote.

Expected to be refuted are those whose claim is false by what their source computes
(see the heads of the modules of the libraries), by so much that an audit shows it in
minutes. Of the others nothing is said beforehand: ``make third-party`` audits them.
"""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.third_party import diffprivlib, opendp

__all__ = ["THIRD_PARTY"]

_diffprivlib = partial(Entry, family="third-party", extra="diffprivlib")
_opendp = partial(Entry, family="third-party", extra="opendp")

THIRD_PARTY = (
    _diffprivlib(
        name="diffprivlib-bingham",
        source="diffprivlib, mechanisms.Bingham",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=diffprivlib.DiffprivlibBingham,
        refutation=Refutation(2_000),
    ),
    _diffprivlib(
        name="diffprivlib-pca",
        source="diffprivlib, models.PCA",
        summary="eigenvalues with bounded Laplace noise, eigenvectors from Bingham",
        constructor=diffprivlib.DiffprivlibPCA,
    ),
    _diffprivlib(
        name="diffprivlib-laplace",
        source="diffprivlib, mechanisms.Laplace",
        summary="a sum with Laplace noise",
        constructor=diffprivlib.DiffprivlibLaplace,
    ),
    _diffprivlib(
        name="diffprivlib-gaussian",
        source="diffprivlib, mechanisms.Gaussian",
        summary="a sum with Gaussian noise, classical constant",
        constructor=diffprivlib.DiffprivlibGaussian,
    ),
    _diffprivlib(
        name="diffprivlib-gaussian-analytic",
        source="diffprivlib, mechanisms.GaussianAnalytic",
        summary="a sum with the least Gaussian noise",
        constructor=diffprivlib.DiffprivlibGaussianAnalytic,
    ),
    _opendp(
        name="opendp-eigenvector",
        source="OpenDP, extras.sklearn._make_eigenvector",
        summary="first eigenvector; its rejection sampler draws from another law",
        constructor=opendp.OpenDPEigenvector,
        refutation=Refutation(2_000),
    ),
    _opendp(
        name="opendp-pca",
        source="OpenDP, sklearn.decomposition.PCA",
        summary="private mean, eigenvalues, eigenvectors; PCA(epsilon=1) claims 2",
        constructor=opendp.OpenDPPCA,
        epsilon=2.0,
    ),
    _opendp(
        name="opendp-pca-centred",
        source="OpenDP, sklearn.decomposition.make_private_pca",
        summary="eigenvalues (a tenth of epsilon) and eigenvectors of centred data",
        constructor=opendp.OpenDPCentredPCA,
    ),
    _opendp(
        name="opendp-laplace",
        source="OpenDP, measurements.make_laplace",
        summary="a sum with Laplace noise",
        constructor=opendp.OpenDPLaplace,
    ),
    _opendp(
        name="opendp-gaussian",
        source="OpenDP, measurements.make_gaussian",
        summary="a sum with Gaussian noise, by way of zero-concentrated DP",
        constructor=opendp.OpenDPGaussian,
    ),
)
"""Every mechanism of another library."""
