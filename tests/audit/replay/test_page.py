"""The page on replays is true: every command and every piece of code on it runs."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpaudit.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "replay.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("page")
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield folder


def test_the_page_has_code_commands_and_output():
    assert [kind for kind, _ in BLOCKS] == ["python", "sh", "text", *["python"] * 4]


def test_every_piece_of_it_runs(folder):
    shown = ""
    for kind, text in BLOCKS:
        file = re.match(r"# (\w+\.py)\n", text)
        if kind == "python" and file:
            (folder / file[1]).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(text, {"__name__": "page"})
        elif kind == "sh":
            for line in text.splitlines():
                command, _, code = line.partition("   # exit code ")
                done = CliRunner().invoke(main, shlex.split(command)[1:])
                assert done.exit_code == int(code), done.output
                shown += done.output
        else:
            for line in text.splitlines()[1:]:
                assert line in shown
