"""The private histogram, and the eigenvalue that is found by one.

Exact privacy by integration, and laws. Bins are counted one by one, and what noise on
them costs is added up.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

from collections import Counter
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, refuses
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, InputError, Pair, Profile, PureDP, UnsupportedError
from dpaudit.algorithms import PrivateHistogram
from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit, GaussianSplit
from dpaudit.algorithms.streaming.moments import FixedGradients
from dpaudit.algorithms.streaming.private_histogram import UnthresholdedHistogram
from dpaudit.algorithms.streaming.thresholded_counts import (
    CountNoise,
    GaussianCounts,
    SparseCounts,
)
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.gaussian import gaussian_delta

TYPE_I_ERROR = 1e-9


def group_values(mechanism, rows):
    return mechanism.group_values(FixedGradients(np.asarray(rows)))[0]


def by_hand(rows, groups):
    """The eigenvalues of Algorithm 4, by its own words."""
    differences = [rows[i + 1] - rows[i] for i in range(0, len(rows) - 1, 2)]
    groups = min(groups, len(differences))
    size = len(differences) // groups
    values = []
    for j in range(groups):
        matrix = np.zeros((rows.shape[1],) * 2)
        for h in differences[j * size : (j + 1) * size]:
            matrix += np.outer(h, h) / (2 * size)
        values.append(np.linalg.eigvalsh(matrix)[-1])
    return np.array(values)


@pytest.mark.parametrize("n", [2, 3, 30, 95, 500, 1501])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_groups_are_those_of_the_algorithm(n, d):
    mechanism = TopEigenvalue.calibrated(2.0, 1e-2)
    assert mechanism.groups() == int(np.ceil(5 * np.log(1e4) / 2))
    rows = 3 + rng(n).standard_normal((n, d))
    expected = by_hand(rows, mechanism.groups())
    np.testing.assert_allclose(group_values(mechanism, rows), expected)


def test_the_doubling_by_differences_is_undone():
    # The mean of n independent vectors: its covariance is H/n, far below what 5 % of
    # the eigenvalue allow (20 standard deviations).
    factor = rng().standard_normal((3, 3))
    rows = 100 + rng(1).standard_normal((200_000, 3)) @ factor
    top = np.linalg.eigvalsh(factor.T @ factor)[-1]
    few_groups = TopEigenvalue.calibrated(1.0, 1e-6, group_constant=1e-6)
    assert few_groups.groups() == 4
    found = group_values(few_groups, rows)
    assert found == pytest.approx(top, rel=0.05)
    # So many are read in parts.
    groups = np.split(rows[1::2] - rows[::2], 4)
    exact = [np.linalg.eigvalsh(each.T @ each / 50_000)[-1] for each in groups]
    np.testing.assert_allclose(found, exact)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32), st.integers(4, 60), st.integers(1, 3), st.floats(-1e18, 1e18)
)
def test_one_row_moves_few_groups_at_most(seed, n, d, location):
    generator = rng(seed)
    rows = location + generator.standard_normal((n, d))
    other = rows.copy()
    other[generator.integers(n)] = 10.0 ** generator.integers(-3, 9)
    mechanism = TopEigenvalue.calibrated(1.0, 0.3)
    changed = group_values(mechanism, rows) != group_values(mechanism, other)
    assert changed.sum() <= 1


def test_a_row_can_move_a_group_and_many_show_the_scale():
    for pair in TopEigenvalue.calibrated(1.0, 1e-5).canonical_pairs():
        mechanism = TopEigenvalue.calibrated(1.0, 1e-5)
        before, after = (
            group_values(mechanism, rows) for rows in (pair.data, pair.neighbour)
        )
        labels = [np.floor(np.log2(values)) for values in (before, after)]
        assert (labels[0] != labels[1]).sum() == 1
    rows = 5 + rng().standard_normal((20_000, 4)) * [7.0, 1.0, 1.0, 1.0]
    for make in (TopEigenvalue.calibrated, TopEigenvalue.as_published):
        draws = make(1.0, 1e-6).draw(rows, 50, rng=rng(1))
        assert not np.isnan(draws).any()
        assert draws.min() >= 49 / 2.5
        assert draws.max() <= 49 * 1.5


@pytest.mark.parametrize("bins", [1, 2, 4])
def test_the_estimate_is_the_left_edge_of_the_fullest_bin(bins):
    mechanism = TopEigenvalue.calibrated(5.0, 1e-2, bins_per_octave=bins)
    for value in (1e-9, 0.3, 1.0, 7.0, 3e20):
        rows = np.zeros((2 * mechanism.groups(), 2))
        rows[::2, 1] = np.sqrt(2 * value)
        estimate = float(mechanism.release(rows, rng=rng()))
        assert estimate * (1 - 1e-12) <= value < estimate * 2 ** (1 / bins) * (1 + 1e-9)
        exponent = bins * np.log2(estimate)
        assert exponent == pytest.approx(round(exponent), abs=1e-9)


def test_zero_and_overflow_have_bins_of_their_own():
    mechanism = TopEigenvalue.calibrated(5.0, 1e-2)
    rows = np.zeros((2 * mechanism.groups(), 2))
    assert float(mechanism.release(rows, rng=rng())) == 0.0
    rows[::2] = 1e200
    assert float(mechanism.release(rows, rng=rng())) == np.inf
    rows[::2] = 1e-200
    assert float(mechanism.release(rows, rng=rng())) == 0.0


def test_the_choice_of_a_bin_has_its_exact_law():
    # Null hypothesis: of two bins of groups the larger noisy count wins, if it is at
    # least T; the probabilities are integrals.
    mechanism = TopEigenvalue.calibrated(1.0, 1e-2)
    noise, k = mechanism.noise, mechanism.groups()
    first = 12
    rows = np.zeros((2 * k, 1))
    rows[::2] = 2.0**10
    rows[: 2 * first : 2] = 1.0
    draws = mechanism.draw(rows, 4000, rng=rng(3))
    counts = np.array([first, k - first])
    laws = [stats.laplace(count, noise.scale) for count in counts]
    grid = np.arange(noise.threshold, 200, 1e-3) + 5e-4
    for i, value in ((0, 0.5), (1, 2.0**19)):
        wins = (laws[i].pdf(grid) * laws[1 - i].cdf(grid)).sum() * 1e-3
        count = int((draws == value).sum())
        assert stats.binomtest(count, 4000, min(wins, 1)).pvalue >= TYPE_I_ERROR
    missing = laws[0].cdf(noise.threshold) * laws[1].cdf(noise.threshold)
    count = int(np.isnan(draws).sum())
    assert stats.binomtest(count, 4000, missing).pvalue >= TYPE_I_ERROR


@pytest.mark.parametrize("n", [2, 3, 10, 40])
def test_too_few_rows_are_bottom(n):
    mechanism = TopEigenvalue.calibrated(1.0, 1e-9)
    draws = mechanism.draw(rng().standard_normal((n, 2)), 50, rng=rng())
    assert np.isnan(draws).all()


def test_constructors_rows_and_lax_deltas_are_looked_at():
    noise = CountNoise(1.0, 1.0)
    with pytest.raises(InputError, match="claim must be an ApproxDP, got PureDP"):
        TopEigenvalue(noise=noise, claim=PureDP(1.0))
    with pytest.raises(InputError, match=r"delta must be in \(0, 1\), got 0"):
        TopEigenvalue(noise=noise, claim=ApproxDP(1.0, 0.0))
    assert CountNoise.calibrated(1.0, 0.9).threshold == 1.0
    with pytest.raises(InputError, match="dimension must be an integer"):
        PrivateHistogram.calibrated(1.0, 1e-5).worst_case(2)


test_bad_data_are_named = refused(
    (np.zeros((1, 2)), "data must have at least 2 rows"),
    by=lambda data: TopEigenvalue.calibrated(1.0, 1e-5).release(data, rng=rng()),
)


def test_calibrations_have_their_noise_and_bins():
    calibrated = TopEigenvalue.calibrated(1.0, 1e-6)
    assert calibrated.noise == CountNoise.calibrated(1.0, 1e-6)
    published = TopEigenvalue.as_published(1.0, 1e-6)
    assert published.noise == CountNoise.as_published(1.0, 1e-6)
    assert (calibrated.bins_per_octave, published.bins_per_octave) == (1, 4)
    assert calibrated.groups(1e-4) == int(np.ceil(5 * np.log(1e10)))
    rare = TopEigenvalue.calibrated(1.0, 1e-300, zeta=1e-200)
    assert rare.groups() == int(np.ceil(2500 * np.log(10)))


def law_of_bin(noise, count, cells):
    """The law of what is released of one bin: what is 0, and cells of a partition."""
    if count == 0:
        return np.concatenate([[1.0], np.zeros(len(cells) - 1)])
    cdf = stats.laplace(count, noise.scale).cdf(cells)
    return np.concatenate([[cdf[0]], np.diff(cdf)])


def delta_of_move(noise, epsilon, source, target):
    """The divergence of both bins, to the last digits on any partition."""
    highest = noise.threshold + 2 * (source + target) + 9 * noise.scale
    cells = np.append(np.linspace(noise.threshold, highest, 300), np.inf)
    one, other = (
        np.multiply.outer(law_of_bin(noise, a, cells), law_of_bin(noise, b, cells))
        for a, b in ((source, target), (source - 1, target + 1))
    )
    ratio = np.exp(epsilon)
    return max(
        np.maximum(one - ratio * other, 0).sum(),
        np.maximum(other - ratio * one, 0).sum(),
    )


MOVES = [(1, 0), (1, 1), (2, 0), (1, 9), (2, 1), (5, 8), (30, 30)]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (2.0, 0.05), (0.4, 0.3)])
def test_no_move_of_a_row_costs_more_than_the_claim(epsilon, delta):
    # On a partition (a function of the release) the divergence is no larger than on
    # releases, so rounding apart this may not fail.
    noise = CountNoise.calibrated(epsilon, delta)
    costs = {move: delta_of_move(noise, epsilon, *move) for move in MOVES}
    assert max(costs.values()) <= delta * (1 + 1e-9)
    assert costs[1, 0] == pytest.approx(delta, rel=1e-9)
    # epsilon itself is needed where both bins are full.
    assert delta_of_move(noise, 0.9 * epsilon, 30, 30) > 0.01 * epsilon


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_print_leaves_three_quarters_of_delta(epsilon):
    noise = CountNoise.as_published(epsilon, 1e-2)
    costs = [delta_of_move(noise, epsilon, *move) for move in MOVES]
    assert max(costs) == pytest.approx(1e-2 / 4, rel=1e-9)
    assert noise.threshold == pytest.approx(2 * np.log(2 / 1e-2) / epsilon + 1)
    calibrated = CountNoise.calibrated(epsilon, 1e-2)
    assert noise.scale == calibrated.scale == 2 / epsilon
    assert noise.threshold - calibrated.threshold == pytest.approx(
        noise.scale * np.log(4)
    )


@pytest.mark.parametrize("threshold", [-np.inf, -3.0, 1.0, 1.5, 40.0])
def test_a_lonely_row_escapes_as_often_as_is_said(threshold):
    noise = CountNoise(2.5, threshold)
    assert noise.escape == pytest.approx(stats.laplace(1, 2.5).sf(threshold))


def test_counts_have_the_law_of_the_algorithm():
    # Null hypothesis: c + Lap(b) where that is at least T, else 0.
    mechanism = PrivateHistogram.calibrated(0.5, 1e-2, bins=3)
    noise = mechanism.noise
    values = np.repeat([0.5, 1.5, 7.0], [20, 60, 5])
    draws = mechanism.draw(values, 4000, rng=rng(1))
    assert (draws[:, 2] == 0).all()
    p_values = []
    for column, count in zip(draws.T, (20, 60), strict=False):
        law = stats.laplace(count, noise.scale)
        hidden = int((column == 0).sum())
        p_values.append(stats.binomtest(hidden, 4000, law.cdf(noise.threshold)).pvalue)
        shown = column[column != 0]
        assert shown.min() >= noise.threshold
        uniform = (law.cdf(shown) - law.cdf(noise.threshold)) / law.sf(noise.threshold)
        p_values.append(stats.kstest(uniform, stats.uniform.cdf).pvalue)
    assert min(p_values) >= TYPE_I_ERROR / len(p_values)
    assert stats.kstest(uniform**1.2, stats.uniform.cdf).pvalue < TYPE_I_ERROR


def test_the_window_shows_the_bins_that_it_names_and_the_fullest_has_its_law():
    options = {"width": 0.5, "first": -2, "bins": 3}
    mechanism = PrivateHistogram.calibrated(1e6, 1e-2, **options)
    values = np.array([-1.2, -1.0, -0.6, -0.5, 0.49, 0.5, -1e300, 1e300])
    np.testing.assert_array_equal(mechanism.counts(values), [2, 1, 1])
    np.testing.assert_array_equal(mechanism.counts(values[:, np.newaxis]), [2, 1, 1])
    draws = mechanism.draw(np.repeat(values, 9), 5, rng=rng())
    np.testing.assert_allclose(draws, [[18, 9, 9]] * 5, atol=1e-2)
    nothing = mechanism.draw(np.empty(0), 2, rng=rng())
    np.testing.assert_array_equal(nothing, np.zeros((2, 3)))
    assert mechanism.draw(values, 0, rng=rng()).shape == (0, 3)
    # Null hypothesis: of two bins the one with the larger noisy count wins, if that is
    # at least T; the probabilities are integrals.
    noise, counts = CountNoise(2.0, 9.0), np.array([8, 10])
    grid = np.arange(9.0, 90.0, 1e-3) + 5e-4
    laws = [stats.laplace(count, 2.0) for count in counts]
    wins = [(laws[i].pdf(grid) * laws[1 - i].cdf(grid)).sum() * 1e-3 for i in range(2)]
    labels = np.repeat([3.0, -4.0], counts)[np.newaxis]
    found = noise.fullest(SparseCounts.of(labels).repeated(4000), rng=rng(2))
    for label, probability in zip((3.0, -4.0), wins, strict=True):
        count = int((found == label).sum())
        assert stats.binomtest(count, 4000, probability).pvalue >= TYPE_I_ERROR
        assert stats.binomtest(count, 4000, probability + 0.06).pvalue < TYPE_I_ERROR
    missing = int(np.isnan(found).sum())
    assert stats.binomtest(missing, 4000, 1 - sum(wins)).pvalue >= TYPE_I_ERROR


def test_the_loss_of_a_release_is_the_ratio_of_densities():
    mechanism = PrivateHistogram.calibrated(1.0, 0.2, bins=2)
    noise = mechanism.noise
    data, other = np.repeat([0.5, 1.5], [4, 7]), np.repeat([0.5, 1.5], [3, 8])
    releases = np.array([[0.0, 9.0], [5.0, 0.0], [0.0, 0.0], [6.0, 7.5]])
    expected = []
    for release in releases:
        logs = []
        for counts in ((4, 7), (3, 8)):
            laws = [stats.laplace(count, noise.scale) for count in counts]
            logs.append(
                sum(
                    law.logcdf(noise.threshold) if value == 0 else law.logpdf(value)
                    for law, value in zip(laws, release, strict=True)
                )
            )
        expected.append(logs[0] - logs[1])
    losses = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(losses, expected)


def test_the_exact_claim_is_known_for_a_lonely_row():
    for make in (PrivateHistogram.calibrated, PrivateHistogram.as_published):
        mechanism = make(1.0, 1e-3)
        full, lonely, far = mechanism.canonical_pairs()
        assert mechanism.exact_claim(lonely) == Profile(
            (0.0,), (mechanism.noise.escape,)
        )
        beside = Pair([0.5, 1.5], [1.5, 1.5]), Pair([0.5, 9.0], [9.0, 9.0])
        for pair in (full, far, *beside):
            with pytest.raises(UnsupportedError, match="alone in its bin"):
                mechanism.exact_claim(pair)
    planted = UnthresholdedHistogram.planted(1.0, 1e-3)
    lonely = planted.worst_case()
    refuses("alone in its bin", planted.exact_claim, lonely, error=UnsupportedError)


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=100)
@given(
    st.lists(FINITE, max_size=5),
    FINITE,
    FINITE,
    st.floats(1e-300, 1e300),
    st.integers(-(2**53), 2**53),
)
def test_in_doubles_too_a_row_is_in_one_bin(common, one, two, width, first):
    mechanism = PrivateHistogram.calibrated(1.0, 1e-5, width=width, first=first)
    here, there = (mechanism.counts([*common, value]) for value in (one, two))
    assert sorted(here - there)[0] >= -1
    assert sorted(here - there)[-1] <= 1
    assert np.count_nonzero(here - there) <= 2
    assert here.sum() <= len(common) + 1


def test_what_it_offers():
    mechanism = PrivateHistogram.calibrated(1.0, 1e-5)
    assert mechanism.claim == ApproxDP(1.0, 1e-5)
    planted = UnthresholdedHistogram.planted(1.0, 1e-5)
    assert planted.noise == replace(mechanism.noise, threshold=-np.inf)
    counts = [
        [mechanism.counts(side).tolist() for side in (pair.data, pair.neighbour)]
        for pair in mechanism.canonical_pairs()
    ]
    assert counts == [
        [[45, 44, 0, 0, 0], [44, 45, 0, 0, 0]],
        [[44, 1, 0, 0, 0], [44, 0, 1, 0, 0]],
        [[45, 0, 0, 0, 0], [44, 0, 0, 0, 0]],
    ]
    first, second = planted.canonical_pairs()
    np.testing.assert_array_equal(planted.worst_case().data, first.data)
    assert planted.counts(second.data)[0] == planted.counts(second.neighbour)[0] + 1


@pytest.mark.parametrize("escape", [1e-310, 1e-300, 1e-12, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0, 400.0])
@pytest.mark.parametrize("kind", [GaussianCounts, CountNoise])
def test_a_lonely_row_is_seen_as_often_as_it_is_said_and_no_more(kind, scale, escape):
    noise = kind.of(scale, escape)
    assert noise.escape == pytest.approx(escape, rel=1e-8)
    with mpmath.workdps(50):
        reach = (mpmath.mpf(noise.threshold) - 1) / mpmath.mpf(scale)
        laplace = kind is CountNoise
        exact = mpmath.exp(-reach) / 2 if laplace else mpmath.ncdf(-reach)
        assert escape * (1 - mpmath.mpf(1e-8)) < exact <= escape


def test_what_is_shown_has_normal_noise_and_the_largest_wins():
    # Null hypothesis: the number that are shown is binomial(200,000, 0.05); those of a
    # full bin are normal.
    noise, size = GaussianCounts.of(3.0, 0.05), 200_000
    shown = noise.noisy(np.ones(size), rng=rng(1))
    count = int(np.isfinite(shown).sum())
    assert stats.binomtest(count, size, 0.05).pvalue > 1e-9
    assert (shown[np.isfinite(shown)] >= noise.threshold).all()
    full = noise.noisy(np.full(20_000, 100.0), rng=rng(2))
    assert stats.kstest(full, stats.norm(100.0, 3.0).cdf).pvalue > 1e-9
    counts = SparseCounts.of(np.array([[1.0, 2.0, 2.0], [5.0, 5.0, 5.0], [7.0, 8, 9]]))
    values = np.array([3.0, 2.5, 0.1, -np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(counts.largest(values), [1.0, 5.0, np.nan])
    assert counts.repeated(0).histograms == 0


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


def test_normal_counts_have_lower_thresholds_and_bad_ones_are_named():
    ours, laplace = (
        kind(1.0, 1e-6, histogram_share=0.2).noise(20).counts
        for kind in (GaussianSplit, CalibratedSplit)
    )
    assert (round(ours.threshold), round(laplace.threshold)) == (345, 1383)
    refuses("scale must be a finite number > 0", GaussianCounts.of, 0.0, 0.1)
    refuses("threshold must be a number", GaussianCounts, 1.0, np.inf)
    assert GaussianCounts.of(1.0, 0.9).threshold == 1.0


LABELS = st.sampled_from([0.0, -0.0, 0.5, 1.0, -7.0, 1e300, np.inf, -np.inf])


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
