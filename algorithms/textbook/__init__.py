"""Textbook mechanisms with known truth: what an audit is measured on.

The suite of Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper: black-box discovery of
differential privacy violations using classifiers*, IEEE S&P 2021, with its parameters,
plus the Gaussian mechanism, randomised response, and mechanisms that add a fraction of
the noise that they claim. Each states its `true_epsilon` and proves it.
"""

from dpaudit.algorithms.textbook.base import PureTextbookMechanism, TextbookMechanism
from dpaudit.algorithms.textbook.counts import (
    CountingMechanism,
    NoisyHist1,
    NoisyHist2,
    PrefixSum,
    TruncatedGeometric,
    count_patterns,
    neighbours_with,
)
from dpaudit.algorithms.textbook.noisy_max import (
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
)
from dpaudit.algorithms.textbook.randomised_response import (
    OneTimeRappor,
    RandomisedResponse,
    Rappor,
)
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace, LaplaceParallel
from dpaudit.algorithms.textbook.svt import (
    SVT1,
    SVT2,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    NumericalSVT,
    SVT34Parallel,
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
