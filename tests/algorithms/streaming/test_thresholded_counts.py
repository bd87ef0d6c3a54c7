"""Bins against counting one by one; normal noise on them, and what all of it costs.

Type-I error: 1e-9 for the test that names a null hypothesis (the seed is fixed).
"""

from collections import Counter

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import rng

from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit, GaussianSplit
from dpaudit.algorithms.streaming.thresholded_counts import GaussianCounts, SparseCounts
from dpaudit.gaussian import gaussian_delta


@pytest.mark.parametrize("escape", [1e-12, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("scale", [0.1, 1.0, 400.0])
def test_a_lonely_row_is_seen_as_often_as_it_is_said(scale, escape):
    noise = GaussianCounts.of(scale, escape)
    assert noise.escape == pytest.approx(escape, rel=1e-9)
    exact = stats.norm.sf(noise.threshold, loc=1.0, scale=scale)
    assert exact == pytest.approx(escape, rel=1e-9)


def test_what_is_shown_is_the_count_with_normal_noise():
    # Null hypothesis: the number that are shown is binomial(200,000, 0.05); those of a
    # full bin are normal.
    noise, size = GaussianCounts.of(3.0, 0.05), 200_000
    shown = noise.noisy(np.ones(size), rng=rng(1))
    count = int(np.isfinite(shown).sum())
    assert stats.binomtest(count, size, 0.05).pvalue > 1e-9
    assert (shown[np.isfinite(shown)] >= noise.threshold).all()
    full = noise.noisy(np.full(20_000, 100.0), rng=rng(2))
    assert stats.kstest(full, stats.norm(100.0, 3.0).cdf).pvalue > 1e-9


def spent(split, epsilon, dimension):
    """The theorem of `mean_budget` as it stands, with mu = 1/b for a count."""
    noise, histograms = split.noise(dimension), split.uses * dimension
    escape = noise.counts.escape
    total = np.sqrt(2 * histograms / noise.counts.scale**2 + split.uses * noise.mu**2)
    left = epsilon + histograms * np.log1p(-escape)
    return histograms * escape + float(gaussian_delta(left, total))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.5])
@pytest.mark.parametrize(("dimension", "uses"), [(1, 1), (20, 1), (1000, 4)])
def test_the_split_spends_its_budget_and_no_more(epsilon, delta, dimension, uses):
    split = GaussianSplit(epsilon, delta, uses=uses)
    cost = spent(split, epsilon, dimension)
    assert cost <= delta * (1 + 1e-9)
    assert cost >= delta * (1 - 1e-6)


@pytest.mark.parametrize("dimension", [1, 5])
def test_an_accountant_agrees(dimension):
    """The privacy loss distributions of 2 d counts and the mean, put together."""
    noise = GaussianSplit(1.0, 1e-5).noise(dimension)
    step = 1e-3
    counts = pld.from_gaussian_mechanism(
        noise.counts.scale, value_discretization_interval=step
    )
    mean = pld.from_gaussian_mechanism(1 / noise.mu, value_discretization_interval=step)
    whole = counts.self_compose(2 * dimension).compose(mean)
    escaped = dimension * noise.counts.escape
    # Theirs rounds up.
    assert whole.get_delta_for_epsilon(1.0) + escaped == pytest.approx(1e-5, rel=0.05)


def test_normal_counts_have_lower_thresholds():
    ours, laplace = (
        kind(1.0, 1e-6, histogram_share=0.2).noise(20).counts
        for kind in (GaussianSplit, CalibratedSplit)
    )
    assert (round(ours.threshold), round(laplace.threshold)) == (345, 1383)


def test_bad_counts_are_named():
    refuses("scale must be a finite number > 0", GaussianCounts.of, 0.0, 0.1)
    refuses("threshold must be a number", GaussianCounts, 1.0, np.inf)
    assert GaussianCounts.of(1.0, 0.9).threshold == 1.0


LABELS = st.sampled_from([0.0, -0.0, 1.0, -7.0, 1e300, np.inf, -np.inf])


def listed(counts):
    """Return (histogram, label) -> count."""
    keys = zip(counts.owner.tolist(), counts.labels.tolist(), strict=True)
    return dict(zip(keys, counts.counts.tolist(), strict=True))


@given(st.data())
def test_counts_are_those_of_a_dictionary(data):
    histograms, items = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    row = st.lists(LABELS, min_size=items, max_size=items)
    labels = np.array([data.draw(row) for _ in range(histograms)])
    counts = SparseCounts.of(labels)
    expected = Counter(
        (i, label + 0.0) for i, row in enumerate(labels.tolist()) for label in row
    )
    assert listed(counts) == expected
    assert (np.diff(counts.owner) >= 0).all()
    cut = data.draw(st.integers(1, items))
    parts = [
        SparseCounts.of(part)
        for part in (labels[:, :cut], labels[:, cut:])
        if part.size
    ]
    assert listed(SparseCounts.joined(parts)) == expected
    twice = SparseCounts.joined([counts, counts])
    assert listed(twice) == {key: 2 * count for key, count in expected.items()}
    times = data.draw(st.integers(0, 3))
    repeated = counts.repeated(times)
    assert repeated.histograms == times * histograms
    assert listed(repeated) == {
        (i + shift * histograms, label): count
        for (i, label), count in expected.items()
        for shift in range(times)
    }


def test_the_largest_value_of_each_histogram_wins():
    counts = SparseCounts.of(np.array([[1.0, 2.0, 2.0], [5.0, 5.0, 5.0], [7.0, 8, 9]]))
    values = np.array([3.0, 2.5, 0.1, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(counts.largest(values), [1.0, 5.0, np.nan])
    assert counts.repeated(0).histograms == 0
