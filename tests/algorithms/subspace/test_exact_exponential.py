"""The exponential mechanism for k components, drawn exactly: law, loss, worst pairs.

Its draws are from the matrix Bingham distribution, whose laws are compared with what
follows by quadrature: von Mises (d = 2, k = 1), the normals of planes in R^3, which are
vector Bingham, and the two spheres of planes in R^4.

Type-I error: 1e-9 for each of the 19 statistical tests, 2e-8 in total, at fixed seeds.
"""

import numpy as np
import pytest
from bingham_oracles import angle_p_value, bernstein_radius, series
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_bingham_oracles import (
    TYPE_I_ERROR,
    normal_p_values,
    plane_p_values,
    same_law_p_values,
    wide_gap_acceptance,
)
from refusals import refuses
from scipy import optimize, stats
from seeded import random_pair

from dpaudit import Pair, Relation, UnsupportedError
from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.algorithms.subspace.exact_exponential import ExactExponential, MatrixACG
from dpaudit.claims import NO_LOSS

RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def assert_plausible(p_values):
    assert min(p_values) >= TYPE_I_ERROR / len(p_values)


def test_complements_have_the_opposite_sign_and_acceptance_an_estimate():
    # Three columns in R^5 by their own envelope, and by that of the complement.
    values = np.array([0.0, 3.0, 6.0, 20.0, 30.0])
    direct = MatrixACG(values, 3).draw(4000, rng=np.random.default_rng(0))
    mechanism = ExactExponential(n_components=3)
    reduced = mechanism.draw_from(np.diag(values), 4000, rng=np.random.default_rng(1))
    assert_plausible(same_law_p_values(direct, reduced, values))
    moment = np.diag(0.6 * values)
    other = mechanism.draw_from(moment, 4000, rng=np.random.default_rng(1))
    with pytest.raises(AssertionError):
        assert_plausible(same_law_p_values(direct, other, values))
    mechanism = ExactExponential(n_components=2)
    rows = np.repeat(np.eye(4), [9000, 9000, 1, 1], axis=0)
    found = mechanism.acceptance(rows, rng=np.random.default_rng(0))
    radius = bernstein_radius(0.25, 10_000)
    assert abs(found - wide_gap_acceptance(4, 2)) <= radius + 0.01
    rng = np.random.default_rng(0)
    for k in (1, 3, 4):
        assert ExactExponential(n_components=k).acceptance(rows, rng=rng) == 1.0
    refuses("size must be", mechanism.acceptance, rows, size=0, rng=rng)


@RELATIONS
def test_releases_have_the_density_of_the_definition(relation):
    # Rows are clipped to 2, the eigenvectors are not the basis vectors, epsilon is 3.
    rng = np.random.default_rng(5)
    rotation = uniform_frames(1, 4, 4, rng=rng)[0]
    rows = np.repeat(np.diag([2.0, 9.0, 1.0, 0.5]), [5, 2, 6, 1], axis=0) @ rotation.T
    mechanism = ExactExponential(
        n_components=2, epsilon=3.0, row_norm=2.0, relation=relation
    )
    share = 1.0 if relation is Relation.ADD_REMOVE else 0.5
    values = share * 3.0 / 4.0 * np.array([20.0, 8.0, 6.0, 0.25])
    releases = rotation.T @ mechanism.draw(rows, 10_000, rng=rng)
    assert_plausible(plane_p_values(releases, values))
    with pytest.raises(AssertionError):
        assert_plausible(plane_p_values(releases, 1.4 * values))


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 3), (2, 5), (4, 5)])
def test_no_rows_give_the_uniform_law(k, d):
    # Null hypothesis: |V^T e_1|^2 is Beta(k/2, (d - k)/2), so its mean is k/d.
    mechanism = ExactExponential(n_components=k)
    draws = mechanism.draw(np.empty((0, d)), 5000, rng=np.random.default_rng(0))
    squares = (draws**2).sum(axis=-1)
    radius = bernstein_radius(0.25, len(draws), statements=d)
    assert np.abs(squares.mean(axis=0) - k / d).max() <= radius


def log_normaliser(values, k):
    """log Z by power series (mpmath), for k = 1 and k = d - 1."""
    if k == 1:
        return series(list(values))
    return sum(values) + series([-value for value in values])


@RELATIONS
@pytest.mark.parametrize(("k", "d"), [(1, 3), (2, 3), (3, 4)])
def test_the_loss_is_that_of_the_definition(relation, k, d):
    mechanism = ExactExponential(n_components=k, epsilon=2.0, relation=relation)
    pair = random_pair(k, relation, 6, d)
    releases = mechanism.draw(pair.data, 10, rng=np.random.default_rng(0))
    logs = []
    for rows in (pair.data, pair.neighbour):
        exponent = mechanism.coefficient * mechanism.moment(rows)
        captured = np.trace(releases.swapaxes(-2, -1) @ exponent @ releases, 0, 1, 2)
        logs.append(captured - log_normaliser(np.linalg.eigvalsh(exponent), k))
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, logs[0] - logs[1], atol=1e-12)
    back = mechanism.privacy_loss(releases, pair.neighbour, pair.data)
    np.testing.assert_allclose(back, -loss, atol=1e-14)
    exact = mechanism.exact_claim(pair).parameters["epsilon"]
    assert np.abs(loss).max() <= exact <= 2.0
    # The extreme frames are eigenvectors of the difference.
    difference = mechanism.moment(pair.data) - mechanism.moment(pair.neighbour)
    vectors = np.linalg.eigh(difference).eigenvectors
    extremes = np.stack([vectors[:, :k], vectors[:, -k:]])
    attained = mechanism.privacy_loss(extremes, pair.data, pair.neighbour)
    assert np.abs(attained).max() == pytest.approx(exact, rel=1e-12)


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.sampled_from(Relation),
    st.integers(2, 6),
    st.integers(1, 40),
    st.floats(0.01, 20.0),
)
def test_no_pair_loses_more_than_epsilon(seed, relation, d, n, epsilon):
    for k in (1, d - 1):
        mechanism = ExactExponential(n_components=k, epsilon=epsilon, relation=relation)
        exact = mechanism.exact_claim(random_pair(seed, relation, n, d))
        assert exact.parameters["epsilon"] <= epsilon * (1 + 1e-12)


@RELATIONS
@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 3), (5.0, 4)])
def test_the_worst_pair_comes_near_the_claim(relation, epsilon, k):
    mechanism = ExactExponential(
        n_components=k, epsilon=epsilon, relation=relation, row_norm=2.0
    )
    pair = mechanism.worst_case(k + 1)
    assert pair.relation is relation
    found = mechanism.exact_claim(pair).parameters["epsilon"]
    assert 0.75 * epsilon <= found < epsilon


def test_bases_of_everything_lose_nothing_and_others_are_uniform_given_the_span():
    mechanism = ExactExponential(n_components=3)
    pair = random_pair(0, Relation.ADD_REMOVE, 5, 3)
    assert mechanism.exact_claim(pair) == NO_LOSS
    releases = mechanism.draw(pair.data, 5, rng=np.random.default_rng(0))
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, 0.0, atol=1e-13)
    same = Pair([[0.6, -0.8, 0.0]], [[-0.6, 0.8, 0.0]])
    replace = ExactExponential(n_components=2, relation=Relation.REPLACE_ONE)
    assert replace.exact_claim(same) == NO_LOSS
    # Null hypothesis: e_1's part in the span lies in a uniform direction of it.
    mechanism = ExactExponential(n_components=2)
    draws = mechanism.draw_from(
        np.diag([30.0, 10.0, 0.0, 0.0]), 10_000, rng=np.random.default_rng(0)
    )
    angle = np.arctan2(draws[:, 0, 1], draws[:, 0, 0])
    law = stats.uniform(-np.pi, 2 * np.pi)
    assert stats.kstest(angle, law.cdf).pvalue >= TYPE_I_ERROR


def test_losses_and_arguments_that_cannot_be_are_refused():
    mechanism = ExactExponential(n_components=2)
    pair = mechanism.worst_case()
    releases = mechanism.draw(pair.data, 3, rng=np.random.default_rng(0))
    for ask in (
        lambda: mechanism.privacy_loss(releases, pair.data, pair.neighbour),
        lambda: mechanism.exact_claim(pair),
    ):
        refuses("n_components = 1, 3 or 4", ask, error=UnsupportedError)
    refuses("k must be an integer >= 1 and <= 2, got 3", MatrixACG, [1.0, 0.0], 3)


@RELATIONS
@pytest.mark.parametrize("k", [1, 2, 3])
def test_canonical_pairs(relation, k):
    mechanism = ExactExponential(n_components=k, epsilon=1e-9, relation=relation)
    pairs = mechanism.canonical_pairs()
    assert {pair.relation for pair in pairs} == {relation}
    assert max(len(pair.data) for pair in pairs) <= 10_001
    assert mechanism.worst_case().data.shape[1] == (2 if k == 1 else k + 2)
    assert mechanism.worst_case(k).data.shape[1] == k
    if k > 1:
        refuses("dimension must be", mechanism.worst_case, k - 1)


def acg_draws(values, k, size=10_000, seed=0):
    return MatrixACG(values, k).draw(size, rng=np.random.default_rng(seed))


def random_values(seed, d):
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    scale = 10.0 ** rng.uniform(-3, 5)
    if kind == 0:
        return scale * rng.standard_normal(d)
    if kind == 1:
        return scale * rng.integers(0, 3, d)
    return scale * 10.0 ** rng.uniform(-8, 0, d)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_the_acceptance_probability_is_never_above_one(seed, d):
    rng = np.random.default_rng(seed)
    values = random_values(seed, d)
    for k in range(1, d + 1):
        sampler = MatrixACG(values, k)
        for frames in (
            sampler.propose(50, rng=rng),
            uniform_frames(50, d, k, rng=rng),
            np.eye(d)[rng.permutation(d)][np.newaxis, :, :k],
        ):
            assert sampler.log_acceptance(frames).max() <= 1e-9


@pytest.mark.parametrize(
    ("values", "k"), [([5.0, 3.0, 0.0], 1), ([30.0, 10.0, 5.0, 0.0], 2)]
)
def test_no_frame_that_an_optimiser_finds_is_above_the_envelope(values, k):
    sampler, d = MatrixACG(values, k), len(values)
    rng = np.random.default_rng(0)

    def minus_log_acceptance(entries):
        frame = np.linalg.qr(entries.reshape(d, k)).Q
        return -sampler.log_acceptance(frame[np.newaxis])[0]

    found = [
        -optimize.minimize(minus_log_acceptance, rng.standard_normal(d * k)).fun
        for _ in range(3)
    ]
    assert max(found) <= 1e-9
    # It is not far above the frames either.
    assert max(found) > -0.2


def test_for_one_column_it_is_the_envelope_and_equal_eigenvalues_are_accepted():
    # Attained where 1 + 2 t/b = d/b; b solves sum 1/(b + 2 a) = 1.
    gaps = np.array([0.0, 4.0, 9.0])
    b = optimize.brentq(lambda b: np.sum(1 / (b + 2 * gaps)) - 1, 1, 3, xtol=1e-15)
    t = (3 - b) / 2
    u = np.sqrt([1 - t / 4, t / 4, 0.0])
    acceptance = MatrixACG(-gaps, 1).log_acceptance(u.reshape(1, 3, 1))
    assert acceptance[0] == pytest.approx(0.0, abs=1e-8)
    sampler = MatrixACG(np.full(6, 3.0), 3)
    frames = sampler.propose(1000, rng=np.random.default_rng(0))
    assert np.exp(sampler.log_acceptance(frames)).min() > 0.99


@pytest.mark.parametrize(("d", "k"), [(4, 2), (6, 3)])
def test_acceptance_behind_a_wide_gap(d, k):
    # Null hypothesis: the mean of the acceptance probabilities is that of the formula,
    # up to terms of order 1/gap and what the optimiser leaves (Bernstein's inequality).
    values = np.repeat([1e7, 0.0], [k, d - k])
    sampler = MatrixACG(values, k)
    frames = sampler.propose(20_000, rng=np.random.default_rng(0))
    chances = np.exp(sampler.log_acceptance(frames))
    expected = wide_gap_acceptance(d, k)
    radius = bernstein_radius(expected * (1 - expected), len(chances))
    assert abs(chances.mean() - expected) <= radius + 0.01 * expected
    assert radius < 0.3 * expected


@pytest.mark.parametrize(
    "values",
    [[1e4, 100.0, 0.0, 0.0], [1e4, 5e3, 100.0, 0.0], 6e3 / np.arange(1, 21) ** 2.0],
)
def test_gaps_before_the_last_component_do_not_matter_much(values):
    sampler = MatrixACG(values, 2)
    frames = sampler.propose(20_000, rng=np.random.default_rng(0))
    chances = np.exp(sampler.log_acceptance(frames))
    assert chances.mean() > 0.3 * wide_gap_acceptance(len(values), 2)


@pytest.mark.parametrize("gap", [1.0, 8.0, 1000.0])
def test_lines_in_the_plane_are_von_mises(gap):
    draws = acg_draws([gap, 0.0], 1)[..., 0]
    # The sign of a frame is any.
    assert angle_p_value(draws, gap) >= TYPE_I_ERROR
    assert angle_p_value(draws, 2 * gap) < TYPE_I_ERROR


@pytest.mark.parametrize("values", [[0.0, 40.0, 35.0], [500.0, 3.0, 0.0]])
def test_planes_in_space_have_vector_bingham_normals(values):
    draws = acg_draws(values, 2)
    assert_plausible(normal_p_values(draws, values))
    with pytest.raises(AssertionError):
        assert_plausible(normal_p_values(draws, 2 * np.array(values)))


PLANES = [[20.0, 10.0, 5.0, 0.0], [0.0, 3000.0, 7.0, 10.0], [60.0, 60.0, 60.0, 0.0]]


@pytest.mark.parametrize("values", PLANES)
def test_planes_in_four_dimensions_follow_the_law_of_two_spheres(values):
    draws = acg_draws(values, 2)
    assert_plausible(plane_p_values(draws, values))
    with pytest.raises(AssertionError):
        assert_plausible(plane_p_values(draws, 2 * np.array(values)))
