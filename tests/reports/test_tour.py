import json
import os
import random
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpaudit import InputError, Relation
from dpaudit.algorithms.third_party.subjects.subject import (
    OfLibrary,
    Subjects,
    subjects_of,
)
from dpaudit.audit import Budget, Witness, verify
from dpaudit.audit.replay import ReplayWitness, verify_replay
from dpaudit.cli import main
from dpaudit.reports.sections.libraries import tour
from dpaudit.reports.sections.libraries import visit as visiting
from dpaudit.reports.sections.libraries.findings import load_tour, tour_lines, tour_rows
from dpaudit.reports.sections.libraries.visit import visit

of = Subjects(__name__, "json", "numpy")


@of("right", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def right(data, rng):
    return np.clip(np.nan_to_num(data), 0, 1).sum() + rng.laplace()


@of("half", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def half(data, rng):
    return data.sum() + rng.laplace(scale=0.5)


@of("counts", "codes:2:rows=3", stated="no relation is named")
def counts(data, rng):
    return np.bincount(data.astype(int), minlength=2) + rng.laplace(size=2)


@of("rounded", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def rounded(data, rng):
    return float(np.round((data.sum() + rng.laplace(scale=0.9)) / 1e4))


@of("refuses", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def refuses(data, rng):
    if not np.isfinite(data).all():
        raise ValueError("numbers, please")
    return data.sum() + rng.laplace()


@of("changes", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def changes(data, rng):
    random.seed(7)
    os.system("true")
    return data.sum() + rng.laplace()


@of("breaks", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def breaks(data, rng):
    raise RuntimeError("no such file")


SUBJECTS = (
    *of.subjects,
    replace(of.subjects[0], library="no_such_library", name="missing"),
)


@cache
def _record(name):
    with pytest.MonkeyPatch.context() as patch:
        # The first pairs settle it: no clock decides.
        patch.setattr(visiting, "_REPLAY_S", 1e-6)
        return visit(
            subjects_of(__name__)[name],
            seconds=240.0,  # never reached: what ends it are the samples
            samples=30,
            confidence=0.999,
            seed=0,
        )


def visited(name):
    subject = subjects_of(__name__)[name]
    return deepcopy(_record(name)) | {
        **{"subject": str(subject), "library": subject.library},
        **{"claim": str(subject.claim), "relation": subject.relation},
        **{"stated": subject.stated, "seconds": 1.0},
    }


def test_the_tour_has_forty_subjects_and_readings():
    everything = [s for m in tour.MODULES for s in subjects_of(m).values()]
    assert len({str(each) for each in everything}) == len(everything) >= 40
    assert len({each.library for each in everything}) >= 5
    # A sum with too little noise is hidden by rounding it to multiples of 1e4.
    (line,) = tour_rows([visited("rounded")])
    assert line.verdict == "REFUTED for transcripts"
    relations = {each.name: each.relations for each in of.subjects}
    assert relations["counts"] == tuple(Relation)
    assert relations["right"] == ("add-remove",)


def test_right_mechanisms_stand_whatever_rows_and_nobody_is_none():
    (line,) = tour_rows([visited("right")])
    assert line.verdict == line.strange == "NOT_REFUTED"
    assert (line.findings, line.notes) == ((), ())
    assert line.executions >= 4 * 30
    for name, rows, said in (("right", 0, "1 rows or more"), ("rihgt", 1, "did you m")):
        with pytest.raises(InputError, match=said):
            OfLibrary(__name__, name).release(np.ones(rows), rng=None)
    with pytest.raises(InputError, match="must have a list SUBJECTS"):
        subjects_of("json")


def test_a_refutation_is_proven_and_can_be_verified():
    record = visited("half")
    (leg,) = [leg for leg in record["legs"] if leg["rows"] == "finite"]
    assert (leg["how"], leg["proof"]) == ("replay, release", True)
    witness = ReplayWitness.from_dict(leg["witness"])
    assert witness.build_mechanism() == OfLibrary(__name__, "half")
    assert verify_replay(witness, seed=3).confirmed
    (line,) = tour_rows([record])
    assert line.verdict == "REFUTED"
    assert line.findings[0].endswith("distance") or "budget" in line.findings[0]


def test_unnamed_relations_fall_in_both_readings_and_side_effects_are_noted():
    """A visit that is ended at its limit has refuted one of both relations at most."""
    record = visited("counts")
    (line,) = tour_rows([record])
    assert line.readings == {"add-remove": "NOT_REFUTED", "replace-one": "REFUTED"}
    assert (line.relation, line.verdict) == ("not stated", "NOT_REFUTED")
    assert line.remark == "REFUTED under replace-one alone"
    refuted = [leg for leg in record["legs"] if leg["verdict"] == "REFUTED"]
    spoilt = [leg | {"rows": "strange"} for leg in refuted[:1]]
    notes = ["not finished: ended at 6 s"]
    (line,) = tour_rows([record | {"legs": [*refuted, *spoilt], "notes": notes}])
    assert (line.verdict, line.strange) == ("FAILED", "FAILED")
    assert line.readings == {"add-remove": "FAILED", "replace-one": "REFUTED"}
    assert line.remark == "REFUTED under replace-one, not finished"
    notes = []
    random.seed(3)
    with visiting._watched(notes):
        changes(np.ones(2), np.random.default_rng(0))
    assert "Python's global generator" in notes[0]
    assert notes[1] == "starts processes (os.system)"


def test_rows_on_which_an_audit_fails_do_not_count_as_not_refuted(monkeypatch):
    verdicts = iter(["NOT_REFUTED", "FAILED", "NOT_REFUTED"])

    def drawn(*_, **__):
        return {"verdict": next(verdicts), "findings": []}

    monkeypatch.setattr(visiting, "_drawn", drawn)
    assert on_strange_rows("right")["verdict"] == "FAILED"


def test_a_tour_of_another_version_is_named_and_not_shown(tmp_path):
    (tmp_path / tour.FILE).write_text('{"records": [{"subject": "x"}]}', "utf-8")
    with pytest.raises(InputError, match="write it anew with make third-party"):
        load_tour(tmp_path)


def on_strange_rows(name):
    subject = subjects_of(__name__)[name]
    leg = visiting._strange(
        subject.mechanism(),
        subject,
        np.array([0.2, 0.5, 1.0]),
        Relation.ADD_REMOVE,
        Budget(60),
        confidence=0.99,
        seed=0,
    )
    return leg | {"rows": "strange", "relation": "add-remove"}


def test_rows_that_are_refused_are_no_violation_and_others_are():
    """A true claim is refuted with probability at most 0.01; this one is broken."""
    refused = on_strange_rows("refuses")
    assert (refused["verdict"], len(refused["refused"])) == ("REFUSED", 3)
    strange = on_strange_rows("changes")
    assert strange["verdict"] == "REFUTED"
    assert "a row of nan" in strange["findings"][0]["message"]
    witness = Witness.from_dict(strange["witness"])
    assert "numpy" in witness.versions
    assert verify(witness, seed=5).confirmed
    about = visited("right")
    shown = [about | {"legs": [each]} for each in (refused, strange)]
    assert [each.strange for each in tour_rows(shown)] == ["refused", "REFUTED"]


@pytest.mark.parametrize(
    ("name", "said"), [("breaks", "no such file"), ("missing", "does not import")]
)
def test_what_does_not_run_is_skipped_and_named(name, said):
    (line,) = tour_rows([visited(name)])
    assert line.verdict == "SKIPPED"
    assert said in line.notes[0]


LISTED = """
import os, subprocess, sys, time
from dpaudit.algorithms.third_party.subjects.subject import Subjects
of = Subjects(__name__, "json", "numpy")

@of("crashes", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def crashes(data, rng):
    print("so long", flush=True)
    os._exit(3)

@of("hangs", "scalar:0,1:rows=3", relation="add-remove", stated="here")
def hangs(data, rng):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(os.environ["CHILD"], "w").write(str(child.pid))
    time.sleep(600)

SUBJECTS = tuple(of.subjects)
"""


def test_a_process_that_crashes_or_hangs_is_ended_and_the_rest_stands(
    tmp_path, monkeypatch
):
    (tmp_path / "fake_list.py").write_text(LISTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("CHILD", str(tmp_path / "child"))
    found = {}
    for name, limit in (("crashes", "120"), ("hangs", "6")):
        output = ("--output", str(tmp_path / name), "--workers", "1")
        options = ("--subjects", "fake_list", "--limit", limit, *output)
        done = CliRunner().invoke(main, ["report", "tour", f"json.{name}", *options])
        assert done.exit_code == 0, done.stderr
        (found[name],) = tour_rows(load_tour(tmp_path / name))
        assert found[name].verdict == "SKIPPED"
    assert found["crashes"].notes == ("ended with exit code 3: so long",)
    assert found["hangs"].notes == ("ended at 6 s",)
    if (tmp_path / "child").exists():  # it came so far
        child = Path("/proc", (tmp_path / "child").read_text(), "stat")
        # Ended, though nobody may have asked how.
        assert not child.exists() or child.read_text().rpartition(")")[2][1] == "Z"


def test_a_tour_is_written_with_its_witnesses_and_goes_on(tmp_path, monkeypatch):
    made = []

    def instead(about, module, name, **options):
        made.append(name)
        return about | visited(name) | {"relation": about["relation"]}

    monkeypatch.setattr(tour, "_visited", instead)
    names = ["json.half", "json.right"]
    first = tour.toured(tmp_path, names, modules=(__name__,))
    assert tour.toured(tmp_path, names, modules=(__name__,)) == first
    assert made == ["right", "half"]
    path, *_ = sorted(tmp_path.glob("json.half.*.witness.json"))
    assert ReplayWitness.from_dict(json.loads(path.read_text())).name == "json.half"
    written = json.loads((tmp_path / tour.FILE).read_text())
    assert load_tour(tmp_path) == written["records"]
    heading, *lines = tour_lines(first)
    assert list(heading[:4]) == ["subject", "relation", "verdict", "claim"]
    assert sorted(line[0] for line in lines) == names
    with pytest.raises(InputError, match="unknown subject"):
        tour.toured(tmp_path, ["json.haf"], modules=(__name__,))
