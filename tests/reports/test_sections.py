"""A whole report: stopped, gone on with, shared, failing in part, and added to."""

import pickle
import shutil
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import pytest
from click.testing import CliRunner
from executors import PickledThreads
from tiny_profile import BLANK, tiny_plan

import dpaudit.audit
from dpaudit.cli import main
from dpaudit.reports import write_report, writer
from dpaudit.reports.page import Drawn
from dpaudit.reports.sections import all_sections, chosen_sections, plan
from dpaudit.reports.sections.streaming import measures
from dpaudit.reports.sections.streaming import section as streaming
from dpaudit.reports.store import STORE

CHOSEN = ("streaming", "suite")
pytestmark = pytest.mark.usefixtures("tiny")


def tables(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


class Stopped(BaseException):
    """As a signal would raise it: nobody may take it for a failure."""


@pytest.fixture
def blank(monkeypatch):
    monkeypatch.setattr(writer, "draw_figures", lambda *_: BLANK)


@pytest.mark.usefixtures("blank")
def test_a_report_that_was_stopped_goes_on(tiny_report, tmp_path):
    def progress(step):
        if step.done == 3:
            raise Stopped

    options = {"profile": "tiny", "seed": 1, "sections": CHOSEN}
    with pytest.raises(Stopped):
        write_report(tmp_path, progress=progress, **options)
    assert not (tmp_path / "index.html").exists()
    told = []
    write_report(tmp_path, progress=told.append, **options)
    assert told[0].done == 3
    found, whole = tables(tmp_path), tables(tiny_report)
    expected = {f"{name}.csv" for name in plan("tiny", 1, chosen_sections(CHOSEN))}
    assert set(found) == expected < set(whole)
    assert found == {name: whole[name] for name in expected}


def test_the_command_starts_workers_when_there_is_work_for_them(tmp_path, monkeypatch):
    """Stand-ins for processes; real ones work in test_cli_compare.py."""
    started = []

    def pool(workers):
        started.append(workers)
        return PickledThreads(workers, mp_context=get_context("spawn"))

    monkeypatch.setattr(dpaudit.audit, "process_pool", pool)
    found = []
    for workers in ("1", "2", "2"):
        arguments = ["report", "run", "list-culling", "--workers", workers]
        arguments += ["--output", str(tmp_path / workers)]
        arguments += ["--store", str(tmp_path / f"{workers}.db")]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.stderr
        assert "Most agreement wins" in result.stdout  # a note of its section
        found.append(tables(tmp_path / workers))
    assert found[0] == found[1] == found[2] != {}
    assert started == [2]


def page_of(folder, section):
    return (folder / "sections" / f"{section}.html").read_text(encoding="utf-8")


def fails(*_):
    raise RuntimeError("the <dice> are gone")


def test_a_section_that_fails_leaves_the_others(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(measures, "streaming_errors", fails)
        written = write_report(tmp_path, profile="tiny", sections=CHOSEN)
    assert list(written.failed) == ["streaming"]
    page = page_of(tmp_path, "streaming")
    assert page.count('class="failed"') == 1
    assert "RuntimeError: the &lt;dice&gt; are gone" in page
    assert "figure-streaming-rates-wide" not in page
    assert 'class="failed"' not in page_of(tmp_path, "suite")
    page = (tmp_path / "experiments" / "streaming-rates.html").read_text("utf-8")
    assert "RuntimeError: the &lt;dice&gt; are gone" in page
    text = written.index.with_name("report.md").read_text(encoding="utf-8")
    assert r"This section failed: RuntimeError: the \<dice\> are gone" in text
    assert not (tmp_path / "streaming-rates.csv").exists()
    assert (tmp_path / "streaming-audits.csv").exists()
    # When it can be measured, only that is left to do.
    monkeypatch.setattr(writer, "draw_figures", lambda *_: BLANK)
    told = []
    options = {"sections": CHOSEN, "progress": told.append}
    assert not write_report(tmp_path, profile="tiny", **options).failed
    assert told[0].done == 4  # the audits


def test_figures_are_drawn_here_where_no_worker_draws_them():
    """By an executor that loses all, or takes none; one that fails says why."""

    class Loses(Executor):
        def submit(self, function, *arguments):
            future = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

    class Shut(Executor):
        def submit(self, function, *arguments):
            raise RuntimeError("cannot schedule new futures after shutdown")

    calls = {"one": lambda: ["wide", "narrow"], "other": fails}
    with ThreadPoolExecutor(1) as threads:
        for executor in (None, threads, Loses(), Shut()):
            drawn = Drawn(calls, executor)
            assert drawn["one"] == ["wide", "narrow"]
            assert str(drawn["other"]) == "the <dice> are gone"
            assert drawn["other"] is drawn["other"]
            assert list(drawn) == ["one", "other"]


def test_all_that_draws_can_be_sent_to_workers():
    assert list(all_sections())[:2] == ["privacy", "utility"]  # as on the page
    for section in all_sections().values():
        assert pickle.loads(pickle.dumps(section)).name == section.name


def test_a_section_that_cannot_be_told_leaves_the_others(
    tiny_report, tmp_path, monkeypatch
):
    monkeypatch.setattr(streaming, "rate_rows", fails)
    shutil.copy(tiny_report / STORE, tmp_path)  # nothing is measured again
    written = write_report(tmp_path, profile="tiny", seed=1, sections=CHOSEN)
    assert set(written.failed) == {"streaming"}
    assert page_of(tmp_path, "streaming").count('class="failed"') == 1
    assert 'class="failed"' not in page_of(tmp_path, "suite")


def test_the_command_says_what_failed(tmp_path, monkeypatch):
    figures = all_sections()["choosing"].figures
    monkeypatch.setitem(figures, "winners", fails)
    arguments = ["report", "--profile", "tiny", "--output", str(tmp_path / "new")]
    arguments += ["--workers", "1", "--section", "choosing"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 3
    said = "section 'choosing' failed: RuntimeError: the <dice> are gone"
    assert said in result.stderr
    assert result.stdout.strip() == str(tmp_path / "new" / "index.html")
    assert (tmp_path / "new" / "work.db").is_file()


def test_every_measure_travels_by_its_name():
    for each in tiny_plan().values():
        module = sys.modules[each.measure.__module__]
        assert getattr(module, each.measure.__qualname__) is each.measure
    # And a section brings the experiments of those that it uses.
    chosen = plan("tiny", 0, chosen_sections(("tracing",)))
    assert {"tracing", "privacy-wall"} < set(chosen)
