"""The e-value has mean at most one: by exact enumeration, not by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.audit import evidence
from dpaudit.audit.evidence import HalfPlaneBet, growth, project

probabilities = st.floats(0.001, 0.999)
log_ratios = st.floats(-3.0, 3.0)
deltas = st.floats(0.0, 0.3)
sizes = st.integers(1, 12)


def expectation(bet: HalfPlaneBet, n_p: int, n_q: int, p: float, q: float) -> float:
    """Return E[E] under Binomial(n_p, p) x Binomial(n_q, q), summed exactly."""
    k, m = np.arange(n_p + 1)[:, np.newaxis], np.arange(n_q + 1)[np.newaxis]
    weights = binom.pmf(k, n_p, p) * binom.pmf(m, n_q, q)
    return float((weights * np.exp(bet.log_e(k, m, n_p, n_q))).sum())


def null_points(ratio: float, delta: float) -> list[tuple[float, float]]:
    """Return points of {p - ratio q <= delta}: on its border, and inside."""
    q = np.linspace(0, 1, 9)
    border = np.clip(ratio * q + delta, 0, 1)
    return [*zip(border, q, strict=True), *zip(border * 0.6, q, strict=True)]


@given(probabilities, probabilities, log_ratios, deltas, sizes, sizes)
def test_mean_is_at_most_one_on_the_half_plane(p1, q1, log_ratio, delta, n_p, n_q):
    ratio = np.exp(log_ratio)
    if p1 - ratio * q1 <= delta + 1e-9:
        return
    bet = HalfPlaneBet.place(p1, q1, ratio, delta, n_p, n_q)
    for p, q in null_points(ratio, delta):
        assert expectation(bet, n_p, n_q, p, q) <= 1 + 1e-12


@given(probabilities, probabilities, log_ratios, deltas, st.integers(0, 5))
def test_mean_is_at_most_one_whatever_the_solver_does(p1, q1, log_ratio, delta, bad):
    """The certificate, not the accuracy of `project`, carries the proof."""
    ratio = np.exp(log_ratio)
    if p1 - ratio * q1 <= delta + 1e-9:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "project", lambda *a: project(*a, halvings=bad))
        bet = HalfPlaneBet.place(p1, q1, ratio, delta, 6, 9)
    for p, q in null_points(ratio, delta):
        assert expectation(bet, 6, 9, p, q) <= 1 + 1e-12


def test_without_the_certificate_a_bad_solver_would_cheat(monkeypatch):
    """The test above can fail: drop the slack, and the mean exceeds one."""
    monkeypatch.setattr(evidence, "project", lambda *a: project(*a, halvings=1))
    worst = 0.0
    for p1, q1 in ((0.6, 0.05), (0.9, 0.3), (0.3, 0.01), (0.99, 0.05)):
        bet = HalfPlaneBet.place(p1, q1, np.e, 0.0, 6, 9)
        cheat = replace(bet, slack=np.zeros_like(bet.slack))
        for p, q in null_points(np.e, 0.0):
            worst = max(worst, expectation(cheat, 6, 9, p, q))
    assert worst > 1.01


@pytest.mark.parametrize(
    "claim",
    [PureDP(1.0), ApproxDP(0.5, 0.1), GaussianDP(0.8), ZeroConcentratedDP(0.3)],
    ids=str,
)
def test_half_planes_of_a_claim_are_valid_on_its_whole_region(claim):
    """Mean at most one at every (p, q) that the claim allows."""
    n_p, n_q = 7, 5
    for log_ratio in (-0.7, 0.0, 0.4, 1.0):
        ratio, delta = np.exp(log_ratio), float(claim.delta(log_ratio))
        p1, q1 = 0.9, 0.05
        assert p1 - ratio * q1 > delta
        bet = HalfPlaneBet.place(p1, q1, ratio, delta, n_p, n_q)
        for q in np.linspace(0.0, 1.0, 21):
            p = float(claim.tpr(q))
            assert expectation(bet, n_p, n_q, p, q) <= 1 + 1e-9


@given(probabilities, probabilities, log_ratios, deltas, sizes, sizes)
def test_projection_minimises_the_divergence(p1, q1, log_ratio, delta, n_p, n_q):
    ratio = np.exp(log_ratio)
    if p1 - ratio * q1 <= delta + 1e-6:
        return
    p0, q0 = project(p1, q1, ratio, delta, n_p, n_q)
    found = float(growth(p1, q1, p0, q0, n_p, n_q))
    np.testing.assert_allclose(p0, ratio * q0 + delta)

    def divergence(q: float) -> float:
        return float(growth(p1, q1, ratio * q + delta, np.float64(q), n_p, n_q))

    best = minimize_scalar(
        divergence,
        bounds=(q1, min((p1 - delta) / ratio, 1 - 1e-12)),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert found <= best.fun + 1e-9 * max(1.0, best.fun)


@given(probabilities, probabilities, log_ratios, deltas, st.integers(1, 10**8))
def test_slack_costs_next_to_nothing(p1, q1, log_ratio, delta, size):
    """An exact projection needs no correction beyond rounding."""
    ratio = np.exp(log_ratio)
    if p1 - ratio * q1 <= delta + 1e-6:
        return
    bet = HalfPlaneBet.place(p1, q1, ratio, delta, size, size)
    p0, q0 = project(p1, q1, ratio, delta, size, size)
    assert bet.slack <= 1e-6 * (1 + float(growth(p1, q1, p0, q0, size, size)))
