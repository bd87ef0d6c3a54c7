"""Declared primitives and invariants: verdicts, lines, hostile code, what is left."""

import contextlib
import gc
import math
import random
import secrets

import numpy as np
import pytest
from replay_cases import line_of, rows

from dpaudit import (
    ApproxDP,
    GaussianDP,
    InputError,
    Pair,
    PureDP,
    ZeroConcentratedDP,
)
from dpaudit.audit.replay import invariant, primitive, replay
from dpaudit.audit.replay.declare import primitives as internals
from dpaudit.audit.replay.judge.statistics import ReplayedMechanism
from dpaudit.errors import MechanismError, UnsupportedError

PAIR = Pair(rows(0.2, 0.5), rows(0.2, 0.5, 1.0))
CLAIM = PureDP(1.0)
SYSTEM = secrets.SystemRandom()
OWN = np.random.RandomState(3)


@pytest.fixture(autouse=True)
def seeded():
    """Begin every test with the same draws of the module's own generator."""
    OWN.seed(3)


@primitive("laplace", value="value", scale="scale")
def noisy(value, scale):
    return value + scale * SYSTEM.choice((-1, 1)) * SYSTEM.expovariate(1.0)


@primitive("laplace", value="x", scale=lambda epsilon: 1 / epsilon)
def noisy_vector(x, epsilon):
    return x + OWN.laplace(scale=1 / epsilon, size=np.shape(x))


@primitive("discrete-laplace", value="count", scale=1.0)
def noisy_count(count):
    a, b = (math.floor(SYSTEM.expovariate(1.0)) for _ in range(2))
    return count + a - b


@primitive("exponential", scores="scores", scale=2.0, candidates="names")
def chosen(scores, names):
    return SYSTEM.choices(names, weights=np.exp(np.array(scores) / 2))[0]


@primitive("randomised-response", value="bits", truth=0.75)
def responses(bits):
    flip = [SYSTEM.random() > 0.75 for _ in bits]
    return [int(bit != turn) for bit, turn in zip(bits, flip, strict=True)]


@primitive("trusted", value="value", sensitivity=1.0, epsilon="epsilon", delta=0.0)
def trusted(value, epsilon):
    return value + SYSTEM.gauss(0, 1 / epsilon)


def judged(mechanism, claim=CLAIM, pair=PAIR, **options):
    options = {"sees": "transcript", "budget": 2} | options
    return replay(mechanism, pair=pair, claim=claim, **options)


def with_rng(rng, scale):
    """Return a primitive in which there is randomness of all kinds, its own affair."""

    @primitive("laplace", value="value", scale=scale)
    def add(value):
        assert rng.bit_generator is not None
        random.random()
        random.gauss(0, 1)
        OWN.random_sample()
        spread = np.zeros(2)
        spread[0] = rng.permutation(3)[0] * 0 + rng.laplace()
        assert type(spread) is np.ndarray
        return value + scale * spread[0]

    return add


RIGHT = {
    "count": lambda x, rng: noisy(float(len(x)), 1.0),
    "of rng": lambda x, rng: with_rng(rng, 1.0)(float(len(x))),
    "vector": lambda x, rng: noisy_vector(np.array([len(x) / 2, x.sum() / 4]), 1.0) / 3,
    "counts": lambda x, rng: [noisy_count(len(x)), noisy_count(7)],
    "choices": lambda x, rng: chosen([float(len(x)), 1.0], ["red", "green"]),
    "promises": lambda x, rng: trusted(len(x), 0.6) + noisy(float(x.sum()), 2.5),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_what_is_right_is_not_refuted(name, sees):
    result = judged(RIGHT[name], sees=sees)
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    assert result.loss <= 1 + 1e-9


WRONG = [
    (lambda x, rng: noisy(float(len(x)), 0.5), "distance"),
    (lambda x, rng: noisy_vector(np.array([3.0 * len(x), len(x)]), 1.0), "distance"),
    (lambda x, rng: with_rng(rng, 0.5)(float(len(x))), "distance"),
    (lambda x, rng: (noisy(float(len(x)), 1.5), noisy_count(len(x))), "budget"),
    (lambda x, rng: noisy(float(x.sum()), 1.0) / len(x), "release"),
    (lambda x, rng: noisy(float(len(x)), 0.0), "release"),
    (lambda x, rng: (noisy(0.0, 1.0), chosen([1.0, 2.0], "ab"), x.sum()), "release"),
]


@pytest.mark.parametrize(("mechanism", "kind"), WRONG)
def test_what_is_wrong_is_proven_to_whoever_sees_transcripts(mechanism, kind):
    result = judged(mechanism)
    assert (str(result.verdict), result.proof) == ("REFUTED", True)
    line = mechanism.__code__.co_firstlineno
    assert any(
        each.kind == kind and each.where.endswith(f":{line}") and each.proof is True
        for each in result.findings
    ), [*map(str, result.findings)]
    hidden = judged(mechanism, sees="release")
    assert not hidden.proof
    assert kind in {each.kind for each in hidden.findings}


def test_other_calls_and_other_scales_are_found():
    result = judged(lambda x, rng: [noisy(0.0, 1.0) for _ in x])
    assert "structure" in {each.kind for each in result.findings}
    result = judged(lambda x, rng: noisy(0.0, float(x.max())), claim=PureDP(5.0))
    assert [each.kind for each in result.findings][:1] == ["scale"]
    assert "0.5 on D and 1 on D'" in result.findings[0].message


def test_choices_are_executed_in_all_their_ways():
    """A declared choice has an exactly known law, and so has the release."""
    right = judged(RIGHT["choices"], sees="release")
    p, q = (1 / (1 + math.exp((1 - n) / 2)) for n in (2, 3))
    assert right.loss == pytest.approx(math.log((1 - p) / (1 - q)))
    wrong = judged(RIGHT["choices"], claim=PureDP(0.2), sees="release")
    assert (str(wrong.verdict), wrong.proof) == ("REFUTED", True)

    def answers(x, rng):
        return responses([int(bit) for bit in x.ravel()])

    options = {"pair": Pair(rows(0, 1), rows(0, 0), relation="replace-one")}
    loose = judged(answers, claim=PureDP(math.log(3)), sees="release", **options)
    assert str(loose.verdict) == "NOT_REFUTED"
    assert loose.loss == pytest.approx(math.log(3))
    for sees in ("release", "transcript"):
        assert judged(answers, claim=PureDP(1.09), sees=sees, **options).proof


def test_promises_are_held_to_their_sensitivity_and_added_up():
    def too_far_for_it(x, rng):
        return trusted(2.0 * len(x), 0.6), trusted(float(len(x)), 0.3)

    result = judged(too_far_for_it)
    assert str(result.verdict) == "NOT_FOLLOWED"
    (finding,) = result.findings
    assert finding.kind == "distance"
    assert "lie 2 apart" in finding.message
    assert "trusted(2.0" in line_of(finding)
    assert math.isnan(result.loss)
    assert "not known" in str(result)

    def two_of_them(x, rng):
        return trusted(float(len(x)), 0.6), trusted(float(len(x)), 0.6)

    over = judged(two_of_them)
    assert (str(over.verdict), over.findings[0].kind) == ("NOT_FOLLOWED", "budget")
    assert over.loss == pytest.approx(1.2)
    enough = judged(two_of_them, claim=ApproxDP(1.2, 1e-6))
    assert (str(enough.verdict), enough.findings) == ("NOT_REFUTED", ())
    assert "loss           1.2, as far as what is trusted keeps" in str(enough)


@primitive("trusted", value="value", sensitivity=1.0, epsilon=0.25, delta="delta")
def with_a_delta(value, delta):
    return value + SYSTEM.gauss(0, 1)


def test_what_is_promised_may_be_gained_and_does_not_hide_what_is_certain():
    def beside(x, rng, share):
        return len(x) + rng.laplace(scale=1 / share), trusted(float(len(x)), 0.3)

    found = [judged(lambda x, rng, s=s: beside(x, rng, s)) for s in (1.2, 1.4)]
    assert [str(each.verdict) for each in found] == ["NOT_FOLLOWED", "REFUTED"]

    def bare(x, rng):
        near = len(x) + rng.laplace(scale=4.0) > 0
        return near, with_a_delta(len(x), 1e-6), float(len(x))

    assert [judged(bare).verdict, judged(bare).loss] == ["REFUTED", math.inf]


@pytest.mark.parametrize("first", [True, False])
def test_what_a_value_could_cost_refutes_unless_a_promise_comes_before_it(first):
    def beside(x, rng):
        before = trusted(float(len(x)), 0.3) if first else 0.0
        high = len(x) + rng.normal() > 50
        return high, before if first else trusted(float(len(x)), 0.3)

    result = judged(beside, claim=PureDP(8.0))
    wanted = ("NOT_REFUTED", False) if first else ("REFUTED", True)
    assert (result.verdict, result.proof) == wanted


def test_what_is_lost_on_the_other_dataset_alone_counts():
    def sharper_there(x, rng):
        low = len(x) + rng.laplace(scale=0.05) < 2.5
        return low, len(x) + rng.laplace(scale=4.0 if low else 0.1)

    result = judged(sharper_there, claim=ApproxDP(22.0, 1e-6))
    assert result.verdict == "REFUTED"


def test_promised_deltas_are_told_where_the_claim_holds_by_them():
    def sums(x, rng):
        noise = rng.laplace(scale=4.0)
        return with_a_delta(len(x), 1e-6), with_a_delta(x.sum(), 2e-6), len(x) + noise

    kept = judged(sums, claim=ApproxDP(0.8, 1e-5), sees="release")
    assert (str(kept.verdict), kept.loss) == ("NOT_REFUTED", math.inf)
    assert (kept.delta.epsilon, kept.delta.allowed) == (0.8, 1e-5)
    assert kept.delta.delta == pytest.approx(3e-6)
    assert "inf: what is trusted has a delta, and promises no bound" in str(kept)
    assert "delta          at most 3e-06 at epsilon 0.8" in str(kept)
    for claim in (ApproxDP(0.7, 1e-5), ApproxDP(0.8, 2e-6), PureDP(9.0)):
        assert judged(sums, claim=claim, sees="release").delta is None


@pytest.mark.parametrize("claim", [ApproxDP(1.0, 1e-5), ZeroConcentratedDP(0.5)])
def test_an_infinite_loss_that_refutes_nothing_is_said_to_be_allowed(claim):
    result = replay(
        lambda x, rng: [len(x) + rng.normal(0, 20.0), x.sum() + rng.laplace(0, 4.0)],
        **{"pair": PAIR, "claim": claim},
    )
    assert (str(result.verdict), result.loss) == ("NOT_REFUTED", math.inf)
    assert "loss           inf, and the claim asks for no bound" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "verdict"),
    [
        # It has no finite supremum; these transcripts do not show it.
        (
            lambda x, rng: (trusted(len(x), 0.1), noisy(0.0, 10.0 + len(x))),
            "NOT_REFUTED",
        ),
        (lambda x, rng: trusted(len(x), 0.1 * len(x)), "NOT_FOLLOWED"),
    ],
)
def test_another_scale_or_promise_is_found(mechanism, verdict):
    result = judged(mechanism)
    assert str(result.verdict) == verdict
    assert [each.kind for each in result.findings][:1] == ["scale"]


def test_claims_with_a_delta_are_tested_on_transcripts():
    """Under the null of a true claim a refutation has probability <= 1e-6."""

    @primitive("gaussian", value="value", scale=1.0)
    def normal(value):
        return value + SYSTEM.gauss(0, 1)

    def far(x, rng):
        names = ["a", "b"] if len(x) > 2 else ["b", "a"]
        return normal(6.0 * len(x)), chosen([1.0, 1.0], names)

    options = {"confidence": 1 - 1e-6, "budget": 40}
    result = judged(far, claim=GaussianDP(1.0), **options)
    assert (str(result.verdict), result.proof) == ("REFUTED", False)
    right = judged(far, claim=GaussianDP(6.0), **options)
    assert (str(right.verdict), right.samples) == ("NOT_REFUTED", 0)


def test_outcomes_that_are_others_on_the_neighbour_have_no_known_transcripts():
    def among_others(x, rng):
        return len(chosen([1.0, 1.0], ["a", "b"] if len(x) > 2 else ["b", "c"]))

    followed = ReplayedMechanism(among_others)
    rng = np.random.default_rng(0)
    seen = followed.transcript(PAIR.data, 1, rng=rng)
    with pytest.raises(UnsupportedError, match="among others"):
        followed.transcript_loss(seen, PAIR.data, PAIR.neighbour)


# -- invariants


def counts_publicly(x, rng):
    n = len(x)
    invariant(n=n)
    return noisy(float(x.sum()), 1.0)


def counts_publicly_with_numpy(x, rng):
    n = len(x)
    invariant(n=n)
    return x.sum() + rng.laplace(scale=1.0)


def counts_after_a_look(x, rng):
    total = float(x.sum() + rng.laplace(scale=1.0))
    invariant(total=total, rows=x.tolist())
    return total


DIFFERS = "n must not depend on the data, and is 2 on D and 3 on D'"


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (counts_publicly, DIFFERS),
        (counts_publicly_with_numpy, DIFFERS),
        (counts_after_a_look, "rows must not depend on the data"),
    ],
)
def test_an_invariant_that_differs_is_a_finding_at_its_line(mechanism, message):
    result = judged(mechanism, sees="release")
    (finding,) = (each for each in result.findings if each.kind == "release")
    assert (str(result.verdict), finding.proof) == ("NOT_FOLLOWED", None)
    assert "invariant(" in line_of(finding)
    assert finding.message.startswith(message)


def test_invariants_that_do_not_differ_are_silent_and_first_ones_refute():
    def silent(x, rng):
        n = noisy(float(len(x)), 2.0)
        invariant(n=n, words=["a", 1.5], size=np.ones(3), nothing=None)
        return x.sum() / max(n, 5.0) + rng.laplace(scale=2.0)

    result = judged(silent, sees="release")
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    for mechanism in (counts_publicly, counts_publicly_with_numpy):
        result = judged(mechanism, claim=ApproxDP(1.0, 0.1))
        assert (str(result.verdict), result.proof) == ("REFUTED", True)
        assert result.loss == math.inf
    assert not judged(counts_after_a_look).proof


@pytest.mark.parametrize(
    ("least", "message"),
    [
        (0, "one is noted 2 times on D and 3 times on D'"),
        (3, "one is noted on D' only"),
    ],
)
def test_an_invariant_that_is_noted_more_often_on_one_side_is_found(least, message):
    def each_row(x, rng):
        for _ in x if len(x) >= least else ():
            invariant(one=1)
        return x.sum() + rng.laplace(scale=1.0)

    (finding,) = judged(each_row, sees="release").findings
    assert finding.message == message


# -- outside of a replay, and after one


def test_outside_of_a_replay_a_primitive_is_the_function_itself():
    def stops(x, rng):
        noisy(1.0, 1.0)
        raise SystemExit

    with pytest.raises(MechanismError):
        judged(stops)
    assert internals._recorded == []
    assert noisy.__name__ == "noisy"
    assert noisy.__wrapped__(1.0, 0.0) == noisy(1.0, 0.0) == 1.0
    assert invariant(n=3) is None
    with pytest.raises(TypeError):
        noisy(1.0)


# -- hostile code


@primitive("laplace", value="value", scale="scale")
def outer(value, scale):
    return noisy(value, scale) if scale > 0.1 else value


def test_primitives_within_primitives_count_once_and_noise_into_them_is_looked_at():
    result = judged(lambda x, rng: outer(float(len(x)), 1.0))
    assert (str(result.verdict), result.loss) == ("NOT_REFUTED", pytest.approx(1.0))
    assert len(result.steps) == 1
    result = judged(lambda x, rng: noisy([x.sum() + rng.laplace(scale=2.0)][0], 2.0))
    assert (str(result.verdict), len(result.steps)) == ("NOT_REFUTED", 2)


@primitive("laplace", value="value", scale=1.0)
def moody(value):
    if value > 2:
        raise ValueError("too many")
    return value + SYSTEM.gauss(0, 1)


@pytest.mark.parametrize(
    "names",
    [[(0, 1), [1, [2]]], [np.zeros(2), np.ones((1, 2))], [0.5, "a"], [b"", None]],
)
def test_candidates_may_be_anything(names):
    def picks(x, rng):
        picked = chosen([float(len(x)), 1.0], names)
        assert any(each is picked for each in names)
        return 0.0

    result = judged(picks)
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    assert result.steps[0].family == "choice"


@pytest.mark.parametrize("caught", [ZeroDivisionError, ValueError])
def test_an_exception_within_a_primitive_is_not_followed(caught):
    def mechanism(x, rng):
        with contextlib.suppress(caught):
            return moody(float(len(x)))
        return 0.0

    result = judged(mechanism)
    # One that gets out, on D' alone, is seen there each time.
    verdict = "NOT_FOLLOWED" if caught is ValueError else "REFUTED"
    assert (str(result.verdict), result.proof) == (verdict, False)
    assert any("raises ValueError" in each.message for each in result.findings)


def declared(returned, kernel="laplace", **fields):
    fields = fields or {"value": "x", "scale": 1.0}
    return primitive(kernel, **fields)(lambda x: returned)


PROMISED = {"value": "x", "sensitivity": 1.0, "epsilon": 1.0}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: declared("a word")(1.0),
        lambda x: declared(np.zeros(3), "gaussian")(1.0),
        lambda x: declared(2, "exponential", scores="x", scale=1.0)([1.0, 2.0]),
        lambda x: bool(declared(lambda: 1.0, "trusted", **PROMISED)(1.0)),
        lambda x: noisy(None, 1.0),
        lambda x: noisy(1.0, math.nan),
        lambda x: noisy(1.0, -1.0),
        lambda x: responses([0, 5]),
    ],
)
def test_calls_that_have_no_law_are_not_followed(call):
    def mechanism(x, rng):
        with contextlib.suppress(TypeError):
            call(x)
        return x.sum() + rng.laplace(scale=1.0)

    result = judged(mechanism)
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert {each.kind for each in result.findings} == {"coin"}
    assert "lambda x" in line_of(result.findings[0])


@primitive("laplace", value="x", scale=1.0)
def in_place(x):
    assert type(x) is np.ndarray
    x += OWN.laplace(size=x.shape)
    return x


@pytest.mark.parametrize("returned", [True, False])
def test_an_argument_that_is_written_over_has_the_noise_that_is_given_back(returned):
    def mechanism(x, rng):
        sums = np.array([float(len(x)), 0.0])
        noised = in_place(sums)
        assert noised is sums
        return (noised if returned else sums) / 2 + 1

    result = judged(mechanism)
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    assert result.loss == pytest.approx(1.0)


def test_bounds_that_are_integers_take_no_digits_of_what_is_within_them():
    @primitive("laplace", value="x", scale=1.0, lower=0, upper=3)
    def cut(x):
        return max(0, min(3, x + OWN.laplace()))

    for _ in range(5):
        result = judged(lambda x, rng: cut(float(len(x) - 2)), sees="transcript")
        assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())


@pytest.mark.parametrize("more", [[0.0], np.ones(1)], ids=["list", "array"])
def test_a_primitive_that_changes_an_argument_otherwise_is_not_followed(more):
    @primitive("laplace", value="x", scale=1.0)
    def beside(x, more):
        more[0] = OWN.laplace()
        return x + OWN.laplace()

    result = judged(lambda x, rng: beside(float(len(x)), more.copy()))
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert "changes one of its arguments" in result.findings[0].message


def test_a_generator_is_excused_within_primitives_and_nowhere_else():
    def uses_it_outside_as_well(x, rng):
        OWN.random_sample()
        return noisy_vector(np.array([float(len(x))]), 1.0)

    result = judged(uses_it_outside_as_well)
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert any("was there before" in each.message for each in result.findings)


def test_a_generator_is_seen_that_the_collector_does_not_list(objects_listed_anew):
    gc.freeze()  # as servers do before they fork
    result = judged(lambda x, rng: len(x) + OWN.laplace())
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert any("was there before" in each.message for each in result.findings)


def test_outcomes_that_go_by_their_place_in_memory_are_not_followed():
    class Outcome:
        pass

    def picks(x, rng):
        names = [Outcome(), Outcome()]
        return names.index(chosen([float(len(x)), 1.0], names))

    for sees in ("release", "transcript"):
        result = judged(picks, sees=sees)
        assert (str(result.verdict), math.isnan(result.loss)) == ("NOT_FOLLOWED", True)
        assert any("must have a repr" in each.message for each in result.findings)


# -- declarations that cannot be


@pytest.mark.parametrize(
    ("kernel", "changes", "message"),
    [
        ("laplase", {}, "did you mean 'laplace'"),
        ("laplace", {"scale": None}, "scale must be a number"),
        ("laplace", {"p": 2}, "unknown field"),
        ("laplace", {"value": "data"}, "'data', which .*f lacks"),
        ("laplace", {"scale": lambda b: b}, "'b', which .*f lacks"),
        *(("laplace", {"scale": b}, "scale must") for b in (0.0, -1.0)),
        *(("laplace", {"scale": b}, "scale must") for b in (math.nan, math.inf)),
        ("trusted", {}, "needs sensitivity="),
        ("trusted", PROMISED | {"epsilon": 0.0}, "epsilon must be"),
        ("trusted", PROMISED | {"delta": math.nan}, "delta must not be NaN"),
    ],
)
def test_bad_declarations_are_refused_at_once(kernel, changes, message):
    def f(x, scale):
        return x

    usual = {"value": "x"} | ({"scale": 1.0} if kernel != "trusted" else {})
    with pytest.raises(InputError, match=message):
        primitive(kernel, **usual | changes)(f)
