"""The corpus of mechanisms as people write them is sound; `run.py` measures on it."""

import inspect

import pytest

from benchmarks.styles.registry import corpus
from benchmarks.styles.run import measure

STYLES = corpus()
RIGHT = {name: style for name, style in STYLES.items() if style.right}
WRONG = {name: style for name, style in STYLES.items() if not style.right}


def marked(number, name):
    return pytest.param(name, marks=[] if number % 18 == 0 else [pytest.mark.hard])


def test_the_corpus_is_large_and_each_wrong_one_has_one_line_at_fault():
    assert (len(RIGHT) >= 110, len(WRONG) >= 66) == (True, True)
    assert [name for name, style in WRONG.items() if len(style.faults()) != 1] == []
    plain = [style for style in RIGHT.values() if inspect.isfunction(style.text)]
    assert [style.name for style in plain if style.faults() + style.parts()] == []


@pytest.mark.parametrize("name", STYLES)
def test_each_releases_something_on_either_side(name):
    for data in (STYLES[name].pair.data, STYLES[name].pair.neighbour):
        assert STYLES[name].run(data, 0) is not None


@pytest.mark.parametrize("name", [marked(n, name) for n, name in enumerate(RIGHT)])
def test_no_right_one_is_refuted(name):
    assert measure(STYLES[name]).verdict in ("NOT_REFUTED", "NOT_FOLLOWED")


def test_a_wrong_one_is_found_at_its_line():
    outcome = measure(STYLES["added_for_replaced"])
    assert (outcome.verdict, outcome.first) == ("REFUTED", "yes")
