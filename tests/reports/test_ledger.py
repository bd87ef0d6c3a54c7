"""The ledger of the papers' statements: all are there, and no verdict is made up."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from results_of import results_of, verdicts

from dpaudit import Relation
from dpaudit.algorithms import CATALOGUE
from dpaudit.reports.sections import all_sections, plan
from dpaudit.reports.sections.theorems import ledger
from dpaudit.reports.sections.theorems.findings import CHANCES, ROWS
from dpaudit.reports.sections.theorems.judgement import Ruling
from dpaudit.reports.sections.theorems.ledger import PAPERS, STATEMENTS, Statement
from dpaudit.reports.sections.theorems.pictures import RULES
from dpaudit.reports.sections.theorems.section import theorem_words

ROOT = Path(__file__).parents[2]
THEOREMS = {row.theorem for row in (*ROWS, *CHANCES)}
BESIDE = ("Section", "Equation", "Abstract")
AUDITED = {
    name
    for each in [*all_sections().values()]
    for audit in each.audits
    for name in plan("quick", 0)[audit].mechanisms
}


def exists(place):
    """Whether a file is there, and has the heading that is named."""
    path, _, anchor = place.partition("#")
    if not (ROOT / path).is_file():
        return False
    text = (ROOT / path).read_text(encoding="utf-8")
    heads = [re.sub(r"[^\w -]", "", h.lower()) for h in re.findall("^#+ (.*)", text, 8)]
    return not anchor or anchor in [head.replace(" ", "-") for head in heads]


def faults(statements):
    """Return which rules a ledger breaks, by their names."""
    code = {n for s in statements for n in s.code}
    known = {"rows": THEOREMS, "claims": AUDITED, "experiments": plan("full", 0)}
    known["code"] = {*CATALOGUE, *filter(exists, code)}
    broken = {
        key: any(not {*getattr(s, key)} <= {*names} for s in statements)
        for key, names in known.items()
    }
    listed = {
        (paper["name"], f"{kind} {number}")
        for paper in PAPERS.values()
        for kind, numbers in paper["numbers"].items()
        for number in numbers.split()
    }
    there = {(s.paper, s.at) for s in statements if not s.at.startswith(BESIDE)}
    broken["numbers"] = there != listed
    broken["twice"] = len({(s.paper, s.at, s.part) for s in statements}) < len(
        statements
    )
    broken["idle row"] = {n for s in statements for n in s.rows} != THEOREMS
    places = {p for s in statements for p in (*s.places, s.false) if p}
    broken["places"] = not all(map(exists, places))
    computed = [s for s in statements if s.rows or s.claims or s.experiments or s.code]
    computed += [s for s in statements if s.false]
    ruled = [s for s in statements if s.rule]
    broken["rule"] = {s.rule for s in ruled} != {*RULES}
    broken["rule"] |= any(s.rows or s.claims or not s.experiments for s in ruled)
    broken["declared"] = any(s.verdict for s in computed)
    broken["word"] = any(
        s.verdict not in ledger.DECLARED for s in statements if s not in computed
    )
    broken["why"] = any((s.verdict or s.false) and not s.why for s in statements)
    return {rule for rule, is_broken in broken.items() if is_broken}


def test_every_statement_is_there_and_refers_to_what_there_is():
    assert faults(STATEMENTS) == set()
    assert not {ledger.SUPPORTED, ledger.PARTLY, "not reproduced"} & {*ledger.DECLARED}


def test_what_is_audited_for_other_neighbours_than_the_papers_says_so():
    """Those of DP-PCA have a row more; most of its claims are for a replaced one."""
    told = [s for s in STATEMENTS if s.paper == "DP-PCA" and s.claims and not s.false]
    other = {
        s.at
        for s in told
        for name in s.claims
        if Relation.ADD_REMOVE not in CATALOGUE[name].relations
    }
    assert other == {s.at for s in told if "a replaced row" in s.why}
    assert other == {"Lemma 3.1", "Theorem 5.1", "Theorem 6.1", "Lemma 6.2"}


SOME = next(s for s in STATEMENTS if s.at == "Theorem 13")
RULED = next(s for s in STATEMENTS if s.rule)
TOOL = next(s for s in STATEMENTS if s.at == "Lemma 10")


@pytest.mark.parametrize(
    ("rule", "old", "changes"),
    [
        ("numbers", TOOL, {"at": "Lemma 11"}),
        ("numbers", TOOL, None),
        ("twice", SOME, {"at": "Theorem 7"}),
        ("rows", SOME, {"rows": [*SOME.rows, "Theorem 0"]}),
        ("claims", SOME, {"claims": ["nobody"]}),
        ("experiments", SOME, {"experiments": ["nothing"]}),
        ("code", SOME, {"code": ["attacks/nothing.py"]}),
        ("places", TOOL, {"places": ["docs/nothing.md"]}),
        ("places", TOOL, {"places": ["docs/findings.md#nothing"]}),
        ("places", SOME, {"false": "docs/nothing.md"}),
        ("declared", SOME, {"verdict": "tool"}),
        ("word", TOOL, {"verdict": "supported"}),
        ("why", TOOL, {"why": ""}),
        ("rule", RULED, {"rule": "nothing"}),
        ("rule", RULED, {"rule": ""}),
        ("rule", RULED, {"experiments": []}),
        ("rule", RULED, {"claims": ["oja"]}),
        ("idle row", SOME, {"rows": []}),
    ],
)
def test_each_rule_can_be_broken(rule, old, changes):
    changed = [] if changes is None else [replace(old, **changes)]
    assert rule in faults([*(s for s in STATEMENTS if s is not old), *changed])


def made(**told):
    return Statement(
        **{"paper": "P", "at": "Theorem 0", "kind": "k", "says": "", **told}
    )


WORDS = {"yes": "supported", "half": "supported in part", "no": "CONTRADICTED"}
WORDS |= {"unmet": "hypotheses not met", "open": "not decided", "new": "vacuous"}
WORDS = {
    name: (word, "steeper in d" * (name == "half")) for name, word in WORDS.items()
}
FELL = {"oja": True, "dp-pca": False}


@pytest.mark.parametrize(
    ("told", "verdict", "said"),
    [
        ({"rows": ["yes"]}, "supported", ""),
        ({"rows": ["yes", "unmet"]}, "supported in part", "unmet: hypotheses not met"),
        ({"rows": ["half"]}, "supported in part", "steeper in d"),
        ({"rows": ["half", "no"]}, "CONTRADICTED", "no: CONTRADICTED"),
        ({"rows": ["unmet", "unmet"]}, "hypotheses not met", ""),
        ({"rows": ["unmet", "open"]}, "not decided", "unmet"),
        ({"rows": ["new"]}, "vacuous", ""),
        ({"rows": ["new", "yes"]}, "supported in part", "new: vacuous"),
        ({"claims": ["dp-pca"]}, "not refuted", ""),
        ({"claims": ["dp-pca", "oja"]}, "REFUTED", "dp-pca: not refuted"),
        ({"claims": ["laplace"]}, "not audited here", ""),
        ({"claims": ["noiseless-ggd"]}, "not audited here", "falls within"),
        ({"false": "p", "rows": ["yes"]}, "false as printed", "yes: supported"),
        ({"false": "p", "why": "w"}, "false as printed", "w"),
        ({"false": "p", "claims": ["dp-pca"]}, "false as printed", "dp-pca: not ref"),
        ({"false": "p", "claims": ["oja"]}, "REFUTED", "oja: REFUTED"),
        ({"rule": "half", "experiments": ["a"]}, "supported in part", "steeper in d"),
        ({"rule": "gone", "experiments": ["a"]}, "not measured here", ""),
        ({"false": "p", "rule": "yes"}, "false as printed", "yes: supported"),
        ({"experiments": ["a", "b"]}, "measured", ""),
        ({"experiments": ["a"], "at": "Figure 1"}, "drawn again", ""),
        ({"experiments": ["b"]}, "not measured here", ""),
        ({"code": ["oja"], "why": "w"}, "carried out", "w"),
        ({"verdict": "tool", "why": "w"}, "tool", "w"),
    ],
)
def test_what_a_verdict_is_computed_from(told, verdict, said):
    found, details = ledger.ruling(made(**told), WORDS, FELL, {"a"})
    assert found == verdict
    assert said in details
    assert bool(details) == bool(said)


@pytest.mark.parametrize(
    ("exponents", "chances", "word"),
    [
        ({"CONSISTENT": "", "FASTER": "", "WITHIN": ""}, [], "supported"),
        ({"CONSISTENT": "", "STEEPER": "", "VACUOUS": ""}, [], "supported in part"),
        ({"CONSISTENT": "unmet", "STEEPER": ""}, [], "not decided"),
        ({"CONSISTENT": "unmet"}, [], "hypotheses not met"),
        ({"VACUOUS": "", "CONSISTENT": "unmet"}, [], "vacuous"),
        ({"CONTRADICTED": "", "FASTER": ""}, [], "CONTRADICTED"),
        ({}, ["RARER", "CONSISTENT"], "supported"),
        ({}, ["RARER", "VACUOUS"], "supported in part"),
        ({}, ["OFTEN"], "not decided"),
        ({}, ["VACUOUS"], "vacuous"),
        ({}, ["RARER", "CONTRADICTED"], "CONTRADICTED"),
    ],
)
def test_the_word_on_a_theorem_comes_from_its_rows(exponents, chances, word):
    def row(verdict, unmet=""):
        told = SimpleNamespace(theorem="T", unmet=unmet)
        return SimpleNamespace(row=told, verdict=Ruling[verdict], as_printed=False)

    found = [row(verdict, unmet) for verdict, unmet in exponents.items()]
    assert theorem_words(found, [*map(row, chances)]) == {"T": word}


def test_a_claim_falls_if_one_audit_of_the_report_refutes_it_or_the_exact_loss():
    wall = verdicts(["symmetric-noise"], ["analyze-gauss-published", "power-method"])
    exact = verdicts([], ["analyze-gauss-published", "symmetric-noise"])
    exact["claim"] = ["false", "kept"]
    tables = {"privacy-wall": wall.assign(claim="kept"), "dp-pca-claims": exact}
    results = results_of({**tables, "robust-audits": ValueError(), "other": wall})
    assert ledger.audits(results) == {
        **{"symmetric-noise": True, "analyze-gauss-published": True},
        "power-method": False,
    }


def test_the_ledger_as_it_is_printed():
    words = dict.fromkeys(THEOREMS, ("supported", ""))
    words["Analyze Gauss, Theorem 7"] = ("new", "")
    tables = {"robust-phases": pd.DataFrame(), "genotypes": ValueError()}
    experiments = {"robust-phases": plan("quick", 0)["robust-phases"]}
    found = ledger.judged(results_of(tables, **experiments), words)
    table = ledger.table(found)
    assert len(table) == len(STATEMENTS)
    assert {"supported", "new", "not audited here", "tool"} <= {*table["verdict"]}
    drawn = table[table["verdict"] == "drawn again"]
    assert [*drawn["theorem"]] == ["Robust PCA, Figure 8", "Robust PCA, Figure 9"]
    assert table["theorem"].is_unique
    (told, *_) = re.findall(r"^Of (\d+) statements: ", ledger.summary(found))
    assert int(told) == sum(map(int, re.findall(r"\d+", ledger.summary(found)))) / 2
    assert "1 new" in ledger.summary(found)
    folds = ledger.folds(found)
    assert [fold.name for fold in folds] == [each["name"] for each in PAPERS.values()]
    rows = [row for fold in folds for row in fold.rows]
    assert len(rows) == len(STATEMENTS)
    assert {row.verdict for row in rows if row.refuted} == {"false as printed"}
