"""Polar retraction, settled bases and geodesics: against generic solvers."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from seeded import rng

from dpaudit.algorithms.robust.grassmannian import (
    geodesic_step,
    polar,
    settle,
    squared_distance,
    to_tangent,
)
from dpaudit.subspace import principal_angles


@pytest.mark.parametrize("shape", [(1, 2, 1), (4, 5, 1), (4, 3, 2), (3, 6, 4)])
def test_polar_is_the_polar_factor(shape):
    matrices = rng(1).standard_normal(shape)
    expected = [scipy.linalg.polar(each)[0] for each in matrices]
    assert np.allclose(polar(matrices), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("ratio", [1.0, 1e-3, 1e-9, 1e-14, 0.0])
def test_polar_of_nearly_dependent_columns_is_orthonormal(ratio):
    first, second = rng(3).standard_normal((2, 5))
    bases = polar(np.stack([first, first + ratio * second], axis=1)[None])
    assert np.abs(bases[0].T @ bases[0] - np.eye(2)).max() < 1e-11
    assert np.isfinite(polar(np.zeros((2, 3, 1)))).all()


def test_settled_bases_depend_on_the_span_alone():
    bases = polar(rng(4).standard_normal((6, 5, 3)))
    turns = polar(rng(5).standard_normal((6, 3, 3)))
    settled = settle(bases)
    assert np.allclose(settle(bases @ turns), settled, atol=1e-12)
    assert principal_angles(bases, settled).max() < 1e-12
    nearest = np.linalg.norm(settled - np.eye(5)[:, :3], axis=(1, 2))
    for seed in range(50):
        other = bases @ polar(rng(seed).standard_normal((6, 3, 3)))
        assert np.all(nearest <= np.linalg.norm(other - np.eye(5)[:, :3], axis=(1, 2)))
    assert np.allclose(settle(settled), settled, atol=1e-12)


def test_a_subspace_far_from_the_axes_has_a_settled_basis_too():
    settled = settle(np.eye(4)[:, 2:])
    assert principal_angles(settled, np.eye(4)[:, 2:]).max() == 0


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (4, 3)])
def test_geodesics_are_those_of_the_matrix_exponential(d, r):
    basis = polar(rng(6).standard_normal((d, r)))
    tangent = to_tangent(basis, rng(7).standard_normal((d, r)))
    # A polar factor errs by an ulp times the square of its condition: 1e-12 or less.
    assert np.abs(basis.T @ tangent).max() < 1e-11
    # The rotation that carries V along H: the exponential of H V^T - V H^T.
    turn = scipy.linalg.expm(tangent @ basis.T - basis @ tangent.T)
    assert np.allclose(geodesic_step(basis, tangent), turn @ basis, atol=1e-11)


def test_geodesics_turn_by_the_singular_values():
    basis = polar(rng(8).standard_normal((6, 2)))
    tangent = 0.1 * to_tangent(basis, rng(9).standard_normal((6, 2)))
    angles = principal_angles(basis, geodesic_step(basis, tangent))
    lengths = np.linalg.svd(tangent, compute_uv=False)
    assert np.allclose(angles, lengths[::-1], rtol=1e-12)
    flat = principal_angles(basis, polar(basis + tangent))
    assert np.allclose(flat, np.arctan(lengths[::-1]), rtol=1e-12)


def test_the_retraction_differs_from_the_geodesic_to_third_order():
    basis = polar(rng(10).standard_normal((6, 2)))
    tangent = to_tangent(basis, rng(11).standard_normal((6, 2)))
    gaps = [
        np.linalg.norm(polar(basis + h * tangent) - geodesic_step(basis, h * tangent))
        for h in (0.02, 0.01)
    ]
    assert np.isclose(gaps[0] / gaps[1], 8, rtol=0.01)


def test_retractions_of_stacks_are_those_of_their_members():
    matrices = rng(12).standard_normal((2, 3, 5, 2))
    bases, tangents = polar(matrices), to_tangent(polar(matrices), matrices[::-1])
    for place in np.ndindex(2, 3):
        assert np.allclose(bases[place], polar(matrices[place]), atol=1e-11)
        alone = geodesic_step(bases[place], tangents[place])
        assert np.allclose(geodesic_step(bases, tangents)[place], alone, atol=1e-11)
        assert np.allclose(settle(bases)[place], settle(bases[place]), atol=1e-11)


def test_distances_keep_their_digits():
    first, second = polar(rng(1).standard_normal((2, 5, 2)))
    expected = 1 - np.linalg.svd(first.T @ second, compute_uv=False)[-1]
    assert np.isclose(squared_distance(first, second), expected)
    tiny = polar(np.array([[1.0], [1e-9]]))
    assert np.isclose(squared_distance([[1.0], [0.0]], tiny), 0.5e-18, rtol=1e-6)
