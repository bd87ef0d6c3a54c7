import json

import numpy as np
import pytest
from refusals import refused

from dpaudit.audit.bounds import Counts, fixed_scores, gaussian, joint, split_scores
from dpaudit.audit.bounds.choice import Sides
from dpaudit.audit.bounds.counts import epsilon_nulls
from dpaudit.audit.bounds.scores import _way, paired_law
from dpaudit.gaussian import gaussian_mu


def laplace(rng, n):
    return rng.laplace(1.0, size=n), rng.laplace(0.0, size=n)


def loss_of_laplace(rng, n):
    raw = laplace(rng, n)
    return tuple(np.round(np.abs(x) - np.abs(x - 1), 9) for x in raw)


def shifted(mu):
    def draw(rng, n):
        return rng.normal(mu, size=n), rng.normal(size=n)

    return draw


@pytest.mark.parametrize(
    ("draw", "options", "least"),
    [
        (shifted(gaussian_mu(1.0, 1e-5)), {"delta": 1e-5}, 0.5),
        (shifted(2 * gaussian_mu(1.0, 1e-5)), {"delta": 1e-5}, 1.25),
        (shifted(gaussian_mu(1.0, 1e-5)), {"delta": 1e-5, "gaussian": True}, 0.9),
        *((loss_of_laplace, {}, 0.96), (laplace, {}, 0.955)),
    ],
)
def test_power(draw, options, least):
    values = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        bound = fixed_scores(*draw(rng, 100_000), rng=rng, **options)
        values.append(bound.epsilon)
    assert np.median(values) > least


def test_both_tails_beat_one_and_the_baseline():
    rng = np.random.default_rng(0)
    scores = shifted(2 * gaussian_mu(1.0, 1e-5))(rng, 100_000)
    fixed = fixed_scores(*scores, delta=1e-5, rng=rng)
    assert fixed.method == "fixed joint, both tails"
    assert fixed.counts["lower"] < fixed.counts["upper"]
    assert fixed.value > split_scores(*scores, delta=1e-5, rng=rng).value + 0.1


def test_rare_leaks_are_found_on_either_side():
    rng = np.random.default_rng(1)
    n = 20_000
    on_data = np.where(rng.random(n) < 0.02, np.inf, rng.normal(size=n))
    on_neighbour = np.where(rng.random(n) < 0.001, np.inf, rng.normal(size=n))
    bound = fixed_scores(on_data, on_neighbour, delta=1e-5, rng=rng)
    assert bound.value > 2
    assert np.isinf(bound.counts["threshold"])
    printed = json.loads(json.dumps(bound.to_dict(), allow_nan=False))
    assert printed["counts"]["threshold"] == "inf"
    rng = np.random.default_rng(2)
    n = 20_000
    on_data = np.where(rng.random(n) < 0.001, -9.0, rng.normal(size=n))
    on_neighbour = np.where(rng.random(n) < 0.02, -9.0, rng.normal(size=n))
    assert fixed_scores(on_data, on_neighbour, rng=rng).value > 2


def test_last_bits_do_not_count_and_no_seed_chooses_a_tail():
    # The exact loss of a Laplace mechanism is constant in the tails over the real
    # numbers; its last bits would tell D from D'.
    rng = np.random.default_rng(4)
    scores = [np.abs(x) - np.abs(x - 1) for x in laplace(rng, 20_000)]
    bits = [set(np.unique(side[side < -1 + 1e-9])) for side in scores]
    assert bits[0] != bits[1]
    assert fixed_scores(*scores, rng=rng).value < 1.1
    # What is larger than 2^-30 of the scores does.
    scores = [1 + 1e-8 * x for x in laplace(rng, 20_000)]
    assert fixed_scores(*scores, rng=rng).value > 0.6
    # Laplace scores at epsilon 1: the loss is constant in the tails, not rising.
    values = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        scores = rng.laplace(1.0, size=20_000), rng.laplace(0.0, size=20_000)
        values.append(fixed_scores(*scores, rng=rng).value)
    assert np.median(values) > 0.96
    assert min(values) > 0.9


def test_sides_of_unequal_size_and_equal_laws():
    values = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        many, few = rng.laplace(1, size=30_000), rng.laplace(size=3000)
        values.append(fixed_scores(many, few, rng=rng).value)
    assert 0.9 < np.median(values) < 1
    same = fixed_scores(rng.normal(size=500), rng.normal(size=500), rng=rng)
    assert same.value < 0.2


def test_scores_may_be_larger_on_either_side_and_none_is_chosen_by_what_is_tested():
    """Of 150 bounds of equal laws at .95, more than 25 are above 0 with chance 1e-7."""
    rng = np.random.default_rng(8)
    scores = rng.laplace(size=3000), rng.laplace(1.0, size=30_000)
    for bounded in (split_scores, fixed_scores):
        straight = bounded(*scores[::-1], rng=np.random.default_rng(0))
        bound = bounded(*scores, rng=np.random.default_rng(0))
        assert bound.value == pytest.approx(straight.value, abs=0.15)
        assert bound.value > 0.6
        assert bound.method == f"{straight.method}, larger on D'"
        assert bound.counts["releases"] < 3000 < bound.counts["releases_neighbour"]
        assert straight.counts["releases_neighbour"] < 3000
    # Direction and event are functions of the first part, and of sizes.
    rng = np.random.default_rng(9)
    first, last = (Sides(rng.normal(size=90), rng.normal(1.0, size=90)) for _ in "ab")
    for chosen in (first, Sides(*first[::-1])):
        ways = [
            _way(chosen, Sides(*tested), epsilon_nulls(0.0), 0.05)
            for tested in (last, last[::-1])
        ]
        assert {way.swapped for way in ways} == {chosen is first}
        for one, other in zip(ways[0].curve, ways[1].curve, strict=True):
            np.testing.assert_array_equal(one, other)
    found = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        equal = rng.normal(size=200), rng.normal(size=200)
        found += fixed_scores(*equal, rng=rng).value > 0
    assert found <= 25


def test_poisson_counts_need_releases_and_show_no_more_than_separation():
    assert paired_law(8) is None
    law = paired_law(10_000)
    assert law is not None
    assert law.scale / 2 == 10_000 - 5 * 100 + 5
    rng = np.random.default_rng(7)
    scores = np.ones(20), np.zeros(20)
    for options in ({}, {"gaussian": True}):
        bound = fixed_scores(*scores, rng=rng, **options)
        best = (gaussian if options else joint)(Counts(18, 18, 0, 18)).value
        assert bound.value <= best + 1e-9
    # More hits than expected, in half of the draws, suggest chances above one.
    best, values = joint(Counts(90, 90, 0, 90)).value, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        bound = fixed_scores(np.ones(100), np.zeros(100), rng=rng)
        assert "both tails" in bound.method
        values.append(bound.value)
    assert max(values) == pytest.approx(best)
    assert min(values) < 0.9 * best


SIDES = {"on_data": np.arange(20.0), "on_neighbour": np.arange(20.0)}
test_scores_are_checked = refused(
    ({"on_data": [0.0, np.nan] * 20}, "on_data must not contain NaN, but score 1"),
    ({"on_neighbour": [0.0] * 19}, "on_neighbour must hold at least 20 scores"),
    ({"on_data": np.zeros((30, 2))}, "on_data must hold at least 20 scores in one"),
    ({"on_data": ["a"] * 30}, "on_data must be an array of numbers"),
    ({"fraction": 1.0}, "fraction must be in"),
    by=lambda bound, change: bound(**SIDES | change, rng=np.random.default_rng(0)),
    each=(fixed_scores, split_scores),
)
