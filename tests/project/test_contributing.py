"""What CONTRIBUTING.md promises of additions, done to the letter in a copy.

A mechanism is a file and an entry (beside its test and a line of the changelog), an
attack a file, a line of the portfolio and a case. Everything else follows.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = (
    *("algorithms", "attacks", "audit", "reports", "src", "tests"),
    *("CONTRIBUTING.md", "LICENSE", "README.md", "conftest.py", "pyproject.toml"),
    *("docs/tables.py", "docs/suite.md"),  # all pages would take seconds
)

MECHANISM = '''
"""A mechanism under another name."""

from dataclasses import dataclass

from dpaudit.algorithms.HOME import BASE

__all__ = ["NAME"]


@dataclass(frozen=True)
class NAME(BASE):
    """A toy."""
'''
ENTRY = """
    Entry(
        name="toy-gaussian",
        family="covariance",
        source="a test",
        summary="a toy",
        constructor=ToyGaussian.calibrated,
        approximate=True,
    ),
"""
TEXTBOOK_ENTRY = """
    _entry(
        name="toy-laplace",
        constructor=ToyLaplace.under_noised,
        source="a test",
        summary="a toy",
        epsilon=1.0,
        refutation=Refutation(3_000),
        truth=2.0,
        lost="half the noise",
    ),
"""
ATTACK = '''
"""The first entry."""

import numpy as np

from dpaudit.attacks.base import Attack

__all__ = ["ToyFirst"]


class ToyFirst(Attack):
    """Score = the first entry of a vector."""

    name = "toy-first"
    learns = False

    def applies(self, target, releases):
        return (
            isinstance(releases, np.ndarray)
            and releases.ndim == 2
            and releases.shape[1] > 0
        )

    def score(self, target, parameters, releases):
        return releases[:, 0]
'''


def mechanism(home: str, base: str, name: str) -> str:
    """Return a module that has a mechanism of the house under a name of its own."""
    text = MECHANISM.lstrip().replace("HOME", home)
    return text.replace("BASE", base).replace("NAME", name)


def insert(path: Path, before: str, text: str) -> None:
    content = path.read_text(encoding="utf-8")
    assert content.count(before) == 1
    path.write_text(content.replace(before, text + before), encoding="utf-8")


def append(path: Path, after: str, text: str) -> None:
    content = path.read_text(encoding="utf-8")
    assert content.count(after) == 1
    path.write_text(content.replace(after, after + text.lstrip("\n")), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the project with a mechanism of each kind, and an attack."""
    root = tmp_path_factory.mktemp("copy")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, root / part, symlinks=True)
        else:
            (root / part).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / part, root / part)
    covariance, textbook = (root / "algorithms" / n for n in ("covariance", "textbook"))
    (covariance / "toy_gaussian.py").write_text(
        mechanism("covariance.entrywise", "GOEGaussian", "ToyGaussian")
    )
    where = "from dpaudit.algorithms.covariance.toy_gaussian import ToyGaussian\n"
    insert(covariance / "entries.py", "\n__all__", where)
    append(covariance / "entries.py", "COVARIANCE = (\n", ENTRY)
    (textbook / "toy_laplace.py").write_text(
        mechanism("textbook.sums", "Laplace", "ToyLaplace")
    )
    where = "from dpaudit.algorithms.textbook.toy_laplace import ToyLaplace\n"
    insert(textbook / "entries.py", "\n__all__", where)
    append(textbook / "entries.py", "TEXTBOOK = (\n", TEXTBOOK_ENTRY)
    attacks = root / "attacks"
    (attacks / "toy_first.py").write_text(ATTACK.lstrip())
    where = "from dpaudit.attacks.toy_first import ToyFirst\n"
    insert(attacks / "__init__.py", "\n__all__", where)
    insert(attacks / "__init__.py", "    ExactLoss(),\n", "    ToyFirst(),\n")
    cases = root / "tests" / "attacks" / "attack_cases.py"
    insert(cases, "\nfrom dpaudit import", where)
    append(
        cases, "CASES = [\n", "    Case(ToyFirst(), laplace(np.full(2, 1.0)), 0.7),\n"
    )
    return root


# make tables, and make test: in one process, as either has to read the catalogue.
TABLES_AND_TESTS = """
import runpy, sys, pytest
runpy.run_path("docs/tables.py", run_name="__main__")
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def passed(copy) -> list[str]:
    """What `pytest` tells of the tests that have to do with them, and pass."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", TABLES_AND_TESTS),
            *("-v", "-n", "0", "-p", "no:cacheprovider"),
            *("-W", "ignore:Module already imported"),
            *("tests/algorithms/test_catalogue.py", "tests/attacks/test_contract.py"),
            "audit/checks/test_catalogue_claims.py",
            *("-k", "every_attack_has_a_case or toy and not (nothing and laplace)"),
        ],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "PASSED" in line]


def test_pages_have_them(copy, passed):
    """So the copy is what ran: no other catalogue has them."""
    assert "| `toy-gaussian` | a toy |" in (copy / "README.md").read_text()
    suite = (copy / "docs" / "suite.md").read_text()
    assert "| `toy-laplace` | add-remove | (1, 0) | 2 | half the noise |" in suite


def test_the_tests_hold_them_to_what_their_entries_say(passed):
    """Among them: toy-laplace is refuted, and toy-gaussian is not."""
    for name in ("toy-gaussian", "toy-laplace", "toy-first"):
        assert sum(name in line for line in passed) >= 3
    for test, name in (
        ("test_nothing_is_found_that_is_not_there", "toy-gaussian"),
        ("test_a_false_claim_falls", "toy-laplace"),
    ):
        assert any(test in line and name in line for line in passed)
