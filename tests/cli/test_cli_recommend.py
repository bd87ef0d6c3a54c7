"""``dpaudit recommend``."""

import json

import pytest
from cli_cases import run_of

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
    assert "measured: " in done.stdout
    assert "note" not in done.stdout


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
        (("--n", "0"), "n must be an integer >= 1"),
        (("--k", "20"), "d must be an integer >= 21, got 20"),
        (("--delta", "-1"), "delta must be"),
        (("--relation", "both"), "'both' is not one of"),
    ],
)
def test_bad_options_are_named(options, problem):
    done = run(*KNOWN, *options)
    assert done.exit_code == 2
    assert problem in done.stderr
