"""Algorithm 5: its sensitivity, the laws of its output, its windows, its accountant.

The oracle of the accountant is the privacy loss distribution of dp_accounting,
discretised so that it errs upwards; it tells the paper's 12 from 8, too.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from budget_oracles import composed_delta, laplace_mu
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import rng

from dpaudit.algorithms.streaming.mean_budget import (
    CalibratedSplit,
    GaussianSplit,
    MeanNoise,
    PublishedSplit,
    SplitWithConstant8,
    laplace_scale,
)
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation, _totals
from dpaudit.algorithms.streaming.moments import FixedGradients
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.algorithms.streaming.windows import DEFAULT_TAIL, Ball, Tail
from dpaudit.gaussian import classical_mu, gaussian_delta

TYPE_I_ERROR = 1e-9
MAKERS = [MeanEstimation.calibrated, MeanEstimation.as_published]


def sensitivity(mechanism, count, dimension):
    """Delta: the deviation of the noise is as many times its mu."""
    scale, zeta = mechanism.eigenvalue, mechanism.tail.zeta
    deviation = mechanism.deviation(scale, count, dimension, zeta)
    return float(deviation) * mechanism.split.noise(dimension).mu


def truncated_mean(mechanism, rows, bins):
    """Step 3 without noise, for the bins found, by the words of the algorithm."""
    tail, scale = mechanism.tail, np.sqrt(mechanism.eigenvalue)
    width = 2**0.25 * tail.scale * scale * np.log(25) ** tail.power
    reach = 3 * tail.scale * scale * np.log(rows.size / tail.zeta) ** tail.power
    columns = [
        np.clip(column, width * label - reach, width * label + reach).mean()
        for column, label in zip(rows.T, bins, strict=True)
    ]
    return np.array(columns)


def test_widths_and_reaches_are_the_papers():
    tail = Tail(0.7, 1.5, zeta=0.02)
    assert float(tail.width(4.0)) == pytest.approx(
        2**0.25 * 0.7 * 2 * np.log(25) ** 1.5
    )
    assert float(tail.size(4.0, 600, 1)) == pytest.approx(
        3 * 0.7 * 2 * np.log(600 / 0.02) ** 1.5
    )
    assert tail.size(4.0, 600, 1, 0.02) == tail.size(4.0, 600, 1)
    # Left edge +- reach: a range of 6 K sqrt(Lambda) log^a in each coordinate.
    mechanism = MeanEstimation.calibrated(1.0, 1e-5, tail=tail, eigenvalue=4.0)
    assert sensitivity(mechanism, 200, 3) == pytest.approx(
        6 * 0.7 * 2 * np.log(600 / 0.02) ** 1.5 * np.sqrt(3) / 200
    )


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_the_mean_moves_by_no_more_than_its_sensitivity(seed, n, d, far):
    generator = rng(seed)
    mechanism = MeanEstimation.calibrated(1.0, 1e-2, eigenvalue=2.0)
    rows = generator.standard_normal((n, d)) * 10.0 ** generator.integers(-2, 4)
    other = rows.copy()
    # The worst that can be: from below all windows to above them.
    other[0] = 1e9 if far else generator.standard_normal(d)
    rows[0] = -1e9 if far else rows[0]
    bins = generator.integers(-3, 4, size=d)
    one, two = (truncated_mean(mechanism, each, bins) for each in (rows, other))
    moved = np.linalg.norm(one - two)
    bound = sensitivity(mechanism, n, d)
    assert moved <= bound * (1 + 1e-9)
    if far:
        assert moved == pytest.approx(bound)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("d", [1, 4])
def test_the_worst_case_attains_it(make, d):
    mechanism = make(1.0, 1e-5)
    pair = mechanism.worst_case(d)
    assert pair.data.shape[1] == d
    one, two = (
        truncated_mean(mechanism, rows, np.zeros(d))
        for rows in (pair.data, pair.neighbour)
    )
    n = len(pair.data)
    assert np.linalg.norm(two - one) == pytest.approx(sensitivity(mechanism, n, d))


# Doubles
@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 3000),
    st.integers(1, 3),
    st.floats(-1e16, 1e16),
    st.floats(1e-8, 1e8),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_in_doubles_the_sum_moves_by_no_more_than_its_sensitivity(
    seed, n, d, location, eigenvalue, replacement
):
    generator = rng(seed)
    tail = MeanEstimation.calibrated(1.0, 1e-2).tail
    width, reach = float(tail.width(eigenvalue)), float(tail.size(eigenvalue, n, d))
    rows = width * (location + generator.random((n, d)))
    edges, other = np.floor(rows[-1:] / width) * width, rows.copy()
    other[0] = replacement
    rows[0] = -replacement
    # Windows are 2 L wide, L = 2^53 over n, rounded to a power of two.
    steps = 2.0 ** np.floor(53 - np.log2(n))
    one, two = (_totals(DEFAULT_TAIL, each, edges, reach) for each in (rows, other))
    assert (np.abs(two - one) <= 2 * steps).all()
    # Nothing was rounded on the way: a sum of n whole numbers up to L is exact.
    for each, total in ((rows, one), (other, two)):
        terms = [
            _totals(DEFAULT_TAIL, row[np.newaxis], edges, reach) for row in each[-2:]
        ]
        assert all((term == np.rint(term)).all() for term in terms)
        shuffled = _totals(DEFAULT_TAIL, generator.permutation(each), edges, reach)
        np.testing.assert_array_equal(shuffled, total)
        assert (np.abs(total) <= 2**53).all()


@pytest.mark.parametrize("n", [1, 2, 3, 1024, 1025, 3000])
@pytest.mark.parametrize("location", [0.0, -1e4, 3e15])
def test_the_sum_is_that_of_the_truncated_vectors(n, location):
    edge = 0.25 * location
    rows = edge + 2 * rng().standard_normal((n, 1)).round(3)
    total = _totals(DEFAULT_TAIL, rows, np.array([[edge]]), np.array(1.5))
    exact = sum(
        min(max(Fraction(row) - Fraction(edge), Fraction(-3, 2)), Fraction(3, 2))
        for row in rows[:, 0]
    )
    steps = 2.0 ** (53 - np.ceil(np.log2(n)))
    assert steps * n <= 2**53
    # Half a step for each row, and rounding of its place in the window.
    error = Fraction(float(total[0, 0])) / Fraction(float(steps)) * Fraction(3, 2)
    assert abs(error - exact) <= n * (1.5 / steps + 2.0**-51)


def test_far_locations_are_near_ones_until_doubles_are_coarser_than_windows():
    # The same seed gives the same noise. 2^44 bins away doubles resolve 2^-8 of a bin.
    mechanism = MeanEstimation.calibrated(4.0, 1e-2)
    width = float(mechanism.tail.width(1.0))
    rows = 0.5 + 0.4 * (rng().random((150, 2)) - 0.5)
    near, far = (
        mechanism.draw(width * (label + rows), 50, rng=rng(1)) - width * label
        for label in (0.0, 2.0**44)
    )
    np.testing.assert_array_equal(np.isnan(near), np.isnan(far))
    assert np.nanmax(np.abs(far - near)) < width / 64
    # One row 200 apart from the others, of which no double is nearer than 2.
    mechanism = MeanEstimation.calibrated(1.0, 1e-5)
    sides = np.full((2, 1000, 1), 1.0000000000599422e16)
    sides[:, 0] += [[-100.0], [100.0]]
    for rows in sides:
        assert np.isnan(mechanism.draw(rows, 20, rng=rng())).all()


@pytest.mark.parametrize("location", [0.0, 1e9, 2.0**51, 1e16, 1e300])
def test_estimates_are_releases_wherever_the_rows_are(location):
    mechanism = MeanEstimation.calibrated(4.0, 1e-2, eigenvalue=2.0)
    rows = rng().standard_normal((150, 2)) + location
    drawn = mechanism.draw(rows, 1, rng=rng(1))
    estimate = mechanism.estimate(FixedGradients(rows), np.array([2.0]), rng=rng(1))
    np.testing.assert_array_equal(drawn, estimate)
    # Bins that doubles do not tell from their neighbours are bottom.
    refused = np.isnan(drawn).any()
    assert refused == (location >= 2**53 * mechanism.tail.width(2.0))


@pytest.mark.parametrize("tail", [Tail(scale=1e-320), Tail(power=200.0, zeta=0.99)])
def test_windows_that_underflow_are_bottom(tail):
    # With the second, bins have a width, and the window of a lonely row has none.
    mechanism = MeanEstimation.calibrated(1e6, 0.9, tail=tail, eigenvalue=1e-300)
    for value in (0.0, 1.0):
        assert np.isnan(mechanism.draw([[value]], 200, rng=rng())).all()


# Laws
@pytest.mark.parametrize("make", MAKERS)
def test_the_noise_has_the_law_of_the_algorithm(make):
    # Null hypothesis: given the only bins that rows have, the release is the truncated
    # mean + N(0, s^2 I), s = Delta/mu.
    mechanism = make(1.0, 1e-3, eigenvalue=3.0)
    width = float(mechanism.tail.width(3.0))
    rows = width * (
        np.array([[3.5, -6.5, 0.5]]) + 0.4 * (rng().random((3000, 3)) - 0.5)
    )
    rows[:40] += 20 * width
    draws = mechanism.draw(rows, 3000, rng=rng(1))
    assert not np.isnan(draws).any()
    deviation = mechanism.deviation(3.0, 3000, 3, mechanism.tail.zeta)
    noise = (draws - truncated_mean(mechanism, rows, [3, -7, 0])) / deviation
    p_values = [stats.kstest(column, stats.norm.cdf).pvalue for column in noise.T]
    squares = (noise**2).sum(axis=1)
    p_values.append(stats.kstest(squares, stats.chi2(3).cdf).pvalue)
    assert min(p_values) >= TYPE_I_ERROR / len(p_values)
    assert stats.kstest(1.2 * squares, stats.chi2(3).cdf).pvalue < TYPE_I_ERROR


def test_bottom_is_as_frequent_as_thresholds_say_and_what_nobody_has():
    # Null hypothesis: a coordinate fails if its noisy count is less than T (and that of
    # ten lonely rows too, which has probability 1e-6 or so).
    mechanism = MeanEstimation.calibrated(1.0, 1e-5)
    _, pair, _ = mechanism.canonical_pairs()
    counts = mechanism.split.noise(3).counts
    found = stats.laplace(int(counts.threshold), counts.scale).sf(counts.threshold)
    draws = mechanism.draw(pair.data, 4000, rng=rng(2))
    bottom = np.isnan(draws)
    assert (bottom.any(axis=1) == bottom.all(axis=1)).all()
    count = int((~bottom[:, 0]).sum())
    assert stats.binomtest(count, 4000, found**3).pvalue >= TYPE_I_ERROR
    assert stats.binomtest(count, 4000, found**3 + 0.06).pvalue < TYPE_I_ERROR
    mechanism = MeanEstimation.calibrated(1e6, 0.1, eigenvalue=1e-300)
    draws = mechanism.draw(np.full((50, 1), 1e300), 5, rng=rng())
    assert np.isnan(draws).all()
    release = MeanEstimation.calibrated(1.0, 1e-5).release
    message = r"data must have shape \(n, d\) with n >= 1"
    refuses(message, release, np.zeros((0, 2)), rng=rng())


class Tiled(FixedGradients):
    """The same rows in every trial."""

    def __init__(self, rows, trials):
        super().__init__(rows)
        self.trials = trials

    def read(self, first, last):
        return np.tile(super().read(first, last), (self.trials, 1, 1))


def test_estimates_of_trials_are_releases_of_one_run_each():
    # Null hypothesis: each coordinate has one law in both. So many are read in parts.
    mechanism = MeanEstimation.calibrated(4.0, 1e-2, eigenvalue=2.0)
    rows = rng().standard_normal((150, 2)) + np.array([5.0, -1.0])
    drawn = mechanism.draw(rows, 2000, rng=rng(1))
    estimates = mechanism.estimate(Tiled(rows, 2000), np.full(2000, 2.0), rng=rng(2))
    assert np.isnan(drawn[:, 0]).mean() < 0.2
    for one, two in zip(drawn.T, estimates.T, strict=True):
        pair = [np.nan_to_num(side, nan=1e9) for side in (one, two)]
        assert stats.ks_2samp(*pair).pvalue >= TYPE_I_ERROR / 2
    # Totals by `draw` are shared where windows are, by `estimate` made for each trial.
    rows = rng().standard_normal((4000, 3))
    mechanism = MeanEstimation(split=GaussianSplit(50.0, 1e-2), tail=Ball())
    one = mechanism.draw(rows, 1, rng=rng(1))
    two = mechanism.estimate(FixedGradients(rows), np.ones(1), rng=rng(1))
    np.testing.assert_allclose(one, two, atol=1e-12)
    means = mechanism.draw(rows, 50, rng=rng(2))
    np.testing.assert_allclose(means, np.tile(rows.mean(axis=0), (50, 1)), atol=0.1)


def test_each_trial_has_its_own_scale_and_finds_a_mean_far_away():
    mechanism = MeanEstimation.calibrated(1e6, 1e-2)
    rows = rng().standard_normal((300, 2))
    eigenvalues = np.array([4.0, 1e-4, 0.0, np.nan, np.inf, 100.0])
    means = mechanism.estimate(Tiled(rows, 6), eigenvalues, rng=rng(1))
    assert np.isnan(means).all(axis=1).tolist() == [False] * 2 + [True] * 3 + [False]
    np.testing.assert_allclose(means[5], rows.mean(axis=0), atol=0.01)
    scales = mechanism.deviation(eigenvalues[[0, 5]], 300, 2, 0.01)
    assert scales[1] / scales[0] == pytest.approx(5.0)
    mechanism = MeanEstimation.calibrated(1.0, 1e-6)
    mean = np.array([1e6, -3.0, 0.0])
    rows = mean + rng().standard_normal((20_000, 3))
    draws = mechanism.draw(rows, 20, rng=rng(1))
    assert np.abs(draws - mean).max() < 0.1


@pytest.mark.parametrize("n", [1, 2, 50])
def test_too_few_rows_are_bottom(n):
    draws = MeanEstimation.calibrated(1.0, 1e-6).draw(np.ones((n, 2)), 20, rng=rng())
    assert draws.shape == (20, 2)
    assert np.isnan(draws).all()


# Bad input


def test_calibrations_have_their_splits_of_one_dimension_or_more():
    calibrated = MeanEstimation.calibrated(1.0, 1e-6, uses=3)
    assert calibrated.split == CalibratedSplit(1.0, 1e-6, uses=3)
    published = MeanEstimation.as_published(1.0, 1e-6, eigenvalue=2.0)
    assert published.split == PublishedSplit(1.0, 1e-6)
    assert (calibrated.eigenvalue, published.eigenvalue) == (1.0, 2.0)
    for make in (CalibratedSplit, PublishedSplit):
        refuses("dimension must be", make(1.0, 1e-5).noise, 0)


DELTAS = [1e-12, 1e-6, 1e-3, 0.1, 0.9]


@pytest.mark.parametrize("scale", [0.05, 0.5, 3.0, 100.0])
def test_laplace_noise_is_as_private_as_its_mu(scale):
    epsilons = np.linspace(0, 1 / scale, 400)
    exact = -np.expm1((epsilons - 1 / scale) / 2)
    bound = gaussian_delta(epsilons, laplace_mu(scale))
    assert (exact <= bound + 1e-15).all()
    # At 0 the two agree: no smaller mu would do.
    assert bound[0] == pytest.approx(exact[0], rel=1e-9)
    assert laplace_scale(laplace_mu(scale)) == pytest.approx(scale)


@pytest.mark.parametrize("mu", [1e-90, 1e-17, 1e-8, 0.5, 1.99, 2.01, 60.0])
def test_laplace_noise_hides_a_shift_as_well_as_any_mu_asks(mu):
    with mpmath.workdps(200):
        exact = -0.5 / mpmath.log(2 * mpmath.ncdf(-mpmath.mpf(mu) / 2))
        assert laplace_scale(mu) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6])
def test_nothing_is_lost_next_to_delta_one(epsilon):
    delta, split = 1 - 1e-9, GaussianSplit(epsilon, 1 - 1e-9)
    assert split.budget("all").epsilon == epsilon
    noise = split.noise(1)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(2 / mpmath.mpf(noise.counts.scale) ** 2 + noise.mu**2)
        escape = mpmath.ncdf((1 - noise.counts.threshold) / noise.counts.scale)
        left = epsilon + mpmath.log(1 - escape)
        ratio = [mpmath.ncdf(sign * left / mu - mu / 2) for sign in (1, -1)]
        assert escape + 1 - ratio[0] - mpmath.exp(left) * ratio[1] <= delta


@pytest.mark.parametrize(("dimension", "uses"), [(1, 1), (3, 1), (10, 1), (2, 3)])
def test_the_accountant_is_safe_and_not_far_off(dimension, uses):
    noise = MeanNoise(CountNoise.of(15.0, 1e-9), 0.3)
    step = 1e-3
    counts = pld.from_laplace_mechanism(15.0, value_discretization_interval=step)
    means = pld.from_gaussian_mechanism(1 / 0.3, value_discretization_interval=step)
    whole = counts.self_compose(2 * dimension * uses).compose(
        means.self_compose(uses) if uses > 1 else means
    )
    for epsilon in (0.3, 1.0, 2.0):
        ours = composed_delta(epsilon, noise=noise, dimension=dimension, uses=uses)
        escaped = dimension * uses * 1e-9
        theirs = whole.get_delta_for_epsilon(epsilon) + escaped
        # Theirs is too large by what a rounding of losses by 1e-3 makes.
        assert theirs <= ours * 1.05
        # Ours takes 1.25 of the Laplace mu of many counts.
        wider = MeanNoise(CountNoise.of(15.0 / 1.35, 1e-9), 0.3 * 1.35)
        assert ours <= composed_delta(
            epsilon, noise=wider, dimension=dimension, uses=uses
        )
        if epsilon <= 1:
            assert ours <= 3 * theirs


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("dimension", "uses"), [(1, 1), (20, 1), (1000, 4)])
def test_the_calibrated_split_spends_its_budget_and_no_more(
    epsilon, delta, dimension, uses
):
    noise = CalibratedSplit(epsilon, delta, uses=uses).noise(dimension)
    spent = composed_delta(epsilon, noise=noise, dimension=dimension, uses=uses)
    assert spent <= delta * (1 + 1e-9)
    assert spent >= delta * (1 - 1e-6)


def test_shares_are_as_asked_and_more_uses_cost_their_root():
    split = CalibratedSplit(1.0, 1e-6, histogram_share=0.3, escape_share=0.2, uses=2)
    noise = split.noise(5)
    histograms = 2 * 10 * laplace_mu(noise.counts.scale) ** 2
    assert histograms / (histograms + 2 * noise.mu**2) == pytest.approx(0.3)
    assert 10 * noise.counts.escape == pytest.approx(0.2 * 1e-6)
    one, four = (CalibratedSplit(1.0, 1e-6, uses=k).noise(4) for k in (1, 4))
    assert one.mu / four.mu == pytest.approx(2.0, rel=1e-3)


def test_the_published_split_is_the_papers():
    epsilon, delta, d = 0.7, 1e-5, 6
    noise = PublishedSplit(epsilon, delta).noise(d)
    each = epsilon / (4 * np.sqrt(2 * d * np.log(4 / delta)))
    assert noise.counts.scale == pytest.approx(2 / each)
    assert noise.counts.threshold == pytest.approx(
        1 + 2 / each * np.log(2 / (delta / (4 * d)))
    )
    assert noise.mu == pytest.approx(epsilon / 2 / np.sqrt(2 * np.log(2.5 / delta)))
    # Deviation = range sqrt(d)/m/mu = 12 K sqrt(Lambda) log^a sqrt(2 d log(2.5/delta))
    # /(epsilon m), in units of K sqrt(Lambda) log^a/m.
    assert 6 * np.sqrt(d) / noise.mu == pytest.approx(
        12 * np.sqrt(2 * d * np.log(2.5 / delta)) / epsilon
    )
    eight = PublishedSplit(epsilon, delta, constant=8.0).noise(d)
    assert eight.mu == pytest.approx(1.5 * classical_mu(epsilon / 2, delta / 2))


@pytest.mark.parametrize("constant", [12.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("dimension", [1, 20, 1000])
def test_the_published_promise_holds_in_the_papers_range(constant, delta, dimension):
    for epsilon in (0.01, 0.3, 0.899):
        noise = PublishedSplit(epsilon, delta, constant).noise(dimension)
        spent = composed_delta(epsilon, noise=noise, dimension=dimension)
        assert spent <= 0.15 * delta


@pytest.mark.parametrize(("constant", "limit"), [(8.0, 33.6), (12.0, 115.3)])
def test_the_mean_alone_breaks_the_published_promise_at_large_epsilon(constant, limit):
    for epsilon, kept in ((limit - 0.1, True), (limit + 0.1, False)):
        mu = PublishedSplit(epsilon, 1e-5, constant).noise(1).mu
        assert (gaussian_delta(epsilon, mu) <= 1e-5) == kept


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", DELTAS[:4])
def test_without_slack_the_8_breaks_the_promise_everywhere(epsilon, delta):
    right = CalibratedSplit(epsilon, delta).noise(1)
    wrong = SplitWithConstant8(epsilon, delta).noise(1)
    assert wrong.counts == right.counts
    assert wrong.mu == pytest.approx(1.5 * right.mu)
    assert gaussian_delta(epsilon, wrong.mu) > 1.05 * delta


@pytest.mark.parametrize("d", [1, 3, 1000])
@pytest.mark.parametrize("power", [-300, -1, 0, 1, 200, 300])
def test_no_vector_leaves_the_ball_whatever_is_rounded(d, power):
    # In fractions, which take long: of long vectors a few.
    vectors = 10.0**power * rng(d).standard_normal((min(40, 4 + 100 // d), d))
    vectors[0] = 10.0**power / np.sqrt(d)  # on the sphere, if the power is 0
    vectors[1] = np.inf
    for count in (1, 1000, 2**20 + 1):
        most = 2.0 ** (53 - (count - 1).bit_length())
        steps = Ball().steps(vectors.copy(), most)
        for each in steps:
            square = sum(Fraction(entry) ** 2 for entry in each)
            assert square <= Fraction(most) ** 2
            assert (each == np.rint(each)).all()


def test_vectors_in_the_ball_stay_and_others_are_scaled_onto_it():
    inside = np.array([[0.3, -0.4, 0.5], [30.0, -40.0, 0.0], [0.0, 0.0, 0.0]])
    steps = Ball().steps(inside.copy(), 2.0**40) / 2.0**40
    expected = [[0.3, -0.4, 0.5], [0.6, -0.8, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(steps, expected, atol=1e-11)


@pytest.mark.parametrize("location", [0.0, 1.0, 1e6, 1e12, 1e15])
@pytest.mark.parametrize("n", [2, 999, 20_000])
def test_one_row_moves_the_sum_by_no_more_than_two_radii(location, n):
    ball, generator = Ball(1.0, 1.0), rng(n)
    rows = location + generator.standard_normal((n, 3))
    rows[:-1] += generator.standard_t(1, (n - 1, 1))
    other = rows.copy()
    rows[-1] += 1e3
    other[-1] -= 1e3
    centre = ball.labels(rows[:1], np.array(0.1)) * 0.1
    reach = ball.size(1.0, n, 3)
    one, two = (_totals(ball, each, centre, reach)[0] for each in (rows, other))
    most = Fraction(2) ** (53 - (n - 1).bit_length())
    moved = [Fraction(a) - Fraction(b) for a, b in zip(one, two, strict=True)]
    assert sum(x**2 for x in moved) <= (2 * most) ** 2
    assert sum(x**2 for x in moved) >= (Fraction(19, 10) * most) ** 2
    shuffled = _totals(ball, generator.permutation(rows), centre, reach)[0]
    np.testing.assert_array_equal(shuffled, one)


def test_bins_and_noise_are_those_of_their_windows():
    values, width = np.array([-0.6, -0.4, 0.0, 0.4, 0.6, 1.4]), np.array(1.0)
    np.testing.assert_array_equal(
        Tail().labels(values, width), [-1.0, -1.0, 0.0, 0.0, 0.0, 1.0]
    )
    np.testing.assert_array_equal(
        Ball().labels(values, width), [-1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    )
    for window, diameter in ((Tail(), 2 * np.sqrt(7)), (Ball(), 2.0)):
        mechanism = MeanEstimation(split=GaussianSplit(1.0, 1e-6), tail=window)
        deviation = float(mechanism.deviation(4.0, 500, 7))
        size = float(window.size(4.0, 500, 7))
        mu = mechanism.split.noise(7).mu
        assert deviation * mu == pytest.approx(diameter * size / 500)


@pytest.mark.parametrize(("name", "bad"), [("scale", 0.0), ("bin_width", -1.0)])
def test_bad_sizes_are_named(name, bad):
    refuses(f"{name} must be .*got {bad!r}", Ball, **{name: bad})
