"""Sparse histograms against counting one by one."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.algorithms.streaming.thresholded_counts import SparseCounts

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
