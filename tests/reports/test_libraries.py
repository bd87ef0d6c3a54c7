"""Other libraries: how they are compared and audited, and what is written of that."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import refuses

from dpaudit import Pair, PureDP, Relation
from dpaudit.algorithms import CATALOGUE, Entry, names_of
from dpaudit.audit import Witness, verify
from dpaudit.cli import main
from dpaudit.errors import ExecutorError
from dpaudit.extras import how_to_install
from dpaudit.reports.sections.libraries import audits
from dpaudit.reports.sections.libraries import audits as third_party
from dpaudit.reports.sections.libraries import measures as libraries
from dpaudit.reports.sections.libraries.audits import (
    BUDGETS,
    audited,
    examine,
    verdict_table,
)
from dpaudit.reports.sections.libraries.measures import (
    CONTENDERS,
    FILE,
    LibraryComparison,
    LibraryFit,
    compare,
    load_comparison,
)
from dpaudit.reports.sections.utility.measures import geometric_spectrum
from dpaudit.subspace import captured_variance_share, second_moment, top_components

FOUND = LibraryComparison({"dpaudit": "0"}, 1.0, "replace-one", 9, 1, 2.5, [{"a": 0}])


def command(*arguments):
    return CliRunner().invoke(main, ["report", "libraries", *arguments])


# Contenders travel to another process, so their fits stand in a module.
def best(rows, k, rng):
    return top_components(second_moment(rows), k)


def stuck(rows, k, rng):
    time.sleep(600)


def broken(rows, k, rng):
    raise ValueError("no such rows")


def test_every_fit_is_measured():
    lines = []
    found = compare(
        [LibraryFit("best", "here", 0.0, best)],
        repetitions=2,
        settings=[(3, 1)],
        progress=lines.append,
    )
    assert [row["captured_share"] for row in found.records] == pytest.approx([1, 1])
    assert all(0 < row["fit_seconds"] < found.limit_s for row in found.records)
    assert lines == ["best, d = 3: 2 fits"]
    assert (found.n_rows, found.repetitions, found.limit_s) == (20_000, 2, 60.0)
    assert set(found.versions) == {"dpaudit"}


@pytest.fixture
def at_once(monkeypatch):
    """Processes that need not import anything before they fit."""
    monkeypatch.setattr(libraries, "get_context", lambda _: get_context("fork"))


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fit_that_does_not_end_in_time_is_none():
    contender = LibraryFit("stuck", "there", 1e-5, stuck)
    found = compare([contender], limit_s=0.1, settings=[(3, 1)])
    asked = {"contender": "stuck", "centre": "there", "delta": 1e-5}
    asked |= {"dimension": 3, "n_components": 1}
    assert found.records == [asked | {"captured_share": None, "fit_seconds": None}]


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fit_that_fails_is_an_error(capfd):
    with pytest.raises(ExecutorError, match="broken in 3 dimensions failed"):
        compare([LibraryFit("broken", "-", 0.0, broken)], settings=[(3, 1)])
    assert "no such rows" in capfd.readouterr().err


@pytest.mark.parametrize(
    "contender", CONTENDERS[:3], ids=lambda c: f"{c.centre} {c.delta}"
)
def test_ours_captures_nearly_all(contender):
    problem = geometric_spectrum(6)
    basis = contender.fit(problem.rows, 2, np.random.default_rng(0))
    assert captured_variance_share(basis, problem.moment) > 0.99
    values = np.linalg.eigvalsh(problem.moment)[::-1]
    assert values[1:] / values[:-1] == pytest.approx(np.full(5, 0.75), rel=0.05)
    assert values.sum() == pytest.approx(0.2 * 20_000, rel=0.05)


def test_what_is_written_is_read(tmp_path):
    assert load_comparison(tmp_path) is None
    assert FOUND.save(tmp_path / "new") == tmp_path / "new" / FILE
    assert load_comparison(tmp_path / "new") == FOUND


@pytest.mark.parametrize("text", ["", "[]", '{"versions": {}}'])
def test_a_file_of_something_else_is_an_error(text, tmp_path):
    (tmp_path / FILE).write_text(text)
    refuses(r"comparison\.json.*make third-party", load_comparison, tmp_path)


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    refuses("cannot write", FOUND.save, tmp_path / "file")


def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(audits._DISTRIBUTIONS, "gone", ("no-such",))
    gone = LibraryFit("elsewhere", "-", 0.0, best, "gone")
    monkeypatch.setattr(libraries, "CONTENDERS", (gone,))
    result = command("--output", str(tmp_path))
    assert result.exit_code == 0
    assert "elsewhere is left out" in result.stderr
    assert json.loads((tmp_path / FILE).read_text())["records"] == []


def test_wrong_usage_exits_with_two(tmp_path):
    wrong = {"--repetitions": "repetitions", "--limit": "limit_s", "--seed": "seed"}
    for option, name in wrong.items():
        result = command("--output", str(tmp_path), option, "-1")
        assert (result.exit_code, f"{name} must be" in result.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


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


def audit_command(*arguments):
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
    finding = examine(planted(extra="numpy"), max_samples=200)
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
    done = audit_command("--output", str(folder), "--max-samples", "200", *ALONE)
    assert done.exit_code == 0
    assert "elsewhere: left out, pip install 'no_such_library'" in done.stderr
    assert "REFUTED" in done.stdout
    (found,) = lines_of(folder)
    assert found["mechanism"] == "half-the-noise"
    assert found["result"]["verdict"] == "REFUTED"
    assert found["result"]["samples"] == 200  # to the end
    assert found["result"]["seed"] == 0
    witness = Witness.load(folder / found["result"]["witness"])
    assert verify(witness, mechanism=HalfTheNoise(), seed=1).confirmed


def test_finished_audits_are_not_carried_out_again(catalogue, tmp_path, monkeypatch):
    """They are told apart by all that decides them, the library's version included."""
    options = ["--output", str(tmp_path), "--max-samples", "20", *ALONE]
    first = audit_command(*options)
    carried_out = []

    def counted(chosen, **given):
        carried_out.append(given["seed"])
        return examine(chosen, **given)

    monkeypatch.setattr(third_party, "examine", counted)
    assert audit_command(*options).stdout == first.stdout
    assert carried_out == []
    assert audit_command(*options, "--seed", "3").exit_code == 0
    assert carried_out == [3]
    assert [line["result"]["seed"] for line in lines_of(tmp_path)] == [3]
    monkeypatch.setattr(third_party, "library_versions", lambda extra: {"it": "2"})
    assert audit_command(*options).exit_code == 0
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
    result = audit_command("--output", str(tmp_path), "diffprivlib-laplace")
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
def test_wrong_usage_of_audits_is_named(arguments, complaint, monkeypatch, tmp_path):
    monkeypatch.setitem(CATALOGUE, "half-the-noise", planted())
    result = audit_command("--output", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
