import math

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, Profile, PureDP, ZeroConcentratedDP
from dpaudit.audit import summary as power
from dpaudit.audit.betting.events import Events
from dpaudit.audit.betting.evidence import SequentialTest
from dpaudit.audit.betting.families import families_for, verdict_family
from dpaudit.audit.betting.strategy import place_bets
from dpaudit.gaussian import gaussian_mu

ALPHA = 0.01
shown_epsilon = verdict_family(PureDP(1.0)).shown_epsilon


def claim_alone(claim):
    delta = claim.parameters.get("delta", 0.0)
    families = families_for(claim, delta, claim.parameters.get("epsilon", 1.0))
    return next(iter(families.values())).claim_only()


def refutes(null, p, q, samples, rng):
    """Audit an event of probabilities p and q, in rounds as a state has them."""
    test = SequentialTest(null, ALPHA, shares=(0.75, 0.15, 0.1), planned=1)
    hits, scored = rng.binomial(10, [p, q]), 10
    while scored < samples and not test.refutes_claim:
        left = samples - scored
        size = max(
            1, min(max(4, math.ceil(0.4 * scored)), max(left // 3, samples // 20))
        )
        size = min(size, left)
        events = Events.single(0.0, tuple(hits), (scored, scored))
        place_bets([test], events, size, size, 2 * left)
        fresh = rng.binomial(size, [p, q])
        test.update(fresh[:1], fresh[1:], size, size)
        hits, scored = hits + fresh, scored + size
    return test.refutes_claim


@pytest.mark.parametrize("q", [0.05, 0.25])
def test_audits_detect_what_is_said_to_be_detectable(q):
    """Of 20 runs at the epsilon that is reported, half at least; and not far from it.

    A power of 0.9 falls short of 10 with probability below 1e-6. A third of the way
    from the claim, more than half of the runs see nothing.
    """
    null, samples = claim_alone(PureDP(1.0)), 500
    epsilon = power.detectable_epsilon(null, np.array([q]), samples, ALPHA, 0.0)
    rng = np.random.default_rng(0)
    for shown, seen in ((epsilon, True), (1 + (epsilon - 1) / 3, False)):
        p = q * math.exp(shown)
        if p >= 1 or (1 - q) / (1 - p) > math.exp(shown):
            p = 1 - (1 - q) * math.exp(-shown)
        assert shown_epsilon(p, q, 0.0) == pytest.approx(shown)
        refuted = sum(refutes(null, p, q, samples, rng) for _ in range(20))
        assert (refuted >= 10) == seen


def test_more_releases_and_larger_errors_detect_less_and_the_best_event_counts():
    null, q = claim_alone(PureDP(1.0)), np.array([0.1, 0.25])
    for known in (
        [power.detectable_epsilon(null, q, n, 1e-3, 0.0) for n in (10**6, 10**4, 100)],
        [power.detectable_epsilon(null, q, 10**4, a, 0.0) for a in (0.05, 1e-3, 1e-9)],
    ):
        assert known == sorted(set(known))
        assert 1.0 < known[0] < 1.1
    assert power.detectable_epsilon(null, q, 10**6, 1e-3, 0.0) < 1.02
    null = claim_alone(PureDP(1.0))
    one, other, both = (
        power.detectable_epsilon(null, np.array(q), 1000, 1e-3, 0.0)
        for q in ([0.01], [0.25], [0.01, 0.25])
    )
    assert both == pytest.approx(min(one, other))


CURVES = [
    *(ApproxDP(1.0, 0.05), GaussianDP(1.0), ZeroConcentratedDP(0.5)),
    Profile((0.5, 1.5), (0.3, 0.1)),
]


@pytest.mark.parametrize(("samples", "q"), [(300, 0.05), (10**6, 1e-3), (10**6, 0.3)])
@pytest.mark.parametrize("claim", CURVES, ids=str)
def test_no_epsilon_that_the_claim_allows_is_called_a_violation(claim, q, samples):
    """Whatever the event shows at this delta: elsewhere it may be the claim's limit."""
    delta = claim.parameters.get("delta", 0.01)
    if isinstance(claim, Profile):
        delta = 0.2
    found = power.detectable_epsilon(
        claim_alone(claim), np.array([q]), samples, 1e-3, delta
    )
    assert found is not None
    assert claim.epsilon_at(delta) <= found
    # And in the end the claim is told from anything worse.
    assert found < claim.epsilon_at(delta) + (10.0 if samples < 10**6 else 0.5)


def test_what_is_detectable_is_looked_for_in_every_place(monkeypatch):
    """A few places tell between which to look: as a look at all of them does."""
    rng, found = np.random.default_rng(0), []
    past = [(rng.beta(0.5, 1, size=9), 3 ** int(rng.integers(2, 15))) for _ in range(9)]
    for apart in (power._APART, power._PLACES - 1):
        monkeypatch.setattr(power, "_APART", apart)
        for claim in (PureDP(0.1), PureDP(5.0), GaussianDP(1.0)):
            null = claim_alone(claim)
            found.append(
                [power.detectable_epsilon(null, q, n, 1e-3, 1e-5) for q, n in past]
            )
    assert found[:3] == found[3:]
    assert len({each for few in found for each in few}) > 15


def test_what_is_detectable_is_a_mu_and_nothing_in_a_handful_of_releases():
    """The event at its curve grows evidence as fast as is needed, and not faster."""
    null, q, delta, samples = claim_alone(GaussianDP(1.0)), 0.2, 1e-5, 2000
    epsilon = power.detectable_epsilon(null, np.array([q]), samples, 1e-3, delta)
    mu = gaussian_mu(epsilon, delta)
    assert 1.0 < mu < 1.5
    p = GaussianDP(mu).tpr(np.array([q]))
    (growth,) = power._growth(null, p, np.array([q]))
    growth *= 2 * samples / power._LEARNING
    z = 1.2815515655446004  # the 0.9 quantile of the normal law
    assert growth - z * math.sqrt(2 * growth) == pytest.approx(math.log(1e3), rel=1e-3)
    null = claim_alone(PureDP(1.0))
    assert power.detectable_epsilon(null, np.array([0.3]), 3, 1e-3, 0.0) is None
    assert power.detectable_epsilon(null, np.empty(0), 1000, 1e-3, 0.0) is None
    # An event that is too likely on D' cannot be exceeded by the claim's factor.
    assert power.detectable_epsilon(null, np.array([0.999]), 20, 1e-3, 0.0) is None


@pytest.mark.parametrize(
    ("p", "q", "delta", "epsilon"),
    [
        *((0.5, 0.1, 0.0, math.log(5)), (0.9, 0.5, 0.0, math.log(5))),
        *((0.5, 0.1, 0.1, math.log(4)), (0.9, 0.5, 0.1, math.log(4))),
        *((1.0, 0.5, 0.0, math.inf), (0.2, 0.2, 0.1, 0.0)),
    ],
)
def test_event_epsilon(p, q, delta, epsilon):
    assert shown_epsilon(p, q, delta) == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_rarest_event_in_closed_form(epsilon):
    """Releases on D never give what has probability p on D'.

    With half of the releases on either side, the least of KL(p || p') + KL(0 || q')
    over the null, p' = e^epsilon q', is p log(1 + e^-epsilon) for small p.
    """
    null, samples = claim_alone(PureDP(epsilon)), 10**6
    p = power.rarest_event(null, samples, 1e-3)
    z = 1.2815515655446004
    root = (z * math.sqrt(2) + math.sqrt(2 * z**2 - 4 * math.log(1e-3))) / 2
    growth = p * math.log1p(math.exp(-epsilon)) / 2
    assert growth == pytest.approx(2 * root**2 / (2 * samples), rel=0.02)


def test_the_rarest_event_is_more_than_what_delta_allows_or_none():
    for delta in (1e-5, 1e-2, 0.2):
        found = power.rarest_event(claim_alone(ApproxDP(1.0, delta)), 10**7, 1e-3)
        assert delta < found < 3 * delta + 1e-4
    assert power.rarest_event(claim_alone(PureDP(1.0)), 3, 1e-3) == 1.0
