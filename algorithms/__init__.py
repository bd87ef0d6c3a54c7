"""Differentially private algorithms, one family per file, and their catalogue."""

from dpaudit.algorithms.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.catalogue import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.goe_gaussian import GOEGaussian
from dpaudit.algorithms.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.symmetrised_wishart import SymmetrisedWishart

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
