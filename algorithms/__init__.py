"""Differentially private algorithms, one family per folder, and their catalogue."""

from dpaudit.algorithms.catalogue import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.covariance.coinpress import CoinPress, PublishedCoinPress
from dpaudit.algorithms.covariance.entrywise import (
    AnalyzeGauss,
    GOEGaussian,
    LaplaceCovariance,
)
from dpaudit.algorithms.covariance.k_norm import KNormCovariance
from dpaudit.algorithms.covariance.separate import SeparateCovariance
from dpaudit.algorithms.covariance.symmetric_noise import (
    SymmetricNoise,
    SymmetrisedWishart,
)
from dpaudit.algorithms.covariance.wishart_approximate import WishartApproximate
from dpaudit.algorithms.online.doubling import DoublingOnlinePCA
from dpaudit.algorithms.online.factorised import FactorisedOnlinePCA, FactorisedSums
from dpaudit.algorithms.online.tree_aggregation import (
    FollowPerturbedLeader,
    OnlinePCA,
    TreeAggregation,
)
from dpaudit.algorithms.robust.ggd import (
    FastMedianSubspace,
    GeodesicDescent,
    IterativeReaper,
    MinibatchGeodesicDescent,
)
from dpaudit.algorithms.robust.private_mechanisms import (
    PrivateGGD,
    PrivateGradientReaper,
    PrivateMirrorReaper,
    PrivateSGGD,
    PrivateStochasticGradientReaper,
    PrivateStochasticMirrorReaper,
)
from dpaudit.algorithms.streaming.dp_pca import DPPCA, PublishedDPPCA, RankKDPPCA
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.moments import Moments
from dpaudit.algorithms.streaming.oja import Oja, PrivateOja
from dpaudit.algorithms.streaming.private_histogram import PrivateHistogram
from dpaudit.algorithms.streaming.step_size_search import StepSizeSearch
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.streaming.two_stage_pca import TwoStagePCA
from dpaudit.algorithms.subspace.exact_exponential import (
    ExactExponential,
    ExponentialMechanism,
)
from dpaudit.algorithms.subspace.exponential import DeflationExponential
from dpaudit.algorithms.subspace.gibbs import GibbsExponential
from dpaudit.algorithms.subspace.power_method import LaplacePowerMethod, PowerMethod
from dpaudit.algorithms.subspace.published_private_subspace import (
    PrivateSubspace,
    PublishedPrivateSubspace,
)
from dpaudit.algorithms.subspace.pure_residual_step import PureResidualStepPCA
from dpaudit.algorithms.subspace.residual_step import ResidualStepPCA
from dpaudit.algorithms.training.dp_sgd import DPSGD

__all__ = [
    "CATALOGUE",
    "DPPCA",
    "DPSGD",
    "AnalyzeGauss",
    "BlockOja",
    "CoinPress",
    "DeflationExponential",
    "DoublingOnlinePCA",
    "Entry",
    "ExactExponential",
    "ExponentialMechanism",
    "FactorisedOnlinePCA",
    "FactorisedSums",
    "FastMedianSubspace",
    "FollowPerturbedLeader",
    "GOEGaussian",
    "GeodesicDescent",
    "GibbsExponential",
    "IterativeReaper",
    "KNormCovariance",
    "LaplaceCovariance",
    "LaplacePowerMethod",
    "MeanEstimation",
    "MinibatchGeodesicDescent",
    "MinibatchOja",
    "Moments",
    "Oja",
    "OnlinePCA",
    "PowerMethod",
    "PrivateGGD",
    "PrivateGradientReaper",
    "PrivateHistogram",
    "PrivateMirrorReaper",
    "PrivateOja",
    "PrivateSGGD",
    "PrivateStochasticGradientReaper",
    "PrivateStochasticMirrorReaper",
    "PrivateSubspace",
    "PublishedCoinPress",
    "PublishedDPPCA",
    "PublishedPrivateSubspace",
    "PureResidualStepPCA",
    "RankKDPPCA",
    "ResidualStepPCA",
    "SeparateCovariance",
    "StepSizeSearch",
    "SymmetricNoise",
    "SymmetrisedWishart",
    "TopEigenvalue",
    "TreeAggregation",
    "TwoStagePCA",
    "WishartApproximate",
    "build",
    "entry",
    "names_of",
]
