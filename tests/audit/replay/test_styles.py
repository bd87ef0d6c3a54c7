"""The corpus of mechanisms as people write them is sound; `run.py` measures on it."""

import inspect
import linecache

import pytest

from benchmarks.styles.registry import corpus
from benchmarks.styles.run import measure, totals

STYLES = corpus()
RIGHT = {name: style for name, style in STYLES.items() if style.right}
WRONG = {name: style for name, style in STYLES.items() if not style.right}
SAMPLE = list(RIGHT)[::18]


def test_the_corpus_is_large():
    assert len(RIGHT) >= 110
    assert len(WRONG) >= 66


def test_each_wrong_one_has_one_line_at_fault():
    for name, style in WRONG.items():
        ((file, line),) = style.faults()
        assert linecache.getline(file, line).rstrip().endswith("# fault"), name
    for name, style in RIGHT.items():
        if inspect.isfunction(style.text):
            assert style.faults() == style.parts() == [], name


@pytest.mark.parametrize("name", STYLES)
def test_each_releases_something_on_either_side(name):
    style = STYLES[name]
    assert style.what
    assert "\n" not in style.what
    for data in (style.pair.data, style.pair.neighbour):
        assert style.run(data, 0) is not None


def marked(name):
    marks = [] if name in SAMPLE else [pytest.mark.hard]
    if name == "tight_in_float32":
        marks.append(pytest.mark.xfail(reason="rounding of float32 is no violation"))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", map(marked, RIGHT))
def test_no_right_one_is_refuted(name):
    assert measure(STYLES[name]).verdict in ("NOT_REFUTED", "NOT_FOLLOWED")


def test_a_wrong_one_is_found_at_its_line():
    outcome = measure(STYLES["added_for_replaced"])
    assert (outcome.verdict, outcome.first) == ("REFUTED", "yes")
    assert "REFUTED, first at the line at fault" in totals([outcome])[1]
