import ast
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from inspect import signature
from pathlib import Path

import pytest

from dpaudit.audit import audit

ROOT = Path(__file__).parents[2]
HOUSE = runpy.run_path(str(ROOT / ".ci/house.py"))
LONGEST = 20  # of the chains of imports
PUBLIC = 1_100
MODULES = HOUSE["all_sources"]()


def length(path):
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def arrows():
    return HOUSE["graph"]()


def test_no_module_is_long_and_what_is_read_first_takes_an_hour():
    assert [name for name, path in MODULES.items() if length(path) > 400] == []
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    first = text.partition("First, why a verdict holds")[2].partition("Second,")[0]
    files = re.findall(r"^- `([^`]+)`", first, flags=re.MULTILINE)
    assert len(files) >= 4
    assert sum(length(ROOT / file) for file in files) <= 1500


def test_one_class_has_one_name():
    trees = [HOUSE["tree"](path) for path in MODULES.values()]
    named = [n.name for t in trees for n in ast.walk(t) if isinstance(n, ast.ClassDef)]
    assert [name for name, times in Counter(named).items() if times > 1] == []


def test_imports_go_in_no_circle_and_chains_are_short(arrows):
    assert HOUSE["circles"](arrows) == []
    chain = HOUSE["longest_chain"](arrows)
    assert len(chain) <= LONGEST, " > ".join(chain)


def test_public_names_and_modules_that_an_audit_enters_are_few():
    named = HOUSE["public_names"]
    expected = ["Bets", "PlacedBets", "SequentialTest"]
    assert named(MODULES["dpaudit.audit.betting.evidence"]) == expected
    assert sum(len(named(path)) for path in MODULES.values()) <= PUBLIC
    depth, files = HOUSE["entered"]()
    mine = [file for file in files if file.startswith("audit/")]
    others = (
        r"audit/(keeping/(store|database|checkpoint)|sampling/workers|search|replay)"
    )
    assert len(mine) <= 17
    assert len(files) <= 25
    assert depth <= 10
    assert [file for file in mine if re.match(rf"{others}[/.]", file)] == []


def test_circles_and_chains_are_seen():
    knot = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}
    assert HOUSE["circles"](knot) == [["a", "b", "c"]]
    line = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert HOUSE["circles"](line) == []
    assert HOUSE["longest_chain"](line) == ["a", "b", "c"]


@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise there")
def test_who_reads_the_house_may_stop():
    reader, writer = os.pipe()
    os.close(reader)
    house = [sys.executable, "-u", ROOT / ".ci/house.py"]
    told = subprocess.run(house, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert told.stderr == b""


def test_arrows_are_of_functions_and_type_checkers_too(arrows):
    assert len(arrows) > 300
    assert "dpaudit.audit.keeping.store" in arrows["dpaudit.audit.settings"]
    assert "dpaudit.reports.writer" in arrows["dpaudit.cli.report"]
    # Of a name that a package hands on, the module that it is from.
    assert "dpaudit.audit.settings" in arrows["dpaudit.cli.audit"]
    # By its name in a file.
    assert (
        "dpaudit.algorithms.streaming.dp_pca" in arrows["dpaudit.algorithms.catalogue"]
    )


def test_audit_takes_few_arguments_and_its_room_has_few_modules():
    assert len(signature(audit).parameters) <= 10
    assert len(list((ROOT / "audit").glob("*.py"))) <= 12
