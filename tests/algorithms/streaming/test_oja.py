"""Oja's algorithm, with and without privacy: steps by hand, the ball of the means.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from scipy import linalg
from seeded import prepared, rng

from dpaudit import ApproxDP, GaussianDP, Relation
from dpaudit.algorithms.shared.bases import end_of
from dpaudit.algorithms.shared.step_sizes import ConstantSteps, HarmonicSteps
from dpaudit.algorithms.streaming.amplification import amplified_multiplier
from dpaudit.algorithms.streaming.moment_products import batch_sensitivity, own_products
from dpaudit.algorithms.streaming.moments import StreamedMoments, as_moments
from dpaudit.algorithms.streaming.oja import Oja, PrivateOja
from dpaudit.algorithms.streaming.pairs import oblique_pair
from dpaudit.gaussian import gaussian_mu

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


def test_all_forms_of_rows_are_alike_and_read_in_parts():
    expected = Oja(STEPS).release(ROWS, rng=rng())
    stream = StreamedMoments(ROWS.__getitem__, count=23, dimension=3)
    for each in (stream, as_moments(ROWS)):
        np.testing.assert_array_equal(Oja(STEPS).release(each, rng=rng()), expected)
    # Read in parts; taken some steps at a time; and beyond the range of doubles so.
    for shape, steps in (
        *(((5, 2**16), STEPS), ((150, 3), STEPS)),
        ((150, 3), ConstantSteps(2.0**200)),
    ):
        rows, w = rng(4).standard_normal(shape), rng(2).standard_normal(shape[1])
        w /= np.linalg.norm(w)
        for row, eta in zip(rows, steps.sizes(len(rows)), strict=True):
            w = w + eta * (row @ w) * row
            w /= np.linalg.norm(w)
        np.testing.assert_allclose(Oja(steps).release(rows, rng=rng(2)), w, atol=1e-10)


def test_there_is_one_component_if_there_is_a_direction():
    draws = Oja(STEPS).draw(ROWS, 4, rng=rng())
    np.testing.assert_array_equal(Oja(STEPS).components(draws, 1)[..., 0], draws)
    refuses("n_components must be the 1 that", Oja(STEPS).components, draws, 2)
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
    (
        lambda: Oja(0.1).draw(np.zeros((3, 2, 4)), 1, rng=rng()),
        "data must be square matrices",
    ),
)


def test_the_worst_case_grows_with_the_rows_and_needs_two_dimensions():
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
    refuses("dimension must be an integer >= 2", Oja(0.1).worst_case, 1)


SHORT = np.random.default_rng(0).standard_normal((12, 3))
BASE = PrivateOja(claim=ApproxDP(0.5, 1e-3), step_sizes=STEPS, multiplier=0.4)
FORMS = {
    "rows": BASE,
    "clipped products": replace(BASE, row_norm=None, clip=0.7),
    "both": replace(BASE, row_norm=1.5, clip=0.4),
}


# What amplification needs
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([0.3, 0.9, None]))
@settings(max_examples=100)
def test_given_the_past_all_means_lie_in_one_ball(seed, d, clip):
    generator = rng(seed)
    w = generator.standard_normal(d)
    w /= np.linalg.norm(w)
    rows = 3 * generator.standard_normal((20, d))
    rows[:10] += 2 * w
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 1.2)
    means = own_products(rows, np.tile(w, (20, 1)), clip)
    bound = batch_sensitivity(1, row_norm=1.2, clip=clip)
    if clip is None or 2 * clip >= 1.2**2:
        centre = 1.2**2 / 2 * w
    else:
        centre = 0 * w
    assert (np.linalg.norm(means - centre, axis=1) <= bound / 2 * (1 + 1e-9)).all()


def test_the_noise_is_the_amplified_multiple_of_the_diameter_or_the_papers():
    for options, diameter in (
        ({"row_norm": 3.0}, 9.0),
        ({"row_norm": 3.0, "clip": 2.0}, 4.0),
        ({"row_norm": None, "clip": 2.0}, 4.0),
    ):
        mechanism = PrivateOja.calibrated(0.4, 1e-5, **options)
        for count in (1, 400):
            alpha = amplified_multiplier(0.4, 1e-5, count)
            assert mechanism.noise_scale(count) == pytest.approx(diameter * alpha)
        assert mechanism.claim == ApproxDP(0.4, 1e-5)
        assert mechanism.relation is Relation.REPLACE_ONE
    mechanism = PrivateOja.as_published(0.1, 1e-6, clip=2.0, count=400, constant=3.0)
    alpha = 3.0 * np.log(400 / 1e-6) / (0.1 * np.sqrt(400))
    assert mechanism.noise_scale(400) == pytest.approx(2 * 2.0 * alpha)
    assert mechanism.claim == ApproxDP(0.1, 1e-6)
    assert mechanism.draw(SHORT, 3, rng=rng()).shape == (3, 3)


# Runs
# The last of rows so long that they are read in parts, four at a time.
@pytest.mark.parametrize(
    ("form", "data", "size"),
    [
        *((form, SHORT, 6) for form in FORMS),
        ("rows", np.random.default_rng(1).standard_normal((6, 2**18)), 1),
    ],
    ids=[*FORMS, "long rows"],
)
def test_batches_are_many_runs_by_hand(form, data, size):
    mechanism = FORMS[form]
    rows, (n, d) = prepared(mechanism, data), data.shape
    draws = mechanism.draw(data, size, rng=rng(1))
    transcript = mechanism.transcript(data, size, rng=rng(1))
    generator = rng(1)
    order = generator.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
    starts = generator.standard_normal((size, d))
    noise = mechanism.noise_scale(n) * generator.standard_normal((n, size, d))
    for trial in range(size):
        w = starts[trial] / np.linalg.norm(starts[trial])
        for t in range(n):
            x = rows[order[trial, t]]
            product = (x @ w) * x
            if mechanism.clip is not None:
                product *= min(1.0, mechanism.clip / np.linalg.norm(product))
            noisy = product + noise[t, trial]
            np.testing.assert_allclose(transcript["steps"][trial, t], noisy, atol=1e-9)
            w = w + 2.0 / (3.0 + t + 1) * noisy
            w /= np.linalg.norm(w)
        np.testing.assert_allclose(draws[trial], w, atol=1e-9)
    # One run by itself is taken in another way.
    alone = end_of(mechanism._walk(mechanism.read(data), 1, rng(2)))
    found = mechanism.draw(data, 1, rng=rng(2))
    np.testing.assert_allclose(found, alone, atol=1e-12)


def test_rows_are_a_faster_form_and_the_canonical_pair_takes_any_length():
    mechanism = FORMS["clipped products"]
    expected = mechanism.draw(SHORT, 9, rng=rng())
    matrices = SHORT[:, :, None] * SHORT[:, None]
    np.testing.assert_allclose(
        mechanism.draw(matrices, 9, rng=rng()), expected, atol=1e-9
    )
    for form in FORMS.values():
        for dimension in (None, 1, 4):
            pair = form.worst_case(dimension)
            assert len(pair.data) == 500
            assert pair.data.shape[1] == (dimension or 2)


# No epsilon is refused, and bad input is
@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 1), (0.9, 1), (50.0, 100)])
def test_every_epsilon_and_number_of_rows_is_covered(epsilon, count):
    mechanism = PrivateOja.calibrated(epsilon, 1e-5)
    scale = mechanism.noise_scale(count)
    assert 0 < scale <= (1 + 1e-12) / gaussian_mu(epsilon, 1e-5)
    assert mechanism.release(np.ones((count, 2)), rng=rng()).shape == (2,)


test_bad_fields_are_named = refused(
    ({"claim": GaussianDP(1.0)}, "claim must be an ApproxDP"),
    ({"claim": ApproxDP(0.5, 0.0)}, r"delta must be in \(0, 1\)"),
    ({"step_sizes": "1"}, "step_sizes must be > 0"),
    ({"multiplier": 0.0}, "multiplier must be a finite number > 0"),
    ({"row_norm": None}, "clip must be given where there is no row_norm"),
    by=lambda bad: replace(BASE, **bad),
)
