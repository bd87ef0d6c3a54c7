"""REAPER and its subgradient: against loops, the inequality of convexity, sensitivity.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robust_objectives import frobenius_projection, glad, reaper, reaper_subgradient
from seeded import rng

from dpaudit.algorithms.robust.glad import spherise
from dpaudit.algorithms.robust.reaper import reaper_term_sum, reaper_terms


def points_of_h(d, r, trials=1, seed=0, scale=1.0):
    matrices = scale * rng(seed).standard_normal((trials, d, d))
    return frobenius_projection((matrices + matrices.swapaxes(1, 2)) / 2, r)


def term(row, matrix):
    residual = row - matrix @ row
    length = np.linalg.norm(residual)
    if length <= 1e-9:
        return np.zeros(matrix.shape)
    outer = np.outer(residual / length, row)
    return (outer + outer.T) / 2


@pytest.mark.parametrize(("d", "r"), [(2, 1), (5, 2), (7, 6)])
def test_terms_are_what_a_loop_computes(d, r):
    rows, matrices = spherise(rng(1).standard_normal((11, d))), points_of_h(d, r, 4)
    expected = np.array([sum(term(x, p) for x in rows) for p in matrices])
    own = rng(2).standard_normal((4, 3, d))
    apart = np.array(
        [sum(term(x, p) for x in some) for some, p in zip(own, matrices, strict=True)]
    )
    assert np.allclose(reaper_term_sum(rows, matrices), expected, atol=1e-12)
    assert np.allclose(reaper_term_sum(own, matrices), apart, atol=1e-12)
    values = [np.linalg.norm(rows - rows @ p, axis=1).mean() for p in matrices]
    assert np.allclose(reaper(rows, matrices), values)
    assert reaper_term_sum(own[:, :0], matrices).shape == (4, d, d)
    each = [[term(x, p) for x in rows] for p in matrices]
    assert np.allclose(reaper_terms(rows, matrices), each, atol=1e-12)


def test_many_terms_are_made_in_parts():
    # So many that two matrices are taken at a time, or one and some of the rows.
    matrices = points_of_h(100, 2, 3)
    for count in (9000, 22_000):
        rows = spherise(rng(1).standard_normal((count, 100)))
        halves = sum(reaper_term_sum(part, matrices) for part in np.split(rows, 2))
        assert np.allclose(reaper_term_sum(rows, matrices), halves, atol=1e-9)
    own = np.stack([rows[:9000], rows[9000:18_000], rows[4000:13_000]])
    for batch, matrix, found in zip(
        own, matrices, reaper_term_sum(own, matrices), strict=True
    ):
        assert np.allclose(found, reaper_term_sum(batch, matrix[None])[0], atol=1e-9)


def test_the_subgradient_is_one():
    rows = spherise(rng(3).standard_normal((30, 6)))
    # Some rows in the span of an eigenspace of eigenvalue 1: no derivative there.
    first = frobenius_projection(np.diag([9.0, 9.0, 0.3, 0.2, 0.1, 0.0]), 3)
    rows[:5, 2:] = 0
    rows = spherise(rows)
    gradient = reaper_subgradient(rows, first)
    for other in points_of_h(6, 3, 200, seed=4, scale=2.0):
        linear = reaper(rows, first) + np.sum(gradient * (other - first))
        assert reaper(rows, other) >= linear - 1e-12


def test_the_subgradient_is_the_derivative_where_there_is_one():
    rows, matrix = spherise(rng(5).standard_normal((30, 4))), points_of_h(4, 2)[0]
    gradient = reaper_subgradient(rows, matrix)
    for seed in range(5):
        direction = rng(seed).standard_normal((4, 4))
        direction = direction + direction.T
        ends = [reaper(rows, matrix + h * direction) for h in (1e-6, -1e-6)]
        assert np.isclose(
            (ends[0] - ends[1]) / 2e-6, np.sum(gradient * direction), rtol=1e-6
        )


def test_at_projectors_it_is_glad():
    rows = rng(6).standard_normal((20, 5))
    basis = np.linalg.qr(rng(7).standard_normal((5, 2))).Q
    assert np.isclose(reaper(rows, basis @ basis.T), glad(rows, basis))


@given(st.integers(0, 2**32), st.integers(2, 5), st.booleans())
@settings(max_examples=300)
def test_sensitivities_hold_for_every_symmetric_matrix(seed, d, inside):
    source = rng(seed)
    matrix = source.standard_normal((1, d, d)) * 10.0 ** source.integers(-2, 3)
    matrix = matrix + matrix.swapaxes(1, 2)
    if inside:
        matrix = frobenius_projection(matrix, int(source.integers(1, d)))
    rows = spherise(source.standard_normal((2, d)))
    first, second = (reaper_term_sum(row[None], matrix)[0] for row in rows)
    assert max(map(np.linalg.norm, (first, second))) <= 1 + 1e-12
    assert np.linalg.norm(first - second) <= np.sqrt(2) + 1e-12
    # Terms that lean away from each other are short.
    room = (1 - np.sum(first**2)) * (1 - np.sum(second**2))
    assert -np.sum(first * second) <= np.sqrt(max(room, 0.0)) + 1e-7


def test_sensitivities_are_attained():
    matrix = np.eye(4)[None] / 2
    first, second = (reaper_term_sum(row[None], matrix)[0] for row in np.eye(4)[:2])
    assert np.isclose(np.linalg.norm(first), 1, rtol=1e-12)
    assert np.isclose(np.linalg.norm(first - second), np.sqrt(2), rtol=1e-12)
    # Also where the rows are nearly in the span, and P is a projector.
    for lean in (1e-2, 1e-5):
        rows = np.array([[np.cos(lean), np.sin(lean)], [np.cos(lean), -np.sin(lean)]])
        terms = [
            reaper_term_sum(row[None], np.diag([[1.0, 0.0]][0])[None])[0]
            for row in rows
        ]
        assert np.isclose(
            np.linalg.norm(terms[0] - terms[1]), np.sqrt(2) * np.cos(lean)
        )


def test_rows_of_the_eigenspace_and_rows_of_zeros_add_nothing():
    rows = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 0.0]])
    matrix = np.diag([1.0, 1.0, 0.0])
    assert np.array_equal(reaper_term_sum(rows, matrix[None]), np.zeros((1, 3, 3)))
    assert reaper(rows, matrix) == 0
