import inspect
import re

import numpy as np
import pandas as pd
from audited_row import audited

from dpaudit.algorithms import CATALOGUE
from dpaudit.reports.escaping import plain
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.page import GLOSSARY
from dpaudit.reports.sections import Fact, Results, TopicPage, all_sections
from dpaudit.reports.site import experiments, mechanisms
from dpaudit.reports.site.frame import Frame, prose

MADE = {"date": "2026", "commit": "", "machine": "one", "versions": {"dpaudit": "0"}}
SHARED = {"profile": "tiny", "seed": 0, "made": MADE, "menu": [], "kinds": {}}
PRIVACY = [all_sections()["privacy"]]


def results(*rows, exact=None, **tables):
    found = {"privacy-wall": pd.DataFrame(rows), **tables}
    if exact is not None:
        found["exact-privacy"] = pd.DataFrame(exact)
    return Results("tiny", 0, {}, found)


def page_of(found, name, facts=(), elsewhere=()):
    remarks = {} if "exact-privacy" not in found else PRIVACY[0].remarks(found)
    standings = mechanisms.standings(found, PRIVACY, remarks)
    topics = mechanisms.pages(found, standings, facts, elsewhere)
    frame = Frame(SHARED, [*topics, *elsewhere])
    (topic,) = [each for each in topics if each.name == name]
    frame.add_topic(topic, {})
    assert frame.failed == {}
    (page,) = frame.pages.values()
    return " ".join(page.split())


def test_pages_link_witnesses_or_say_what_an_audit_would_have_seen():
    row = audited(mechanism="symmetric-noise", verdict="REFUTED", witness="{}")
    page = page_of(results(row), "symmetric-noise")
    assert '<a href="../witness-symmetric-noise.json">Witness</a>' in page
    assert "dpaudit verify witness-symmetric-noise.json --to-the-end --seed 1" in page
    assert (
        "Refuted after 70 releases a side. Its event was then counted in 1,000" in page
    )
    assert "with probability 10⁻³ at most" in page
    page = page_of(results(row), "dp-pca")
    assert "not audited here" in page
    assert "NOT REFUTED" not in page.split("<footer>")[0]
    page = page_of(
        results(audited(mechanism="goe-gaussian", claim="kept")), "goe-gaussian"
    )
    assert "On its best event ε ≥ 3 would have been refuted with 90 % power" in page
    assert "blind to events rarer than 0.0625" in page
    assert "1,000 releases a side, at 99.9 % confidence" in page
    assert "This is no proof of privacy" in page
    command = "dpaudit audit goe-gaussian --epsilon 1 --refine 10 --seed 0"
    assert f"{command} --confidence 0.999 --max-samples 1000" in page


def test_false_claims_are_called_so_wherever_they_are():
    name = "mean-estimation-constant-8"
    page = page_of(results(audited(mechanism=name, claim="not known")), name)
    assert "false all the same, and an audit of up to 1,000,000 releases" in page
    assert "this one drew 1,000" in page
    assert "The claim is false on purpose: no paper makes it." in page
    exact = [
        {
            **{"mechanism": "goe-gaussian", "epsilon": epsilon},
            **{"claimed_epsilon": epsilon, "exact_epsilon": 2 * epsilon},
            "claim": claim,
        }
        for epsilon, claim in ((1.0, "kept"), (4.0, "false"), (8.0, "false"))
    ]
    row = audited(mechanism="goe-gaussian", claim="kept")
    page = page_of(results(row, exact=exact), "goe-gaussian")
    said = "The claim holds at the audited ε but is false from ε = 4: the exact ε there"
    assert f"{said} is 8." in page.replace("\N{NO-BREAK SPACE}", " ")


def test_a_page_has_facts_definition_proof_and_where_else_to_look():
    fact = Fact("k-norm-covariance", "Variance captured", "97 %")
    about = ("k-norm-covariance",)
    theorem = TopicPage(
        "theorems", "Theorem 0", "broken.html.j2", dict, mechanisms=about
    )
    page = page_of(results(audited()), *about, [fact], [theorem])
    for said in (
        "<dt>Variance captured</dt><dd>97",
        '<a href="../theorems/Theorem+20+0.html">Theorem 0</a>',
        "KNormCovariance.calibrated",
        "the density of Z proportional to exp(-g(Z)/scale)",  # the class
        "Proof. g is a norm",  # the head of its module
    ):
        assert said in page


def test_a_page_that_fails_says_so_and_no_other_does():
    def fails():
        raise RuntimeError("no <dice>")

    broken = TopicPage("theorems", "bad", "broken.html.j2", fails)
    frame = Frame(SHARED, [broken])
    frame.add_topic(broken, {})
    assert list(frame.failed) == ["theorems/bad"]
    page = frame.pages["theorems/bad.html"]
    assert "RuntimeError: no &lt;dice&gt;" in page


def test_docstrings_hold_formulas_code_and_nothing_that_runs():
    html = prose(
        "A `name` of ``code``, :math:`x^2`, `(x) -> y`.\n\n"
        ".. math:: \\Big( \\frac{a}{b} \\Big)\n\n"
        ".. raw:: html\n\n   <script>alert(1)</script>\n\n.. include:: /etc/passwd\n\n"
        "Parameters\n----------\nx : float\n    A word.\n"
    )
    assert "id=" not in html  # two docstrings on a page share none
    assert html.count('<span class="docutils literal">') == 3
    assert "(x) -&gt; y" in re.sub(r'</?span( class="pre")?>', "", html)
    assert html.count("<math") == 2
    assert "<mfrac>" in html
    assert "<script" not in html
    assert "root:" not in html


def test_an_experiment_is_shown_by_medians_of_its_groups():
    table = pd.DataFrame(
        {
            **{"mechanism": ["a"] * 5 + ["b"] * 5, "n": 10.0},
            **{"repetition": [*range(5)] * 2, "verdict": ["x", "y"] * 5},
            **{"error": [1.0, 2.0, 3.0, 4.0, 9.0, *[0.5] * 5], "ratio": np.nan},
        }
    )
    rows, columns = experiments.summary_rows(table, ["mechanism", "n"])
    assert columns == ["error", "ratio"]
    first, second = rows
    assert vars(first)["keys"] == ["a", "10"]
    assert first.cells == [("3", "2 to 4"), ("–", "")]
    assert second.cells[0] == ("0.50", "")
    assert (first.draws, first.words) == (5, [])


def test_words_of_groups_and_docstrings_are_shown():
    table = pd.DataFrame(
        {"mechanism": ["a", "b"], "verdict": ["x", "y"], "witness": "z"}
    )
    rows, columns = experiments.summary_rows(table, ["mechanism"])
    assert columns == ["verdict"]
    assert [row.words for row in rows] == [["x"], ["y"]]
    # None has markup that the reader of docstrings shows as it is written.
    owners = {entry.owner for entry in CATALOGUE.values()}
    modules = {inspect.getmodule(owner) for owner in owners}
    for each in owners | modules:
        html = prose(inspect.getdoc(each))
        assert "problematic" not in html, (each, html)


def test_experiments_without_tables_have_no_page_and_the_glossary_one():
    both = {
        name: Experiment(name, name, "a paper", len, ("a",)) for name in ("one", "two")
    }
    found = Results(
        "quick", 0, both, {"one": pd.DataFrame({"mechanism": ["a"], "x": 1.0})}
    )
    (topic,) = experiments.pages(found)
    assert (topic.name, topic.verdict) == ("one", "1 row")
    frame = Frame(SHARED)
    frame.add("glossary.html", "glossary.html.j2", "Glossary", glossary=GLOSSARY)
    page = frame.pages["glossary.html"]
    for term in GLOSSARY:
        assert f">{plain(term).replace(chr(39), '&#39;')}</dt>" in page
    assert "<h1>Glossary</h1>" in page
    assert 'href="index.html"' in page
