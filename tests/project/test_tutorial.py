"""The tutorial is true: its files, commands and outputs, one after the other."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)

# A checkout may have been installed before it declared the plugin.
INSTALLED = bool(entry_points(group="pytest11", name="dpaudit"))
PYTEST = ["-m", "pytest", *([] if INSTALLED else ["-p", "dpaudit.pytest_plugin"])]
PROGRAMS = {"python": [], "dpaudit": ["-m", "dpaudit"], "pytest": PYTEST}


def masked(text):
    """A text without what differs each time: seconds, and fresh randomness."""
    text = re.sub(r"\d+\.\d+ ?s\b", "* s", text)
    fresh = re.compile(r"^.*(?:fresh releases|\(seed \d).*$", re.MULTILINE)
    return fresh.sub(lambda line: re.sub(r"\d+", "*", line[0]), text)


def run(line, folder):
    """Run a line of a shell block in a process of its own; return what it printed."""
    command, _, expected = line.partition("   # exit code ")
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), "."])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == int(expected or "0"), f"{line}\n{done.stdout}"
    return done.stdout


@pytest.mark.skipif(os.name == "nt", reason="the shell of the page is that of POSIX")
def test_the_tutorial_prints_what_it_shows(tmp_path):
    output = ""
    compared = 0
    for kind, text in BLOCKS:
        if kind == "sh":
            output = "".join(run(line, tmp_path) for line in text.splitlines())
        elif kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name, "each piece of code is a file"
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif output:  # before the first command stands what is not run: the install
            assert masked(text) == masked(output)
            compared += 1
    assert compared == 6


def test_the_first_audit_has_ten_lines():
    code = next(text for kind, text in BLOCKS if kind == "python")
    lines = [line for line in code.splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= 10
