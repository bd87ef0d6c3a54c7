"""Exact draws from the matrix Bingham distribution: the envelope and the law.

The laws are compared with what follows by quadrature: von Mises (d = 2, k = 1), the
normals of planes in R^3, which are vector Bingham, and the two spheres of planes in
R^4.

Type-I error: 1e-9 for each of the 11 statistical tests, 2e-8 in total, at fixed seeds.
"""

import numpy as np
import pytest
from bingham_oracles import angle_p_value, bernstein_radius
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_bingham_oracles import (
    TYPE_I_ERROR,
    normal_p_values,
    plane_p_values,
    wide_gap_acceptance,
)
from scipy import optimize

from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.algorithms.subspace.exact_exponential import MatrixACG
from dpaudit.errors import InputError


def assert_plausible(p_values):
    assert min(p_values) >= TYPE_I_ERROR / len(p_values)


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


def test_for_one_column_it_is_the_envelope_of_the_vector_bingham_law():
    # Attained where 1 + 2 t/b = d/b; b solves sum 1/(b + 2 a) = 1.
    gaps = np.array([0.0, 4.0, 9.0])
    b = optimize.brentq(lambda b: np.sum(1 / (b + 2 * gaps)) - 1, 1, 3, xtol=1e-15)
    t = (3 - b) / 2
    u = np.sqrt([1 - t / 4, t / 4, 0.0])
    acceptance = MatrixACG(-gaps, 1).log_acceptance(u.reshape(1, 3, 1))
    assert acceptance[0] == pytest.approx(0.0, abs=1e-8)


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


def test_equal_eigenvalues_are_all_but_always_accepted():
    sampler = MatrixACG(np.full(6, 3.0), 3)
    frames = sampler.propose(1000, rng=np.random.default_rng(0))
    assert np.exp(sampler.log_acceptance(frames)).min() > 0.99


@pytest.mark.parametrize(
    "values",
    [[1e4, 100.0, 0.0, 0.0], [1e4, 5e3, 100.0, 0.0], 6e3 / np.arange(1, 21) ** 2.0],
)
def test_gaps_before_the_last_component_do_not_matter_much(values):
    sampler = MatrixACG(values, 2)
    frames = sampler.propose(20_000, rng=np.random.default_rng(0))
    chances = np.exp(sampler.log_acceptance(frames))
    assert chances.mean() > 0.3 * wide_gap_acceptance(len(values), 2)


def test_bad_arguments_are_refused():
    with pytest.raises(InputError, match="k must be an integer >= 1 and <= 2, got 3"):
        MatrixACG([1.0, 0.0], 3)


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
