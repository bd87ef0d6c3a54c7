"""Differentially private algorithms, one family per file, and their catalogue."""

from dpaudit.algorithms.catalogue import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.covariance.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.covariance.goe_gaussian import GOEGaussian
from dpaudit.algorithms.covariance.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.covariance.symmetrised_wishart import SymmetrisedWishart

__all__ = [
    "CATALOGUE",
    "AnalyzeGauss",
    "Entry",
    "GOEGaussian",
    "SymmetricNoise",
    "SymmetrisedWishart",
    "build",
    "entry",
    "names_of",
]
