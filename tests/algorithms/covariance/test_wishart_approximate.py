"""WishartApproximate: calibration, exact losses and profiles, and the published rule.

Type-I error: 1e-9 for each of 6 laws of the noise; exact chi-square tails, fixed seeds.
Less than 1e-8 in total.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms import GOEGaussian, WishartApproximate
from dpaudit.algorithms.covariance.wishart_accountant import (
    neighbours_delta,
    pair_delta,
)
from dpaudit.claims import ApproxDP, GaussianDP

ADD_REMOVE, REPLACE_ONE = Relation
BUDGETS = [(1.0, 1e-3), (0.1, 1e-5), (5.0, 1e-9)]


def with_noise(excess, scale, **options):
    return WishartApproximate(
        excess=excess, scale=scale, claim=ApproxDP(1.0, 1e-5), **options
    )


def neighbours(relation):
    """A pair of datasets in three dimensions, rows of different lengths."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((4, 3)) / 4
    assert np.linalg.norm(rows, axis=1).max() < 1
    if relation is ADD_REMOVE:
        return rows, rows[1:]
    return rows, np.vstack([[0.5, -0.3, 0.2], rows[1:]])


@pytest.mark.parametrize("relation", list(Relation))
def test_degrees_and_scale_are_the_papers_and_the_claim_that_of_eigenvalues(relation):
    mechanism = WishartApproximate.as_published(
        0.5, 1e-4, relation=relation, row_norm=3.0
    )
    assert mechanism.claim == ApproxDP(0.5, 1e-4)
    assert mechanism.relation is relation
    assert mechanism.degrees(10) == 10 + int(28 * np.log(4e4) / 0.25)
    assert mechanism.scale == 9.0
    data, other = neighbours(relation)
    mechanism = with_noise(40, 0.05, relation=relation)
    values = np.linalg.eigvalsh(data.T @ data - other.T @ other) / 0.05
    gained, lost = values[-1], -values[0] if relation is REPLACE_ONE else 0.0
    assert gained > 1
    exact = mechanism.exact_claim(Pair(data, other, relation))
    expected = pair_delta(1.0, excess=40, gained=gained, lost=lost)
    assert float(exact.delta_at(1.0)) == pytest.approx(float(expected), rel=1e-9)
    back = mechanism.exact_claim(Pair(other, data, relation))
    assert float(back.delta_at(1.0)) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-1, 1e-5])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_published_claim_holds_up_to_four_and_fails_at_six(delta, relation):
    for epsilon, kept in ((0.5, True), (2.0, True), (4.0, True), (6.0, False)):
        mechanism = WishartApproximate.as_published(epsilon, delta, relation=relation)
        exact = mechanism.exact_claim(mechanism.worst_case())
        assert (exact.delta_at(epsilon) <= delta) == kept
        bound = neighbours_delta(
            epsilon, excess=mechanism.excess, shift=1.0, relation=relation
        )
        assert (bound <= delta) == kept


@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-5), (11.0, 0.1)])
def test_a_published_rule_without_degrees_is_refused(epsilon, delta):
    largest = np.sqrt(28 * np.log(4 / delta))
    with pytest.raises(InputError, match=f"epsilon must be at most {largest:.4f}"):
        WishartApproximate.as_published(epsilon, delta)
    assert WishartApproximate.as_published(largest * 0.999, delta).excess == 1


@pytest.mark.parametrize("budget", BUDGETS)
def test_adding_a_row_meets_the_claim_with_equality(budget):
    epsilon, delta = budget
    mechanism = WishartApproximate.calibrated(epsilon, delta, row_norm=4.0)
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    attained = float(exact.delta_at(epsilon))
    assert attained == pytest.approx(delta, rel=1e-6)
    assert attained <= delta


@pytest.mark.parametrize("budget", BUDGETS[:2])
def test_replacing_a_row_meets_the_claim_with_equality(budget):
    epsilon, delta = budget
    mechanism = WishartApproximate.calibrated(epsilon, delta, relation="replace-one")
    exact = mechanism.exact_claim(mechanism.worst_case(3))
    assert float(exact.delta_at(epsilon)) == pytest.approx(delta, rel=2e-5)
    assert exact.delta_at(epsilon) <= delta


@pytest.mark.parametrize(
    ("mechanism", "zeros_are_worse"),
    [
        (WishartApproximate.as_published(4.0, 1e-3, relation=REPLACE_ONE), True),
        (WishartApproximate.calibrated(1.0, 1e-3, relation=REPLACE_ONE), False),
        (
            WishartApproximate.calibrated(4.0, 1e-3, relation=REPLACE_ONE, scale=0.2),
            False,
        ),
    ],
    ids=["few", "many", "large"],
)
def test_the_worst_row_to_replace_depends_on_the_degrees(mechanism, zeros_are_worse):
    worst, other = mechanism.canonical_pairs()
    assert worst.data.any() != zeros_are_worse
    assert other.data.any() == zeros_are_worse
    epsilon = mechanism.claim.parameters["epsilon"]
    lost = [float(mechanism.exact_claim(p).delta_at(epsilon)) for p in (worst, other)]
    assert lost[0] > 1.1 * lost[1]
    bound = neighbours_delta(
        epsilon,
        excess=mechanism.excess,
        shift=1 / mechanism.scale,
        relation=REPLACE_ONE,
    )
    assert lost[0] == pytest.approx(float(bound), rel=2e-5, abs=1e-13)
    for dimension in (2, 5):
        pair = mechanism.worst_case(dimension)
        assert pair.neighbour.shape == (1, dimension)
        assert pair.data.any() != zeros_are_worse
    # One dimension has no room for two rows.
    assert not mechanism.worst_case(1).data.any()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("scale", [0.5, 20.0])
def test_at_a_given_scale_one_degree_less_is_too_few(scale, relation):
    mechanism = WishartApproximate.calibrated(
        1.0, 1e-3, relation=relation, row_norm=2.0, scale=scale
    )
    assert mechanism.scale == scale
    for excess, kept in ((mechanism.excess, True), (mechanism.excess - 1, False)):
        found = neighbours_delta(1.0, excess=excess, shift=4 / scale, relation=relation)
        assert (found <= 1e-3) == kept


@pytest.mark.parametrize("d", [10, 200])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_spread_is_near_that_of_the_goe_and_far_below_the_papers(relation, d):
    # Of E about its mean k s I, in Frobenius norm: s sqrt(k d (d + 1)); and of the
    # ensemble sigma sqrt(d (d + 1)).
    def spread(mechanism):
        return mechanism.scale * np.sqrt(mechanism.degrees(d))

    budget = {"epsilon": 1.0, "delta": 1e-3, "relation": relation}
    ours = spread(WishartApproximate.calibrated(**budget))
    fewest = spread(WishartApproximate.calibrated(**budget, scale=1.0))
    published = spread(WishartApproximate.as_published(**budget))
    goe = GOEGaussian.calibrated(**budget).sigma
    assert goe < ours < 1.05 * np.sqrt(1 + d / 2586) * goe
    assert ours < fewest / 2
    assert fewest < published


@pytest.mark.parametrize(("d", "excess"), [(1, 1), (3, 2), (3, 60)])
def test_the_noise_is_wishart(d, excess):
    # Null hypothesis: u^T E u/scale is chi-square with d + excess degrees of freedom
    # for a unit u, and its sum over draws with size times as many.
    size, scale = 5000, 0.4
    noise = with_noise(excess, scale).noise(size, d, rng=np.random.default_rng(d))
    u = np.ones(d) / np.sqrt(d)
    values = (noise @ u @ u) / scale
    assert stats.kstest(values, stats.chi2(d + excess).cdf).pvalue >= 1e-9
    total = stats.chi2(size * (d + excess))
    assert 5e-10 <= total.cdf(values.sum()) <= 1 - 5e-10
    assert np.linalg.eigvalsh(noise).min() > 0


@given(
    st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 30), st.floats(0.1, 3.0)
)
@settings(max_examples=25)
def test_the_loss_is_the_ratio_of_wishart_densities(seed, d, excess, scale):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((3, d))
    other = np.vstack([rng.standard_normal((1, d)), rows[1:]])
    mechanism = with_noise(excess, scale, row_norm=1.5)
    law = stats.wishart(df=d + excess, scale=scale * np.eye(d))
    releases = mechanism.draw(rows, 5, rng=rng)
    loss = mechanism.privacy_loss(releases, rows, other)
    possible = mechanism.in_support(releases, other)
    assert (np.isposinf(loss) == ~possible).all()
    expected = [
        law.logpdf(y - mechanism.statistic(rows))
        - law.logpdf(y - mechanism.statistic(other))
        for y in releases[possible]
    ]
    np.testing.assert_allclose(loss[possible], expected, rtol=1e-7, atol=1e-6)


def test_the_loss_off_the_supports_is_infinite_and_any_claim_has_an_exact_one():
    mechanism = with_noise(3, 1.0)
    nobody, somebody = np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])
    both, one, none = np.diag([2.0, 1.0]), np.diag([0.5, 1.0]), np.diag([-1.0, 1.0])
    releases = np.array([both, one, none])
    # a = 1: log(2/1) - 1/2.
    finite = np.log(2) - 0.5
    np.testing.assert_allclose(
        mechanism.privacy_loss(releases, nobody, somebody), [finite, np.inf, np.nan]
    )
    np.testing.assert_allclose(
        mechanism.privacy_loss(releases, somebody, nobody), [-finite, -np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        mechanism.in_support(releases, somebody), [True, False, False]
    )
    mechanism = WishartApproximate(excess=40, scale=1.0, claim=GaussianDP(1.0))
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert 0 < exact.delta_at(0.5) < 0.5


test_bad_arguments_are_named = refused(
    (lambda: WishartApproximate.calibrated(1e3, 1e-5), "epsilon .* got 1000.0"),
    (lambda: WishartApproximate.calibrated(1.0, 1e-5, scale=0.0), "scale .* got 0.0"),
    (
        lambda: WishartApproximate.calibrated(1.0, 1e-5, scale=1e-5),
        "take a larger scale",
    ),
    (lambda: with_noise(0, 1.0), "excess must be an integer >= 1"),
    (lambda: with_noise(3, float("inf")), "scale .* got inf"),
)
