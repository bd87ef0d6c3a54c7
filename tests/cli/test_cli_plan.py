import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from cli_cases import assert_refused, refused, run, run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.algorithms.estimators import recommendation
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.audit.planning import plan_audit
from dpaudit.cli import verify
from dpaudit.neighbours import Relation

EXAMPLE = Path(verify.__file__).with_name("init.txt").read_text(encoding="utf-8")


def test_a_plan_says_how_many_releases_in_words_and_json():
    done = run("plan", "--epsilon", "1", "--true", "1.2", "--power", "0.9")
    assert done.exit_code == 0
    samples = plan_audit(1.0, 1.2).samples
    assert f"laplace: about {samples:,} releases a side refute" in done.stdout
    assert "randomised-response: about" in done.stdout
    assert "gaussian" not in done.stdout
    assert "1.2 in truth" in done.stdout
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
    ("--true", "2", "--mechanism", "laplac"): "unknown --mechanism 'laplac'; did you",
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


recommended = run_of("recommend")

KNOWN = ("--d", "20", "--k", "3", "--epsilon", "1", "--delta", "1e-6")


def test_it_prints_what_the_function_finds():
    done = recommended(*KNOWN, "--n", "10000", "--gap", "0.5", "--row-norm", "2")
    known = {"d": 20, "k": 3, "epsilon": 1.0, "delta": 1e-6}
    best = recommend(**known, n=10_000, gap=0.5, row_norm=2.0).choices[0]
    shown = f"{best.error:.3g} {best.low:.3g} to {best.high:.3g}".split()
    assert done.stdout.splitlines()[1].split() == [best.mechanism, *shown]
    assert "measured: now, 51 releases" in done.stdout
    done = recommended(*KNOWN, "--relation", "replace-one", "--json")
    found = recommend(**known, relation=Relation.REPLACE_ONE)
    assert json.loads(done.stdout) == json.loads(json.dumps(asdict(found)))
    assert "note: neither n nor a gap is given" in recommended(*KNOWN).stdout


def test_what_comes_of_no_bound_is_a_second_table():
    known = (*KNOWN, "--n", "10000", "--spectrum", "9,4,3,0.3")
    for bound, first in (("10", "mechanism"), ("none", "without a bound")):
        lines = recommended(*known, "--row-norm", bound).stdout.splitlines()
        (head,) = (x for x in lines if x.startswith("without a bound"))
        assert lines[0].startswith(first)
        other = lines[lines.index(head) + 1].split()[0]
        assert other == "residual-step-pca@private"


BAD_OPTIONS = {
    (
        "--row-norm",
        "no",
    ): "Error: Invalid value for '--row-norm': 'no' is not a number, nor none",
    ("--row-norm", "none"): "row_norm may be None only with n and a spectrum",
    ("--k", "20"): "k must be an integer >= 1 and <= 19, got 20",
    ("--spectrum", "0.5,a"): "Error: Invalid value for '--spectrum': '0.5,a' is not",
}
test_bad_options_are_named = refused(BAD_OPTIONS, "recommend", *KNOWN)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_order_is_that_of_a_column_that_is_shown(data):
    d = data.draw(st.integers(2, 30))
    k = data.draw(st.integers(1, min(d - 1, 10)))
    delta = data.draw(st.sampled_from([0.0, 1e-8, 1e-6]))
    known = ["--d", d, "--k", k, "--epsilon", data.draw(st.floats(0.1, 10))]
    n = ["--n", data.draw(st.integers(1000, 10**6))]
    spectrum = ",".join(str(1 / (i + 2) ** 2) for i in range(k + 1))
    rest = [[], n, [*n, "--gap", 0.5 / k], [*n, "--spectrum", spectrum]]
    more = data.draw(st.sampled_from(rest))
    drawn = np.random.default_rng(data.draw(st.integers(0, 99)))
    with pytest.MonkeyPatch.context() as patch:  # of other errors as well
        patch.setattr(recommendation, "expected", lambda *_, **__: drawn.random(3))
        done = recommended(*map(str, [*known, "--delta", delta, *more]))
    head, *lines = done.stdout.splitlines()
    assert ("at worst" in head) == (len(more) <= 2)
    shown = [x for x in lines if not x.startswith(("note:", "measured:"))]
    tables = [[]]
    for line in shown:
        if line.startswith("without a bound"):
            tables.append([])
        else:
            tables[-1].append(float(line.split()[1]))
    assert tables == [sorted(column) for column in tables]
    assert len(tables) == 1 + ("--spectrum" in more)
    assert len(tables[0]) >= 3
