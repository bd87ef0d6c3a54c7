"""Audits from end to end: true claims stand, planted bugs fall, bad input is named."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    ApproxDP,
    GaussianDP,
    InputError,
    MechanismError,
    Pair,
    Profile,
    PureDP,
    Relation,
    ZeroConcentratedDP,
)
from dpaudit.algorithms import AnalyzeGauss, GOEGaussian, SymmetricNoise
from dpaudit.attacks import MeanShift
from dpaudit.audit import AuditResult, Verdict, audit

PAIR = Pair([0.0], [0.0, 1.0])


def laplace_sum(data, rng):
    return data.sum() + rng.laplace()


def half_laplace_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.5)


def test_symmetric_noise_falls_within_sixty_releases_a_side():
    """The median over 21 seeds, at confidence 0.999 and epsilon 1."""
    mechanism = SymmetricNoise.as_published(1.0)
    results = [audit(mechanism, confidence=0.999, seed=seed) for seed in range(21)]
    assert all(result.refuted for result in results)
    assert np.median([result.samples for result in results]) <= 60


def test_a_plain_callable_is_audited():
    result = audit(half_laplace_sum, pair=PAIR, claim=PureDP(1.0), seed=1)
    assert result.verdict is Verdict.REFUTED
    assert result.name == "half_laplace_sum"
    assert 1.0 <= result.epsilon_lower <= 2.0
    assert 0.0 < result.delta_lower <= float(PureDP(2.0).delta(1.0))
    assert result.witness is not None
    assert result.detectable_epsilon is None


def test_a_black_box_covariance_mechanism_is_caught_by_its_support():
    """The guess of a positive semi-definite noise needs no help from the mechanism."""
    mechanism = SymmetricNoise.as_published(1.0)

    def black_box(data, rng):
        return mechanism.release(data, rng=rng)

    result = audit(black_box, pair=mechanism.worst_case(4), claim=PureDP(1.0))
    assert result.refuted
    assert result.attack == "support"
    assert result.samples <= 200


def test_true_claims_stand_with_the_whole_portfolio():
    """Null: Laplace at its epsilon, black box, alpha = 0.1, a look every round.

    The number of refutations exceeds the bound with probability <= 1e-6.
    """
    runs, alpha = 40, 0.1
    refuted = sum(
        audit(
            laplace_sum,
            pair=PAIR,
            claim=PureDP(1.0),
            confidence=1 - alpha,
            max_samples=150,
            seed=seed,
        ).refuted
        for seed in range(runs)
    )
    assert refuted <= int(binom.isf(1e-6, runs, alpha))


@dataclass(frozen=True)
class ForgetsTheLowerTriangle(AnalyzeGauss):
    """Planted bug: independent noise below the diagonal, so averaging halves it."""

    def noise(self, size, dimension, *, rng):
        return rng.normal(scale=self.sigma, size=(size, dimension, dimension))


@dataclass(frozen=True)
class WrongSensitivity(GOEGaussian):
    """Planted bug: the standard deviation of another relation, and half of it."""

    def noise(self, size, dimension, *, rng):
        return super().noise(size, dimension, rng=rng) / 2


@dataclass(frozen=True)
class AdaptsItsNoise(GOEGaussian):
    """Planted bug: noise scaled by the data, its mean hidden."""

    def draw(self, data, size, *, rng):
        scale = 1.0 + len(data)
        return scale * self.noise(size, data.shape[1], rng=rng)


@pytest.mark.parametrize(
    "mechanism",
    [
        WrongSensitivity.calibrated(1.0, 1e-5, relation=Relation.REPLACE_ONE),
        WrongSensitivity.from_mu(1.0),
        AdaptsItsNoise.calibrated(1.0, 1e-5),
        AdaptsItsNoise.from_mu(1.0),
    ],
    ids=lambda m: f"{type(m).__name__}-{type(m.claim).__name__}",
)
def test_planted_bugs_fall(mechanism):
    assert audit(mechanism, max_samples=50_000).refuted


def test_extra_noise_is_no_violation():
    """Independent lower triangles are more noise on each entry, not less... twice.

    The mean of the two copies of an entry has half the variance: mu grows by sqrt 2 on
    an off-diagonal direction, where AnalyzeGauss has that much to spare.
    """
    mechanism = ForgetsTheLowerTriangle.calibrated(1.0, 1e-5)
    assert not audit(mechanism, max_samples=20_000).refuted


def test_a_noiseless_mechanism_falls_at_once():
    result = audit(lambda d, rng: d.sum(), pair=PAIR, claim=ApproxDP(1.0, 1e-5))
    assert result.refuted
    assert result.samples <= 40


def test_a_constant_mechanism_stands():
    result = audit(lambda d, rng: 7.0, pair=PAIR, claim=PureDP(0.1), max_samples=300)
    assert not result.refuted
    assert result.epsilon_lower == 0.0
    assert result.attack is None
    assert result.detectable_epsilon is None


@pytest.mark.parametrize(
    ("claim", "refuted"),
    [
        (GaussianDP(1.0), False),
        (GaussianDP(0.5), True),
        (ZeroConcentratedDP(0.5), False),
        (ZeroConcentratedDP(0.05), True),
        (ApproxDP(1.0, 0.127), False),
        (ApproxDP(0.5, 0.01), True),
        (Profile((0.0, 1.0), (0.3830, 0.1270)), False),
        (Profile((0.0,), (0.2,)), True),
    ],
    ids=str,
)
def test_every_kind_of_claim(claim, refuted):
    """The mechanism is 1-GDP exactly."""
    result = audit(
        lambda d, rng: d.sum() + rng.normal(), pair=PAIR, claim=claim, max_samples=5000
    )
    assert result.refuted is refuted
    assert (result.mu_lower is not None) == isinstance(claim, GaussianDP)
    assert result.epsilon_lower <= GaussianDP(1.0).epsilon(result.at_delta)
    assert result.delta_lower <= GaussianDP(1.0).delta(result.at_epsilon)


def test_a_claim_of_large_delta_is_audited():
    """SymmetricNoise keeps what is exact for it, delta = 1 - 1/e at every epsilon.

    Null: true with equality; refuted with probability at most 1e-3.
    """
    mechanism = SymmetricNoise.as_published(1.0)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert not audit(mechanism, claim=exact, max_samples=500).refuted
    less = Profile((0.0,), (0.55,))
    assert audit(mechanism, claim=less, max_samples=5000).refuted


def test_the_same_seed_gives_the_same_result():
    def once(seed):
        values = audit(
            half_laplace_sum, pair=PAIR, claim=PureDP(1.0), seed=seed
        ).to_dict()
        values.pop("seconds")
        return values

    assert once(5) == once(5)
    assert once(5) != once(6)


def test_going_on_after_a_refutation_tightens_the_bounds():
    mechanism = SymmetricNoise.as_published(1.0)
    short = audit(mechanism)
    long = audit(mechanism, max_samples=3000, stop_when_refuted=False)
    assert long.samples == 3000
    assert short.delta_lower < 0.5 < long.delta_lower <= 1 - math.exp(-1)
    assert long.epsilon_lower > short.epsilon_lower


def test_an_audit_never_exceeds_its_budget():
    for budget in (2, 3, 11, 100):
        result = audit(laplace_sum, pair=PAIR, claim=PureDP(1.0), max_samples=budget)
        assert result.samples == budget


def test_progress_is_told():
    told = []
    audit(
        laplace_sum,
        pair=PAIR,
        claim=PureDP(1.0),
        max_samples=100,
        progress=lambda samples, lower: told.append((samples, lower)),
    )
    assert told[-1][0] == 100
    assert [s for s, _ in told] == sorted({s for s, _ in told})


def test_outputs_that_are_not_finite_do_not_stop_an_audit():
    """NaN on one dataset only is an event like any other."""

    def sometimes_nan(data, rng):
        return np.nan if len(data) == 2 and rng.random() < 0.9 else rng.normal()

    result = audit(sometimes_nan, pair=PAIR, claim=PureDP(1.0), max_samples=2000)
    assert isinstance(result, AuditResult)


def test_the_result_says_what_it_does_not_know():
    result = audit(laplace_sum, pair=PAIR, claim=PureDP(1.0), max_samples=2000)
    assert not result.refuted
    assert result.witness is None
    assert 1.0 < result.detectable_epsilon < 2.5
    assert result.rarest_event == pytest.approx(math.log(1000) / 2000)
    text = str(result)
    assert "NOT_REFUTED" in text
    assert "private" not in text
    assert "rarer than" in text


def test_the_worst_case_and_the_claim_come_from_the_mechanism():
    result = audit(GOEGaussian.from_mu(1.0, relation="replace-one"), max_samples=500)
    assert result.relation is Relation.REPLACE_ONE
    assert result.claim == GaussianDP(1.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"claim": PureDP(1.0)}, "pair is needed"),
        ({"pair": PAIR}, "claim is needed"),
        ({"pair": PAIR, "claim": 1.0}, "claim must be a Claim, got 1.0"),
        ({"pair": ([0], [1]), "claim": PureDP(1.0)}, "pair must be a Pair, got tuple"),
        ({"pair": PAIR, "claim": PureDP(1.0), "confidence": 1.0}, "confidence must"),
        ({"pair": PAIR, "claim": PureDP(1.0), "max_samples": 1}, "max_samples must"),
        ({"pair": PAIR, "claim": PureDP(1.0), "seed": -1}, "seed must"),
        ({"pair": PAIR, "claim": PureDP(1000.0)}, "cannot be audited"),
    ],
)
def test_bad_input_is_named(options, sentence):
    with pytest.raises(InputError, match=sentence):
        audit(laplace_sum, **options)


def test_a_claim_is_audited_under_its_own_relation():
    mechanism = AnalyzeGauss.calibrated(1.0, 1e-5)
    pair = Pair(np.eye(2)[:1], np.eye(2)[1:])
    with pytest.raises(InputError, match="under add-remove, but the pair is replace"):
        audit(mechanism, pair=pair)


def test_a_mechanism_that_fails_midway_is_named():
    calls = []

    def tires(data, rng):
        calls.append(1)
        return rng.normal() if len(calls) < 50 else 1 / 0

    with pytest.raises(MechanismError, match="ZeroDivisionError"):
        audit(tires, pair=PAIR, claim=PureDP(1.0))


@pytest.mark.parametrize("capability", ["privacy_loss", "statistic", "in_support"])
def test_a_capability_that_fails_is_named(capability):
    mechanism = SymmetricNoise.as_published(1.0)

    class Failing:
        claim, relation = mechanism.claim, mechanism.relation
        sensitivity = mechanism.sensitivity
        draw, release = mechanism.draw, mechanism.release
        privacy_loss = mechanism.privacy_loss
        statistic = mechanism.statistic
        in_support = mechanism.in_support
        worst_case = mechanism.worst_case

    def fail(*arguments):
        raise KeyError("lost")

    fail.__name__ = capability
    failing = Failing()
    setattr(failing, capability, fail)
    with pytest.raises(MechanismError, match=f"{capability} raised KeyError: 'lost'"):
        audit(failing)


@pytest.mark.parametrize("epsilon", [1e-4, 30.0, 400.0])
def test_extreme_claims_are_audited_without_a_hitch(epsilon):
    result = audit(laplace_sum, pair=PAIR, claim=PureDP(epsilon), max_samples=500)
    assert result.epsilon_lower <= 1.0


def test_attacks_can_be_chosen():
    result = audit(GOEGaussian.from_mu(1.0), attacks=[MeanShift()], max_samples=500)
    assert result.attack == "mean-shift"
