"""Projections onto H: against generic solvers, KKT conditions, and hard spectra.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robust_objectives import bregman_projection, frobenius_projection
from seeded import rng

from dpaudit.algorithms.robust.fantope import (
    bregman_logs,
    clipped_eigenvalues,
    renormalised_logs,
)


def symmetric(d, trials=1, seed=0, scale=1.0):
    matrices = scale * rng(seed).standard_normal((trials, d, d))
    return (matrices + matrices.swapaxes(1, 2)) / 2


@pytest.mark.parametrize(("d", "r"), [(2, 1), (3, 1), (3, 2)])
def test_frobenius_projection_is_nearest_among_matrices(d, r):
    # Over all of H, not eigenvalues alone, whose extreme points are the projectors.
    for seed in range(10):
        matrix = symmetric(d, seed=seed, scale=2.0)[0]
        nearest = frobenius_projection(matrix, r)
        other = np.linalg.qr(rng(seed).standard_normal((200, d, d))).Q[..., :r]
        corners = other @ other.swapaxes(1, 2)
        # <M - P, V V^T - P> <= 0 at every extreme point is what makes P the nearest.
        inner = np.sum((matrix - nearest) * (corners - nearest), axis=(1, 2))
        assert inner.max() < 1e-10


@given(st.integers(0, 2**32), st.integers(2, 12), st.data())
@settings(max_examples=200)
def test_the_conditions_of_kkt_hold(seed, d, data):
    r = data.draw(st.integers(1, d - 1))
    scale = data.draw(st.sampled_from([1e-6, 0.1, 1.0, 30.0, 1e4]))
    values = np.sort(scale * rng(seed).standard_normal(d))
    p = clipped_eigenvalues(values, r)
    assert np.all((p >= 0) & (p <= 1))
    assert np.isclose(p.sum(), r, rtol=0, atol=1e-9 * max(1.0, scale * 1e-3))
    # values - p is theta where p is free, at least that where p = 1, at most at 0.
    free = (p > 0) & (p < 1)
    multiplier = values - p
    slack = 1e-12 * max(1.0, scale)
    least = multiplier[p > 0].min()
    most = multiplier[p < 1].max(initial=-np.inf)
    assert most <= least + slack
    assert free.sum() == 0 or np.ptp(multiplier[free]) <= slack
    logs = bregman_logs(values, r)
    assert np.all(logs <= 0)
    assert np.isclose(np.exp(logs).sum(), r, rtol=1e-12)
    multiplier = values - logs
    assert multiplier[logs < 0].max(initial=-np.inf) <= multiplier.min() + slack


def test_equal_eigenvalues_and_points_of_h_stay():
    for r in (1, 2, 4):
        assert np.allclose(clipped_eigenvalues(np.zeros(5), r), r / 5)
        assert np.allclose(np.exp(bregman_logs(np.full(5, -700.0), r)), r / 5)
    for d in (2, 4):
        assert np.allclose(clipped_eigenvalues(np.full(d, 7.0), d), 1)
        assert np.allclose(bregman_logs(np.arange(float(d)), d), 0)
    point = np.array([0.0, 0.0, 0.3, 0.7, 1.0])
    assert np.allclose(clipped_eigenvalues(point, 2), point, atol=1e-15)
    projector = np.diag([1.0, 1.0, 0.0])
    assert np.allclose(frobenius_projection(projector, 2), projector, atol=1e-12)


def test_logarithms_far_apart_do_not_underflow():
    logs = bregman_logs(np.array([-3000.0, -2000.0, 0.0, 5000.0]), 2)
    assert np.array_equal(logs, [-3000.0, -2000.0, 0.0, 0.0])
    logs = bregman_logs(np.array([-2001.0, -2000.0, 5000.0]), 2)
    assert np.isclose(np.exp(logs).sum(), 2, rtol=1e-12)


def test_stacks_are_their_matrices():
    matrices = symmetric(4, trials=6, seed=3, scale=1.5)
    for project in (frobenius_projection, bregman_projection):
        together = project(matrices, 2)
        apart = np.array([project(each, 2) for each in matrices])
        assert np.allclose(together, apart, atol=1e-13)
        assert np.allclose(np.trace(together, axis1=1, axis2=2), 2)
        values = np.linalg.eigvalsh(together)
        assert values.min() > -1e-12
        assert values.max() < 1 + 1e-12


def test_renormalisation_is_the_projection_only_without_a_cap():
    flat, steep = np.log([1.0, 2.0, 3.0]), np.log([1.0, 2.0, 30.0])
    assert np.allclose(renormalised_logs(flat, 1), bregman_logs(flat, 1))
    assert np.allclose(np.exp(renormalised_logs(steep, 2)).sum(), 2)
    assert renormalised_logs(steep, 2).max() > 0
    assert bregman_logs(steep, 2).max() == 0
