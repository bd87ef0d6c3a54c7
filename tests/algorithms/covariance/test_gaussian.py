"""AnalyzeGauss and GOEGaussian: calibration, privacy loss, and what is true of them.

Noise is tested in `test_noise.py`; here only that the mechanisms ask for the right one.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, Pair, Relation
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian
from dpaudit.gaussian import gaussian_delta

ADD_REMOVE, REPLACE_ONE = Relation
KINDS = pytest.mark.parametrize("kind", [AnalyzeGauss, GOEGaussian])
RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def upper_triangle(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def deviations(kind, d, sigma):
    """Standard deviations of the upper triangle, as the paper-and-pencil law says."""
    rows, columns = np.triu_indices(d)
    ratio = 1 if kind is AnalyzeGauss else np.sqrt(2)
    return np.where(rows == columns, ratio, 1.0) * sigma


@KINDS
@RELATIONS
@pytest.mark.parametrize("row_norm", [1.0, 4.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-9), (8.0, 1e-6)])
def test_the_calibration_meets_its_claim_with_equality(
    kind, epsilon, delta, row_norm, relation
):
    mechanism = kind.calibrated(epsilon, delta, relation=relation, row_norm=row_norm)
    # By hand: the difference of the moments is one row's square, or that of two; the
    # orthogonal ensemble sees its Frobenius norm over the root of two.
    distance = row_norm**2 / mechanism.sigma
    if relation is REPLACE_ONE:
        distance *= np.sqrt(2)
    mu = distance if kind is AnalyzeGauss else distance / np.sqrt(2)
    attained = float(gaussian_delta(epsilon, mu))
    assert attained == pytest.approx(delta, rel=1e-9)
    assert attained <= delta
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    assert float(exact.delta(epsilon)) == pytest.approx(delta, rel=1e-9)


@RELATIONS
def test_a_gaussian_claim_is_exact_at_the_worst_pair(relation):
    mechanism = GOEGaussian.from_mu(0.7, relation=relation, row_norm=2.0)
    assert mechanism.claim == GaussianDP(0.7)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert exact.parameters["mu"] == pytest.approx(0.7, rel=1e-13)


@RELATIONS
def test_the_published_scale_is_the_papers(relation):
    mechanism = AnalyzeGauss.as_published(0.5, 1e-4, relation=relation, row_norm=2.0)
    assert mechanism.claim == ApproxDP(0.5, 1e-4)
    assert mechanism.relation is relation
    expected = 4 * np.sqrt(2 * np.log(1.25e4)) / 0.5
    assert mechanism.sigma == pytest.approx(expected, rel=1e-13)


def published(epsilon, delta, relation):
    """What is exactly true of the published mechanism at its worst pair."""
    mechanism = AnalyzeGauss.as_published(epsilon, delta, relation=relation)
    return mechanism.exact_claim(mechanism.worst_case())


def test_the_published_claim_is_false_in_part():
    # For replacing a row, at an epsilon in between.
    exact = published(1.0, 1e-5, REPLACE_ONE)
    assert float(exact.delta(1.0)) == pytest.approx(3.74e-5, abs=5e-8)
    assert exact.epsilon(1e-5) == pytest.approx(1.098, abs=5e-4)
    for epsilon, delta in ((1.0, 1e-3), (0.1, 1e-5)):
        assert published(epsilon, delta, REPLACE_ONE).delta(epsilon) <= delta
    # It is loose for adding one, up to a large epsilon.
    exact = published(1.0, 1e-5, ADD_REMOVE)
    assert float(exact.delta(1.0)) == pytest.approx(4.1e-8, rel=0.01)
    for delta, limit in ((1e-3, 7.5), (1e-5, 8.4), (1e-6, 8.8)):
        low, high = limit - 0.1, limit + 0.1
        assert published(low, delta, ADD_REMOVE).delta(low) < delta
        assert published(high, delta, ADD_REMOVE).delta(high) > delta


@KINDS
@RELATIONS
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.1, 10.0))
def test_the_loss_is_the_ratio_of_normal_densities(relation, kind, seed, d, sigma):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((3, d))
    other = data[1:]
    if relation is REPLACE_ONE:
        other = np.vstack([rng.standard_normal((1, d)), other])
    mechanism = kind(
        sigma=sigma, claim=GaussianDP(1.0), relation=relation, row_norm=1.5
    )
    means = [upper_triangle(mechanism.statistic(rows)) for rows in (data, other)]
    scale = deviations(kind, d, sigma)
    releases = mechanism.draw(data, 5, rng=rng)
    densities = [
        stats.norm(mean, scale).logpdf(upper_triangle(releases)).sum(axis=-1)
        for mean in means
    ]
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(loss, densities[0] - densities[1], rtol=1e-9, atol=1e-9)
    # The exact claim is the Mahalanobis distance; no pair is worse than the worst.
    exact = mechanism.exact_claim(Pair(data, other, relation)).parameters["mu"]
    assert exact == pytest.approx(np.linalg.norm((means[0] - means[1]) / scale))
    worst = mechanism.exact_claim(mechanism.worst_case()).parameters["mu"]
    assert exact <= worst * (1 + 1e-12)


def test_a_release_is_the_statistic_plus_noise():
    mechanism = AnalyzeGauss.calibrated(1.0, 1e-5)
    rows = np.random.default_rng(0).standard_normal((5, 3))
    draws = mechanism.draw(rows, 4, rng=np.random.default_rng(1))
    noise = mechanism.noise(4, 3, rng=np.random.default_rng(1))
    np.testing.assert_allclose(draws, mechanism.statistic(rows) + noise, rtol=1e-13)
    one = mechanism.release(rows, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(
        one, mechanism.draw(rows, 1, rng=np.random.default_rng(1))[0]
    )


@KINDS
def test_the_noise_has_its_deviations(kind):
    # Null hypothesis: the sum of squares of an entry over its variance is chi-square
    # with 20000 degrees of freedom; 6 exact two-sided tests at 1e-8 in total.
    mechanism = kind(sigma=3.0, claim=GaussianDP(1.0))
    noise = upper_triangle(mechanism.noise(20_000, 3, rng=np.random.default_rng(2)))
    squares = ((noise / deviations(kind, 3, 3.0)) ** 2).sum(axis=0)
    law = stats.chi2(20_000)
    low, high = law.ppf(1e-8 / 12), law.isf(1e-8 / 12)
    assert ((low <= squares) & (squares <= high)).all()
