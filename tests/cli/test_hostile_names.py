"""Names from the code under audit do nothing to a terminal, to a page, to a file."""

import json
import os
import re

import pytest
from click.testing import CliRunner

from dpaudit import Pair, PureDP
from dpaudit.audit import Run, audit
from dpaudit.audit.assertions import describe
from dpaudit.cli import main
from dpaudit.printable import aligned
from dpaudit.reports.page import page_of

# It opens an element, colours and turns what follows, begins a line, rings.
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e$\\frac$\"'\n::error::\x07]]>"
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
PAIR = Pair([[0.3]], [[0.3], [1.0]])
MODULE = f"""
from dpaudit import Pair, PureDP, Relation

HOSTILE = {HOSTILE!r}
pair = Pair([[0.3]], [[0.3], [1.0]])


class Claim(PureDP):
    def __repr__(self):
        return HOSTILE

    __str__ = __repr__


class Mechanism:
    claim, relation = Claim(1.0), Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return {{HOSTILE: 9 * len(data) + rng.random()}}


Mechanism.__qualname__ = Mechanism.__name__ = HOSTILE
mechanism = Mechanism()
"""


class HostileClaim(PureDP):
    def __str__(self):
        return HOSTILE


def hostile(data, rng):
    """Tell the number of rows, and under which name."""
    return {HOSTILE: 9 * len(data) + rng.random()}


@pytest.fixture(scope="module")
def result():
    claim = HostileClaim(1.0)
    return audit(hostile, pair=PAIR, claim=claim, run=Run(name=HOSTILE), budget=30)


def test_a_result_is_text_in_lines_and_in_a_page(result):
    for text in (str(result), repr(result), f"{result.claim}"):
        assert not ACTIVE.search(text)
        assert not re.search("^::error", text, re.MULTILINE)
    record = {"passed": True, **result.to_dict()}
    assert not ACTIVE.search("".join(describe(record)))
    for page in (result._repr_html_(), page_of([result])):
        assert "img src=x" in page
        assert "<img" not in page
        assert not ACTIVE.search(page)


def test_a_table_is_lines_of_text():
    assert not ACTIVE.search("".join(aligned([(HOSTILE, "1"), ("a", "2")])))


def test_the_command_line_prints_text(tmp_path, monkeypatch):
    """On a terminal: elsewhere click leaves out colours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "hostile_names.py").write_text(MODULE, encoding="utf-8")
    file = "a\x1b[31m\u202e"
    try:
        os.fsencode(file)
    except UnicodeEncodeError:
        pytest.skip("needs file names beyond ASCII, which this locale cannot write")
    commands = (
        ("audit", "hostile_names:mechanism", "--pair", "hostile_names:pair"),
        ("export", "s.db", "--output", f"{file}.csv"),
        ("init", f"{file}.py"),
    )
    kept = ("--max-samples", "30", "--store", "s.db", "--witness", f"{file}.json")
    for command, options in zip(commands, (kept, (), ()), strict=True):
        done = CliRunner().invoke(main, [*command, *options], color=True)
        assert done.exit_code == (command[0] == "audit"), done.output
        shown = done.output.replace("\x1b[31m\x1b[1mREFUTED\x1b[0m", "REFUTED")
        assert not ACTIVE.search(shown.replace("\n", ""))
    stored = json.loads((tmp_path / f"{file}.json").read_text(encoding="utf-8"))
    assert stored["name"] == "hostile_names:mechanism"
