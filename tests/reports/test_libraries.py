import json
import time
from multiprocessing import get_context

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import refuses

from dpaudit.algorithms.third_party import base
from dpaudit.cli import main
from dpaudit.errors import ExecutorError
from dpaudit.reports.sections.libraries import measures
from dpaudit.reports.sections.libraries import measures as libraries
from dpaudit.reports.sections.utility.measures import geometric_spectrum
from dpaudit.subspace import captured_variance_share, second_moment, top_components

FOUND = measures.LibraryComparison(
    {"dpaudit": "0"}, 1.0, "replace-one", 9, 1, 2.5, [{"a": 0}]
)


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
    found = measures.compare(
        [measures.LibraryFit("best", "here", 0.0, best)],
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
    contender = measures.LibraryFit("stuck", "there", 1e-5, stuck)
    found = measures.compare([contender], limit_s=0.1, settings=[(3, 1)])
    asked = {"contender": "stuck", "centre": "there", "delta": 1e-5}
    asked |= {"dimension": 3, "n_components": 1}
    assert found.records == [asked | {"captured_share": None, "fit_seconds": None}]


@pytest.mark.usefixtures("at_once")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fit_that_fails_is_an_error(capfd):
    with pytest.raises(ExecutorError, match="broken in 3 dimensions failed"):
        measures.compare(
            [measures.LibraryFit("broken", "-", 0.0, broken)], settings=[(3, 1)]
        )
    assert "no such rows" in capfd.readouterr().err


@pytest.mark.parametrize(
    "contender", measures.CONTENDERS[:3], ids=lambda c: f"{c.centre} {c.delta}"
)
def test_ours_captures_nearly_all(contender):
    problem = geometric_spectrum(6)
    basis = contender.fit(problem.rows, 2, np.random.default_rng(0))
    assert captured_variance_share(basis, problem.moment) > 0.99
    values = np.linalg.eigvalsh(problem.moment)[::-1]
    assert values[1:] / values[:-1] == pytest.approx(np.full(5, 0.75), rel=0.05)
    assert values.sum() == pytest.approx(0.2 * 20_000, rel=0.05)


def test_what_is_written_is_read(tmp_path):
    assert measures.load_comparison(tmp_path) is None
    assert FOUND.save(tmp_path / "new") == tmp_path / "new" / measures.FILE
    assert measures.load_comparison(tmp_path / "new") == FOUND


@pytest.mark.parametrize("text", ["", "[]", '{"versions": {}}'])
def test_a_file_of_something_else_is_an_error(text, tmp_path):
    (tmp_path / measures.FILE).write_text(text)
    refuses(r"comparison\.json.*make third-party", measures.load_comparison, tmp_path)


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    refuses("cannot write", FOUND.save, tmp_path / "file")


def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(base._DISTRIBUTIONS, "gone", ("no-such",))
    gone = measures.LibraryFit("elsewhere", "-", 0.0, best, "gone")
    monkeypatch.setattr(libraries, "CONTENDERS", (gone,))
    result = command("--output", str(tmp_path))
    assert result.exit_code == 0
    assert "elsewhere is left out" in result.stderr
    assert json.loads((tmp_path / measures.FILE).read_text())["records"] == []


def test_wrong_usage_exits_with_two(tmp_path):
    wrong = {"--repetitions": "repetitions", "--limit": "limit_s", "--seed": "seed"}
    for option, name in wrong.items():
        result = command("--output", str(tmp_path), option, "-1")
        assert (result.exit_code, f"{name} must be" in result.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
