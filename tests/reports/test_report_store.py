"""What is kept, and what is not used: other versions, and what was not written so."""

import re
import sqlite3
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from math import inf, isnan, nan

import numpy as np
import pytest
from refusals import refuses

from dpaudit import __version__
from dpaudit.audit import StoreWarning
from dpaudit.errors import ExecutorError
from dpaudit.reports.runner import Failure, Job, carry_out
from dpaudit.reports.store import WorkStore, machine, versions

ASKED = []


def thrown(k):
    ASKED.append(k)
    return {"thrown": int(np.random.default_rng(k).integers(6)), "k": np.int64(k)}


def broken():
    raise ValueError("no die")


def dice(count):
    return [Job(f"die {k}", k, partial(thrown, k), "dice") for k in range(count)]


@pytest.fixture(autouse=True)
def _asked():
    ASKED.clear()


@pytest.fixture
def store(tmp_path):
    return WorkStore(tmp_path / "new" / "work.db")


def prepared(store):
    store.prepare()
    return store


def change(store, statement, *values):
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute(statement, values)


def test_a_record_comes_back_as_it_was_and_says_where_it_is_from(store):
    record = {"x": [0.1, nan, inf, -0.0], "y": None, "z": "text", "k": np.int64(3)}
    prepared(store).add("a", 5, record, seconds=1.0)
    (found,) = store.load(["a", "b"]).values()
    assert found["x"][0] == 0.1
    assert isnan(found["x"][1])
    assert str(found["x"][2:]) == "[inf, -0.0]"
    assert (found["y"], found["z"], found["k"]) == (None, "text", 3)
    prepared(store).add("a", 5, {}, seconds=1.25)
    asked = "SELECT versions, seed, seconds, machine FROM units"
    with closing(sqlite3.connect(store.path)) as db:
        ((about, *row),) = db.execute(asked)
    assert all(f'"{name}": "{one}"' in about for name, one in versions().items())
    assert row == [5, 1.25, machine()]
    own = re.escape(__version__)
    assert re.fullmatch(rf"{own}\+\w{{12}}\.\w{{12}}", versions()["dpaudit"])
    assert {"Python", "numpy", "scipy"} < set(versions())


def test_finished_work_is_not_done_again_nor_other_formats_read(store):
    first = carry_out(dice(3), store=prepared(store))
    told = []
    second = carry_out(dice(5), store=store, progress=told.append)
    assert list(second) == [f"die {k}" for k in range(5)]
    assert {name: second[name] for name in first} == first
    assert ASKED == [0, 1, 2, 3, 4]
    assert [(step.done, step.total) for step in told] == [(3, 5), (4, 5), (5, 5)]
    assert carry_out(dice(5)) == second  # with no store at all
    change(prepared(store), "PRAGMA user_version = 7")
    refuses("format 7", store.prepare)


def test_records_of_other_versions_are_named_and_not_used(tmp_path):
    path = tmp_path / "work.db"
    old = prepared(WorkStore(path, {"dpaudit": "0.0.1"}))
    carry_out(dice(3), store=old)
    with pytest.warns(
        StoreWarning, match=r"3 records.*other versions.*dpaudit 0\.0\.1"
    ):
        carry_out(dice(3), store=WorkStore(path))
    assert ASKED == [0, 1, 2] * 2
    for each in (old, WorkStore(path)):
        assert len(each.load([f"die {k}" for k in range(3)])) == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [("record", '{"thrown": 7}'), ("seed", 9), ("machine", "x"), ("record", "{")],
)
def test_a_damaged_record_is_named_and_its_work_done_again(store, column, value):
    whole = carry_out(dice(3), store=prepared(store))
    change(store, f"UPDATE units SET {column} = ? WHERE name = 'die 1'", value)
    with pytest.warns(StoreWarning, match="1 of 3 records .* done again"):
        again = carry_out(dice(3), store=store)
    assert again == whole
    assert ASKED == [0, 1, 2, 1]
    assert carry_out(dice(3), store=store) == whole  # without a word


@pytest.mark.parametrize("place", [0, 4096])
def test_a_damaged_file_is_set_aside(store, place):
    whole = carry_out(dice(3), store=prepared(store))
    with store.path.open("r+b") as file:
        file.seek(place)
        file.write(b"no database" * 300)
    with pytest.warns(StoreWarning, match=r"set aside as 'work\.db\.corrupt-1'"):
        store.prepare()
    assert carry_out(dice(3), store=store) == whole
    assert (store.path.parent / "work.db.corrupt-1").is_file()


def test_a_job_that_fails_stops_the_others_or_not(store):
    jobs = [*dice(2), Job("bad", 0, broken, "dice"), *dice(4)[2:]]
    refuses("no die", carry_out, jobs, store=prepared(store), error=ValueError)
    assert ASKED == [0, 1]
    found = carry_out(jobs, store=store, go_on=True)
    assert isinstance(found["bad"], Failure)
    assert ASKED == [0, 1, 2, 3]
    assert "bad" not in store.load([job.name for job in jobs])


class Lost:
    """An executor whose worker is gone."""

    def submit(self, *_):
        future = Future()
        future.set_exception(BrokenProcessPool("gone"))
        return future


def test_a_lost_worker_is_an_error_of_the_machine():
    with pytest.raises(ExecutorError, match="the same command goes on"):
        carry_out(dice(2), executor=Lost(), go_on=True)
