"""One version, that of the code that runs, whether or not it is installed."""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpaudit

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def nowhere_installed(monkeypatch):
    def not_found(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_found)


def test_a_checkout_knows_its_own_version(nowhere_installed):
    assert dpaudit._version() == PROJECT["project"]["version"]


@pytest.mark.parametrize("beside", [None, "no toml", "", '[project]\nname = "other"'])
def test_without_a_checkout_the_installed_version_counts(
    tmp_path, monkeypatch, beside, request
):
    home = tmp_path / "lib" / "dpaudit" / "__init__.py"
    monkeypatch.setattr(dpaudit, "__file__", str(home))
    if beside is not None:
        (tmp_path / "pyproject.toml").write_text(beside)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"9 of {name}")
    assert dpaudit._version() == "9 of dpaudit"
    request.getfixturevalue("nowhere_installed")
    assert dpaudit._version() == "0+unknown"


NOT_INSTALLED = """
import importlib.metadata, sys
real = importlib.metadata.version

def version(name):
    if name == "dpaudit":
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)

importlib.metadata.version = version
from dpaudit.cli import main
kept = ["--store", "a.db", "--json", "--refine", "0"]
main(["audit", "symmetric-noise", *kept], prog_name="dpaudit")
"""


def test_a_checkout_on_the_path_audits_stores_and_writes_witnesses(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    witness = json.loads(done.stdout)["witness"]
    assert witness["versions"]["dpaudit"] == dpaudit.__version__


def test_nobody_else_asks_what_is_installed_of_dpaudit():
    folders = ("src/dpaudit", "algorithms", "attacks", "audit", "reports")
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "src" / "dpaudit" / "__init__.py":
                text = path.read_text(encoding="utf-8")
                assert "version('dpaudit')" not in text, path
                assert 'version("dpaudit")' not in text, path
                assert 'package_name="dpaudit"' not in text, path
