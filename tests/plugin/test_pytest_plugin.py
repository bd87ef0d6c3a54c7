import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from schemas import check

from dpaudit.audit import Witness, verify
from dpaudit.cli import main
from dpaudit.profiles import PROFILES
from dpaudit.pytest_plugin import BUDGETS

pytest_plugins = ["pytester"]

# A checkout may have been installed before it declared the plugin.
INSTALLED = bool(entry_points(group="pytest11", name="dpaudit"))
PLUGIN = () if INSTALLED else ("-p", "dpaudit.pytest_plugin")

SUITE = """
import pytest
from dpaudit import Pair, PureDP
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import Run

FEW = [attack for attack in PORTFOLIO if attack.name == "identity"]
BESIDE = {"claim": PureDP(1.0), "pair": Pair([0.0], [0.0, 1.0])}
OPTIONS = BESIDE | {"run": Run(attacks=FEW)}

def correct(data, rng):
    return data.sum() + rng.laplace()

def leaking(data, rng):
    return data.sum() + rng.laplace(scale=1e-3)

@pytest.mark.dp_audit(budget=20)
def test_correct(auditor):
    assert auditor.assert_dp(correct, **OPTIONS).samples == 20

def test_leaking(auditor):
    auditor.assert_refuted(leaking, **OPTIONS)

@pytest.mark.dp_audit(budget=2)
def test_twice(auditor):
    for name in ("first", "second"):
        auditor.assert_dp(correct, run=Run(attacks=FEW, name=name), **BESIDE)

def test_wrong(auditor):
    auditor.assert_dp(leaking, **OPTIONS)

@pytest.mark.dp_audit(budget=20)
def test_unseen(auditor):
    auditor.assert_refuted(correct, **OPTIONS)

def test_nothing():
    pass
"""


AUDITS = [
    ("test_suite.py::test_correct", "correct", "NOT_REFUTED", True),
    ("test_suite.py::test_leaking", "leaking", "REFUTED", True),
    ("test_suite.py::test_twice", "first", "NOT_REFUTED", True),
    ("test_suite.py::test_twice", "second", "NOT_REFUTED", True),
    ("test_suite.py::test_unseen", "correct", "NOT_REFUTED", False),
    ("test_suite.py::test_wrong", "leaking", "REFUTED", False),
]


@dataclass(frozen=True)
class Session:
    """A session of pytest on `SUITE`."""

    folder: Path
    code: int
    output: str

    @property
    def report(self):
        report = json.loads((self.folder / "out" / "dp.json").read_text())
        check("pytest", report)
        return report


FILES = ("--dp-report", "out/dp.json", "--junitxml", "out/junit.xml")
ALONE = ("-c", os.devnull, "--rootdir=.")  # whatever lies above the folder


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The session of one process: of this one, which is no other thing."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "test_suite.py").write_text(SUITE)
    quiet = ("--capture=sys", "-p", "no:faulthandler", "-p", "no:cacheprovider")
    quiet += ("-W", "ignore:Module already imported")
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        code = pytest.main([*PLUGIN, *FILES, *ALONE, *quiet])
    del sys.modules["test_suite"]
    return Session(folder, code, output.getvalue())


def without_circumstances(report):
    """Return a report without what may differ between two sessions."""
    for audit in report["audits"]:
        audit["seconds"], audit["witness"] = None, Path(audit["witness"] or "").name
    return report


def test_assertions_pass_and_fail(session):
    assert session.code == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 4 passed" in session.output
    for name in ("wrong", "unseen"):
        assert f"FAILED test_suite.py::test_{name} - AssertionError" in session.output
    assert "leaking breaks its claim PureDP(epsilon=1.0)" in session.output
    assert "leaking: REFUTED at confidence 0.999999" in session.output
    assert "correct was expected to break its claim" in session.output
    assert "assertions.py" not in session.output


def test_summary_report_and_witnesses_have_every_audit(session):
    _, summary = session.output.split("differential privacy audits")
    lines = summary.splitlines()[1:8]
    assert [line.split()[:3] for line in lines[:6]] == [
        ["ok" if passed else "FAILED", test, name] for test, name, _, passed in AUDITS
    ]
    assert len({line.index("PureDP") for line in lines[:6]}) == 1
    for line in lines[:6]:
        assert re.search(
            r"PureDP\(epsilon=1.0\)  (not )?refuted +epsilon >= [\d.]+ at delta 0 "
            r" +\d+ releases",
            line,
        )
    assert lines[6].startswith("6 audits: that a true claim is refuted in this")
    assert "<= 6e-06. Not refuted is not proven private." in lines[6]
    report = session.report
    assert report["format"] == "dpaudit-pytest"
    assert report["version"] == 1
    assert (report["profile"], report["seed"]) == ("standard", 0)
    assert tuple(BUDGETS) == PROFILES
    assert list(BUDGETS.values()) == sorted(BUDGETS.values())
    fields = ("test", "name", "verdict", "passed")
    told = [tuple(audit[field] for field in fields) for audit in report["audits"]]
    assert told == AUDITS
    # Seeds belong to the audit and not to the test.
    correct, leaking, *named, unseen, wrong = (a["seed"] for a in report["audits"])
    assert (correct, leaking) == (unseen, wrong)
    assert len({correct, leaking, *named}) == 4
    *_, wrong = session.report["audits"]
    path = Path(wrong["witness"])
    assert path.parent == session.folder / "out" / "dp.witnesses"
    assert list(path.parent.iterdir()) == [path]
    assert str(path) in session.output

    def leaking(data, rng):
        return data.sum() + rng.laplace(scale=1e-3)

    assert verify(Witness.load(path), mechanism=leaking, seed=1).confirmed


def test_the_command_of_a_failure_replays_it_from_anywhere(
    session, tmp_path, monkeypatch
):
    """In a folder that has neither the test nor the witness.

    Power: noise of scale 1/1000 shows in 20 releases with probability > 0.999.
    """
    # Where the variable CI is set, pytest says the whole failure again in its summary.
    (line,) = set(re.findall(r"replay it      (dpaudit verify .+)", session.output))
    program, *arguments = shlex.split(line)
    assert program == "dpaudit"
    assert arguments[-2:] == ["--import-from", str(session.folder)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert "test_suite" not in sys.modules
    done = CliRunner().invoke(main, arguments)
    sys.modules.pop("test_suite", None)
    assert done.exit_code == 1, done.output


def test_workers_change_nothing(session, tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, *FILES, *ALONE, "-n", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    parallel = Session(tmp_path, done.returncode, done.stdout)
    assert parallel.code == session.code
    assert "differential privacy audits" in parallel.output
    assert parallel.output.count("6 audits: ") == 1
    told = without_circumstances(parallel.report)
    assert told == without_circumstances(session.report)
    *_, wrong = parallel.report["audits"]
    assert Path(wrong["witness"]).is_file()
    for done in (session, parallel):
        cases = ElementTree.parse(done.folder / "out" / "junit.xml").iter("testcase")
        properties = {
            case.get("name"): [
                json.loads(p.get("value", "")) for p in case.iter("property")
            ]
            for case in cases
        }
        twice = [audit["name"] for audit in properties["test_twice"]]
        assert twice == ["first", "second"]
        assert properties["test_nothing"] == []
        assert sum(map(len, properties.values())) == 6


# What needs no audit
@pytest.fixture
def settings(pytester):
    """Return a function that runs pytest where tests look at their auditor."""

    def run(source, *options):
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess(*PLUGIN, *options)

    return run


def test_the_command_line_sets_profile_and_seed(settings):
    done = settings(
        """
        def test_it(auditor):
            assert auditor.budget == "full"
            assert (auditor.seed, auditor.confidence) == (7, 1 - 1e-6)
            assert auditor.budgets["full"] == 500_000
        """,
        *("--dp-profile", "full", "--dp-seed", "7"),
    )
    done.assert_outcomes(passed=1)


def test_the_nearest_marker_counts(settings):
    done = settings(
        """
        import pytest

        pytestmark = pytest.mark.dp_audit(budget="quick", confidence=0.9)

        def test_module(auditor):
            assert (auditor.budget, auditor.confidence) == ("quick", 0.9)

        @pytest.mark.dp_audit(budget=5)
        def test_number(auditor):
            assert (auditor.budget, auditor.confidence) == (5, 0.9)

        @pytest.mark.dp_audit(budget=5)
        class TestClass:
            def test_class(self, auditor):
                assert auditor.budget == 5

            @pytest.mark.dp_audit(budget="full", confidence=0.8)
            def test_profile(self, auditor):
                assert auditor.budget == "full"
                assert auditor.confidence == 0.8
        """,
        "--strict-markers",
    )
    done.assert_outcomes(passed=4)


@pytest.mark.parametrize("marker", ["samples=5", "'quick'"])
def test_a_marker_with_something_else_is_an_error(settings, marker):
    done = settings(
        f"""
        import pytest

        @pytest.mark.dp_audit({marker})
        def test_it(auditor):
            pass
        """
    )
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*dp_audit takes budget, confidence*"])


MIXED = """
    def test_audit(auditor):
        pass

    def test_other():
        pass
"""


def test_audits_are_selected_by_their_marker(settings):
    settings(MIXED, "-m", "dp_audit", "-v").stdout.fnmatch_lines(
        ["*test_audit PASSED*"]
    )
    settings(MIXED, "-m", "not dp_audit").assert_outcomes(passed=1, deselected=1)
    settings(MIXED, "-k", "audit and not other").assert_outcomes(passed=1, deselected=1)


def test_a_report_without_audits_is_empty(settings, pytester):
    done = settings(MIXED, "--dp-report", "empty.json")
    done.assert_outcomes(passed=2)
    assert "differential privacy audits" not in done.stdout.str()
    assert json.loads((pytester.path / "empty.json").read_text())["audits"] == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--dp-profile", "quikc"), "*invalid choice: 'quikc'*"),
        (("--dp-seed", "-1"), "*--dp-seed must be >= 0, got -1*"),
        (("--dp-report", "."), "*--dp-report must be a file, got the folder*"),
    ],
)
def test_wrong_options_are_errors_of_usage(settings, options, problem):
    done = settings(MIXED, *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([problem])


def test_a_pytest_that_audits_nothing_imports_nothing(pytester, monkeypatch):
    """Start-up stays quick for all who have dpaudit and run other tests.

    Plugins of other packages import what they like.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_it():
            loaded = {name.split(".")[0] for name in sys.modules}
            assert "dpaudit" in loaded
            assert not {"numpy", "scipy", "sklearn", "pandas", "click"} & loaded
        """
    )
    alone = ("-p", "dpaudit.pytest_plugin", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*alone).assert_outcomes(passed=1)
