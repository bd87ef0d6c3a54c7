"""GLAD and REAPER, their gradients, and projections onto the set H of REAPER.

Against loops, the inequality of convexity and sensitivities; against generic solvers,
KKT conditions, and hard spectra. Nothing here is random from run to run: seeds are
fixed, and no null hypothesis is tested.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robust_objectives import (
    bregman_projection,
    frobenius_projection,
    glad,
    glad_gradient,
    reaper,
    reaper_subgradient,
)
from seeded import rng

from dpaudit.algorithms.robust import geometries
from dpaudit.algorithms.robust.objectives import Glad, Reaper, reaper_terms, spherise

term_sum, reaper_term_sum = Glad().term_sum, Reaper().term_sum


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
def test_terms_of_reaper_and_glad_are_what_a_loop_computes(d, r):
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
    rows, bases = spherise(rng(1).standard_normal((11, d))), bases_of(d, r, 4)
    expected = np.array([sum(glad_term(x, v) for x in rows) for v in bases])
    assert np.allclose(term_sum(rows, bases), expected, rtol=0, atol=1e-12)
    own = rng(2).standard_normal((4, 3, d))
    apart = np.array(
        [sum(glad_term(x, v) for x in some) for some, v in zip(own, bases, strict=True)]
    )
    assert np.allclose(term_sum(own, bases), apart, rtol=0, atol=1e-12)


def test_many_terms_are_made_in_parts_of_reaper_and_glad():
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


def test_the_subgradient_is_one_and_the_derivative_where_there_is_one():
    rows = spherise(rng(3).standard_normal((30, 6)))
    # Some rows in the span of an eigenspace of eigenvalue 1: no derivative there.
    first = frobenius_projection(np.diag([9.0, 9.0, 0.3, 0.2, 0.1, 0.0]), 3)
    rows[:5, 2:] = 0
    rows = spherise(rows)
    gradient = reaper_subgradient(rows, first)
    for other in points_of_h(6, 3, 200, seed=4, scale=2.0):
        linear = reaper(rows, first) + np.sum(gradient * (other - first))
        assert reaper(rows, other) >= linear - 1e-12
    rows, matrix = spherise(rng(5).standard_normal((30, 4))), points_of_h(4, 2)[0]
    gradient = reaper_subgradient(rows, matrix)
    for seed in range(5):
        direction = rng(seed).standard_normal((4, 4))
        direction = direction + direction.T
        ends = [reaper(rows, matrix + h * direction) for h in (1e-6, -1e-6)]
        assert np.isclose(
            (ends[0] - ends[1]) / 2e-6, np.sum(gradient * direction), rtol=1e-6
        )


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
    p = geometries.clipped_eigenvalues(values, r)
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
    logs = geometries.bregman_logs(values, r)
    assert np.all(logs <= 0)
    assert np.isclose(np.exp(logs).sum(), r, rtol=1e-12)
    multiplier = values - logs
    assert multiplier[logs < 0].max(initial=-np.inf) <= multiplier.min() + slack


def test_equal_eigenvalues_and_points_of_h_stay():
    for r in (1, 2, 4):
        assert np.allclose(geometries.clipped_eigenvalues(np.zeros(5), r), r / 5)
        assert np.allclose(
            np.exp(geometries.bregman_logs(np.full(5, -700.0), r)), r / 5
        )
    for d in (2, 4):
        assert np.allclose(geometries.clipped_eigenvalues(np.full(d, 7.0), d), 1)
        assert np.allclose(geometries.bregman_logs(np.arange(float(d)), d), 0)
    point = np.array([0.0, 0.0, 0.3, 0.7, 1.0])
    assert np.allclose(geometries.clipped_eigenvalues(point, 2), point, atol=1e-15)
    projector = np.diag([1.0, 1.0, 0.0])
    assert np.allclose(frobenius_projection(projector, 2), projector, atol=1e-12)


def test_stacks_are_their_matrices_and_logarithms_far_apart_do_not_underflow():
    matrices = symmetric(4, trials=6, seed=3, scale=1.5)
    for project in (frobenius_projection, bregman_projection):
        together = project(matrices, 2)
        apart = np.array([project(each, 2) for each in matrices])
        assert np.allclose(together, apart, atol=1e-13)
        assert np.allclose(np.trace(together, axis1=1, axis2=2), 2)
        values = np.linalg.eigvalsh(together)
        assert values.min() > -1e-12
        assert values.max() < 1 + 1e-12
    logs = geometries.bregman_logs(np.array([-3000.0, -2000.0, 0.0, 5000.0]), 2)
    assert np.array_equal(logs, [-3000.0, -2000.0, 0.0, 0.0])
    logs = geometries.bregman_logs(np.array([-2001.0, -2000.0, 5000.0]), 2)
    assert np.isclose(np.exp(logs).sum(), 2, rtol=1e-12)


def test_renormalisation_needs_no_cap_and_gradients_are_of_the_objective():
    flat, steep = np.log([1.0, 2.0, 3.0]), np.log([1.0, 2.0, 30.0])
    assert np.allclose(
        geometries.renormalised_logs(flat, 1), geometries.bregman_logs(flat, 1)
    )
    assert np.allclose(np.exp(geometries.renormalised_logs(steep, 2)).sum(), 2)
    assert geometries.renormalised_logs(steep, 2).max() > 0
    assert geometries.bregman_logs(steep, 2).max() == 0
    rows, basis = spherise(rng(3).standard_normal((30, 6))), bases_of(6, 2)[0]
    gradient = glad_gradient(rows, basis)
    assert np.abs(basis.T @ gradient).max() < 1e-12
    for seed in range(5):
        direction = geometries.to_tangent(basis, rng(seed).standard_normal((6, 2)))
        ends = [geometries.geodesic_step(basis, h * direction) for h in (1e-5, -1e-5)]
        slope = (glad(rows, ends[0]) - glad(rows, ends[1])) / 2e-5
        assert np.isclose(slope, np.sum(gradient * direction), rtol=1e-8)


def bases_of(d, r, trials=1, seed=0):
    return geometries.polar(rng(seed).standard_normal((trials, d, r)))


def glad_term(row, basis):
    residual = row - basis @ (basis.T @ row)
    length = np.sqrt(residual @ residual)
    if length <= 1e-12:
        return np.zeros(basis.shape)
    return np.outer(residual / length, basis.T @ row)


def test_the_objective_is_a_mean_distance_and_at_projectors_glad():
    rows, bases = rng(4).standard_normal((9, 5)), bases_of(5, 2, 3)
    for value, basis in zip(glad(rows, bases), bases, strict=True):
        # The distance from a span, by least squares.
        distances = [
            np.linalg.norm(x - basis @ np.linalg.lstsq(basis, x)[0]) for x in rows
        ]
        assert np.isclose(value, np.mean(distances))
    assert glad_gradient(rows, bases).shape == (3, 5, 2)
    rows = rng(6).standard_normal((20, 5))
    basis = np.linalg.qr(rng(7).standard_normal((5, 2))).Q
    assert np.isclose(reaper(rows, basis @ basis.T), glad(rows, basis))


def test_the_subspace_adds_nothing_and_tiny_residuals_keep_their_direction():
    basis = bases_of(6, 3)[0]
    inside = spherise(rng(5).standard_normal((20, 3)) @ basis.T)
    assert np.array_equal(term_sum(inside, basis[None]), np.zeros((1, 6, 3)))
    assert glad(inside, basis) < 1e-12
    padded = np.zeros((1, 4, 6))
    padded[0, 0] = spherise(rng(6).standard_normal((1, 6)))
    assert np.allclose(term_sum(padded, basis[None])[0], glad_term(padded[0, 0], basis))
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


def test_sensitivities_are_approached_by_rows_of_any_length():
    basis = np.eye(4)[:, :2]
    for lean in (0.1, 1e-3, 1e-6):
        rows = np.array([[0, np.cos(lean), np.sin(lean), 0]])
        other = rows * [1, 1, -1, 1]
        first, second = (term_sum(each, basis[None]) for each in (rows, other))
        assert np.isclose(np.linalg.norm(first), np.cos(lean), atol=1e-9)
        assert np.isclose(np.linalg.norm(first - second), 2 * np.cos(lean), atol=1e-9)
    rows = spherise([[3e-200, 4e-200], [3e200, -4e200]])
    assert np.allclose(rows, [[0.6, 0.8], [0.6, -0.8]], rtol=1e-14)


test_bad_input_is_named = refused(
    (lambda: spherise([[1.0, 0.0], [0.0, 0.0]]), "row 1 is zero"),
    (lambda: spherise([[1.0, np.nan]]), "row 0 has a NaN"),
    (lambda: spherise(np.empty((0, 2))), "n >= 1"),
)
