"""The audits of other libraries: what is written, and what is left out."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner

from dpaudit import Pair, PureDP, Relation
from dpaudit.algorithms import CATALOGUE, Entry, names_of
from dpaudit.audit import Witness, verify
from dpaudit.cli import main
from dpaudit.extras import how_to_install
from dpaudit.reports.sections.libraries import audits as third_party
from dpaudit.reports.sections.libraries.audits import (
    BUDGETS,
    audited,
    examine,
    verdict_table,
)

ALONE = ("--workers", "1")


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


def test_versions_of_the_library_are_recorded(monkeypatch):
    assert set(BUDGETS) == set(names_of("third-party"))
    monkeypatch.setitem(third_party._DISTRIBUTIONS, "numpy", ("numpy", "scipy"))
    finding = examine(planted(extra="numpy"), max_samples=400)
    assert finding["libraries"]["numpy"] == np.__version__
    assert set(finding["libraries"]) == {"numpy", "scipy"}
    versions = finding["result"]["witness"]["versions"]
    assert versions.items() >= finding["libraries"].items()
    assert "dpaudit" in versions


def lines_of(folder):
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_refutation_is_written_with_its_witness(catalogue, tmp_path):
    folder = tmp_path / "store"
    done = command("--output", str(folder), "--max-samples", "400", *ALONE)
    assert done.exit_code == 0
    assert "elsewhere: left out, pip install 'no_such_library'" in done.stderr
    assert "REFUTED" in done.stdout
    (found,) = lines_of(folder)
    assert found["mechanism"] == "half-the-noise"
    assert found["result"]["verdict"] == "REFUTED"
    assert found["result"]["samples"] == 400  # to the end
    assert found["result"]["seed"] == 0
    witness = Witness.load(folder / found["result"]["witness"])
    assert verify(witness, mechanism=HalfTheNoise(), seed=1).confirmed


def test_finished_audits_are_not_carried_out_again(catalogue, tmp_path, monkeypatch):
    """They are told apart by all that decides them, the library's version included."""
    options = ["--output", str(tmp_path), "--max-samples", "20", *ALONE]
    first = command(*options)
    carried_out = []

    def counted(chosen, **given):
        carried_out.append(given["seed"])
        return examine(chosen, **given)

    monkeypatch.setattr(third_party, "examine", counted)
    assert command(*options).stdout == first.stdout
    assert carried_out == []
    assert command(*options, "--seed", "3").exit_code == 0
    assert carried_out == [3]
    assert [line["result"]["seed"] for line in lines_of(tmp_path)] == [3]
    monkeypatch.setattr(third_party, "library_versions", lambda extra: {"it": "2"})
    assert command(*options).exit_code == 0
    assert carried_out == [3, 0]


def test_results_are_the_same_with_any_executor(catalogue, tmp_path):
    def found(folder, executor):
        (one,) = audited(folder, max_samples=20, executor=executor)
        return one["result"] | {"seconds": None}

    with ThreadPoolExecutor(2) as executor:
        assert found(tmp_path / "1", executor) == found(tmp_path / "2", None)


def test_what_is_not_refuted_has_no_witness(catalogue, tmp_path):
    (finding,) = audited(tmp_path, max_samples=20)
    heading, *lines = verdict_table([finding, finding]).splitlines()
    assert heading.split()[0] == "mechanism"
    assert [line.split()[0] for line in lines] == ["half-the-noise"] * 2
    assert "NOT_REFUTED" in lines[0]
    assert finding["result"]["verdict"] == "NOT_REFUTED"
    assert not list(tmp_path.glob("*.witness.json"))
    (line,) = lines_of(tmp_path)
    assert line["result"]["witness"] is None


def test_a_missing_library_that_is_asked_for_is_an_error(monkeypatch, tmp_path):
    for name in [n for n in sys.modules if n.split(".")[0] == "diffprivlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    result = command("--output", str(tmp_path), "diffprivlib-laplace")
    assert result.exit_code == 2
    assert how_to_install("diffprivlib") in result.stderr
    assert not (tmp_path / "results.jsonl").exists()


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
