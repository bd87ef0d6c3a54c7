"""Tardos codes: their laws, how long they are, and whom they accuse.

Scores are held to a naive sum, lengths and thresholds to integrals by mpmath, and what
they promise to simulation; ranks and conditional p-values are exact in finite samples.
"""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, refuses
from scipy import stats
from seeded import rng

from dpaudit.fingerprinting import (
    CodeLength,
    TardosCode,
    calibrated_threshold,
    conditional_p_values,
    draw_biases,
    draw_codewords,
    false_accusation_bound,
    lengths,
    missing_bound,
    rank_p_values,
    tracing_scores,
)


def mean_over_biases(function, cutoff):
    least = mpmath.asin(mpmath.sqrt(cutoff))
    width = mpmath.pi / 2 - 2 * least
    ends = mpmath.linspace(least, mpmath.pi / 2 - least, 9)
    return mpmath.quad(lambda r: function(mpmath.sin(r) ** 2), ends) / width


@pytest.mark.parametrize(("cutoff", "place"), [(1e-4, 20), (0.02, 100), (0.02, 130)])
def test_innocent_moments_against_mpmath(cutoff, place):
    exponents, logs = lengths._innocent(cutoff)
    e = mpmath.mpf(float(exponents[place]))

    def moment(p):
        p = min(p, 1 - p)
        return p * mpmath.exp(e * mpmath.sqrt((1 - p) / p)) + (1 - p) * mpmath.exp(
            -e * mpmath.sqrt(p / (1 - p))
        )

    expected = float(mpmath.log(mean_over_biases(moment, cutoff)))
    assert logs[place] == pytest.approx(expected, rel=1e-5, abs=1e-13)


@pytest.mark.parametrize(("coalition", "place"), [(1, 10), (2, 40), (5, 60)])
def test_guilty_moments_against_mpmath(coalition, place):
    cutoff = 0.003
    exponents, logs = lengths._guilty(cutoff, coalition)
    e = mpmath.mpf(float(exponents[place]))
    total = mpmath.mpf(0)
    for ones in range(coalition + 1):
        allowed = {0: (-1,), coalition: (1,)}.get(ones, (-1, 1))

        def term(p, y, ones=ones):
            w = (ones - coalition * p) / mpmath.sqrt(p * (1 - p))
            chance = mpmath.binomial(coalition, ones) * p**ones
            return chance * (1 - p) ** (coalition - ones) * mpmath.exp(-e * y * w)

        total += max(
            mean_over_biases(lambda p, y=y: term(p, y), cutoff) for y in allowed
        )
    assert logs[place] == pytest.approx(float(mpmath.log(total)), rel=1e-6, abs=1e-12)


def test_missing_bounds_are_of_the_worst_and_biases_do_not_frame_more():
    cutoff, length, threshold = 0.01, 900, 100.0
    worst = 0.0
    for c in (1, 2, 3, 4):
        a, logs = lengths._guilty(cutoff, c)
        worst = max(worst, np.exp(np.min(a * c * threshold + length * logs)))
    where = {"length": length, "threshold": threshold, "cutoff": cutoff}
    bound = missing_bound(**where, coalition=4)
    assert bound == pytest.approx(worst)
    assert 1e-12 < bound < 1
    # Writes the rarer symbol. Exact tail by simulation: a binomial test at 1e-9.
    cutoff, length, threshold = 0.02, 60, 20.0
    bound = false_accusation_bound(length=length, threshold=threshold, cutoff=cutoff)
    rng = np.random.default_rng(0)
    accused = trials = 0
    for _ in range(100):
        code = TardosCode.generate(1000, length, cutoff=cutoff, rng=rng)
        accused += (code.scores(-np.sign(code.biases)) >= threshold).sum()
        trials += 1000
    assert accused <= stats.binom.isf(1e-9, trials, bound)
    assert accused > trials * bound / 30  # within what Chernoff's method gives away


@pytest.mark.parametrize("coalition", [1, 3])
def test_calibrated_lengths_meet_both_bounds(coalition):
    made = CodeLength.calibrated(coalition, false_accusation=1e-3, missing=0.05)
    where = {"length": made.length, "threshold": made.threshold, "cutoff": made.cutoff}
    assert false_accusation_bound(**where) <= 1e-3
    assert missing_bound(**where, coalition=coalition) <= 0.05
    shorter = {**where, "length": int(made.length * 0.7)}
    shorter["threshold"] *= 0.7
    assert false_accusation_bound(**shorter) > 1e-3


@pytest.mark.parametrize("coalition", [1, 4])
@pytest.mark.parametrize("eps1", [1e-2, 1e-6])
def test_published_lengths_hold_for_the_symmetric_score(coalition, eps1):
    made = CodeLength.as_published(coalition, false_accusation=eps1)
    k = np.ceil(np.log(1 / eps1))
    assert made.length == 100 * coalition**2 * k
    assert (made.threshold, 1 / made.cutoff) == pytest.approx(
        (20 * coalition * k, 300 * coalition)
    )
    where = {"length": made.length, "threshold": made.threshold, "cutoff": made.cutoff}
    assert false_accusation_bound(**where) <= eps1
    assert missing_bound(**where, coalition=coalition) <= made.missing


BUDGET = {"coalition": 2, "false_accusation": 0.1, "missing": 0.1}
WHERE = {"length": 5, "threshold": 1.0, "cutoff": 0.1}


test_bad_input = refused(
    (CodeLength.calibrated, {**BUDGET, "coalition": 0}, "coalition must be"),
    (CodeLength.calibrated, {**BUDGET, "coalition": 257}, ">= 1 and <= 256"),
    (CodeLength.calibrated, {**BUDGET, "false_accusation": 0.0}, "false_accusatio"),
    (CodeLength.calibrated, {**BUDGET, "missing": 1.0}, "missing must be in"),
    (CodeLength.as_published, {"coalition": 0, "false_accusation": 0.1}, "coalit"),
    (CodeLength, {**BUDGET, **WHERE, "length": 0}, "length must"),
    (CodeLength, {**BUDGET, **WHERE, "threshold": 0.0}, "threshold must"),
    (false_accusation_bound, {**WHERE, "threshold": -1.0}, "threshold must be"),
    (missing_bound, {**WHERE, "cutoff": 0.6, "coalition": 2}, "cutoff must be in"),
    by=lambda call, options: call(**options),
)


def arcsine_cdf(q, cutoff):
    """The cut-off arcsine law, from p = sin(r)^2 with r uniform."""
    least = np.arcsin(np.sqrt(cutoff))
    angles = np.arcsin(np.sqrt((1 + q) / 2))
    return (angles - least) / (np.pi / 2 - 2 * least)


@pytest.mark.parametrize("cutoff", [1e-4, 0.02, 0.3])
def test_biases_have_the_arcsine_law(cutoff):
    # Null: the law above; false alarm 1e-9.
    q = draw_biases(20_000, cutoff=cutoff, rng=rng())
    assert np.abs(q).max() <= 1 - 2 * cutoff
    assert stats.kstest(q, lambda x: arcsine_cdf(x, cutoff)).pvalue > 1e-9


def test_symbols_have_the_means_of_the_biases_and_are_independent():
    # Null: independent symbols; each statistic is far below 1e-9 in its tails.
    q = np.array([-0.98, -0.4, 0.0, 0.3, 0.9])
    n = 40_000
    words = draw_codewords(q, n, rng=rng(1))
    assert words.dtype == np.int8
    assert set(np.unique(words)) == {-1, 1}
    ones = (words == 1).sum(axis=0)
    for count, chance in zip(ones, (1 + q) / 2, strict=True):
        assert stats.binomtest(int(count), n, chance).pvalue > 1e-10
    centred = (words - q) / np.sqrt(1 - q**2)
    products = (centred.T @ centred)[np.triu_indices(5, 1)] / np.sqrt(n)
    assert np.abs(products).max() < 7
    shifted = (centred[:-1] * centred[1:]).sum(axis=0) / np.sqrt(n)
    assert np.abs(shifted).max() < 7


def test_scores_are_sums_whatever_fits_and_no_word_says_nothing():
    """More symbols than are drawn, or looked at, at once: 2^22."""
    code = TardosCode.generate(2100, 2100, cutoff=0.05, rng=rng(2))
    some = TardosCode.generate(9, 2100, cutoff=0.05, rng=rng(2))
    np.testing.assert_array_equal(code.codewords[:9], some.codewords)
    assert (np.abs(code.codewords) == 1).all()
    word = rng(3).uniform(-1, 1, 2100)
    centred = (code.codewords - code.biases) / np.sqrt(1 - code.biases**2)
    np.testing.assert_allclose(code.scores(word), centred @ word, rtol=1e-9, atol=1e-9)
    assert conditional_p_values([0.0], [0.5], [0.0]).tolist() == [1.0]


def test_scores_of_strangers_have_mean_zero_and_the_words_variance():
    # z-scores of 20,000 independent scores: beyond 7 with probability below 1e-11.
    code = TardosCode.generate(2, 400, cutoff=0.05, rng=rng(5))
    word = np.clip(rng(6).normal(size=400), -1, 1)
    scores = tracing_scores(code.strangers(20_000, rng=rng(7)), code.biases, word)
    variance = np.sum(word**2)
    assert abs(scores.mean()) < 7 * np.sqrt(variance / 20_000)
    spread = scores.var() / variance - 1
    kurtosis = stats.kurtosis(scores) + 3
    assert abs(spread) < 7 * np.sqrt((kurtosis - 1) / 20_000)


LEAST = np.array([[1], [-128]], dtype=np.int8)


test_bad_codes = refused(
    (lambda: draw_biases(0, cutoff=0.1, rng=rng()), "length must be an integer"),
    (lambda: draw_biases(3, cutoff=0.5, rng=rng()), "cutoff must be in"),
    (lambda: draw_biases(3, cutoff=0.0, rng=rng()), "cutoff must be a finite"),
    (lambda: draw_biases(3, cutoff=0.1, rng=0), "numpy.random.Generator"),
    (lambda: draw_codewords([0.0], 0, rng=rng()), "n_users must be"),
    (lambda: draw_codewords([0.0, 1.0], 2, rng=rng()), r"biases\[1\] is"),
    (lambda: draw_codewords([np.nan], 2, rng=rng()), r"biases\[0\] is"),
    (lambda: draw_codewords("x", 2, rng=rng()), "biases must be a vector"),
    (lambda: tracing_scores([[1]], [0.0], [1.5]), r"word\[0\] is"),
    (lambda: tracing_scores([[1]], [0.0], [np.nan]), r"word\[0\] is"),
    (lambda: tracing_scores([[1]], [0.0], [1, 1]), "length of the code, 1, got 2"),
    (lambda: tracing_scores([[1, 1]], [0.0], [1]), "length of the code, 1, got 2"),
    (lambda: tracing_scores([[0]], [0.0], [1]), "row 0 has another value"),
    (lambda: tracing_scores(LEAST, [0.0], [1]), "row 1 has another value"),
    (lambda: tracing_scores([1], [0.0], [1]), "codewords must be a matrix"),
    (lambda: tracing_scores([[True]], [0.0], [1]), "codewords must be a matrix"),
    (lambda: TardosCode(np.ones((2, 3), np.int8), [0.0]), "length of the code"),
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


test_bad_accusations = refused(
    (lambda: rank_p_values([1.0], []), "strangers must be a vector"),
    (lambda: rank_p_values([np.nan], [1.0]), "scores must be a vector"),
    (lambda: rank_p_values("x", [1.0]), "scores must be a vector"),
    (lambda: calibrated_threshold([1.0], 0.4), "level must be at least"),
    (lambda: calibrated_threshold([1.0], 1.0), "level must be in"),
    (lambda: conditional_p_values([1.0], [0.0], [2.0]), "word must be in"),
    (lambda: conditional_p_values([1.0], [1.0], [1.0]), "biases must be in"),
)
