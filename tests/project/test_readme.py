"""The README is true to the letter."""

import re
from pathlib import Path

from dpaudit.algorithms import CATALOGUE, build
from dpaudit.audit import audit

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_the_ten_line_audit_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    assert "REFUTED" in capsys.readouterr().out
    assert names["result"].refuted  # type: ignore[attr-defined]


def test_the_table_names_the_catalogue_and_its_verdicts():
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (.*) \|$", TEXT, flags=re.MULTILINE)
    assert [name for name, _ in rows] == list(CATALOGUE)
    for name, verdict in rows:
        assert ("**refuted**" in verdict) == CATALOGUE[name].expected_refuted


def test_figures_in_the_table():
    (releases,) = re.findall(r"\*\*refuted\*\* by (\d+) releases", TEXT)
    mechanism = build("symmetric-noise")
    assert audit(mechanism).samples == int(releases)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert f"delta = {float(exact.delta(1.0)):.3f}" in TEXT
    published = build("analyze-gauss-published")
    exact = published.exact_claim(published.worst_case())
    assert f"({exact.epsilon(1e-5):.2f}, 1e-5)" in TEXT


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (README.parent / target).exists(), target
