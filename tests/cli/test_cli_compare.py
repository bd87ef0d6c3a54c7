import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpaudit.cli import main

OWN = """
import numpy as np

def noisy(data, rng, epsilon, row_norm):
    d = data.shape[1]
    noise = rng.laplace(scale=row_norm**2 * (d + 1) / 2 / epsilon, size=(d, d))
    return data.T @ data + np.triu(noise) + np.triu(noise, 1).T

def broken(data, rng, epsilon):
    raise ZeroDivisionError("no luck")

class Own:
    def __init__(self, n_components, epsilon, random_state):
        self.k = n_components

    def fit(self, rows):
        self.components_ = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, : self.k].T
        return self
"""
ROWS = np.random.default_rng(5).normal(size=(40, 3)) * [0.5, 0.3, 0.1]
SHORT = ("--repetitions", "3", "--samples", "40", "--epsilon", "1", "--workers", "1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, which is not on the path, as if dpaudit was started there.

    Workers look for modules where the process was started that starts them.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("multiprocessing.process.ORIGINAL_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.delitem(sys.modules, "own_mechanisms", raising=False)
    (tmp_path / "own_mechanisms.py").write_text(OWN)
    np.savetxt(tmp_path / "rows.csv", ROWS, delimiter=",")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *SHORT, *arguments])


def test_ones_own_beside_the_catalogue(folder):
    done = run(
        *("own_mechanisms:noisy", "own_mechanisms:Own", "goe-gaussian"),
        *("--data", "rows.csv", "--row-norm", "0.5", "--output", "page"),
        *("--workers", "2"),  # which have to find the module, too
    )
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        *("mechanism", "epsilon", "captured", "angle", "error", "time", "verdict")
    ]
    verdicts = {line.split()[0]: line for line in lines[1:4]}
    assert verdicts["own_mechanisms:noisy"].endswith("  NOT REFUTED")
    assert verdicts["own_mechanisms:Own"].endswith("  REFUTED")
    assert "Audits of at most 40 releases a side" in done.stdout
    assert "rows were longer than the row norm, 0.5, and were scaled" in done.stdout
    assert "is itself a release about them, which no claim here counts" in done.stdout
    assert lines[-1] == "page/index.html"
    page = (folder / "page" / "index.html").read_text(encoding="utf-8")
    assert "dpaudit compare own_mechanisms:noisy own_mechanisms:Own" in page
    table = pd.read_csv(folder / "page" / "compare.csv")
    assert len(table) == 9
    assert (folder / "page" / "work.db").exists()


def test_a_mechanism_that_fails_leaves_the_others_and_exit_code_two(folder):
    done = run(
        *("own_mechanisms:broken", "own_mechanisms:missing", "goe-gausian"),
        *("goe-gaussian", "--data", "rows.csv", "--json", "--k", "2"),
    )
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert found["failed"] == {
        "own_mechanisms:broken": "raised ZeroDivisionError: no luck",
        "own_mechanisms:missing": "module 'own_mechanisms' has no object 'missing'",
        "goe-gausian": "unknown mechanism 'goe-gausian'; did you mean 'goe-gaussian'?",
    }
    stands = [row for row in found["rows"] if row["mechanism"] == "goe-gaussian"]
    assert [row["verdict"] for row in stands] == ["NOT_REFUTED"] * 3
    fallen = next(row for row in found["rows"] if row["mechanism"] == "goe-gausian")
    assert fallen["median"] is None
    assert found["warning"].startswith("These measures are computed from the rows")
    told = [line for line in done.stderr.splitlines() if line.startswith("dpaudit: ")]
    assert len(told) == 3
    assert "dpaudit: own_mechanisms:broken failed: raised ZeroDivisionError" in told[2]
    page = (folder / found["page"]).read_text(encoding="utf-8")
    assert page.count("failed:</strong>") == 3


ERRORS = {
    ("--epsilon", "1,,2"): "--epsilon must be numbers > 0 with commas between",
    ("rows.csv",): "'rows.csv' is a file of rows: give it as --data rows.csv",
    ("--components", "4"): "components must be at most the columns of the data, 3",
    ("--data", "own_mechanisms.py"): "a file of data ends in .csv, .parquet or .npy",
    ("--output", "rows.csv/x"): "cannot write the report to 'rows.csv/x'",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options", ERRORS, ids=" ".join)
def test_errors_are_one_sentence_and_exit_code_two(options):
    done = run("goe-gaussian", "--data", "rows.csv", *options)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"dpaudit: {ERRORS[options]}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
