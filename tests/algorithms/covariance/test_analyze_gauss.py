"""AnalyzeGauss: its calibration, its privacy loss, and what is true of the paper's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.claims import ApproxDP, GaussianDP
from dpaudit.gaussian import gaussian_delta
from dpaudit.neighbours import Pair, Relation
from dpaudit.subspace import second_moment

ADD_REMOVE, REPLACE_ONE = Relation


def upper_triangle(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("row_norm", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-3), (1.0, 1e-9), (8.0, 1e-6)]
)
def test_the_calibration_meets_its_claim_with_equality(
    epsilon, delta, row_norm, relation
):
    mechanism = AnalyzeGauss.calibrated(
        epsilon, delta, relation=relation, row_norm=row_norm
    )
    assert mechanism.claim == ApproxDP(epsilon, delta)
    assert mechanism.relation is relation
    shift = row_norm**2 * (1 if relation is ADD_REMOVE else np.sqrt(2))
    attained = float(gaussian_delta(epsilon, shift / mechanism.sigma))
    assert attained == pytest.approx(delta, rel=1e-9)
    assert attained <= delta
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    assert float(exact.delta(epsilon)) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_published_scale_is_the_papers(relation):
    mechanism = AnalyzeGauss.as_published(0.5, 1e-4, relation=relation, row_norm=2.0)
    assert mechanism.claim == ApproxDP(0.5, 1e-4)
    assert mechanism.relation is relation
    expected = 4 * np.sqrt(2 * np.log(1.25e4)) / 0.5
    assert mechanism.sigma == pytest.approx(expected, rel=1e-14)


def published(epsilon, delta, relation):
    """What is exactly true of the published mechanism at its worst pair."""
    mechanism = AnalyzeGauss.as_published(epsilon, delta, relation=relation)
    return mechanism.exact_claim(mechanism.worst_case())


def test_the_published_claim_is_false_for_replacing_a_row():
    exact = published(1.0, 1e-5, REPLACE_ONE)
    assert float(exact.delta(1.0)) == pytest.approx(3.74e-5, abs=5e-8)
    assert exact.epsilon(1e-5) == pytest.approx(1.098, abs=5e-4)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.1, 1e-5)])
def test_but_it_holds_in_part(epsilon, delta):
    assert published(epsilon, delta, REPLACE_ONE).delta(epsilon) <= delta


def test_the_published_claim_is_loose_for_adding_a_row():
    exact = published(1.0, 1e-5, ADD_REMOVE)
    assert float(exact.delta(1.0)) == pytest.approx(4.1e-8, rel=0.01)


@pytest.mark.parametrize(("delta", "limit"), [(1e-3, 7.5), (1e-5, 8.4), (1e-6, 8.8)])
def test_the_published_claim_is_false_for_large_epsilon(delta, limit):
    low, high = limit - 0.1, limit + 0.1
    assert published(low, delta, ADD_REMOVE).delta(low) < delta
    assert published(high, delta, ADD_REMOVE).delta(high) > delta


@st.composite
def neighbours(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.standard_normal((draw(st.integers(1, 4)), draw(st.integers(1, 4))))
    return rows, rows[1:] if draw(st.booleans()) else [2 * rng.random(rows.shape[1])]


@given(neighbours(), st.floats(0.1, 10.0), st.integers(0, 2**32))
def test_the_privacy_loss_is_the_ratio_of_normal_densities(pair, sigma, seed):
    mechanism = AnalyzeGauss(sigma=sigma, claim=GaussianDP(1.0), row_norm=1.5)
    data, other = pair
    releases = mechanism.draw(data, 5, rng=np.random.default_rng(seed))
    densities = [
        stats.norm(upper_triangle(mechanism.statistic(rows)), sigma)
        .logpdf(upper_triangle(releases))
        .sum(axis=-1)
        for rows in (data, other)
    ]
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(loss, densities[0] - densities[1], atol=1e-9, rtol=1e-9)


def test_the_exact_claim_is_the_distance_of_the_means():
    rows = np.random.default_rng(0).standard_normal((5, 3)) / 3
    mechanism = AnalyzeGauss(sigma=2.0, claim=GaussianDP(1.0))
    moved = upper_triangle(second_moment(rows) - second_moment(rows[1:]))
    exact = mechanism.exact_claim(Pair(rows, rows[1:]))
    assert isinstance(exact, GaussianDP)
    assert exact.parameters["mu"] == pytest.approx(np.linalg.norm(moved) / 2, rel=1e-12)


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


def test_all_entries_of_the_noise_have_the_same_deviation():
    # Null hypothesis: the sum of squares of an entry over sigma^2 is chi-square with
    # 20000 degrees of freedom; 3 exact two-sided tests at 1e-8 in total.
    mechanism = AnalyzeGauss(sigma=3.0, claim=GaussianDP(1.0))
    noise = upper_triangle(mechanism.noise(20_000, 2, rng=np.random.default_rng(2)))
    law = stats.chi2(20_000)
    low, high = law.ppf(1e-8 / 6), law.isf(1e-8 / 6)
    squares = (noise**2).sum(axis=0) / 9
    assert ((low <= squares) & (squares <= high)).all()
