"""Warm starts give the exact subspace to their tolerance, or are not taken."""

import numpy as np
import pytest

from dpaudit.algorithms.online.leading_subspace import LeadingSubspace
from dpaudit.algorithms.online.subspace_sequence import leading_bases
from dpaudit.subspace import largest_principal_angle_sine


def walk(steps, dimension, gap, noise, seed=0):
    """Yield symmetric matrices: a fixed one with a gap, and noise that changes."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    values = np.linspace(0, 1, dimension)
    values[-3:] += gap
    fixed = (turned * values) @ turned.T
    for step in range(1, steps + 1):
        error = noise * rng.standard_normal((dimension, dimension))
        yield step * fixed + error + error.T


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("noise", [0.0, 0.1, 10.0])
def test_angles_are_within_the_tolerance(tolerance, noise):
    leading = LeadingSubspace(20, 3, tolerance=tolerance)
    for matrix in walk(80, 20, 4.0, noise):
        basis = leading.of(matrix)
        np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
        exact = leading_bases(matrix, 3)
        assert largest_principal_angle_sine(basis, exact) <= tolerance
    if noise < 1:
        assert leading.exact_steps < 30  # warm starts do happen


def test_there_are_none_where_noise_outweighs_the_gap():
    leading = LeadingSubspace(20, 3, tolerance=1e-4)
    for matrix in walk(150, 20, 0.0, 100.0):
        leading.of(matrix)
    assert leading.exact_steps == 150


def test_a_subspace_that_is_no_longer_the_leading_one_is_left():
    # The old one stays invariant: its residual is zero, and only the Cholesky
    # decomposition can tell.
    leading = LeadingSubspace(4, 1, tolerance=1e-3)
    for _ in range(5):
        leading.of(np.diag([9.0, 1.0, 0.5, 0.2]))
    swapped = np.diag([9.0, 1.0, 0.5, 20.0])
    np.testing.assert_allclose(leading.of(swapped)[:, 0] ** 2, [0, 0, 0, 1])


@pytest.mark.parametrize(("dimension", "rank"), [(1, 1), (2, 1), (3, 3), (5, 4)])
def test_without_a_tolerance_it_is_the_oracle(dimension, rank):
    leading = LeadingSubspace(dimension, rank, tolerance=0.0)
    for matrix in walk(5, max(dimension, 3), 4.0, 0.3):
        part = matrix[:dimension, :dimension]
        found = leading.of(part)
        np.testing.assert_allclose(found, leading_bases(part, rank), atol=1e-9)
        assert (np.take_along_axis(found, abs(found).argmax(0)[None], 0) > 0).all()
    assert leading.exact_steps == 5


def test_zero_matrices_have_subspaces():
    leading = LeadingSubspace(4, 2, tolerance=1e-3)
    for _ in range(4):
        basis = leading.of(np.zeros((4, 4)))
        np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)


def test_what_it_returned_cannot_be_written_to():
    leading = LeadingSubspace(4, 2, tolerance=1e-3)
    with pytest.raises(ValueError, match="read-only"):
        leading.of(np.eye(4))[0] = 1
