"""KNormCovariance: its noise is drawn from the law that is said, whichever way.

Type-I error: 1e-9 for each null hypothesis, by Kolmogorov-Smirnov tests at fixed seeds:
fewer than 50 of them, 5e-8 in total. Each kind is also made to fail.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from seeded import rng

from dpaudit import InputError, Pair, Relation
from dpaudit.algorithms import KNormCovariance, SymmetrisedWishart
from dpaudit.algorithms.covariance import k_norm
from dpaudit.algorithms.covariance.heat_bath import log_weight, redraw
from dpaudit.claims import NO_LOSS

TYPE_I_ERROR = 1e-9
ADD_REMOVE, REPLACE_ONE = Relation


def descending(matrices):
    return np.linalg.eigvalsh(matrices)[:, ::-1]


def same(first, second):
    """Say whether two samples of columns may be of one law; and that it can be seen."""
    for one, other in zip(first.T, second.T, strict=True):
        if stats.ks_2samp(one, other).pvalue < TYPE_I_ERROR:
            return False
    return True


# One coordinate between its neighbours
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def distribution(x, below, above):
    """The distribution function at x, by Gauss's rule on panels as long as 1 at most.

    There the density is a polynomial of degree 39 at most, times an exponential.
    """
    roots = np.concatenate([below, above])
    low = below[0] if len(below) else roots.min(initial=0) - 150
    high = above[-1] if len(above) else roots.max(initial=0) + 150
    edges = np.union1d([low, x, high], np.arange(np.ceil(low), high))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    points = middle[:, np.newaxis] + half[:, np.newaxis] * NODES
    logs = np.log(np.abs(points[..., np.newaxis] - roots)).sum(axis=-1) - abs(points)
    masses = np.exp(logs - logs.max()) @ WEIGHTS * half
    return masses[edges[1:] <= x].sum() / masses.sum()


@pytest.mark.parametrize("dimension", [1, 2, 6, 40])
@pytest.mark.parametrize("spread", [0.05, 3.0])
def test_the_distribution_function_is_inverted(dimension, spread):
    generator = rng(dimension)
    uniform = generator.random(5)
    uniform[:2] = 1e-7, 1 - 1e-7
    values = -np.sort(-generator.laplace(size=(5, dimension)) * dimension * spread)
    values[-1] += 4 * dimension  # far from the kink
    for i in {0, dimension // 2, dimension - 1}:
        found = redraw(values[:, i + 1 :], values[:, :i], uniform)
        for x, row, wanted in zip(found, values, uniform, strict=True):
            assert abs(distribution(x, row[i + 1 :], row[:i]) - wanted) < 1e-12


def test_the_weight_is_the_density_that_is_redrawn_from():
    below, above = np.array([[0.5, -1.0]]), np.array([[3.0]])
    grid = np.linspace(0.5, 3, 4001)
    rows = np.ones((len(grid), 1))
    weights = np.exp(log_weight(grid, below * rows, above * rows))
    masses = np.cumsum(weights) / weights.sum()
    found = redraw(below * rows, above * rows, masses)
    np.testing.assert_allclose(found, grid, atol=2e-3)
    outside = log_weight(np.array([0.4, 3.1]), below * rows[:2], above * rows[:2])
    assert (outside == -np.inf).all()


# The law of the eigenvalues against quadrature
@cache
def law_by_quadrature(dimension):
    """Grid, and the distribution functions of each eigenvalue on it, decreasing.

    Densities on a fine grid, by nested sums of the trapezoidal rule.
    """
    grid = np.linspace(-22, 22, 1761)
    step = grid[1] - grid[0]
    weight = np.exp(-np.abs(grid))
    gaps = np.maximum(grid[:, np.newaxis] - grid, 0)  # [x, y], x above y
    if dimension == 2:
        joint = gaps * np.outer(weight, weight)
        densities = joint.sum(axis=1), joint.sum(axis=0)
    else:
        # middle[y, x, z] would be large: sum over the third one by moments.
        powers = grid ** np.arange(3)[:, np.newaxis] * weight
        lower = np.cumsum(powers, axis=1)  # of z below y
        # (x - y) (x - z) (y - z) = (x - y) (x y - (x + y) z + z^2)
        inner = (
            np.outer(grid, grid) * lower[0]
            - (grid[:, np.newaxis] + grid) * lower[1]
            + lower[2]
        )
        joint = gaps * inner * np.outer(weight, weight)  # of the first two
        first, second = joint.sum(axis=1), joint.sum(axis=0)
        densities = first, second, first[::-1]
    return grid, np.cumsum(densities, axis=1) / np.sum(densities, axis=1)[:, None], step


def follows_quadrature(values):
    grid, functions, _ = law_by_quadrature(values.shape[1])
    return all(
        stats.kstest(column, lambda x, f=function: np.interp(x, grid, f)).pvalue
        >= TYPE_I_ERROR
        for column, function in zip(values.T, functions, strict=True)
    )


@pytest.mark.parametrize("dimension", [2, 3])
def test_rejection_follows_quadrature(dimension):
    values = descending(k_norm.by_rejection(6000, dimension, balance=False, rng=rng(1)))
    assert follows_quadrature(values)
    # The proposals, which are not rejected, do not.
    wishart = SymmetrisedWishart.calibrated(1.0).noise(6000, dimension, rng=rng(1))
    assert not follows_quadrature(descending(1.03 * wishart))


def test_coupling_follows_quadrature_and_random_bases_leave_eigenvalues():
    # Such blocks are seldom constant: most vectors are sent through another.
    values = k_norm.coupled_eigenvalues(1500, 2, passes=1, rng=rng(2))
    assert (np.diff(values, axis=1) <= 0).all()
    assert follows_quadrature(values)
    # The law is even: of what the bounds make of infinity more sums have one sign.
    positive = int((values.sum(axis=1) > 0).sum())
    assert stats.binomtest(positive, len(values)).pvalue >= TYPE_I_ERROR
    values = k_norm.coupled_eigenvalues(2, 3, rng=rng(6))
    matrices = k_norm.by_coupling(2, 3, balance=False, rng=rng(6))
    np.testing.assert_allclose(descending(matrices), values, atol=1e-12)


@pytest.mark.parametrize(
    ("dimension", "size", "balance"), [(4, 100, False), (2, 200, True)]
)
def test_both_samplers_draw_from_one_law(dimension, size, balance):
    # Null hypothesis: every eigenvalue, and two entries, have one law.
    many = k_norm.by_rejection(10 * size, dimension, balance=balance, rng=rng(3))
    coupled = k_norm.by_coupling(size, dimension, balance=balance, rng=rng(4))
    np.testing.assert_array_equal(coupled, coupled.swapaxes(-1, -2))

    def columns(matrices):
        entries = matrices[:, [0, 0], [0, 1]]
        return np.hstack([descending(matrices), entries])

    assert same(columns(coupled), columns(many))
    assert not same(columns(2.5 * coupled), columns(many))


@pytest.mark.parametrize(
    ("dimension", "size", "relation"),
    [
        *((1, 3000, ADD_REMOVE), (1, 3000, REPLACE_ONE), (3, 3000, ADD_REMOVE)),
        *((3, 3000, REPLACE_ONE), (8, 12, ADD_REMOVE)),
    ],
)
def test_the_gauge_has_a_gamma_law(dimension, size, relation):
    # Null hypothesis: g(Z)/s is gamma of shape d (d + 1)/2.
    mechanism = KNormCovariance.calibrated(0.5, relation=relation, row_norm=2.0)
    assert mechanism.scale == 8
    noise = mechanism.noise(size, dimension, rng=rng(5))
    gauge = -mechanism.log_density(noise)
    shape = dimension * (dimension + 1) / 2
    assert stats.kstest(gauge, stats.gamma(shape).cdf).pvalue >= TYPE_I_ERROR
    wrong = stats.gamma(1.3 * shape + 3).cdf
    assert stats.kstest(gauge, wrong).pvalue < 1e-3


# The promise
def gauge(difference, relation):
    values = np.linalg.eigvalsh(difference)
    parts = np.maximum(values, 0).sum(), np.maximum(-values, 0).sum()
    return sum(parts) if relation is ADD_REMOVE else max(parts)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(Relation))
@example(210, 1, REPLACE_ONE)  # both rows are cut to length 2: nothing is lost
def test_no_release_loses_more_than_epsilon(seed, dimension, relation):
    generator = rng(seed)
    mechanism = KNormCovariance.calibrated(0.7, relation=relation, row_norm=2.0)
    rows = 3 * generator.standard_normal((3, dimension))
    other = rows[1:]
    if relation is REPLACE_ONE:
        other = np.vstack([3 * generator.standard_normal((1, dimension)), other])
    noise = generator.standard_normal((40, dimension, dimension))
    noise = (noise + noise.swapaxes(-1, -2)) * generator.exponential(9, (40, 1, 1))
    releases = mechanism.statistic(rows) + noise
    loss = mechanism.privacy_loss(releases, rows, other)
    exact = mechanism.exact_claim(Pair(rows, other, relation)).epsilon_at(0.0)
    assert np.abs(loss).max() <= exact * (1 + 1e-9) + 1e-12
    assert exact <= 0.7 * (1 + 1e-12)
    moved = mechanism.statistic(rows) - mechanism.statistic(other)
    assert exact == pytest.approx(0.7 / 4 * gauge(moved, relation), rel=1e-9)
    # It is attained in the direction of the difference.
    there = mechanism.statistic(rows) + 5 * moved[np.newaxis]
    found = mechanism.privacy_loss(there, rows, other)[0]
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("relation", Relation)
def test_pure_dp_is_the_tightest_claim_and_what_takes_too_long_is_refused(relation):
    mechanism = KNormCovariance.calibrated(1.0, relation=relation)
    for dimension in (2, 5):
        exact = mechanism.exact_claim(mechanism.worst_case(dimension))
        assert exact.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-12)
    same_moment = Pair([[0.6, -0.8]], [[-0.6, 0.8]], REPLACE_ONE)
    assert mechanism.exact_claim(same_moment) == NO_LOSS
    mechanism = KNormCovariance.calibrated(1.0, relation=relation)
    data = np.zeros((1, k_norm.LARGEST[relation] + 1))
    with pytest.raises(
        InputError, match=r"at most .* next best .* symmetrised-wishart"
    ):
        mechanism.draw(data, 1, rng=rng())
    assert mechanism.draw(np.zeros((1, 3)), 0, rng=rng()).shape == (0, 3, 3)
