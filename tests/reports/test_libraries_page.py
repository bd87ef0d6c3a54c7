"""The page on audits of libraries is true: every command and piece of code runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpaudit.audit.replay.declare import libraries
from dpaudit.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "libraries.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(libraries, "_yours", {})
    yield tmp_path
    for name in ("tabular", "tabular_shelf"):
        sys.modules.pop(name, None)


def test_every_piece_of_it_runs(folder):
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds == ["python", "python", "sh", "text", "python", "python", "sh"]
    shown = ""
    for kind, text in BLOCKS:
        file = re.match(r"# (\w+\.py)\n", text)
        if file:
            (folder / file[1]).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(text, {"__name__": "page"})
        elif kind == "sh":
            command, _, code = text.strip().partition("   # exit code ")
            done = CliRunner().invoke(main, shlex.split(command)[1:])
            assert done.exit_code == int(code), done.output
            shown = done.stdout
        else:
            lines = [line.split()[:3] for line in shown.splitlines()]
            for line in text.splitlines():
                assert line.split() in lines


def test_lines_are_where_it_says():
    library = BLOCKS[0][1].splitlines()
    for line in re.findall(r"tabular\.py:(\d+)", TEXT):
        assert "Epsilon-DP if a row" in library[int(line) - 1]
