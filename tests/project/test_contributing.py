"""What CONTRIBUTING.md promises of a mechanism: its entry is all that pages read."""

from pathlib import Path
from runpy import run_path

from dpaudit.algorithms import CATALOGUE, Entry, build, names_of
from dpaudit.algorithms.covariance.entrywise import GOEGaussian
from dpaudit.algorithms.textbook.sums import Laplace

ROOT = Path(__file__).parents[2]
TOYS = (
    Entry("toy-gaussian", "covariance", "a test", "a toy", GOEGaussian.calibrated),
    Entry(
        *("toy-laplace", "textbook", "a test", "a toy", Laplace.under_noised),
        **{"truth": 2.0, "lost": "half the noise"},
    ),
)


def test_an_entry_is_built_listed_and_on_the_pages(monkeypatch):
    for toy in TOYS:
        monkeypatch.setitem(CATALOGUE, toy.name, toy)
    assert names_of("covariance")[-1] == "toy-gaussian"
    assert build("toy-gaussian").claim == TOYS[0].claim
    refreshed = run_path(str(ROOT / "docs" / "tables.py"))["refreshed"]
    readme, suite = (
        refreshed((ROOT / page).read_text(encoding="utf-8"))
        for page in ("README.md", "docs/suite.md")
    )
    assert "| `toy-gaussian` | a toy |" in readme
    assert "| `toy-laplace` | add-remove | (1, 0) | 2 | half the noise |" in suite
