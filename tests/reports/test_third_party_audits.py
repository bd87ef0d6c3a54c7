"""The audits of other libraries: what is written, and what is left out."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from dpaudit.algorithms import CATALOGUE, Entry, names_of
from dpaudit.audit import Verdict, verify
from dpaudit.audit.witness import Witness
from dpaudit.claims import PureDP
from dpaudit.cli import main
from dpaudit.neighbours import Pair, Relation
from dpaudit.reports.sections.libraries import audits as third_party
from dpaudit.reports.sections.libraries.audits import (
    BUDGETS,
    examine,
    verdict_table,
)


class HalfTheNoise:
    """A mechanism whose claim is false, as if it were a library's."""

    relation = Relation.ADD_REMOVE

    def __init__(self, epsilon=1.0):
        self.claim = PureDP(epsilon)

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=0.5)

    def worst_case(self, dimension=None):
        return Pair([0.0], [0.0, 1.0])


def planted(name="half-the-noise", extra=None):
    return Entry(
        name=name,
        family="third-party",
        source="-",
        summary="-",
        constructor=HalfTheNoise,
        approximate=False,
        relations=(Relation.ADD_REMOVE,),
        has_row_norm=False,
        extra=extra,
    )


def command(*arguments):
    return CliRunner().invoke(main, ["report", "third-party", *arguments])


@pytest.fixture
def catalogue(monkeypatch):
    """Put two entries in place of the family; the library of one is missing."""
    for name in names_of("third-party"):
        monkeypatch.delitem(CATALOGUE, name)
    monkeypatch.setitem(CATALOGUE, "half-the-noise", planted())
    missing = planted("elsewhere", extra="no_such_library")
    monkeypatch.setitem(CATALOGUE, "elsewhere", missing)


def test_every_mechanism_has_a_budget():
    assert set(BUDGETS) == set(names_of("third-party"))


def test_versions_of_the_library_are_recorded(monkeypatch):
    monkeypatch.setitem(third_party._DISTRIBUTIONS, "numpy", ("numpy", "scipy"))
    finding = examine(planted(extra="numpy"), max_samples=400)
    assert finding.libraries["numpy"] == np.__version__
    assert set(finding.libraries) == {"numpy", "scipy"}
    assert finding.result.witness.versions.items() >= finding.libraries.items()
    assert "dpaudit" in finding.result.witness.versions


def test_a_refutation_is_written_with_its_witness(catalogue, tmp_path):
    folder = tmp_path / "store"
    arguments = ["--output", str(folder), "--max-samples", "400"]
    one, two = (
        command(*arguments, *more) for more in ((), ("--seed", "3", "half-the-noise"))
    )
    assert one.exit_code == two.exit_code == 0
    assert "elsewhere: left out, pip install 'dpaudit[no_such_library]'" in one.stderr
    assert "REFUTED" in one.stdout
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = (json.loads(line) for line in lines)
    assert first["mechanism"] == second["mechanism"] == "half-the-noise"
    assert first["code"].startswith("0.")
    assert first["result"]["verdict"] == "REFUTED"
    assert first["result"]["samples"] == 400  # to the end
    assert (first["result"]["seed"], second["result"]["seed"]) == (0, 3)
    witness = Witness.load(folder / first["result"]["witness"])
    assert verify(witness, mechanism=HalfTheNoise(), seed=1).confirmed


def test_what_is_not_refuted_has_no_witness(tmp_path):
    finding = examine(planted(), max_samples=20)
    assert finding.result.verdict is Verdict.NOT_REFUTED
    finding.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]
    (line,) = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["result"]["witness"] is None


def test_the_table_has_a_line_for_each():
    finding = examine(planted(), max_samples=20)
    heading, *lines = verdict_table([finding, finding]).splitlines()
    assert heading.split()[0] == "mechanism"
    assert len(lines) == 2
    assert lines[0].split()[0] == "half-the-noise"
    assert "NOT_REFUTED" in lines[0]


def test_a_missing_library_that_is_asked_for_is_an_error(monkeypatch, tmp_path):
    for name in [n for n in sys.modules if n.split(".")[0] == "diffprivlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    result = command("--output", str(tmp_path), "diffprivlib-laplace")
    assert result.exit_code == 2
    assert "pip install 'dpaudit[diffprivlib]'" in result.stderr
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["opendp-laplac"], "did you mean 'opendp-laplace'"),
        (["--max-samples", "1", "half-the-noise"], "max_samples must be"),
        (["--confidence", "2", "half-the-noise"], "confidence must be"),
    ],
)
def test_wrong_usage_exits_with_two(arguments, complaint, monkeypatch, tmp_path):
    monkeypatch.setitem(CATALOGUE, "half-the-noise", planted())
    result = command("--output", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_written_to_is_an_error(catalogue, tmp_path):
    (tmp_path / "file").write_text("")
    result = command("--output", str(tmp_path / "file"), "half-the-noise")
    assert result.exit_code == 2
