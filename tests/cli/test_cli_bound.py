import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import assert_refused, forbid_imports, refused, run_of

from dpaudit.audit.bounds import Counts, fixed_scores, joint, one_run

run = run_of("bound")

COUNTS = ("--tp", "900", "--fn", "100", "--fp", "330", "--tn", "670")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    on_data, on_neighbour = rng.laplace(1, size=2000), rng.laplace(size=2000)
    pd.DataFrame(
        {
            "score": np.concatenate([on_data, on_neighbour]),
            "side": [1] * 2000 + [0] * 2000,
        }
    ).to_csv("scores.csv", index=False)
    pd.DataFrame(
        {"with": on_data, "without": [*on_neighbour[:-5], *([None] * 5)]}
    ).to_csv("two.csv", index=False)
    frames = {
        "nan": {"score": [1.0, None] * 20, "side": [1, 0] * 20},
        "hole": {"a": [1.0, None, 2.0] * 20, "b": [1.0] * 60},
        "labels": {"score": [1.0] * 40, "side": [1, 2] * 20},
        "words": {"score": ["x"] * 40, "side": [1, 0] * 20},
        "one": {"score": [1.0] * 40, "side": [1] * 40},
        "three": {"a": [1.0], "b": [1.0], "c": [1.0]},
        "member": {"score": [0.5, 1.5] * 20, "member": [1, 0] * 20},
        "first": {"member": [1, 0] * 20, "score": [0.5, 1.5] * 20},
    }
    for name, columns in frames.items():
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "scores.txt").write_text("")
    (tmp_path / "broken.parquet").write_text("no parquet")
    return tmp_path, on_data, on_neighbour


def test_counts_in_words_and_as_json():
    result = run(*COUNTS)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == str(joint(Counts(900, 1000, 330, 1000)))
    assert "(joint)" in lines[0]
    assert "(clopper-pearson)" in lines[1]
    assert lines[2].startswith("mu >=")
    assert len(lines) == 3
    options = ("--delta", "1e-5", "--confidence", "0.99", "--method", "gaussian")
    (printed,) = json.loads(run(*COUNTS, *options, "--json").stdout)
    assert printed["method"] == "gaussian"
    assert printed["parameter"] == "mu"
    assert printed["confidence"] == 0.99
    assert printed["delta"] == 1e-5
    assert 0 < printed["value"] < printed["epsilon"]
    assert printed["counts"]["releases_neighbour"] == 1000
    (one,) = json.loads(run(*COUNTS, "--method", "joint", "--json").stdout)
    options = ("--method", "joint", "--two-sided", "--json")
    (both,) = json.loads(run(*COUNTS, *options).stdout)
    assert 0 < both["value"] < one["value"]


def test_one_run():
    result = run("--correct", "950", "--guesses", "1000", "--canaries", "1000")
    assert result.exit_code == 0
    counts = {"correct": 950, "guesses": 1000, "canaries": 1000}
    expected = [str(one_run(**counts, gaussian=each)) for each in (False, True)]
    assert result.stdout.splitlines() == expected


def test_scores_in_one_column_and_in_two(folder):
    _, on_data, on_neighbour = folder
    result = run("scores.csv", "--json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [row["parameter"] for row in rows] == ["epsilon", "epsilon", "mu"]
    expected = fixed_scores(on_data, on_neighbour, rng=np.random.default_rng(0))
    assert rows[0]["value"] == pytest.approx(expected.value, rel=1e-6)
    _, on_data, on_neighbour = folder
    options = ("--method", "joint", "--fixed", "0.2", "--seed", "3", "--json")
    (row,) = json.loads(run("two.csv", *options).stdout)
    expected = fixed_scores(
        on_data, on_neighbour[:-5], fraction=0.2, rng=np.random.default_rng(3)
    )
    assert row["value"] == pytest.approx(expected.value, rel=1e-6)


def test_columns_by_name_and_without_names():
    table = pd.read_csv("scores.csv").rename(columns={"score": "s", "side": "member"})
    table.to_csv("named.csv", index=False)
    options = ("--method", "joint")
    named = run(
        "named.csv", "--score-column", "s", "--label-column", "member", *options
    )
    assert named.exit_code == 0
    assert named.stdout == run("scores.csv", *options).stdout
    bare = pd.read_csv("two.csv")
    bare.to_csv("bare.csv", index=False, header=False)
    options = ("--method", "joint")
    assert run("bare.csv", *options).stdout == run("two.csv", *options).stdout


def test_parquet():
    pytest.importorskip("pyarrow")
    pd.read_csv("scores.csv").to_parquet("scores.parquet")
    options = ("--method", "joint")
    result = run("scores.parquet", *options)
    assert result.stdout == run("scores.csv", *options).stdout


def test_parquet_without_a_reader(monkeypatch):
    def refuse(*_, **__):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", refuse)
    assert_refused(run("broken.parquet"), "needs pyarrow")


OF4 = ("--guesses", "2", "--canaries", "4")
ERRORS = {
    **{(): "give one of", (*COUNTS, "--guesses", "3"): "give one of"},
    **{("scores.csv", *COUNTS): "give one of", COUNTS[:6]: "--tn is missing"},
    ("--correct", "1", "--guesses", "2"): "--canaries is missing",
    ("--tp", "-1", *COUNTS[2:]): "--tp must be an integer >= 0",
    ("--tp", "1.5", *COUNTS[2:]): "Error: Invalid value for '--tp': '1.5' is",
    ("--tp", "0", "--fn", "0", *COUNTS[4:]): "at least one release on D (--tp",
    (*COUNTS[:4], "--fp", "0", "--tn", "0"): "at least one release on D'",
    (*COUNTS, "--confidence", "1"): "confidence must be in (0, 1)",
    (*COUNTS, "--method", "jiont"): "did you mean 'joint'",
    (*COUNTS, "--seed", "1"): "--seed does not apply to counts",
    ("scores.csv", "--two-sided"): "--two-sided does not apply to scores",
    ("--correct", "3", *OF4): "correct <= guesses <= canaries",
    ("--correct", "1", *OF4, "--method", "joint"): "--method does not apply to one run",
    **{
        ("missing.csv",): "'missing.csv': no such file",
        ("empty.csv",): "is not a table",
    },
    ("scores.txt",): "ends in .csv or .parquet",
    ("three.csv",): "has no column 'side'",
    ("scores.csv", "--score-column", "scor"): "did you mean 'score'",
    ("scores.csv", "--label-column", "label"): "unknown column 'label'",
    ("scores.csv", "--fixed", "1"): "--fixed must be in (0, 1), got 1",
    **{("nan.csv",): "must not contain NaN", ("hole.csv",): "must not contain NaN"},
    ("labels.csv",): "must hold 1 (D) or 0 (D'), got 2",
    ("member.csv",): "column 'member' holds 0 and 1 alone: name it with --label-column",
    ("first.csv",): "column 'member' holds 0 and 1 alone",
    ("words.csv",): "must hold numbers, got 'x'",
    ("one.csv",): "on_neighbour must hold at least 20 scores",
}


test_errors_are_one_sentence_and_exit_code_two = refused(ERRORS, "bound")


def test_broken_parquet():
    pytest.importorskip("pyarrow")
    assert_refused(run("broken.parquet"), "is not a table")


def test_help_needs_nothing_heavy(monkeypatch):
    forbid_imports(monkeypatch, "pandas", "dpaudit.audit")
    assert run("--help").exit_code == 0
