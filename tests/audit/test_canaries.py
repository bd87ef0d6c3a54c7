import json
from dataclasses import dataclass

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit import ApproxDP, GaussianDP, InputError, PureDP, Relation
from dpaudit.attacks.tracing_attack import TracingAttack
from dpaudit.audit.bounds import one_run_p_value
from dpaudit.audit.judged import UNFOUNDED, Verdict
from dpaudit.audit.one_run.canaries import audit_canaries
from dpaudit.audit.one_run.guesses import middle
from dpaudit.fingerprinting import HardInstance


@dataclass
class Presence:
    """One coordinate per canary; scores are what the release says of it."""

    canaries: int

    @property
    def rows(self):
        return np.eye(self.canaries)

    def scores(self, mechanism, release):
        return release


@dataclass
class RandomisedPresence:
    """Says of each coordinate whether a row has it, and lies with 1/(1 + e^eps).

    Adding a row changes one answer: pure epsilon-DP, attained. Replacing one changes
    two: 2 epsilon, attained too.
    """

    epsilon: float
    relation: Relation = Relation.ADD_REMOVE

    @property
    def claim(self):
        answers = 1 if self.relation is Relation.ADD_REMOVE else 2
        return PureDP(answers * self.epsilon)

    def release(self, data, *, rng):
        truth = np.where(data.sum(axis=0) > 0, 1.0, -1.0)
        lies = rng.random(len(truth)) < 1 / (1 + np.exp(self.epsilon))
        return np.where(lies, -truth, truth)


@dataclass
class NoisySum:
    """The sum of the rows plus noise: mu-GDP for orthonormal rows, attained."""

    mu: float

    def release(self, data, *, rng):
        return data.sum(axis=0) + rng.normal(size=data.shape[1]) / self.mu

    __call__ = release


def components(data, rng):
    return np.linalg.svd(data, full_matrices=False)[2][0]


def tracing(m=16, n=256, seed=0):
    rng = np.random.default_rng(seed)
    return TracingAttack(HardInstance.generate(m, n, cutoff=0.01, pad_ratio=1, rng=rng))


@pytest.mark.parametrize(
    ("relation", "guesses"),
    [("add-remove", 20), ("replace-one", 20), ("add-remove", None)],
)
def test_a_claim_met_with_equality_is_refuted_with_alpha_at_most(relation, guesses):
    """100 audits at alpha = 0.1: the false alarm is below 1e-6."""
    mechanism = RandomisedPresence(1.0, Relation(relation))
    attack = Presence(20 if relation == "add-remove" else 40)
    options = {"runs": 3, "guesses": guesses, "confidence": 0.9}
    refuted = sum(
        audit_canaries(mechanism, attack, seed=seed, **options).refuted
        for seed in range(100)
    )
    assert refuted <= stats.binom.isf(1e-6, 100, 0.1)


def test_coins_have_a_generator_of_their_own_and_a_seed_decides():
    def tosses_like_the_audit(data, rng):
        return rng.integers(0, 2, data.shape[1]) - 0.5

    claimed = {"claim": PureDP(0.1), "relation": "add-remove"}
    options = claimed | {"confidence": 1 - 1e-6}
    found = audit_canaries(tosses_like_the_audit, Presence(60), **options)
    assert not found.refuted
    results = [
        audit_canaries(RandomisedPresence(1.0), Presence(9), seed=s) for s in (3, 3, 4)
    ]
    fields = [{**r.to_dict(), "seconds": 0} for r in results]
    assert fields[0] == fields[1] != fields[2]


@pytest.mark.parametrize("relation", list(Relation))
def test_runs_are_pooled(relation):
    mechanism = RandomisedPresence(2.0, relation)
    attack = Presence(30 if relation is Relation.ADD_REMOVE else 60)
    true = 2.0 if relation is Relation.ADD_REMOVE else 4.0
    options = {"guesses": 20, "confidence": 0.99}
    one = audit_canaries(mechanism, attack, **options)
    many = audit_canaries(mechanism, attack, runs=40, **options)
    assert dict(many.bound.counts)["guesses"] == 800
    assert dict(many.bound.counts)["canaries"] == 1200
    assert one.bound.value < many.bound.value < true
    assert many.bound.value > 0.7 * true


@pytest.mark.parametrize("relation", list(Relation))
def test_components_without_noise_are_refuted(relation):
    claimed = {"claim": ApproxDP(1.0, 1e-5), "relation": relation}
    options = claimed | {"runs": 20, "confidence": 0.999}
    found = audit_canaries(components, tracing(), **options)
    assert found.refuted
    assert found.canaries == (16 if relation is Relation.ADD_REMOVE else 8)
    assert found.pilots == 4
    assert found.bound.value > 1
    assert found.bound.delta == 1e-5
    assert "REFUTED at confidence 0.999 (20 runs" in str(found)
    assert str(found).startswith("components")
    assert f"under {relation}" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == "REFUTED"


def test_fixed_rows_are_always_there():
    seen = []

    def mechanism(data, rng):
        seen.append(data.copy())
        return data.sum(axis=0)

    fixed = np.full((2, 3), 0.5)
    claimed = {"claim": PureDP(1.0), "relation": "add-remove"}
    options = claimed | {"runs": 6, "guesses": 2}
    audit_canaries(mechanism, Presence(3), fixed=fixed, **options)
    # The first run is repeated at the end.
    assert len(seen) == 7
    np.testing.assert_array_equal(seen[6], seen[0])
    for data in seen:
        np.testing.assert_array_equal(data[:2], fixed)
        # The canaries that are in, in their own order.
        places = data[2:].argmax(axis=1)
        assert (np.diff(places) > 0).all()


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_claim_is_tested_at_its_own_delta(epsilon):
    """At delta 0 the p-value of the same guesses is smaller, and of another claim."""
    options = {"claim": ApproxDP(epsilon, 0.01), "runs": 2, "guesses": 20}
    found = audit_canaries(RandomisedPresence(1.0), Presence(30), **options)
    counts = dict(found.bound.counts)
    at = {d: one_run_p_value(**counts, epsilon=epsilon, delta=d) for d in (0.0, 0.01)}
    assert found.bound.delta == 0.01
    assert found.epsilon == epsilon
    assert found.p_value == at[0.01] > at[0.0]


class Impure(NoisySum):
    """Adds to the sum what it should not: see `extra`."""

    def __init__(self, extra):
        super().__init__(1.0)
        self.extra, self.calls = extra, 0

    def release(self, data, *, rng):
        self.calls += 1
        if self.extra == "refusals" and self.calls > 4:
            raise TimeoutError
        more = self.calls if self.extra == "state" else 0
        return super().release(data, rng=rng) + more


STATE, UNUSED = "the same seed gave another release", "does not use its rng"


@pytest.mark.parametrize(
    ("mechanism", "says"),
    [
        *((NoisySum(1.0), []), (Impure("state"), [STATE])),
        (Impure("refusals"), [STATE]),
        (lambda data, rng: data.sum(axis=0), [UNUSED]),
        (
            lambda data, rng: np.random.default_rng().normal(size=data.shape[1]),
            [STATE, UNUSED],
        ),
    ],
    ids=["pure", "state", "refusals", "no noise", "all its own"],
)
@pytest.mark.parametrize("guesses", [5, None])
def test_impure_mechanisms_get_no_verdict(mechanism, says, guesses):
    """But for one that never draws at all: it is what it seems."""
    if isinstance(mechanism, Impure):
        mechanism.calls = 0
    claimed = {"claim": GaussianDP(1.0), "relation": "add-remove"}
    options = claimed | {"runs": 4 if guesses else 3, "guesses": guesses}
    found = audit_canaries(mechanism, Presence(9), **options)
    assert len(found.warnings) == len(says)
    for warning, words in zip(found.warnings, says, strict=True):
        assert words in warning
        assert f"WARNING        {warning}" in str(found)
    assert found.to_dict()["warnings"] == list(found.warnings)
    unfounded = STATE in says
    assert (found.verdict is Verdict.NO_VERDICT) == unfounded
    assert (UNFOUNDED in str(found)) == unfounded
    if unfounded:
        assert not found.refuted
        assert (found.p_value, found.bound.value) == (1.0, 0.0)
        assert "p-value" not in str(found)


def test_runs_that_share_noise_by_a_cache_get_no_verdict():
    kept = {}

    def mechanism(data, rng):
        noise = kept.setdefault("noise", rng.normal(size=9))
        return data.sum(axis=0) + noise + 1e-9 * rng.normal()

    options = {"claim": GaussianDP(1.0), "relation": "add-remove", "guesses": 1}
    several = audit_canaries(mechanism, Presence(9), runs=2, **options)
    assert several.verdict is Verdict.NO_VERDICT
    kept.clear()  # one run alone depends on no other
    alone = audit_canaries(mechanism, Presence(9), runs=1, **options)
    assert alone.verdict is Verdict.NOT_REFUTED
    with pytest.raises(InputError, match="attack must have rows and scores, got None"):
        audit_canaries(mechanism, None, **options)


def test_pilots_have_coins_of_their_own_and_groups_a_middle():
    """The number of guesses is chosen without a look at what is tested."""
    chosen = audit_canaries(RandomisedPresence(1.0), Presence(20), runs=5, pilots=2)
    given = audit_canaries(
        RandomisedPresence(1.0), Presence(20), runs=5, guesses=chosen.guesses
    )
    assert chosen.bound == given.bound
    assert (chosen.pilots, given.pilots) == (2, 0)
    assert middle(np.array([5.0, 0.0, 0.1, 5.1, -0.1])) == pytest.approx(2.525)
    assert middle(np.array([3.0])) == 0.0
    assert middle(np.array([2.0, 2.0])) == 2.0
    assert np.isfinite(middle(np.array([np.inf, 0.0, -np.inf])))


class Wrong(Presence):
    def scores(self, mechanism, release):
        return release[:2]


class Missing(Presence):
    def scores(self, mechanism, release):
        return np.full(4, np.nan)


test_bad_input = refused(
    (dict(mechanism=components), "claim is needed"),
    (dict(mechanism=components, claim=PureDP(1.0)), "relation is needed"),
    (dict(claim=1.0), "claim must be a Claim"),
    (dict(runs=0), "runs must be"),
    (dict(guesses=5), "guesses must be an integer >= 1 and <= 4"),
    (dict(guesses=2, pilots=1), "pilots choose guesses"),
    (dict(pilots=0), "pilots must be"),
    (dict(confidence=1.0), "confidence must be"),
    (dict(delta=1.0), "delta must be"),
    (dict(seed=-1), "seed must be"),
    (dict(claim=GaussianDP(1.0), delta=0.0), "promises no epsilon"),
    (dict(relation="replace"), "relation must be one of"),
    (dict(attack=Presence(3), relation="replace-one"), "even number of canaries"),
    (dict(fixed=np.ones((1, 3))), "fixed must have rows of the can"),
    (dict(attack=Wrong(4)), "attack must score every canary"),
    (dict(attack=Missing(4)), "attack must score every canary"),
    (dict(attack=Presence(0)), r"attack.rows must have shape"),
    by=lambda changes: audit_canaries(
        **{"mechanism": RandomisedPresence(1.0), "attack": Presence(4)} | changes
    ),
)
