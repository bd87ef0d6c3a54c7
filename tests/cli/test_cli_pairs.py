import json
import os

import numpy as np
import pandas as pd
import pytest
from cli_cases import run, work_in
from refusals import refuses

from dpaudit import InputError, Relation
from dpaudit.cli.tables import chosen_pair, numbers, read_rows, read_table

OWN = """
import numpy as np

def clipped(data, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=3.0)

def leaking(data, rng):
    return data.sum() + rng.laplace(scale=0.01)
"""
ROWS = np.array([[0.5, 0.5], [0.25, 1.0], [1.0, 0.0]])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    work_in(tmp_path, monkeypatch, "own_mechanism", OWN)
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
    (folder / "parts.parquet").mkdir()
    (folder / "rows.parquet").rename(folder / "parts.parquet" / "part.0.parquet")
    assert read_rows(folder / "parts.parquet").tolist() == ROWS.tolist()


def test_a_pair_says_the_relation_of_a_search(folder):
    pair = ("--data", "rows.npy", "--neighbour", "drop:1", "--domain", "box:0,1:2")
    options = ("--layer", "black-box", "--max-samples", "40", "--json")
    done = run("audit", "own_mechanism:leaking", "--epsilon", "1", *pair, *options)
    assert json.loads(done.stdout)["relation"] == "add-remove"


def test_a_tuple_of_two_datasets_is_a_pair_with_a_relation(folder):
    with open("own_mechanism.py", "a") as module:
        module.write("TEXTS, ONE = ('ab', 'abc'), ('ab',)\n")
        module.write("def size(data, rng):\n    return len(data) + rng.laplace()\n")
    audit = ("audit", "own_mechanism:size", "--epsilon", "0.5", "--pair")
    done = run(*audit, "own_mechanism:TEXTS", "--relation", "add-remove", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["loss"] == pytest.approx(1.0)
    assert "--relation is needed" in run(*audit, "own_mechanism:TEXTS").stderr
    assert "or a tuple of two datasets, got" in run(*audit, "own_mechanism:ONE").stderr


def test_one_row_less_more_and_another(folder):
    pair = chosen(folder, "rows.npy", "drop:1")
    assert pair.relation is Relation.ADD_REMOVE
    assert pair.data.tolist() == ROWS.tolist()
    assert pair.neighbour.tolist() == ROWS[[0, 2]].tolist()
    pair = chosen(folder, "rows.npy", "add:row.json")
    assert pair.neighbour.tolist() == [*ROWS.tolist(), [0.0, 0.75]]
    pair = chosen(folder, "rows.npy", "replace:2:row.json")
    assert pair.relation is Relation.REPLACE_ONE
    assert pair.neighbour.tolist() == [*ROWS[:2].tolist(), [0.0, 0.75]]
    np.save("matrices.npy", np.zeros((3, 2, 2)))
    (folder / "matrix.json").write_text("[[1, 2], [3, 4]]")
    pair = chosen(folder, "matrices.npy", "replace:0:matrix.json")
    assert pair.neighbour[0].tolist() == [[1.0, 2.0], [3.0, 4.0]]


# pandas 2 reads whole numbers beyond doubles as infinite.
TOO_LARGE = (
    "row 1 has a NaN or infinity"
    if pd.__version__ < "3"
    else "column '1' must hold numbers, got 1000"
)


@pytest.mark.parametrize(
    ("file", "neighbour", "message"),
    [
        ("rows.npy", None, "--data and --neighbour need each other"),
        (None, "drop:1", "--data and --neighbour need each other"),
        *(("rows.npy", f"drop:{n}", f"0 to 2, got '{n}'") for n in ("3", "-1")),
        *(("rows.npy", n, "be drop:ROW") for n in ("drop", "double:1", "replace:1")),
        *(("rows.npy", "replace:1:no.json", "cannot read"), ("no.npy", "drop:0", "ca")),
        ("rows.npy", "replace:1:short.json", r"of the data's, \(2,\), got \(1,\)"),
        ("rows.npy", "replace:1:same.json", "0 rows differ|identical"),
        *(
            ("rows.npy", f"add:{name}.json", "one row, as a JSON list of numbers")
            for name in ("words", "deep", "digits", "quoted")
        ),
        ("rows.npy", "add:nan.json", "row 3 has a NaN"),
        ("rows.npy", "drop:" + "9" * 5000, "a row from 0 to 2, got '9"),
        ("rows.npy", "replace:" + "9" * 5000 + ":row.json", "a row from 0 to 2"),
        ("named.txt", "drop:0", "ends in .csv, .parquet or .npy"),
        *(
            (f"{name}.npy", "drop:0", "not an array of numbers")
            for name in ("objects", "huge", "negative", "zip", "pickle")
        ),
        *(
            (f"{name}.npy", "drop:0", f"must be rows of numbers, got .*{kind}")
            for name, kind in (("complex", "complex128"), ("dates", "datetime64"))
        ),
        ("fields.npy", "drop:0", "must be rows of numbers, got .* type"),
        ("number.npy", "drop:0", "must be rows of numbers, got one number"),
        *((f"fifo.{kind}", "drop:0", "no ordinary file") for kind in ("csv", "npy")),
        ("rows.npy", "add:fifo.csv", "no ordinary file"),
        ("text.csv", "drop:0", "column 'b' must hold numbers, got 'green'"),
        ("long.csv", "drop:0", "must be finite|must hold numbers"),
        *(("nan.csv", "drop:0", "row 0 has a N"), ("gap.csv", "drop:0", "row 1 has a")),
        ("hex.csv", "drop:0", "column '0' must hold numbers, got '0x10'"),
        ("mixed.csv", "drop:0", "names or numbers, not both, got 'a' beside '2'"),
        ("partial.csv", "drop:0", "not both, got 'a' beside 'nan'"),
        ("index.csv", "drop:0", "a column of .* has no name"),
        ("under.csv", "drop:0", "must hold numbers, got '1_000'"),
        ("large.csv", "drop:0", TOO_LARGE),
        ("empty.csv", "drop:0", "not a table"),
    ],
)
def test_what_is_no_data_or_no_neighbour(folder, file, neighbour, message):
    for name, text in {
        **{"words.json": '["a", "b"]', "short.json": "[1.0]", "nan.json": "[NaN, 1]"},
        **{"same.json": "[0.25, 1.0]", "quoted.json": '["1", "2"]', "empty.csv": ""},
        **{"deep.json": "[" * 100_000, "digits.json": "[" + "7" * 5000 + ", 1]"},
        **{"text.csv": "a,b\n1,2\n2,green\n", "gap.csv": "a,b\n1,2\n3,\n"},
        **{"long.csv": f"1,{'7' * 200_000}\n2,3\n", "nan.csv": "nan,nan\n1,2\n"},
        **{"hex.csv": "0x10,1\n2,3\n", "mixed.csv": "a,2\n1,2\n"},
        **{"partial.csv": "a,nan\n1,2\n", "index.csv": ",a\n0,1\n1,2\n"},
        **{"under.csv": "1,2\n1_000,3\n", "large.csv": f"1,2\n3,1{'0' * 400}\n"},
    }.items():
        (folder / name).write_text(text)
    np.save("objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.save("number.npy", np.array(1.0))
    for name, shape in (("huge", "(1000000000000, 3)"), ("negative", "(-1, 3)")):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
        begin = b"\x93NUMPY\x01\x00v\x00"
        (folder / f"{name}.npy").write_bytes(begin + header.ljust(117).encode() + b"\n")
    np.savez("archive.npz", rows=ROWS)
    (folder / "archive.npz").rename("zip.npy")
    (folder / "pickle.npy").write_bytes(b"\x80\x04K\x01.")
    np.save("complex.npy", np.array([[1 + 2j]]))
    np.save("dates.npy", np.array(["2020-01-01"], "M8[D]"))
    np.save("fields.npy", np.zeros(2, [("a", float)]))
    for name in ("fifo.csv", "fifo.npy"):
        os.mkfifo(name)
    refuses(message, chosen, folder, file, neighbour)


HEADERS = {
    **{"a,b": True, "Age (years),#id": True, '"a\nb",c': True, "x,": True},
    **{"1,2": False, "nan,2": False, "NA,inf": False, "-inf,-nan": False},
    **{"True,false": False, ",": False, "-.5,+1e3": False, "3rd,0x10": False},
}


@pytest.mark.parametrize("line", HEADERS, ids=repr)
def test_what_names_the_columns(folder, line):
    """Some names and no numbers; all else is a row."""
    (folder / "a.csv").write_text(line + "\n1,2\n3,4\n")
    rows = len(read_table(folder / "a.csv", content="data"))
    assert rows == (2 if HEADERS[line] else 3)


def test_files_may_begin_with_a_mark_and_pairs_are_named_one_way(folder):
    (folder / "a.csv").write_bytes(b"\xef\xbb\xbf1,2\n3,4\n")
    (folder / "b.csv").write_bytes(b"\n\n1,2\n3,4\n")
    (folder / "c.csv").write_bytes(b"1,2\r\n\r\n3,4\r\n \r\n")
    (folder / "d.csv").write_text("a,b\n1,2,\n3,4,\n")
    for name in ("a.csv", "b.csv", "c.csv", "d.csv"):
        assert read_rows(folder / name).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (folder / "e.csv").write_text('\n\na\n1\n""\n\n')
    assert np.isnan(read_rows(folder / "e.csv")[1:]).tolist() == [[True]]
    with pytest.raises(InputError, match="--data and --dimension exclude each other"):
        chosen(folder, "rows.npy", "drop:1", dimension=2)
    with pytest.raises(InputError, match="is add-remove, not replace-one"):
        chosen(folder, "rows.npy", "drop:1", relation="replace-one")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3\n5,6\n", "line 2 of .* as the first line, 2, got 1$"),
        ('a,b\n"1\n",2\n3\n', "line 4 of .* as the first line, 2, got 1$"),
        ("1,2\n3,4,\n", "line 2 of .* as the first line, 2, got 3$"),
        ("a\n1,2\n", "line 2 of .* as the first line, 1, got 2$"),
        ("1\n\n3\n", "line 2 of .* as the first line, 1, got 0$"),
        ("1,2,\n3,4,\n", "every line of .* ends with a comma too many$"),
        ("a;b\n1;2\n", "must have commas between them, got ';'$"),
        ("1\t2\n", r"must have commas between them, got '\\t'$"),
    ],
)
def test_lines_of_other_lengths_and_other_separators_are_named(folder, text, message):
    (folder / "a.csv").write_text(text)
    refuses(message, read_table, folder / "a.csv", content="data")


@pytest.mark.parametrize(
    "column",
    [
        *([1 + 2j], pd.to_datetime(["2020-01-01"]), pd.to_timedelta([1])),
        *(pd.period_range("2020", periods=1), [b"1"], [[1]], ["1_0"]),
        pd.Series([10**400], dtype=object),
    ],
    ids=repr,
)
def test_columns_of_other_things_are_refused(column):
    refuses("column 'a' must hold numbers, got", numbers, pd.Series(column), "a")


def test_columns_of_numbers_in_any_clothes():
    for column in (["1", "2"], [1, 2.0], pd.array([1, 2]), [True, 2]):
        for kind in (None, object, "category"):
            assert numbers(pd.Series(column, dtype=kind), "a").tolist() == [1.0, 2.0]
    for column in ([None, 1], pd.array([None, 1], dtype="Int64"), [np.nan, "1"]):
        np.testing.assert_array_equal(numbers(pd.Series(column), "a"), [np.nan, 1.0])


def test_strange_entries_are_taken_if_asked_for(folder):
    (folder / "gap.csv").write_text("a,b\n1,2\n3,\n")
    (folder / "strange.json").write_text("[NaN, -Infinity]")
    for edit in ("drop:1", "replace:0:strange.json"):
        pair = chosen(folder, "gap.csv", edit, allow_nonfinite=True)
        assert not pair.finite
    assert np.isnan(pair.neighbour[0, 0])
    with pytest.raises(InputError, match="--allow-nonfinite is for --data"):
        chosen(folder, None, None, allow_nonfinite=True)
    (folder / "strange.json").write_text("[NaN, 0.5]")
    claimed = ("own_mechanism:clipped", "--epsilon", "1", "--max-samples", "50")
    given = ("--data", "named.csv", "--neighbour", "add:strange.json")
    assert run("audit", *claimed, *given).exit_code == 2
    assert run("audit", *claimed, *given, "--allow-nonfinite").exit_code == 1
