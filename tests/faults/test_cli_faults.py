"""The console script among hostile mechanisms, modules, files and outputs.

One invariant for all: exit code 1 only with a refutation on record, which is a verdict
REFUTED in what was printed, or a witness in its file; 0 only with the verdict
NOT_REFUTED; else 2, 3 or 130, and then one sentence or more on standard error, and no
traceback. What is not sound here was found by planting: let `Command.invoke` pass on
exceptions, and the first mechanisms end with 1.

A few runs belong to the usual suite. The rest is `hard`, and prints its counts:
``pytest -m hard tests/faults/test_cli_faults.py -rP``.
"""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("dpaudit")
PROGRAM = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "dpaudit"]

# Pieces of mechanisms: what a release does, where, and what else the module does.
RAISE = {
    "sys.exit(1)": "import sys; sys.exit(1)",
    "sys.exit(0)": "import sys; sys.exit(0)",
    "exit": "raise SystemExit('REFUTED')",
    "keyboard": "raise KeyboardInterrupt",
    "generator": "raise GeneratorExit",
    "own": "raise type('Own', (BaseException,), {})('x')",
    "click": "import click; raise click.exceptions.Exit(1)",
    "abort": "import click; raise click.Abort",
    "zero": "1 / 0",
    "memory": "raise MemoryError",
    "recursion": "f = lambda: f(); f()",
    "pipe": "raise BrokenPipeError(32, 'Broken pipe')",
    "dpaudit": "from dpaudit import InputError; raise InputError('no')",
    "word": "return 'REFUTED'",
    "nothing": "return None",
    "nan": "return float('nan')",
    "object": "return object()",
    "closing": "import sys; sys.__stdout__.close()",
    "closing its own": "import sys; sys.stdout.close()",
    "output and zero": "print('REFUTED', end=''); 1 / 0",
    "output": 'print(\'"verdict": "REFUTED"\')',
}
WHERE = {
    "always": "True",
    "on the neighbour": "len(data) > 1",
    "at times": "rng.random() < 0.1",
}
PLACES = ("release", "claim", "worst_case", "constructor", "import")
MODULE = """
from dpaudit import Pair, PureDP, Relation

def hostile(data=(), rng=None):
    {raising}

class Mechanism:
    relation = Relation.ADD_REMOVE

    def __init__(self):
        {constructor}

    @property
    def claim(self):
        {claim}
        return PureDP(1.0)

    def release(self, data, *, rng):
        if {condition}:
            return {release}
        return min(max(data.sum(), 0), 1) + rng.laplace()

    def worst_case(self, dimension=None):
        {worst_case}
        return Pair([0.0], [0.0, 1.0])

mechanism = Mechanism
{module}
"""
# Where there is no device that is always full, a pipe that nobody reads stands for it.
FULL = "/dev/full" if os.path.exists("/dev/full") else "closed pipe"
OUTPUTS = ("pipe", "closed pipe", FULL, "closed")


def written(raising, place, condition="True"):
    """Return a module that does something hostile in one place."""
    call = {each: "pass" for each in PLACES} | {"release": "0.0", "import": ""}
    call[place] = "hostile(data, rng) or 0.0" if place == "release" else "hostile()"
    return MODULE.format(
        raising=RAISE[raising],
        condition=condition if place == "release" else "False",
        module=call.pop("import"),
        **call,
    )


def run(folder, *arguments, output="pipe", **options):
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
        done = subprocess.run(
            command,
            cwd=folder,
            env=settings,
            timeout=600,  # a hang; how busy the machine is must not decide
            check=False,
            **files,
            **options,
        )
    finally:
        if output == "/dev/full":
            files["stdout"].close()
        elif output == "closed pipe":
            os.close(writer)
    return done.returncode, done.stdout or "", done.stderr


def verdict_in(stdout):
    """Return the verdict in the JSON object at the end of what was printed."""
    start = stdout.find("{\n")
    try:
        return json.loads(stdout[start:])["verdict"] if start >= 0 else None
    except ValueError:
        return None


def audited(folder, text, *options, output="pipe"):
    """Audit the module; check the invariant; return the exit code."""
    name = f"hostile_{random.Random(text).getrandbits(40):x}"
    (folder / f"{name}.py").write_text(text)
    witness = folder / f"{name}.json"
    code, stdout, stderr = run(
        folder,
        *("audit", f"{name}:mechanism", "--json", "--max-samples", "60"),
        *("--witness", witness.name, *options),
        output=output,
    )
    on_record = verdict_in(stdout)
    if witness.exists():
        assert json.loads(witness.read_text())["format"] == "dpaudit-witness"
    case = f"{options} {output}\n{text}\n{stdout}\n{stderr}"
    assert code in (0, 1, 2, 3, 130), f"{code} {case}"
    assert (code == 1) <= (on_record == "REFUTED"), case
    assert (code == 0) <= (on_record == "NOT_REFUTED"), case
    # What it prints itself comes before.
    own = any(line.startswith("dpaudit: ") for line in stderr.splitlines())
    assert (code > 1) <= own, case
    assert "error of dpaudit" not in stderr, case
    assert "Traceback" not in stderr, case
    return code


CHOSEN = [
    ("sys.exit(1)", "release", "on the neighbour", "pipe", 1),
    ("output and zero", "worst_case", "always", FULL, 2),
    ("closing", "release", "always", "pipe", 2),
    ("closing its own", "release", "always", "pipe", 0),
]


@pytest.mark.parametrize(("raising", "place", "where", "output", "code"), CHOSEN)
def test_hostile_mechanisms(tmp_path, raising, place, where, output, code):
    text = written(raising, place, WHERE[where])
    assert audited(tmp_path, text, output=output) == code


@pytest.mark.parametrize("output", sorted(set(OUTPUTS) - {"pipe"}))
def test_a_verdict_that_nobody_hears_is_none(tmp_path, output):
    code, _, stderr = run(tmp_path, "init", output=output)
    assert code == 2
    assert stderr.startswith("dpaudit: cannot write to standard output")
    assert stderr.count("\n") == 1
    # Where it is closed from the start, nothing is done in vain.
    assert any(tmp_path.iterdir()) == (output != "closed")


def test_help_is_heard_or_not_either(tmp_path):
    code, _, _ = run(tmp_path, "audit", "--help", output="closed pipe")
    assert code == 2


@pytest.mark.hard
def test_many_hostile_mechanisms(tmp_path):
    """All that is hostile, in all places, one in four with an output or a worker lost.

    Whatever else is refuted than what is done on the neighbour alone is a false alarm:
    probability at most 0.001 each, seeded.
    """
    rng = random.Random(0)
    counts: Counter[tuple[str, int]] = Counter()
    for raising in RAISE:
        for place in PLACES:
            for where in WHERE if place == "release" else ["always"]:
                output = rng.choice(OUTPUTS) if rng.random() < 0.25 else "pipe"
                options = ["--workers", "2"] if rng.random() < 0.1 else []
                text = written(raising, place, WHERE[where])
                code = audited(tmp_path, text, *options, output=output)
                # What is done on the neighbour alone gives it away.
                assert code != 1 or where == "on the neighbour", text
                counts[place, code] += 1
    print(f"{sum(counts.values())} hostile mechanisms, by place and exit code:")
    for (place, code), count in sorted(counts.items()):
        print(f"  {place:12} {code:3} {count:4}")
