"""The search for step sizes: the grid, the runs, the choice, the two parts.

Nothing here is random from run to run: seeds are fixed, and no null hypothesis is
tested.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from seeded import prepared, rng

from dpaudit import ApproxDP, GaussianDP, InputError, Relation, UnsupportedError
from dpaudit.algorithms.shared.step_sizes import ConstantSteps, HarmonicSteps
from dpaudit.algorithms.streaming.step_size_search import StepSizeSearch, step_size_grid
from dpaudit.gaussian import gaussian_delta

ROWS = np.random.default_rng(0).standard_normal((30, 3))
BASE = StepSizeSearch(
    claim=ApproxDP(1.0, 1e-3),
    sigma=0.8,
    candidates=(HarmonicSteps(2.0, 3.0), HarmonicSteps(20.0), HarmonicSteps(0.1)),
    iterations=4,
    share=0.2,
)
FORMS = {
    "rows": BASE,
    "clipped products": replace(BASE, row_norm=None, clip=0.7),
    "both": replace(BASE, row_norm=1.5, clip=0.4),
}
forms = pytest.mark.parametrize("form", list(FORMS))


def test_the_grid_is_the_union_of_rings_and_default_candidates_near():
    for rounds in (1, 2, 4):
        expected = set()
        for i in range(1, rounds + 1):
            ends = (2.0 ** (i - 1), 2.0 ** (1 - i))
            line = [2.0**power for power in range(1 - i, i)]
            expected |= {(one, two) for one in ends for two in line}
            expected |= {(one, two) for one in line for two in ends}
        grid = [(each.numerator, each.offset) for each in step_size_grid(rounds)]
        assert len(grid) == len(set(grid)) == (2 * rounds - 1) ** 2
        assert set(grid) == expected
    scaled = step_size_grid(2, numerator=3.0, offset=5.0, ratio=10.0)
    pairs = [(each.numerator, each.offset) for each in scaled]
    expected = [(3.0 * one, 5.0 * two) for one in (0.1, 1, 10) for two in (0.1, 1, 10)]
    np.testing.assert_allclose(pairs, expected)
    grid = StepSizeSearch.calibrated(1.0, 1e-5, row_norm=2.0).candidates
    assert len(grid) == 9
    assert grid[4] == HarmonicSteps(15.0, 1.0)
    assert grid[0] == HarmonicSteps(3.75, 0.25)
    w = np.array([1.0, 0.0, 0.0])
    assert FORMS["rows"].utility_sensitivity == (w @ w) ** 2
    assert FORMS["both"].utility_sensitivity == 0.4
    assert FORMS["clipped products"].utility_sensitivity == 1.4  # 0.7 I and -0.7 I


@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_runs_meet_the_claim_with_equality(count):
    candidates = [HarmonicSteps(float(k + 1)) for k in range(count)]
    for options, moved in (
        ({"row_norm": 2.0}, 4.0),
        ({"row_norm": None, "clip": 3.0}, 6.0),
    ):
        mechanism = StepSizeSearch.calibrated(
            0.8, 1e-6, candidates=candidates, **options
        )
        attained = float(gaussian_delta(0.8, sqrt(count) * moved / mechanism.sigma))
        assert attained == pytest.approx(1e-6, rel=1e-9)
        assert attained <= 1e-6
        assert mechanism.claim == ApproxDP(0.8, 1e-6)
        assert mechanism.relation is Relation.REPLACE_ONE


def product(mechanism, row, w):
    found = (row @ w) * row
    if mechanism.clip is None:
        return found
    return found * min(1.0, mechanism.clip / np.linalg.norm(found))


@forms
def test_runs_and_choice_are_those_by_hand(form):
    mechanism, size = FORMS[form], 5
    rows, n, judges = prepared(mechanism, ROWS), 30, 6
    transcript = mechanism.transcript(ROWS, size, rng=rng(1))
    draws = mechanism.draw(ROWS, size, rng=rng(1))
    generator = rng(1)
    starts = generator.standard_normal((size, 3, 3))
    noise = [generator.standard_normal((size, 3, 3)) for _ in range(4)]
    gumbel = generator.gumbel(size=(size, 3))
    unit = min(
        np.inf if mechanism.row_norm is None else mechanism.row_norm**2,
        np.inf if mechanism.clip is None else mechanism.clip,
    )
    for trial in range(size):
        scores = []
        for j, steps in enumerate(mechanism.candidates):
            w = starts[trial, j] / np.linalg.norm(starts[trial, j])
            for t in range(4):
                total = 0.8 * noise[t][trial, j]
                for row in rows[t * 6 : (t + 1) * 6]:
                    total = total + product(mechanism, row, w)
                w = w + steps.sizes(4)[t] / 6 * total
                w /= np.linalg.norm(w)
            np.testing.assert_allclose(transcript["runs"][trial, j], w, atol=1e-9)
            utility = sum(w @ product(mechanism, row, w) for row in rows[n - judges :])
            moved = unit if mechanism.row_norm is not None else 2 * unit
            scores.append(utility / (2 * moved) + gumbel[trial, j])
        best = int(np.argmax(scores))
        assert transcript["choice"][trial] == best
        np.testing.assert_array_equal(draws[trial], transcript["runs"][trial, best])
    np.testing.assert_array_equal(
        mechanism.release(ROWS, rng=rng(2)), mechanism.draw(ROWS, 1, rng=rng(2))[0]
    )


@given(st.integers(0, 2**32), st.sampled_from(list(FORMS)))
@settings(max_examples=60)
def test_no_utility_moves_further_than_its_sensitivity(seed, form):
    mechanism, generator = FORMS[form], rng(seed)
    runs = generator.standard_normal((8, 3))
    runs /= np.linalg.norm(runs, axis=1, keepdims=True)
    if mechanism.row_norm is None:
        matrices = 3 * generator.standard_normal((2, 3, 3))
    else:
        rows = prepared(mechanism, 3 * generator.standard_normal((2, 3)))
        matrices = rows[:, :, None] * rows[:, None]
    products = matrices[:, None] @ runs[None, :, :, None]
    if mechanism.clip is not None:
        norms = np.linalg.norm(products, axis=2, keepdims=True)
        products = products * np.minimum(1.0, mechanism.clip / norms)
    utilities = np.einsum("jd,ajd->aj", runs, products[..., 0])
    moved = np.abs(utilities[0] - utilities[1]).max()
    assert moved <= mechanism.utility_sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9])
def test_the_canonical_pair_differs_in_the_last_row_of_the_first_part(share):
    for form, mechanism in FORMS.items():
        pair = replace(mechanism, share=share).worst_case()
        count = len(pair.data)
        first = count - int(share * count)
        (place,) = np.flatnonzero(
            (pair.data != pair.neighbour).reshape(count, -1).any(axis=1)
        )
        assert place == first - 1, form
        assert first % mechanism.iterations == 0
    with pytest.raises(UnsupportedError, match="no pair is made for a share of"):
        replace(BASE, share=0.001).worst_case()


def test_bad_fields_and_grids_and_too_few_rows_are_named():
    refuses("claim must be an ApproxDP", replace, BASE, claim=GaussianDP(1.0))
    with pytest.raises(InputError, match="candidates must be one or more Harmonic"):
        replace(BASE, candidates=[ConstantSteps(1.0)])
    refuses("rounds must be an integer >= 1", step_size_grid, 0)
    refuses("ratio must be > 1, got", step_size_grid, 1, ratio=1.0)
    message = "data must have at least 4 rows to run on, and one to judge by"
    for use in (BASE.draw, BASE.transcript):
        refuses(message, use, ROWS[:4], 2, rng=rng())
