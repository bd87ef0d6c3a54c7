"""Amplification by shuffling: exact sums, real shuffled mechanisms, the noise.

No test here is random.
"""

from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from refusals import refused

from dpaudit.algorithms.streaming.amplification import (
    amplified_multiplier,
    shuffled_delta,
)
from dpaudit.gaussian import gaussian_delta, gaussian_mu


# The exact sum
def count_laws(count, local):
    """The laws of (number of Q_0, number of Q_1) on D and D', in fractions."""
    clone = Fraction(exp(-local)).limit_denominator(10**12)
    kept = 1 - Fraction(1 / (1 + exp(local))).limit_denominator(10**12)
    first, second = {}, {}
    for c in range(count):
        weight = comb(count - 1, c) * clone**c * (1 - clone) ** (count - 1 - c)
        for a in range(c + 1):
            share = weight * Fraction(comb(c, a), 2**c)
            for own, mass, other in ((1, kept, 1 - kept), (0, 1 - kept, kept)):
                key = (a + own, c - a + 1 - own)
                first[key] = first.get(key, 0) + share * mass
                second[key] = second.get(key, 0) + share * other
    return first, second


def divergence(first, second, epsilon):
    ratio = Fraction(exp(epsilon))
    return float(
        sum(max(Fraction(0), first[key] - ratio * second[key]) for key in first)
    )


@pytest.mark.parametrize("count", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("local", [0.2, 1.0, 3.0])
def test_the_sum_is_the_divergence_of_the_counts(count, local):
    first, second = count_laws(count, local)
    for epsilon in (0.0, 0.05, 0.3, 0.9, 2.0):
        expected = divergence(first, second, epsilon)
        found = shuffled_delta(epsilon, local, count)
        assert found == pytest.approx(expected, rel=1e-8, abs=2e-11)
        # One direction is enough.
        assert divergence(second, first, epsilon) == pytest.approx(expected, abs=1e-15)


def randomised_response(values, flip):
    """The law of the number of ones among shuffled randomised bits."""
    law = np.ones(1)
    for value in values:
        one = 1 - flip if value else flip
        law = np.convolve(law, [1 - one, one])
    return law


@pytest.mark.parametrize("count", [2, 5, 40])
@pytest.mark.parametrize("local", [0.5, 1.5, 3.0])
def test_shuffled_randomised_response_is_no_worse_than_the_sum(count, local):
    # A mechanism whose shuffled outputs are known exactly: their sum says all.
    flip = 1 / (1 + exp(local))
    for ones in {0, 1, count // 2, count - 1}:
        others = [1] * ones + [0] * (count - 1 - ones)
        first = randomised_response([1, *others], flip)
        second = randomised_response([0, *others], flip)
        for epsilon in (0.0, 0.1, 0.5, 1.0):
            for p, q in ((first, second), (second, first)):
                true = np.maximum(p - exp(epsilon) * q, 0).sum()
                assert true <= shuffled_delta(epsilon, local, count) + 1e-12


def test_tails_that_are_not_summed_are_added_and_epsilon_0_chosen():
    exact = shuffled_delta(0.2, 1.0, 500)
    rough = shuffled_delta(0.2, 1.0, 500, tail=1e-3)
    assert exact <= rough <= exact + 1e-3
    assert amplified_multiplier(0.5, 1e-5, 421) == pytest.approx(3.413, rel=1e-3)
    assert amplified_multiplier(0.9, 1e-6, 20_000) == pytest.approx(1.243, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"),
    # The last is beyond the range of the theorem's closed form.
    [(0.05, 1e-5, 1000), (0.3, 1e-9, 100), (2.0, 1e-6, 2000)],
)
def test_the_noise_is_enough_and_not_more(epsilon, delta, count):
    """By the docstring's formula, at the best epsilon_0 of a grid."""
    multiplier = amplified_multiplier(epsilon, delta, count)
    assert multiplier < 0.9 / gaussian_mu(epsilon, delta)
    grid = np.geomspace(epsilon, epsilon + 6, 120)
    pure = [shuffled_delta(epsilon, each, count, tail=1e-6 * delta) for each in grid]
    less, more = (
        pure + (1 + exp(epsilon)) * count * gaussian_delta(grid / 2, 1 / (2 * noise))
        for noise in (0.99 * multiplier, 1.01 * multiplier)
    )
    # The grid misses the best by a little.
    assert more.min() <= delta < less.min()


@pytest.mark.parametrize(
    ("epsilon", "count"), [(0.5, 1), (1.5, 1), (0.1, 2), (8.0, 1000), (1e3, 10**6)]
)
def test_where_shuffling_hides_nothing_one_step_is_all(epsilon, count):
    found = amplified_multiplier(epsilon, 1e-5, count)
    assert found == pytest.approx(1 / gaussian_mu(epsilon, 1e-5), rel=1e-12)


test_bad_arguments_are_named = refused(
    (lambda: shuffled_delta(-0.1, 1.0, 9), "epsilon must be a finite number >= 0"),
    (lambda: shuffled_delta(0.1, 0.0, 9), "local_epsilon must be a finite"),
    (lambda: shuffled_delta(0.1, 1.0, 0), "count must be an integer >= 1"),
    (lambda: shuffled_delta(0.1, 1.0, 9, tail=0.0), r"tail must be in \(0, 1\)"),
    (lambda: amplified_multiplier(0.0, 1e-5, 999), "epsilon must be a finite"),
    (lambda: amplified_multiplier(0.1, 1.0, 999), r"delta must be in \(0, 1\)"),
    (lambda: amplified_multiplier(0.1, 1e-5, 0), "count must be an integer >= 1"),
)
