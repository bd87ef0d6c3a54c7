"""The entries in the catalogue of mechanisms that perturb the second-moment matrix."""

from functools import partial

from dpaudit.algorithms.covariance import entrywise, symmetric_noise
from dpaudit.algorithms.covariance.k_norm import KNormCovariance
from dpaudit.algorithms.covariance.wishart_approximate import WishartApproximate
from dpaudit.algorithms.entries import Entry, Refutation

__all__ = ["COVARIANCE"]

_entry = partial(Entry, family="covariance", released="a d × d matrix")

COVARIANCE = (
    _entry(
        name="analyze-gauss",
        source="Dwork et al. 2014, Algorithm 1; analytic calibration by dpaudit",
        summary="i.i.d. Gaussian upper triangle, smallest proven noise",
        constructor=entrywise.AnalyzeGauss.calibrated,
    ),
    _entry(
        name="analyze-gauss-published",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 1",
        summary="i.i.d. Gaussian upper triangle, classical constant",
        constructor=entrywise.AnalyzeGauss.as_published,
    ),
    _entry(
        name="goe-gaussian",
        source="Balle, Wang, ICML 2018 (Gaussian noise); as a matrix by dpaudit",
        summary="rotation-invariant Gaussian noise, smallest proven noise",
        constructor=entrywise.GOEGaussian.calibrated,
    ),
    _entry(
        name="symmetric-noise",
        source="Imtiaz, Sarwate, ICASSP 2016, Algorithm 1",
        summary="one Wishart matrix; the published claim is false",
        constructor=symmetric_noise.SymmetricNoise.as_published,
        refutation=Refutation(300),
    ),
    _entry(
        name="symmetrised-wishart",
        source="dpaudit",
        summary="difference of two Wishart matrices, pure DP",
        constructor=symmetric_noise.SymmetrisedWishart.calibrated,
    ),
    _entry(
        name="wishart-approximate",
        source="Sheffet 2019 (the noise); exact accountant by dpaudit",
        summary="one Wishart matrix with many degrees of freedom, positive definite",
        constructor=WishartApproximate.calibrated,
    ),
    _entry(
        name="wishart-sheffet",
        source="Sheffet, ALT 2019",
        summary="one Wishart matrix, published degrees; very loose",
        constructor=WishartApproximate.as_published,
    ),
    _entry(
        name="laplace-covariance",
        source="Dwork et al., TCC 2006; exact l1 sensitivities by dpaudit",
        summary="i.i.d. Laplace upper triangle, pure DP",
        constructor=entrywise.LaplaceCovariance.calibrated,
    ),
    _entry(
        name="k-norm-covariance",
        source="Hardt, Talwar, STOC 2010; d'Orsi, Novikov, ALT 2026; draws by dpaudit",
        summary="noise shaped like what a row can do, drawn exactly, pure DP",
        constructor=KNormCovariance.calibrated,
    ),
)
