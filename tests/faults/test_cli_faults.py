"""The console script among hostile mechanisms, modules, files and outputs.

Exit code 1 only with the verdict REFUTED in what was printed; 0 only with the verdict
NOT_REFUTED; else 2 and one sentence or more on standard error, and no traceback. What a
mechanism may raise, and where, is in tests/cli/test_exits.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("dpaudit")
PROGRAM = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "dpaudit"]

# A module of which a mechanism does something hostile in one place.
MODULE = """
import sys
from dpaudit import Pair, PureDP, Relation

def hostile():
    {hostile}

class Mechanism:
    relation, claim = Relation.ADD_REMOVE, PureDP(1.0)

    def release(self, data, *, rng):
        if {released}:
            return hostile() or 0.0
        return min(max(data.sum(), 0), 1) + rng.laplace()

    def worst_case(self, dimension=None):
        if {asked}:
            hostile()
        return Pair([0.0], [0.0, 1.0])

mechanism = Mechanism
"""
# Where there is no device that is always full, a pipe that nobody reads stands for it.
FULL = "/dev/full" if os.path.exists("/dev/full") else "closed pipe"
OUTPUTS = ("pipe", "closed pipe", FULL, "closed")


def run(folder, *arguments, output="pipe"):
    """Run the program; return its code, what it printed (if heard), and its errors."""
    files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [*PROGRAM, *arguments]
    if output == "/dev/full":
        files["stdout"] = open("/dev/full", "w")
    elif output == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    elif output == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
        files["stdout"] = writer
    # Buffered, as usual: what is left in a buffer is tried again at the end.
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    settings |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(command, cwd=folder, env=settings, check=False, **files)
    finally:
        if output == "/dev/full":
            files["stdout"].close()
        elif output == "closed pipe":
            os.close(writer)
    return done.returncode, done.stdout or "", done.stderr


@pytest.mark.parametrize(
    ("hostile", "released", "asked", "output", "code", "verdict"),
    [
        ("sys.exit(1)", "len(data) > 1", False, "pipe", 1, "REFUTED"),
        ("print('REFUTED', end=''); 1 / 0", False, True, FULL, 2, None),
        ("sys.__stdout__.close()", True, False, "pipe", 2, None),
        ("sys.stdout.close()", True, False, "pipe", 0, "NOT_REFUTED"),
    ],
    ids=["a leak", "output and an error", "closing", "closing its own"],
)
def test_hostile_mechanisms(tmp_path, hostile, released, asked, output, code, verdict):
    text = MODULE.format(hostile=hostile, released=released, asked=asked)
    (tmp_path / "hostile_module.py").write_text(text)
    options = ("--json", "--max-samples", "60", "--witness", "witness.json")
    found, stdout, stderr = run(
        tmp_path, "audit", "hostile_module:mechanism", *options, output=output
    )
    assert found == code, stderr
    if verdict is None:
        # What the mechanism prints itself comes before.
        assert any(line.startswith("dpaudit: ") for line in stderr.splitlines())
    else:
        assert json.loads(stdout[stdout.find("{\n") :])["verdict"] == verdict
    assert "error of dpaudit" not in stderr
    assert "Traceback" not in stderr
    assert (tmp_path / "witness.json").exists() == (code == 1)


@pytest.mark.parametrize("output", sorted(set(OUTPUTS) - {"pipe"}))
def test_a_verdict_that_nobody_hears_is_none(tmp_path, output):
    code, _, stderr = run(tmp_path, "init", output=output)
    assert code == 2
    assert stderr.startswith("dpaudit: cannot write to standard output")
    assert stderr.count("\n") == 1
    # Where it is closed from the start, nothing is done in vain.
    assert any(tmp_path.iterdir()) == (output != "closed")
