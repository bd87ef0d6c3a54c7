"""Two-stage PCA: who reads what, steps by hand, weights, pairs, streams, utility.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused, refuses
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, InputError, Relation
from dpaudit.algorithms import GOEGaussian, TwoStagePCA, build
from dpaudit.algorithms.streaming import moments
from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.minibatch_pca import scale_rows
from dpaudit.algorithms.streaming.windows import Ball
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.subspace import projector_distance, top_components

# So little noise that nothing is bottom on a few hundred rows.
LOUD = {"epsilon": 200.0, "delta": 0.1}
PAIRS = ("far row", "two directions", "two bins", "threshold", "far from zero")


def graded(n, deviations, seed=0):
    return rng(seed).standard_normal((n, len(deviations))) * deviations


def with_signs(bases):
    peaks = np.take_along_axis(bases, np.abs(bases).argmax(axis=0)[np.newaxis], axis=0)
    return bases * np.sign(peaks)


# Who reads what
@pytest.mark.parametrize("n", [8, 9, 100, 401])
@pytest.mark.parametrize("k", [1, 2])
def test_each_row_is_read_by_one_step(n, k):
    rows, reads = graded(n, [1.0, 0.5, 0.2]), []

    def read(where):
        reads.append((where.start, where.stop))
        return rows[where]

    data = moments.StreamedMoments(read, count=n, dimension=3, row_norm=1.0)
    mechanism = TwoStagePCA.calibrated(**LOUD, n_components=k, scale_share=0.3)
    mechanism.draw(data, 1, rng=rng(1))
    half = n // 2
    part = scale_rows(half, 0.3)
    (start, (first, last), *means) = reads
    assert start == (0, half)
    assert first == half
    assert last <= half + part
    # The bins, and the totals. The last row of an odd number is in none.
    assert means == [(half + part, 2 * half)] * 2


# Steps by hand
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_release_is_made_of_what_is_found(k):
    mechanism = TwoStagePCA.calibrated(30.0, 1e-2, n_components=k, row_norm=3.0)
    rows, half = graded(1401, [1.0, 0.8, 0.5]), 700
    runs = mechanism.transcript(rows, 40, rng=rng(1))
    draws = mechanism.draw(rows, 40, rng=rng(1))
    shapes = {"starts": (40, 3, k), "eigenvalues": (40, k + 1), "scales": (40,)}
    assert {key: runs[key].shape for key in shapes} == shapes
    assert runs["means"].shape == (40, 3, k)
    if k == 3:
        assert (runs["eigenvalues"][:, -1] == 0).all()
    own, seen = mechanism.covariance.sigma / half, set()
    count = half - scale_rows(half, mechanism.scale_share)
    for trial in range(40):
        start, mean = runs["starts"][trial], runs["means"][trial]
        values = runs["eigenvalues"][trial]
        noise = float(mechanism.mean.deviation(runs["scales"][trial], count, 3 * k))
        columns = []
        for j in range(k):
            share = own**2 / (own**2 + noise**2)
            weight = min(1.0, values[j] / (values[j] - values[k]) * share)
            seen.add(weight < 1)
            along = (1 - weight) * values[j] * start[:, j]
            columns.append(along + weight * mean[:, j])
        basis = np.linalg.qr(np.column_stack(columns))[0]
        np.testing.assert_allclose(draws[trial], with_signs(basis), atol=1e-9)
    assert True in seen


def test_the_start_is_what_noise_leaves_of_the_first_half():
    mechanism = TwoStagePCA.calibrated(
        1e6, 1e-2, n_components=2, row_norm=10.0, window=Ball(30.0, 1.0)
    )
    rows = graded(801, [1.0, 0.6, 0.3])
    runs = mechanism.transcript(rows, 3, rng=rng(1))
    moment = rows[:400].T @ rows[:400]
    exact = top_components(moment, 2)
    assert (projector_distance(runs["starts"], exact) < 0.01).all()
    values = np.linalg.eigvalsh(moment)[::-1] / 400
    np.testing.assert_allclose(runs["eigenvalues"], np.tile(values, (3, 1)), atol=0.01)
    # The means are those of the rest of the second half.
    part = scale_rows(400, 0.1)
    rest = rows[400 + part : 800]
    for trial in range(3):
        expected = rest.T @ rest @ runs["starts"][trial] / len(rest)
        np.testing.assert_allclose(runs["means"][trial], expected, atol=0.1)


def test_gradients_are_those_of_columns_and_rows_show_their_sensitivity():
    rows, bases = graded(7, [1.0, 2.0, 3.0]), rng(1).standard_normal((5, 3, 2))
    found = moments.ProductGradients(moments.as_moments(rows), 2, 4, bases).read(1, 4)
    assert found.shape == (5, 3, 6)
    for trial in range(5):
        for place, row in enumerate(rows[3:6]):
            expected = np.outer(row, row @ bases[trial])
            np.testing.assert_allclose(found[trial, place].reshape(3, 2), expected)
    # Null hypothesis: with the angle t of V from e_1 in their plane, (cos 2 t, sin 2 t)
    # is the direction of a normal vector of deviation 2 sigma about (-+R^2, 0), up to a
    # share of 1/50 or so, so P(V is nearer e_1) = Phi(R^2/(2 sigma)) = Phi(mu/2).
    mechanism = TwoStagePCA.calibrated(4.0, 1e-2, row_norm=3.0)
    pair, size = mechanism.canonical_pairs()[1], 20_000
    mu = 9.0 / mechanism.covariance.sigma
    basis = mechanism.draw(pair.data, size, rng=rng(1))[:, :, 0]
    nearer = int((np.abs(basis[:, 0]) > np.abs(basis[:, 1])).sum())
    expected = stats.norm.cdf(mu / 2)
    assert stats.binomtest(nearer, size, expected).pvalue > 1e-9
    assert expected > 0.7


@pytest.mark.parametrize("k", [1, 2, 3])
def test_releases_are_orthonormal_and_never_bottom(k):
    for rows in (graded(90, [1.0, 0.5, 0.2]), np.zeros((30, 3)), np.ones((8, 3))):
        mechanism = TwoStagePCA.calibrated(1.0, 1e-5, n_components=k)
        draws = mechanism.draw(rows, 50, rng=rng(1))
        assert draws.shape == (50, 3, k)
        gram = draws.swapaxes(1, 2) @ draws
        np.testing.assert_allclose(gram, np.tile(np.eye(k), (50, 1, 1)), atol=1e-9)
        assert (np.abs(draws).max(axis=1) == draws.max(axis=1)).all()
        # Too few rows for a histogram: the start is released.
        runs = mechanism.transcript(rows, 50, rng=rng(1))
        assert np.isnan(runs["means"]).all()
        assert runs["eigenvalues"].min() >= 0
        assert (projector_distance(draws, runs["starts"]) < 1e-6).all()
    one = mechanism.release(rows, rng=rng(2))
    np.testing.assert_array_equal(one, mechanism.draw(rows, 1, rng=rng(2))[0])
    assert mechanism.draw(rows, 0, rng=rng()).shape == (0, 3, k)
    np.testing.assert_array_equal(mechanism.components(draws, k), draws)


# Streams
@pytest.mark.parametrize("n", [700, 701])
@pytest.mark.parametrize("sizes", [[1] * 700, [150, 0, 300, 249], [699, 1], []])
def test_a_stream_is_a_release(n, sizes):
    mechanism = TwoStagePCA.calibrated(**LOUD, n_components=2, row_norm=2.0)
    rows = graded(n, [1.0, 0.6, 0.3])
    blocks = iter(np.split(rows, np.cumsum(sizes).astype(int)))
    streamed = mechanism.release_stream(blocks, count=n, rng=rng(3))
    whole = mechanism.release(rows, rng=rng(3))
    np.testing.assert_allclose(streamed, whole, atol=1e-9)


test_bad_streams_are_named = refused(
    ([np.zeros((101, 2))], "blocks must have 100 rows in all, got 101"),
    ([np.zeros((99, 2))], "blocks must have 100 rows in all, got 99"),
    ([np.zeros((100, 2, 2))], "data must be rows"),
    ([np.zeros((100, 1))], "n_components must be at most .* 1, got 2"),
    ([np.full((100, 2), np.nan)], "data must be finite"),
    ([], "blocks must have 100 rows in all, got 0"),
    by=lambda blocks: TwoStagePCA.calibrated(1.0, 1e-5, n_components=2).release_stream(
        blocks, count=100, rng=rng()
    ),
)


# Utility
def test_the_error_is_what_is_promised_and_far_rows_move_the_mean():
    # At (1, 1e-6) and n = 1e5, d = 20: 0.009 and 2.5e-5 were seen. If the start is
    # released, without a step from there, the second is 2e-4.
    truth = np.eye(20)[:, :1]
    rows = graded(100_000, [1.0] + [0.5] * 19)
    mechanism = TwoStagePCA.calibrated(1.0, 1e-6, row_norm=2.4)
    draws = mechanism.draw(rows, 5, rng=rng(1))
    assert np.median(projector_distance(draws, truth)) < 0.02 * np.sqrt(2)
    data = signal_in_noise(100_000, 20, noise=1e-3, direction=truth[:, 0], rng=rng(2))
    mechanism = replace_norm(mechanism, 1.0001)
    draws = mechanism.draw(data.rows, 5, rng=rng(1))
    assert np.median(projector_distance(draws, truth)) < 1e-4
    # Null hypothesis: w_u/w_1 is normal about -+ shift with the deviation s; 0.95 of
    # the diameter of the ball is what the row moves.
    mechanism = TwoStagePCA.calibrated(8.0, 1e-2)
    size, mu = 2000, mechanism.mean.split.noise(3).mu
    for pair in (mechanism.canonical_pairs()[0], mechanism.canonical_pairs()[-1]):
        ratios = []
        for seed, rows in enumerate((pair.data, pair.neighbour)):
            basis = mechanism.draw(rows, size, rng=rng(seed))[:, :, 0]
            ratios.append((basis[:, 1] + basis[:, 2]) / basis[:, 0])
        spread = stats.median_abs_deviation(ratios[0], scale="normal")
        shift = (np.median(ratios[0]) - np.median(ratios[1])) / spread
        # 6 deviations of the difference of medians, and 0.1 for the deviation's own.
        error = 6 * 1.2533 * np.sqrt(2 / size)
        assert shift <= 1.1 * mu + error
        assert shift >= 0.8 * mu - error


def replace_norm(mechanism, norm):
    covariance = GOEGaussian.calibrated(
        1.0, 1e-6, relation="replace-one", row_norm=norm
    )
    return replace(mechanism, covariance=covariance)


# Promises
def test_parts_are_as_promised_and_others_refused():
    mechanism = TwoStagePCA.calibrated(0.7, 1e-5, n_components=2, row_norm=3.0)
    assert mechanism.claim == ApproxDP(0.7, 1e-5)
    assert mechanism.covariance.claim == ApproxDP(0.7, 1e-5)
    assert mechanism.covariance.relation is Relation.REPLACE_ONE
    assert mechanism.covariance.row_norm == mechanism.row_norm == 3.0
    assert mechanism.scale_finder.claim == ApproxDP(0.7, 1e-5)
    assert mechanism.mean.split == GaussianSplit(0.7, 1e-5)
    assert (mechanism.budget.epsilon, mechanism.budget.delta) == (0.7, 1e-5)
    assert mechanism.budget.rule == "parallel"
    assert mechanism.worst_case().data.shape[1] == 3
    refuses("dimension must be an integer >= 3", mechanism.worst_case, 2)
    assert build("two-stage-pca", n_components=2, row_norm=2.0).rank == 2
    # d k histograms share what d of them have to themselves.
    split = TwoStagePCA.calibrated(1.0, 1e-6, n_components=3).mean.split
    assert split.noise(60).counts.scale == pytest.approx(
        split.noise(20).counts.scale * np.sqrt(3), rel=1e-6
    )
    with pytest.raises(InputError, match="relation of two-stage-pca must be one of"):
        build("two-stage-pca", relation="add-remove")
    wrong = GOEGaussian.calibrated(1.0, 1e-5, relation="add-remove")
    with pytest.raises(InputError, match=r"covariance must be .*got 'add-remove'"):
        replace(TwoStagePCA.calibrated(1.0, 1e-5), covariance=wrong)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("number", range(5), ids=PAIRS)
def test_pairs_differ_in_one_row_of_the_part_that_they_name(number, k):
    mechanism = TwoStagePCA.calibrated(2.0, 1e-3, n_components=k, row_norm=4.0)
    pair = mechanism.canonical_pairs()[number]
    half = len(pair.data) // 2
    mean = half + scale_rows(half, mechanism.scale_share)
    (place,) = np.flatnonzero((pair.data != pair.neighbour).any(axis=1))
    begin, end = [
        *((mean, 2 * half), (0, half), (half, mean), (half, mean), (mean, 2 * half))
    ][number]
    assert begin <= place < end
    for rows in (pair.data, pair.neighbour):
        assert np.linalg.norm(rows, axis=1).max() <= 4.0
    runs = mechanism.transcript(pair.data, 60, rng=rng(1))
    failed = np.isnan(runs["means"]).any(axis=(1, 2)).mean()
    assert {1: failed == 1, 3: 0 < failed < 1}.get(number, failed == 0)
    if number == 2:
        assert len(np.unique(runs["scales"])) == 2
    if number == 4:
        widths = mechanism.mean.tail.width(runs["scales"])
        away = np.abs(runs["means"]).max(axis=(1, 2)) / widths
        assert (away > 2.0**40).all()


def test_rows_are_clipped_and_bad_data_named():
    mechanism = TwoStagePCA.calibrated(**LOUD, row_norm=1.0)
    rows = 30 * graded(300, [1.0, 0.4])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    one, two = (mechanism.draw(data, 3, rng=rng(1)) for data in (rows, rows / lengths))
    np.testing.assert_allclose(one, two, atol=1e-9)
    mechanism = TwoStagePCA.calibrated(1.0, 1e-5, n_components=4)
    for bad, message in (
        (np.ones((50, 3)), "n_components must be at most the length of a row, 3"),
        (np.ones((7, 4)), "data must have at least 8 rows, got 7"),
        (np.ones((9, 4, 4)), "data must be rows"),
        (moments.as_moments(np.ones((9, 4))), "row_norm must be that of the stream"),
    ):
        refuses(message, mechanism.draw, bad, 1, rng=rng())
