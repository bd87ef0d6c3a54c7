"""The private mean: sensitivity, calibration, the noise and what is made of it.

Seeds are fixed. Goodness-of-fit tests are Kolmogorov-Smirnov tests of the law that the
module states (the null hypothesis), each failing a correct sampler with probability
1e-10; there are 10. `run_conformance` adds 2e-9 for each of 4 mechanisms.
"""

import numpy as np
import pytest
from refusals import refused
from scipy import special, stats

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, Relation
from dpaudit.algorithms.estimators.private_mean import GaussianMean, LaplaceMean
from dpaudit.testing import run_conformance

ADD_REMOVE, REPLACE_ONE = Relation
LEVEL = 1e-10

both = pytest.mark.parametrize("relation", list(Relation))
dimensions = pytest.mark.parametrize("dimension", [1, 2, 7, 54])


def rows_up_to(norm, size, dimension, rng):
    """Return rows in a ball, a third of them on its surface."""
    rows = rng.standard_normal((size, dimension))
    lengths = norm * np.minimum(1.0, 1.5 * rng.random(size))
    return rows * (lengths / np.linalg.norm(rows, axis=1))[:, np.newaxis]


@both
@dimensions
def test_the_worst_case_attains_the_sensitivity_and_calibration_is_exact_there(
    relation, dimension
):
    mechanism = GaussianMean.from_mu(1.0, relation=relation, row_norm=0.3)
    pair = mechanism.worst_case(dimension)
    assert pair.relation is relation
    moved = mechanism.answers(pair.data) - mechanism.answers(pair.neighbour)
    assert np.linalg.norm(moved) == pytest.approx(mechanism.sensitivity(dimension))
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-5), (8.0, 1e-3)):
        known = {"relation": relation, "row_norm": 7.0}
        mechanism = GaussianMean.calibrated(epsilon, delta, **known)
        exact = mechanism.exact_claim(mechanism.worst_case(dimension))
        assert float(exact.delta_at(epsilon)) == pytest.approx(delta, rel=1e-8)
        assert mechanism.claim == ApproxDP(epsilon, delta)
        pure = LaplaceMean.calibrated(epsilon, **known)
        exact = pure.exact_claim(pure.worst_case(dimension))
        assert exact.epsilon_at(0.0) == pytest.approx(epsilon, rel=1e-12)
        assert pure.claim == PureDP(epsilon)


def test_the_query_is_the_sum_and_the_weighted_count():
    rows = [[3.0, 4.0], [0.1, 0.2], [0.0, 0.0]]
    found = GaussianMean.from_mu(1.0, row_norm=1.0).answers(rows)
    np.testing.assert_allclose(found, [0.7, 1.0, 3 / 2**0.25], rtol=1e-14)
    assert GaussianMean.from_mu(0.3).claim == GaussianDP(0.3)
    public = GaussianMean.from_mu(1.0, relation="replace-one").answers(rows)
    np.testing.assert_allclose(public, [0.7, 1.0], rtol=1e-14)


@pytest.mark.parametrize("entries", [1, 2, 9])
def test_gaussian_noise_fits(entries):
    rng = np.random.default_rng(1)
    noise = GaussianMean.from_mu(1.0).noise(20_000, entries, 2.5, rng)
    squared = (noise**2).sum(axis=1) / 2.5**2
    assert stats.kstest(squared, stats.chi2(entries).cdf).pvalue > LEVEL
    assert stats.kstest(noise[:, 0] / 2.5, stats.norm.cdf).pvalue > LEVEL


@pytest.mark.parametrize("entries", [1, 2, 9, 55])
def test_spherical_laplace_noise_fits(entries):
    """The length is Gamma, and a direction's square of an entry is Beta."""
    rng = np.random.default_rng(2)
    noise = LaplaceMean.calibrated(1.0).noise(20_000, entries, 2.5, rng)
    lengths = np.linalg.norm(noise, axis=1)
    assert stats.kstest(lengths, stats.gamma(entries, scale=2.5).cdf).pvalue > LEVEL
    if entries == 1:
        fit = stats.kstest(noise[:, 0], stats.laplace(scale=2.5).cdf)
    else:
        share = (noise[:, 0] / lengths) ** 2
        fit = stats.kstest(share, stats.beta(0.5, (entries - 1) / 2).cdf)
    assert fit.pvalue > LEVEL


def spherical_laplace_log_density(noise, scale):
    """Return the density of the length over the area of its sphere, in logarithms."""
    entries, lengths = noise.shape[1], np.linalg.norm(noise, axis=1)
    area = np.log(2) + entries / 2 * np.log(np.pi) - special.gammaln(entries / 2)
    return stats.gamma(entries, scale=scale).logpdf(lengths) - (
        area + (entries - 1) * np.log(lengths)
    )


@both
def test_losses_are_log_density_ratios(relation):
    rng = np.random.default_rng(3)
    rows = rows_up_to(1.5, 4, 3, rng)
    other = rows[1:] if relation is ADD_REMOVE else np.vstack([-rows[:1], rows[1:]])
    for mechanism in (
        GaussianMean.from_mu(0.7, relation=relation),
        LaplaceMean.calibrated(0.7, relation=relation),
    ):
        scale = mechanism.scale(3)
        releases = mechanism.draw(rows, 50, rng=rng)
        one, two = (releases - mechanism.answers(each) for each in (rows, other))
        if isinstance(mechanism, GaussianMean):
            law = stats.norm(scale=scale)
            expected = (law.logpdf(one) - law.logpdf(two)).sum(axis=1)
        else:
            logs = [spherical_laplace_log_density(each, scale) for each in (one, two)]
            expected = logs[0] - logs[1]
            assert np.abs(expected).max() <= 0.7
        found = mechanism.privacy_loss(releases, rows, other)
        np.testing.assert_allclose(found, expected, atol=1e-10)


@both
def test_the_protocol_is_kept_and_the_mean_that_of_rows_in_their_ball(relation):
    run_conformance(GaussianMean.from_mu(1.5, relation=relation))
    run_conformance(LaplaceMean.calibrated(1.5, relation=relation))
    rows = rows_up_to(1.0, 2000, 5, np.random.default_rng(4)) * 0.3 + 0.2
    mechanism = GaussianMean.from_mu(1e6, relation=relation)
    release = mechanism.release(rows, rng=np.random.default_rng(5))
    found = mechanism.mean(release, n_rows=2000)
    np.testing.assert_allclose(found, rows.mean(axis=0), atol=1e-6)
    # Noise that leads out of the ball is cut off.
    noisy = LaplaceMean.calibrated(0.1, relation=relation, row_norm=2.0)
    for seed in range(5):
        release = noisy.release(np.zeros((1, 3)), rng=np.random.default_rng(seed))
        assert np.linalg.norm(noisy.mean(release, n_rows=1)) <= 2.0 * (1 + 1e-12)


def mean_of(n_rows):
    public = GaussianMean.from_mu(1.0, relation="replace-one")
    return public.mean(np.zeros(3), n_rows=n_rows)


def test_nobody_has_a_private_mean_and_one_query_no_loss():
    mean = GaussianMean.from_mu(1.0)
    release = mean.release(np.empty((0, 3)), rng=np.random.default_rng(0))
    assert np.isfinite(mean.mean(release)).all()
    pair = Pair([[2.0, 0.0]], [[4.0, 0.0]])  # clipped to the same row
    for build in (GaussianMean.from_mu, LaplaceMean.calibrated):
        mechanism = build(1.0, relation="replace-one")
        assert mechanism.exact_claim(pair).epsilon_at(0.0) == 0.0


test_bad_arguments_are_named = refused(
    (lambda: GaussianMean.from_mu(0.0), "mu must be"),
    (lambda: GaussianMean.calibrated(1.0, 0.0), "delta must be"),
    (lambda: LaplaceMean.calibrated(1.0, relation="both"), "relation must be"),
    (lambda: LaplaceMean(epsilon=1.0, claim=1.0), "claim must be"),
    (lambda: mean_of(None), "n_rows must be"),
    (lambda: mean_of(1.5), "n_rows must be"),
)
