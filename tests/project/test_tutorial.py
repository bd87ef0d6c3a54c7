"""The tutorial is true: its files, commands and outputs, one after the other.

So is the page on clusters, as far as this machine is one.
"""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]

# A checkout may have been installed before it declared the plugin.
INSTALLED = bool(entry_points(group="pytest11", name="dpaudit"))
PYTEST = ["-m", "pytest", *([] if INSTALLED else ["-p", "dpaudit.pytest_plugin"])]
PROGRAMS = {"python": [], "dpaudit": ["-m", "dpaudit"], "pytest": PYTEST}


def blocks(page):
    """The pieces of code of a page, and their kinds."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


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


def follow(page, folder):
    """Do what a page says, and return how many of its outputs were compared."""
    output = ""
    compared = 0
    for kind, text in blocks(page):
        if kind == "sh":
            output = "".join(run(line, folder) for line in text.splitlines())
        elif kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name, "each piece of code is a file"
            (folder / name[1]).write_text(text, encoding="utf-8")
        elif output:  # before the first command stands what is not run: the install
            assert masked(text) == masked(output)
            compared += 1
    return compared


def test_the_tutorial_prints_what_it_shows(tmp_path):
    assert follow("tutorial", tmp_path) == 6


def test_the_page_on_clusters_prints_what_it_shows(tmp_path):
    assert follow("clusters", tmp_path) == 1
    if find_spec("distributed"):
        assert "NOT_REFUTED" in run("python on_dask.py", tmp_path)


def test_the_first_audit_has_ten_lines():
    code = next(text for kind, text in blocks("tutorial") if kind == "python")
    lines = [line for line in code.splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= 10
