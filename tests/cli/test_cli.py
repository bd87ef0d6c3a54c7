import json
import math

import pytest
from cli_cases import AT_ONCE, refused, run, work_in

from dpaudit.algorithms import CATALOGUE, names_of
from dpaudit.audit import Witness

OWN = """
import numpy as np
from dpaudit import Pair, PureDP, Relation

pair = Pair([0.0], [0.0, 1.0])

def good(data, rng):
    return data.sum() + rng.laplace()

def bad(data, rng):
    return data.sum() + rng.laplace(scale=0.4)

def raising(data, rng):
    raise RuntimeError("out of luck")

def changing(data, rng):
    return np.zeros(rng.integers(1, 5))

def elsewhere(data, rng, own=np.random.default_rng(0)):
    return data.sum() + own.laplace(scale=0.1)

class Mechanism:
    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return bad(data, rng)

    def worst_case(self, dimension=2):
        return pair

instance = Mechanism()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    return work_in(tmp_path, monkeypatch, "own_mechanism", OWN)


@pytest.mark.parametrize("family", sorted({each.family for each in CATALOGUE.values()}))
def test_every_column_can_be_had_of_every_family(family):
    every = "name,constructor,summary,needs,lost,exact,verdict"
    result = run("list", "--family", family, "--columns", every)
    assert result.exit_code == 0, result.stderr


def test_list_of_a_family_with_columns_in_markdown():
    result = run(
        *("list", "--family", "covariance", "--markdown"),
        *("--columns", "name,constructor,claim,exact,verdict"),
    )
    head, rule, *rows = result.stdout.splitlines()
    assert head == (
        "| name | constructor | claim | exact on the worst pair | verdict |"
    )
    assert rule == "| --- | --- | --- | --- | --- |"
    assert [row.split("`")[1] for row in rows] == list(names_of("covariance"))
    assert rows[1] == (
        "| `analyze-gauss-published` | `AnalyzeGauss.as_published` | (1, 1e-5) | "
        "(0.75, 1e-5) | not refuted |"
    )
    assert "(1, 0) | delta = 0.632 at epsilon 1 | **refuted** within" in rows[4]


def test_lists_of_the_suite_have_its_truth_and_json_all():
    columns = "name,relations,truth,lost"
    lines = run("list", "--family", "textbook", "--columns", columns).stdout
    (svt,) = (line for line in lines.splitlines() if line.startswith("svt-6 "))
    assert svt.split()[1:3] == ["replace-one", "infinite"]
    assert svt.endswith("never stops: half below, then half above (at least 0.41)")
    rows = json.loads(run("list", "--json").stdout)
    assert [row["name"] for row in rows] == list(CATALOGUE)
    keys = {"name", "family", "relation", "claim", "source"}
    assert all(keys <= set(row) for row in rows)


def test_audit_refutes_and_writes_a_witness_that_verifies(folder):
    result = run("audit", "symmetric-noise", "--json", "--witness", "w.json")
    assert result.exit_code == 1
    printed = json.loads(result.stdout)
    assert printed["name"] == "symmetric-noise"
    assert printed["verdict"] == "REFUTED"
    assert printed["claim"]["text"] == "PureDP(epsilon=1.0)"
    assert printed["relation"] == "add-remove"
    assert printed["confidence"] == 0.999
    assert printed["refuted_at"] <= 200 < printed["samples"]
    assert printed["epsilon_lower"] >= 1
    assert 0 < printed["delta_lower"] < 1 - math.exp(-1)
    assert printed["event"].startswith("the exact privacy loss is infinite in ")
    assert printed["seconds"] > 0
    assert printed["seed"] == 0
    assert printed["witness"] == Witness.load(folder / "w.json").to_dict()
    verified = run("verify", "w.json", "--json")
    assert verified.exit_code == 1
    assert json.loads(verified.stdout)["confirmed"] is True
    assert run("verify", "w.json", "--max-samples", "2").exit_code == 0


def test_a_witness_touches_no_file_but_its_own_and_is_of_a_refutation(folder):
    (folder / "keep.json.part").write_text("precious")
    kept = ("--witness", "keep.json", *AT_ONCE)
    assert run("audit", "symmetric-noise", *kept).exit_code == 1
    assert (folder / "keep.json.part").read_text() == "precious"
    before = {"keep.json", "keep.json.part", "own_mechanism.py"}
    assert {path.name for path in folder.iterdir()} == before
    arguments = ["goe-gaussian", "--max-samples", "20", "--witness", "w.json"]
    result = run("audit", *arguments)
    assert result.exit_code == 0
    assert "NOT_REFUTED" in result.stdout
    assert "no witness written" in result.stdout
    assert not (folder / "w.json").exists()
    printed = json.loads(run("audit", *arguments, "--json").stdout)
    assert printed["witness"] is None


def test_options_reach_the_mechanism():
    result = run(
        *("audit", "analyze-gauss-published", "--epsilon", "0.5", "--delta", "1e-3"),
        *("--relation", "replace-one", "--max-samples", "20", "--seed", "7"),
        *("--confidence", "0.9", "--dimension", "4", "--json"),
    )
    printed = json.loads(result.stdout)
    assert printed["claim"]["text"] == "ApproxDP(epsilon=0.5, delta=0.001)"
    assert printed["relation"] == "replace-one"
    assert printed["seed"] == 7
    assert printed["confidence"] == pytest.approx(0.9)
    assert printed["samples"] == 20


def test_own_functions_and_options_that_are_not_used():
    options = ("--pair", "own_mechanism:pair", "--epsilon", "1")
    assert run("audit", "own_mechanism:bad", *options, *AT_ONCE).exit_code == 1
    short = (*options, "--max-samples", "20")
    assert run("audit", "own_mechanism:good", *short).exit_code == 0
    # A shape is an output like any other; this one says nothing about the data.
    assert run("audit", "own_mechanism:changing", *short).exit_code == 0
    result = run("audit", "symmetric-noise", "--delta", "1e-5", *AT_ONCE)
    assert result.exit_code == 1
    assert "--delta is not used" in result.stderr


def test_no_verdict_is_neither_of_the_two(folder):
    result = run(
        *("audit", "own_mechanism:elsewhere", "--pair", "own_mechanism:pair"),
        *("--epsilon", "1", "--max-samples", "40", "--witness", "w.json"),
        *("--html", "page.html"),
    )
    assert result.exit_code == 2
    assert "NO_VERDICT" in result.stdout
    assert "Draw all randomness from rng" in result.stdout
    assert not (folder / "w.json").exists()
    page = (folder / "page.html").read_text()
    assert "NO VERDICT" in page
    assert "Not refuted" not in page


ERRORS = {
    ("audit", "symetric-noise"): "did you mean 'symmetric-noise'",
    ("audti",): "did you mean 'audit'",
    ("list", "--family", "covarance"): "did you mean 'covariance'",
    ("list", "--columns", "name,verdicts"): "did you mean 'verdict'",
    ("audit", "symmetric-noise", "--epsilon", "0"): "epsilon must be a finite number",
    ("audit", "symmetric-noise", "--epsilon", "nan"): "epsilon must be a finite",
    ("audit", "analyze-gauss", "--delta", "1"): "delta must be in (0, 1), got 1.0",
    ("audit", "analyze-gauss", "--delta", "-0.1"): "delta must be in (0, 1)",
    ("audit", "analyze-gauss", "--relation", "sideways"): "relation must be one of",
    ("audit", "analyze-gauss", "--confidence", "1"): "confidence must be in (0, 1)",
    ("audit", "analyze-gauss", "--max-samples", "0"): "--max-samples must be",
    ("audit", "analyze-gauss", "--seed", "-1"): "seed must be",
    ("audit", "analyze-gauss", "--dimension", "0"): "dimension must be",
    ("audit", "analyze-gauss", "--witness", "no/such/w.json"): "no such folder",
    ("audit", "goe-gaussian", "--pair", "own_mechanism:good"): "must be a dpaudit.Pair",
    ("audit", "no_such_module:thing"): "cannot import module 'no_such_module'",
    ("audit", "own_mechanism:nothing"): "no object 'nothing'",
    ("audit", "own_mechanism:good", "--epsilon", "1"): (
        'needs --domain "list of 0.0..1.0", what its rows may be; --relation'
    ),
    ("audit", "own_mechanism:good", "--pair", "own_mechanism:pair"): "needs --epsilon",
    ("audit", "own_mechanism"): "name the function in it that is to be audited, as own",
    ("audit", "no-such-name"): "your own is named MODULE:FUNCTION or FILE.py:FUNCTION",
    (
        *("audit", "own_mechanism:raising", "--epsilon", "1"),
        *("--pair", "own_mechanism:pair"),
    ): "raises RuntimeError on both datasets, every time (out of luck)",
    (
        *("audit", "own_mechanism:raising", "--epsilon", "1", "--relation"),
        *("add-remove", "--domain", "age:0..9"),
    ): "so on every pair tried: name columns, ranges and form that it takes",
    ("audit", "own_mechanism:instance", "--relation", "replace-one"): "add-remove, not",
    ("verify", "missing.json"): "cannot read",
    ("verify", "own_mechanism.py"): "not complete JSON",
    ("report", "--profile", "quikc"): "did you mean 'quick'",
    ("report", "--section", "onlin"): "did you mean 'online'",
    ("report", "--seed", "-1"): "seed must be",
    ("report", "--workers", "0"): "workers must be",
    ("report", "--store", "own_mechanism.py/x/work.db"): "cannot write",
    ("report", "librarie"): "did you mean 'libraries'",
    ("report", "run", "robust-phase"): "did you mean 'robust-phases'",
    ("report", "run", "genotypes", "--profile", "quik"): "did you mean 'quick'",
    ("report", "run", "genotypes", "--seed", "-1"): "seed must be",
    ("report", "run", "genotypes", "--mechanisms", "dp-sgg"): "did you mean 'dp-sggd'",
    ("bench-audit", "--profile", "quik"): "did you mean 'quick'",
    ("bench-audit", "--workers", "0"): "workers must be",
    ("bench-audit", "--also", "nowhere:STUDY"): "cannot import module 'nowhere'",
}


test_errors_are_one_sentence_and_exit_code_two = refused(ERRORS)
