"""The corpus of mechanisms as people write them is sound; `run.py` measures on it."""

import inspect

import pytest

from benchmarks.styles.registry import corpus
from benchmarks.styles.run import measure
from benchmarks.styles.study import REPORTED

STYLES = corpus()
RIGHT = {name: style for name, style in STYLES.items() if style.right}
WRONG = {name: style for name, style in STYLES.items() if not style.right}


def marked(number, name):
    # The first of each 36 has one that waits for coins for six seconds.
    return pytest.param(name, marks=[] if number % 36 == 1 else [pytest.mark.hard])


def test_the_corpus_is_large_and_each_wrong_one_has_one_line_at_fault():
    reported = [style for style in WRONG.values() if style.twin]
    assert (len(RIGHT) >= 181, len(WRONG) >= 137, len(reported) >= 71) == (True,) * 3
    assert [each for each in reported if not each.source.startswith("https://")] == []
    assert [name for name, style in WRONG.items() if len(style.faults()) != 1] == []
    plain = [style for style in RIGHT.values() if inspect.isfunction(style.text)]
    assert [style.name for style in plain if style.faults() + style.parts()] == []


def test_each_releases_something_on_either_side_as_its_twin_does():
    for name, style in STYLES.items():
        twin = STYLES.get(style.twin, style)
        fails = name == "median_of_weights"  # on the neighbour: that is its fault
        for data in (style.pair.data, style.pair.neighbour)[: 2 - fails]:
            release = style.run(data, 0)
            assert release is not None, name
            assert type(release) is type(twin.run(data, 0)), name


@pytest.mark.parametrize("name", [marked(n, name) for n, name in enumerate(RIGHT)])
def test_no_right_one_is_refuted(name):
    assert measure(STYLES[name]).verdict in ("NOT_REFUTED", "NOT_FOLLOWED")


def test_a_wrong_one_is_found_at_its_line():
    outcome = measure(STYLES["added_for_replaced"])
    assert (outcome.verdict, outcome.first) == ("REFUTED", "yes")


def test_the_study_of_reported_faults_names_what_is_not_as_it_should_be():
    def record(unit):
        right, by = STYLES[unit.case.split()[0]].right, unit.case.split()[-1]
        seconds = {"pair": 1.0, "domain": 3.0}[by]
        return {"right": right, "refuted": True, "releases": 6_000, "seconds": seconds}

    records = {unit: record(unit) for unit in REPORTED.units("quick")}
    wrong, right, cost = REPORTED.tables("quick", records)
    assert (wrong.met, right.met, cost.met) == ([True] * 2, [False] * 2, [False])
    assert right.note.endswith("columns_added.")
    assert wrong.note.endswith("none.")
    assert cost.rows[0].data["ratio"] == 3.0
