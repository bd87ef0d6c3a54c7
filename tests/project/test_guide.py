"""The guide to auditing is true: every command and every piece of code in it runs."""

import contextlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.pytest_plugin import BUDGETS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "auditing.md"
WORKFLOW = ROOT / "docs" / "ci" / "github-actions.yml"
TEXT = GUIDE.read_text(encoding="utf-8")

# A checkout may have been installed before it declared the plugin.
INSTALLED = bool(entry_points(group="pytest11", name="dpaudit"))
PLUGIN = () if INSTALLED else ("-p", "dpaudit.pytest_plugin")

# As it was installed, beside the interpreter.
SCRIPT = str(Path(sys.executable).with_name("dpaudit"))

MODULES = ("noisy_sum",)


@dataclass(frozen=True)
class Block:
    """A piece of code of the guide."""

    kind: str
    text: str

    @property
    def file(self):
        """The name of the file that it is to be saved as, if it says so."""
        named = re.match(r"# (\w+\.py)\n", self.text)
        return named and named[1]


def blocks():
    found = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
    return [Block(*parts) for parts in found]


def run_command(line):
    """Run a line of a shell block; return its output."""
    command, _, expected = line.partition("   # exit code ")
    program, *arguments = shlex.split(command)
    if arguments[:1] == ["verify"]:
        # By the script itself, on whose path the current folder is not.
        done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)
        code, output = done.returncode, done.stdout + done.stderr
    elif program == "dpaudit":
        # Neither changes a verdict, nor anything else that is looked at here.
        if arguments[0] == "audit" and "--layer" not in arguments:
            arguments += ["--refine", "0", "--workers", "1"]
        result = CliRunner().invoke(main, arguments)
        code, output = result.exit_code, result.output
    else:
        assert program == "pytest", line
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *PLUGIN, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        code, output = run.returncode, run.stdout
    assert code == int(expected or "0"), f"{line}\n{output}"
    return output


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def test_everything_in_the_guide_runs(elsewhere):
    names: dict[str, object] = {}
    output = ""
    for block in blocks():
        if block.kind == "sh":
            output = "".join(map(run_command, block.text.splitlines()))
        elif block.kind == "text":
            for line in block.text.splitlines():
                assert line in output, line
        elif block.file:
            (elsewhere / block.file).write_text(block.text)
            importlib.invalidate_caches()
        else:
            assert block.kind == "python"
            with contextlib.redirect_stdout(None):
                exec(compile(block.text, str(GUIDE), "exec"), names)
    outcomes = {
        name: names[name].refuted  # type: ignore[attr-defined]
        for name in ("refuted", "result", "estimator", "in_a_process")
    }
    assert outcomes.pop("refuted")
    assert not any(outcomes.values())
    assert os.path.exists("build/privacy.json")


def test_the_budgets_are_those_of_the_plugin():
    for name, size in BUDGETS.items():
        assert re.search(rf"`{name}`\s+\({size:,}\)", TEXT)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (GUIDE.parent / target).exists(), target


def test_the_workflow_uses_what_the_plugin_has():
    text = WORKFLOW.read_text(encoding="utf-8")
    (command,) = re.findall(r"run: >-\n((?: {10}.+\n)+)", text)
    words = set(command.split())
    assert {"-m", "dp_audit", "--dp-report", "--dp-seed", "--dp-profile"} <= words
    assert set(re.findall(r"'(\w+)'", text)) == {"schedule", "full", "standard", "0"}


def test_the_workflow_is_a_workflow():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with asv")
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    # YAML 1.1 takes the word "on" for true.
    assert set(workflow[True]) == {"pull_request", "push", "schedule"}
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert [command.split()[0] for command in commands] == ["python", "pytest"]
    assert not any("\n" in command for command in commands)
