"""The exponential mechanism for one component: law, loss, and what is true of pairs.

Type-I error: 1e-9 for each of the 2 goodness-of-fit tests, at fixed seeds.
"""

import numpy as np
import pytest
from bingham_oracles import TYPE_I_ERROR, angle_p_value
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import random_pair

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms import ExponentialMechanism, build
from dpaudit.claims import NO_LOSS, PureDP

RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def pure_epsilon(mechanism, pair):
    exact = mechanism.exact_claim(pair)
    assert isinstance(exact, PureDP)
    return exact.parameters["epsilon"]


@pytest.mark.parametrize("row_norm", [1.0, 3.0])
def test_the_coefficient_is_the_one_of_the_proof(row_norm):
    for relation, share in ((Relation.ADD_REMOVE, 1.0), (Relation.REPLACE_ONE, 0.5)):
        mechanism = build(
            "exponential-pca", epsilon=0.7, relation=relation, row_norm=row_norm
        )
        assert mechanism.coefficient == pytest.approx(share * 0.7 / row_norm**2)
        assert mechanism.claim == PureDP(0.7)
        assert mechanism.relation is relation


def test_more_components_are_refused_with_a_hint():
    with pytest.raises(InputError, match="must be 1, got 2") as caught:
        ExponentialMechanism(n_components=2)
    assert "exponential-pca-gibbs" in str(caught.value)
    assert "exponential-pca-deflation" in str(caught.value)


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


def test_neighbours_with_the_same_moment_lose_nothing():
    pair = Pair([[0.6, -0.8]], [[-0.6, 0.8]])
    mechanism = build("exponential-pca", relation=Relation.REPLACE_ONE)
    assert mechanism.exact_claim(pair) == NO_LOSS


@RELATIONS
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("d", [2, 8])
def test_the_worst_pair_comes_near_the_claim(relation, epsilon, d):
    mechanism = ExponentialMechanism(epsilon=epsilon, relation=relation, row_norm=2.0)
    pair = mechanism.worst_case(d)
    assert pair.relation is relation
    assert pair.data.shape[1] == d
    assert 0.88 * epsilon <= pure_epsilon(mechanism, pair) < epsilon
    # A small epsilon does not take more rows than can be kept; one column says nothing.
    few = ExponentialMechanism(epsilon=1e-9, relation=relation)
    assert len(few.worst_case(50).data) <= 10_001
    assert mechanism.exact_claim(mechanism.worst_case(1)) == NO_LOSS
