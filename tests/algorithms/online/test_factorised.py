"""Prefix sums by a root: its coefficients, its noise, its promise, and its regret.

Type-I error: every entry of a covariance is compared with 1e5 trials at 7 standard
errors, 2 * 36 * 2.6e-12 < 1e-9 for a correct implementation. The rest is deterministic.
"""

from fractions import Fraction
from math import comb, pi, sqrt

import numpy as np
import pytest
from refusals import refused, refuses
from seeded import rng

from dpaudit import GaussianDP, Pair, Relation
from dpaudit.algorithms import FactorisedOnlinePCA, FactorisedSums, TreeAggregation
from dpaudit.algorithms.online import factorised as toeplitz
from dpaudit.codec import encode, rebuild
from dpaudit.gaussian import gaussian_mu
from dpaudit.testing import run_conformance

POLES = [None, 1, 8]
poles = pytest.mark.parametrize("poles", POLES)


def lower(series):
    n = len(series)
    return np.array(
        [[series[t - s] if s <= t else 0.0 for s in range(n)] for t in range(n)]
    )


def test_the_root_is_the_binomial_series():
    exact = [Fraction(comb(2 * k, k), 4**k) for k in range(30)]
    np.testing.assert_allclose(toeplitz.root(30), [float(f) for f in exact], rtol=1e-14)
    square = [sum(exact[i] * exact[k - i] for i in range(k + 1)) for k in range(30)]
    assert set(square) == {Fraction(1)}
    inverse = lower(toeplitz.root_inverse(30))
    np.testing.assert_allclose(
        inverse @ lower(toeplitz.root(30)), np.eye(30), atol=1e-12
    )


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


def test_the_noise_is_two_fifths_of_that_of_a_tree():
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
def test_they_conform(poles):
    run_conformance(FactorisedSums.calibrated(2.0, 1e-3, poles=poles), size=500)
    online = FactorisedOnlinePCA.calibrated(2.0, 1e-3, length=9, poles=poles)
    run_conformance(online, size=100)
    assert rebuild(encode(online)) == online


test_bad_options_are_refused = refused(
    ({"poles": 0}, "poles must be an integer >= 1, got 0"),
    ({"poles": 2.5}, "poles must be an integer >= 1, got 2.5"),
    ({"length": 0}, "length must be an integer >= 1, got 0"),
    by=lambda kind, options: kind.calibrated(1.0, 1e-5, **options),
    each=(FactorisedSums, FactorisedOnlinePCA),
)


def test_bad_rows_are_refused():
    mechanism = FactorisedSums.calibrated(1.0, 1e-5, length=2)
    refuses("NaN or infinit", mechanism.draw, [[np.nan, 1.0]], 1, rng=rng())
    refuses("at most the 2 rows", mechanism.draw, np.zeros((3, 2)), 1, rng=rng())
    assert mechanism.noise.mu == gaussian_mu(1.0, 1e-5)
