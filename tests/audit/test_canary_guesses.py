import json
from itertools import count

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, InputError, PureDP
from dpaudit.audit.bounds import one_run, one_run_p_value
from dpaudit.audit.one_run import guesses as canary_guesses
from dpaudit.audit.one_run.guesses import audit_guesses, audit_scores, right_guesses

ALPHA = 0.1
COINS = np.random.default_rng(3).integers(0, 2, 400)


def randomised(rng, canaries, epsilon=1.0, delta=0.0):
    """Return coins, and an answer for each that lies with 1/(1 + e^eps).

    With probability delta all is told. That is (epsilon, delta)-DP in each coin, and
    (epsilon, 0)-DP for no smaller epsilon.
    """
    coins = rng.integers(0, 2, canaries)
    lies = rng.random(canaries) < 1 / (1 + np.exp(epsilon))
    return coins, coins if rng.random() < delta else coins ^ lies


def most(audits):
    """Return how many of a true claim are refuted, but for a probability of 1e-6."""
    return stats.binom.isf(1e-6, audits, ALPHA)


def times_refuted(audits, delta, **options):
    claim = ApproxDP(1.0, delta) if delta else PureDP(1.0)
    refuted = 0
    for seed in range(audits):
        coins, answers = randomised(np.random.default_rng(seed), 200, delta=delta)
        found = audit_scores(
            answers, coins, claim=claim, confidence=1 - ALPHA, seed=seed, **options
        )
        refuted += found.refuted
    return refuted


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(
    "options",
    [{"guesses": [200]}, {}, {"thresholds": [0.5, 2.0, -1.0], "guesses": [50, 200]}],
    ids=["all", "default", "several"],
)
def test_a_claim_met_with_equality_is_refuted_with_alpha_at_most(delta, options):
    """Null: the claim is true. At alpha = 0.1 the false alarm of the test is 1e-6."""
    audits = 30 if delta else 120
    assert times_refuted(audits, delta, **options) <= most(audits)


def test_the_best_of_several_pays_for_all():
    rng = np.random.default_rng(0)
    scores = COINS + rng.normal(size=400)
    options = {"claim": ApproxDP(0.5, 1e-5), "thresholds": [0.5]}
    several = audit_scores(scores, COINS, guesses=[20, 100, 400], **options)
    alone = [
        audit_scores(scores, COINS, guesses=[r], confidence=1 - 0.05 / 3, **options)
        for r in (20, 100, 400)
    ]
    assert several.tried == 3
    assert several.p_value == pytest.approx(3 * min(each.p_value for each in alone))
    assert several.bound.value == max(each.bound.value for each in alone)
    assert several.bound.confidence == 0.95
    assert several.guesses in (20, 100, 400)
    assert "the best of 3 ways to guess" in str(several)
    assert json.loads(json.dumps(several.to_dict()))["tried"] == 3
    # A number that is named twice is one way.
    assert audit_scores(scores, COINS, guesses=[20, 20], **options).tried == 1


def test_verdict_bound_and_p_value_say_the_same():
    rng = np.random.default_rng(1)
    seen = set()
    for noise in rng.uniform(0.3, 3, 60):
        scores = COINS + noise * rng.normal(size=400)
        claim = PureDP(rng.uniform(0.2, 2))
        found = audit_scores(scores, COINS, claim=claim)
        assert found.refuted == (found.bound.value >= found.epsilon)
        assert found.refuted == (found.p_value <= 1 - found.bound.confidence)
        seen.add(found.refuted)
    assert seen == {True, False}


def test_a_gaussian_claim_is_held_to_its_mu():
    """The true mu is 2; what epsilon at one delta tells is less than half as much."""
    rng = np.random.default_rng(3)
    scores = 2.0 * COINS + rng.normal(size=400)
    for mu, refuted in ((0.5, True), (2.0, False)):
        found = audit_scores(scores, COINS, claim=GaussianDP(mu))
        assert found.refuted == refuted
        assert found.refuted == (found.bound.value >= mu)
        assert found.refuted == (found.p_value <= 0.05)
        assert found.bound.parameter == "mu"
        assert f"(where the claim allows {mu:g})" in str(found)
    alone = audit_scores(scores, COINS, claim=ApproxDP(found.epsilon, 1e-5))
    assert 2 > found.bound.value > 0.8
    assert found.bound.epsilon > 1.5 * alone.bound.value
    counts = dict(found.bound.counts)
    again = one_run(**counts, confidence=1 - 0.05 / found.tried, gaussian=True)
    assert found.bound.value == again.value


def test_scores_and_guesses_are_held_to_the_one_run_bound():
    scores = np.where(np.arange(400) < 350, COINS, 1 - COINS)
    counts = {"correct": 350, "guesses": 400, "canaries": 400}
    wanted = one_run(**counts, delta=1e-5)
    p = one_run_p_value(**counts, epsilon=1.5, delta=1e-5)
    claim = ApproxDP(1.5, 1e-5)
    by_scores = audit_scores(scores, COINS, claim=claim, guesses=[400])
    by_guesses = audit_guesses(scores, COINS, claim=claim)
    for found in (by_scores, by_guesses):
        assert (found.bound, found.p_value) == (wanted, p)


@pytest.mark.parametrize(
    "options", [{}, {"thresholds": [-1.0], "guesses": [20]}], ids=["middle", "above"]
)
def test_the_order_of_the_canaries_tells_nothing(options):
    """Null: scores that are all the same. The false alarm is 1e-6 in all."""
    coins = np.sort(COINS)[::-1]  # as a file would be that was written side by side
    options = options | {"claim": PureDP(1e-3), "confidence": 1 - ALPHA}
    refuted = sum(
        audit_scores(np.zeros(400), coins, seed=seed, **options).refuted
        for seed in range(100)
    )
    assert refuted <= most(100)
    # Nor is a tie a guess of anything: 400 coins stay within eight standard errors.
    right = right_guesses(np.zeros(400), coins >= 0, np.random.default_rng(0))
    assert abs(right.mean() - 0.5) < 0.2


def test_the_most_confident_guesses_are_far_from_the_threshold_and_halves_warned_of():
    scores = np.where(COINS == 1, 1.0, -1.0) * np.where(np.arange(400) < 40, 5.0, -0.1)
    found = audit_scores(scores, COINS, claim=PureDP(1.0), guesses=[40], thresholds=[0])
    assert dict(found.bound.counts)["correct"] == 40
    infinite = np.where(np.arange(400) < 40, scores * np.inf, scores)
    again = audit_scores(infinite, COINS, claim=PureDP(1.0), guesses=[40])
    assert dict(again.bound.counts)["correct"] == 40
    half = np.arange(400) % 2
    found = audit_scores(half, half, claim=PureDP(1.0))
    assert any("exactly half of 400" in each for each in found.warnings)
    assert not audit_scores(COINS, COINS, claim=PureDP(1.0)).warnings
    (warning,) = audit_scores(-COINS, COINS, claim=PureDP(1.0)).warnings
    assert "if scores are smaller where a canary is in" in warning


def test_fair_coins_are_refused_rarely_and_unguessed_ones_are_canaries():
    """The exact probability of a refusal, by adding up binomial probabilities."""
    refused = 0.0
    for ones in range(61):
        coins = np.arange(60) < ones
        try:
            audit_guesses(coins, coins, claim=PureDP(1.0))
        except InputError:
            refused += stats.binom.pmf(ones, 60, 0.5)
    assert 1e-8 < refused <= 1e-6
    abstain = np.arange(400) >= 300
    told = np.where(abstain, np.nan, COINS)
    claim = ApproxDP(1.0, 1e-3)
    found = audit_guesses(told, COINS, abstain, claim=claim, guesses=300)
    counts = {"correct": 300, "guesses": 300, "canaries": 400}
    assert found.bound == one_run(**counts, delta=1e-3)
    refuses("fixed before the run", audit_guesses, told, COINS, abstain, claim=claim)
    with pytest.raises(InputError, match="how many there are, 300, got 299"):
        audit_guesses(told, COINS, abstain, claim=claim, guesses=299)
    # A pure claim needs no number beforehand.
    assert audit_guesses(told, COINS, abstain, claim=PureDP(1.0)).guesses == 300


ONES = [1] * 20
CURVE = {"claim": GaussianDP(1.0), "delta": 0.0}
BAD = [
    (audit_scores, ([1.0, np.nan], [0, 1]), {}, "without NaN"),
    (audit_scores, ([1.0], [0, 1]), {}, "a number for every coin"),
    (audit_scores, ([1.0, 1.0], [0, 2]), {}, "must be 0 or 1 .* got 2"),
    (audit_scores, ([1.0, 1.0], [0, np.nan]), {}, "0 or 1 .* got nan"),
    (audit_scores, ([[1.0]], [[1]]), {}, "0 or 1 .* got shape"),
    (audit_scores, (ONES, ONES), {}, "both 0 and 1, got 20"),
    (audit_scores, ([], []), {}, "both 0 and 1, got 0"),
    (audit_scores, (COINS, np.arange(400) < 100), {}, "fair coins, got 100 of 400"),
    (audit_scores, (COINS, COINS), {"guesses": [401]}, "guesses must be"),
    (audit_scores, (COINS, COINS), {"guesses": [0]}, "guesses must be"),
    (audit_scores, (COINS, COINS), {"thresholds": [np.inf]}, "thresholds must"),
    (audit_scores, (COINS, COINS), {"seed": -1}, "seed must be"),
    (audit_scores, (COINS, COINS), {"confidence": 1.0}, "confidence must"),
    (audit_scores, (COINS, COINS), {"delta": 1.0}, "delta must"),
    (audit_scores, (COINS, COINS), {"claim": 1.0}, "claim must be a Claim"),
    (audit_guesses, (COINS, COINS, COINS >= 0), {}, "leave a guess"),
    (audit_guesses, (COINS * 2, COINS), {}, "guess must be 0 or 1 .* got 2"),
    (audit_guesses, ([0], [0, 1]), {}, "guess must have an entry"),
    (audit_guesses, ([0, 1], [0, 1], [0]), {}, "abstain must have an"),
    (audit_scores, (COINS, COINS), CURVE, "promises no epsilon"),
]


@pytest.mark.parametrize(("function", "arguments", "options", "words"), BAD)
def test_what_is_no_evidence_is_refused(function, arguments, options, words):
    refuses(words, function, *arguments, **{"claim": PureDP(1.0)} | options)


def test_the_time_it_took_is_said(monkeypatch):
    monkeypatch.setattr(canary_guesses.time, "perf_counter", count(7.0, 2.0).__next__)
    assert audit_scores(COINS, COINS, claim=PureDP(1.0)).seconds == 2.0
