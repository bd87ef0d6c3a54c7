"""A whole report: stopped, gone on with, shared, failing in part, and added to."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_profile import install_tiny, tiny_plan

import dpaudit
from dpaudit.cli import main
from dpaudit.reports import write_report
from dpaudit.reports.experiment import run
from dpaudit.reports.sections import all_sections, plan
from dpaudit.reports.sections.online import section as online
from dpaudit.reports.sections.streaming import section as streaming

CHOSEN = ("streaming", "online", "tracing")


@pytest.fixture(scope="module", autouse=True)
def _tiny():
    with pytest.MonkeyPatch.context() as patch:
        install_tiny(patch)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a report that nothing has stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert not write_report(folder, profile="tiny", sections=CHOSEN).failed
    return folder


def tables(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.csv")}


STOPPED = """
import os, signal, sys
from pathlib import Path
import pytest
from tiny_profile import install_tiny
from dpaudit.reports import write_report

def progress(step):
    if step.done == 9:
        os.kill(os.getpid(), signal.SIGKILL)

install_tiny(pytest.MonkeyPatch())
write_report(
    Path(sys.argv[1]),
    profile="tiny",
    sections=("streaming", "online", "tracing"),
    progress=progress,
)
"""


def test_a_report_that_was_killed_goes_on(whole, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), str(Path(dpaudit.__file__).parents[1])]
            ),
        },
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "index.html").exists()

    told = []
    write_report(tmp_path, profile="tiny", sections=CHOSEN, progress=told.append)
    assert told[0].done == 9
    assert tables(tmp_path) == tables(whole)
    expected = {f"{name}.csv" for name in plan("tiny", 0, [all_sections()["online"]])}
    assert expected < set(tables(whole))


def test_the_command_starts_workers_when_there_is_work_for_them(tmp_path):
    found = []
    for workers in ("1", "2", "2"):
        arguments = ["report", "run", "list-culling", "--workers", workers]
        arguments += ["--output", str(tmp_path / workers)]
        arguments += ["--store", str(tmp_path / f"{workers}.db")]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.stderr
        found.append(tables(tmp_path / workers))
    assert found[0] == found[1] == found[2] != {}


def page_of(folder, section):
    return (folder / "sections" / f"{section}.html").read_text(encoding="utf-8")


def fails(cell):
    raise RuntimeError("the <dice> are gone")


def test_a_section_that_fails_leaves_the_others(tmp_path, monkeypatch):
    sections = ("streaming", "online")
    with monkeypatch.context() as patch:
        patch.setattr(online.measures, "online_regret", fails)
        written = write_report(tmp_path, profile="tiny", sections=sections)

    assert list(written.failed) == ["online"]
    page = page_of(tmp_path, "online")
    assert '<section id="online">\n<h2>What was found</h2>\n<p class="failed">' in page
    assert "RuntimeError: the &lt;dice&gt; are gone" in page
    assert page.count('class="failed"') == 1
    assert "figure-online-regret-wide" not in page
    assert "figure-streaming-rates-wide" in page_of(tmp_path, "streaming")
    page = (tmp_path / "experiments" / "online-regret.html").read_text("utf-8")
    assert "RuntimeError: the &lt;dice&gt; are gone" in page
    text = written.index.with_name("report.md").read_text(encoding="utf-8")
    assert r"This section failed: RuntimeError: the \<dice\> are gone" in text
    assert not (tmp_path / "online-regret.csv").exists()
    assert (tmp_path / "online-audits.csv").exists()

    # When it can be measured, only that is left to do.
    told = []
    written = write_report(
        tmp_path, profile="tiny", sections=sections, progress=told.append
    )
    assert not written.failed
    assert told[0].done > 0


def test_a_section_that_cannot_be_drawn_or_told_leaves_the_others(
    whole, tmp_path, monkeypatch
):
    monkeypatch.setattr(streaming.findings, "rate_rows", fails)
    monkeypatch.setitem(all_sections()["online"].figures, "online-regret", fails)
    written = write_report(
        tmp_path, profile="tiny", sections=CHOSEN, store=whole / "work.db"
    )

    assert set(written.failed) == {"streaming", "online"}
    for name in ("streaming", "online"):
        assert page_of(tmp_path, name).count('class="failed"') == 1
    assert "figure-tracing-wide" in page_of(tmp_path, "tracing")


def test_the_command_says_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(online.measures, "online_regret", fails)
    arguments = ["report", "--profile", "tiny", "--output", str(tmp_path / "new")]
    arguments += ["--workers", "1", "--section", "online"]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 3
    assert "section 'online' failed: RuntimeError: the <dice> are gone" in result.stderr
    assert result.stdout.strip() == str(tmp_path / "new" / "index.html")
    assert (tmp_path / "new" / "work.db").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--profile", "quikc"], "did you mean 'quick'"),
        (["--section", "onlin"], "did you mean 'online'"),
        (["--seed", "-1"], "seed must be"),
        (["--workers", "0"], "workers must be"),
        (["--store", "FOLDER/none/file/work.db"], "cannot write"),
        (["chekc"], "did you mean 'check'"),
    ],
)
def test_wrong_options_are_one_sentence(options, words, tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "file").touch()
    options = [each.replace("FOLDER", str(tmp_path)) for each in options]
    result = CliRunner().invoke(
        main, ["report", "--output", str(tmp_path / "new"), *options]
    )
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


SECTION = '''
"""A toy."""

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Part, Section, sizes
from dpaudit.reports.sections.toy.measures import tossed


def experiments(size):
    return (
        Experiment(
            "toy-coins", "Coins", "-", tossed, ("fair", "bent"),
            repetitions=size.tosses,
        ),
    )


def says(table):
    return [f"{int(table['heads'].sum())} heads."]


SECTION = Section(
    name="toy",
    title="Toys",
    parts=(Part("toy-part", "A toy", 650),),
    context=lambda found: {"notes": says(found["toy-coins"])},
    figures={"toy-figure": lambda found, narrow: "<svg id='figure-toy-figure'/>"},
    sizes=sizes(tosses=(4, 5, 6)),
    experiments=experiments,
    answer=lambda found: ["Toys are <fine>."],
    notes={("toy-coins",): says},
)
'''
MEASURES = '''
"""Coins."""


def tossed(cell):
    heads = cell.rng().integers(2, size=cell.size)
    return [{"repetition": i, "heads": int(h)} for i, h in enumerate(heads)]
'''


def test_a_new_section_is_one_folder(tmp_path):
    source = Path(dpaudit.__file__).parent
    unwanted = shutil.ignore_patterns("__pycache__", "checks")
    shutil.copytree(source, tmp_path / "src" / "dpaudit", ignore=unwanted)
    toy = tmp_path / "src" / "dpaudit" / "reports" / "sections" / "toy"
    toy.mkdir()
    for name, text in (
        ("__init__.py", '"""A toy."""\n'),
        ("section.py", SECTION),
        ("measures.py", MEASURES),
        (
            "toy-part.html.j2",
            "<p>{{ notes | join(' ') }}</p>{{ figure('toy-figure') }}",
        ),
    ):
        (toy / name).write_text(text, encoding="utf-8")

    def dpaudit_report(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "dpaudit", "report", *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    options = ("--section", "toy", "--output", "out", "--workers", "1")
    done = dpaudit_report(*options)
    assert done.returncode == 0, done.stderr
    page = page_of(tmp_path / "out", "toy")
    assert '<section id="toy-part">\n<h2>A toy</h2>' in page
    assert "Toys are &lt;fine&gt;." in page
    assert page.count("<svg id='figure-toy-figure'/>") == 2
    assert len((tmp_path / "out" / "toy-coins.csv").read_text().splitlines()) == 9
    first = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert '<a href="sections/toy.html">Toys</a>' in first
    assert (tmp_path / "out" / "toy-figure.svg").is_file()

    alone = dpaudit_report("run", "toy-coins", "--workers", "1")
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.splitlines()[-1].endswith("heads.")
    assert alone.stdout.splitlines()[-1] in page.replace("<p>", "\n").replace(
        "</p>", "\n"
    )


def test_every_measure_travels_by_its_name():
    for each in tiny_plan().values():
        module = sys.modules[each.measure.__module__]
        assert getattr(module, each.measure.__qualname__) is each.measure
    assert run(tiny_plan()["list-culling"]).shape[0] == 12
