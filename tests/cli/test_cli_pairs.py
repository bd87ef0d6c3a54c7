"""`dpaudit audit` on a user's own data: files, and what makes a neighbour of them."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpaudit import InputError, Relation
from dpaudit.cli import main
from dpaudit.cli.pairs import chosen_pair
from dpaudit.cli.tables import read_rows

OWN = """
def leaking(data, rng):
    return data.sum() + rng.laplace(scale=0.01)
"""
ROWS = np.array([[0.5, 0.5], [0.25, 1.0], [1.0, 0.0]])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("own_mechanism", None)
    (tmp_path / "own_mechanism.py").write_text(OWN)
    np.save("rows.npy", ROWS)
    pd.DataFrame(ROWS, columns=["a", "b"]).to_csv("named.csv", index=False)
    pd.DataFrame(ROWS).to_csv("bare.csv", index=False, header=False)
    (tmp_path / "row.json").write_text("[0.0, 0.75]")
    return tmp_path


def chosen(folder, file, neighbour, **others):
    options = {"reference": None, "dimension": None, "relation": None, **others}
    path = None if file is None else folder / file
    return chosen_pair(None, data=path, neighbour=neighbour, **options)


@pytest.mark.parametrize("file", ["rows.npy", "named.csv", "bare.csv"])
def test_all_kinds_of_files_hold_the_same_rows(folder, file):
    assert read_rows(folder / file).tolist() == ROWS.tolist()


def test_parquet(folder):
    pytest.importorskip("pyarrow", reason="needs the extra parquet")
    pd.DataFrame(ROWS, columns=["a", "b"]).to_parquet("rows.parquet")
    assert read_rows(folder / "rows.parquet").tolist() == ROWS.tolist()


def test_one_row_less(folder):
    pair = chosen(folder, "rows.npy", "drop:1")
    assert pair.relation is Relation.ADD_REMOVE
    assert pair.data.tolist() == ROWS.tolist()
    assert pair.neighbour.tolist() == ROWS[[0, 2]].tolist()


def test_one_row_more(folder):
    pair = chosen(folder, "rows.npy", "add:row.json")
    assert pair.neighbour.tolist() == [*ROWS.tolist(), [0.0, 0.75]]


def test_another_row(folder):
    pair = chosen(folder, "rows.npy", "replace:2:row.json")
    assert pair.relation is Relation.REPLACE_ONE
    assert pair.neighbour.tolist() == [*ROWS[:2].tolist(), [0.0, 0.75]]


def test_rows_of_any_shape(folder):
    np.save("matrices.npy", np.zeros((3, 2, 2)))
    (folder / "matrix.json").write_text("[[1, 2], [3, 4]]")
    pair = chosen(folder, "matrices.npy", "replace:0:matrix.json")
    assert pair.neighbour[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_command_audits_them(folder):
    claimed = ("own_mechanism:leaking", "--epsilon", "1", "--json")
    given = ("--data", "named.csv", "--neighbour", "drop:0")
    result = CliRunner().invoke(main, ["audit", *claimed, *given])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["relation"] == "add-remove"


@pytest.mark.parametrize(
    ("file", "neighbour", "message"),
    [
        ("rows.npy", None, "--data and --neighbour need each other"),
        (None, "drop:1", "--data and --neighbour need each other"),
        ("rows.npy", "drop:3", "a row from 0 to 2, got '3'"),
        ("rows.npy", "drop:-1", "a row from 0 to 2, got '-1'"),
        ("rows.npy", "drop", "must be drop:ROW"),
        ("rows.npy", "double:1", "must be drop:ROW"),
        ("rows.npy", "replace:1", "must be drop:ROW"),
        ("rows.npy", "replace:1:none.json", "cannot read"),
        ("rows.npy", "replace:1:words.json", "one row, as a JSON list of numbers"),
        (
            "rows.npy",
            "replace:1:short.json",
            r"shape of the data's, \(2,\), got \(1,\)",
        ),
        ("rows.npy", "replace:1:same.json", "0 rows differ|identical"),
        ("none.npy", "drop:0", "cannot read"),
        ("text.csv", "drop:0", "column 'b' must hold numbers, got 'green'"),
        ("named.txt", "drop:0", "ends in .csv, .parquet or .npy"),
        ("objects.npy", "drop:0", "not an array of numbers"),
        ("number.npy", "drop:0", "must hold rows of numbers"),
        ("gap.csv", "drop:0", "row 1 has a NaN"),
        ("empty.csv", "drop:0", "not a table"),
    ],
)
def test_what_is_no_data_or_no_neighbour(folder, file, neighbour, message):
    (folder / "words.json").write_text('["a", "b"]')
    (folder / "short.json").write_text("[1.0]")
    (folder / "same.json").write_text("[0.25, 1.0]")
    (folder / "text.csv").write_text("a,b\n1,2\n2,green\n")
    (folder / "gap.csv").write_text("a,b\n1,2\n3,\n")
    (folder / "empty.csv").write_text("")
    np.save("objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.save("number.npy", np.array(1.0))
    with pytest.raises(InputError, match=message):
        chosen(folder, file, neighbour)


def test_one_way_to_name_a_pair_at_a_time(folder):
    with pytest.raises(InputError, match="--data and --dimension exclude each other"):
        chosen(folder, "rows.npy", "drop:1", dimension=2)
    with pytest.raises(InputError, match="is add-remove, not replace-one"):
        chosen(folder, "rows.npy", "drop:1", relation="replace-one")
