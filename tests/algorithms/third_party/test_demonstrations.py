"""Findings in other libraries, shown again without dpaudit, where these are installed.

The scripts are deterministic where they state an exact number, and test a binomial
count at a two-sided false-alarm probability of 1e-6 where they draw.
"""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "demonstrations"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def test_there_is_a_script_for_each_explained_refutation():
    from dpaudit.reports.sections.libraries.findings import EXPLAINED

    text = (FOLDER.parent / "findings.md").read_text(encoding="utf-8")
    for heading in EXPLAINED.values():
        assert f"## {heading}\n" in text
        section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        assert any(f"demonstrations/{each.name}" in section for each in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_demonstration_holds_and_does_without_dpaudit(script):
    source = script.read_text(encoding="utf-8")
    assert "import dpaudit" not in source
    assert "from dpaudit" not in source
    (library,) = {"diffprivlib", "multi_freq_ldpy"} & set(
        re.findall(r"^from (\w+)", source, re.MULTILINE)
    )
    if find_spec(library) is None:
        pytest.skip("make third-party")
    runpy.run_path(str(script))
