"""The pages are true: what they tell to run is run, and prints what they show.

The files of a page are saved, its commands and its pieces of code run, one after the
other, in a folder of their own. The commands and pytest run in this process, which is
no other thing: that the installed program starts is seen elsewhere.
"""

import contextlib
import importlib
import io
import os
import re
import runpy
import shlex
import sys
import warnings
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dpaudit.audit.replay.declare import libraries
from dpaudit.cli import main
from dpaudit.pytest_plugin import BUDGETS
from dpaudit.reports.sections.libraries import tour, visit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WORKFLOW = DOCS / "ci" / "github-actions.yml"

# A checkout may have been installed before it declared the plugin.
INSTALLED = bool(entry_points(group="pytest11", name="dpaudit"))
# Nor has it to do with settings that lie above the folder of a test.
PYTEST = [
    *([] if INSTALLED else ["-p", "dpaudit.pytest_plugin"]),
    *("-c", os.devnull, "--rootdir=."),
    *("--capture=sys", "-p", "no:faulthandler", "-W", "ignore:Module already imported"),
]

# What is not refuted is not, at any size: the fewer releases, the sooner that is seen.
FEW = 40
# And what falls within 300 releases does within the 2,000 of the profile.
SMALL = 300


def read(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def blocks(page):
    """The pieces of code of a page, and their kinds."""
    return re.findall(r"^```(\w+)\n(.*?)^```", read(page), flags=re.DOTALL | re.M)


def forget_modules_of(folder):
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    forget_modules_of(tmp_path)


def run(line):
    """Run a line of a shell block, and return what it printed."""
    command, _, expected = line.partition("   # exit code ")
    program, *arguments = shlex.split(command)
    if program == "dpaudit":
        # Neither changes a verdict, nor anything that is shown.
        if arguments[0] in ("audit", "compare") and "--layer" not in arguments:
            arguments += ["--workers", "1"]
            if arguments[0] == "audit" and "--to-the-end" not in arguments:
                arguments += ["--refine", "0"]
        done = CliRunner().invoke(main, arguments)
        code, output = done.exit_code, done.output
    elif program == "python":
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            runpy.run_path(str(Path(arguments[0]).resolve()), run_name="__main__")
        code, output = 0, written.getvalue()
    else:
        assert program == "pytest", line
        forget_modules_of(Path.cwd())
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            code = pytest.main([*PYTEST, *arguments])
        output = written.getvalue()
    assert code == int(expected or "0"), f"{line}\n{output}"
    return output


def fewer(text, few):
    """The text, with so many releases wherever it names a number of them."""
    number = r"(\bmax[-_]samples[ =]|\bbudget=|--samples )[\d_]+"
    return re.sub(number, rf"\g<1>{few}", text)


def follow(page, names=None, few=None, besides=None):
    """Do what a page says; yield each output that it shows, beside what was printed.

    Code that is no file runs in a namespace of its own, unless one is given.
    """
    output = ""
    for kind, text in blocks(page):
        if besides is not None and besides in text:
            continue
        if few is not None:
            text = fewer(text, few)
        if kind == "sh":
            output = "".join(map(run, text.splitlines()))
        elif kind == "python" and (file := re.match(r"# (\w+\.py)\n", text)):
            Path(file[1]).write_text(text, encoding="utf-8")
            importlib.invalidate_caches()
        elif kind == "python":
            code = compile(text, f"{page}.md", "exec")
            with contextlib.redirect_stdout(io.StringIO()) as written:
                exec(code, {} if names is None else names)
            output = written.getvalue()
        elif output:  # before the first command stands what is not run
            yield text, output


def words_and_numbers(text):
    """The text without its decimal numbers, nor what differs each time; the numbers.

    The seconds differ, and fresh randomness. Whole numbers are words.
    """
    text = re.sub(r"\d+\.\d+ ?s\b", "* s", text)
    fresh = re.compile(r"^.*(?:fresh releases|\(seed \d).*$", re.MULTILINE)
    text = fresh.sub(lambda line: re.sub(r"\d+", "*", line[0]), text)
    decimal = r"-?\d+\.\d+"
    return re.sub(decimal, "#", text), re.findall(decimal, text)


def assert_prints(shown, printed):
    """Decimal numbers may differ by one in the last digit, where a bit may round it."""
    (words, numbers), (others, found) = map(words_and_numbers, (shown, printed))
    assert words == others
    for one, other in zip(numbers, found, strict=True):
        unit = 10.0 ** -len(one.partition(".")[2])
        assert float(other) == pytest.approx(float(one), rel=0, abs=1.01 * unit)


def test_the_tutorial_prints_what_it_shows(folder):
    shown = [assert_prints(*each) for each in follow("tutorial")]
    assert len(shown) == 6


def test_the_page_on_clusters_prints_what_it_shows(folder):
    """As far as this machine is a cluster."""
    shown = [assert_prints(*each) for each in follow("clusters")]
    assert len(shown) == 1
    if find_spec("distributed"):
        assert "NOT_REFUTED" in run("python on_dask.py")


def test_numbers_are_compared_to_their_last_digit():
    assert_prints("e^7.2 of 0.9522 (3.1 s)", "e^7.2 of 0.9523 (14.9 s)")
    for other in ("e^7.2 of 0.9524 (3.1 s)", "e^7.2 or 0.9522 (3.1 s)"):
        with pytest.raises(AssertionError):
            assert_prints("e^7.2 of 0.9522 (3.1 s)", other)


def test_everything_in_the_guide_runs(folder, monkeypatch, here_in_few_rounds):
    """With it the example that ``dpaudit init`` writes, by the guide's own pytest."""
    assert run("dpaudit init").startswith("wrote test_my_mechanism.py")
    example = folder / "test_my_mechanism.py"
    example.write_text(fewer(example.read_text(encoding="utf-8"), FEW))
    monkeypatch.setitem(BUDGETS, "quick", SMALL)
    names = {}
    for shown, printed in follow("auditing", names, few=FEW):
        for line in shown.splitlines():
            assert line in printed, line
    outcomes = {
        name: names[name].refuted
        for name in ("refuted", "result", "estimator", "in_a_process")
    }
    assert outcomes.pop("refuted")
    assert not any(outcomes.values())
    text = (folder / "build" / "privacy.json").read_text()
    assert text.count('"assertion"') == 4 + 3


def test_everything_on_the_page_of_comparisons_runs(folder, here_in_few_rounds):
    pieces = [(kind, fewer(text, 60)) for kind, text in blocks("compare")]
    (folder / "last.py").write_text(pieces.pop()[1])
    said: list[str] = []
    for kind, text in pieces:
        if kind == "python":
            (folder / re.match(r"# (\w+\.py)\n", text)[1]).write_text(text)
        else:
            said += "".join(map(run, text.splitlines())).splitlines()
    assert [s.split()[0] for s in said if "  REFUTED" in s] == ["symmetric-noise"]
    last = run("python last.py")
    assert "mine" in last
    assert "NOT_REFUTED" in last


def test_the_page_on_the_estimator_prints_what_it_shows(folder):
    pieces = follow("private-pca", {}, besides="pytest audit/")
    assert len([assert_prints(*each) for each in pieces]) == 6


def test_the_page_on_replays_prints_what_it_shows(folder):
    kinds = [kind for kind, _ in blocks("replay")]
    assert kinds == ["python", "sh", "text", *["python"] * 9]
    for shown, printed in follow("replay", {"__name__": "page"}):
        for line in shown.splitlines()[1:]:
            assert line in printed


def test_the_page_on_libraries_prints_what_it_shows(folder, monkeypatch):
    """And names the lines of the library where they are."""

    def here(asked, output, limit_s):
        """What a process of its own does, as in test_tour.py."""
        output.touch()
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.setattr(sys, "stdin", io.StringIO(asked))
            patch.setattr(os, "_exit", print)
            visit.main()
        return "exit code 0"

    monkeypatch.setattr(tour, "_run", here)
    monkeypatch.setattr(libraries, "_yours", {})
    kinds = [kind for kind, _ in blocks("libraries")]
    assert kinds == ["python", "python", "sh", "text", "python", "python", "sh"]
    for shown, printed in follow("libraries", {"__name__": "page"}):
        lines = [line.split()[:3] for line in printed.splitlines()]
        for line in shown.splitlines():
            assert line.split() in lines
    library = blocks("libraries")[0][1].splitlines()
    for line in re.findall(r"tabular\.py:(\d+)", read("libraries")):
        assert "Epsilon-DP if a row" in library[int(line) - 1]


def test_a_newcomers_script_refutes_on_a_smaller_pair(folder):
    code = next(text for kind, text in blocks("domains") if kind == "python")
    assert len([line for line in code.splitlines() if line]) <= 10
    ((shown, printed),) = follow("domains")
    assert "smaller pair" in shown
    assert_prints(shown, printed)


@pytest.mark.parametrize("page", ["streaming", "robust", "online", "tracing"])
def test_the_code_of_a_page_runs(page, folder, here_in_few_rounds):
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, f"{page}.md", "exec"), {})


def test_pages_on_training_and_what_people_have_run(folder, here_in_few_rounds):
    """Besides a replay of DP-SGD, which tests/audit/replay/test_batches.py has."""
    list(follow("training", few=FEW, besides='replay(build("dp-sgd")'))
    assert not [*follow("yours")]  # whose commands say how they end


def test_the_first_audit_has_ten_lines_and_budgets_are_the_plugins():
    code = next(text for kind, text in blocks("tutorial") if kind == "python")
    lines = [line for line in code.splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= 10
    for name, size in BUDGETS.items():
        assert re.search(rf"`{name}`\s+\({size:,}\)", read("auditing"))
    text = WORKFLOW.read_text(encoding="utf-8")
    (command,) = re.findall(r"run: >-\n((?: {10}.+\n)+)", text)
    words = set(command.split())
    assert {"-m", "dp_audit", "--dp-report", "--dp-seed", "--dp-profile"} <= words
    assert set(re.findall(r"'(\w+)'", text)) == {"schedule", "full", "standard", "0"}


def test_the_workflow_is_a_workflow():
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    # YAML 1.1 takes the word "on" for true.
    assert set(workflow[True]) == {"pull_request", "push", "schedule"}
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command.split()[0] for command in commands] == ["python", "pytest"]
    assert not any("\n" in command for command in commands)
