"""The study of how near audits come to the information limit, and the limit itself."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest

from dpaudit.claims import PureDP
from dpaudit.reports.bench import limits
from dpaudit.reports.bench.limits import SUBJECTS, Limits, growth
from dpaudit.reports.bench.refutation import BestEvent, best_events, information_limit
from dpaudit.reports.bench.refutation import limit as refutation_limit


def by_brute_force(p, q, points):
    """Minimise the divergence over laws on cells themselves."""

    def divergence(x):
        first, second = np.split(x, 2)
        return -(p @ first + q @ second) / 2

    def room(x):
        first, second = np.split(np.exp(x), 2)
        unions = [
            np.array(list(np.binary_repr(i, len(p))), dtype=float)
            for i in range(1, 2 ** len(p) - 1)
        ]
        gaps = [
            delta - union @ (one - math.exp(epsilon) * other)
            for epsilon, delta in points
            for one, other in ((first, second), (second, first))
            for union in unions
        ]
        return np.array([*gaps, 1 - first.sum(), 1 - second.sum()])

    found = minimize(
        divergence,
        np.tile(np.log((p + q) / 2), 2),
        constraints={"type": "ineq", "fun": room},
        options={"maxiter": 500, "ftol": 1e-13},
        method="SLSQP",
    )
    assert found.success
    return found.fun + (p @ np.log(p) + q @ np.log(q)) / 2


@pytest.mark.parametrize(
    "points",
    [
        [(0.5, 0.02)],
        [(0.2, 0.05), (1.0, 0.01)],
        [(0.0, 0.1), (0.4, 0.03), (1.2, 0.005)],
    ],
)
def test_the_growth_at_the_limit_is_that_of_brute_force(points):
    rng = np.random.default_rng(3)
    for _ in range(3):
        p, q = rng.dirichlet(np.full(3, 2.0), size=2)
        expected = by_brute_force(p, q, points)
        assert growth(p, q, points) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "delta"), [("laplace-under-noised", 0.0), ("gaussian-under-noised", 1e-5)]
)
def test_the_growth_at_the_limit_is_that_of_the_best_event(name, delta):
    event = best_events()[name]
    found = growth(np.array(event.p), np.array(event.q), [(0.1, delta)])
    assert math.log(1000) / (2 * found) == pytest.approx(
        refutation_limit(name), rel=1e-6
    )


def test_there_is_no_growth_where_the_claim_is_kept():
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    assert growth(p, q, [(0.5, 0.0)]) == pytest.approx(0.0, abs=1e-9)
    assert growth(p, q, [(0.3, 0.0)]) > 1e-3


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_laws_of_a_subject_are_those_of_its_mechanism(name):
    # Null: the shares of losses are right. False alarms: 1e-4 for each of 6; seeded.
    subject = SUBJECTS[name]
    mechanism, rng = subject.mechanism(), np.random.default_rng(11)
    pair = mechanism.worst_case()
    p, q = subject.laws()
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    for data, law in ((pair.data, p), (pair.neighbour, q)):
        drawn = mechanism.draw(data, 20_000, rng=rng)
        found = mechanism.privacy_loss(drawn, pair.data, pair.neighbour)
        for threshold in (-0.5, 0.013, 0.77):
            hits, chance = int((found >= threshold).sum()), law[losses >= threshold]
            assert binomtest(hits, 20_000, min(1.0, chance.sum())).pvalue > 1e-4


@pytest.mark.parametrize(("factor", "met"), [(2.0, True), (2.01, False)])
def test_the_median_over_the_limit_meets_the_target_or_not(monkeypatch, factor, met):
    monkeypatch.setattr(limits, "_limit", lambda name, confidence: 1000.0)
    study, profile = Limits(), "standard"
    late = {"refuted": False, "samples": 1}
    records = {
        unit: {"refuted": True, "samples": round(factor * 1000)}
        if unit.index <= 10
        else late
        for unit in study.units(profile)
    }
    (table,) = study.tables(profile, records)
    assert len(table.rows) == 2 * len(SUBJECTS)
    for row in table.rows:
        assert row.data["seeds"] == 21
        assert row.met is (met or row.data["confidence"] == 0.95)


def test_a_unit_is_an_audit_of_releases_alone():
    unit = next(u for u in Limits().units("quick") if u.case == "half laplace, 0.999")
    record = Limits().measure(unit)
    assert record["refuted"]
    assert 20 < record["samples"] < 500


@pytest.mark.parametrize("confidence", [0.95, 0.999])
def test_the_limit_of_two_cells_is_that_of_their_event(confidence):
    p, q = (tuple(law.tolist()) for law in SUBJECTS["symmetric-noise"].laws())
    expected = information_limit(BestEvent(p, q), PureDP(1.0), 1 - confidence)
    found = limits._limit("symmetric-noise", confidence)
    assert found == pytest.approx(expected, rel=1e-6)
