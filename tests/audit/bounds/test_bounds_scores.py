"""Bounds from scores: calibration, power, and scores that are not numbers."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.audit.bounds import (
    Counts,
    fixed_scores,
    gaussian,
    joint,
    split_scores,
)
from dpaudit.audit.bounds.paired import PairedCounts, paired_law
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_mu

AUDITS = 120
CONFIDENCE = 0.9
# A valid bound is above the truth more often than this with probability < 1e-9.
MOST = int(binom.isf(1e-9, AUDITS, 1 - CONFIDENCE))


def laplace(rng, n):
    return rng.laplace(1.0, size=n), rng.laplace(0.0, size=n)


def loss_of_laplace(rng, n):
    raw = laplace(rng, n)
    return tuple(np.round(np.abs(x) - np.abs(x - 1), 9) for x in raw)


def response(rng, n):
    truth = 1 / (1 + np.exp(-1.0))
    return tuple((rng.random(n) < p).astype(float) for p in (truth, 1 - truth))


def shifted(mu):
    def draw(rng, n):
        return rng.normal(mu, size=n), rng.normal(size=n)

    return draw


MECHANISMS = {
    "laplace": (laplace, {}, 1.0),
    "loss of laplace": (loss_of_laplace, {}, 1.0),
    "response": (response, {}, 1.0),
    "gaussian": (shifted(gaussian_mu(1.0, 0.05)), {"delta": 0.05}, 1.0),
    "mu": (shifted(1.0), {"gaussian": True}, 1.0),
}


def audits(bound, draw, truth, n=400):
    """Return how many of many audits report more than the truth."""
    over = 0
    for seed in range(AUDITS):
        rng = np.random.default_rng(seed)
        over += bound(*draw(rng, n), rng) > truth
    return over


@pytest.mark.parametrize("name", MECHANISMS)
def test_calibration(name):
    draw, options, truth = MECHANISMS[name]

    def bound(on_data, on_neighbour, rng):
        return fixed_scores(
            on_data, on_neighbour, confidence=CONFIDENCE, rng=rng, **options
        ).value

    assert audits(bound, draw, truth) <= MOST


def test_calibration_of_sample_splitting():
    def bound(on_data, on_neighbour, rng):
        return split_scores(on_data, on_neighbour, confidence=CONFIDENCE, rng=rng).value

    assert audits(bound, laplace, 1.0) <= MOST


def test_the_refused_maximum_over_thresholds_is_caught():
    def greedy(on_data, on_neighbour, rng):
        hits = [
            Counts(int((on_data >= t).sum()), 400, int((on_neighbour >= t).sum()), 400)
            for t in np.linspace(1.0, 4.0, 7)
        ]
        return max(joint(c, confidence=CONFIDENCE).value for c in hits)

    assert audits(greedy, laplace, 1.0) > MOST


def test_the_refused_moments_of_scores_are_caught():
    # Both sides within mu = 0.5, but not Gaussian: a mixture with few wild scores.
    def moments(on_data, on_neighbour, rng):
        return (on_data.mean() - on_neighbour.mean()) / on_neighbour.std()

    def mixture(rng, n):
        response = [rng.random(n) < p for p in (0.95, 0.05)]
        return tuple(np.where(x, 1.0, -1.0) for x in response)

    # mu of this randomised response is 2 x 1.645; its moments say 4.1.
    assert audits(moments, mixture, 3.29) == AUDITS
    values = [
        fixed_scores(*mixture(rng, 400), gaussian=True, rng=rng).value
        for rng in map(np.random.default_rng, range(9))
    ]
    assert max(values) <= 3.6
    assert np.median(values) > 2.7


@pytest.mark.parametrize(
    ("draw", "options", "least"),
    [
        (shifted(gaussian_mu(1.0, 1e-5)), {"delta": 1e-5}, 0.62),
        (shifted(2 * gaussian_mu(1.0, 1e-5)), {"delta": 1e-5}, 1.4),
        (loss_of_laplace, {}, 0.975),
        (laplace, {}, 0.97),
    ],
)
def test_power(draw, options, least):
    values = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        values.append(fixed_scores(*draw(rng, 100_000), rng=rng, **options).value)
    assert np.median(values) > least


def test_power_against_gaussian_claims():
    mu = gaussian_mu(1.0, 1e-5)
    values = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        scores = shifted(mu)(rng, 100_000)
        bound = fixed_scores(*scores, gaussian=True, delta=1e-5, rng=rng)
        values.append(bound.epsilon)
    assert np.median(values) > 0.95


def test_both_tails_beat_one_and_the_baseline():
    draw = shifted(2 * gaussian_mu(1.0, 1e-5))
    fixed, split = [], []
    for seed in range(9):
        scores = draw(np.random.default_rng(seed), 100_000)
        rng = np.random.default_rng(seed)
        bound = fixed_scores(*scores, delta=1e-5, rng=rng)
        assert bound.method == "fixed joint, both tails"
        assert bound.counts["lower"] < bound.counts["upper"]
        fixed.append(bound.value)
        split.append(split_scores(*scores, delta=1e-5, rng=rng).value)
    assert np.median(fixed) > np.median(split) + 0.1


def test_a_rare_leak_is_found():
    rng = np.random.default_rng(1)
    n = 20_000
    on_data = np.where(rng.random(n) < 0.02, np.inf, rng.normal(size=n))
    on_neighbour = np.where(rng.random(n) < 0.001, np.inf, rng.normal(size=n))
    bound = fixed_scores(on_data, on_neighbour, delta=1e-5, rng=rng)
    assert bound.value > 2
    assert np.isinf(bound.counts["threshold"])
    printed = json.loads(json.dumps(bound.to_dict(), allow_nan=False))
    assert printed["counts"]["threshold"] == "inf"


def test_an_event_on_the_other_side_alone():
    rng = np.random.default_rng(2)
    n = 20_000
    on_data = np.where(rng.random(n) < 0.001, -9.0, rng.normal(size=n))
    on_neighbour = np.where(rng.random(n) < 0.02, -9.0, rng.normal(size=n))
    assert fixed_scores(on_data, on_neighbour, rng=rng).value > 2


def test_sorted_files_do_no_harm():
    rng = np.random.default_rng(3)
    on_data, on_neighbour = (np.sort(x) for x in laplace(rng, 20_000))
    bound = fixed_scores(on_data, on_neighbour, rng=rng)
    assert 0.8 < bound.value < 1.1
    counted = bound.counts
    assert counted["releases"] <= 18_000


def test_last_bits_do_not_count():
    # The exact loss of a Laplace mechanism is constant in the tails over the real
    # numbers; its last bits would tell D from D'.
    rng = np.random.default_rng(4)
    scores = [np.abs(x) - np.abs(x - 1) for x in laplace(rng, 20_000)]
    bits = [set(np.unique(side[side < -1 + 1e-9])) for side in scores]
    assert bits[0] != bits[1]
    assert fixed_scores(*scores, rng=rng).value < 1.1


def test_same_seed_same_bound():
    scores = laplace(np.random.default_rng(4), 1000)
    bounds = {
        fixed_scores(*scores, rng=np.random.default_rng(5)).value for _ in range(2)
    }
    assert len(bounds) == 1


def test_sides_of_unequal_size_and_equal_laws():
    rng = np.random.default_rng(6)
    bound = fixed_scores(rng.laplace(1, size=30_000), rng.laplace(size=3000), rng=rng)
    assert 0.7 < bound.value < 1
    same = fixed_scores(rng.normal(size=500), rng.normal(size=500), rng=rng)
    assert same.value < 0.2


def test_paired_counts():
    law = paired_law(10_000)
    assert law is not None
    assert 9400 < law.scale / 2 < 9600
    scores = np.arange(10_000.0)
    drawn = PairedCounts.draw(
        scores, scores + 5000, 2000.0, 8000.0, law, np.random.default_rng(0)
    )
    first, second = drawn.drawn
    assert drawn.enough
    assert drawn.right == first - 8000
    assert drawn.wrong == 2000 + second - 3000
    short = PairedCounts.draw(
        scores[:100], scores, 2000.0, 8000.0, law, np.random.default_rng(0)
    )
    assert not short.enough


def test_too_few_releases_for_a_poisson_number():
    assert paired_law(8) is None
    rng = np.random.default_rng(7)
    scores = np.ones(20), np.zeros(20)
    for options in ({}, {"gaussian": True}):
        bound = fixed_scores(*scores, rng=rng, **options)
        best = (gaussian if options else joint)(Counts(18, 18, 0, 18)).value
        assert bound.value <= best + 1e-9


@pytest.mark.parametrize("bound", [fixed_scores, split_scores])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"on_data": [0.0, np.nan] * 20}, "on_data must not contain NaN, but score 1"),
        ({"on_neighbour": [0.0] * 5}, "on_neighbour must hold at least 20 scores"),
        ({"on_data": np.zeros((30, 2))}, "on_data must hold at least 20 scores in one"),
        ({"on_data": ["a"] * 30}, "on_data must be an array of numbers"),
        ({"fraction": 1.0}, "fraction must be in"),
        ({"delta": 1.0}, "delta must be in"),
        ({"confidence": 1.0}, "confidence must be in"),
    ],
)
def test_arguments_are_checked(bound, change, message):
    arguments = {
        "on_data": np.arange(30.0),
        "on_neighbour": np.arange(30.0),
        "rng": np.random.default_rng(0),
    }
    arguments |= change
    on_data, on_neighbour = arguments.pop("on_data"), arguments.pop("on_neighbour")
    with pytest.raises(InputError, match=message):
        bound(on_data, on_neighbour, **arguments)


def test_no_seed_chooses_a_tail_that_chance_favoured():
    """Laplace scores at epsilon 1: the loss is constant in the tails, not rising."""
    values = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        scores = rng.laplace(1.0, size=20_000), rng.laplace(0.0, size=20_000)
        values.append(fixed_scores(*scores, rng=rng).value)
    assert np.median(values) > 0.96
    assert min(values) > 0.9
