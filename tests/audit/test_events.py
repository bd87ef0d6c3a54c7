"""Candidate events against a brute-force list of all thresholds."""

import numpy as np
import pytest

from dpaudit.audit.events import Events, candidates


def brute_force(on_data, on_neighbour):
    thresholds = np.unique(np.concatenate([on_data, on_neighbour]))[1:]
    n, m = len(on_data), len(on_neighbour)
    p = np.array([((on_data >= t).sum() + 0.5) / (n + 1) for t in thresholds])
    q = np.array([((on_neighbour >= t).sum() + 0.5) / (m + 1) for t in thresholds])
    return thresholds, p, q


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_smoothed_frequencies(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.5, 1, 300), rng.normal(0, 1, 200)
    events = candidates([(0, a, b)])
    for t, p, q in zip(events.threshold, events.p, events.q, strict=True):
        assert p == ((a >= t).sum() + 0.5) / 301
        assert q == ((b >= t).sum() + 0.5) / 201


@pytest.mark.parametrize("seed", range(5))
def test_no_thrown_away_event_is_much_better(seed):
    """For any slope, the kept events do nearly as well as the best of all."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.7, 1, 400), rng.normal(0, 1, 400)
    events = candidates([(0, a, b)])
    _, p, q = brute_force(a, b)
    for ratio in (0.2, 0.6, 1.0, 1.7, 4.0):
        best = np.max(p - ratio * q)
        kept = np.max(events.p - ratio * events.q)
        assert kept >= best - 0.02
    assert len(events) < 60


def test_atoms_and_infinities():
    a = np.array([np.inf] * 6 + [0.0] * 4)
    b = np.zeros(10)
    events = candidates([(3, a, b)])
    assert events.threshold.tolist() == [np.inf]
    assert events.attack.tolist() == [3]
    assert events.p[0] == pytest.approx(6.5 / 11)
    assert events.q[0] == pytest.approx(0.5 / 11)


def test_both_directions_are_kept():
    """An event rarer on D is as good as one rarer on D'."""
    a, b = np.zeros(50), np.concatenate([np.zeros(25), np.ones(25)])
    events = candidates([(0, a, b)])
    assert (events.q > events.p).any()


def test_attacks_compete_on_one_hull():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 500))
    good = noise + np.array([[2.0], [0.0]])
    events = candidates([(0, *noise), (1, *good)])
    assert (events.attack == 1).mean() > 0.7


def test_constant_scores_give_no_event():
    assert len(candidates([(0, np.ones(10), np.ones(10))])) == 0
    assert len(candidates([])) == 0


def test_single():
    event = Events.single(0.5, 0.3, 0.1, 20)
    assert len(event) == 1
    assert event.scored[0] == 20
