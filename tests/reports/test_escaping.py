"""What is escaped where text leaves: the rest is tested through the page's writer."""

import pandas as pd
import pytest
from click.testing import CliRunner

import dpaudit.audit
from dpaudit.cli import main
from dpaudit.reports.escaping import csv_text, markdown, plain


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("plain, ε = 1 – “so” 日本", "plain, ε = 1 – “so” 日本"),
        ("a\u00a0b", "a\u00a0b"),  # no break: not a break
        ("a\r\n\tb\u2028c\x85d", "a b c d"),
        ("\x1b[0m\x00\x7f\x9b", "\ufffd[0m\ufffd\ufffd\ufffd"),
        ("\u202e\u2066\ud83d", "\ufffd" * 3),
        ("\N{GRINNING FACE}", "\N{GRINNING FACE}"),
    ],
)
def test_printable(text, says):
    assert plain(text) == says
    assert plain(says) == says


def test_markdown_is_the_text_and_numbers_are_no_formulas():
    assert markdown("ggd ≥ 0.5 (d² = 1e-3)") == "ggd ≥ 0.5 (d² = 1e-3)"
    assert markdown(r"\|`") == r"\\\|\`"
    table = pd.DataFrame(
        {"x": [-1.5, float("nan")], "n": [-1, 2], "b": [True, False], "t": ["-1", None]}
    )
    assert csv_text(table) == "x,n,b,t\n-1.5,-1,True,'-1\n,2,False,\n"


def test_exported_names_are_no_formulas(tmp_path, monkeypatch):
    class Stand:
        def __init__(self, path):
            pass

        def table(self):
            names = {"name": ["=1+1", "good"], "epsilon_lower": [-0.5, 1.0]}
            return pd.DataFrame(names), []

    monkeypatch.setattr(dpaudit.audit, "Store", Stand)
    output = tmp_path / "audits.csv"
    done = CliRunner().invoke(main, ["export", "store.db", "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert output.read_text() == "name,epsilon_lower\n'=1+1,-0.5\ngood,1.0\n"
