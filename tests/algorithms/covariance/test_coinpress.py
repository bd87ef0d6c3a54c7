"""CoinPress: sensitivities, the steps by hand, what it promises, bad input.

Type-I error: 1e-9 for the case that names a null hypothesis, at fixed seeds.
"""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import rng

from dpaudit import ApproxDP, Relation
from dpaudit.algorithms import CoinPress, GOEGaussian, PublishedCoinPress
from dpaudit.gaussian import gaussian_delta, gaussian_epsilon
from dpaudit.rows import clip_rows
from dpaudit.subspace import largest_principal_angle_sine

TYPE_I_ERROR = 1e-9
KINDS = CoinPress, PublishedCoinPress
kinds = pytest.mark.parametrize("kind", KINDS)


def mus(mechanism):
    return mechanism.mu * np.sqrt(np.array(mechanism.shares) / sum(mechanism.shares))


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.data())
def test_no_step_moves_further_than_its_share(seed, kind, data):
    generator, d = rng(seed), data.draw(st.integers(1, 5))
    # A large mu, so that what later rows are whitened by is that of the data.
    mechanism = kind.from_mu(data.draw(st.sampled_from([1.0, 1e4])), row_norm=2.0)
    rows = generator.standard_normal((30, d)) * 0.1 ** np.arange(d)
    seen = mechanism.transcript(rows, 4, rng=generator)
    other = rows.copy()
    size = data.draw(st.sampled_from([0.01, 1.0, 30.0]))
    other[3] = size * generator.standard_normal(d)
    near, far = (mechanism.step_means(seen, x)["steps"] for x in (rows, other))
    moved = np.linalg.norm(near - far, axis=2)
    assert np.all(moved <= mus(mechanism) * (1 + 1e-9))


@kinds
def test_the_first_step_moves_so_far_and_the_later_ones_nearly(kind):
    mechanism = kind.from_mu(0.5, row_norm=3.0)
    pair = mechanism.worst_case()
    sides = pair.data, pair.neighbour
    assert pair.relation is Relation.REPLACE_ONE
    seen = mechanism.transcript(pair.data, 40, rng=rng(1))
    one, two = (mechanism.step_means(seen, x)["steps"] for x in sides)
    moved = np.linalg.norm(one - two, axis=2)
    np.testing.assert_allclose(moved[:, 0], mus(mechanism)[0], rtol=1e-12)
    assert np.median(moved, axis=0) == pytest.approx(mus(mechanism), rel=0.2)
    # And the exact loss is that of two normal laws so far apart.
    loss = mechanism.transcript_loss(seen, *sides)
    square = (moved**2).sum(axis=1)
    noise = ((one - two) * (seen["steps"] - one)).sum(axis=(1, 2))
    np.testing.assert_allclose(loss, square / 2 + noise)


def by_hand(mechanism, rows, values):
    """Yield the mean of each step in units of noise, and at last the release."""
    n, d = rows.shape
    published = isinstance(mechanism, PublishedCoinPress)
    gamma = sqrt(d + 2 * sqrt(d * log(1 / 0.1)) + 2 * log(1 / 0.1))
    eta = 0.5 * (2 * sqrt(d / n) + sqrt(d / n) ** 2)
    whiten = np.eye(d) * gamma / mechanism.row_norm
    for i, mu in enumerate(mus(mechanism)):
        deviation = gamma**2 / (n * sqrt(mu**2 / 2))
        mean = np.zeros((d, d))
        for row in rows:
            w = whiten @ row
            w = w * min(1.0, gamma / np.linalg.norm(w))
            mean += np.outer(w, w) / n
        ratio = 1.0 if published else sqrt(2)
        above = [(j, k) for j in range(d) for k in range(j, d)]
        unit = {(j, k): deviation / (1.0 if j == k else ratio) for j, k in above}
        yield np.array([mean[at] / unit[at] for at in above])
        noisy = np.zeros((d, d))
        for at, value in zip(above, values[i], strict=True):
            noisy[at] = noisy[at[::-1]] = value * unit[at]
        if published:
            u, s, _ = np.linalg.svd(noisy)
            noisy = u @ np.diag(s) @ u.T
        else:
            eigenvalues, axes = np.linalg.eigh(noisy)
            noisy = axes @ np.diag(np.maximum(eigenvalues, 0)) @ axes.T
        last, back = noisy, np.linalg.inv(whiten)
        eigenvalues, axes = np.linalg.eigh(noisy + eta * np.eye(d))
        whiten = axes @ np.diag(eigenvalues**-0.5) @ axes.T @ whiten
    yield back @ last @ back.T


@kinds
@pytest.mark.parametrize("mu", [0.1, 20.0])
def test_steps_are_those_of_the_definition_and_noise_is_normal(kind, mu):
    # Null hypothesis: values less means are independent and standard normal.
    mechanism = kind.from_mu(mu, row_norm=0.7)
    rows = rng(2).standard_normal((60, 4)) * [1.0, 0.3, 0.1, 0.02]
    seen = mechanism.transcript(rows, 400, rng=rng(3))["steps"]
    means = mechanism.step_means({"steps": seen}, rows)["steps"]
    releases = mechanism.draw(rows, 400, rng=rng(3))
    assert np.linalg.eigvalsh(releases).min() > -1e-12
    for trial in range(3):
        *steps, release = by_hand(mechanism, clip_rows(rows, 0.7), seen[trial])
        np.testing.assert_allclose(means[trial], steps, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(releases[trial], release, rtol=1e-7, atol=1e-12)
    noise = (seen - means).reshape(400, -1)
    assert stats.kstest(noise.ravel(), "norm").pvalue >= TYPE_I_ERROR
    law = stats.chi2(noise.shape[1])
    assert stats.kstest((noise**2).sum(axis=1), law.cdf).pvalue >= TYPE_I_ERROR


def test_the_promise_is_exact_or_that_of_rho():
    ours = CoinPress.calibrated(1.0, 1e-5)
    assert gaussian_delta(1.0, ours.mu) == pytest.approx(1e-5, rel=1e-6)
    theirs = PublishedCoinPress.as_published(1.0, 1e-5)
    rho = theirs.mu**2 / 2
    assert rho + 2 * sqrt(rho * log(1e5)) == pytest.approx(1.0, rel=1e-12)
    assert gaussian_epsilon(1e-5, theirs.mu) == pytest.approx(0.74, abs=0.005)
    assert ours.claim == theirs.claim == ApproxDP(1.0, 1e-5)
    assert theirs.shares == (0.25, 0.75)
    refuses("at least one share", CoinPress.from_mu, 1.0, shares=())
    refuses("shares must be", CoinPress.from_mu, 1.0, shares=(0.5, 0.0))


def test_a_bound_that_is_ten_times_too_large_is_forgiven():
    """Of each ten releases the median: of one noisy second moment 20 times as much."""
    rows = rng(4).standard_normal((20_000, 10)) * np.where(np.arange(10) < 1, 1, 0.1)
    rows /= 15
    axis = np.eye(10)[:, :1]
    errors = []
    for kind in CoinPress, GOEGaussian:
        options = {"relation": "replace-one"} if kind is GOEGaussian else {}
        mechanism = kind.calibrated(1.0, 1e-6, **options)
        bases = mechanism.components(mechanism.draw(rows, 11, rng=rng(5)), 1)
        errors.append(np.median(largest_principal_angle_sine(bases, axis)))
    assert errors[0] < 0.05 * errors[1]
    release = CoinPress.calibrated(1.0, 1e-6).release(rows, rng=rng(6))
    assert np.trace(release) == pytest.approx((rows**2).sum() / 20_000, rel=0.1)


def test_data_that_cannot_be_read_twice_or_have_no_rows_are_refused():
    draw = CoinPress.from_mu(1.0).draw
    for data, message in (
        (iter([np.eye(2)]), "data must be readable more than once"),
        (np.zeros((0, 3)), "data must have at least one row"),
        ([[np.nan, 1.0]], "finite"),
    ):
        refuses(message, draw, data, 2, rng=rng(0))
    blocks = [np.eye(3), np.ones((2, 3))]
    parts = draw(blocks, 2, rng=rng(0))
    np.testing.assert_allclose(parts, draw(np.vstack(blocks), 2, rng=rng(0)))
    assert draw(blocks, 0, rng=rng(0)).shape == (0, 3, 3)
