import json
import math
import sys
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, attacks, audited
from refusals import refuses

from dpaudit import Claim, InputError, MechanismError, PureDP, Relation
from dpaudit.algorithms import SymmetricNoise
from dpaudit.attacks import Attack, Identity
from dpaudit.audit import Run, Witness, audit, verify
from dpaudit.audit.judged import UNFOUNDED
from dpaudit.codec import encode

pytestmark = pytest.mark.usefixtures("in_few_rounds")


def through_json(witness):
    return Witness.from_dict(json.loads(json.dumps(witness.to_dict(), allow_nan=False)))


def fails_on_one(data, rng):
    """Raise often on D, seldom on D'."""
    if rng.random() < (0.8 if len(data) == 1 else 0.05):
        raise KeyError("lost")
    return rng.normal()


def wide_shift(data, rng):
    return data.sum() * np.array([2.0, 1.0, 0.0]) + rng.laplace(size=3)


def two_shapes(data, rng):
    """Have one shape half the time on D, and almost never on D'."""
    return np.zeros(1 if rng.random() < (0.45 if len(data) == 1 else 0.02) else 2)


@dataclass(frozen=True)
class LeakyMean:
    """Two noisy sums, of which the release shows the average; one has little noise."""

    claim: Claim = CLAIM
    relation: Relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return self.transcript(data, 1, rng=rng)["first"][0]

    def transcript(self, data, size, *, rng):
        total = np.sum(data)
        return {
            "first": total + rng.laplace(size=size),
            "second": total + 0.1 * rng.laplace(size=size),
        }


def witness_of(mechanism, *names, reference=None, **options):
    """Return what an audit with these attacks leaves."""
    options = {"pair": PAIR, "claim": CLAIM} | options
    run = Run(attacks=attacks(*names), reference=reference)
    return audit(mechanism, run=run, **options).witness


@pytest.fixture(scope="module")
def witness():
    run = Run(attacks=attacks("exact-loss"))
    return audit(SymmetricNoise.as_published(1.0), seed=3, run=run).witness


@pytest.fixture(scope="module")
def labels_witness():
    return witness_of(fails_on_one, "abnormal")


@pytest.fixture(scope="module")
def learned_witness():
    return witness_of(wide_shift, "linear-discriminant")


def test_round_trip_through_a_file_that_is_whole(witness, tmp_path):
    path = tmp_path / "witness.json"
    witness.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["witness.json"]
    loaded = Witness.load(path)
    assert loaded.to_dict() == witness.to_dict()
    assert json.loads(path.read_text()) == witness.to_dict()
    assert np.array_equal(loaded.pair.neighbour, witness.pair.neighbour)
    assert loaded.layout == witness.layout == "shape (2, 2)"
    refuses("cannot write", witness.save, tmp_path / "no such folder" / "witness.json")
    refuses("cannot read", Witness.load, tmp_path / "missing.json")
    path = tmp_path / "witness.json"
    witness.save(path)
    text = path.read_text()
    for length in range(0, len(text) - 2, 97):
        path.write_text(text[:length])
        refuses(r"not complete JSON|not a witness", Witness.load, path)
    for stored in ([], 3, "text", None):
        refuses("not a witness", Witness.from_dict, stored)


def test_witnesses_verify_on_fresh_randomness(witness):
    """Power: each of three verifications confirms with probability > 0.99."""
    modest = replace(witness, confidence=0.01)  # which it does not choose itself
    for seed, found in ((10, witness), (11, witness), (12, modest)):
        verification = verify(found, seed=seed)
        assert verification.confirmed
        assert verification.confidence == pytest.approx(0.999)
        assert verification.samples <= 200
        assert "CONFIRMED" in str(verification)
        json.dumps(verification.to_dict(), allow_nan=False)
    first, second = verify(witness), verify(witness)
    assert first.seed != second.seed
    refuses("differ from the witness's own, got 3", verify, witness, seed=witness.seed)


def test_witnesses_of_labels_and_of_learned_attacks_travel(
    labels_witness, learned_witness
):
    """Power: 0.8 against 0.05 is confirmed with probability > 0.999."""
    loaded = through_json(learned_witness)
    assert loaded.to_dict() == learned_witness.to_dict()
    assert loaded.attack == "linear-discriminant"
    assert verify(loaded, mechanism=wide_shift, seed=1).confirmed
    loaded = through_json(labels_witness)
    assert loaded.to_dict() == labels_witness.to_dict()
    assert (loaded.attack, loaded.layout) == ("abnormal", "")
    verification = verify(loaded, mechanism=fails_on_one, seed=7)
    assert verification.confirmed
    # The event is "it raises", or that it does not.
    gap = verification.hits - verification.hits_neighbour
    assert abs(gap) > 0.4 * verification.samples


def test_transcripts_are_replayed_and_what_is_ordinary_stays_so():
    found = witness_of(LeakyMean(), "linear-discriminant", layer="transcript")
    assert found.layer == "transcript"
    assert found.layout == "shapes {first: (), second: ()}"
    assert verify(through_json(found), mechanism=LeakyMean(), seed=1).confirmed
    refuses("must have a transcript", verify, found, mechanism=wide_shift, seed=1)
    # Both shapes are common on D: which one is ordinary must not be guessed anew.
    found = witness_of(two_shapes, "abnormal", "atoms")
    outcomes = [verify(found, mechanism=two_shapes, seed=s) for s in range(1, 6)]
    assert all(outcome.confirmed for outcome in outcomes)
    signs = {np.sign(o.hits - o.hits_neighbour) for o in outcomes}
    assert len(signs) == 1


def test_mechanisms_without_an_import_name_must_be_passed_or_named():
    mechanism = SymmetricNoise.as_published(1.0)
    found = witness_of(
        lambda d, rng: mechanism.release(d, rng=rng),
        *("support", "canary-quadratic"),
        pair=mechanism.worst_case(),
    )
    assert found.mechanism is None
    refuses("cannot be imported by name", verify, found)
    assert verify(found, mechanism=mechanism, seed=1).confirmed
    reference = "some.module:mechanism"
    found = witness_of(lambda d, rng: loud_sum(d, rng), "identity", reference=reference)
    assert found.mechanism == {"$reference": "some.module:mechanism"}
    refuses("cannot import module 'some", verify, found)


def test_attacks_of_ones_own_leave_no_witness():
    """Nobody else could replay them."""

    class Mine(Identity):
        name = "mine"

    class Impostor(Attack):
        name = "identity"
        learns = False

        def applies(self, target, releases):
            return True

        def score(self, target, parameters, releases):
            return -releases

    for attack in (Mine(), Impostor()):
        result = audit(loud_sum, pair=PAIR, claim=CLAIM, run=Run(attacks=[attack]))
        assert result.refuted
        assert result.witness is None


@pytest.mark.parametrize("epsilon", [0.1, math.nan])
def test_a_forged_reference_point_is_refused(labels_witness, epsilon):
    """A witness may not claim 1-DP and have 0.1-DP tested in its place."""
    forged = replace(labels_witness, at_epsilon=epsilon)
    refuses("is not that of its claim", verify, forged)


def test_more_scores_than_releases_prove_nothing(learned_witness):
    """A forged matrix in place of a vector gives every release a thousand scores.

    Whoever counted them would see a thousand hits a release where there is one.
    """
    found = learned_witness
    assert found.parameters["direction"].ndim == 1

    def honest(data, rng):
        return rng.laplace(size=3)

    direction = np.stack([found.parameters["direction"]] * 1000, axis=-1)
    forged = replace(found, parameters={**found.parameters, "direction": direction})
    with pytest.raises(InputError, match=r"gives scores of shape \(8, 1000\) to 8 out"):
        verify(forged, mechanism=honest, seed=1, max_samples=100)


GONE = object()


def changed(witness, place, value):
    """Return what is stored of a witness, with another value in a place, or none."""
    stored = json.loads(json.dumps(witness.to_dict()))
    part = stored
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    if value is GONE:
        del part[place[-1]]
    return stored


MALFORMED, TEXT = "truncated or malformed", "must be an object or a reference"
SCORE, NUMBER = ("event", "score_at_least"), "must be a number above"


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        *((["event"], GONE, MALFORMED), (["layout"], GONE, MALFORMED)),
        (["counts", "data", "hits"], GONE, MALFORMED),
        *((["neighbour"], GONE, MALFORMED), (["versions"], [], MALFORMED)),
        (["versions"], {"0.5": 0.1}, "versions must be text"),
        (["version"], 1, "version 1 is not supported"),
        (["version"], 4, "version 4 is not supported"),
        (["format"], "other", "not a witness"),
        (["event", "attack"], "telepathy", "unknown attack 'telepathy'"),
        (["layer"], "exact", "unknown layer 'exact'"),
        (["layer"], 7, "layer must be text, got 7"),
        (["name"], None, "name must be text, got None"),
        (["relation"], ["add-remove"], "relation must be text"),
        (["relation"], "sideways", "relation must be one of"),
        (["data"], [1.0], "data must be an array"),
        (["data"], {"$array": [[1.0]]}, "expected \\$array, dtype, shape"),
        (["claim"], 3, "is no claim"),
        (["reference"], {"epsilon": math.nan, "delta": 0}, "reference epsilon must"),
        (["reference"], {"epsilon": 1.0, "delta": 2}, "reference delta must be in"),
        (["reference"], {"epsilon": 2.0, "delta": 0}, "is not that of its claim"),
        (["event", "parameters"], [], "parameters must be named arrays"),
        (["event", "parameters"], {"a": 1.0}, "parameter 'a' must be an array"),
        *((SCORE, {"$float": "nan"}, NUMBER), (SCORE, {"$float": "-inf"}, NUMBER)),
        *((SCORE, True, NUMBER), (SCORE, "1", NUMBER), (["mechanism"], "code", TEXT)),
        (["mechanism"], {}, TEXT),
        (["mechanism"], {"$object": "a:b"}, "mechanism must be an object"),
    ],
)
def test_damage_is_named(witness, place, value, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Witness.from_dict(changed(witness, place, value))
    assert str(caught.value).isprintable()


NO_NUMBERS = [None, "1", "x", True, [1], {"$float": "inf"}, math.nan, math.inf, -1e-9]


@pytest.mark.parametrize(
    ("place", "name", "wrong"),
    [
        ("event.resolution", "the resolution", [0, 10**400]),
        ("found.confidence", "the confidence", [0, 1, 1.0, 2]),
        ("found.log_evidence", "log_evidence", [10**400]),
        ("found.samples", "samples", [0, 1.0, 2**53 + 1]),
        ("found.seed", "the seed", [-1, 1.0]),
        ("counts.data.hits", "hits on the data", [1.0, -1]),
        (
            "counts.neighbour.releases",
            "releases on the neighbour",
            [1e3, -1, 2**53 + 1, 10**400],
        ),
    ],
)
def test_numbers_are_numbers_of_their_kind(witness, place, name, wrong):
    for value in NO_NUMBERS + wrong:
        with pytest.raises(InputError, match=f"{name} must be"):
            Witness.from_dict(changed(witness, place.split("."), value))


ADD_UP = "do not add up"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        *(({"counts": (5, 4, 0, 9)}, ADD_UP), ({"counts": (0, 9, 5, 4)}, ADD_UP)),
        *(({"counts": (-1, 4, 0, 9)}, ADD_UP), ({"counts": (0, 0, 0, 9)}, ADD_UP)),
        ({"counts": (0, 9, 0, 0)}, ADD_UP),
        ({"parameters": [1, 2]}, "parameters must be named arrays"),
        ({"parameters": {"labels": "x"}}, "parameters must be named arrays"),
    ],
)
def test_a_witness_is_checked_however_it_is_made(witness, changes, sentence):
    refuses(sentence, replace(witness, **changes).check)


@pytest.mark.parametrize(
    "parameters",
    [
        *({}, {"labels": np.zeros((2, 3)), "scores": np.zeros(5)}),
        {"labels": np.zeros(3), "scores": np.zeros(3)},
        {"labels": np.zeros((1, 0)), "scores": np.zeros(1)},
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_the_attack_are_named(labels_witness, parameters):
    damaged = replace(labels_witness, parameters=parameters)
    with pytest.raises(InputError, match="do not fit the attack 'abnormal'"):
        verify(damaged, mechanism=fails_on_one, seed=1, max_samples=50)


def test_the_attack_s_arrays_are_bounded(witness):
    """An array without entries counts by its axes: an attack may walk along them."""
    stored = json.loads(json.dumps(witness.to_dict()))
    for shape, fits in (([0, 2**24], True), ([0, 2**24 + 1], False)):
        array = {"$array": [], "dtype": "<f8", "shape": shape}
        stored["event"]["parameters"] = {"a": array}
        if fits:
            assert Witness.from_dict(stored).parameters["a"].shape == tuple(shape)
            continue
        refuses("at most 16,777,216 entries, got", Witness.from_dict, stored)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"confidence": 2.0}, r"confidence must be in \(0, 1\), got 2.0"),
        ({"max_samples": -5}, "max_samples must be an integer >= 1, got -5"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        (
            {"mechanism": lambda data, rng: rng.laplace(size=(2, 2))},
            "mechanism do not fit .* 'privacy_loss'",
        ),
    ],
)
def test_verify_checks_its_arguments(witness, options, sentence):
    refuses(sentence, verify, witness, **{"seed": 1, "max_samples": 4} | options)


# What verify is told, what it says, and what it does not do
def honest_sum(data, rng):
    return data.sum() + rng.laplace()


def loud_sum(data, rng):
    return data.sum() + rng.laplace(scale=0.2)


@dataclass(frozen=True)
class Noisy:
    """A sum with noise of some scale."""

    claim: Claim = CLAIM
    scale: float = 0.2
    relation: Relation | str = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)


@pytest.fixture(scope="module")
def sum_witness():
    return audited(Noisy(), claim=None).witness


def warned(witness, mechanism, **options):
    """Return what is said beside a verdict on a few releases."""
    options = {"seed": 1, "max_samples": 4} | options
    return list(verify(witness, mechanism=mechanism, **options).warnings)


def test_the_mechanism_given_is_compared_with_that_of_the_witness(
    sum_witness, monkeypatch
):
    assert warned(sum_witness, Noisy()) == []
    assert warned(sum_witness, None) == []
    assert warned(replace(sum_witness, mechanism=None), honest_sum) == []
    named = f"the witness names {encode(Noisy())['$object']}"
    (line,) = warned(sum_witness, loud_sum)
    assert line == f"the mechanism given is {__name__}:loud_sum, {named}"
    (line,) = warned(sum_witness, lambda data, rng: rng.random())
    assert line == f"the mechanism given is function, {named}"
    module = ModuleType("module_of_mechanisms")
    module.mine = Noisy()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    stored = {"$reference": "module_of_mechanisms:mine"}
    found = replace(sum_witness, mechanism=stored)
    assert warned(found, module.mine) == []
    (line,) = warned(found, Noisy())
    assert line.endswith("the witness names module_of_mechanisms:mine")
    module.__file__ = "/mine/module_of_mechanisms.py"
    for folder, warnings in (("mine", 0), ("other", 1)):
        stored = {"$reference": f"/{folder}/module_of_mechanisms.py:mine"}
        found = replace(sum_witness, mechanism=stored)
        assert len(warned(found, module.mine)) == warnings


def test_no_release_counts_twice_in_a_verification(sum_witness):
    drawn = []

    def noisy(data, rng):
        drawn.append(float(rng.laplace()))
        return drawn[-1]

    verification = verify(sum_witness, mechanism=noisy, seed=1, max_samples=100)
    assert not verification.confirmed
    assert "NOT CONFIRMED" in str(verification)
    # What comes after these is drawn again, to see whether it comes out alike.
    counted = drawn[: 2 * verification.samples]
    assert len(set(counted)) == len(counted) == 200


def test_a_verification_warns_of_dependent_releases(sum_witness):
    kept = []

    def drifting(data, rng):
        kept.append(rng.laplace())
        return sum(kept)

    why, _, state = warned(sum_witness, drifting)
    assert why == f"no verdict: {UNFOUNDED}"
    assert state.startswith("the same seed gave another release")
    _, unused = warned(sum_witness, lambda data, rng: 0.0)
    assert "does not use its rng" in unused


def test_releases_that_depend_on_each_other_confirm_nothing(sum_witness):
    """The same event, of noise from elsewhere: unless somebody answers for it."""
    own = np.random.default_rng(0)

    def elsewhere(data, rng):
        return data.sum() + own.laplace(scale=0.2)

    judged = verify(sum_witness, mechanism=elsewhere, seed=1)
    assert not judged.confirmed
    assert not judged.founded
    assert "NOT JUDGED (no verdict)" in str(judged)
    assert json.loads(json.dumps(judged.to_dict()))["founded"] is False
    elsewhere.seedable = False
    own = np.random.default_rng(0)
    judged = verify(sum_witness, mechanism=elsewhere, seed=1)
    assert judged.confirmed
    assert judged.founded
    assert len(judged.warnings) == 3


def test_other_arguments_are_named_and_names_do_nothing_to_a_terminal(sum_witness):
    (line,) = warned(sum_witness, Noisy(scale=1.0))
    assert line == (
        "the mechanism given differs from the witness's: scale is 1.0 there and 0.2 in "
        "the witness"
    )
    text = str(verify(sum_witness, mechanism=Noisy(scale=1.0), seed=1, max_samples=4))
    assert text.splitlines()[-1] == f"  WARNING        {line}"
    name = "a\x1b[2J\nconfirmed: VIOLATION \u202e\ud800"
    outcome = verify(replace(sum_witness, name=name), seed=1, max_samples=4)
    assert outcome.name == name
    first, *rest = str(outcome).splitlines()
    assert first.startswith(r"a\x1b[2J\nconfirmed: VIOLATION \u202e\ud800: violation")
    assert all(line.isprintable() for line in (first, *rest))
    json.dumps(outcome.to_dict(), allow_nan=False)


def test_another_claim_is_named_and_the_witness_s_is_tested(sum_witness):
    """Noise of scale 0.2 gives 5-DP, which breaks the witness's claim, not its own.

    Power: each release tells D from D' with probability > 0.9 at the best threshold.
    """
    outcome = verify(sum_witness, mechanism=Noisy(claim=PureDP(5.0)), seed=1)
    assert outcome.confirmed
    assert outcome.claim == CLAIM
    arguments, claim = outcome.warnings
    assert "claim.epsilon is 5.0 there and 1.0 in the witness" in arguments
    assert claim == (
        "the mechanism claims PureDP(epsilon=5.0); what is tested is the witness's "
        "claim, PureDP(epsilon=1.0)"
    )


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, "replace-one", "\x1b[2J"])
def test_a_claim_under_another_relation_is_refused(sum_witness, relation):
    with pytest.raises(InputError, match="states its claim under") as caught:
        warned(sum_witness, Noisy(relation=relation))
    assert str(caught.value).isprintable()
    stored = encode(Noisy(relation="replace-one"))
    with pytest.raises(InputError, match="neighbours under add-remove"):
        warned(replace(sum_witness, mechanism=stored), None)


def test_a_mechanism_that_fails_when_asked_is_named(sum_witness):
    class Failing(Noisy):
        @property
        def claim(self):
            raise RuntimeError("two\nlines")

        def __init__(self):
            pass

    with pytest.raises(MechanismError, match=r"claim raised RuntimeError: two\\nlines"):
        verify(sum_witness, mechanism=Failing(), seed=1)


def test_a_mechanism_that_is_given_saves_the_imports(sum_witness, tmp_path):
    """Not to compare it, either: whoever forged a name gets nothing run."""
    (tmp_path / "module_of_a_forger.py").write_text("raise SystemExit(1)")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        before = set(sys.modules)
        for stored in (
            {"$reference": "module_of_a_forger:attack"},
            {"$object": "module_of_a_forger:Attack", "arguments": {}},
            {"$reference": "scipy:datasets"},  # which scipy imports when it is asked
        ):
            forged = through_json(replace(sum_witness, mechanism=stored))
            assert len(warned(forged, honest_sum)) == 1
        assert set(sys.modules) == before
        with pytest.raises(InputError, match="raised SystemExit: 1"):
            warned(
                replace(forged, mechanism={"$reference": "module_of_a_forger:a"}), None
            )


class HonestBatches:
    """An honest sum that draws a million releases in no time."""

    def release(self, data, *, rng):
        return honest_sum(data, rng)

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(size=size)


def test_a_witness_does_not_choose_how_long_it_takes(sum_witness):
    """A forged count of releases is not drawn; the limit that is given is."""
    forged = replace(sum_witness, samples=2**53)
    outcome = verify(forged, mechanism=HonestBatches(), seed=1)
    assert outcome.samples == 1_000_000
    (line,) = outcome.warnings[1:]
    assert line.startswith(
        "the witness asks for 90,071,992,547,409,920 releases a side"
    )
    outcome = verify(forged, mechanism=HonestBatches(), seed=1, max_samples=1_000_001)
    assert outcome.samples == 1_000_001
    assert len(outcome.warnings) == 1
    for told, drawn in ((1, 1000), (150, 1500)):
        modest = replace(sum_witness, samples=told)
        assert verify(modest, mechanism=HonestBatches(), seed=1).samples == drawn
