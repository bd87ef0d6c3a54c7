"""The README is true to the letter, and the tables of all pages are up to date."""

import re
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from dpaudit.algorithms import CATALOGUE
from dpaudit.audit.assertions import Auditor
from dpaudit.pytest_plugin import BUDGETS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
tables = SimpleNamespace(**run_path(str(ROOT / "docs" / "tables.py")))


def test_the_ten_line_audit_runs_and_so_does_the_test(capsys, tmp_path):
    code, test = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    printed = capsys.readouterr().out
    assert "REFUTED" in printed
    (shown,) = re.findall(r"```text\n(noisy_sum.*?)```", TEXT, flags=re.DOTALL)
    # How long it goes on for its bounds depends on the machine; the verdict does not.
    for exact in (r"noisy_sum: .* \(after \d+ of ", r"  claim .*", r"  layer .*"):
        assert re.findall(exact, printed) == re.findall(exact, shown) != []
    assert len(printed.splitlines()) == len(shown.splitlines())
    assert names["result"].refuted  # type: ignore[attr-defined]
    exec(compile(test, str(README), "exec"), names)
    auditor = Auditor(BUDGETS, lambda record: None, lambda: tmp_path)
    with pytest.raises(AssertionError, match="breaks its claim"):
        names["test_noisy_sum_keeps_its_claim"](auditor)  # type: ignore[operator]


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda path: path.name)
def test_tables_are_what_their_commands_print(page):
    """If not: ``make tables``."""
    text = page.read_text(encoding="utf-8")
    assert tables.refreshed(text) == text


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
