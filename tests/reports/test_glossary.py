import re
from dataclasses import fields

import dpaudit
from dpaudit import Relation
from dpaudit.algorithms import CATALOGUE, AnalyzeGauss
from dpaudit.audit import AuditResult, Layer, Verdict
from dpaudit.audit.replay.result import ReplayVerdict
from dpaudit.cli import main
from dpaudit.reports.page import GLOSSARY

CODE = {code for text in GLOSSARY.values() for code in re.findall("`([^`]+)`", text)}

# Code that names nothing to look up.
FORMULAS = {"(data, rng) -> array", "e^epsilon"}


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


def test_words_are_explained_before_they_are_used_and_code_is_there():
    terms = list(GLOSSARY)
    for place, term in enumerate(terms):
        for later in terms[place + 1 :]:
            flags = 0 if later.isupper() else re.IGNORECASE
            word = rf"\b{re.escape(later)}s?\b"
            prose = re.sub("`[^`]*`", "", GLOSSARY[term])
            assert not re.search(word, prose, flags), (term, later)
    assert CODE - FORMULAS - set(names()) == set()
