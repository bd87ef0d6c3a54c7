"""The pictures in the pages are of the catalogue and the grid as they are now.

If not: ``make tables`` for the map and for results of papers' sizes; for the wall
``make report``, then copy the file of this name from build/report/ to docs/. What is
compared is decided: the map shows the digits that the grid keeps, and results those of
their files, so no last bit of a processor changes them.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from runpy import run_path

import pytest

from dpaudit.algorithms import CATALOGUE, names_of
from dpaudit.reports.sections.choosing.section import winners_map
from dpaudit.reports.sections.wall import KEY

ROOT = Path(__file__).parents[2]
SITE = ROOT / "reports" / "site"
results = run_path(str(ROOT / "docs" / "results.py"))
PICTURES = (
    *("privacy-wall", "winners"),
    *(f"results/{name}" for name in results["DRAWN"]),
)


def read(name):
    """Return the description of a picture, and the texts in it."""
    return standing((ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8"))


def standing(text):
    """Return the same of a file."""
    return described(text.replace(' xmlns="http://www.w3.org/2000/svg"', ""))


def described(svg):
    """Return the description of an element, and how often it has which texts."""
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()).strip() for text in root.iter("text")]
    return root.findtext("desc"), Counter(texts)


def test_the_wall_has_every_mechanism_its_verdict_and_its_key():
    said, texts = read("privacy-wall")
    names = [*names_of("covariance"), *names_of("subspace")]
    found = re.findall(r"(\S+): claimed epsilon .*?; (not refuted|refuted)\.", said)
    verdicts = {True: "refuted", False: "not refuted"}
    assert found == [
        (name, verdicts[CATALOGUE[name].expected_refuted]) for name in names
    ]
    assert all(texts[name] == 1 for name in names)
    assert texts["REFUTED"] == sum(CATALOGUE[name].expected_refuted for name in names)
    _, texts = read("privacy-wall")
    assert all(texts[mark] == 1 for mark in KEY)


def test_the_map_has_the_winners_of_the_grid():
    assert read("winners") == described(winners_map(None))


def test_results_are_drawn_as_they_are_kept_with_verdicts_of_the_catalogue():
    drawn = results["drawn"]()
    assert drawn.keys() == results["DRAWN"].keys()
    for name, text in drawn.items():
        assert read(f"results/{name}") == standing(text), name


@pytest.mark.parametrize("name", PICTURES)
def test_the_colours_are_those_of_the_report(name):
    text = (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8")
    assert (SITE / "colours.css").read_text(encoding="utf-8") in text
