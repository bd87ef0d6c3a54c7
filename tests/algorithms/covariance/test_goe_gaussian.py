"""GOE Gaussian: calibration, privacy loss, exact profile, and the gain over A + i.i.d.

Noise is tested in `test_noise.py`; here only that the mechanism asks for the right one.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaudit.algorithms import AnalyzeGauss, GOEGaussian
from dpaudit.claims import ApproxDP, GaussianDP
from dpaudit.gaussian import gaussian_delta
from dpaudit.neighbours import Pair, Relation


def upper_triangle(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


def deviations(d, sigma):
    """Standard deviations of the upper triangle, as the paper-and-pencil law says."""
    rows, columns = np.triu_indices(d)
    return np.where(rows == columns, np.sqrt(2), 1.0) * sigma


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("row_norm", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-3), (1.0, 1e-9), (8.0, 1e-6)]
)
def test_the_calibration_meets_its_claim_with_equality(
    epsilon, delta, row_norm, relation
):
    mechanism = GOEGaussian.calibrated(
        epsilon, delta, relation=relation, row_norm=row_norm
    )
    assert mechanism.claim == ApproxDP(epsilon, delta)
    assert mechanism.relation is relation
    # By hand: mu = ||A - A'||_F / (sqrt 2 s), and the norm is 1 or sqrt 2.
    distance = row_norm**2 / mechanism.sigma
    mu = distance / np.sqrt(2) if relation is Relation.ADD_REMOVE else distance
    attained = float(gaussian_delta(epsilon, mu))
    assert attained == pytest.approx(delta, rel=1e-9)
    assert attained <= delta
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    assert float(exact.delta(epsilon)) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_gaussian_claim_is_exact_at_the_worst_pair(relation):
    mechanism = GOEGaussian.from_mu(0.7, relation=relation, row_norm=2.0)
    assert mechanism.claim == GaussianDP(0.7)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert exact.parameters["mu"] == pytest.approx(0.7, rel=1e-14)


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_no_pair_is_worse(seed, d):
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, 1, d))
    for relation in Relation:
        mechanism = GOEGaussian.from_mu(0.7, relation=relation)
        rows = second if relation is Relation.REPLACE_ONE else np.empty((0, d))
        exact = mechanism.exact_claim(Pair(rows, first, relation))
        assert exact.delta(0.1) <= mechanism.claim.delta(0.1) * (1 + 1e-12)


@given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.1, 10.0))
def test_the_privacy_loss_is_the_ratio_of_normal_densities(seed, d, sigma):
    rng = np.random.default_rng(seed)
    data, other = rng.standard_normal((3, d)), rng.standard_normal((2, d))
    mechanism = GOEGaussian(sigma=sigma, claim=GaussianDP(1.0), row_norm=1.5)
    releases = mechanism.draw(data, 5, rng=rng)
    covariance = np.diag(deviations(d, sigma) ** 2)
    densities = [
        stats.multivariate_normal(
            upper_triangle(mechanism.statistic(rows)), covariance
        ).logpdf(upper_triangle(releases))
        for rows in (data, other)
    ]
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(loss, densities[0] - densities[1], rtol=1e-9, atol=1e-9)


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_the_exact_claim_is_the_mahalanobis_distance(seed, d):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3, d))
    mechanism = GOEGaussian(sigma=2.0, claim=GaussianDP(1.0))
    moved = upper_triangle(mechanism.statistic(rows) - mechanism.statistic(rows[1:]))
    expected = np.linalg.norm(moved / deviations(d, 2.0))
    exact = mechanism.exact_claim(Pair(rows, rows[1:]))
    assert exact.parameters["mu"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("relation", list(Relation))
def test_noise_off_the_diagonal_is_smaller_by_root_two(relation):
    ours = GOEGaussian.calibrated(1.0, 1e-5, relation=relation)
    theirs = AnalyzeGauss.calibrated(1.0, 1e-5, relation=relation)
    assert theirs.sigma / ours.sigma == pytest.approx(np.sqrt(2), rel=1e-14)


def test_the_noise_has_the_deviations_of_the_ensemble():
    # Null hypothesis: the sum of squares of an entry over its variance is chi-square
    # with 20000 degrees of freedom; 6 exact two-sided tests at 1e-8 in total.
    mechanism = GOEGaussian(sigma=3.0, claim=GaussianDP(1.0))
    noise = upper_triangle(mechanism.noise(20_000, 3, rng=np.random.default_rng(2)))
    squares = ((noise / deviations(3, 3.0)) ** 2).sum(axis=0)
    law = stats.chi2(20_000)
    low, high = law.ppf(1e-8 / 12), law.isf(1e-8 / 12)
    assert ((low <= squares) & (squares <= high)).all()
