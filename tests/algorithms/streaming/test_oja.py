"""Oja's algorithm without privacy: steps by hand, all forms alike, bad input."""

import numpy as np
import pytest
from refusals import refused, refuses
from scipy import linalg
from seeded import rng

from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.moments import StreamedMoments, as_moments
from dpaudit.algorithms.streaming.oja import Oja
from dpaudit.algorithms.streaming.pairs import oblique_pair

ROWS = np.random.default_rng(0).standard_normal((23, 3))
MATRICES = np.random.default_rng(1).standard_normal((23, 3, 3))
STEPS = HarmonicSteps(2.0, 3.0)


def by_hand(matrices, batch, start):
    """One run, in the order of the paper."""
    w = start / np.linalg.norm(start)
    for t in range(len(matrices) // batch):
        mean = matrices[t * batch : (t + 1) * batch].mean(axis=0)
        w = w + 2.0 / (3.0 + t + 1) * mean @ w
        w /= np.linalg.norm(w)
    return w


@pytest.mark.parametrize("batch", [1, 4, 23])
def test_runs_are_those_by_hand(batch):
    mechanism = Oja(STEPS, batch)
    products = ROWS[:, :, None] * ROWS[:, None]
    for data, matrices in ((ROWS, products), (MATRICES, MATRICES)):
        for size in (1, 5):
            starts = rng(2).standard_normal((size, 3))
            expected = [by_hand(matrices, batch, start) for start in starts]
            draws = mechanism.draw(data, size, rng=rng(2))
            np.testing.assert_allclose(draws, expected, atol=1e-10)
    np.testing.assert_allclose(
        mechanism.draw(products, 5, rng=rng()),
        mechanism.draw(ROWS, 5, rng=rng()),
        atol=1e-10,
    )
    np.testing.assert_array_equal(
        mechanism.release(ROWS, rng=rng()), mechanism.draw(ROWS, 1, rng=rng())[0]
    )


def test_all_forms_of_rows_are_alike():
    expected = Oja(STEPS).release(ROWS, rng=rng())
    stream = StreamedMoments(ROWS.__getitem__, count=23, dimension=3)
    for each in (stream, as_moments(ROWS)):
        np.testing.assert_array_equal(Oja(STEPS).release(each, rng=rng()), expected)


def test_long_rows_are_read_in_parts():
    rows, w = rng(4).standard_normal((5, 2**16)), rng(2).standard_normal(2**16)
    w /= np.linalg.norm(w)
    for t, row in enumerate(rows):
        w = w + 2.0 / (3.0 + t + 1) * (row @ w) * row
        w /= np.linalg.norm(w)
    np.testing.assert_allclose(Oja(STEPS).release(rows, rng=rng(2)), w, atol=1e-10)


def test_there_is_one_component():
    draws = Oja(STEPS).draw(ROWS, 4, rng=rng())
    np.testing.assert_array_equal(Oja(STEPS).components(draws, 1)[..., 0], draws)
    refuses("n_components must be the 1 that", Oja(STEPS).components, draws, 2)


def test_where_there_is_no_direction_there_is_no_number():
    # A step that gives zero, and one that overflows.
    gone = -np.eye(2)[None]
    assert np.isnan(Oja(1.0).draw(gone, 3, rng=rng())).all()
    far = np.full((2, 1), 1e150)
    assert np.isnan(Oja(1e10).draw(far, 3, rng=rng())).all()
    assert np.isnan(Oja(1e10).release(far, rng=rng())).all()


test_bad_arguments_are_named = refused(
    (lambda: Oja(0.0), "step_sizes must be a finite number > 0, got 0.0"),
    (lambda: Oja([0.1, -0.1]), r"step_sizes\[1\] must be a finite number > 0"),
    (lambda: Oja(0.1, batch_size=0), "batch_size must be an integer >= 1"),
    (
        lambda: Oja(0.1, 30).draw(ROWS, 1, rng=rng()),
        "batch_size must be at most the number of rows, 23, got 30",
    ),
    (lambda: Oja([0.1]).draw(ROWS, 1, rng=rng()), "step_sizes must be at least 23"),
    (lambda: Oja(0.1).draw(ROWS, -1, rng=rng()), "size must be an integer >= 0"),
    (
        lambda: Oja(0.1).draw(np.zeros((3, 2, 4)), 1, rng=rng()),
        "data must be square matrices",
    ),
)


def test_the_loss_of_the_worst_case_grows_with_the_rows():
    """The largest log density ratio, by the matrices of both laws: 2 log K and more."""
    losses = []
    for count in (5, 10, 20):
        laws = []
        pair = oblique_pair(2, count=count, unit=1.0)
        for rows in (pair.data, pair.neighbour):
            product = np.eye(2)
            for row in rows:
                product = (np.eye(2) + np.outer(row, row)) @ product
            laws.append(product @ product.T)
        losses.append(np.log(linalg.eigh(laws[1], laws[0], eigvals_only=True)[-1]))
    np.testing.assert_allclose(np.diff(losses), 2 * np.log(2) * np.array([5, 10]), 0.01)


def test_a_worst_case_needs_two_dimensions():
    refuses("dimension must be an integer >= 2", Oja(0.1).worst_case, 1)
