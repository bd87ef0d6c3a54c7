"""Confidence intervals for bounded means: coverage by enumeration, which is exact."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.audit.layers.means import BettingInterval, BettingLowerBound

ALPHA = 0.1


def bounds(values, batch, interval):
    for start in range(0, len(values), batch):
        interval.update(values[start : start + batch])
    return interval


@pytest.mark.parametrize("batch", [1, 3])
def test_the_lower_bound_errs_with_probability_at_most_alpha(batch):
    """All sequences of eight zeros and ones, weighted by their probability."""
    outcomes = []
    for sequence in product((0.0, 1.0), repeat=8):
        bound = BettingLowerBound(ALPHA, horizon=8)
        outcomes.append((sum(sequence), bounds(np.array(sequence), batch, bound).value))
    hits, values = np.array(outcomes).T
    assert values.max() > 0.3
    for mean in (0.02, 0.3, 0.7, 0.95):
        chances = mean**hits * (1 - mean) ** (8 - hits)
        assert chances[values > mean].sum() <= ALPHA


def test_the_sides_of_an_interval_get_half_each():
    alpha, values = 0.04, np.random.default_rng(0).beta(2, 5, (5, 40))
    interval = BettingInterval(alpha, horizon=200)
    below, above = (BettingLowerBound(alpha / 2, horizon=200) for _ in range(2))
    for batch in values:
        interval.update(batch)
        below.update(batch)
        above.update(1 - batch)
    assert interval.low == below.value
    assert interval.high == 1 - above.value
    assert 0 < interval.low < values.mean() < interval.high < 1


def test_bounds_narrow_at_the_rate_of_the_central_limit_theorem():
    # 1.96 standard errors are what any asymptotic interval at 95 % has.
    n = 20_000
    values = np.random.default_rng(0).random(n)
    interval = bounds(values, 500, BettingInterval(0.05, horizon=n))
    half = 1.96 * np.sqrt(1 / 12 / n)
    assert interval.high - interval.low < 1.6 * (2 * half)


def test_nothing_seen_bounds_the_mean_by_about_log_over_n():
    interval = bounds(np.zeros(10_000), 500, BettingInterval(0.002, horizon=10_000))
    assert interval.low == 0
    assert interval.high <= 1.5 * np.log(1000) / 10_000


def test_a_bracket_of_uncertain_values_widens_the_interval():
    values = np.random.default_rng(0).random(1000) / 2
    exact, bracket = (BettingInterval(0.01, horizon=1000) for _ in range(2))
    exact.update(values)
    bracket.update(values, values + 0.1)
    assert bracket.low == exact.low
    assert bracket.high >= exact.high + 0.09


def test_no_values_change_nothing():
    interval = BettingInterval(0.01, horizon=10)
    interval.update(np.empty(0))
    assert (interval.low, interval.high) == (0.0, 1.0)


def mean_wealth(bound, mean, size, batches):
    """The exact mean of the wealth at the true mean, over all outcomes of batches."""
    total = 0.0
    for counts in product(range(size + 1), repeat=batches):
        test, weight = bound(0.1, horizon=30), 1.0
        for ones in counts:
            weight *= binom.pmf(ones, size, mean)
            test.update(np.repeat([1.0, 0.0], [ones, size - ones]))
        total += weight * np.exp(test._log_wealth(np.array([mean]))[0])
    return total


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(("size", "batches"), [(1, 6), (3, 3), (8, 2)])
def test_the_wealth_has_mean_one_at_the_truth(mean, size, batches):
    """Exactly one, less the rounding allowed for: no stake knows its own batch."""
    assert mean_wealth(BettingLowerBound, mean, size, batches) == pytest.approx(
        1 - 1e-9, abs=1e-12
    )


def test_stakes_that_know_their_batch_would_be_seen():
    class Peeking(BettingLowerBound):
        def update(self, values):
            self._learn(values)
            super().update(values)

    assert mean_wealth(Peeking, 0.3, 3, 3) > 1.1
