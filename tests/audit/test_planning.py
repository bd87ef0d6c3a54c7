import math
from contextlib import suppress

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import laplace

from dpaudit import ApproxDP, InputError, Pair, PureDP
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.audit.planning import _LEARNING, MODELS, plan_audit
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.reports.bench.refutation import best_events, information_limit


def divergence(p, q):
    """Return KL(p || q) between two coins."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def nearest_allowed(p, q, epsilon, delta):
    """Return the coins on the edge p' = e^epsilon q' + delta that are nearest.

    For p + q = 1 the mirror image of the edge is met in the same point or farther away.
    """

    def pair(q_allowed):
        return math.exp(epsilon) * q_allowed + delta, q_allowed

    def distance(q_allowed):
        p_allowed, _ = pair(q_allowed)
        return divergence(p, p_allowed) + divergence(q, q_allowed)

    most = (1 - delta) * math.exp(-epsilon)
    found = minimize_scalar(
        distance,
        bounds=(1e-12, most * (1 - 1e-12)),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return pair(found.x)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(("epsilon", "true"), [(0.1, 0.3), (1.0, 1.2), (3.0, 4.0)])
def test_randomised_response_by_minimisation_on_the_edge(epsilon, true, delta):
    """The two constraints of a symmetric coin meet in (R + d, 1 - d)/(1 + R).

    There, or at the minimum on one edge if that is allowed, the projection lies.
    """
    lie = (1 - delta) * expit(-true)
    p, q = 1 - lie, lie
    ratio = math.exp(epsilon)
    corner = (ratio + delta) / (1 + ratio)
    p_edge, q_edge = nearest_allowed(p, q, epsilon, delta)
    if 1 - q_edge > ratio * (1 - p_edge) + delta:
        p_edge, q_edge = corner, 1 - corner
    growth = divergence(p, p_edge) + divergence(q, q_edge)
    plan = plan_audit(epsilon, true, delta=delta, model="randomised-response")
    assert plan.limit == pytest.approx(math.log(1000) / growth, rel=1e-5)
    assert (plan.on_data, plan.on_neighbour) == pytest.approx((p, q))


def test_plans_have_the_information_limits_of_the_suite():
    limit = information_limit(best_events()["laplace-under-noised"], PureDP(0.1), 1e-3)
    assert plan_audit(0.1, 0.2).limit == pytest.approx(limit, rel=1e-3)
    broken = Gaussian.under_noised(0.1, 1e-5)
    event, claim = best_events()["gaussian-under-noised"], ApproxDP(0.1, 1e-5)
    plan = plan_audit(0.1, broken.true_epsilon, delta=1e-5, model="gaussian")
    limit = information_limit(event, claim, 1e-3)
    assert plan.limit == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_models_have_the_epsilon_asked_for(delta):
    """Each by the tail that it names, or by its whole profile."""
    true = 1.7
    plan = plan_audit(1.0, true, delta=delta, model="randomised-response")
    shown = math.log((plan.on_data - delta) / plan.on_neighbour)
    assert shown == pytest.approx(true)
    plan = plan_audit(1.0, true, delta=delta, model="laplace")
    shift = float(laplace.ppf(plan.on_data) - laplace.ppf(plan.on_neighbour))
    profile = Laplace(shift).exact_claim(Pair([0.0], [0.0, 1.0]))
    assert profile.epsilon_at(delta) == pytest.approx(true, abs=1e-3)
    if delta:
        assert gaussian_epsilon(delta, gaussian_mu(true, delta)) == pytest.approx(true)


@pytest.mark.parametrize(("epsilon", "true"), [(1.0, 1.2), (0.5, 0.7)])
@pytest.mark.parametrize("power", [0.2, 0.9])
def test_the_power_of_the_known_event(epsilon, true, power):
    """Simulated, with the bet computed by other means.

    20,000 runs have a standard error below 0.004; the normal approximation is allowed
    0.02.
    """
    plan = plan_audit(epsilon, true, model="randomised-response", power=power)
    p, allowed = plan.on_data, expit(epsilon)
    rng = np.random.default_rng(0)
    n = plan.known
    truths = rng.binomial(n, p, size=(20_000, 2)).sum(axis=1)
    log_wealth = truths * math.log(p / allowed) + (2 * n - truths) * math.log(
        (1 - p) / (1 - allowed)
    )
    assert np.mean(log_wealth >= math.log(1000)) == pytest.approx(power, abs=0.02)


def test_plans_are_in_order():
    by_truth = [plan_audit(1.0, true).samples for true in (1.1, 1.5, 2.0, 4.0, 30.0)]
    assert sorted(by_truth, reverse=True) == by_truth
    by_power = [plan_audit(1.0, 2.0, power=p).samples for p in (0.1, 0.5, 0.9, 0.999)]
    assert sorted(by_power) == by_power
    by_model = [
        plan_audit(1.0, 2.0, delta=1e-5, model=model).samples
        for model in ("randomised-response", "laplace", "gaussian")
    ]
    assert sorted(by_model) == by_model
    plan = plan_audit(1.0, 2.0)
    assert plan.samples == pytest.approx(_LEARNING * plan.known, abs=2)
    # Measured: audits of this length refute nine times out of ten.
    assert (plan.known, plan.samples) == pytest.approx((148, 184), abs=2)
    # Far above what an oracle would need, who knows the event and its two laws.
    assert 4 * math.log(1000) / plan.samples < plan.rarest_event < 0.5
    assert plan_audit(1.0, 2.0, confidence=1 - 1e-6).limit == pytest.approx(
        2 * plan.limit
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("factor", [1.01, 3.0])
def test_plans_are_finite(model, epsilon, factor):
    plan = plan_audit(epsilon, epsilon * factor, delta=1e-6, model=model)
    assert 0 < plan.limit <= plan.known <= plan.samples < 1e15


test_bad_arguments_are_named = refused(
    ({"true_epsilon": 1.0}, "must be > 1, the claim's, and at most 30, got 1"),
    ({"true_epsilon": 31.0}, "at most 30, got 31"),
    ({"epsilon": 0.0}, "epsilon must be"),
    ({"delta": 1.0}, "delta must be"),
    ({"power": 1.0}, "power must be"),
    ({"confidence": 0.0}, "confidence must be"),
    ({"confidence": 1e-300}, "confidence must be in .*, and not next to 0"),
    ({"true_epsilon": 1 + 1e-9}, "more than 1e.14 releases to tell from"),
    ({"epsilon": 1e-300, "true_epsilon": 2e-300}, "more than 1e.14 releases"),
    ({"model": "gaussian", "delta": 1e-300}, "or has no event that shows it"),
    ({"model": "laplac"}, "did you mean 'laplace'"),
    ({"model": "gaussian"}, "the gaussian model needs delta > 0"),
    by=lambda arguments: plan_audit(
        **{"epsilon": 1.0, "true_epsilon": 2.0} | arguments
    ),
)


@pytest.mark.parametrize("model", ["laplace", "randomised-response"])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 10.0])
def test_plans_follow_the_gap_or_are_refused(model, epsilon):
    """Half the gap costs four times the releases; what rounding says is refused."""
    gaps = 10.0 ** -np.arange(3, 9)
    limits = []
    for gap in gaps:
        with suppress(InputError):
            limits.append(plan_audit(epsilon, epsilon * (1 + gap), model=model).limit)
    assert 1 <= len(limits) < len(gaps)
    np.testing.assert_allclose(
        limits * gaps[: len(limits)] ** 2, limits[0] * gaps[0] ** 2, rtol=0.01
    )
