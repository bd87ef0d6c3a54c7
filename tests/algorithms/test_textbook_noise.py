"""Mechanisms with Laplace or Gaussian noise on sums.

Type-I error: 1e-9 per sampler test, fewer than 30 of them, all seeded.
"""

import mpmath
import numpy as np
import pytest
from refusals import refused
from scipy import stats
from textbook_oracles import assert_distribution, assert_frequencies, draws, integrate

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, UnsupportedError
from dpaudit.algorithms.shared.bases import laplace_noise
from dpaudit.algorithms.textbook.counts import NoisyHist1, NoisyHist2, PrefixSum
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace, LaplaceParallel

SIZE = 20_000


def test_laplace_noise_and_releases():
    noise = laplace_noise((SIZE, 2), 3.0, rng=np.random.default_rng(0))
    for column in noise.T:
        assert_distribution(column, stats.laplace(scale=3.0).cdf)
    # Independent entries: the signs agree half of the time.
    agree = np.count_nonzero(noise[:, 0] * noise[:, 1] > 0)
    assert_frequencies([agree], [0.5], SIZE)
    mechanism = Laplace(0.5, sensitivity=2.0)
    rows = [1.5, 7.0, -1.0]  # clipped to 1.5, 2, 0
    law = stats.laplace(loc=3.5, scale=4.0)
    assert_distribution(draws(mechanism, rows, size=SIZE), law.cdf)
    assert mechanism.claim == PureDP(0.5)
    column = np.reshape(rows, (3, 1))
    np.testing.assert_array_equal(mechanism.answers(column), mechanism.answers(rows))


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("sensitivity", [1.0, 3.0])
def test_laplace_truth(factor, sensitivity):
    mechanism = Laplace.under_noised(0.7, factor=factor, sensitivity=sensitivity)
    pair = mechanism.worst_case()
    one, two = (
        stats.laplace(loc=rows.sum(), scale=mechanism.scale)
        for rows in (pair.data, pair.neighbour)
    )
    at = np.linspace(-30, 30, 10_001)
    loss = mechanism.privacy_loss(at, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, one.logpdf(at) - two.logpdf(at), atol=1e-12)
    assert np.abs(loss).max() == pytest.approx(mechanism.true_epsilon, rel=1e-12)
    assert mechanism.true_epsilon == pytest.approx(0.7 / factor, rel=1e-12)
    assert loss[at <= 0] == pytest.approx(mechanism.true_epsilon, rel=1e-12)


def divergence(one, two, epsilon, kinks, scale):
    """Return the hockey-stick divergence of two densities by quadrature."""

    def excess(y):
        return np.maximum(one.pdf(y) - np.exp(epsilon) * two.pdf(y), 0.0)

    return integrate(excess, kinks, (scale,))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laplace_profile(epsilon):
    mechanism = Laplace(epsilon)
    pair = mechanism.worst_case()
    exact = mechanism.exact_claim(pair)
    one, two = (stats.laplace(loc=m, scale=1 / epsilon) for m in (0, 1))
    for at in np.linspace(0, epsilon, 7):
        # The loss falls from epsilon to -epsilon on [0, 1], and equals `at` once.
        edge = (1 - at / epsilon) / 2
        expected = divergence(one, two, at, [0.0, edge, 1.0], 1 / epsilon)
        slack = (epsilon / 2000) ** 2
        assert expected - 1e-12 <= float(exact.delta_at(at)) <= expected + slack
    assert exact.epsilon_at(0.0) == pytest.approx(epsilon, rel=1e-12)
    # The profile of Laplace noise lies below that of its pure epsilon.
    assert exact.delta_at(0.0) < PureDP(epsilon).delta_at(0.0)


@pytest.mark.parametrize(("kind", "scale"), [(NoisyHist1, 4.0), (NoisyHist2, 0.25)])
def test_histogram_releases(kind, scale):
    mechanism = kind(0.25)
    rows = [[1.0, 0.0, 0.0], [0.0, 3.0, 1.0], [0.2, -0.3, 0.0]]
    sums = [1.2, 0.75 - 0.3, 0.25]  # the second row has l1 norm 4
    np.testing.assert_allclose(mechanism.answers(rows), sums)
    releases = draws(mechanism, rows, size=SIZE)
    for column, centre in zip(releases.T, sums, strict=True):
        assert_distribution(column, stats.laplace(loc=centre, scale=scale).cdf)
    assert_frequencies([np.count_nonzero((releases > sums).all(axis=1))], [1 / 8], SIZE)


@pytest.mark.parametrize(("kind", "truth"), [(NoisyHist1, 0.1), (NoisyHist2, 10.0)])
@pytest.mark.parametrize("bins", [1, 5])
def test_histogram_truth(kind, truth, bins):
    mechanism = kind(0.1)
    assert mechanism.true_epsilon == pytest.approx(truth, rel=1e-12)
    pair = mechanism.worst_case(bins)
    releases = draws(mechanism, pair.data, size=1000)
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    assert np.abs(loss).max() <= truth * (1 + 1e-12)
    np.testing.assert_allclose(loss[releases[:, 0] <= 0], truth, rtol=1e-12)
    assert mechanism.exact_claim(pair).epsilon_at(0.0) == pytest.approx(
        truth, rel=1e-12
    )


def test_copies_and_running_totals():
    mechanism = LaplaceParallel(0.4, copies=4)
    releases = draws(mechanism, [0.5, 2.0], size=SIZE)
    for column in releases.T:
        assert_distribution(column, stats.laplace(loc=1.5, scale=10.0).cdf)
    assert_frequencies([np.count_nonzero((releases > 1.5).all(axis=1))], [1 / 16], SIZE)
    mechanism = PrefixSum(0.5, queries=3)
    rows = [[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    releases = draws(mechanism, rows, size=SIZE)
    increments = np.diff(releases, axis=1, prepend=0.0)
    for column, centre in zip(increments.T, (2, 0, 1), strict=True):
        assert_distribution(column, stats.laplace(loc=centre, scale=2.0).cdf)
    # The first total is not an increment: two of them are correlated.
    assert np.corrcoef(releases[:, 0], releases[:, 2])[0, 1] > 0.5
    rows = np.array([[0.5, 0.5]])
    with pytest.raises(UnsupportedError, match="got 2 answers"):
        NoisyHist1().exact_claim(Pair(np.empty((0, 2)), rows))
    with pytest.raises(UnsupportedError, match="1000 scales"):
        NoisyHist2(0.001).exact_claim(NoisyHist2(0.001).worst_case())


@pytest.mark.parametrize("sensitivity", [1.0, 2.5])
def test_copies_share_epsilon(sensitivity):
    mechanism = LaplaceParallel(sensitivity=sensitivity)
    pair = mechanism.worst_case()
    assert mechanism.scale == pytest.approx(200.0 * sensitivity, rel=1e-12)
    low, high = np.full((1, 20), -1.0), np.full((1, 20), 3.0)
    loss = mechanism.privacy_loss(np.vstack([low, high]), pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, [0.1, -0.1], rtol=1e-12)
    assert mechanism.true_epsilon == 0.1


@pytest.mark.parametrize("queries", [1, 4, 10])
def test_running_totals_lose_with_every_query(queries):
    mechanism = PrefixSum(0.1, queries=queries)
    pair = mechanism.worst_case()
    totals = -np.cumsum(np.arange(1.0, queries + 1))[np.newaxis]
    loss = mechanism.privacy_loss(totals, pair.data, pair.neighbour)
    assert loss == pytest.approx(queries * 0.1, rel=1e-12)
    assert mechanism.true_epsilon == pytest.approx(queries * 0.1, rel=1e-12)
    releases = draws(mechanism, pair.data, size=1000)
    losses = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    assert np.abs(losses).max() <= mechanism.true_epsilon + 1e-9


def test_gaussian_releases_and_losses():
    mechanism = Gaussian.from_mu(0.5, sensitivity=2.0)
    assert mechanism.claim == GaussianDP(0.5)
    assert mechanism.true_epsilon == np.inf
    law = stats.norm(loc=3.5, scale=4.0)
    assert_distribution(draws(mechanism, [1.5, 7.0, -1.0], size=SIZE), law.cdf)
    mechanism = Gaussian.from_mu(0.8)
    at = np.linspace(-4, 4, 11)
    rows, other = [0.2, 0.3], [0.2, 0.3, 0.9]
    laws = [stats.norm(loc=m, scale=1.25) for m in (0.5, 1.4)]
    np.testing.assert_allclose(
        mechanism.privacy_loss(at, rows, other),
        laws[0].logpdf(at) - laws[1].logpdf(at),
        atol=1e-12,
    )


def balle_wang(epsilon, mu):
    """Return delta by the definition of the divergence, in 40 digits."""
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        edge = epsilon / mu - mu / 2  # the loss exceeds epsilon beyond it
        return float(mpmath.ncdf(-edge) - mpmath.exp(epsilon) * mpmath.ncdf(-edge - mu))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_truth(epsilon, delta):
    for mechanism in (
        Gaussian.calibrated(epsilon, delta),
        Gaussian.classical(epsilon, delta),
        Gaussian.under_noised(epsilon, delta, factor=0.5),
    ):
        assert mechanism.claim == ApproxDP(epsilon, delta)
        truth = mechanism.true_epsilon
        assert balle_wang(truth, mechanism.mu) == pytest.approx(delta, rel=1e-6)
        exact = mechanism.exact_claim(mechanism.worst_case())
        assert exact.epsilon_at(delta) == pytest.approx(truth, rel=1e-9)
    assert Gaussian.calibrated(epsilon, delta).true_epsilon <= epsilon
    assert Gaussian.calibrated(epsilon, delta).true_epsilon > 0.999999 * epsilon


def test_the_classical_constant_and_half_of_the_noise():
    assert Gaussian.classical(0.9, 1e-5).true_epsilon < 0.9
    assert Gaussian.classical(10.0, 1e-5).true_epsilon > 10.0
    assert Gaussian.classical(1.0, 1e-5).sigma == pytest.approx(4.8448, abs=1e-4)
    assert Gaussian.under_noised().true_epsilon == pytest.approx(2.155, abs=5e-4)
    whole, half = Gaussian.calibrated(), Gaussian.under_noised()
    assert half.sigma == pytest.approx(whole.sigma / 2, rel=1e-12)


test_bad_arguments_are_named = refused(
    (lambda: Laplace.under_noised(1.0, factor=-1.0), "factor must be"),
    (lambda: Gaussian.classical(1.0, 0.0), "delta must be"),
    (lambda: Gaussian.under_noised(factor=0.0), "factor must be"),
    (lambda: Gaussian.from_mu(0.0), "mu must be"),
    (lambda: Laplace().answers([[1.0, 2.0]]), r"shape \(n,\) or \(n, 1\)"),
    (lambda: Laplace().answers(3.0), r"got shape \(\)"),
    (lambda: Laplace().worst_case(2), "dimension must be"),
    (lambda: NoisyHist1().answers([1.0]), r"must have shape \(n, d\)"),
    (lambda: PrefixSum().answers(np.ones((2, 3))), "10 columns, got 3"),
    (lambda: PrefixSum().answers(np.ones((0, 10))), "n >= 1"),
)


def test_nobody_is_a_dataset_and_the_same_answers_lose_nothing():
    assert Laplace().answers([]) == 0.0
    assert NoisyHist1().answers(np.empty((0, 2))).tolist() == [0.0, 0.0]
    for mechanism, rows in (
        (Laplace(), np.zeros(1)),
        (Gaussian.calibrated(), np.zeros(1)),
        (NoisyHist1(), np.zeros((1, 2))),
    ):
        exact = mechanism.exact_claim(Pair(rows[:0], rows))
        assert exact.delta_at(0.0) == 0
