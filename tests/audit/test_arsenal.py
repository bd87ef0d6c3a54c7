"""The portfolio: honest scores, and no evidence from the last bits of a float."""

import numpy as np
import pytest

from dpaudit import Pair, PureDP, Relation
from dpaudit.attacks import ExactLoss, LogisticClassifier, MeanShift, Target
from dpaudit.audit import audit
from dpaudit.audit.arsenal import Arsenal, FittedAttack
from dpaudit.audit.events import candidates
from dpaudit.audit.sampling import DATA, NEIGHBOUR

PAIR = Pair([0.0], [0.0, 1.0])


class Laplace:
    """The Laplace mechanism with its exact loss, as anybody would write it."""

    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(size=size)

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]

    def privacy_loss(self, releases, data, other):
        return np.abs(releases - other.sum()) - np.abs(releases - data.sum())


def both_sides(mechanism, size, rng):
    return [mechanism.draw(d, size, rng=rng) for d in (PAIR.data, PAIR.neighbour)]


def test_floating_point_dust_is_no_evidence():
    """Where the loss is +-1 exactly, its last bits differ between D and D'.

    Null: Laplace at its epsilon. Each audit refutes with probability <= 1e-3 at most;
    unrounded, the very first one does.
    """
    for seed in range(3):
        result = audit(
            Laplace(), pair=PAIR, attacks=[ExactLoss()], max_samples=20_000, seed=seed
        )
        assert not result.refuted


def test_the_dust_is_there():
    """The test above can fail: equal losses do come out unequal before rounding."""
    rng = np.random.default_rng(0)
    mechanism, target = Laplace(), Target(Laplace(), PAIR)
    on_data, on_neighbour = both_sides(mechanism, 5000, rng)
    raw = mechanism.privacy_loss(on_data, PAIR.data, PAIR.neighbour)
    fitted = FittedAttack.fit(ExactLoss(), target, on_data, on_neighbour)
    near = np.abs(raw - 1) < 1e-6
    assert len(np.unique(raw[near])) > 1
    assert len(np.unique(fitted.score(target, on_data)[near])) == 1


def test_nan_scores_are_lowest():
    class Broken(Laplace):
        def privacy_loss(self, releases, data, other):
            return np.full(len(releases), np.nan)

    target = Target(Broken(), PAIR)
    fitted = FittedAttack.fit(ExactLoss(), target, np.zeros(3), np.ones(3))
    assert (fitted.score(target, np.zeros(2)) == -np.inf).all()


def test_learned_attacks_are_judged_on_what_they_did_not_see():
    """On pure noise in many dimensions a classifier looks perfect to itself only."""
    rng = np.random.default_rng(0)
    releases = rng.normal(size=(2, 60, 200))
    arsenal = Arsenal(
        Target(lambda d, g: g.normal(size=200), PAIR), [LogisticClassifier()]
    )
    arsenal.begin(*releases)
    events = arsenal.prepare()
    assert np.abs(events.p - events.q).max() < 0.4
    fitted = arsenal.fitted(0)
    target = Target(lambda d, g: g.normal(size=200), PAIR)
    seen = [fitted.score(target, side) > 0 for side in releases]
    assert seen[DATA].mean() - seen[NEIGHBOUR].mean() > 0.9


def test_learned_attacks_wait_when_others_apply():
    class Known(Laplace):
        sensitivity = None

        def statistic(self, data):
            return data.sum()

    arsenal = Arsenal(Target(Known(), PAIR), [MeanShift(), LogisticClassifier()])
    arsenal.begin(np.arange(20.0), np.arange(20.0) + 1)
    assert set(arsenal.prepare().attack.tolist()) == {0}


def test_counts_of_events():
    rng = np.random.default_rng(1)
    mechanism, target = Laplace(), Target(Laplace(), PAIR)
    arsenal = Arsenal(target, [ExactLoss()])
    arsenal.begin(
        *(mechanism.draw(d, 50, rng=rng) for d in (PAIR.data, PAIR.neighbour))
    )
    events = arsenal.prepare()
    fresh = mechanism.draw(PAIR.data, 30, rng=rng)
    hits = arsenal.absorb(DATA, fresh, events, np.arange(len(events)))
    scores = arsenal.fitted(0).score(target, fresh)
    assert hits.tolist() == [(scores >= t).sum() for t in events.threshold]
    assert arsenal.seen == 80


def test_memory_is_bounded():
    rng = np.random.default_rng(2)
    mechanism = Laplace()
    arsenal = Arsenal(Target(mechanism, PAIR), [ExactLoss()])
    arsenal.begin(
        *(mechanism.draw(d, 50, rng=rng) for d in (PAIR.data, PAIR.neighbour))
    )
    events = arsenal.prepare()
    for _ in range(10):
        for side, data in enumerate((PAIR.data, PAIR.neighbour)):
            arsenal.absorb(
                side, mechanism.draw(data, 50_000, rng=rng), events, np.arange(1)
            )
    _, scored, _, _ = arsenal.hits(0, 0.0)
    assert scored == 200_000
    assert arsenal.seen == 500_050
    pooled = sum(len(batch) for batch in arsenal._pool[DATA])
    assert pooled == 4096


def test_memory_is_bounded_for_dictionaries_too():
    big = {"a": np.zeros((70, 2**16)), "b": np.zeros(70)}
    arsenal = Arsenal(Target(lambda d, g: None, PAIR), [LogisticClassifier()])
    arsenal.begin(big, big)
    empty = np.empty(0, dtype=np.intp)
    for _ in range(4):
        arsenal.absorb(DATA, big, candidates([]), empty)
    kept = sum(len(batch["b"]) for batch in arsenal._pool[DATA])
    assert kept == 127  # within 64 MiB


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_resolution_follows_the_scale_of_the_scores(scale):
    target = Target(Laplace(), PAIR)

    class Scaled(ExactLoss):
        def score(self, target, parameters, releases):
            return super().score(target, parameters, releases) * scale

    fitted = FittedAttack.fit(Scaled(), target, np.zeros(5), np.ones(5))
    assert 0 < fitted.resolution <= 1e-9 * scale
    raw = Scaled().score(target, {}, np.linspace(-3, 3, 50))
    rounded = fitted.score(target, np.linspace(-3, 3, 50))
    np.testing.assert_allclose(rounded, raw, atol=1e-9 * scale)
