"""Textbook mechanisms with known truth: what an audit is measured on.

The suite of Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper: black-box discovery of
differential privacy violations using classifiers*, IEEE S&P 2021, with its parameters,
plus the Gaussian mechanism, randomised response, and mechanisms that add a fraction of
the noise that they claim. Each states its `true_epsilon` and proves it.
"""

from dpaudit.algorithms.textbook.base import PureTextbookMechanism, TextbookMechanism
from dpaudit.algorithms.textbook.counts import (
    CountingMechanism,
    count_patterns,
    neighbours_with,
)
from dpaudit.algorithms.textbook.gaussian import Gaussian
from dpaudit.algorithms.textbook.geometric import TruncatedGeometric
from dpaudit.algorithms.textbook.histograms import NoisyHist1, NoisyHist2
from dpaudit.algorithms.textbook.laplace import Laplace
from dpaudit.algorithms.textbook.noisy_max import (
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
)
from dpaudit.algorithms.textbook.parallel import LaplaceParallel, SVT34Parallel
from dpaudit.algorithms.textbook.prefix_sum import PrefixSum
from dpaudit.algorithms.textbook.randomised_response import RandomisedResponse
from dpaudit.algorithms.textbook.rappor import OneTimeRappor, Rappor
from dpaudit.algorithms.textbook.svt import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    NumericalSVT,
)

__all__ = [
    "SVT1",
    "SVT2",
    "SVT3",
    "SVT4",
    "SVT5",
    "SVT6",
    "CountingMechanism",
    "Gaussian",
    "Laplace",
    "LaplaceParallel",
    "NoisyHist1",
    "NoisyHist2",
    "NoisyMax1",
    "NoisyMax2",
    "NoisyMax3",
    "NoisyMax4",
    "NumericalSVT",
    "OneTimeRappor",
    "PrefixSum",
    "PureTextbookMechanism",
    "RandomisedResponse",
    "Rappor",
    "SVT34Parallel",
    "TextbookMechanism",
    "TruncatedGeometric",
    "count_patterns",
    "neighbours_with",
]
