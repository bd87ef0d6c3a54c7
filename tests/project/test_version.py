"""One version, that of the code that runs, whether or not it is installed."""

import importlib.metadata
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def nowhere_installed(monkeypatch):
    real = importlib.metadata.version

    def not_found(name):
        if name == "dpaudit":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

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


def test_a_checkout_on_the_path_audits_stores_and_writes_witnesses(
    tmp_path, monkeypatch, nowhere_installed
):
    monkeypatch.chdir(tmp_path)
    kept = ["--store", "a.db", "--json", "--refine", "0"]
    done = CliRunner().invoke(main, ["audit", "symmetric-noise", *kept])
    assert done.exit_code == 1, done.stderr
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
