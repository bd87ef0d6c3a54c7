"""What a result prints: every number with its delta, beside what the claim allows."""

import json
from dataclasses import replace
from functools import partial

import pytest
from audit_cases import PAIR, laplace_sum

from dpaudit import ApproxDP, GaussianDP, Profile, PureDP, ZeroConcentratedDP
from dpaudit.attacks import Identity
from dpaudit.audit import Judged, Run, Verdict, audit, audit_guesses, replay

CLAIMS = [
    PureDP(1.0),
    GaussianDP(1.0),
    ZeroConcentratedDP(0.5),
    Profile((1.0, 2.0), (0.2, 0.05)),
]


def gaussian_sum(data, rng):
    return data.sum() + rng.normal(scale=2.0)


@pytest.fixture(scope="module")
def results():
    options = {"pair": PAIR, "run": Run(attacks=[Identity()]), "budget": 150}
    return {claim: audit(gaussian_sum, claim=claim, **options) for claim in CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_bounds_the_claim_and_what_was_detectable_can_be_compared(results, claim):
    """All are epsilons at one delta, in this order unless the claim is refuted."""
    result = results[claim]
    assert not result.refuted
    assert result.allowed_epsilon == claim.epsilon(result.at_delta)
    assert result.allowed_delta == claim.delta(result.at_epsilon)
    assert result.epsilon_lower <= result.allowed_epsilon
    assert result.allowed_epsilon <= result.detectable_epsilon
    assert (result.detectable_mu is None) == (not isinstance(claim, GaussianDP))
    stored = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert stored["allowed_epsilon"] == result.allowed_epsilon
    assert stored["allowed_delta"] == result.allowed_delta
    # Every epsilon is printed with its delta, and what the claim allows there.
    delta = f"at delta = {result.at_delta:.3g}"
    lines = str(result).splitlines()
    (bound,) = (line for line in lines if "epsilon_lower" in line)
    assert bound.endswith(
        f"({delta}, where the claim allows {result.allowed_epsilon:.4g})"
    )
    (bound,) = (line for line in lines if "delta_lower" in line)
    assert bound.endswith(
        f"(at epsilon = {result.at_epsilon:.4g}, where the claim allows "
        f"{result.allowed_delta:.3g})"
    )
    assert f"epsilon >= {result.detectable_epsilon:.4g} {delta}" in lines[-1]
    uneven = replace(result, drawn=(1000, 2000))
    assert "2,000 on the neighbour" in str(uneven)


@pytest.mark.parametrize(
    "claim", [PureDP(0.1), ApproxDP(0.1, 0.05), GaussianDP(0.3)], ids=str
)
def test_refuted_claims_have_a_bound_that_refutes_them(claim):
    def clear_sum(data, rng):
        return data.sum() + rng.normal(scale=0.3)

    options = {"pair": PAIR, "run": Run(attacks=[Identity()]), "budget": 300}
    result = audit(clear_sum, claim=claim, **options)
    assert result.refuted
    if isinstance(claim, GaussianDP):
        assert result.mu_lower >= claim.parameters["mu"]
    else:
        assert result.at_delta == claim.parameters.get("delta", 0.0)
        assert result.epsilon_lower >= claim.parameters["epsilon"]


def test_gaussian_claims_are_spoken_of_in_mu_as_well(results):
    result = results[GaussianDP(1.0)]
    assert 1.0 < result.detectable_mu
    epsilon = GaussianDP(result.detectable_mu).epsilon(result.at_delta)
    assert epsilon == pytest.approx(result.detectable_epsilon)
    text = str(result)
    assert f"mu_lower       {result.mu_lower:.4g}  (the claim allows 1)" in text
    assert f"(mu >= {result.detectable_mu:.4g}) on its best event" in text
    assert replace(result, detectable_epsilon=None).detectable_mu is None


def test_a_bound_above_the_claim_beside_another_verdict_is_explained(results):
    """It is a test of its own, at an error probability of its own."""
    result = results[GaussianDP(1.0)]
    above = replace(result, epsilon_lower=result.allowed_epsilon + 0.1)
    for shown, explained in (
        (result, False),
        (above, True),
        (replace(above, verdict=Verdict.REFUTED), False),
    ):
        assert ("epsilon_lower alone exceeds" in str(shown)) == explained


def test_results_of_all_kinds_have_the_same_face():
    options = {"pair": PAIR, "claim": PureDP(0.5), "seed": 1}
    wrong = partial(audit, laplace_sum), partial(replay, laplace_sum)
    coins = [True, False] * 20
    guesses = audit_guesses(coins, coins, claim=PureDP(0.5))
    for result in (*(judge(**options) for judge in wrong), guesses):
        assert isinstance(result, Judged)
        assert result.refuted
        assert result.findings
        assert all(str(finding) for finding in result.findings)
        assert 0 < result.confidence < 1
        json.dumps(result.to_dict(), allow_nan=False)
        assert "REFUTED" in result._repr_html_()
