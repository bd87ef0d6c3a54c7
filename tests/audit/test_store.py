import io
import json
import sqlite3

import pandas as pd
import pytest
from audit_cases import audited, laplace_sum
from refusals import refuses

from dpaudit import InputError
from dpaudit.audit import Run, Store, StoreWarning
from dpaudit.audit.keeping.store import Checkpoint

pytestmark = pytest.mark.usefixtures("in_few_rounds")

OPTIONS = {"budget": 4}
RECORD = {"drawn": [4, 5], "name": "a", "witness": None, "warnings": [], "at": 0.5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audits.db"


def sound(path):
    with sqlite3.connect(path) as db:
        (answer,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    return answer == "ok"


def test_results_and_checkpoints_come_back(path):
    store = Store(path)
    path.touch()  # a file of no length is a new one
    store.prepare()
    assert store.result("a") is None
    assert store.checkpoint("a") is None
    store.add_checkpoint("a", Checkpoint(10, 1.5, b"ten"))
    store.add_checkpoint("b", Checkpoint(5, 0.5, b"five"))
    assert store.checkpoint("a") == Checkpoint(10, 1.5, b"ten")
    store.add_result("a", "code", RECORD, b"all of it")
    assert Store(path).result("a") == b"all of it"
    assert store.checkpoint("a") is None
    assert store.checkpoint("b") == Checkpoint(5, 0.5, b"five")
    assert sound(path)
    assert repr(store) == f"Store({str(path)!r})"


def test_the_furthest_checkpoint_counts_and_old_pages_are_used_again(path):
    store = Store(path)
    for samples in (10, 30, 20):
        store.add_checkpoint("a", Checkpoint(samples, 1.0, b"%d" % samples))
    assert store.checkpoint("a").frozen == b"30"
    store.add_checkpoint("a", Checkpoint(40, 1.0, b"40"))
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT samples FROM checkpoints").fetchall() == [(40,)]
    db.close()
    store = Store(path)
    for samples in range(30):
        store.add_checkpoint("a", Checkpoint(samples, 1.0, bytes(200_000)))
    assert path.stat().st_size < 1_000_000


def test_results_are_inserted_once_and_never_changed(path):
    store = Store(path)
    store.add_result("a", "code", RECORD, b"first")
    store.add_result("a", "code", RECORD, b"second")
    assert store.result("a") == b"first"
    db = sqlite3.connect(path)
    for statement in ("UPDATE results SET code = 'x'", "DELETE FROM results"):
        with pytest.raises(sqlite3.IntegrityError, match="results are never"):
            db.execute(statement)
    db.close()


def damage_pages(path):
    content = bytearray(path.read_bytes())
    content[4096:8192] = bytes(4096)
    path.write_bytes(content)


def damage_an_entry(path):
    content = path.read_bytes()
    assert content.count(b"the audit's state") == 1
    path.write_bytes(content.replace(b"the audit's state", b"the audit's stale"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database at all"),
        lambda path: path.write_bytes(path.read_bytes()[:9000]),
        *(damage_pages, damage_an_entry),
    ],
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(path, damage):
    store = Store(path)
    store.add_checkpoint("a", Checkpoint(1, 1.0, b"the audit's state"))
    for number in range(20):
        store.add_result(f"{number}", "code", RECORD, bytes(1000))
    damage(path)
    content = path.read_bytes()
    # A damaged entry shows when it is read.
    use = (
        (lambda: store.checkpoint("a")) if damage is damage_an_entry else store.prepare
    )
    with pytest.warns(StoreWarning, match=r"is damaged \(.*aside as 'audits.db.corr"):
        assert use() is None
    assert store.checkpoint("a") is None
    assert path.with_name("audits.db.corrupt-1").read_bytes() == content
    store.add_checkpoint("a", Checkpoint(2, 1.0, b"new"))
    assert store.checkpoint("a").frozen == b"new"
    assert sound(path)


def change(path, statement, *values):
    """Change a store as its own triggers forbid."""
    db = sqlite3.connect(path)
    guards = db.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'")
    guards = guards.fetchall()
    for name, _ in guards:
        db.execute(f"DROP TRIGGER {name}")
    db.execute(statement, values)
    for _, sql in guards:
        db.execute(sql)
    db.commit()
    db.close()


RECORDED = json.dumps(RECORD)
CHANGES = {
    "another figure": ("record = ?", RECORDED.replace("0.5", "0.9")),
    "another name": ("code = ?", "another"),
    "another time": ("finished = ?", "2001-01-01T00:00:00+00:00"),
    "no text": ("record = ?", 5),
    "bytes for text": ("record = ?", RECORDED.encode()),
    "bytes that look like text": ("code = ?", b"'code'"),
    "no Unicode": ("record = CAST(? AS TEXT)", b"\xff\xfe"),
    **{"text for bytes": ("frozen = ?", "b"), "no digest": ("digest = ?", b"")},
    "another's": ("key = ?", "c"),
}


@pytest.mark.parametrize("change_", CHANGES)
def test_a_result_that_was_changed_is_left_out_alone(path, change_):
    store = Store(path)
    for key in ("a", "b"):
        store.add_result(key, "code", RECORD | {"name": key}, key.encode())
    assignment, value = CHANGES[change_]
    change(path, f"UPDATE results SET {assignment} WHERE key = 'b'", value)
    frame, (damage,) = store.table()
    assert frame["name"].tolist() == ["a"]
    assert damage.startswith(f"result 2 of {str(path)!r} is not what was written")
    with pytest.warns(StoreWarning, match=r"result 2 .* and is left out"):
        assert len(store.to_pandas()) == 1
    assert store.result("a") == b"a"
    assert store.result("b") is None
    assert store.result("c") is None


def test_parts_stay_in_their_place_and_bad_pages_take_no_others(path):
    """Of which the same bytes follow each other: a digest of these is not enough."""
    store = Store(path)
    store.add_result("a", "code", RECORD, b"frozen")
    change(path, "UPDATE results SET code = 'cod', finished = 'e' || finished")
    assert store.table()[0].empty
    store.add_checkpoint("b", Checkpoint(10, 1.0, b"state"))
    change(path, "UPDATE checkpoints SET seconds = samples, samples = seconds")
    with pytest.warns(StoreWarning, match="an entry is not what was written"):
        assert store.checkpoint("b") is None
    store = Store(path)
    for number in range(40):
        store.add_result(f"{number}", "code", RECORD, bytes(900))
    content = path.read_bytes()
    place = content.rindex(b"code20")  # in the middle of a page of rows
    start = place - place % 4096
    path.write_bytes(content[:start] + bytes(4096) + content[start + 4096 :])
    frame, damage = store.table()
    assert 20 < len(frame) < 40
    assert set(frame["name"]) == {"a"}
    assert len(damage) >= 40 - len(frame)


def test_what_was_set_aside_is_never_overwritten(path):
    for number in (1, 2, 3):
        path.write_bytes(b"damaged %d" % number)
        with pytest.warns(StoreWarning, match=f"corrupt-{number}"):
            Store(path).prepare()
    for number in (1, 2, 3):
        aside = path.with_name(f"audits.db.corrupt-{number}")
        assert aside.read_bytes() == b"damaged %d" % number


def test_an_audit_begins_anew_with_a_damaged_store(path):
    expected = audited(laplace_sum, **OPTIONS)
    path.write_bytes(b"damaged")
    refuses(r"audits.db' is damaged \(file is not a data", Store(path).to_pandas)
    assert path.read_bytes() == b"damaged"  # a reader does not touch it
    with pytest.warns(StoreWarning, match="a new one begun"):
        result = audited(laplace_sum, **OPTIONS, run=Run(store=path))
    assert result.log_evidence == expected.log_evidence
    assert audited(laplace_sum, **OPTIONS, run=Run(store=path)).from_store


@pytest.mark.parametrize(("format_", "who"), [(2, "the older one"), (4, "a newer one")])
def test_another_format_is_named_and_not_touched(path, format_, who):
    Store(path).prepare()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {format_}")
    db.close()
    content = path.read_bytes()
    for use in (Store(path).prepare, Store(path).to_pandas):
        refuses(f"is a store of format {format_}, and th", use)
    with pytest.raises(InputError, match=f"knows format 3: {who} reads it"):
        audited(laplace_sum, **OPTIONS, run=Run(store=path))
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == ["audits.db"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (x)",
        "PRAGMA application_id = 5",
        "PRAGMA user_version = 1",
        "ALTER TABLE results RENAME COLUMN key TO lock",
        # With a store's marks, and a view that has no end in the place of its table.
        f"PRAGMA application_id = {int.from_bytes(b'dpau', 'big')};"
        "PRAGMA user_version = 3; CREATE VIEW results AS WITH RECURSIVE c(key) AS "
        "(SELECT 'a' UNION ALL SELECT key FROM c) SELECT key FROM c;",
    ],
    ids=["a table", "an application", "a format", "other columns", "a view"],
)
def test_databases_of_others_are_left_alone(path, statement):
    if statement.startswith("ALTER"):
        Store(path).prepare()
    db = sqlite3.connect(path)
    db.executescript(statement)
    db.close()
    content = path.read_bytes()
    for use in (Store(path).prepare, Store(path).to_pandas):
        refuses("is a database of something else", use)
    assert path.read_bytes() == content


def never(data, rng):
    raise AssertionError("no work may begin")


def test_a_place_that_cannot_be_written_to_is_named_before_any_work(path, tmp_path):
    path.touch()
    for place in (
        path / "below" / "a.db",  # a folder that is a file
        path / "a.db",
        tmp_path / "missing" / "a.db",
        tmp_path,  # a folder itself
        "/proc/a.db",  # where nobody may write
    ):
        refuses(r"cannot write '.*'", audited, never, **OPTIONS, run=Run(store=place))


def test_a_table_of_results(path):
    store = Store(path)
    refuses("no such file", store.to_pandas)
    store.prepare()
    assert len(store.to_pandas()) == 0
    results = [
        audited(laplace_sum, **OPTIONS, run=Run(store=path), seed=seed)
        for seed in (5, 3)
    ]
    frame = store.to_pandas()
    assert frame["seed"].tolist() == [5, 3]
    for name in ("samples", "log_evidence", "epsilon_lower", "seconds", "attack"):
        assert frame[name].tolist() == [getattr(result, name) for result in results]
    assert frame["claim"].tolist() == ["PureDP(epsilon=1.0)"] * 2
    assert frame["drawn_data"].tolist() == [4, 4]
    assert frame["warnings"].tolist() == ["[]", "[]"]
    assert frame["key"].nunique() == 2
    assert frame["finished"].str.endswith("+00:00").all()
    assert not {"interrupted", "from_store", "drawn"} & set(frame.columns)
    text = frame.to_csv(index=False)
    again = pd.read_csv(io.StringIO(text))
    for one in (again, frame):
        one[one.columns] = one.astype(object).where(one.notna(), None)
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
