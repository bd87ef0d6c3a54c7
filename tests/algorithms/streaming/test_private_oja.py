"""Private Oja: the ball of the means, runs by hand, range.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from seeded import prepared, rng

from dpaudit import ApproxDP, GaussianDP, Relation
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.amplification import amplified_multiplier
from dpaudit.algorithms.streaming.moment_products import batch_sensitivity, own_products
from dpaudit.algorithms.streaming.oja import PrivateOja
from dpaudit.gaussian import gaussian_mu

ROWS = np.random.default_rng(0).standard_normal((12, 3))
STEPS = HarmonicSteps(2.0, 3.0)
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


def test_the_noise_is_the_amplified_multiple_of_the_diameter():
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


def test_the_published_noise_is_the_papers():
    mechanism = PrivateOja.as_published(0.1, 1e-6, clip=2.0, count=400, constant=3.0)
    alpha = 3.0 * np.log(400 / 1e-6) / (0.1 * np.sqrt(400))
    assert mechanism.noise_scale(400) == pytest.approx(2 * 2.0 * alpha)
    assert mechanism.claim == ApproxDP(0.1, 1e-6)
    assert mechanism.draw(ROWS, 3, rng=rng()).shape == (3, 3)


# Runs


# The last of rows so long that they are read in parts, four at a time.
@pytest.mark.parametrize(
    ("form", "data", "size"),
    [
        *((form, ROWS, 6) for form in FORMS),
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
    np.testing.assert_array_equal(
        mechanism.release(data, rng=rng(2)), mechanism.draw(data, 1, rng=rng(2))[0]
    )


def test_rows_are_a_faster_form_of_their_matrices():
    mechanism = FORMS["clipped products"]
    expected = mechanism.draw(ROWS, 9, rng=rng())
    matrices = ROWS[:, :, None] * ROWS[:, None]
    np.testing.assert_allclose(
        mechanism.draw(matrices, 9, rng=rng()), expected, atol=1e-9
    )


# No epsilon is refused, and bad input is


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 1), (0.9, 1), (50.0, 100)])
def test_every_epsilon_and_number_of_rows_is_covered(epsilon, count):
    mechanism = PrivateOja.calibrated(epsilon, 1e-5)
    scale = mechanism.noise_scale(count)
    assert 0 < scale <= (1 + 1e-12) / gaussian_mu(epsilon, 1e-5)
    assert mechanism.release(np.ones((count, 2)), rng=rng()).shape == (2,)


def test_the_canonical_pair_takes_any_length_of_rows():
    for form in FORMS.values():
        for dimension in (None, 1, 4):
            pair = form.worst_case(dimension)
            assert len(pair.data) == 500
            assert pair.data.shape[1] == (dimension or 2)


test_bad_fields_are_named = refused(
    ({"claim": GaussianDP(1.0)}, "claim must be an ApproxDP"),
    ({"claim": ApproxDP(0.5, 0.0)}, r"delta must be in \(0, 1\)"),
    ({"step_sizes": 1.0}, "step_sizes must be StepSizes"),
    ({"multiplier": 0.0}, "multiplier must be a finite number > 0"),
    ({"row_norm": None}, "clip must be given where there is no row_norm"),
    by=lambda bad: replace(BASE, **bad),
)


def test_bad_data_are_named():
    """As `test_moments` has it, whichever way they come in."""
    for use in (BASE.draw, BASE.transcript):
        refuses("data must have shape", use, np.zeros(3), 2, rng=rng())
