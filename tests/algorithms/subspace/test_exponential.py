"""The exponential mechanism for one component, and for several one after the other.

Their laws, their exact losses, the calibration, and what is true of pairs.
Type-I error: 1e-9 for each of the 8 goodness-of-fit tests, at fixed seeds.
"""

import dataclasses

import numpy as np
import pytest
from bingham_oracles import TYPE_I_ERROR, angle_p_value, marginal_cdf, series
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from scipy import special, stats
from seeded import random_pair

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms import DeflationExponential, ExponentialMechanism, build
from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.claims import NO_LOSS, PureDP

RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def test_shares_are_ratios_and_large_batches_drawn_in_parts():
    options = {"n_components": 3, "epsilon": 2.0}
    mechanism = DeflationExponential(shares=[1, 3, 4], **options)
    assert mechanism.shares == (1.0, 3.0, 4.0)
    np.testing.assert_allclose(mechanism.coefficients, [0.25, 0.75, 1.0])
    scaled = DeflationExponential(shares=(0.5, 1.5, 2.0), **options)
    np.testing.assert_array_equal(scaled.coefficients, mechanism.coefficients)
    replacing = dataclasses.replace(mechanism, relation=Relation.REPLACE_ONE)
    np.testing.assert_allclose(
        replacing.coefficients, np.array([0.25, 0.75, 1.0]) / 1.5
    )
    assert replacing.coefficients.sum() + replacing.coefficients.max() == 2.0
    # 700 matrices of 20 x 20: more numbers than are made at once.
    mechanism = DeflationExponential(n_components=2)
    pair = random_pair(0, Relation.ADD_REMOVE, 9, 20)
    releases = mechanism.draw(pair.data, 700, rng=np.random.default_rng(0))
    gram = releases.swapaxes(-2, -1) @ releases
    np.testing.assert_allclose(gram, np.tile(np.eye(2), (700, 1, 1)), atol=1e-13)
    whole = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    end = mechanism.privacy_loss(releases[600:], pair.data, pair.neighbour)
    np.testing.assert_allclose(whole[600:], end, atol=1e-12)
    none = mechanism.privacy_loss(releases[:0], pair.data, pair.neighbour)
    assert none.shape == (0,)


@RELATIONS
def test_one_component_is_the_exponential_mechanism(relation):
    one = ExponentialMechanism(epsilon=0.7, relation=relation, row_norm=2.0)
    same = DeflationExponential(epsilon=0.7, relation=relation, row_norm=2.0)
    assert same.coefficients == pytest.approx([one.coefficient])
    pair = random_pair(0, relation, 9, 4)
    releases = same.draw(pair.data, 20, rng=np.random.default_rng(0))
    expected = one.draw(pair.data, 20, rng=np.random.default_rng(0))
    np.testing.assert_allclose(releases, expected, atol=1e-12)
    np.testing.assert_allclose(
        same.privacy_loss(releases, pair.data, pair.neighbour),
        one.privacy_loss(releases, pair.data, pair.neighbour),
        atol=1e-12,
    )


test_bad_options_are_refused = refused(
    ({"n_components": 2, "shares": (1.0,)}, "shares must be 2 numbers, .* got 1"),
    ({"n_components": 2, "shares": (1.0, 0.0)}, "shares must be a finite number"),
    ({"n_components": 2, "shares": (1.0, -1)}, "shares must be a finite number"),
    ({"n_components": 1, "shares": ("1",)}, "shares must be a real number"),
    by=lambda options: DeflationExponential(**options),
)


def second_angle_share(draws, values, coefficient):
    """The conditional distribution function of the second column, d = 3.

    In an eigenbasis of A compressed to the plane orthogonal to the first column, twice
    the angle is von Mises with half the coefficient times the eigengap.
    """
    planes = np.linalg.svd(draws[..., 0][:, np.newaxis]).Vh[:, 1:]
    found, vectors = np.linalg.eigh(planes * values @ planes.swapaxes(-2, -1))
    seconds = planes @ draws[..., 1:]
    x, y = (vectors[..., ::-1].swapaxes(-2, -1) @ seconds)[..., 0].T
    angle = np.angle((x + 1j * y) ** 2)
    return stats.vonmises.cdf(angle, coefficient * (found[:, 1] - found[:, 0]) / 2)


@RELATIONS
@pytest.mark.parametrize("values", [[5.0, 2.0, 0.0], [60.0, 3.0, 40.0]])
def test_each_column_has_its_conditional_law(relation, values):
    # Null hypothesis: the entries of the first column have the law of the quadrature,
    # and given the first, the angle of the second is von Mises.
    values = np.array(values)
    mechanism = DeflationExponential(
        n_components=2, epsilon=3.0, shares=(2, 1), relation=relation
    )
    # A from rows in the unit ball, of any basis.
    rng = np.random.default_rng(1)
    rotation = uniform_frames(1, 3, 3, rng=rng)[0]
    moment = rotation * values @ rotation.T
    draws = rotation.T @ mechanism.draw_from(moment, 4000, rng=rng)
    c = (2.0, 1.0) if relation is Relation.ADD_REMOVE else (1.2, 0.6)
    for axis in range(3):
        cdf = marginal_cdf(c[0] * np.roll(values, -axis))
        p_value = stats.kstest(draws[:, axis, 0], cdf).pvalue
        assert p_value >= TYPE_I_ERROR / 4
    share = second_angle_share(draws, values, c[1])
    assert stats.kstest(share, stats.uniform.cdf).pvalue >= TYPE_I_ERROR / 4
    wrong = second_angle_share(draws, values, 4 * c[1])
    assert stats.kstest(wrong, stats.uniform.cdf).pvalue < TYPE_I_ERROR


def test_no_rows_give_uniform_columns_of_either_sign():
    mechanism = DeflationExponential(n_components=2)
    draws = mechanism.draw(np.empty((0, 3)), 20_000, rng=np.random.default_rng(0))
    for column in draws.reshape(-1, 6).T:
        p_value = stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue
        assert p_value >= TYPE_I_ERROR / 6
    mechanism = DeflationExponential(n_components=3)
    draws = mechanism.draw(np.empty((0, 3)), 10_000, rng=np.random.default_rng(0))
    positive = int((np.linalg.det(draws) > 0).sum())
    assert stats.binomtest(positive, len(draws)).pvalue >= TYPE_I_ERROR


def naive_log_density(frame, moment, coefficients):
    """Column by column, with a basis of the complement from a singular decomposition.

    The constants are Bessel functions in two dimensions, and power series in more.
    """
    total = 0.0
    for j, c in enumerate(coefficients):
        before = frame[:, :j].T
        basis = np.linalg.svd(before).Vh[j:] if j else np.eye(len(frame))
        values = np.linalg.eigvalsh(c * basis @ moment @ basis.T)
        if len(values) == 2:
            half = (values[1] - values[0]) / 2
            log_constant = values.mean() + half + np.log(special.i0e(half))
        else:
            log_constant = series(list(values))
        total += c * frame[:, j] @ moment @ frame[:, j] - log_constant
    return total


@RELATIONS
@pytest.mark.parametrize(("k", "d"), [(2, 3), (3, 3)])
def test_the_loss_is_that_of_the_definition(relation, k, d):
    mechanism = DeflationExponential(
        n_components=k,
        epsilon=2.0,
        row_norm=1.5,
        relation=relation,
        shares=range(1, k + 1),
    )
    pair = random_pair(k, relation, 6, d)
    releases = mechanism.draw(pair.data, 6, rng=np.random.default_rng(0))
    here, there = mechanism.moment(pair.data), mechanism.moment(pair.neighbour)
    expected = [
        naive_log_density(frame, here, mechanism.coefficients)
        - naive_log_density(frame, there, mechanism.coefficients)
        for frame in releases
    ]
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, expected, atol=1e-11)
    back = mechanism.privacy_loss(releases, pair.neighbour, pair.data)
    np.testing.assert_allclose(back, -loss, atol=1e-13)


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.sampled_from(Relation),
    st.integers(2, 5),
    st.integers(1, 30),
    st.floats(0.01, 20.0),
)
def test_no_frame_loses_more_than_the_bounds_of_the_proof(
    seed, relation, d, n, epsilon
):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d + 1))
    mechanism = DeflationExponential(
        n_components=k, epsilon=epsilon, relation=relation, shares=rng.random(k) + 0.05
    )
    pair = random_pair(seed, relation, n, d)
    eigenvectors = np.linalg.eigh(mechanism.moment(pair.data)).eigenvectors
    frames = np.concatenate(
        [
            mechanism.draw(pair.data, 10, rng=rng),
            *(uniform_frames(30, d, k, rng=rng), eigenvectors[np.newaxis, :, :k]),
            eigenvectors[np.newaxis, :, ::-1][..., :k],
        ]
    )
    loss = mechanism.privacy_loss(frames, pair.data, pair.neighbour)
    rounding = 1e-12 * (1 + epsilon)
    assert np.abs(loss).max() <= epsilon + rounding
    if relation is Relation.ADD_REMOVE:
        # The data have one row more than the neighbour.
        largest = mechanism.coefficients.max()
        assert loss.max() <= largest + rounding


@RELATIONS
@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 2), (1.0, 3), (4.0, 2)])
def test_the_worst_pair_comes_near_the_claim(relation, epsilon, k):
    mechanism = DeflationExponential(
        n_components=k, epsilon=epsilon, relation=relation, row_norm=2.0
    )
    for pair in mechanism.canonical_pairs():
        assert pair.relation is relation
        d = pair.data.shape[1]
        frame = np.eye(d)[np.newaxis, :, -k:]
        loss = mechanism.privacy_loss(frame, pair.data, pair.neighbour)
        assert 0.6 * epsilon <= abs(float(loss[0])) < epsilon


@RELATIONS
def test_the_worst_pair_has_few_rows_and_any_dimension(relation):
    mechanism = DeflationExponential(n_components=2, epsilon=1e-9, relation=relation)
    assert len(mechanism.worst_case(50).data) <= 10_001
    assert mechanism.worst_case().data.shape[1] == 3
    assert mechanism.worst_case(2).data.shape[1] == 2
    refuses("dimension must be", mechanism.worst_case, 1)
    assert DeflationExponential(relation=relation).worst_case(1).relation is relation


def pure_epsilon(mechanism, pair):
    exact = mechanism.exact_claim(pair)
    assert isinstance(exact, PureDP)
    return exact.parameters["epsilon"]


@pytest.mark.parametrize("row_norm", [1.0, 3.0])
def test_coefficients_of_one_component_or_more_are_those_of_the_proof(row_norm):
    for relation, share in ((Relation.ADD_REMOVE, 1.0), (Relation.REPLACE_ONE, 0.5)):
        mechanism = build(
            "exponential-pca", epsilon=0.7, relation=relation, row_norm=row_norm
        )
        assert mechanism.coefficient == pytest.approx(share * 0.7 / row_norm**2)
        assert mechanism.claim == PureDP(0.7)
        assert mechanism.relation is relation
    for k in (1, 2, 5):
        options = {"epsilon": 0.7, "row_norm": row_norm, "n_components": k}
        adding = build("exponential-pca-deflation", **options).coefficients
        np.testing.assert_allclose(adding * row_norm**2, np.full(k, 0.7 / k))
        replacing = build(
            "exponential-pca-deflation", relation="replace-one", **options
        ).coefficients
        np.testing.assert_allclose(replacing * row_norm**2, np.full(k, 0.7 / (k + 1)))


def test_more_components_are_refused_and_the_same_moment_loses_nothing():
    with pytest.raises(InputError, match="must be 1, got 2") as caught:
        ExponentialMechanism(n_components=2)
    assert "exponential-pca-gibbs" in str(caught.value)
    assert "exponential-pca-deflation" in str(caught.value)
    pair = Pair([[0.6, -0.8]], [[-0.6, 0.8]])
    mechanism = build("exponential-pca", relation=Relation.REPLACE_ONE)
    assert mechanism.exact_claim(pair) == NO_LOSS


@RELATIONS
def test_releases_have_the_density_of_the_definition(relation):
    # d = 2: twice the angle to the first eigenvector is von Mises, its concentration
    # half the coefficient times the eigengap. Rows are clipped to 2; epsilon is 3.
    mechanism = ExponentialMechanism(epsilon=3.0, row_norm=2.0, relation=relation)
    rows = np.array([[2.4, 3.2], [1.2, 1.6], [0.8, -0.6], [0.6, 0.8]])
    first = np.array([0.6, 0.8])
    gap = mechanism.coefficient * (4 + 4 - 1 + 1)
    releases = mechanism.draw(rows, 20_000, rng=np.random.default_rng(0))[..., 0]
    turned = np.stack(
        [releases @ first, releases @ np.array([-first[1], first[0]])], axis=-1
    )
    assert angle_p_value(turned, gap) >= TYPE_I_ERROR
    assert angle_p_value(turned, 1.3 * gap) < TYPE_I_ERROR


def density_on_the_circle(mechanism, rows, points):
    """The density with respect to the uniform law; trapezoidal rule, d = 2."""
    norms = np.maximum(np.linalg.norm(rows, axis=1), mechanism.row_norm)
    clipped = rows * (mechanism.row_norm / norms)[:, np.newaxis]
    turns = np.linspace(0, 2 * np.pi, 4096, endpoint=False)
    grid = np.stack([np.cos(turns), np.sin(turns)], axis=-1)

    def weight(u):
        return np.exp(mechanism.coefficient * ((u @ clipped.T) ** 2).sum(axis=1))

    return weight(points) / weight(grid).mean(), weight(grid) / weight(grid).mean()


@RELATIONS
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_exact_epsilon_agree_with_brute_force_in_two_dimensions(
    relation, seed
):
    epsilon = (0.1, 1.0, 20.0)[seed]
    mechanism = ExponentialMechanism(epsilon=epsilon, relation=relation, row_norm=1.5)
    pair = random_pair(seed, relation, 6, 2)
    releases = mechanism.draw(pair.data, 50, rng=np.random.default_rng(seed))
    here, all_here = density_on_the_circle(mechanism, pair.data, releases[..., 0])
    there, all_there = density_on_the_circle(
        mechanism, pair.neighbour, releases[..., 0]
    )
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    np.testing.assert_allclose(loss, np.log(here / there), rtol=1e-11, atol=1e-12)
    back = mechanism.privacy_loss(releases, pair.neighbour, pair.data)
    np.testing.assert_allclose(back, -loss, rtol=1e-12, atol=1e-14)
    on_grid = np.abs(np.log(all_here / all_there)).max()
    exact = pure_epsilon(mechanism, pair)
    # The grid misses the extreme direction by at most pi/4096.
    assert on_grid <= exact * (1 + 1e-12)
    assert on_grid >= exact * (1 - 1e-5)


@settings(max_examples=20)
@given(
    st.integers(0, 2**32),
    st.sampled_from(Relation),
    st.integers(1, 6),
    st.integers(1, 40),
    st.floats(0.01, 20.0),
)
def test_no_pair_loses_more_than_epsilon(seed, relation, d, n, epsilon):
    rng = np.random.default_rng(seed)
    mechanism = ExponentialMechanism(epsilon=epsilon, relation=relation)
    pair = random_pair(seed, relation, n, d)
    if d == 1:
        assert mechanism.exact_claim(pair) == NO_LOSS
        return
    exact = pure_epsilon(mechanism, pair)
    assert exact <= epsilon
    for rows in (pair.data, pair.neighbour):
        releases = mechanism.draw(rows, 20, rng=rng)
        loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
        assert np.abs(loss).max() <= exact * (1 + 1e-9) + 1e-12


@RELATIONS
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("d", [2, 8])
def test_the_worst_pair_of_one_component_comes_near_the_claim(relation, epsilon, d):
    mechanism = ExponentialMechanism(epsilon=epsilon, relation=relation, row_norm=2.0)
    pair = mechanism.worst_case(d)
    assert pair.relation is relation
    assert pair.data.shape[1] == d
    assert 0.88 * epsilon <= pure_epsilon(mechanism, pair) < epsilon
    # A small epsilon does not take more rows than can be kept; one column says nothing.
    few = ExponentialMechanism(epsilon=1e-9, relation=relation)
    assert len(few.worst_case(50).data) <= 10_001
    assert mechanism.exact_claim(mechanism.worst_case(1)) == NO_LOSS
