"""Replay as a layer: of assertions, of the command line; its witnesses."""

import dataclasses
import json
import math
import re
import secrets
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import refused
from replay_cases import RIGHT, WRONG, private_divisor, right_count, rows
from scipy.stats import norm

from benchmarks.styles.registry import corpus
from dpaudit import (
    ApproxDP,
    Domain,
    GaussianDP,
    InputError,
    Pair,
    PureDP,
    Relation,
)
from dpaudit.attacks import BITS
from dpaudit.audit import Budget, Run, replay
from dpaudit.audit.assertions import Auditor
from dpaudit.audit.replay import (
    ReplayVerdict,
    ReplayWitness,
    load_witness,
    verify_replay,
)
from dpaudit.audit.replay.follow.tape import LAZY
from dpaudit.audit.replay.judge.shown import ShownTranscripts
from dpaudit.audit.replay.judge.statistics import ReplayedMechanism
from dpaudit.audit.replay.worst import WorstPair
from dpaudit.cli import main
from dpaudit.gaussian import gaussian_delta, gaussian_mu

PAIR = WRONG["private_divisor"][1]
CLAIM = PureDP(1.0)


test_arguments_that_are_not_allowed_are_named = refused(
    ({"sees": "everything"}, "unknown sees"),
    ({"batches": "hidden"}, "unknown batches"),
    ({"confidence": 1.5}, "confidence must be in"),
    ({"budget": 1}, "releases must be an integer >= 2"),
    ({"budget": "full"}, "budget must be a Budget or a number of releases, got"),
    ({"budget": Budget(refine=1.0)}, "^replay takes no refine$"),
    ({"budget": Budget(refine=1.0, stop=False)}, "takes no refine or stop"),
    ({"run": Run(attacks=BITS)}, "replay takes no attacks"),
    ({"run": Run(executor=object())}, "replay takes no executor"),
    ({"run": Run(progress=print, should_stop=bool)}, "progress or should_stop"),
    ({"seed": -1}, "seed must be an integer >= 0"),
    ({"claim": "1"}, "claim must be a Claim"),
    ({"claim": None}, "claim is needed"),
    ({"pair": None}, "pair or domain is needed"),
    ({"domain": "box:0,1:3"}, "pair must have rows of the domain"),
    ({"relation": "replace-one"}, "under replace-one, but the pair is add-remove"),
    by=lambda wrong: replay(right_count, **{"pair": PAIR, "claim": CLAIM, **wrong}),
)


def test_mechanisms_that_refuse_are_errors_and_differing_numbers_printed_so():
    def refuses(x, rng):
        raise InputError("rows must be larger")

    with pytest.raises(InputError, match="rows must be larger"):
        replay(refuses, pair=PAIR, claim=CLAIM)

    def dated(x, rng):
        return rng.laplace(), 1_795_770_000 + x.sum() / 10

    pair = Pair([0.2, 0.4], [0.2, 0.9], "replace-one")
    (finding,) = replay(dated, pair=pair, claim=PureDP(0.1)).findings
    one, other = re.findall(r"is (\S+) on D and (\S+) on D'", finding.message)[0]
    assert one != other


def _exact_if_many(x, rng):
    return x.mean() if len(x) > 6 else x.sum() + rng.laplace()


def _steps(x, rng):
    """A scale by the rows on one line, and a count without noise on another."""
    noisy = x.sum() + rng.laplace(scale=1.0 if len(x) < 3 else 1.0 / len(x))
    return np.array([noisy, max(len(x) - 20, 0)])


@pytest.mark.parametrize(
    ("mechanism", "begin", "words"),
    [
        (_exact_if_many, None, "D has 6 x 0; D' has 0 besides"),
        (_steps, Pair([0.4] * 9, [0.4] * 9 + [0.3]), "D has 2 x 0; D' has 0 besides"),
        # That the count is exact needs 20 rows.
        (_steps, Pair([0.4] * 20, [0.4] * 20 + [0.3]), "D has 20 x 0; D' has 0"),
    ],
)
def test_a_proof_is_on_the_simplest_pair_that_has_it_at_the_same_line(
    mechanism, begin, words
):
    relation = "add-remove" if begin is None else None  # else it is that of the pair
    told = {"domain": "scalar:0,1", "relation": relation, "claim": CLAIM}
    result = replay(mechanism, pair=begin, **told)
    assert result.proof
    assert result.neighbours.startswith(words)
    assert f"  pair           {words}" in str(result)
    assert verify_replay(result.witness, mechanism=mechanism).confirmed


def test_a_simpler_pair_that_proves_nothing_is_not_taken():
    def judged(pair, closely):
        said = {"bare": False, "rank": 0, "executions": 1, "findings": (), "turns": 0}
        return SimpleNamespace(pair=pair, proven=0 < pair.neighbour.max() < 0.7, **said)

    pair, domain = Pair([0.0], [0.0, 0.44]), Domain.parse("scalar:0,1")
    source = SimpleNamespace(first=lambda: [pair], domain=domain, endless=False)
    worst = WorstPair(source, judged, None, until=math.inf)
    assert worst.found().pair is pair
    assert worst.shrunk().pair.neighbour.tolist() == [0.4]  # 1 is simpler, 0 no other


def auditor(folder, records):
    return Auditor({"quick": 100, "standard": 200}, records.append, lambda: folder)


def test_assertions_take_the_layer(tmp_path):
    records = []
    asserts = auditor(tmp_path, records)
    right = {"claim": CLAIM, "pair": RIGHT["count"][1], "layer": "replay"}
    wrong = right | {"pair": PAIR}
    asserts.assert_dp(right_count, **right)
    asserts.assert_refuted(private_divisor, **wrong)
    with pytest.raises(
        AssertionError, match=r"(?s)replay_cases\.py:\d+: scale: .*replay\s+it"
    ):
        asserts.assert_dp(private_divisor, **wrong)
    with pytest.raises(AssertionError, match="no replay did"):
        asserts.assert_refuted(right_count, **right)
    assert [record["passed"] for record in records] == [True, True, False, False]
    json.dumps(records, allow_nan=False)
    (file,) = tmp_path.glob("*.json")
    assert isinstance(load_witness(file), ReplayWitness)


def test_an_assertion_warns_of_what_it_cannot_follow(tmp_path):
    options = {"pair": Pair(rows(0, 1), rows(0)), "layer": "replay", "budget": 2}
    with pytest.warns(UserWarning, match=r"not followed: .*test_layer\.py:\d+"):
        auditor(tmp_path, []).assert_dp(
            lambda x, rng: np.sum(x) + rng.noncentral_chisquare(3, 1),
            claim=PureDP(20.0),
            **options,
        )


def test_witnesses_are_confirmed_from_another_seed(tmp_path):
    result = replay(private_divisor, pair=PAIR, claim=CLAIM)
    file = tmp_path / "witness.json"
    result.witness.save(file)
    witness = load_witness(file)
    assert witness.to_dict() == result.witness.to_dict()
    newer = ("batches", "proof", "repeats", "assumes")
    older = {k: v for k, v in witness.to_dict().items() if k not in newer}
    read = ReplayWitness.from_dict(older | {"version": 1})
    assert (read.batches, read.proof, read.assumes) == ("secret", False, "")
    assert verify_replay(read).confirmed
    assert verify_replay(witness).confirmed
    mended = verify_replay(witness, mechanism=right_count)
    assert not mended.confirmed
    assert "the witness names replay_cases:private_divisor" in mended.warnings[0]
    with pytest.raises(InputError, match="seed must differ"):
        verify_replay(witness, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version 3 is not supported"),
        *(({"claim": 3}, "is no claim"), ({"data": [1, 2]}, "data must be an array")),
        ({"sees": "all"}, "unknown sees"),
        ({"mechanism": {"$array": 1}}, "must be an object or a reference"),
        ({"seed": -1}, "the seed must be"),
        ({"findings": [{}]}, "truncated or malformed"),
        ({"name": 1}, "name must be text"),
        ({"relation": "replace-one"}, "not neighbours"),
    ],
)
def test_malformed_witnesses_are_refused(change, message):
    stored = replay(private_divisor, pair=PAIR, claim=CLAIM).witness.to_dict()
    with pytest.raises(InputError, match=message):
        ReplayWitness.from_dict({**stored, **change})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "glue_of_layer.py").write_text(
        "import replay_cases\n"
        "from replay_cases import private_divisor, right_count\n"
        "pair = replay_cases.WRONG['private_divisor'][1]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, list(arguments), prog_name="dpaudit")


def test_the_command_line_replays_and_verifies(folder):
    options = ("--pair", "glue_of_layer:pair", "--epsilon", "1", "--layer", "replay")
    refuted = run(
        "audit", "glue_of_layer:private_divisor", *options, "--witness", "w.json"
    )
    assert refuted.exit_code == 1
    assert "REFUTED by proof, if there is no randomness" in refuted.output
    assert "scale: the scale of the noise is 0.333333 on D and 0.5 on D'" in (
        refuted.output
    )
    verified = run("verify", "w.json", "--json")
    assert verified.exit_code == 1
    assert json.loads(verified.output)["confirmed"]
    options += ("--batches", "public")
    held = run("audit", "glue_of_layer:right_count", *options, "--json")
    assert held.exit_code == 0
    assert json.loads(held.output)["verdict"] == "NOT_REFUTED"
    wrong = run("audit", "glue_of_layer:right_count", *options, "--workers", "2")
    assert wrong.exit_code == 2
    assert "--layer replay takes no" in wrong.output


BELOW = """
from numpy.random import RandomState, laplace

def noisy(count):
    return count + laplace(scale=0.5)

class Noise:
    source = RandomState()

    def noisy(self, count):
        return count + self.source.laplace(scale=0.5)

class Other:
    @staticmethod
    def noisy(count):
        return count + laplace(scale=0.5)

ONE = Noise()
"""
ABOVE = """
import package_of_layer.inner.noise
import package_of_layer.inner.noise as below
from package_of_layer import inner

def by_its_path(data):
    return package_of_layer.inner.noise.noisy(len(data))

def of_a_class(data):
    return below.Noise().noisy(len(data))

def of_an_object(data):
    return below.ONE.noisy(len(data))

def of_a_package(data):
    return inner.noise.Other.noisy(len(data))
"""


@pytest.mark.parametrize(
    "name", ["by_its_path", "of_a_class", "of_an_object", "of_a_package"]
)
def test_code_of_modules_that_are_named_is_followed(folder, name):
    inner = folder / "package_of_layer" / "inner"
    inner.mkdir(parents=True)
    for each, text in {"__init__": "", "noise": BELOW}.items():
        (inner / f"{each}.py").write_text(text, encoding="utf-8")
    (folder / "above_of_layer.py").write_text(ABOVE, encoding="utf-8")
    options = ("--pair", "glue_of_layer:pair", "--epsilon", "1", "--layer", "replay")
    done = run("audit", f"above_of_layer:{name}", *options, "--json")
    told = json.loads(done.output)
    assert (told["verdict"], told["proof"]) == ("REFUTED", True), done.output
    assert "noise.py:" in told["findings"][0]["where"]


GENERATOR = np.random.default_rng(3)


def noisy_max(x, rng):
    best, arg = -math.inf, None
    for number in range(4):
        noisy = (x > number / 4).sum() + rng.exponential(2.0)
        if noisy > best:
            best, arg = noisy, number
    return arg


def flipped(x, rng):
    return sum(int((v > 0.5) == (rng.random() < 0.6)) for v in np.tile(x, 6))


def salted(x, rng):
    salt = int(rng.integers(10_000))
    return salt, (salt + int(10 * x.sum())) % 7


def drawn_before(x, rng, noise=GENERATOR.laplace()):  # noqa: B008
    return x.sum() + noise


def in_a_thread(x, rng):
    found = []
    thread = threading.Thread(target=lambda: found.append(rng.laplace()))
    thread.start()
    thread.join()
    return x.sum() + found[0]


SETTLED = {
    lambda x, rng: x.sum() + rng.noncentral_chisquare(3, 1): "of that law",
    lambda x, rng: x.sum() + max(rng.laplace(size=2)): "before anything is made of it",
    lambda x, rng: np.sort(x + rng.laplace(size=2))[0] / x.sum(): "through noisy",
    lambda x, rng: x[np.argsort(x + rng.laplace(size=2))]: "release the number",
    lambda x, rng: SimpleNamespace(_sum=x.sum() + rng.laplace()): "vars of",
    lambda x, rng: x.sum() + secrets.randbelow(9): "handed over",
    lambda x, rng: x.sum() + GENERATOR.laplace(): "hand the generator over",
    noisy_max: "what one row changes",
    flipped: "set the probabilities",
    salted: "set the probabilities",
    drawn_before: "in each execution anew",
    in_a_thread: "ThreadPoolExecutor",
}
CORPUS = corpus()
OPEN = ("bootstrap_of_rows", "median_of_logs")


@pytest.mark.parametrize(
    "how", [*SETTLED, *OPEN], ids=lambda how: getattr(how, "__name__", how)
)
def test_what_is_not_followed_has_a_line_what_is_true_of_it_and_a_remedy(how):
    """The words of `SETTLED` are those of the remedy that fits."""
    if how in OPEN:
        style = CORPUS[how]
        mechanism, pair, claim = style.mechanism, style.pair, style.claim
    else:
        mechanism, claim = how, PureDP(0.1)
        pair = Pair([0.2, 0.4], [0.2, 0.9], "replace-one")
    result = replay(mechanism, pair=pair, claim=claim, budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    _, line, remedy = re.split(r":(\d+): ", result.remedy, maxsplit=1)
    assert SETTLED.get(how, "") in remedy
    assert any(finding.where.endswith(f":{line}") for finding in result.findings)
    for finding in result.findings:
        assert re.search(r"\.py:\d+$", finding.where)
        assert remedy not in finding.message
        assert finding.message not in remedy
        for one, other in re.findall(r"(\S+) on D'? and (\S+) on D", finding.message):
            assert one != other
        assert how is not flipped or "without noise" not in finding.message
    assert result.remedy in str(result)
    assert result.to_dict()["remedy"] == result.remedy
    bare = dataclasses.replace(result, findings=())
    assert bare.remedy
    assert not dataclasses.replace(bare, verdict=ReplayVerdict.NOT_REFUTED).remedy


def walk(people, rng):
    first = people.count("a") + rng.normal()
    second = people.count("a") * (2 if first > 0 else 1) + rng.normal()
    return [first, second]


def test_transcripts_are_read_off_releases_on_lists_in_either_order():
    domain = Domain.parse("list of {a,b}")
    pair = domain.pair(np.array([[0.0]]), np.zeros((2, 1)), Relation.ADD_REMOVE)
    read = ShownTranscripts.of(
        walk, lambda: ReplayedMechanism(walk, mode=LAZY), pair, 0
    )
    releases = np.array([[1.5, 2.25, 1.0], [-0.5, 1.0, 1.0]])
    first, second, _ = releases.T
    times = np.where(first > 0, 2, 1)
    one, two = (
        norm.logpdf(first - n) + norm.logpdf(second - times * n) for n in (1, 2)
    )
    sides = pair.data, pair.neighbour
    assert np.allclose(read.privacy_loss(releases, *sides), one - two)
    assert np.allclose(read.privacy_loss(releases, *sides[::-1]), two - one)


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        (lambda x, rng: x.sum() + rng.normal(scale=3.7), gaussian_delta(1, 1 / 3.7)),
        (lambda x, rng: x.sum() + rng.laplace(scale=0.5), 1 - math.exp(-0.5)),
        (lambda x, rng: len(x) + rng.geometric(1 - math.exp(-2)), 1 - math.exp(-2)),
        (
            lambda x, rng: x[rng.random(len(x)) < 0.5].sum() + rng.normal(),
            gaussian_delta(math.log(2 * math.e - 1), 1.0) / 2,
        ),
    ],
)
def test_a_proof_against_a_claim_with_a_delta_names_the_delta(mechanism, delta):
    result = replay(mechanism, pair=Pair([], [1.0]), claim=ApproxDP(1.0, 1e-5))
    assert result.delta.epsilon == 1.0
    assert result.delta.allowed == 1e-5
    assert result.delta.delta == pytest.approx(delta, rel=1e-3)
    assert f"  delta          {result.delta}" in str(result)
    assert result.to_dict()["delta"]["delta"] == result.delta.delta


def test_the_delta_is_that_at_the_epsilon_of_the_claim():
    claim, pair = ApproxDP(0.333, 1e-5), Pair([], [1.0])
    result = replay(
        lambda x, rng: x.sum() + rng.normal(scale=10), pair=pair, claim=claim
    )
    assert result.delta.epsilon == 0.333
    assert result.delta.delta == pytest.approx(gaussian_delta(0.333, 0.1), rel=1e-4)


def test_the_delta_of_normal_noise_is_told_where_a_claim_stands_and_leads_the_search():
    """The loss of any pair is infinite: the worst is that of the largest delta."""
    claim = ApproxDP(1.0, 1e-5)
    result = replay(
        lambda x, rng: (x * (1 - x)).sum() + rng.normal(scale=1.0),
        domain="0.0..1.0",
        relation="add-remove",
        claim=claim,
    )
    assert not result.refuted
    assert result.loss == math.inf
    least, most = gaussian_delta(1.0, [0.24, 0.25])  # a row of 1/2 moves the sum most
    assert least < result.delta.delta <= most
    assert result.delta.allowed == 1e-5
    # A hair too little noise is rounding, and no delta beyond the claim stands there.
    scale = (1 - 2e-7) / gaussian_mu(1.0, 1e-5)
    near = replay(
        lambda x, rng: x.sum() + rng.normal(scale=scale),
        pair=Pair([], [1.0]),
        claim=claim,
    )
    assert not near.refuted
    assert 0.999e-5 < near.delta.delta <= 1e-5
    # A curve names no epsilon.
    normal = lambda x, rng: x.sum() + rng.normal(scale=2.0)  # noqa: E731
    assert replay(normal, pair=Pair([], [1.0]), claim=GaussianDP(1.0)).delta is None
