"""The README is true to the letter, and the tables of all pages are up to date."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner
from test_pages import assert_prints

from dpaudit.algorithms import CATALOGUE
from dpaudit.audit.assertions import Auditor
from dpaudit.cli import main
from dpaudit.pytest_plugin import BUDGETS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
tables = SimpleNamespace(**run_path(str(ROOT / "docs" / "tables.py")))


def test_the_ten_line_audit_runs_and_so_does_the_test(capsys, tmp_path):
    code, _, test = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(noisy_sum.*?)```", TEXT, flags=re.DOTALL)
    assert_prints(shown, printed)
    assert names["result"].refuted  # type: ignore[attr-defined]
    exec(compile(test, str(README), "exec"), names)
    auditor = Auditor(BUDGETS, lambda record: None, lambda: tmp_path)
    with pytest.raises(AssertionError, match="breaks its claim"):
        names["test_noisy_sum_keeps_its_claim"](auditor)  # type: ignore[operator]


SECTION = TEXT[TEXT.index("## The command line") : TEXT.index("## In your tests")]
QUICK, OWN, LONG = re.findall(r"```sh\n(.*?)```", SECTION, flags=re.DOTALL)
FEW = {"audit": {"releases": 100, "refine": 0.0}}


def test_the_commands_end_as_they_say(tmp_path, monkeypatch):
    """With few releases, and without other processes, where that changes no verdict."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (module,) = re.findall(r"```python\n# mymodule.py\n(.*?)```", TEXT, re.DOTALL)
    Path("mymodule.py").write_text(module, encoding="utf-8")
    for line in (QUICK + OWN).replace("--workers 2", "--workers 1").splitlines():
        command, _, said = line.partition(" # ")
        if not command.startswith("dpaudit "):
            subprocess.run(command, shell=True, check=True)
            continue
        words = shlex.split(command)[1:]
        for each in ("--max-samples", "2000"):
            words = [word for word in words if word != each]
        done = CliRunner().invoke(main, words, default_map=FEW)
        wanted = re.search(r"exit code (\d)", said)
        assert done.exit_code == int(wanted[1] if wanted else 0), done.output
    sys.modules.pop("mymodule")


def test_the_commands_that_take_longer_exist():
    for line in LONG.splitlines():
        program, *words = shlex.split(line, comments=True)
        group = main
        if program != "dpaudit":
            assert program in ("pytest", "make")
            continue
        while isinstance(group, click.Group) and words[0] in group.commands:
            name, *words = words
            group = group.commands[name]
        group.make_context(name, words, resilient_parsing=True)
        options = {option for each in group.params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda path: path.name)
def test_tables_are_what_their_commands_print(page):
    """If not: ``make tables``.

    Errors that `recommend` measures are means over draws. On another processor a
    sampler by rejection may draw others; their intervals are 30 % wide and more.
    """
    text = page.read_text(encoding="utf-8")
    measured = re.compile(r"<!-- dpaudit recommend .*?<!-- end -->", re.DOTALL)
    now = tables.refreshed(text)
    assert measured.sub("", now) == measured.sub("", text)
    number = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
    for old, new in zip(measured.findall(text), measured.findall(now), strict=True):
        assert number.sub("#", new).split() == number.sub("#", old).split()
        numbers = (
            [float(each) for each in number.findall(part)] for part in (new, old)
        )
        assert next(numbers) == pytest.approx(next(numbers), rel=0.1)


def test_a_table_that_is_stale_is_noticed():
    comment = "<!-- dpaudit list --columns name -->"
    text = f"a\n{comment}\nold\n<!-- end -->\nb\n"
    names = "\n".join(["name", *CATALOGUE])
    new = f"a\n{comment}\n```text\n{names}\n```\n<!-- end -->\nb\n"
    assert tables.refreshed(text + text) == new + new  # each by itself


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target
