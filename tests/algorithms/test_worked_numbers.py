"""Numbers of single constructors, worked out by hand or from their source."""

import numpy as np
import pytest

from dpaudit.algorithms.covariance.coinpress import PublishedCoinPress
from dpaudit.algorithms.covariance.entrywise import GOEGaussian, LaplaceCovariance
from dpaudit.algorithms.estimators.norm_quantile import (
    GaussianNormQuantile,
    LaplaceNormQuantile,
)
from dpaudit.algorithms.estimators.private_mean import GaussianMean, LaplaceMean
from dpaudit.algorithms.robust.private_mechanisms import (
    PrivateGradientReaper,
    PrivateSGGD,
)
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.mean_estimation import mean_with_constant_8
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja
from dpaudit.algorithms.subspace.power_method import LaplacePowerMethod
from dpaudit.algorithms.training.dp_sgd import DPSGD

PUBLISHED = (0.8, 2000**-0.5)
TARGET = (1.0, 1e-5)

NUMBERS = {
    "CoinPress's rho": (
        lambda: PublishedCoinPress.as_published(*TARGET).mu ** 2 / 2,
        0.0208,
    ),
    "GOE": (lambda: GOEGaussian.calibrated(*TARGET).sigma, 2.638),
    "Laplace covariance, d = 3": (
        lambda: LaplaceCovariance.calibrated(0.5).scale(3),
        4.0,
    ),
    "Laplace covariance, d = 100": (
        lambda: LaplaceCovariance.calibrated(0.5).scale(100),
        101.0,
    ),
    "Laplace quantile": (
        lambda: LaplaceNormQuantile.calibrated(0.5, relation="replace-one").scale,
        20.0,
    ),
    "SGGD's rate": (
        lambda: PrivateSGGD.calibrated(*TARGET, n_components=2).batches.rate,
        0.112,
    ),
    "SGGD as published": (
        lambda: (
            PrivateSGGD.as_published(*PUBLISHED, iterations=2000).noise_scale(2000) / 20
        ),
        0.000545,
    ),
    "gradient REAPER": (
        lambda: PrivateGradientReaper.calibrated(*TARGET, n_components=2).noise.sigma,
        16.68,
    ),
    "gradient REAPER as published": (
        lambda: (
            PrivateGradientReaper.as_published(*PUBLISHED, iterations=2000).noise.sigma
            / 2000
        ),
        1.8,
    ),
    "a split's mu": (lambda: GaussianSplit(1.0, 1e-6).noise(20).mu, 0.23),
    "a split's counts": (
        lambda: GaussianSplit(1.0, 1e-6).noise(20).counts.scale,
        120.0,
    ),
    "a split's threshold": (
        lambda: GaussianSplit(1.0, 1e-6).noise(20).counts.threshold,
        689.0,
    ),
    "the mean with constant 8": (
        lambda: mean_with_constant_8(2.0, 1e-5).split.noise(1).mu,
        0.729,
    ),
    "a mean with normal noise": (
        lambda: GaussianMean.calibrated(*TARGET, row_norm=2.0).scale(dimension=16),
        8.342,
    ),
    "a mean with Laplace noise": (
        lambda: LaplaceMean.calibrated(1.0, row_norm=2.0).scale(dimension=16),
        2.236,
    ),
    "DP-SGD": (lambda: DPSGD.calibrated(*TARGET).multiplier, 2.93),
    "block Oja": (lambda: BlockOja.calibrated(*TARGET, n_components=2).sigma, 5.2759),
    "Laplace power method": (
        lambda: (
            LaplacePowerMethod.calibrated(0.5, n_components=4, iterations=3).unit_scale
        ),
        12.0,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_number(name):
    value, expected = NUMBERS[name]
    assert value() == pytest.approx(expected, rel=5e-3)


def test_harmonic_steps_divide_by_the_offset_and_the_step():
    np.testing.assert_array_equal(
        HarmonicSteps(6.0, offset=1.0).sizes(3), [3.0, 2.0, 1.5]
    )


def test_the_private_median_of_norms_is_near_the_median():
    rows = np.random.default_rng(0).standard_normal((10_000, 25))
    median = np.median(np.linalg.norm(rows, axis=1))
    release = GaussianNormQuantile.from_mu(0.05, quantile=0.5).release(
        rows, rng=np.random.default_rng(1)
    )
    assert release >= median
    assert release < 1.3 * median
