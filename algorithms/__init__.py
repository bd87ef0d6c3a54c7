"""Differentially private algorithms, one family per file, and their catalogue."""

from dpaudit.algorithms.catalogue import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.covariance.analyze_gauss import AnalyzeGauss
from dpaudit.algorithms.covariance.goe_gaussian import GOEGaussian
from dpaudit.algorithms.covariance.laplace_covariance import LaplaceCovariance
from dpaudit.algorithms.covariance.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.covariance.symmetrised_wishart import SymmetrisedWishart
from dpaudit.algorithms.covariance.wishart_approximate import WishartApproximate
from dpaudit.algorithms.subspace.deflation import DeflationExponential
from dpaudit.algorithms.subspace.exact_exponential import ExactExponential
from dpaudit.algorithms.subspace.exponential import ExponentialMechanism
from dpaudit.algorithms.subspace.gibbs import GibbsExponential
from dpaudit.algorithms.subspace.laplace_power_method import LaplacePowerMethod
from dpaudit.algorithms.subspace.power_method import PowerMethod
from dpaudit.algorithms.subspace.private_subspace import PrivateSubspace
from dpaudit.algorithms.subspace.published_private_subspace import (
    PublishedPrivateSubspace,
)

__all__ = [
    "CATALOGUE",
    "AnalyzeGauss",
    "DeflationExponential",
    "Entry",
    "ExactExponential",
    "ExponentialMechanism",
    "GOEGaussian",
    "GibbsExponential",
    "LaplaceCovariance",
    "LaplacePowerMethod",
    "PowerMethod",
    "PrivateSubspace",
    "PublishedPrivateSubspace",
    "SymmetricNoise",
    "SymmetrisedWishart",
    "WishartApproximate",
    "build",
    "entry",
    "names_of",
]
