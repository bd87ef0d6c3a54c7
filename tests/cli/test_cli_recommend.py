"""``dpaudit recommend``."""

import json

import numpy as np
import pytest
from cli_cases import run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.algorithms.estimators import recommendation
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.neighbours import Relation

run = run_of("recommend")

KNOWN = ("--d", "20", "--k", "3", "--epsilon", "1", "--delta", "1e-6")


def test_it_prints_what_the_function_finds():
    done = run(*KNOWN, "--n", "10000", "--gap", "0.5", "--row-norm", "2")
    assert done.exit_code == 0
    found = recommend(
        d=20, k=3, epsilon=1.0, delta=1e-6, n=10_000, gap=0.5, row_norm=2.0
    )
    first = done.stdout.splitlines()[1].split()
    best = found.choices[0]
    assert first == [
        best.mechanism,
        *(f"{value:.3g}" for value in (best.error, best.low)),
        "to",
        f"{best.high:.3g}",
    ]
    assert "measured: now, 250 releases" in done.stdout


def test_it_says_what_it_assumed():
    done = run(*KNOWN, "--relation", "replace-one", "--json")
    printed = json.loads(done.stdout)
    found = recommend(d=20, k=3, epsilon=1.0, delta=1e-6, relation=Relation.REPLACE_ONE)
    assert printed["choices"][0]["mechanism"] == found.choices[0].mechanism
    assert printed["notes"] == list(found.notes)
    assert "note: neither n nor a gap is given" in run(*KNOWN).stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--gap", "0.5"), "gap must be from 0 to 0.333333"),
        (("--n", "0"), "n must be an integer >= 4, got 0"),
        (("--k", "20"), "k must be an integer >= 1 and <= 19, got 20"),
        (("--spectrum", "0.5,a"), "'0.5,a' is not numbers with commas between"),
        (("--delta", "-1"), "delta must be"),
        (("--relation", "both"), "'both' is not one of"),
    ],
)
def test_bad_options_are_named(options, problem):
    done = run(*KNOWN, *options)
    assert done.exit_code == 2
    assert problem in done.stderr


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_order_is_that_of_a_column_that_is_shown(data):
    d = data.draw(st.integers(2, 30))
    k = data.draw(st.integers(1, min(d - 1, 10)))
    asked = {"d": d, "k": k, "epsilon": data.draw(st.floats(0.1, 10))}
    asked["delta"] = data.draw(st.sampled_from([0.0, 1e-8, 1e-6]))
    asked["relation"] = data.draw(st.sampled_from(["add-remove", "replace-one"]))
    known = data.draw(st.sampled_from(["nothing", "n", "gap", "spectrum"]))
    if known != "nothing":
        asked["n"] = data.draw(st.integers(1000, 10**6))
    if known == "gap":
        asked["gap"] = data.draw(st.floats(1e-3, 1 / k))
    if known == "spectrum":
        asked["spectrum"] = ",".join(str(1 / (i + 2) ** 2) for i in range(k + 1))
    drawn = np.random.default_rng(data.draw(st.integers(0, 99)))
    with pytest.MonkeyPatch.context() as patch:  # of other errors as well
        patch.setattr(recommendation, "expected", lambda *_, **__: drawn.random(3))
        done = run(*(f"--{name}={value}" for name, value in asked.items()))
    assert done.exit_code == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    shown = [x for x in lines if not x.startswith(("note:", "measured:"))]
    assert ("at worst" in head) == (known in ("nothing", "n"))
    column = [float(line.split()[1]) for line in shown]
    assert column == sorted(column)
    assert len(column) >= 3
