"""The entries in the catalogue of mechanisms that perturb the second-moment matrix."""

from dpaudit.algorithms.covariance.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.covariance.goe_gaussian import GOEGaussian
from dpaudit.algorithms.covariance.laplace_covariance import LaplaceCovariance
from dpaudit.algorithms.covariance.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.covariance.symmetrised_wishart import SymmetrisedWishart
from dpaudit.algorithms.covariance.wishart_approximate import WishartApproximate
from dpaudit.algorithms.entries import Entry, Fall

__all__ = ["COVARIANCE"]

COVARIANCE = (
    Entry(
        name="analyze-gauss",
        family="covariance",
        source="Dwork et al. 2014, Algorithm 1; analytic calibration by dpaudit",
        summary="i.i.d. Gaussian upper triangle, smallest proven noise",
        constructor=AnalyzeGauss.calibrated,
        approximate=True,
    ),
    Entry(
        name="analyze-gauss-published",
        family="covariance",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 1",
        summary="i.i.d. Gaussian upper triangle, classical constant",
        constructor=AnalyzeGauss.as_published,
        approximate=True,
    ),
    Entry(
        name="goe-gaussian",
        family="covariance",
        source="dpaudit",
        summary="rotation-invariant Gaussian noise, smallest proven noise",
        constructor=GOEGaussian.calibrated,
        approximate=True,
    ),
    Entry(
        name="symmetric-noise",
        family="covariance",
        source="Imtiaz, Sarwate, ICASSP 2016, Algorithm 1",
        summary="one Wishart matrix; the published claim is false",
        constructor=SymmetricNoise.as_published,
        approximate=False,
        falls=Fall(300),
    ),
    Entry(
        name="symmetrised-wishart",
        family="covariance",
        source="dpaudit",
        summary="difference of two Wishart matrices, pure DP",
        constructor=SymmetrisedWishart.calibrated,
        approximate=False,
    ),
    Entry(
        name="wishart-approximate",
        family="covariance",
        source="Sheffet 2019 (the noise); exact accountant by dpaudit",
        summary="one Wishart matrix with many degrees of freedom, positive definite",
        constructor=WishartApproximate.calibrated,
        approximate=True,
    ),
    Entry(
        name="wishart-sheffet",
        family="covariance",
        source="Sheffet, ALT 2019",
        summary="one Wishart matrix, published degrees; very loose",
        constructor=WishartApproximate.as_published,
        approximate=True,
    ),
    Entry(
        name="laplace-covariance",
        family="covariance",
        source="Dwork et al., TCC 2006; exact l1 sensitivities by dpaudit",
        summary="i.i.d. Laplace upper triangle, pure DP",
        constructor=LaplaceCovariance.calibrated,
        approximate=False,
    ),
)
