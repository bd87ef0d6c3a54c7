"""The action for GitHub: its steps are run as a runner would, without the network."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "actions" / "audit"
TEXT = (FOLDER / "action.yml").read_text(encoding="utf-8")
ACTION = yaml.safe_load(TEXT)
STEPS = ACTION["runs"]["steps"]
CODE = """
def right(data, rng):
    return data.sum() + rng.laplace()


def wrong(data, rng):
    return data.sum() + rng.laplace(scale=0.5)
"""
PYTHON = """#!/bin/sh
case "$1 $2" in
    "-m pip") printf '%s\\n' "$@" > "$PIPPED" ;;
    *) exec {python} "$@" ;;
esac
"""


@pytest.fixture
def step(tmp_path):
    """Run a step with inputs; return it, what it put out, and its summary."""
    places = {name: tmp_path / name for name in ("OUT", "SUMMARY", "PIPPED")}
    programs = tmp_path / "bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    for name, text in {
        "python": PYTHON.format(python=python),
        "dpaudit": f'#!/bin/sh\nexec {python} -m dpaudit "$@"\n',
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "code.py").write_text(CODE)

    def run(name, **inputs):
        given = {key: each.get("default", "") for key, each in ACTION["inputs"].items()}
        given |= {key.replace("_", "-"): value for key, value in inputs.items()}
        (this,) = (each for each in STEPS if each["name"] == name)
        filled = {
            key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], value)
            for key, value in this["env"].items()
        }
        environment = os.environ | filled
        environment |= {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PIPPED": str(places["PIPPED"]),
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_OUTPUT": str(places["OUT"]),
            "GITHUB_STEP_SUMMARY": str(places["SUMMARY"]),
        }
        (tmp_path / "step.sh").write_text(this["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        read = [path.read_text() if path.exists() else "" for path in places.values()]
        return done, *read

    return run


def test_every_input_is_used_and_none_is_executed():
    used = re.findall(r"\$\{\{[^}]*inputs\.([\w-]+)", TEXT)
    assert set(used) == set(ACTION["inputs"])
    for each in STEPS:
        assert ("uses" in each) != ("run" in each)
        assert "${{" not in each.get("run", "")
        # What a step is given, it reads.
        for name in each.get("env", {}):
            assert name in each["run"] or name.endswith("NUM_THREADS")
    outputs = {f"${{{{ steps.audit.outputs.{name} }}}}" for name in ACTION["outputs"]}
    assert {each["value"] for each in ACTION["outputs"].values()} == outputs
    for each in STEPS:
        # What is kept is kept of audits that fail, and of no others.
        assert each.get("if", "${{ !cancelled()").startswith("${{ !cancelled()")
        assert ("if" in each) == ("uses" in each)


@pytest.mark.parametrize(("name", "status"), [("right", 0), ("wrong", 1)])
def test_it_marks_the_line_that_is_wrong_and_keeps_what_was_found(
    step, tmp_path, name, status
):
    options = '--epsilon 1 --relation add-remove\n--domain "x:0..1" --max-samples 300'
    inputs = {"mechanism": f"code.py:{name}", "options": options, "output": "to keep"}
    done, put, summary, _ = step("Audit", **inputs)
    assert done.returncode == status, done.stderr
    verdict = ("NOT_REFUTED", "REFUTED")[status]
    assert put.splitlines() == [f"verdict={verdict}", "sarif=to keep/audit.sarif"]
    assert summary.splitlines()[0] == summary.splitlines()[-1] + "text" == "~~~~~~text"
    assert f"{name}: {verdict}" in summary
    marked = re.findall("^::(.*?) file=code.py,line=(.*?),", done.stdout, re.MULTILINE)
    assert set(marked) == {(("notice", "2"), ("error", "7"))[status]}
    log = json.loads((tmp_path / "to keep" / "audit.sarif").read_text())
    assert log["runs"][0]["properties"] == {"verdict": verdict}
    kept = {path.name for path in (tmp_path / "to keep").iterdir()}
    both = {"audit.html", "audit.json", "audit.sarif", "junit.xml"}
    assert kept == both | ({"witness.json"} if status else set())
    page = (tmp_path / "to keep" / "audit.html").read_text()
    assert page.count('<p class="lead">') == 2 - status


def test_options_are_words_and_nothing_is_left_of_an_audit_before(step, tmp_path):
    (tmp_path / "build" / "privacy").mkdir(parents=True)
    for name in ("audit.sarif", "audit.json"):
        (tmp_path / "build" / "privacy" / name).write_text('{"verdict": "old"}')
    options = "--epsilon $(touch executed) --relation 'two words'; touch executed"
    done, put, summary, _ = step("Audit", mechanism="code.py:right", options=options)
    assert done.returncode == 2
    assert "'$(touch' is not a valid float" in done.stderr
    assert (put, summary) == ("", "")
    assert not (tmp_path / "executed").exists()
    done, *_ = step("Audit", mechanism="code.py:right", options='"')
    assert "No closing quotation" in done.stderr
    assert done.returncode == 1


def test_it_installs_itself_and_what_the_code_needs(step):
    done, *_, piped = step("Install", install="-r 'my needs.txt' .")
    assert done.returncode == 0, done.stderr
    *command, itself, first, second, third = piped.splitlines()
    assert command == ["-m", "pip", "install"]
    assert Path(itself).resolve() == ROOT
    assert [first, second, third] == ["-r", "my needs.txt", "."]
    *_, piped = step("Install")
    assert len(piped.splitlines()) == 4
