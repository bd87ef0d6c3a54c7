"""The vector Bingham distribution: its constant, its acceptance and its draws.

The constant is compared with Bessel and hypergeometric functions (mpmath) and with its
power series; draws with the laws that follow from quadrature.

Type-I error: 1e-9 for each of the 22 statistical tests, 3e-8 in total, at fixed seeds.
Each of them fails for a rejection step with the wrong sign, where d > 1 and not all
eigenvalues are equal.
"""

import mpmath
import numpy as np
import pytest
from bingham_oracles import (
    TYPE_I_ERROR,
    angle_law,
    angle_p_value,
    angles,
    bernstein_radius,
    marginal_cdf,
    naive_draws,
    series,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from scipy import stats

from dpaudit.algorithms.subspace.bingham import (
    VectorBingham,
    envelope,
    log_bingham_normaliser,
)
from dpaudit.errors import InputError


def diagonal_draws(values, size, seed=0):
    return VectorBingham(np.diag(values)).draw(size, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("value", [-1e6, -3.0, 0.0, 1e6])
def test_in_one_dimension_the_constant_is_the_density(value):
    assert float(log_bingham_normaliser([value])) == pytest.approx(value, abs=1e-14)


def test_constants_are_bessel_functions_or_those_of_each_matrix():
    gaps = np.concatenate([np.linspace(0, 40, 81), np.geomspace(50, 1e6, 10)])
    found = log_bingham_normaliser(np.stack([0 * gaps, -gaps], axis=-1))
    with mpmath.workdps(30):
        expected = [
            float(mpmath.log(mpmath.besseli(0, g / 2)) - g / 2)
            for g in map(mpmath.mpf, gaps)
        ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-15)
    rng = np.random.default_rng(0)
    values = (
        -(rng.standard_normal((3, 7, 5)) ** 4) * np.geomspace(1e-3, 1e4, 7)[:, None]
    )
    found = log_bingham_normaliser(values)
    assert found.shape == (3, 7)
    for index in np.ndindex(3, 7):
        alone = float(log_bingham_normaliser(values[index]))
        assert found[index] == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("share", [1e-90, 1e-12, 1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize(("d", "rank"), [(3, 1), (10, 9), (54, 30), (200, 1)])
def test_for_a_projector_the_constant_is_a_hypergeometric_function(d, rank, share):
    # About share = 1 the mass moves from the many small eigenvalues to the large one.
    height = share * d / 2
    with mpmath.workdps(120):
        law = mpmath.hyp1f1(mpmath.mpf(rank) / 2, mpmath.mpf(d) / 2, height)
        expected = float(mpmath.log(law))
    found = log_bingham_normaliser([height] * rank + [0.0] * (d - rank))
    units = height if height <= 0.5 else 2 * (5 + d)
    assert float(found) == pytest.approx(expected, rel=1e-13, abs=1e-15 * units)


@pytest.mark.parametrize("seed", range(6))
def test_the_constant_is_the_sum_of_its_power_series(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.1, 1.0, 10.0]) * rng.standard_normal(rng.integers(2, 9)) ** 3
    values *= min(1.0, 60 / np.ptp(values))
    expected = series(values)
    assert float(log_bingham_normaliser(values)) == pytest.approx(expected, abs=3e-14)


@settings(max_examples=20)
@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=12), st.floats(-100, 100))
def test_properties_of_the_constant(values, shift):
    variants = [values, np.add(values, shift), values[::-1]]
    found, shifted, reordered = log_bingham_normaliser(variants)
    rounding = 1e-12 + 1e-14 * max(map(abs, values))
    # Jensen's inequality; the largest value of the density.
    assert np.mean(values) - rounding <= found <= max(values) + rounding
    assert shifted == pytest.approx(found + shift, abs=10 * rounding)
    assert reordered == pytest.approx(found, abs=rounding)


@pytest.mark.parametrize("bad", [3.0, [], [[]], [1.0, np.nan], [np.inf]])
def test_bad_eigenvalues_are_refused(bad):
    refuses("eigenvalues must be finite and of shape", log_bingham_normaliser, bad)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=300))
def test_the_envelope_solves_its_equation(gaps):
    values = -np.array([[0.0, *gaps]])
    (b,), (weights,) = envelope(values)
    assert 1 <= b <= len(gaps) + 1
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(weights, 1 / (b - 2 * values[0]), rtol=1e-14)


@pytest.mark.parametrize("values", [[0.0, -1.0, -5.0, -1e4], np.linspace(0, 40, 30)])
def test_the_acceptance_is_what_a_naive_sampler_accepts(values):
    # Null hypothesis: each of 50,000 proposals is accepted with this probability.
    _, share = naive_draws(values, 1, rng=np.random.default_rng(0))
    acceptance = float(VectorBingham(np.diag(values)).acceptance)
    count = round(50_000 * share)
    assert stats.binomtest(count, 50_000, acceptance).pvalue >= TYPE_I_ERROR
    assert stats.binomtest(count, 50_000, 0.8 * acceptance).pvalue < TYPE_I_ERROR


@pytest.mark.parametrize("gap", [0.0, 5.0, 2000.0])
def test_in_two_dimensions_twice_the_angle_is_von_mises(gap):
    # Null hypothesis: von Mises with concentration gap/2.
    draws = diagonal_draws([gap - 7.0, -7.0], 20_000)
    assert angle_p_value(draws, gap) >= TYPE_I_ERROR
    assert angle_p_value(draws, 1.3 * gap + 0.5) < TYPE_I_ERROR


@pytest.mark.parametrize("coordinate", range(3))
@pytest.mark.parametrize("values", [[4.0, 0.0, -6.0], [90.0, 1.0, 0.0]])
def test_in_three_dimensions_every_coordinate_has_its_marginal(values, coordinate):
    draws = diagonal_draws(values, 20_000)
    cdf = marginal_cdf(np.roll(values, -coordinate))
    assert stats.kstest(draws[:, coordinate], cdf).pvalue >= TYPE_I_ERROR


def mean_squares(values):
    """E[u_i^2] and Var(u_i^2): derivatives of log c, by central differences."""
    step = 1e-3 * max(1.0, np.ptp(values) / 10)
    moved = step * np.eye(len(values))
    up, at, down = (
        log_bingham_normaliser(values + sign * moved) for sign in (1.0, 0.0, -1.0)
    )
    return (up - down) / (2 * step), (up - 2 * at + down) / step**2


@pytest.mark.parametrize("spread", [10.0, 300.0])
def test_in_eight_dimensions_moments_are_derivatives_of_the_constant(spread):
    # The means of u_i^2 in [0, 1] and of the products u_i u_j in [-1/2, 1/2], by
    # Bernstein's inequality, in a basis of eigenvectors other than the axes.
    rng = np.random.default_rng(5)
    size, d = 40_000, 8
    values = np.sort(rng.uniform(0, spread, d))[::-1]
    basis = np.linalg.qr(rng.standard_normal((d, d))).Q
    law = VectorBingham(basis @ np.diag(values) @ basis.T)
    draws = law.draw(size, rng=rng) @ basis
    expected, variance = mean_squares(values)
    assert expected.sum() == pytest.approx(1.0, abs=1e-8)
    radius = bernstein_radius(variance + 1e-4, size, d) + 1e-5
    assert (np.abs((draws**2).mean(axis=0) - expected) <= radius).all()
    products = draws.T @ draws / size
    np.fill_diagonal(products, 0.0)
    # Of equal variance at most: Var(u_i u_j) <= E[u_i^2 u_j^2] <= min E[u_i^2].
    bound = np.minimum.outer(expected, expected)
    assert (np.abs(products) <= bernstein_radius(bound, size, d * d)).all()


def test_in_one_dimension_draws_are_a_fair_sign_and_no_size_is_negative():
    draws = diagonal_draws([3.0], 10_000)
    assert set(np.unique(draws)) == {-1.0, 1.0}
    count = int((draws > 0).sum())
    assert stats.binomtest(count, 10_000).pvalue >= TYPE_I_ERROR
    with pytest.raises(InputError, match="size must be"):
        VectorBingham(np.eye(2)).draw(-1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("value", [0.0, -4.0])
def test_equal_eigenvalues_give_the_uniform_law(value):
    # In three dimensions every coordinate is uniform on [-1, 1].
    draws = diagonal_draws([value] * 3, 20_000)
    for coordinate in draws.T:
        p_value = stats.kstest(coordinate, stats.uniform(-1, 2).cdf).pvalue
        assert p_value >= TYPE_I_ERROR / 3


@pytest.mark.parametrize("spread", [1e6, 1e12])
def test_a_huge_spread_leaves_a_normal_law(spread):
    # S = diag(1, 0, 0, 0) spread: u_2 ~ N(0, 1/(2 spread)), up to 1/spread.
    draws = diagonal_draws([spread, 0.0, 0.0, 0.0], 20_000)
    scaled = draws[:, 1] * np.sqrt(2 * spread)
    assert stats.kstest(scaled, stats.norm.cdf).pvalue >= TYPE_I_ERROR
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0, rtol=1e-14)


def test_draws_of_stacks_follow_each_matrix_independently():
    # Null hypothesis: the distribution function of each, at its draw, is uniform.
    rng = np.random.default_rng(1)
    size = 5000
    gaps, turns = rng.exponential(5.0, size), rng.uniform(0, np.pi, size)
    first = np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    matrices = gaps[:, None, None] * first[:, :, None] * first[:, None, :]
    draws = VectorBingham(matrices).draw(1, rng=rng)[0]
    assert draws.shape == (size, 2)
    relative = np.angle(np.exp(1j * (angles(draws) - 2 * turns)))
    levels = angle_law(gaps).cdf(relative)
    assert stats.kstest(levels, stats.uniform.cdf).pvalue >= TYPE_I_ERROR
    values = np.array([[6.0, 0.0], [1.0, 0.0], [0.0, 30.0]])
    law = VectorBingham(np.stack([np.diag(pair) for pair in values]))
    draws = law.draw(20_000, rng=np.random.default_rng(0))
    assert draws.shape == (20_000, 3, 2)
    for pair, column in zip(values, draws.swapaxes(0, 1), strict=True):
        turned = column if pair[0] >= pair[1] else column[:, ::-1]
        assert angle_p_value(turned, abs(pair[0] - pair[1])) >= TYPE_I_ERROR / 3
    # Products of signs are fair for independent draws.
    for one, two in ((0, 1), (0, 2), (1, 2)):
        agree = int((draws[:, one, 0] * draws[:, two, 0] > 0).sum())
        assert stats.binomtest(agree, 20_000).pvalue >= TYPE_I_ERROR / 3


def test_many_numbers_are_drawn_in_parts():
    # 2 x 2500 draws of 64 numbers: more than are made at once.
    values = np.zeros((2, 64))
    values[0, 0] = values[1, -1] = 1e6
    law = VectorBingham(np.stack([np.diag(row) for row in values]))
    draws = law.draw(2500, rng=np.random.default_rng(0))
    assert (draws[:, 0, 0] ** 2).min() > 0.99
    assert (draws[:, 1, -1] ** 2).min() > 0.99


def test_shapes_and_seeds():
    matrix = np.diag([3.0, 1.0, 0.0])
    stack = np.stack([matrix] * 4)
    one, many = VectorBingham(matrix), VectorBingham(stack)
    for size in (0, 1, 5):
        rng = np.random.default_rng(0)
        assert one.draw(size, rng=rng).shape == (size, 3)
        assert many.draw(size, rng=rng).shape == (size, 4, 3)
    assert one.acceptance.shape == ()
    assert many.acceptance.shape == (4,)
    again = [one.draw(7, rng=np.random.default_rng(3)) for _ in range(2)]
    assert np.array_equal(*again)
    empty = VectorBingham(np.empty((0, 3, 3)))
    assert empty.draw(1, rng=np.random.default_rng(0)).shape == (1, 0, 3)


test_bad_matrices_are_refused = refused(
    ([[1.0, 2.0], [0.0, 1.0]], "symmetric"),
    ([[np.nan, 0.0], [0.0, 1.0]], "NaN or infinity"),
    ([[np.inf]], "NaN or infinity"),
    ([1.0, 2.0], "shape"),
    ([[1.0, 2.0]], "shape"),
    (np.zeros((2, 2, 3, 3)), r"shape \(d, d\) or \(m, d, d\)"),
    (np.zeros((0, 0)), "shape"),
    ("matrix", "numeric"),
    by=lambda bad: VectorBingham(bad),
)
