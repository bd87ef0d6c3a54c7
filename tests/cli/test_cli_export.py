import sys

import pandas as pd
import pytest
from click.testing import CliRunner

from dpaudit.audit import Store
from dpaudit.cli import main

RECORD = {"drawn": [4, 5], "witness": None, "warnings": [], "epsilon_lower": 0.25}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("audits.db")
    for name in ("a", "b", "c"):
        store.add_result(name, "code", RECORD | {"name": name}, b"frozen")
    return tmp_path / "audits.db"


def export(*arguments):
    return CliRunner().invoke(main, ["export", "audits.db", "--output", *arguments])


def test_a_result_that_is_damaged_is_named_and_the_others_written(store):
    """A byte flipped: another epsilon would have stood in the table."""
    content = store.read_bytes()
    before = b'"epsilon_lower": 0.25, "name": "b"'
    assert content.count(before) == 1
    store.write_bytes(content.replace(before, before.replace(b"0.25", b"9.25")))
    done = export("audits.csv")
    assert done.exit_code == 2
    assert done.stdout == "2 audits written to audits.csv\n"
    assert done.stderr == (
        "dpaudit: result 2 of 'audits.db' is not what was written, and is left out\n"
    )
    frame = pd.read_csv("audits.csv")
    assert frame["name"].tolist() == ["a", "c"]
    assert frame["epsilon_lower"].tolist() == [0.25, 0.25]


def test_releases_of_both_sides_are_told_apart(store):
    Store(store).add_result("d", "code", RECORD | {"drawn": [40, 60]}, b"frozen")
    assert export("audits.csv").exit_code == 0
    last = pd.read_csv("audits.csv").iloc[-1]
    assert (last["drawn_data"], last["drawn_neighbour"]) == (40, 60)


def test_a_record_that_is_none_is_named_too(store):
    Store(store).add_result("d", "code", {"drawn": 7}, b"frozen")
    done = export("audits.csv")
    assert done.exit_code == 2
    assert "result 4 of" in done.stderr
    assert len(pd.read_csv("audits.csv")) == 3


def test_names_that_are_no_text_are_escaped_and_errors_named(store):
    """As those of files may be that were given on a command line."""
    Store(store).add_result("d", "code", RECORD | {"name": "\udcff"}, b"frozen")
    done = export("audits.csv")
    assert done.exit_code == 0
    assert pd.read_csv("audits.csv")["name"].tolist() == ["a", "b", "c", "\ufffd"]
    store.with_name("other.db").write_text("no store")
    for arguments, words in {
        ("missing.db", "--output", "a.csv"): "cannot read 'missing.db': no such",
        ("other.db", "--output", "a.csv"): "is damaged",
        ("audits.db", "--output", "no/such/a.csv"): "cannot write 'no/such/a.csv'",
    }.items():
        done = CliRunner().invoke(main, ["export", *arguments])
        assert done.exit_code == 2
        assert words in done.stderr
    assert store.with_name("other.db").read_text() == "no store"


def test_the_store_is_not_written_over(store):
    content = store.read_bytes()
    store.with_name("link.csv").symlink_to(store)
    for name in ("audits.db", str(store), "link.csv"):
        done = export(name)
        assert done.exit_code == 2
        assert f"cannot write {name!r}: it is the store itself" in done.stderr
        assert store.read_bytes() == content


def test_parquet(store):
    pytest.importorskip("pyarrow")
    assert export("audits.parquet", "--format", "parquet").exit_code == 0
    assert pd.read_parquet("audits.parquet")["name"].tolist() == ["a", "b", "c"]


def test_parquet_without_pyarrow_is_named(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = export("audits.parquet", "--format", "parquet")
    assert done.exit_code == 2
    assert "--format parquet needs pyarrow" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(store.parent.glob("audits.parquet*"))
