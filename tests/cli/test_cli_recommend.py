"""``dpaudit recommend``."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from cli_cases import refused, run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.algorithms.estimators import recommendation
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.neighbours import Relation

run = run_of("recommend")

KNOWN = ("--d", "20", "--k", "3", "--epsilon", "1", "--delta", "1e-6")


def test_it_prints_what_the_function_finds():
    done = run(*KNOWN, "--n", "10000", "--gap", "0.5", "--row-norm", "2")
    known = {"d": 20, "k": 3, "epsilon": 1.0, "delta": 1e-6}
    best = recommend(**known, n=10_000, gap=0.5, row_norm=2.0).choices[0]
    shown = f"{best.error:.3g} {best.low:.3g} to {best.high:.3g}".split()
    assert done.stdout.splitlines()[1].split() == [best.mechanism, *shown]
    assert "measured: now, 250 releases" in done.stdout
    done = run(*KNOWN, "--relation", "replace-one", "--json")
    found = recommend(**known, relation=Relation.REPLACE_ONE)
    assert json.loads(done.stdout) == json.loads(json.dumps(asdict(found)))
    assert "note: neither n nor a gap is given" in run(*KNOWN).stdout


ERRORS = {
    ("--k", "20"): "k must be an integer >= 1 and <= 19, got 20",
    ("--spectrum", "0.5,a"): "Error: Invalid value for '--spectrum': '0.5,a' is not",
}
test_bad_options_are_named = refused(ERRORS, "recommend", *KNOWN)


@settings(max_examples=200, deadline=None)
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
        done = run(*map(str, [*known, "--delta", delta, *more]))
    head, *lines = done.stdout.splitlines()
    assert ("at worst" in head) == (len(more) <= 2)
    shown = [x for x in lines if not x.startswith(("note:", "measured:"))]
    column = [float(line.split()[1]) for line in shown]
    assert column == sorted(column)
    assert len(column) >= 3
