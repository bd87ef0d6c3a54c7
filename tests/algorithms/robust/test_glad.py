"""GLAD and its gradient: against loops, finite differences, and its sensitivity.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robust_objectives import glad, glad_gradient
from seeded import rng

from dpaudit.algorithms.robust.glad import spherise, term_sum
from dpaudit.algorithms.robust.grassmannian import geodesic_step, polar, to_tangent


def bases_of(d, r, trials=1, seed=0):
    return polar(rng(seed).standard_normal((trials, d, r)))


def term(row, basis):
    residual = row - basis @ (basis.T @ row)
    length = np.sqrt(residual @ residual)
    if length <= 1e-12:
        return np.zeros(basis.shape)
    return np.outer(residual / length, basis.T @ row)


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (7, 6)])
def test_terms_are_what_a_loop_computes(d, r):
    rows, bases = spherise(rng(1).standard_normal((11, d))), bases_of(d, r, 4)
    expected = np.array([sum(term(x, v) for x in rows) for v in bases])
    assert np.allclose(term_sum(rows, bases), expected, rtol=0, atol=1e-12)
    own = rng(2).standard_normal((4, 3, d))
    apart = np.array(
        [sum(term(x, v) for x in some) for some, v in zip(own, bases, strict=True)]
    )
    assert np.allclose(term_sum(own, bases), apart, rtol=0, atol=1e-12)


def test_many_terms_are_made_in_parts():
    # So many that the bases are taken two at a time, and that not all rows are.
    rows, bases = spherise(rng(1).standard_normal((5000, 200))), bases_of(200, 2, 5)
    together = term_sum(rows, bases)
    for place in range(5):
        halves = [term_sum(part, bases[[place]])[0] for part in np.split(rows, 2)]
        assert np.allclose(together[place], sum(halves), rtol=0, atol=1e-10)
    own = rng(2).standard_normal((5, 4000, 200))
    together = term_sum(own, bases)
    for place in range(5):
        alone = term_sum(own[place], bases[[place]])[0]
        assert np.allclose(together[place], alone, rtol=0, atol=1e-10)


def test_the_gradient_is_that_of_the_objective():
    rows, basis = spherise(rng(3).standard_normal((30, 6))), bases_of(6, 2)[0]
    gradient = glad_gradient(rows, basis)
    assert np.abs(basis.T @ gradient).max() < 1e-12
    for seed in range(5):
        direction = to_tangent(basis, rng(seed).standard_normal((6, 2)))
        ends = [geodesic_step(basis, h * direction) for h in (1e-5, -1e-5)]
        slope = (glad(rows, ends[0]) - glad(rows, ends[1])) / 2e-5
        assert np.isclose(slope, np.sum(gradient * direction), rtol=1e-8)


def test_the_objective_is_a_mean_distance():
    rows, bases = rng(4).standard_normal((9, 5)), bases_of(5, 2, 3)
    for value, basis in zip(glad(rows, bases), bases, strict=True):
        # The distance from a span, by least squares.
        distances = [
            np.linalg.norm(x - basis @ np.linalg.lstsq(basis, x)[0]) for x in rows
        ]
        assert np.isclose(value, np.mean(distances))
    assert glad_gradient(rows, bases).shape == (3, 5, 2)


def test_rows_of_the_subspace_and_rows_of_zeros_add_nothing():
    basis = bases_of(6, 3)[0]
    inside = spherise(rng(5).standard_normal((20, 3)) @ basis.T)
    assert np.array_equal(term_sum(inside, basis[None]), np.zeros((1, 6, 3)))
    assert glad(inside, basis) < 1e-12
    padded = np.zeros((1, 4, 6))
    padded[0, 0] = spherise(rng(6).standard_normal((1, 6)))
    assert np.allclose(term_sum(padded, basis[None])[0], term(padded[0, 0], basis))


def test_tiny_residuals_keep_their_direction():
    basis = np.eye(3)[:, :1]
    row = spherise([[1.0, 3e-9, -4e-9]])
    assert np.allclose(term_sum(row, basis[None])[0, :, 0], [0, 0.6, -0.8], atol=1e-8)


@given(st.integers(0, 2**32), st.integers(2, 6), st.data())
@settings(max_examples=100)
def test_no_row_adds_more_than_one(seed, d, data):
    r = data.draw(st.integers(1, d - 1))
    basis = bases_of(d, r, seed=seed)
    rows = rng(seed + 1).standard_normal((2, d))
    lean = data.draw(st.sampled_from([1.0, 1e-3, 1e-7, 1e-11]))
    inside = rows @ basis[0] @ basis[0].T
    rows = spherise(inside + lean * (rows - inside))
    first, second = (term_sum(row[None], basis) for row in rows)
    assert max(map(np.linalg.norm, (first, second))) <= 1 + 1e-12
    assert np.linalg.norm(first - second) <= 2 * (1 + 1e-12)


def test_the_sensitivities_are_approached():
    basis = np.eye(4)[:, :2]
    for lean in (0.1, 1e-3, 1e-6):
        rows = np.array([[0, np.cos(lean), np.sin(lean), 0]])
        other = rows * [1, 1, -1, 1]
        first, second = (term_sum(each, basis[None]) for each in (rows, other))
        assert np.isclose(np.linalg.norm(first), np.cos(lean), atol=1e-9)
        assert np.isclose(np.linalg.norm(first - second), 2 * np.cos(lean), atol=1e-9)


test_bad_input_is_named = refused(
    (lambda: spherise([[1.0, 0.0], [0.0, 0.0]]), "row 1 is zero"),
    (lambda: spherise([[1.0, np.nan]]), "row 0 has a NaN"),
    (lambda: spherise(np.empty((0, 2))), "n >= 1"),
)


def test_rows_of_any_length_are_spherised():
    rows = spherise([[3e-200, 4e-200], [3e200, -4e200]])
    assert np.allclose(rows, [[0.6, 0.8], [0.6, -0.8]], rtol=1e-14)
