"""Ranks, thresholds and conditional p-values: exact in finite samples."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, refuses

from dpaudit.fingerprinting import (
    TardosCode,
    calibrated_threshold,
    conditional_p_values,
    rank_p_values,
    tracing_scores,
)

NUMBERS = st.integers(-5, 5).map(float)


@given(st.lists(NUMBERS, min_size=1, max_size=8), NUMBERS)
def test_rank_counts_those_that_score_as_much(strangers, score):
    expected = (1 + sum(x >= score for x in strangers)) / (len(strangers) + 1)
    assert rank_p_values([score], strangers)[0] == expected


@given(st.lists(NUMBERS, min_size=1, max_size=9), NUMBERS, st.floats(0.02, 0.98))
def test_the_threshold_is_the_same_rule(strangers, score, level):
    if level * (len(strangers) + 1) < 1:
        refuses("level must be at least", calibrated_threshold, strangers, level)
        return
    above = score > calibrated_threshold(strangers, level)
    assert above == (rank_p_values([score], strangers)[0] <= level)


@pytest.mark.parametrize("word", ["signs", "numbers", "part"])
def test_conditional_p_values_bound_the_exact_tail(word):
    rng = np.random.default_rng(0)
    n = 12
    code = TardosCode.generate(1, n, cutoff=0.05, rng=rng)
    y = {
        "signs": rng.choice([-1.0, 1.0], n),
        "numbers": rng.uniform(-1, 1, n),
        "part": np.where(np.arange(n) < 6, 1.0, 0.0),
    }[word]
    everybody = np.array(list(itertools.product((-1, 1), repeat=n)), dtype=np.int8)
    chances = np.prod(np.where(everybody == 1, 1 + code.biases, 1 - code.biases) / 2, 1)
    scores = tracing_scores(everybody, code.biases, y)
    order = np.argsort(-scores)
    tails = np.empty(len(scores))
    tails[order] = np.cumsum(chances[order])
    bounds = conditional_p_values(scores, code.biases, y)
    assert (tails <= bounds * (1 + 1e-9)).all()
    assert (bounds[scores <= 0] == 1).all()
    # Chernoff's method loses a factor, not an exponent.
    middle = (scores > 0) & (tails > 1e-3)
    assert (bounds[middle] <= 20 * tails[middle]).all()


def test_no_word_says_nothing():
    assert conditional_p_values([0.0], [0.5], [0.0]).tolist() == [1.0]


test_bad_input = refused(
    (lambda: rank_p_values([1.0], []), "strangers must be a vector"),
    (lambda: rank_p_values([np.nan], [1.0]), "scores must be a vector"),
    (lambda: rank_p_values("x", [1.0]), "scores must be a vector"),
    (lambda: calibrated_threshold([1.0], 0.4), "level must be at least"),
    (lambda: calibrated_threshold([1.0], 1.0), "level must be in"),
    (lambda: conditional_p_values([1.0], [0.0], [2.0]), "word must be in"),
    (lambda: conditional_p_values([1.0], [1.0], [1.0]), "biases must be in"),
)
