import itertools
import json
import math
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, attacks, audited, laplace_sum
from refusals import refused, refuses

from dpaudit import InputError, MechanismError, Pair, Relation
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian, SymmetricNoise
from dpaudit.algorithms.textbook.sums import Gaussian
from dpaudit.attacks import BITS, MeanShift
from dpaudit.audit import Budget, Run, Verdict, audit, verify
from dpaudit.audit.betting.families import verdict_family
from dpaudit.audit.summary import rarest_event
from dpaudit.claims import ApproxDP, GaussianDP, Profile, PureDP, ZeroConcentratedDP

pytestmark = pytest.mark.usefixtures("in_few_rounds")

IDENTITY = attacks("identity")


def half_laplace_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.5)


def gaussian_sum(data, rng):
    return data.sum() + rng.normal()


class Truncated:
    """Laplace noise within +-7: .08 % at its ends are impossible on the other side."""

    def draw(self, data, size, *, rng):
        rank = rng.random(size) - 0.5
        noise = np.sign(rank) * np.log1p(2 * np.abs(rank) * np.expm1(-7.0))
        return np.sum(data) - noise

    def release(self, data, *, rng):
        return self.draw(data, 1, rng=rng)[0]


@pytest.fixture(scope="module")
def true_laplace():
    """The whole portfolio on a true claim; refuted with probability <= 1e-3."""
    return audit(laplace_sum, pair=PAIR, claim=CLAIM, budget=300)


@pytest.mark.usefixtures("in_usual_rounds")
def test_a_plain_callable_is_audited():
    result = audit(half_laplace_sum, pair=PAIR, claim=CLAIM, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert (result.name, result.attack) == ("half_laplace_sum", "identity")
    assert result.samples <= 1500
    assert 1.0 <= result.epsilon_lower <= 2.0
    assert 0.0 <= result.delta_lower <= float(PureDP(2.0).delta_at(1.0))
    assert result.log_evidence >= math.log(1000)
    assert result.witness is not None
    assert (result.detectable_epsilon, result.pairs, result.warnings) == (None, 1, ())
    stored = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert stored["verdict"] == result.verdict
    assert stored["drawn"] == list(result.drawn)
    derived = {"allowed_epsilon", "allowed_delta"}
    assert set(stored) == {*result.__dataclass_fields__, *derived}


@pytest.mark.usefixtures("in_usual_rounds")
def test_rare_ends_of_a_support_refute_within_a_hundred_thousand_releases():
    result = audit(Truncated(), pair=PAIR, claim=CLAIM, seed=2, budget=Budget(200_000))
    assert result.verdict is Verdict.REFUTED
    assert result.samples <= 100_000


def test_results_say_what_they_do_not_know_and_bits_are_their_own_audit(true_laplace):
    assert true_laplace.verdict is Verdict.NOT_REFUTED
    assert true_laplace.samples == 300
    assert true_laplace.epsilon_lower <= 1.0
    assert true_laplace.witness is None
    assert 1.0 < true_laplace.detectable_epsilon < 3.0
    alone = verdict_family(PureDP(1.0)).claim_only()
    assert true_laplace.rarest_event == rarest_event(alone, 300, 1 - 0.999)
    text = str(true_laplace)
    assert "NOT_REFUTED" in text
    assert "private" not in text
    assert "rarer than" in text
    # NumPy's Laplace sampler does not reach all doubles alike.
    result = audited(laplace_sum, run=Run(attacks=BITS), budget=20_000)
    assert result.refuted
    assert result.bits
    assert result.attack == "bits"
    assert result.samples <= 3000
    assert "over doubles" in str(result)
    assert verify(result.witness, mechanism=laplace_sum, seed=1).confirmed
    assert not true_laplace.bits
    assert not true_laplace.refuted
    assert "over real numbers" in str(true_laplace)


def test_the_event_of_a_claim_that_stands_is_one_that_shows_the_bound():
    """It was the one that chance had favoured: 4 releases of 20,000 against 2."""
    result = audited(
        lambda data, rng: data.sum() + rng.normal(scale=4.84),
        claim=ApproxDP(1.0, 1e-5),
        budget=20_000,
    )
    assert not result.refuted
    hits, n, others, m = (
        int(x.replace(",", ""))
        for x in re.findall(r"([\d,]+)(?: of| on)", result.event)
    )
    assert min(hits, others) > 100
    assert abs(math.log(hits / n) - math.log(others / m)) > result.epsilon_lower > 0.1


@pytest.mark.parametrize("budget", [2, 3, 11])
def test_short_audits_and_those_of_constants_end_with_their_budget(budget):
    """And with a sentence; of a constant with the most that it can say, nothing."""
    for mechanism in (laplace_sum, lambda data, rng: 7.0):
        result = audit(mechanism, pair=PAIR, claim=CLAIM, budget=budget)
        assert result.samples == budget
        assert not result.refuted
        json.dumps(result.to_dict(), allow_nan=False)
        assert "NOT_REFUTED" in str(result)
    assert result.epsilon_lower == 0.0
    assert result.attack is None
    assert result.detectable_epsilon is None


@pytest.mark.parametrize(
    ("claim", "refuted"),
    [
        *((GaussianDP(1.0), False), (GaussianDP(0.2), True)),
        *((ZeroConcentratedDP(0.01), True), (ApproxDP(0.1, 0.01), True)),
        (Profile((0.0, 1.0), (0.3830, 0.1270)), False),
        (Profile((0.0,), (0.05,)), True),
    ],
    ids=str,
)
def test_every_kind_of_claim(claim, refuted):
    """The mechanism is 1-GDP exactly; each false alarm has probability <= 1e-3."""
    samples = 3000 if refuted else 30
    result = audited(gaussian_sum, claim=claim, budget=samples)
    assert result.refuted is refuted
    assert (result.mu_lower is not None) == isinstance(claim, GaussianDP)
    assert result.epsilon_lower <= GaussianDP(1.0).epsilon_at(result.at_delta)
    assert result.delta_lower <= GaussianDP(1.0).delta_at(result.at_epsilon)
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_same_seed_gives_the_same_result_and_at_its_end_no_interruption():
    one, again, other = (audited(laplace_sum, budget=40, seed=s) for s in (1, 1, 2))
    assert replace(one, seconds=0.0) == replace(again, seconds=0.0)
    assert other.log_evidence != one.log_evidence
    told = []
    run = Run(progress=told.append, should_stop=lambda: told[-1].samples == 10)
    result = audited(laplace_sum, budget=10, run=run)
    assert result.samples == 10
    assert not result.interrupted


def test_progress_is_told():
    told = []
    audited(laplace_sum, budget=50, run=Run(progress=told.append))
    samples = [progress.samples for progress in told]
    assert samples[-1] == 50
    assert samples == sorted(set(samples))
    assert all(0 <= progress.epsilon_lower <= 1 for progress in told)
    assert all(progress.max_samples == 50 for progress in told)
    assert (told[0].attack, told[-1].attack) == (None, "identity")
    assert told[-1].pairs == 1
    assert told[-1].seconds_left == 0 < told[1].seconds_left
    seconds = [progress.seconds for progress in told]
    assert seconds == sorted(seconds)


def test_audits_end_between_rounds_and_not_before_they_have_a_pair():
    """The verdict of the rounds that were played; and refutations stay refutations."""
    rounds, answers = [], iter([False, False, True])
    run = Run(progress=rounds.append, should_stop=lambda: next(answers))
    ended = audited(laplace_sum, run=run)
    assert ended.interrupted
    assert ended.samples == rounds[-1].samples
    assert len(rounds) == 3
    assert "INTERRUPTED" in str(ended)
    assert ended.to_dict()["interrupted"] is True
    run = replace(run, should_stop=lambda: rounds[-1].epsilon_lower > 1)
    refuted = audited(half_laplace_sum, budget=Budget(stop=False), run=run)
    assert refuted.refuted
    assert refuted.interrupted
    assert refuted.witness is not None

    def refuses_the_empty(data, rng):
        if not len(data):
            raise InputError("no rows")
        return data.sum() + rng.laplace()

    run = Run(attacks=IDENTITY, should_stop=lambda: True)
    result = audit(refuses_the_empty, **SEARCH, run=run)
    assert result.interrupted
    assert result.pairs == 1


class Priced:
    """A clock that only releases move on, and a sum that costs a tenth of a second."""

    def __init__(self, monkeypatch, price=0.1, scale=1.0):
        self.now, self.price, self.scale = 5.0, price, scale
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def __call__(self, data, rng):
        self.now += self.price
        return data.sum() + rng.laplace(scale=self.scale)


@pytest.mark.usefixtures("in_usual_rounds")
def test_a_refined_audit_has_the_verdict_of_one_that_stops_and_a_bound_near_the_truth():
    """Half the noise that is needed: the true epsilon is 2."""
    stopped = audited(half_laplace_sum, budget=60_000)
    refined = audited(half_laplace_sum, budget=Budget(60_000, refine=100))
    assert refined.refuted
    assert not refined.interrupted
    assert refined.refuted_at == stopped.refuted_at == stopped.samples
    assert refined.samples == 101 * refined.refuted_at
    assert abs(refined.drawn[0] - refined.drawn[1]) <= 2 * refined.refuted_at
    assert f"(after {stopped.samples} of {refined.samples:,} releases" in str(refined)
    assert refined.log_evidence == stopped.log_evidence
    assert stopped.epsilon_lower < 1.2
    assert 1.7 < refined.epsilon_lower <= 2


def test_refining_goes_by_releases_and_never_by_the_clock(monkeypatch):
    fast, slow = (
        audited(Priced(monkeypatch, price=price, scale=0.2), budget=Budget(refine=3))
        for price in (0.0, 100.0)
    )
    assert slow.to_dict() == fast.to_dict() | {"seconds": slow.seconds}
    assert slow.samples == 4 * slow.refuted_at


@pytest.mark.usefixtures("in_usual_rounds")
@pytest.mark.parametrize("most", [1e-9, 20.0, 100.0])
def test_an_audit_ends_before_the_round_that_would_take_too_long(monkeypatch, most):
    """But two rounds are always played, of which the first takes two seconds."""
    priced, told = Priced(monkeypatch), []
    result = audited(priced, budget=Budget(seconds=most), run=Run(progress=told.append))
    spent = priced.now - 5
    assert result.interrupted
    assert result.seconds == pytest.approx(spent)
    if most < 1:
        assert len(told) == 2
    else:
        # Tenths of a second do not add up exactly.
        assert most / 1.5 < spent < most + priced.price / 2


def test_a_limit_that_is_not_reached_changes_nothing_nor_do_clocks_that_jump(
    monkeypatch,
):
    limited = audited(Priced(monkeypatch), budget=Budget(40, seconds=1e5))
    free = audited(Priced(monkeypatch), budget=40)
    assert not limited.interrupted
    assert replace(limited, seconds=0.0) == replace(free, seconds=0.0)
    jumps = itertools.cycle([0.0, 1e12, -1e12])
    for name in ("time", "monotonic"):
        monkeypatch.setattr(time, name, lambda: next(jumps))
    assert not audited(laplace_sum, budget=Budget(100, seconds=100.0)).interrupted


def test_claims_come_from_the_mechanism_and_true_ones_stand_on_all_pairs():
    mechanism = GOEGaussian.from_mu(1.0, relation="replace-one")
    result = audit(mechanism, budget=20, run=Run(attacks=[MeanShift()]))
    assert result.relation is Relation.REPLACE_ONE
    assert result.claim == GaussianDP(1.0)
    assert result.attack == "mean-shift"
    assert result.name == "GOEGaussian"
    assert audit(mechanism, budget=2, run=Run(name="mine")).name == "mine"
    # Null: sensitivity 3 and noise for it; refuted with probability <= 1e-3.
    options = SEARCH | {"domain": "box:0,1:3", "run": Run(attacks=IDENTITY)}
    result = audit(lambda d, g: d.sum() + g.laplace(scale=3.0), **options, budget=150)
    assert not result.refuted
    assert result.samples == 150
    assert result.pairs > 3


GIVEN = {"pair": PAIR, "claim": CLAIM}
SEARCH = {"domain": "scalar:0,1", "relation": "add-remove", "claim": CLAIM}


# What a setting may be is in tests/audit/test_identity.py.
test_bad_input_is_named = refused(
    ({"claim": CLAIM}, "pair or domain is needed: the mechanism names no worst"),
    ({"claim": CLAIM, "run": None}, "run must be a Run, got None"),
    ({"pair": PAIR}, "claim is needed: the mechanism states none"),
    ({**GIVEN, "pair": ([0], [1])}, "relation is needed with a pair of datasets"),
    ({**GIVEN, "claim": PureDP(1000.0)}, "cannot be audited"),
    ({**GIVEN, "layer": "white-box"}, r"one of \['black-box', 'transcript'\], got"),
    ({**GIVEN, "layer": "transcript"}, "mechanism must have a transcript"),
    ({**GIVEN, "domain": "box:0,1:3"}, r"got others of shape .*, where .* is \(3,\)"),
    ({**SEARCH, "pair": ([0], [1])}, "pair must be a Pair where a domain is given"),
    ({**SEARCH, "pair": Pair([0], [1])}, "pair is one of neighbours under replace-one"),
    ({**SEARCH, "domain": 3}, "domain must be a Domain or a string, got 3"),
    ({**SEARCH, "domain": "torus:3"}, "domain must be .*, got 'torus:3'"),
    ({**SEARCH, "domain": "scalar:1,0"}, "domain 'scalar:1,0': low and high must"),
    ({**SEARCH, "relation": None}, "relation is needed: the mechanism states none"),
    ({**SEARCH, "relation": "swap"}, "relation must be one of .*, got 'swap'"),
    ({**GIVEN, "relation": "swap"}, "relation must be one of .*, got 'swap'"),
    ({**GIVEN, "relation": "replace-one"}, "under replace-one, but the pair is"),
    ({**GIVEN, "layer": "replay"}, r"one of \['black-box', 'transcript'\], got"),
    ({**GIVEN, "budget": "full"}, "a Budget or a number of releases, got 'full'"),
    ({**GIVEN, "budget": True}, "a Budget or a number of releases, got True"),
    by=lambda options: audit(laplace_sum, **options),
)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pair": Pair(np.eye(2)[:1], np.eye(2)[1:])}, "but the pair is replace-one"),
        ({"relation": "replace-one"}, "under add-remove, not replace-one"),
        ({"relation": "replace-one", "domain": "ball:2"}, "remove, not replace-one"),
    ],
)
def test_a_claim_is_audited_under_its_own_relation(options, sentence):
    mechanism = AnalyzeGauss.calibrated(1.0, 1e-5)
    refuses(sentence, audit, mechanism, **options)
    agreeing = audit(mechanism, relation="add-remove", budget=2)
    assert agreeing.relation is Relation.ADD_REMOVE


@pytest.mark.parametrize("capability", ["privacy_loss", "statistic", "in_support"])
def test_a_capability_that_fails_is_named(capability):
    def fail(*arguments):
        raise KeyError("lost")

    fail.__name__ = capability
    mechanism = SymmetricNoise.as_published(1.0)
    parts = "claim relation sensitivity draw release statistic worst_case".split()
    parts += ["privacy_loss", "in_support"]
    failing = SimpleNamespace(**{part: getattr(mechanism, part) for part in parts})
    setattr(failing, capability, fail)
    with pytest.raises(MechanismError, match=f"{capability} raised KeyError: 'lost'"):
        audit(failing)


@pytest.mark.parametrize("epsilon", [1e-4, 400.0])
def test_extreme_claims_are_audited_without_a_hitch(epsilon):
    result = audited(laplace_sum, claim=PureDP(epsilon), budget=60)
    assert result.epsilon_lower <= 1.0


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: 5e-324 * rng.integers(5),
        *(lambda data, rng: 1e308 * rng.uniform(-1, 1), lambda data, rng: np.zeros(0)),
        lambda data, rng: rng.choice([-np.inf, np.nan, np.inf]),
    ],
    ids=["subnormal", "huge", "empty", "not-finite"],
)
def test_odd_numbers_are_audited_without_a_hitch(mechanism):
    """All of them keep any claim; each is refuted with probability <= 1e-3."""
    result = audit(mechanism, **GIVEN, budget=60)
    assert not result.refuted
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("sigma", [1e-9, 1e120])
def test_a_loss_beyond_arithmetic_does_not_end_an_audit(sigma):
    """The exact profile has no numbers for a huge shift; the releases still speak."""
    mechanism = Gaussian(sigma=sigma, claim=ApproxDP(1.0, 1e-5))
    result = audited(mechanism, claim=None, budget=60)
    assert (result.exact is None) == (sigma < 1)
    assert result.refuted == (sigma < 1)
