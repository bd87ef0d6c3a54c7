"""Tardos codes: the laws of biases and symbols, and scores against a naive sum."""

import numpy as np
import pytest
from refusals import refused
from scipy import stats
from seeded import rng

from dpaudit.fingerprinting import (
    TardosCode,
    draw_biases,
    draw_codewords,
    tracing_scores,
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


def test_scores_are_sums_whatever_fits_together():
    """More symbols than are drawn, or looked at, at once: 2^22."""
    code = TardosCode.generate(2100, 2100, cutoff=0.05, rng=rng(2))
    some = TardosCode.generate(9, 2100, cutoff=0.05, rng=rng(2))
    np.testing.assert_array_equal(code.codewords[:9], some.codewords)
    assert (np.abs(code.codewords) == 1).all()
    word = rng(3).uniform(-1, 1, 2100)
    centred = (code.codewords - code.biases) / np.sqrt(1 - code.biases**2)
    np.testing.assert_allclose(code.scores(word), centred @ word, rtol=1e-9, atol=1e-9)


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


test_bad_input = refused(
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
