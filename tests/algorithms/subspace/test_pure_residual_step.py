"""Residual steps without a delta: sensitivities, the law of the noise, the claim.

Type-I error: 1e-9 for each of the cases that name a null hypothesis, at fixed seeds.
"""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from residual_rows import low_rank, moved_by_a_row
from scipy import stats
from seeded import rng

from dpaudit import PrivatePCA, PureDP, Relation
from dpaudit.algorithms import PureResidualStepPCA, SymmetrisedWishart
from dpaudit.algorithms.subspace.pure_residual_step import uniform_in_nuclear_ball
from dpaudit.audit import Budget, Verdict, audit
from dpaudit.rows import clip_rows
from dpaudit.subspace import largest_principal_angle_sine, top_components

ADD_REMOVE, REPLACE_ONE = Relation
TYPE_I_ERROR = 1e-9


def built(relation=ADD_REMOVE, *, epsilon=1.0, k=2, **options):
    return PureResidualStepPCA.calibrated(
        epsilon, n_components=k, relation=relation, **options
    )


def nuclear(matrices):
    return np.linalg.svd(matrices, compute_uv=False).sum(axis=-1)


# Sensitivity: what a proof says of each query, whatever was released before
@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(Relation), st.data())
def test_no_query_moves_further_than_its_share(seed, relation, data):
    mechanism, d, moved = moved_by_a_row(
        lambda relation, k: built(relation, k=k, epsilon=3.0, row_norm=2.0),
        *(relation, seed, data),
    )
    k = mechanism.n_components
    most = 1 if relation is ADD_REMOVE else 2
    lengths = nuclear(np.concatenate([moved["first"], moved["second"]]))
    assert lengths.max() <= most * (1 + 1e-9)
    steps = moved["steps"][:, :-1].reshape(4, d - k, k)
    assert nuclear(steps).max() <= most * (1 + 1e-9)
    assert np.abs(moved["steps"][:, -1]).max() <= 1 + 1e-9
    if relation is ADD_REMOVE:
        assert np.all(moved["count"] == -1)


# The law of the noise
@pytest.mark.parametrize(("m", "k"), [(2, 1), (2, 2), (2, 3)])
def test_points_are_uniform_in_the_ball_of_the_nuclear_norm(m, k):
    # Null hypothesis: they are those points of a cube that lie in the ball.
    cube = rng(1).uniform(-1, 1, (2_000_000, m, k))
    expected = cube[nuclear(cube) <= 1][:20_000]
    assert len(expected) > 4_000
    drawn = uniform_in_nuclear_ball(20_000, m, k, rng=rng(2))
    for of in (nuclear, lambda x: np.linalg.norm(x, axis=(1, 2)), lambda x: x[:, 0, 0]):
        assert stats.ks_2samp(of(drawn), of(expected)).pvalue >= TYPE_I_ERROR


@pytest.mark.parametrize(("m", "k"), [(3, 3), (5, 4)])
def test_directions_are_normal_ones_weighed_by_their_lengths(m, k):
    """Directions of normal matrices have the density |u|_F^(-m k), |u|_* = 1.

    So means over the ball are means over those that are weighed by the inverse. With
    the variance of weighed means, of 6.1 deviations: a chance of 1e-9.
    """
    normal = rng(3).standard_normal((400_000, m, k))
    normal /= nuclear(normal)[:, np.newaxis, np.newaxis]
    drawn = uniform_in_nuclear_ball(100_000, m, k, rng=rng(4))
    drawn /= nuclear(drawn)[:, np.newaxis, np.newaxis]
    squares = np.square(np.linalg.norm(normal, axis=(1, 2)))
    weights = squares ** (m * k / 2)
    weights /= weights.mean()
    for power in (1, 2, 4):
        ours = np.linalg.norm(drawn, axis=(1, 2)) ** (2 * power)
        theirs = squares**power
        expected = (weights * theirs).mean()
        error = (weights * (theirs - expected)).std() / sqrt(len(weights))
        error = np.hypot(error, ours.std() / sqrt(len(ours)))
        assert abs(ours.mean() - expected) < 6.1 * error


@pytest.mark.parametrize("relation", list(Relation))
def test_means_are_those_of_the_definition_and_the_noise_has_its_gauge(relation):
    # Null hypothesis: the gauge of the noise of a step is gamma, of shape D.
    mechanism = built(relation, epsilon=4.0, row_norm=0.7)
    rows = low_rank(1000)
    seen = mechanism.transcript(rows, 2000, rng=rng(1))
    means = mechanism.step_means(seen, rows)
    assert not seen["second"].any()
    unit = clip_rows(rows, 0.7) / 0.7
    np.testing.assert_allclose(means["first"][0], unit.T @ unit)
    plan = mechanism._plan(seen, 6, len(rows))
    for trial in range(3):
        basis, clip, wide = (x[trial] for x in (plan.basis, plan.clip, plan.wide))
        expected, number = 0.0, 0.0
        for row in unit:
            inner, outer = basis.T @ row, plan.outer[trial].T @ row
            weight = min(1.0, clip / np.linalg.norm(inner) / np.linalg.norm(outer))
            expected += weight * np.outer(outer, inner) / clip
            number += min(1.0, weight * inner @ inner / wide)
        found = means["steps"][trial]
        np.testing.assert_allclose(found, [*expected.ravel(), number], atol=1e-9)
    noise = seen["steps"] - means["steps"]
    most = 1 if relation is ADD_REMOVE else 2
    # What is told of it is a little less than its deviation.
    assert 1 < noise[:, :-1].std() / mechanism._deviation(6) < 1.5
    lengths = nuclear(noise[:, :-1].reshape(2000, 4, 2)) / most
    gauge = np.maximum(lengths, np.abs(noise[:, -1]))
    law = stats.gamma(9, scale=1 / 2.0)
    assert stats.kstest(gauge, law.cdf).pvalue >= TYPE_I_ERROR
    # Given the gauge, the number is uniform where the matrix is the longer one.
    drawn = mechanism._shaped_noise(4, 2)(50_000, rng(2))
    lengths = nuclear(drawn[:, :-1].reshape(50_000, 4, 2)) / most
    number = (drawn[:, -1] / lengths)[np.abs(drawn[:, -1]) < lengths]
    law = stats.uniform(-1, 2)
    assert stats.kstest(number, law.cdf).pvalue >= TYPE_I_ERROR
    draws = mechanism.draw(rows, 2000, rng=rng(1))
    np.testing.assert_allclose(draws, mechanism._moved(plan, seen["steps"]), atol=1e-9)


def test_where_nothing_is_found_two_draws_are_weighed_by_their_precision():
    # Null hypothesis: the noise of each, and of n, is that of its share of epsilon.
    mechanism = built(k=1, share=0.3)
    rows = rng(3).standard_normal((20, 3)) * [0.6, 0.5, 0.4]
    seen = mechanism.transcript(rows, 4000, rng=rng(4))
    means = mechanism.step_means(seen, rows)
    none = ~seen["steps"].any(axis=1)
    assert none.mean() > 0.5
    both = 0.285**2 * seen["first"] + 0.7**2 * seen["second"]
    one, two = mechanism.draw(rows, 4000, rng=rng(4)), top_components(both, 1)
    assert largest_principal_angle_sine(one, two)[none].max() < 1e-7
    noise = {name: seen[name] - means[name] for name in seen}
    for name, epsilon in (("first", 0.285), ("second", 0.7)):
        drawn = noise[name][none] if name == "second" else noise[name]
        whole = SymmetrisedWishart.calibrated(epsilon).noise(4000, 3, rng=rng(5))
        for at in ((0, 0), (0, 1)):
            samples = (each[:, *at] for each in (drawn, whole))
            assert stats.ks_2samp(*samples).pvalue >= TYPE_I_ERROR
    law = stats.laplace(scale=1 / 0.015)
    assert stats.kstest(noise["count"][:, 0], law.cdf).pvalue >= TYPE_I_ERROR


# The claim
@pytest.mark.parametrize("relation", list(Relation))
def test_the_loss_is_at_most_epsilon_comes_near_it_and_has_mean_densities(relation):
    # E_P exp(-L) = 1, either side: means of 2e4 variables in [1/e, e], variances below
    # 0.3, within 6.2 deviations.
    mechanism = built(relation, k=1, row_norm=3.0)
    pair = mechanism.worst_case()
    assert mechanism.claim == PureDP(1.0)
    for data, other in ((pair.data, pair.neighbour), (pair.neighbour, pair.data)):
        seen = mechanism.transcript(data, 20_000, rng=rng(6))
        steps = seen["steps"].any(axis=1)
        assert steps.mean() > 0.7
        loss = mechanism.transcript_loss(seen, data, other)
        # Under ADD_REMOVE all is lost with a chance, whether steps follow or not.
        added = relation is ADD_REMOVE
        for some in (steps, ~steps) if added else (steps,):
            assert (0.99 if added else 0.95) < np.abs(loss[some]).max() <= 1 + 1e-9
        assert np.exp(-loss).mean() == pytest.approx(1.0, abs=0.025)


@pytest.mark.parametrize("relation", list(Relation))
def test_an_audit_of_transcripts_does_not_refute_it(relation, here_in_few_rounds):
    mechanism = built(relation, epsilon=2.0, k=1)
    result = audit(
        mechanism,
        layer="transcript",
        confidence=0.999,
        budget=Budget(12_000, stop=False),
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.epsilon_lower > 0.6 * 2.0


# What it is for
@pytest.mark.parametrize("relation", list(Relation))
def test_rows_near_planes_err_half_of_wishart_noise(relation):
    rows, axes = low_rank(20_000, 20), np.eye(20)[:, :2]
    mechanism = built(relation)
    one = mechanism.draw(rows, 40, rng=rng(7))
    other = SymmetrisedWishart.calibrated(1.0, relation=relation)
    two = other.components(other.draw(rows, 40, rng=rng(7)), 2)
    errors = (np.median(largest_principal_angle_sine(x, axes)) for x in (one, two))
    assert next(errors) < next(errors) / 2


def test_fits_clip_to_the_private_norm_of_steps_and_spend_what_they_say():
    rows = 30 * low_rank(20_000, 8)
    pca = PrivatePCA(
        2,
        mechanism="residual-step-pca-pure",
        epsilon=1.0,
        delta=0.0,
        row_norm="private",
        random_state=0,
    ).fit(rows)
    assert [x.claim.epsilon for x in pca.spent_.releases] == [0.025, 0.975]
    # Of many rows more than half are no longer than the norm.
    assert (np.linalg.norm(rows, axis=1) <= pca.row_norm_).mean() > 0.6
    assert largest_principal_angle_sine(pca.components_.T, np.eye(8)[:, :2]) < 0.01
    clipped = clip_rows(rows, pca.row_norm_)
    variances = np.linalg.eigvalsh(clipped.T @ clipped)[:-3:-1]
    np.testing.assert_allclose(pca.private_variance_, variances, rtol=0.05)


def test_no_step_is_taken_where_a_sample_that_is_weighed_anew_errs_more():
    rows = rng(0).standard_normal((2000, 4)) * [0.45, 0.18, 0.18, 0.18]
    for epsilon, taken in ((50.0, True), (500.0, False)):
        mechanism = built(epsilon=epsilon, k=1)
        seen = mechanism.transcript(rows, 20, rng=rng(1))
        assert mechanism.found(seen, 4).all()
        assert np.all(seen["steps"].any(axis=1) == taken)


def test_blocks_and_repeated_rows_are_the_rows_put_together():
    rows, mechanism = low_rank(500), built(epsilon=8.0)
    whole = mechanism.draw(np.concatenate([rows, rows]), 5, rng=rng(8))
    for other in (
        mechanism.draw([rows, rows[:100], rows[100:]], 5, rng=rng(8)),
        mechanism.draw_repeated(rows, 2.0, 5, rng=rng(8)),
    ):
        np.testing.assert_allclose(other, whole, atol=1e-9)


def test_any_number_of_components_of_twenty_columns_is_released():
    for k in range(1, 21):
        assert built(k=k).draw(np.ones((5, 20)), 1, rng=rng()).shape == (1, 20, k)


test_what_no_data_could_mend_is_refused = refused(
    ({"share": 1.0}, np.ones((5, 2)), "share must be"),
    ({"n_components": 11}, np.ones((5, 24)), "from half of the 24 columns"),
    ({"n_components": 3}, np.ones((5, 2)), "at most the length of a row, 2"),
    ({}, iter([np.ones((5, 2))]), "readable more than once"),
    by=lambda fields, rows: PureResidualStepPCA.calibrated(
        1.0, **{"n_components": 1, **fields}
    ).draw(rows, 1, rng=rng()),
)
