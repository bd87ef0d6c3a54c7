"""``dpaudit plan`` and ``dpaudit init``."""

import json
from pathlib import Path

import pytest
from cli_cases import assert_refused, refused, run

from dpaudit.audit.planning import plan_audit
from dpaudit.cli import verify

EXAMPLE = Path(verify.__file__).with_name("init.txt").read_text(encoding="utf-8")


def test_a_plan_says_how_many_releases():
    done = run("plan", "--epsilon", "1", "--true", "1.2", "--power", "0.9")
    assert done.exit_code == 0
    samples = plan_audit(1.0, 1.2).samples
    assert f"laplace: about {samples:,} releases a side refute" in done.stdout
    assert "randomised-response: about" in done.stdout
    assert "gaussian" not in done.stdout
    assert "1.2 in truth" in done.stdout


def test_a_plan_as_json():
    done = run(
        *("plan", "--epsilon", "1", "--true", "2", "--delta", "1e-5", "--json"),
        *("--mechanism", "gaussian", "--power", "0.5", "--confidence", "0.9"),
    )
    plan = plan_audit(1.0, 2.0, delta=1e-5, model="gaussian", power=0.5, confidence=0.9)
    assert json.loads(done.stdout) == [plan.to_dict()]
    assert plan.to_dict()["claim"]["text"] == "ApproxDP(epsilon=1.0, delta=1e-05)"
    done = run("plan", "--epsilon", "1", "--true", "2", "--delta", "1e-5", "--json")
    models = [plan["model"] for plan in json.loads(done.stdout)]
    assert models == ["laplace", "gaussian", "randomised-response"]


ERRORS = {
    ("--true", "1"): "the true epsilon must be > 1",
    ("--true", "2", "--mechanism", "laplac"): "did you mean 'laplace'",
    ("--true", "2", "--mechanism", "gaussian"): "needs delta > 0",
    ("--true", "2", "--power", "2"): "power must be in (0, 1)",
}
test_errors_are_one_sentence = refused(ERRORS, "plan", "--epsilon", "1")


def test_the_example_is_written(tmp_path, monkeypatch):
    """That it passes is seen in tests/project/test_pages.py."""
    monkeypatch.chdir(tmp_path)
    done = run("init")
    assert done.exit_code == 0
    assert done.stdout == (
        "wrote test_my_mechanism.py: run pytest test_my_mechanism.py\n"
    )
    assert Path("test_my_mechanism.py").read_text(encoding="utf-8") == EXAMPLE


def test_a_folder_gets_a_file_of_the_usual_name(tmp_path):
    assert run("init", str(tmp_path)).exit_code == 0
    assert (tmp_path / "test_my_mechanism.py").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no/such/test_it.py", "No such file or directory"),
        ("test_it.txt", "must end in .py"),
        ("test_it.py", "exists, and is not overwritten"),
    ],
)
def test_wrong_places_are_named(tmp_path, name, problem):
    (tmp_path / "test_it.py").write_text("precious")
    assert_refused(run("init", str(tmp_path / name)), problem)
    assert (tmp_path / "test_it.py").read_text() == "precious"
