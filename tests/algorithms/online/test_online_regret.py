"""Regret, the best subspace in hindsight, and the bounds."""

from math import exp, log, sqrt

import numpy as np
import pytest
from refusals import refused
from seeded import rng

from dpaudit.algorithms.online.noise import PublishedStepNoise
from dpaudit.algorithms.online.regret import (
    best_fixed_reward,
    corollary_17_bound,
    follow_the_leader,
    proven_regret_bound,
    regret,
    rewards,
    theorem_18_bound,
)
from dpaudit.algorithms.online.tree_aggregation import OnlinePCA


def stream(deviations, count=60):
    rows = rng(3).standard_normal((count, len(deviations))) * deviations
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


SPIKED = stream([1.0, 0.8, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_optimum_is_that_of_the_best_subspace(k):
    rows = SPIKED
    optimum = best_fixed_reward(rows, k)
    bases = np.linalg.qr(rng().standard_normal((2000, 5, 5)))[0][..., :k]
    earned = ((rows @ bases) ** 2).sum(axis=(1, 2))
    assert earned.max() <= optimum + 1e-9
    leader = follow_the_leader(rows, k)[-1]
    assert ((rows @ leader) ** 2).sum() == pytest.approx(optimum)
    if k < 5:
        assert earned.max() >= 0.8 * optimum
    else:
        assert earned.min() == pytest.approx(optimum)


def test_rewards_are_those_of_the_subspace_before_the_row():
    rows = stream([1.0] * 3, 7)
    bases = np.linalg.qr(rng(1).standard_normal((4, 7, 3, 3)))[0][..., :2]
    found = rewards(rows, bases)
    for trial in range(4):
        for t in range(7):
            basis = np.eye(3)[:, :2] if t == 0 else bases[trial, t - 1]
            expected = (rows[t] @ basis) @ (rows[t] @ basis)
            assert found[trial, t] == pytest.approx(expected)
    total = best_fixed_reward(rows, 2) - found.sum(axis=1)
    np.testing.assert_allclose(regret(rows, bases), total)
    # The last basis earns nothing.
    changed = bases.copy()
    changed[:, -1] = np.eye(3)[:, 1:]
    np.testing.assert_array_equal(rewards(rows, changed), found)


def test_follow_the_leader_is_what_little_noise_gives():
    rows = SPIKED
    quiet = OnlinePCA.calibrated(1e12, 0.5, n_components=2)
    bases = quiet.release(rows, rng=rng())
    expected = follow_the_leader(rows, 2)
    late = slice(5, None)
    overlap = np.linalg.norm(bases[late].swapaxes(1, 2) @ expected[late], axis=(1, 2))
    np.testing.assert_allclose(overlap, sqrt(2), atol=1e-4)


def test_the_proven_bound_in_numbers():
    setting = {"length": 10, "dimension": 4, "n_components": 2}
    noise = PublishedStepNoise(0.5, 0.01).deviation(uses=1, length=1, row_norm=1.0)
    bound = proven_regret_bound(
        optimum=8.0, sigma=noise, epsilon=0.5, delta=0.01, **setting
    )
    expected = (1 - exp(-0.5)) * 8 + exp(-0.5) * (4 * 2 * noise * 2 + 0.09 + 1)
    assert bound == pytest.approx(expected)
    whole = setting | {"n_components": 4}
    assert (
        proven_regret_bound(optimum=8.0, sigma=5.0, epsilon=1.0, delta=0.1, **whole)
        == 0
    )


def test_the_bounds_of_the_paper_are_as_printed():
    setting = {"optimum": 1e6, "length": 1000, "dimension": 100, "n_components": 3}
    second = corollary_17_bound(**setting)
    assert second == pytest.approx(sqrt(3 * 1e6 * 10 * log(1000)))
    third = theorem_18_bound(delta=1e-7, **setting)
    assert third == pytest.approx(sqrt(3 * 1e6 * 10 * log(1e10) ** 5))


test_bad_input_is_named = refused(
    (lambda: rewards(np.eye(3), np.zeros((2, 3, 1))), "bases must have shape"),
    (lambda: rewards(np.zeros((0, 3)), np.zeros((0, 3, 1))), "data must have shape"),
    (lambda: best_fixed_reward(np.eye(2), 3), "n_components must be at most"),
    (lambda: best_fixed_reward(np.eye(2), 0), "n_components must be an integer"),
    (lambda: follow_the_leader(np.eye(2), 3), "n_components must be at most"),
    (
        lambda: corollary_17_bound(optimum=1.0, length=1, dimension=2, n_components=1),
        "length must be an integer >= 2",
    ),
    (
        lambda: corollary_17_bound(optimum=-1.0, length=9, dimension=2, n_components=1),
        "optimum must be",
    ),
    (
        lambda: theorem_18_bound(
            optimum=1.0, length=9, dimension=2, n_components=1, delta=0.0
        ),
        "delta must be in",
    ),
)
