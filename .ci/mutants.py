r"""Plant small faults in the code, one at a time, and see which tests notice.

``make mutants`` does all three steps:

    python .ci/mutants.py map                     # once: which test executes which line
    python .ci/mutants.py draw --count 200 --seed 0 > build/mutants/drawn.json
    python .ci/mutants.py run build/mutants/drawn.json

A mutant is a place in a file and what stands there instead: ``{"file": ..., "old": ...,
"new": ..., "line": ...}``; where there is no line, `old` occurs once in the file. Those
that are drawn come from the syntax trees: a comparison, an operator or a condition
turned round, a number moved, a statement left out. Faults that somebody thought of
can be written to such a file by hand.

For each mutant the tests that execute its line are run, the cheapest first, then the
others of their files (which share fixtures with them), until one fails: in a process
that is forked after the large libraries were imported, in a copy of the checkout.
``killed`` is one that a test noticed, or that made the tests run for much longer than
they should; ``SURVIVED`` is a gap in the tests, or a change that changes nothing, and
``UNREACHED`` a line that no test executes. ``--all`` goes on after the first failure,
for a matrix of which tests notice what (build/mutants/matrix.json).
"""

import argparse
import ast
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkout import ROOT, copied

BUILD = ROOT / "build" / "mutants"
ROOMS = ("src/dpaudit", "algorithms", "attacks", "audit", "reports")
NOT_CODE = ("third_party", "checks", "__init__.py", "__main__.py")
SLACK = 10.0  # how much longer than usual tests may take, in times, ...
GRACE = 60.0  # ... and in seconds
REST = 60.0  # seconds at most for tests that may execute a line by a shared fixture
PRELOADED = (
    "numpy",
    "scipy.stats",
    "scipy.optimize",
    "pandas",
    "statsmodels.stats.proportion",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.discriminant_analysis",
    "dp_accounting.pld.privacy_loss_distribution",
    "hypothesis",
    "mpmath",
    "jinja2",
    "matplotlib.figure",
    "click.testing",
    "pytest",
)

PYTEST = ["-n", "auto", "--dist", "loadfile"]

Mutant = dict[str, Any]


# --- which test executes which line: a plugin of pytest, in every worker ---

SETTINGS = """\
[run]
source = {rooms}
omit = */audit/checks/*
data_file = {build}/coverage/data
parallel = true
sigterm = true
context = ${{DPAUDIT_TEST-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, \
couldnt-parse, no-ctracer, already-imported
"""


def _used() -> float:
    return sum(os.times()[:4])


class Recorder:
    """Tells coverage which test runs, and notes the processor time of each."""

    def __init__(self) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        self._times = (BUILD / f"times-{worker}.jsonl").open("a", encoding="utf-8")

    def pytest_runtest_protocol(self, item: Any) -> None:
        import coverage

        os.environ["DPAUDIT_TEST"] = item.nodeid
        measured = coverage.Coverage.current()
        if measured is not None:
            measured.switch_context(item.nodeid)
        self._before = _used()

        self._passed = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._passed &= not report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self._passed:
            self._times.write(json.dumps([nodeid, _used() - self._before]) + "\n")
            self._times.flush()


def pytest_configure(config: Any) -> None:
    """Record in workers, not in the process that only hands out work."""
    if os.environ.get("COVERAGE_PROCESS_START") and (
        hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    ):
        config.pluginmanager.register(Recorder())


def make_map(arguments: list[str]) -> None:
    """Run the tests under coverage, and write the map."""
    import coverage

    shutil.rmtree(BUILD, ignore_errors=True)
    (BUILD / "coverage").mkdir(parents=True)
    settings = BUILD / "coveragerc"
    rooms = ",".join(str(ROOT / room) for room in ROOMS)
    settings.write_text(SETTINGS.format(rooms=rooms, build=BUILD), encoding="utf-8")
    environment = {
        **os.environ,
        "COVERAGE_PROCESS_START": str(settings),
        "PYTHONPATH": f"{ROOT / '.ci'}{os.pathsep}{ROOT / 'src'}",
    }
    command = (sys.executable, "-m", "pytest", "-p", "mutants", "-q", *arguments)
    subprocess.run(command, cwd=ROOT, env=environment, check=False)
    measured = coverage.Coverage(config_file=str(settings))
    measured.combine([str(BUILD / "coverage")])
    data = measured.get_data()
    names: dict[str, int] = {}
    lines: dict[str, dict[int, list[int]]] = {}
    for file in data.measured_files():
        found: dict[int, list[int]] = {}
        for line, contexts in data.contexts_by_lineno(file).items():
            tests = {context.replace("|", "") for context in contexts} - {""}
            if tests:
                found[line] = sorted(names.setdefault(x, len(names)) for x in tests)
        path = Path(file).resolve().relative_to(ROOT)
        lines[str(path)] = {**lines.get(str(path), {}), **found}
    times: dict[str, float] = {}
    for each in BUILD.glob("times-*.jsonl"):
        for line in each.read_text(encoding="utf-8").splitlines():
            nodeid, seconds = json.loads(line)
            times[nodeid] = seconds
    written = {"tests": list(names), "times": times, "lines": lines}
    (BUILD / "map.json").write_text(json.dumps(written), encoding="utf-8")
    print(f"{len(times)} tests, {sum(times.values()):.0f} s of processor time")


# --- mutants ---

SWAPPED: dict[type, type] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def mutated(node: Any) -> Iterator[tuple[str, ast.AST]]:
    """Return the faults that a node can get: in words, and what stands there then."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            yield "comparison", _but(node, ops=[SWAPPED[type(op)]()])
        case ast.BoolOp() | ast.BinOp() if type(node.op) in SWAPPED:
            if not _is_text(node):
                yield "operator", _but(node, op=SWAPPED[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield "sign", node.operand
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "condition", ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(value * 2 if value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in EXCHANGED:
            yield "call", _but(node, func=ast.Name(EXCHANGED[name]))
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield "left out", ast.Pass()
        case ast.Return(value=ast.expr()):
            yield "returned", ast.Return(ast.Constant(None))


def _but(node: Any, **changes: Any) -> ast.AST:
    """Return a node with other fields."""
    return type(node)(**(dict(ast.iter_fields(node)) | changes))


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in ast.walk(node)
    )


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of function bodies; not types, defaults, or messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not (
            isinstance(node, ast.Call)
        ):
            continue
        if isinstance(node, ast.Raise) and name == "exc":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from _places(child)


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    text = path.read_bytes()
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]

    def source(node: Any) -> str:
        begin = starts[node.lineno - 1] + node.col_offset
        return text[begin : starts[node.end_lineno - 1] + node.end_col_offset].decode()

    found: dict[Any, Mutant] = {}
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in _places(function):
            for kind, new in mutated(node):
                place: Any = node.test if kind == "condition" else node
                fresh = ast.unparse(ast.fix_missing_locations(new))
                fresh = f"({fresh})" if isinstance(new, ast.expr) else fresh
                mutant = {
                    "file": str(path.relative_to(ROOT)),
                    "line": place.lineno,
                    "column": place.col_offset,
                    "old": source(place),
                    "new": fresh,
                    "kind": kind,
                }
                found[place.lineno, place.col_offset, kind, mutant["old"]] = mutant
    return list(found.values())


def draw(count: int, seed: int) -> list[Mutant]:
    """Return mutants of all rooms, from each as many as it has places for."""
    everything = [
        mutant
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if not any(word in path.parts for word in NOT_CODE)
        and not any(each.is_symlink() for each in path.parents)
        for mutant in mutants_of(path)
    ]
    chosen = random.Random(seed).sample(everything, min(count, len(everything)))
    return sorted(chosen, key=lambda m: (m["file"], m["line"], m["column"]))


def planted(text: str, mutant: Mutant) -> tuple[str, int]:
    """Return a file with a mutant in it, and the line where it stands.

    Raises
    ------
    ValueError
        If the file is not that of which the mutant was made.
    """
    old, new = mutant["old"], mutant["new"]
    if "column" in mutant:
        lines = text.encode().splitlines(keepends=True)
        start = len(b"".join(lines[: mutant["line"] - 1])) + mutant["column"]
        before, behind = text.encode()[:start], text.encode()[start:]
        if not behind.startswith(old.encode()):
            raise ValueError("the file is another one")
        changed = before + new.encode() + behind[len(old.encode()) :]
        return changed.decode(), mutant["line"]
    if text.count(old) != 1:
        raise ValueError(f"{text.count(old)} places")
    line = text[: text.index(old)].count("\n") + 1
    return text.replace(old, new), line


# --- running them ---


class Chosen:
    """A plugin that runs some tests, in an order."""

    def __init__(self, nodeids: list[str]) -> None:
        self._order = {nodeid: place for place, nodeid in enumerate(nodeids)}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order),
            key=lambda item: self._order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}: not collected")


class Suite:
    """The tests that execute a line, as the map has them."""

    def __init__(self) -> None:
        written = json.loads((BUILD / "map.json").read_text(encoding="utf-8"))
        self._tests, self.times = written["tests"], written["times"]
        self._lines = written["lines"]

    def some(self, count: int) -> list[str]:
        """Return a few tests, from everywhere."""
        cheap = sorted(self.times, key=lambda name: self.times[name])
        return sorted(cheap[:: max(len(cheap) * 9 // (10 * count), 1)][:count])

    def of(self, file: str, line: int, last: int) -> list[str]:
        """Return them, those of the cheapest files first.

        Of what is executed on import alone, these are the tests that execute anything
        in that file.
        """
        known = self._lines.get(file, {})
        found: set[int] = set()
        for each in range(line, last + 1):
            found.update(known.get(str(each), ()))
        if not found:
            found = {test for tests in known.values() for test in tests}
        first = {self._tests[i] for i in found} & self.times.keys()
        files = {name.partition("::")[0] for name in first}
        # What a fixture executes is told of the first test that asks for it alone.
        rest = {x for x in self.times if x.partition("::")[0] in files} - first
        behind, left = [], REST
        for name in self._in_order(rest, file):
            left -= self.times[name]
            if left >= 0:
                behind.append(name)
        return [*self._in_order(first, file), *behind]

    def _in_order(self, names: Iterable[str], file: str) -> list[str]:
        """Return tests, those in the cheapest files first."""
        files: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names, key=lambda name: self.times[name]):
            files[name.partition("::")[0]].append(name)
        stem = Path(file).stem.removeprefix("_")

        def cost(path: str) -> tuple[bool, float]:
            return stem not in path, sum(self.times[name] for name in files[path])

        return [name for path in sorted(files, key=cost) for name in files[path]]


@dataclass
class Attempt:
    """Tests that run in a copy of the checkout, in a process that was forked."""

    clone: Path
    tests: list[str]
    everything: bool
    limit: float

    def __post_init__(self) -> None:
        self._said = self.clone.with_suffix(".json")
        self._said.unlink(missing_ok=True)
        self.began = time.monotonic()
        sys.stdout.flush()
        self._child = os.fork()
        if self._child == 0:
            try:
                self._run()
            finally:
                os._exit(0)

    def _run(self) -> None:
        os.setsid()
        log = os.open(self.clone.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(self.clone)
        os.environ["PYTHONPATH"] = str(self.clone / "src")
        sys.path.insert(0, str(self.clone / "src"))
        import pytest

        chosen = Chosen(self.tests)
        files = dict.fromkeys(test.partition("::")[0] for test in self.tests)
        files = dict.fromkeys(filter(os.path.exists, files))  # if the map is older
        arguments = ["-q", "-p", "no:cacheprovider", "--tb=no", "-n", "0"]
        arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # PRELOADED
        arguments += [] if self.everything else ["-x"]
        code = pytest.main([*arguments, *files], plugins=[chosen])
        if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED) and not chosen.failed:
            chosen.failed.append(f"exit code {int(code)}")
        self._said.write_text(json.dumps(chosen.failed), encoding="utf-8")

    def outcome(self) -> list[str]:
        """Wait until it has ended, and return what failed."""
        while not self.ended():
            time.sleep(0.02)
        return self.failed

    def ended(self) -> bool:
        """Say whether it has, of itself or since it takes too long."""
        if os.waitpid(self._child, os.WNOHANG)[0]:
            there = self._said.exists()
            self.failed = json.loads(self._said.read_text()) if there else ["a crash"]
            return True
        if time.monotonic() - self.began > self.limit:
            os.killpg(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self.failed = ["took too long"]
            return True
        return False


def run(mutants: list[Mutant], everything: bool, jobs: int) -> None:
    """Try all mutants, print what became of each, and the share that was noticed."""
    for module in PRELOADED:
        __import__(module)
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder:
        free = [Path(folder) / f"clone{i}" for i in range(jobs)]
        for clone in free:
            copied(clone)
        if failed := Attempt(free[0], suite.some(20), True, 10 * GRACE).outcome():
            sys.exit(f"without any mutant these fail: {failed}")
        running: list[tuple[Mutant, str, Attempt]] = []
        waiting = mutants[::-1]
        while waiting or running:
            while waiting and free:
                mutant = waiting.pop()
                clone = free.pop()
                path = clone / mutant["file"]
                text = path.read_text(encoding="utf-8")
                try:
                    changed, line = planted(text, mutant)
                    compile(changed, mutant["file"], "exec")
                except (ValueError, SyntaxError) as error:
                    _tell(mutant, f"NOT PLANTED ({error})", [])
                    free.append(clone)
                    continue
                tests = suite.of(mutant["file"], line, line + mutant["old"].count("\n"))
                if not tests:
                    _tell(mutant, "UNREACHED", [])
                    free.append(clone)
                    continue
                path.write_text(changed, encoding="utf-8")
                limit = SLACK * sum(suite.times[test] for test in tests) + GRACE
                tried = Attempt(clone, tests, everything, limit)
                running.append((mutant, text, tried))
            time.sleep(0.02)
            for each in list(running):
                mutant, text, tried = each
                if tried.ended():
                    (tried.clone / mutant["file"]).write_text(text, encoding="utf-8")
                    state = "killed" if tried.failed else "SURVIVED"
                    _tell(mutant, state, tried.failed, time.monotonic() - tried.began)
                    running.remove(each)
                    free.append(tried.clone)
    (BUILD / "matrix.json").write_text(json.dumps(mutants, indent=1), encoding="utf-8")
    states = Counter(mutant["state"].partition(" (")[0] for mutant in mutants)
    print(", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    print(f"{states['killed']} of {len(mutants)} were noticed")


def _tell(mutant: Mutant, state: str, failed: list[str], seconds: float = 0.0) -> None:
    """Note what became of a mutant, and print it."""
    mutant |= {"state": state, "by": failed}
    place = f"{mutant['file']}:{mutant.get('line', '')}"
    change = f"{mutant['old']!r:.60} -> {mutant['new']!r:.60}"
    print(f"{state:9} {seconds:5.0f} s  {place}  {change}  {failed[:1]}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("map").add_argument("pytest", nargs="*", default=PYTEST)
    drawing = steps.add_parser("draw")
    drawing.add_argument("--count", type=int, default=200)
    drawing.add_argument("--seed", type=int, default=0)
    trying = steps.add_parser("run")
    trying.add_argument("mutants", type=Path)
    trying.add_argument("--all", action="store_true", dest="everything")
    trying.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    if given.step == "map":
        make_map(given.pytest)
    elif given.step == "draw":
        json.dump(draw(given.count, given.seed), sys.stdout, indent=1)
    else:
        run(json.loads(given.mutants.read_text()), given.everything, given.jobs)
