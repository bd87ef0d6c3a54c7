"""Algorithm 4: what one row moves, and the laws of its output.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, InputError, PureDP
from dpaudit.algorithms.streaming.moments import FixedGradients
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue

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


def test_a_row_can_move_a_group():
    for pair in TopEigenvalue.calibrated(1.0, 1e-5).canonical_pairs():
        mechanism = TopEigenvalue.calibrated(1.0, 1e-5)
        before, after = (
            group_values(mechanism, rows) for rows in (pair.data, pair.neighbour)
        )
        labels = [np.floor(np.log2(values)) for values in (before, after)]
        assert (labels[0] != labels[1]).sum() == 1


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


def test_it_finds_the_scale_of_many_rows():
    rows = 5 + rng().standard_normal((20_000, 4)) * [7.0, 1.0, 1.0, 1.0]
    for make in (TopEigenvalue.calibrated, TopEigenvalue.as_published):
        draws = make(1.0, 1e-6).draw(rows, 50, rng=rng(1))
        assert not np.isnan(draws).any()
        assert draws.min() >= 49 / 2.5
        assert draws.max() <= 49 * 1.5


def test_the_bare_constructor_is_validated_too():
    noise = CountNoise(1.0, 1.0)
    with pytest.raises(InputError, match="noise must be a CountNoise"):
        TopEigenvalue(noise=1.0, claim=ApproxDP(1.0, 1e-5))
    with pytest.raises(InputError, match="claim must be an ApproxDP, got PureDP"):
        TopEigenvalue(noise=noise, claim=PureDP(1.0))
    with pytest.raises(InputError, match=r"delta must be in \(0, 1\), got 0"):
        TopEigenvalue(noise=noise, claim=ApproxDP(1.0, 0.0))


test_bad_data_are_named = refused(
    (np.zeros((1, 2)), "data must have at least 2 rows"),
    (np.zeros((0, 2)), "data must have at least 2 rows"),
    (np.zeros(3), r"data must have shape \(n, d\)"),
    ([[np.inf], [0.0]], "data must be finite, but row 0"),
    by=lambda data: TopEigenvalue.calibrated(1.0, 1e-5).release(data, rng=rng()),
)


def test_calibrations_have_their_noise_and_bins():
    calibrated = TopEigenvalue.calibrated(1.0, 1e-6)
    assert calibrated.noise == CountNoise.calibrated(1.0, 1e-6)
    published = TopEigenvalue.as_published(1.0, 1e-6)
    assert published.noise == CountNoise.as_published(1.0, 1e-6)
    assert (calibrated.bins_per_octave, published.bins_per_octave) == (1, 4)
    assert calibrated.groups(1e-4) == int(np.ceil(5 * np.log(1e10)))
