"""Stores that are broken, foreign, read-only or full: never a false verdict.

Whatever happens to the file, what comes back is what was written or nothing; what goes
wrong is an `InputError` or a `StoreWarning`, each a sentence. What is cut off, blanked
or of another kind is in tests/audit/test_store.py.
"""

import contextlib
import os
import random
import sqlite3
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refuses

from dpaudit import InputError, Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import Run, Store, StoreWarning, audit
from dpaudit.audit.keeping.store import Checkpoint

pytestmark = pytest.mark.usefixtures("in_few_rounds")

FEW = Run(attacks=[Identity()])
OPTIONS = {
    **{"pair": Pair([0.0], [0.0, 1.0]), "claim": PureDP(1.0), "budget": 6, "run": FEW}
}
KEYS = [f"{number:064x}" for number in range(4)]
FROZEN = [bytes([number]) * 3000 for number in range(4)]
RECORD = {"drawn": [4, 5], "name": "a", "witness": None, "epsilon_lower": 0.25}
OUTCOME = b"\xab" * 32


def laplace_sum(data, rng):
    return data.sum() + rng.laplace()


def kept_in(store, **others):
    return OPTIONS | {"run": replace(FEW, store=store, **others)}


def values(result):
    """Return what does not hang on who computed it."""
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The bytes of a store of three results and two rounds, and what it holds."""
    path = tmp_path_factory.mktemp("kept") / "audits.db"
    store = Store(path)
    for key, frozen in zip(KEYS[:3], FROZEN, strict=False):
        store.add_result(key, "code", RECORD | {"name": key}, frozen)
    checkpoint = Checkpoint(10, 1.5, FROZEN[3])
    store.add_checkpoint(KEYS[3], checkpoint)
    for number in range(2):
        store.add_round(KEYS[3], number, OUTCOME)
    rows = store.to_pandas().to_dict("records")
    return SimpleNamespace(content=path.read_bytes(), rows=rows, first=checkpoint)


def flip(content, rng):
    """Flip a few bits, most often where something stands."""
    changed = bytearray(content)
    full = [place for place in range(len(content)) if content[place]]
    for _ in range(rng.choice([1, 1, 2, 8])):
        changed[rng.choice(full)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def random_value(rng):
    return rng.choice(
        [
            *(None, rng.randrange(-2, 20), float("inf"), rng.choice(KEYS)),
            *('{"drawn": [1, 2], "epsilon_lower": 9.0}', b"\xff\xfe"),
            *(rng.randbytes(32), rng.choice(FROZEN), "[" * 10_000),
        ]
    )


def with_rows(content, rng):
    """Write into columns, or add rows, as a program might that knows the tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audits.db"
        path.write_bytes(content)
        db = sqlite3.connect(path)
        listed = db.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'")
        guards = dict(listed.fetchall())
        for name in guards:
            db.execute(f"DROP TRIGGER {name}")
        for _ in range(rng.choice([1, 1, 3])):
            table = rng.choice(["results", "checkpoints", "rounds"])
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            with contextlib.suppress(sqlite3.Error, UnicodeEncodeError):
                if rng.random() < 0.7:
                    column, other = rng.choices(columns, k=2)
                    new = rng.choice([random_value(rng), ...])
                    source, given = (other, ()) if new is ... else ("?", (new,))
                    db.execute(f"UPDATE {table} SET {column} = {source}", given)
                else:
                    marks = ",".join("?" * len(columns))
                    row = [random_value(rng) for _ in columns]
                    db.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        for sql in guards.values():
            db.execute(sql)
        db.commit()
        db.close()
        return path.read_bytes()


def attempt(use):
    """Return what comes of a use, or None if it is refused."""
    try:
        return use()
    except InputError:
        return None


def survive(kept, content, folder):
    """Use a store of that content in every way; return what became of it.

    Nothing comes back but what was written.
    """
    path = folder / "audits.db"
    store, told = Store(path), []
    path.write_bytes(content)
    frame = attempt(lambda: store.table()[0])
    found = [] if frame is None else frame.to_dict("records")
    assert all(row in kept.rows for row in found)
    for key, frozen in zip(KEYS[:3], FROZEN, strict=False):
        result = attempt(lambda key=key: store.result(key))
        assert result in (frozen, None)
        told.append(result)
    attempt(store.prepare)
    checkpoint = attempt(lambda: store.checkpoint(KEYS[3]))
    assert checkpoint in (kept.first, None)
    outcome = attempt(lambda: store.add_round(KEYS[3], 1, b"new"))
    assert outcome in (OUTCOME, b"new", None)
    attempt(lambda: store.add_checkpoint(KEYS[3], Checkpoint(20, 2.0, b"new")))
    attempt(lambda: store.add_result(KEYS[3], "code", RECORD, b"new"))
    assert attempt(lambda: store.result(KEYS[3])) in (b"new", None)
    aside = list(folder.glob("audits.db.corrupt-*"))
    for file in folder.iterdir():
        file.unlink()
    if aside:
        return "set aside"
    return "read whole" if None not in told and len(found) == 3 else "read in part"


@pytest.fixture
def scratch(tmp_path):
    """A folder, in memory if there is such a place: nothing need last here."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.filterwarnings("ignore::dpaudit.audit.StoreWarning")
@pytest.mark.parametrize("fault", [flip, with_rows])
def test_what_is_broken_is_never_returned(kept, scratch, fault):
    rng = random.Random(1)
    seen = {survive(kept, fault(kept.content, rng), scratch) for _ in range(12)}
    assert seen != {"read whole"}


def test_a_sound_store_is_read_whole(kept, tmp_path):
    """Or nothing would be shown by what is never returned."""
    assert survive(kept, kept.content, tmp_path) == "read whole"


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """A store with one finished audit and one that was interrupted; their results."""
    path = tmp_path_factory.mktemp("audited") / "audits.db"
    results = [
        values(audit(laplace_sum, **kept_in(path))),
        values(audit(laplace_sum, **OPTIONS, seed=1)),
    ]
    audit(laplace_sum, seed=1, **kept_in(path, should_stop=lambda: True))
    return path.read_bytes(), results


@pytest.mark.filterwarnings("ignore::dpaudit.audit.StoreWarning")
@pytest.mark.parametrize("fault", [flip, with_rows])
def test_an_audit_with_a_broken_store_ends_as_it_would_have(audited, tmp_path, fault):
    """Or it is refused in a sentence; from a store or not, it is the same result."""
    content, expected = audited
    rng = random.Random(3)
    for number in range(2):
        path = tmp_path / f"{number}.db"
        path.write_bytes(fault(content, rng))
        for seed in (0, 1):
            options = kept_in(path) | {"seed": seed}
            result = attempt(lambda options=options: audit(laplace_sum, **options))
            assert result is None or values(result) == expected[seed]


@pytest.mark.parametrize(
    "make",
    [
        *(lambda path: os.mkfifo(path), lambda path: path.mkdir()),
        lambda path: path.symlink_to("/dev/null"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
    ],
    ids=["fifo", "folder", "null", "zero", "loop"],
)
def test_what_is_no_file_is_refused_and_left_alone(tmp_path, make):
    path = tmp_path / "audits.db"
    make(path)
    store = Store(path)
    for use in (store.prepare, store.to_pandas, lambda: store.add_round("a", 0, b"")):
        refuses(r"cannot (read|write) '.*audits.db'", use)
    assert [file.name for file in tmp_path.iterdir()] == ["audits.db"]
    assert Path("/dev/zero").exists()


@pytest.fixture
def read_only(audited):
    """A folder with a finished store, of which nothing can be written to."""
    root = os.geteuid() == 0  # who may write anyway
    folder = Path(tempfile.mkdtemp(dir="/tmp" if root else None))  # for others to read
    (folder / "audits.db").write_bytes(audited[0])
    (folder / "audits.db").chmod(0o444)
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    yield folder / "audits.db"
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def test_changes_that_cannot_be_read_there_are_named(kept, tmp_path, monkeypatch):
    """A process was killed, and left them in the file beside: they are not ignored."""
    path = tmp_path / "audits.db"
    path.write_bytes(kept.content)
    db = sqlite3.connect(path)
    db.execute("INSERT INTO rounds VALUES ('a', 0, x'00', x'00')")
    db.commit()
    (tmp_path / "copy").mkdir()
    for file in ("audits.db", "audits.db-wal"):
        (tmp_path / "copy" / file).write_bytes((tmp_path / file).read_bytes())
    db.close()
    connect = sqlite3.connect

    def no_room(address, **options):
        if "immutable" not in address:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(address, **options)

    monkeypatch.setattr(sqlite3, "connect", no_room)
    with pytest.raises(InputError, match=r"its last changes are in 'audits.db-wal'"):
        Store(tmp_path / "copy" / "audits.db").to_pandas()


def never(data, rng):
    raise AssertionError("no work may begin")


def test_a_finished_audit_is_returned_where_nothing_can_be_written(audited, read_only):
    """And nobody is let begin one there."""
    result = audit(laplace_sum, **kept_in(read_only))
    assert result.from_store
    assert values(result) == audited[1][0]
    store = Store(read_only)
    assert len(store.to_pandas()) == 1
    assert store.result("other") is None
    refuses(r"cannot write '.*readonly database", store.prepare)
    assert [file.name for file in read_only.parent.iterdir()] == ["audits.db"]
    for mechanism, seed in ((laplace_sum, 1), (never, 0)):
        with pytest.raises(InputError, match=r"cannot write '.*readonly database"):
            audit(mechanism, seed=seed, **kept_in(read_only))


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch):
    """The audit goes on to its end; what was kept stays, and can be gone on from."""
    path = tmp_path / "audits.db"
    Store(path).prepare()
    connect = sqlite3.connect

    def full(address, **options):
        db = connect(address, **options)
        if address != ":memory:":
            db.execute("PRAGMA max_page_count = 1")  # that is: no more than there are
        return db

    monkeypatch.setattr(sqlite3, "connect", full)
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def tell(progress):
        now[0] += 10.0  # so that a checkpoint is due after every round

    with pytest.warns(StoreWarning, match="is not kept: cannot write .*disk is full"):
        result = audit(laplace_sum, **kept_in(path, progress=tell))
    monkeypatch.undo()
    alone = values(audit(laplace_sum, **OPTIONS))
    again = audit(laplace_sum, **kept_in(path))
    assert values(result) == alone == values(again)
    assert audit(laplace_sum, **kept_in(path)).from_store


@pytest.mark.filterwarnings("error")
def test_warnings_that_are_errors_end_no_audit(tmp_path, capsys):
    path = tmp_path / "audits.db"
    path.write_bytes(b"damaged")
    result = audit(laplace_sum, **kept_in(path))
    assert "audits.db' is damaged" in capsys.readouterr().err
    assert values(result) == values(audit(laplace_sum, **OPTIONS))
    assert audit(laplace_sum, **kept_in(path)).from_store


def test_two_audits_at_once_are_one(tmp_path):
    """The same one, of two threads: none disturbs the other, and one result is kept."""
    path, found = tmp_path / "audits.db", []
    meet = threading.Barrier(2)

    def work():
        meet.wait()
        found.append(audit(laplace_sum, **kept_in(path)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = values(audit(laplace_sum, **OPTIONS))
    assert [values(one) for one in found] == [expected] * 2
    assert len(Store(path).to_pandas()) == 1


def test_a_file_is_begun_beside_others_that_begin_it(tmp_path, monkeypatch):
    """SQLite waits for them by itself at every moment but one: here they come in it."""
    connect, other = sqlite3.connect, []

    def waits(path):
        other.append(connect(path, isolation_level=None, check_same_thread=False))
        other[0].execute("BEGIN IMMEDIATE")
        threading.Timer(0.1, other[0].close).start()

    def is_quicker(path):
        other.append(None)
        Store(path).add_round("a", 0, b"theirs")

    class Disturbed(sqlite3.Connection):
        def execute(self, statement, *values):
            if statement == "PRAGMA journal_mode = WAL" and not other:
                come(path)
            return super().execute(statement, *values)

    def disturbed(address, **options):
        return connect(address, factory=Disturbed, **options)

    monkeypatch.setattr(sqlite3, "connect", disturbed)
    for come, kept in ((waits, b"mine"), (is_quicker, b"theirs")):
        other.clear()
        path = tmp_path / f"{come.__name__}.db"
        assert Store(path).add_round("a", 0, b"mine") == kept


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_meanwhile_is_refused(tmp_path):
    """SQLite's locks would not hold in it."""
    store = Store(tmp_path / "audits.db")
    store.prepare()
    with store.held():
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store.add_round("a", 0, b"")
            except InputError as error:
                code = 0 if "forked from one that has it open" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert store.add_round("a", 0, b"mine") == b"mine"
