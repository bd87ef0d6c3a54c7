"""The glossary explains each word before it uses it, and names code that is there."""

import re
from dataclasses import fields

import pytest

import dpaudit
from dpaudit import Relation
from dpaudit.algorithms import AnalyzeGauss
from dpaudit.algorithms.catalogue import CATALOGUE
from dpaudit.audit import AuditResult, Verdict
from dpaudit.audit.layers.layer import Layer
from dpaudit.audit.replay.result import ReplayVerdict
from dpaudit.cli import main
from dpaudit.reports.glossary import GLOSSARY

CODE = sorted(
    {code for text in GLOSSARY.values() for code in re.findall("`([^`]+)`", text)}
)

# Code that names nothing to look up.
FORMULAS = {"(data, rng) -> array", "e^epsilon"}


def prose(text):
    return re.sub("`[^`]*`", "", text)


def early(glossary):
    """Return the words that a sentence uses before they are explained."""
    terms = list(glossary)
    return {
        (term, later)
        for place, term in enumerate(terms)
        for later in terms[place + 1 :]
        if re.search(
            rf"\b{re.escape(later)}s?\b",
            prose(glossary[term]),
            0 if later.isupper() else re.IGNORECASE,
        )
    }


def names():
    """Return all that code in the glossary may name."""
    yield from (f"dpaudit.{name}" for name in dpaudit.__all__)
    yield from (f"dpaudit {name}" for name in main.commands)
    yield from (
        name for option in main.commands["audit"].params for name in option.opts
    )
    for words in (Relation, Layer, Verdict, ReplayVerdict):
        yield from (str(word) for word in words)
    yield from (field.name for field in fields(AuditResult))
    yield from ("data", "neighbour")  # of a pair
    yield from (entry.family for entry in CATALOGUE.values())
    yield from (name for name in dir(AnalyzeGauss) if not name.startswith("_"))


def test_no_word_is_used_before_it_is_explained():
    assert early(GLOSSARY) == set()


def test_a_word_that_comes_too_early_is_seen():
    assert early({"pair": "Two neighbours.", "neighbour": "The other one."}) == {
        ("pair", "neighbour")
    }


def test_no_word_stands_twice():
    assert len({term.casefold() for term in GLOSSARY}) == len(GLOSSARY)


@pytest.mark.parametrize("term", GLOSSARY)
def test_a_word_has_up_to_three_plain_sentences(term):
    text = GLOSSARY[term]
    assert text.endswith(".")
    assert 1 <= len(re.findall(r"\.(?= |$)", prose(text))) <= 3
    assert text.count("`") % 2 == 0
    assert not re.search(r"[*_<>\[\]]", prose(text))  # no markup but backticks


def test_the_code_that_it_names_is_there():
    assert set(CODE) - FORMULAS - set(names()) == set()
