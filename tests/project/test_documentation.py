"""The site of the documentation is whole, as far as that is known without building it.

`make docs` builds it: there every warning is an error, and links lead somewhere.
"""

import doctest
import importlib
import re
import sys
from pathlib import Path
from runpy import run_path

import pytest

from dpaudit.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.stem: path for path in DOCS.glob("*.md")}
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


def test_every_page_is_in_the_contents_once():
    assert sorted(contents()) == sorted([*PAGES.keys() - {"index"}, "api/dpaudit"])


def test_the_first_page_leads_to_every_other():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w-]+)\.md", text))
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


def test_every_command_has_its_help_on_the_page_of_commands():
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^<!-- (dpaudit.*) --help -->$", text, re.MULTILINE)
    assert sorted(quoted) == sorted(commands(main))
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert ["dpaudit", *headings] == quoted


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
    assert "docs/check.py build/docs" in command


def test_docstrings_are_plain_text(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    plain_text = importlib.import_module("plain_text")
    assert doctest.testmod(plain_text) == doctest.TestResults(failed=0, attempted=2)
    for literal in (
        ["Text::", "", "    |x|"],
        [".. math:: |x|", "    z_+", "", "    |y|"],
        [">>> a | b", "z_"],
        ["A `z_` and ``|x|`` and :math:`|y|`."],
    ):
        assert plain_text.plain(literal) == [*literal, ""]
    item = ["1. One", "", "   |x| of one.", "", "   - two"]
    assert plain_text.plain(item) == [
        "1. One",
        "",
        r"   \|x\| of one.",
        "",
        *item[4:],
        "",
    ]


def test_a_link_that_leads_nowhere_and_what_is_fetched_are_seen(tmp_path):
    problems = run_path(str(DOCS / "check.py"))["problems"]
    page = tmp_path / "index.html"
    page.write_text("<h1 id=here>A</h1><a href='#here'>a</a><a href='b.html'>b</a>")
    assert [text.split(": ", 1)[0] for text in problems(tmp_path)] == ["index.html:1"]
    page.write_text("<script src='https://example.org/a.js'></script>")
    (tmp_path / "style.css").write_text("@import url(//example.org/b.css);")
    assert len(problems(tmp_path)) == 2
