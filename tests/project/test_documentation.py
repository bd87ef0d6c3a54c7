"""The README is true to the letter, tables are up to date, and the site is whole.

As far as that is known without building the site. `make docs` builds it: there every
warning is an error, and links lead somewhere.
"""

import doctest
import importlib
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
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("notebooks/*.md")])
}
PUBLIC = run_path(str(DOCS / "extensions" / "public.py"))["modules"]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES.values()]


def contents():
    """What stands in the lists of contents of all pages, in order."""
    listed = []
    for path in PAGES.values():
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.S | re.M):
            listed += [line for line in block.split() if not line.startswith(":")]
    return [name for name in listed if name in PAGES or "/" in name]


def slugs(path):
    """The anchors of a page's headings, as they are made of them in a repository."""
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M
    )
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings]
    return {each.replace(" ", "-") for each in words}


def test_every_page_is_in_the_contents_once_and_linked_from_the_first():
    assert sorted(contents()) == sorted([*PAGES.keys() - {"index"}, "api/dpaudit"])
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w/-]+)\.md", text))
    assert linked == PAGES.keys() - {"index"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_anchors_lead_to_headings(path):
    text = path.read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\(([^)#:]*\.md|)#([^)]+)\)", text):
        target = path.parent / file if file else path
        assert anchor in slugs(target), f"{file}#{anchor}"


def commands(group, name="dpaudit"):
    yield name
    for part, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {part}")


def test_commands_have_their_help_and_exist():
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^<!-- (dpaudit.*) --help -->$", text, re.MULTILINE)
    assert sorted(quoted) == sorted(commands(main))
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert ["dpaudit", *headings] == quoted
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
    comment = "<!-- dpaudit list --columns name -->"
    text = f"a\n{comment}\nold\n<!-- end -->\nb\n"
    names = "\n".join(["name", *CATALOGUE])
    new = f"a\n{comment}\n```text\n{names}\n```\n<!-- end -->\nb\n"
    assert tables.refreshed(text + text) == new + new  # each by itself


@pytest.mark.parametrize(
    "package",
    re.findall(
        r"\{py:mod\}`([\w.]+)`", (DOCS / "reference.md").read_text(encoding="utf-8")
    ),
)
def test_what_people_import_has_a_page(package):
    """So has the module in which it is defined."""
    pages = set(PUBLIC())
    assert package in pages
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        home = getattr(getattr(module, name), "__module__", package)
        assert home in pages or not home.startswith("dpaudit"), f"{package}.{name}"


def test_the_site_is_strict_and_fetches_nothing(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the configuration adds to it
    settings = run_path(str(DOCS / "conf.py"))
    assert settings["nitpicky"]
    assert not any("intersphinx" in name for name in settings["extensions"])
    assert not settings.keys() & {"suppress_warnings", "nitpick_ignore"}
    (command,) = re.findall(
        r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert "--fail-on-warning" in command
    assert ".ci/pages.py build/docs" in command


def test_docstrings_are_plain_text(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    plain_text = importlib.import_module("plain_text")
    assert doctest.testmod(plain_text) == doctest.TestResults(failed=0, attempted=2)
    for literal in (
        *(["Text::", "", "    |x|"], [".. math:: |x|", "    z_+", "", "    |y|"]),
        *([">>> a | b", "z_"], ["A `z_` and ``|x|`` and :math:`|y|`."]),
    ):
        assert plain_text.plain(literal) == [*literal, ""]
    item = ["1. One", "", "   |x| of one.", "", "   - two"]
    assert plain_text.plain(item) == [
        *("1. One", "", r"   \|x\| of one.", ""),
        *item[4:],
        "",
    ]


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
FEW = {"audit": {"releases": 40, "refine": 0.0}}


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


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target
