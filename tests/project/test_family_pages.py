"""The pages on families of mechanisms: their code runs, and they name every member."""

import re
from pathlib import Path

import pytest

from dpaudit.algorithms import names_of

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["streaming", "robust", "online", "tracing"])
def test_the_code_of_a_page_runs(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for code in blocks:
        exec(compile(code, f"{page}.md", "exec"), {})


@pytest.mark.parametrize("family", ["streaming", "robust", "online"])
def test_a_page_names_every_mechanism(family):
    text = (DOCS / f"{family}.md").read_text(encoding="utf-8")
    for name in names_of(family):
        stem = name.removesuffix("-published")
        assert f"`{name}`" in text or f"`{stem}`" in text, name
