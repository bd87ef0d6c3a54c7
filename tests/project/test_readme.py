"""The README, and the page on the textbook suite, are true to the letter."""

import re
from pathlib import Path

import pytest

from dpaudit.algorithms import CATALOGUE, build, names_of
from dpaudit.audit import audit
from dpaudit.audit.assertions import Auditor
from dpaudit.mechanism import HasExactClaim
from dpaudit.pytest_plugin import PROFILES

README = Path(__file__).parents[2] / "README.md"
SUITE = README.parent / "docs" / "suite.md"
TEXT = README.read_text(encoding="utf-8")


def test_the_ten_line_audit_runs_and_so_does_the_test(capsys, tmp_path):
    code, test = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    assert "REFUTED" in capsys.readouterr().out
    assert names["result"].refuted  # type: ignore[attr-defined]
    exec(compile(test, str(README), "exec"), names)
    auditor = Auditor(PROFILES, lambda record: None, lambda: tmp_path)
    with pytest.raises(AssertionError, match="breaks its claim"):
        names["test_noisy_sum_keeps_its_claim"](auditor)  # type: ignore[operator]


def table_rows(text):
    """Return the cells of every row that begins with a name in code."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name.strip("`"): cells for name, *cells in rows}


def test_the_table_names_the_mechanisms_for_pca_and_their_verdicts():
    rows = table_rows(TEXT)
    assert tuple(rows) == names_of("covariance") + names_of("subspace")
    for name, (*_, verdict) in rows.items():
        assert ("**refuted**" in verdict) == CATALOGUE[name].expected_refuted


def test_figures_in_the_table():
    for name, (_, _, exact, verdict) in table_rows(TEXT).items():
        mechanism = build(name)
        if refuted := re.search(r"by (\d+) releases", verdict):
            assert audit(mechanism).samples == int(refuted[1])
        if not exact:
            assert not isinstance(mechanism, HasExactClaim)
            continue
        truth = mechanism.exact_claim(mechanism.worst_case())
        if exact.startswith("delta"):
            assert exact == f"delta = {truth.delta(1.0):.3f} at every epsilon"
        else:
            delta = float(mechanism.claim.delta(1.0))
            epsilon, stated = exact.strip("()").split(", ")
            assert float(stated) == delta
            assert float(epsilon) == pytest.approx(truth.epsilon(delta), abs=0.005)


def test_the_suite_has_the_truth():
    text = SUITE.read_text(encoding="utf-8")
    rows = table_rows(text)
    assert tuple(rows) == names_of("textbook")
    assert f"{len(rows)} textbook mechanisms" in TEXT
    assert f"{len(rows)} textbook mechanisms" in text
    for name, (relation, claim, truth, _) in rows.items():
        mechanism = build(name)
        epsilon = f"{CATALOGUE[name].epsilon:g}"
        assert relation == mechanism.relation.value
        approximate = CATALOGUE[name].approximate
        assert claim == (f"({epsilon}, 1e-5)" if approximate else epsilon)
        assert truth.replace("infinite", "inf") == f"{mechanism.true_epsilon:.3g}", name


@pytest.mark.parametrize("page", [README, SUITE], ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
