"""Primitives that are not trusted, and distances of one's own."""

from secrets import randbits

import numpy as np
import pytest
from refusals import refuses
from replay_cases import line_of, rows

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP
from dpaudit.audit.replay import primitive, replay
from dpaudit.audit.replay.declare.declarations import KERNELS
from dpaudit.audit.replay.declare.untrusted import Handed, UntrustedCall
from dpaudit.audit.replay.judge.primitive_audits import ShownOutputs, audit_primitives

PAIR = Pair(rows(0.2, 0.5), rows(0.2, 0.5, 1.0))
CLAIM = PureDP(1.0)
OWN = np.random.RandomState(3)  # which no audit seeds
SURE = 1 - 1e-6  # each true claim, or declaration, falls with probability <= 1e-6


def declared(share):
    """Return a primitive with a share of the noise that it declares."""

    @primitive("laplace", value="value", scale="scale", trusted=False)
    def noisy(value, scale):
        return value + OWN.laplace(scale=share * scale)

    return noisy


right, wrong = declared(1.0), declared(0.2)


@primitive("gaussian", value="x", scale=1.0, trusted=False)
def drawn_from(x, rng):
    return x + rng.normal(scale=0.2)


def apart(one, other):
    return len(one ^ other)


PROMISE = {"value": "words", "sensitivity": 1, "epsilon": 0.5}


@primitive("trusted", distance=apart, trusted=False, **PROMISE)
def size(words):
    words.add("written to")
    return len(words) + OWN.laplace(scale=0.2)


class Noise:
    """Has a generator, of which a copy would repeat the noise."""

    def __init__(self):
        self.rng = np.random.default_rng(3)

    @primitive("laplace", value="value", scale=1.0, trusted=False)
    def add(self, value):
        return value + self.rng.laplace()


NOISE, KEPT = Noise(), {}


@primitive("laplace", value="value", scale=1.0, trusted=False)
def cached(value):
    if value not in KEPT:
        KEPT[value] = value + OWN.laplace()
    return KEPT[value]


@pytest.fixture(autouse=True)
def seeded():
    """Begin every test with the same draws."""
    OWN.seed(3)


def judged(mechanism, claim=CLAIM, sees="transcript", budget=200):
    options = {"pair": PAIR, "confidence": SURE, "budget": budget}
    return replay(mechanism, claim=claim, sees=sees, **options)


def test_what_keeps_its_declaration_counts_as_trusted():
    result = judged(lambda x, rng: (right(float(len(x)), 2.5), NOISE.add(len(x) / 4)))
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    assert [each.releases for each in result.primitives] == [200, 200]
    for each in result.primitives:  # which share half of the error
        assert 1 - each.confidence == pytest.approx(0.25e-6, rel=1e-3)
    assert "is not refuted in 200 releases a side of its own" in str(result)
    assert len(result.to_dict()["primitives"]) == 2


FALSE = [
    (lambda x, rng: wrong(float(len(x)), 1.0), CLAIM, "transcript"),
    (lambda x, rng: [right(0.0, 1.0), wrong(float(len(x)), 1.0)], CLAIM, "release"),
    (lambda x, rng: [right(0.0, 1.0), wrong(float(len(x)), 1.0)], CLAIM, "transcript"),
    (lambda x, rng: drawn_from(float(len(x)), rng), GaussianDP(1.0), "release"),
    (lambda x, rng: size(set(x.ravel())), ApproxDP(1.0, 1e-6), "transcript"),
]


@pytest.mark.parametrize(("mechanism", "claim", "sees"), FALSE)
def test_a_false_declaration_is_found_and_refutes(mechanism, claim, sees):
    result = judged(mechanism, claim, sees, budget=2000)
    (finding,) = result.findings
    assert (str(result.verdict), result.proof) == ("REFUTED", False)
    assert (finding.kind, finding.proof) == ("primitive", pytest.approx(SURE))
    assert "(lambda x, rng" in line_of(finding)
    assert "draws noise of its own" in result.assumes


TRUE = [  # what it costs is within the claim, or hidden by what follows
    (lambda x, rng: wrong(float(len(x)), 1.0), PureDP(5.0), "transcript"),
    (lambda x, rng: wrong(float(len(x)), 1.0) * 0, CLAIM, "release"),
]


@pytest.mark.parametrize(("mechanism", "claim", "sees"), TRUE)
def test_it_does_not_refute_a_claim_that_has_room_for_it(mechanism, claim, sees):
    result = judged(mechanism, claim, sees)
    assert str(result.verdict) == "NOT_FOLLOWED"
    (finding,) = result.findings
    assert (finding.kind, finding.proof) == ("primitive", None)


def test_a_proof_by_the_declared_law_rests_on_the_declaration():
    kept = judged(lambda x, rng: right(float(len(x)), 0.5))
    assert (str(kept.verdict), kept.proof) == ("REFUTED", True)
    assert "noisy keeps its declaration (not refuted in 200" in kept.assumes
    false = judged(lambda x, rng: wrong(float(len(x)), 0.9), PureDP(1.1), budget=2000)
    assert (str(false.verdict), false.proof) == ("REFUTED", False)
    bare = judged(lambda x, rng: wrong(float(len(x)), 1.0) / len(x))
    assert (bare.proof, "primitive" in {f.kind for f in bare.findings}) == (True, True)


def test_arguments_that_hold_randomness_are_not_taken_for_inputs():
    @primitive("laplace", value="value", scale=1.0, trusted=False)
    def seeded(value, seed):
        return value + np.random.default_rng(seed).laplace()

    for seed in (lambda rng: int(rng.integers(2**60)), lambda rng: randbits(60)):
        result = judged(lambda x, rng, s=seed: seeded(float(len(x)), s(rng)))
        assert (str(result.verdict), result.primitives) == ("NOT_FOLLOWED", ())
        assert any("they hold randomness" in f.message for f in result.findings)


def test_noise_that_is_kept_is_not_audited_nor_shown_within_a_primitive():
    result = judged(lambda x, rng: cached(float(len(x))))
    assert (str(result.verdict), result.primitives) == ("NOT_FOLLOWED", ())
    assert "KEPT holds what was drawn before" in result.findings[-1].message

    @primitive("laplace", value="value", scale=1.0)
    def outer(value):
        return right(value, 1.0)

    names = right.__qualname__, wrong.__qualname__
    shown = ShownOutputs(lambda x, rng: [outer(1.0), wrong(2.0, 0.0)], names)
    assert shown.release(None, rng=None) == [2.0]


@pytest.mark.parametrize(("share", "falls"), [(1.0, False), (0.2, True)])
def test_a_true_declaration_is_refuted_no_more_often_than_alpha(share, falls):
    """With alpha = 0.1 of 5 true ones 4 fall with probability <= 5e-4."""
    function = declared(share).__wrapped__
    calls = tuple(
        UntrustedCall("noisy", function, (value, 1.0), {}, KERNELS["laplace"], False)
        for value in (2.0, 3.0)
    )
    options = {"alpha": 0.1, "releases": 60, "until": np.inf}
    several = [Handed("here", "there", calls)]
    audits = (audit_primitives(several, seed=seed, **options) for seed in range(5))
    assert (sum(each.refuted for (each,) in audits) >= 4) == falls


NO_DISTANCES = [
    (lambda one, other: -1, "must return a number >= 0, got -1"),
    (lambda one, other: float("nan"), "must return a number >= 0, got nan"),
    (lambda one, other: "far", "must return a number >= 0, got 'far'"),
    (lambda one, other: one / 0, "raised TypeError for two inputs of type set"),
]


@pytest.mark.parametrize(("distance", "message"), NO_DISTANCES)
def test_a_distance_that_is_none_is_an_error(distance, message):
    count = primitive("trusted", distance=distance, **PROMISE)(lambda words: 1)
    refuses(message, judged, lambda x, rng: count(set(x.ravel())))


def test_a_distance_measures_inputs_of_any_kind():
    believed = primitive("trusted", distance=apart, **PROMISE)(size.__wrapped__)
    near = judged(lambda x, rng: believed(set(x.ravel())))
    assert (str(near.verdict), near.loss) == ("NOT_REFUTED", 0.5)
    far = judged(lambda x, rng: believed({*x.ravel(), *(-x).ravel()}))
    assert (str(far.verdict), far.findings[0].kind) == ("NOT_FOLLOWED", "distance")
    assert "lie 2 apart" in far.findings[0].message


NOT_DECLARED = [
    ({"distance": 3}, "distance must be a function, got 3"),
    ({"distance": apart, "norm": 2}, "norm and distance exclude each other"),
    ({"trusted": 1}, "trusted must be True or False, got 1"),
    ({"bits": True}, "bits is of primitives that are not trusted"),
]


@pytest.mark.parametrize(("options", "message"), NOT_DECLARED)
def test_declarations_that_cannot_be_are_refused(options, message):
    refuses(message, primitive, "trusted", **PROMISE, **options)
