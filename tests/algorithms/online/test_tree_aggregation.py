"""Prefix sums by trees of noisy nodes, and by a root of their matrix.

Their shape, their noise, what it hides, and what it does not.

Type-I error. Seeds are fixed. Every entry of a covariance is compared with its value at
7 standard errors; with 1e5 trials or more each is normal to good approximation: (28 + 2
* 36) * 2.6e-12 < 1e-9 for a correct implementation. The rest is deterministic.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import comb, log, pi, sqrt

import numpy as np
import pytest
from online_oracles import nodes_of_row
from refusals import refused, refuses
from scipy.stats import multivariate_normal
from seeded import in_ball, rng

from dpaudit import ApproxDP, GaussianDP, Pair, Relation, UnsupportedError
from dpaudit.algorithms import FactorisedOnlinePCA, FactorisedSums, TreeAggregation
from dpaudit.algorithms.online import factorised as toeplitz
from dpaudit.algorithms.online import tree_aggregation
from dpaudit.algorithms.online.noise import (
    CalibratedNoise,
    PublishedNodeNoise,
    accumulate,
    differences,
    pack,
    pack_rows,
    parent,
    tree_height,
    unpack,
)
from dpaudit.codec import encode, rebuild
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.mechanism import (
    HasExactClaim,
    HasGaussianSteps,
    HasPrivacyLoss,
    HasTranscript,
)
from dpaudit.testing import run_conformance

LENGTHS = [1, 2, 3, 5, 7, 8, 12, 16, 31, 33]
lengths = pytest.mark.parametrize("length", LENGTHS)

MECHANISMS = {
    "tree": TreeAggregation.from_mu(2.0),
    "declared": TreeAggregation.from_mu(2.0, length=11, row_norm=2.0),
    "published": TreeAggregation.as_published(5.0, 0.5),
    "stepwise": tree_aggregation.StepwiseSums.calibrated(2.0, 1e-3),
    "fresh": tree_aggregation.FreshNoiseTree.planted(2.0, 1e-3, length=9),
}
mechanisms = pytest.mark.parametrize("name", MECHANISMS)


# The tree
@lengths
def test_prefixes_are_sums_of_their_nodes_as_many_as_ones_and_rows_in_few(length):
    rows = rng(length).standard_normal((length, 3))
    nodes = differences(rows.cumsum(axis=0))
    np.testing.assert_allclose(accumulate(nodes), rows.cumsum(axis=0), atol=1e-12)
    for step in range(1, length + 1):
        held = rows[parent(step) : step].sum(axis=0)
        np.testing.assert_allclose(nodes[step - 1], held, atol=1e-12)
    assert np.shares_memory(rows, rows.view())  # inputs are left alone
    np.testing.assert_array_equal(accumulate(rows[:1]), rows[:1])
    mixing = accumulate(np.eye(length))
    assert set(np.unique(mixing)) <= {0.0, 1.0}
    ones = [step.bit_count() for step in range(1, length + 1)]
    np.testing.assert_array_equal(mixing.sum(axis=1), ones)
    shown = differences(np.tri(length))
    assert set(np.unique(shown)) <= {0.0, 1.0}
    for row in range(1, length + 1):
        nodes = nodes_of_row(row, length)
        assert tuple(np.flatnonzero(shown[:, row - 1]) + 1) == nodes
        assert all(after >= 2 * (after - before) for before, after in pairwise(nodes))
    counts = shown.sum(axis=0)
    assert counts.max() == counts[0] == tree_height(length)
    assert 2 ** (tree_height(length) - 1) <= length < 2 ** tree_height(length)


@pytest.mark.parametrize("ratio", [1.0, sqrt(2)])
def test_coordinates_are_an_isometry_and_back(ratio):
    matrices = rng().standard_normal((4, 3, 5, 5))
    matrices += matrices.swapaxes(-1, -2)
    packed = pack(matrices, ratio)
    assert packed.shape == (4, 3, 15)
    np.testing.assert_allclose(unpack(packed, ratio), matrices, atol=1e-14)
    upper = matrices if ratio > 1 else np.triu(matrices)
    np.testing.assert_allclose(
        np.linalg.norm(packed, axis=-1), np.linalg.norm(upper, axis=(-2, -1))
    )
    rows = rng(1).standard_normal((6, 5))
    products = rows[:, :, None] * rows[:, None]
    np.testing.assert_allclose(pack_rows(rows, ratio), pack(products, ratio))


# Noise
def test_the_covariance_of_prefixes_is_that_of_their_common_nodes():
    m, size = 7, 200_000
    mechanism = TreeAggregation.from_mu(1.0)
    releases = mechanism.draw(np.zeros((m, 1)), size, rng=rng(3))[:, :, 0, 0]
    deviation = mechanism.deviation(m)
    assert deviation == pytest.approx(sqrt(2 * 3))
    mixing = accumulate(np.eye(m))
    expected = mixing @ mixing.T
    found = releases.T @ releases / size / deviation**2
    # Var(xy) = Var x Var y + Cov^2 for normal x and y.
    diagonal = np.diag(expected)
    error = np.sqrt((np.outer(diagonal, diagonal) + expected**2) / size)
    assert (np.abs(found - expected) < 7 * error).all()
    # It can fail: one noise per level has another covariance.
    wrong = tree_aggregation.ReusedNoiseTree.planted(1.0, 1e-5, length=m)
    wrong = replace(wrong, noise=mechanism.noise)
    releases = wrong.draw(np.zeros((m, 1)), size, rng=rng(3))[:, :, 0, 0]
    found = releases.T @ releases / size / deviation**2
    assert not (np.abs(found - expected) < 7 * error).all()


@pytest.mark.parametrize("name", ["tree", "published"])
def test_noise_matrices_are_symmetric_and_of_the_right_shape(name):
    mechanism = MECHANISMS[name]
    noise = mechanism.draw(np.zeros((1, 3)), 100_000, rng=rng(4))[:, 0]
    np.testing.assert_array_equal(noise, noise.swapaxes(-1, -2))
    spread = noise.std(axis=0)
    above = mechanism.deviation(1) / mechanism.noise.ratio
    expected = np.full((3, 3), above) + np.diag(
        np.full(3, mechanism.deviation(1) - above)
    )
    # A sample deviation errs by 1/sqrt(2 size) = 0.22 %.
    np.testing.assert_allclose(spread, expected, rtol=0.016)


def test_published_constants_are_those_of_section_2_3_2():
    mechanism = TreeAggregation.as_published(0.5, 1e-6, length=100, row_norm=3.0)
    assert mechanism.deviation() ** 2 == pytest.approx(
        81 * 50 * log(100 / 1e-6) ** 3 / 0.25
    )
    assert mechanism.claim == ApproxDP(0.5, 1e-6)
    # As printed at (1, 1e-5), m = 8: true, with room for a factor of 33.
    assert TreeAggregation.as_published(1.0, 1e-5, length=8).mu() < 0.00799
    for epsilon, kept in ((30_322.0, True), (30_323.0, False)):
        mechanism = TreeAggregation.as_published(epsilon, 1e-5, length=8)
        assert (mechanism.mu() <= gaussian_mu(epsilon, 1e-5)) == kept
    assert TreeAggregation.as_published(1.0, 0.9, length=1).mu() > gaussian_mu(1.0, 0.9)
    # For all symmetric matrices of spectral norm 1, -I may become I.
    per_unit = (
        2 * sqrt(4) / TreeAggregation.as_published(1.0, 1e-5, length=8).deviation()
    )
    assert sqrt(563) * per_unit < gaussian_mu(1.0, 1e-5) < sqrt(564) * per_unit


# Privacy
@mechanisms
def test_the_loss_is_that_of_a_multivariate_normal(name):
    mechanism = MECHANISMS[name]
    n, d = 9, 2
    data, other = in_ball(n, d), in_ball(n, d)
    other[2] = [0.1, -0.9]
    releases = mechanism.draw(data, 5, rng=rng(5))
    rows, columns = np.triu_indices(d)
    flat = releases[:, :, rows, columns].reshape(5, -1)
    mixing = mechanism.mixed(np.eye(n))
    spread = np.where(rows == columns, 1.0, 1 / mechanism.noise.ratio) ** 2
    covariance = np.kron(mixing @ mixing.T, np.diag(spread))
    covariance *= mechanism.deviation(n) ** 2
    expected = 0.0
    for side, sign in ((data, 1), (other, -1)):
        moments = np.cumsum(side[:, :, None] * side[:, None], axis=0)
        mean = moments[:, rows, columns].ravel()
        expected += sign * multivariate_normal(mean, covariance).logpdf(flat)
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose(loss, expected, atol=1e-8)
    # And mu is the Mahalanobis distance of the means.
    shift = np.cumsum(data[:, :, None] * data[:, None], axis=0)
    shift -= np.cumsum(other[:, :, None] * other[:, None], axis=0)
    shift = shift[:, rows, columns].ravel()
    mu = sqrt(shift @ np.linalg.solve(covariance, shift))
    exact = mechanism.exact_claim(Pair(data, other))
    assert exact.parameters["mu"] == pytest.approx(mu)


@lengths
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_sensitivity_is_attained_and_never_passed(length, dimension):
    mechanism = TreeAggregation.from_mu(1.3, length=length)
    worst = mechanism.exact_claim(replace(mechanism).worst_case(dimension))
    reached = 1.3 if dimension > 1 else 1.3 / sqrt(2)
    assert worst.parameters["mu"] == pytest.approx(reached)
    for bound in (1.0, 2.0):
        sums = TreeAggregation.from_mu(1.3, length=length, row_norm=bound)
        assert sums.mu() == pytest.approx(1.3)
    generator = rng(length)
    for _ in range(20):
        data = in_ball(length, dimension, generator.integers(2**31))
        other = data.copy()
        place = generator.integers(length)
        other[place] = in_ball(1, dimension, generator.integers(2**31))[0] * 0.999
        mu = mechanism.exact_claim(Pair(data, other)).parameters["mu"]
        assert mu <= 1.3 * (1 + 1e-12)
        share = len(nodes_of_row(place + 1, length)) / tree_height(length)
        assert mu <= 1.3 * sqrt(share) * (1 + 1e-12)


def test_first_rows_are_in_all_steps_and_fresh_noise_loses_what_is_said():
    sums = tree_aggregation.StepwiseSums.as_published(
        0.7, 1e-4, length=25, row_norm=2.0
    )
    mu = sums.exact_claim(sums.worst_case()).parameters["mu"]
    assert mu == pytest.approx(sums.composed_claim().parameters["mu"])
    assert mu == pytest.approx(5 * sums.step_claim().parameters["mu"])
    calibrated = tree_aggregation.StepwiseSums.calibrated(0.7, 1e-4)
    exact = calibrated.exact_claim(calibrated.worst_case())
    assert exact.epsilon_at(1e-4) == pytest.approx(0.7, rel=1e-6)
    for length, ratio in ((8, 1.2), (16, 1.4), (64, 1.9)):
        planted = tree_aggregation.FreshNoiseTree.planted(1.0, 1e-5, length=length)
        exact = planted.exact_claim(planted.worst_case()).parameters["mu"]
        ones = [step.bit_count() for step in range(1, length + 1)]
        expected = sqrt(sum(1 / count for count in ones) / tree_height(length))
        assert exact / gaussian_mu(1.0, 1e-5) == pytest.approx(expected)
        assert expected == pytest.approx(ratio, abs=0.05)


def test_calibrated_noise_is_the_least_and_the_same_moment_loses_nothing():
    for length in (None, 8, 100):
        mechanism = TreeAggregation.calibrated(1.5, 1e-4, length=length)
        exact = mechanism.exact_claim(mechanism.worst_case())
        assert gaussian_epsilon(1e-4, exact.parameters["mu"]) == pytest.approx(1.5)
        assert mechanism.claim == ApproxDP(1.5, 1e-4)
    assert TreeAggregation.from_mu(1.5).claim == GaussianDP(1.5)
    pair = Pair([[0.6, -0.8], [1.0, 0.0]], [[-0.6, 0.8], [1.0, 0.0]])
    assert TreeAggregation.from_mu(1.0).exact_claim(pair).delta_at(0.0) == 0


@mechanisms
def test_transcripts_and_releases_say_the_same(name):
    mechanism = MECHANISMS[name]
    data, other = in_ball(6, 2), in_ball(6, 2)
    other[0] = 0
    sums = mechanism.transcript(data, 4, rng=rng(8))
    means = mechanism.step_means(sums, data)["sums"]
    releases = mechanism.draw(data, 4, rng=rng(8))
    packed = pack(releases, mechanism.noise.ratio)
    rebuilt = mechanism.unmixed(packed) / mechanism.deviation(6)
    np.testing.assert_allclose(rebuilt, sums["sums"], atol=1e-9)
    # The loss of a transcript, by its steps, is that of the release.
    ours = ((sums["sums"] - means) ** 2).sum(axis=(1, 2))
    theirs = mechanism.step_means(sums, other)["sums"]
    theirs = ((sums["sums"] - theirs) ** 2).sum(axis=(1, 2))
    loss = mechanism.privacy_loss(releases, data, other)
    np.testing.assert_allclose((theirs - ours) / 2, loss, atol=1e-9)
    assert mechanism.step_scales == {"sums": 1.0}


@mechanisms
def test_they_conform(name):
    mechanism = MECHANISMS[name]
    run_conformance(mechanism, size=300)
    for capability in (HasExactClaim, HasPrivacyLoss, HasTranscript, HasGaussianSteps):
        assert isinstance(mechanism, capability)
    assert rebuild(encode(mechanism)) == mechanism
    assert len({pair.data.tobytes() for pair in mechanism.canonical_pairs()}) == 3


def test_without_noise_a_release_is_the_statistic_and_many_are_made_in_parts():
    quiet = TreeAggregation.from_mu(1e7)
    data = 3 * in_ball(6, 2)
    clipped = quiet.prepared(data)
    assert np.linalg.norm(clipped, axis=1).max() <= 1
    moments = np.cumsum(clipped[:, :, None] * clipped[:, None], axis=0)
    np.testing.assert_allclose(quiet.statistic(data), moments)
    np.testing.assert_allclose(quiet.release(data, rng=rng()), moments, atol=1e-5)
    # Prefixes of so many coordinates are noised two at a time.
    mechanism, data = TreeAggregation.from_mu(1.0), in_ball(100, 100)
    whole = mechanism.draw(data, 5, rng=rng())
    np.testing.assert_array_equal(whole[:2], mechanism.draw(data, 2, rng=rng()))
    assert len(np.unique(whole[:, 0, 0, 0])) == 5
    assert mechanism.draw(data, 0, rng=rng()).shape == (0, 100, 100, 100)


# Planted bugs


def test_reused_noise_hides_nothing():
    planted = tree_aggregation.ReusedNoiseTree.planted(1.0, 1e-5, length=8)
    rows = in_ball(8, 2)
    one, two, three, *_ = planted.release(rows, rng=rng())
    exact = np.outer(rows[2], rows[2]) - np.outer(rows[0], rows[0])
    np.testing.assert_allclose(three - two - one, exact, atol=1e-12)
    # Different levels do not share their noise.
    assert np.abs(two - one - np.outer(rows[1], rows[1])).max() > 1
    pair = planted.worst_case()
    for ask in (
        lambda: planted.exact_claim(pair),
        lambda: planted.privacy_loss(None, *[pair.data] * 2),
        lambda: planted.step_means({"sums": np.zeros((1, 8, 3))}, pair.data),
    ):
        refuses("singular", ask, error=UnsupportedError)
    run_conformance(planted, size=300)


# Bad input
test_bad_data_are_named = refused(
    (np.zeros((12, 2)), "at most the 11 rows of the declared length, got 12"),
    by=lambda use, data: use(data, 2, rng=rng()),
    each=(MECHANISMS["declared"].draw, MECHANISMS["declared"].transcript),
)


POLES = [None, 1, 8]
poles = pytest.mark.parametrize("poles", POLES)


def lower(series):
    n = len(series)
    return np.array(
        [[series[t - s] if s <= t else 0.0 for s in range(n)] for t in range(n)]
    )


def test_roots_are_the_binomial_series_and_their_noise_two_fifths_of_a_trees():
    exact = [Fraction(comb(2 * k, k), 4**k) for k in range(30)]
    np.testing.assert_allclose(toeplitz.root(30), [float(f) for f in exact], rtol=1e-14)
    square = [sum(exact[i] * exact[k - i] for i in range(k + 1)) for k in range(30)]
    assert set(square) == {Fraction(1)}
    inverse = lower(toeplitz.root_inverse(30))
    np.testing.assert_allclose(
        inverse @ lower(toeplitz.root(30)), np.eye(30), atol=1e-12
    )
    m = 16_000
    ones = np.array([t.bit_count() for t in range(1, m + 1)])
    tree = TreeAggregation.from_mu(1.0, length=m).deviation() * np.sqrt(ones)
    for count in (None, 10):
        ours = FactorisedSums.from_mu(1.0, length=m, poles=count).deviations()
        assert ours.mean() / sqrt(2) == pytest.approx(3.98, abs=0.005)
        assert ours.mean() < 0.41 * tree.mean()
    # A declared length that is much too long.
    grown = [FactorisedSums.from_mu(1.0, poles=16, length=10**k) for k in (4, 6)]
    assert grown[1].deviation() < 1.2 * grown[0].deviation()


@pytest.mark.parametrize("length", [1, 2, 3, 7, 100, 5000])
def test_an_inverse_is_one(length):
    series = toeplitz.few_poles(length, 7).coefficients(length)
    product = toeplitz.multiply(series, toeplitz.inverse(series)[:, np.newaxis])
    np.testing.assert_allclose(product[:, 0], np.eye(1, length)[0], atol=1e-12)


@pytest.mark.parametrize("length", [1, 5, 128, 129, 400])
def test_a_product_is_that_of_the_matrix(length):
    series, vectors = rng(1).random(length), rng(2).standard_normal((2, length, 3))
    expected = lower(series) @ vectors
    np.testing.assert_allclose(toeplitz.multiply(series, vectors), expected, atol=1e-10)


@pytest.mark.parametrize("length", [100, 16_000])
def test_poles_come_near_to_the_root_exponentially(length):
    root = toeplitz.root(length)
    errors = [
        np.abs(toeplitz.few_poles(length, j).coefficients(length) / root - 1).max()
        for j in (6, 12, 18)
    ]
    assert errors[1] < errors[0] / 50
    assert errors[2] < errors[1] / 50
    # The integral of the head of the module: all weights and ratios are in (0, 1).
    found = toeplitz.few_poles(length, 12)
    assert (found.weights > 0).all()
    assert ((found.ratios > 0) & (found.ratios < 1)).all()


@pytest.mark.parametrize(("count", "most"), [(6, 1.008), (10, 1.0025), (12, 1.00012)])
def test_the_overhead_is_what_is_said_and_below_the_bound(count, most):
    for length in (100, 1000, 16_000, 100_000):
        mechanism = FactorisedSums.from_mu(1.0, length=length, poles=count)
        assert mechanism.overhead() < most
        root = toeplitz.root(length)
        series = toeplitz.few_poles(length, count).coefficients(length)
        eta = np.abs(series / root - 1).max()
        rho = 4 * eta * sqrt(length / pi)
        assert rho >= 1 or mechanism.overhead() <= (1 + eta) / (1 - rho)
    assert FactorisedSums.from_mu(1.0, length=1000).overhead() == pytest.approx(1)
    # It would show a poor root.
    assert FactorisedSums.from_mu(1.0, length=1000, poles=1).overhead() > 1.5


@poles
def test_the_covariance_of_prefixes_is_that_of_the_root(poles):
    m, size = 6, 100_000
    mechanism = FactorisedSums.from_mu(2.0, poles=poles, row_norm=3.0)
    releases = mechanism.draw(np.zeros((m, 1)), size, rng=rng(3))[:, :, 0, 0]
    few = poles and toeplitz.few_poles(m, poles).coefficients(m)
    series = toeplitz.root(m) if poles is None else few
    mixing = lower(series)
    sensitivity = np.linalg.norm(np.linalg.solve(mixing, np.ones(m)))
    deviation = sqrt(2) * 9 * sensitivity / 2
    assert mechanism.deviation(m) == pytest.approx(deviation)
    expected = deviation**2 * mixing @ mixing.T
    np.testing.assert_allclose(mechanism.deviations(m), np.sqrt(np.diag(expected)))
    error = np.sqrt(
        (np.outer(np.diag(expected), np.diag(expected)) + expected**2) / size
    )
    found = releases.T @ releases / size
    assert (np.abs(found - expected) < 7 * error).all()
    # The other covariance that has the same determinant would be seen.
    assert not (np.abs(found - deviation**2 * np.eye(m)) < 7 * error).all()


@poles
@pytest.mark.parametrize("length", [1, 9, 200])
def test_the_promise_is_met_by_the_first_row_and_by_none_more(length, poles):
    mechanism = FactorisedSums.from_mu(1.5, length=length, poles=poles, row_norm=2.0)
    worst = mechanism.exact_claim(mechanism.worst_case())
    assert worst.parameters["mu"] == pytest.approx(1.5, rel=1e-10)
    generator = rng(length)
    for _ in range(5):
        rows = 4 * generator.standard_normal((length, 3))
        other = rows.copy()
        other[generator.integers(length)] = 4 * generator.standard_normal(3)
        exact = mechanism.exact_claim(Pair(rows, other, Relation.REPLACE_ONE))
        assert isinstance(exact, GaussianDP)
        assert exact.parameters["mu"] <= 1.5 * (1 + 1e-9)


@poles
def test_roots_conform(poles):
    run_conformance(FactorisedSums.calibrated(2.0, 1e-3, poles=poles), size=500)
    online = FactorisedOnlinePCA.calibrated(2.0, 1e-3, length=9, poles=poles)
    run_conformance(online, size=100)
    assert rebuild(encode(online)) == online


def test_bad_rows_and_other_bad_input_are_refused():
    mechanism = FactorisedSums.calibrated(1.0, 1e-5, length=2)
    refuses("at most the 2 rows", mechanism.draw, np.zeros((3, 2)), 1, rng=rng())
    assert mechanism.noise.mu == gaussian_mu(1.0, 1e-5)
    mechanism = MECHANISMS["tree"]
    refuses("mu must be a finite number > 0", CalibratedNoise, 0.0)
    refuses(r"delta must be in \(0, 1\)", PublishedNodeNoise, 1.0, 0.0)
    refuses("length must be an integer >= 1, got None", mechanism.deviation)
