"""Ratios of densities that are fitted to scores: what they learn, and when not."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import laplace, norm

from dpaudit.audit.betting.density import sides_of
from dpaudit.audit.betting.events import ScoreRecord


def recorded(on_data, on_neighbour):
    record = ScoreRecord()
    record.add(0, on_data)
    record.add(1, on_neighbour)
    return record, record.events(0)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_a_linear_log_ratio_is_found(share):
    # Counts without chance: the very shares of a logistic law, unequal sizes or not.
    centre = np.linspace(3, -3, 40)
    mass = norm.pdf(centre)
    truth = expit(2 * centre)
    counts = 1e5 * mass * np.stack([share * truth, (1 - share) * (1 - truth)])
    assert sides_of(centre, *counts) == pytest.approx(truth, abs=0.01)


def test_a_quadratic_log_ratio_is_found():
    centre = np.linspace(4, -4, 60)
    p, q = norm.pdf(centre, scale=1.5), norm.pdf(centre)
    assert sides_of(centre, 1e5 * p, 1e5 * q) == pytest.approx(p / (p + q), abs=0.02)


def test_a_log_ratio_that_is_constant_in_the_tails_is_found():
    centre = np.linspace(6, -5, 111)
    p, q = laplace.pdf(centre, 1.0), laplace.pdf(centre)
    found = sides_of(centre, 1e5 * p, 1e5 * q)
    tails = (centre > 1.2) | (centre < -0.2)
    assert found[tails] == pytest.approx((p / (p + q))[tails], abs=0.02)


def test_chance_does_not_look_like_a_difference():
    rng = np.random.default_rng(0)
    worst = []
    for _ in range(50):
        n = rng.multinomial(400, np.full(30, 1 / 30))
        hits = rng.binomial(n, 0.5)
        used = n > 0
        found = sides_of(np.linspace(1, -1, 30)[used], hits[used], (n - hits)[used])
        worst.append(np.abs(found - 0.5).max())
    assert np.median(worst) < 0.08  # the shares of the cells miss by 0.25


def test_rare_events_are_known_better_than_by_their_hits():
    # Of normal scores on either side, the ratio of probabilities beyond 2.5.
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        record, events = recorded(rng.normal(1, 1, 400), rng.normal(0, 1, 400))
        far = int(np.argmin(np.abs(events.threshold - 2.5)))
        t = events.threshold[far]
        truth = norm.logsf(t - 1) - norm.logsf(t)
        both = events, record.modelled(events)
        errors.append([np.log(e.p[far] / e.q[far]) - truth for e in both])
    counted, fitted = np.sqrt(np.mean(np.square(errors), axis=0))
    assert fitted < 0.5 * counted


def test_few_scores_an_infinite_one_and_a_bad_fit_leave_events_alone():
    rng = np.random.default_rng(2)
    assert sides_of(np.ones(1), np.array([3.0]), np.array([4.0])) is None
    record, events = recorded(*(rng.integers(0, high, 400) * 1.0 for high in (5, 4)))
    assert 0 < len(events) < 8
    assert record.modelled(events) is events
    x, y = rng.normal(1, 1, 400), rng.normal(0, 1, 400)
    record, events = recorded(x[:40], y[:40])
    assert record.modelled(events) is events
    x[0] = -np.inf
    record, events = recorded(x, y)
    assert record.modelled(events) is events
    # Every other unit interval belongs to one side alone.
    x = rng.integers(0, 6, 4000) * 2 + rng.random(4000)
    y = rng.integers(0, 6, 4000) * 2 + 1 + rng.random(4000)
    record, events = recorded(x, y)
    assert record.modelled(events) is events
