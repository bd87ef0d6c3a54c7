"""Other tools' methods: their parts against brute force, and what the tables say.

Seeds are fixed; a test of a sound bound that counts errors says with which probability
it would accuse one.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, laplace, norm
from seeded import rng

from dpaudit import GaussianDP, PureDP
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.reports.bench import peer_bounds, peers
from dpaudit.reports.bench.peer_bounds import (
    GAUSSIAN_BOUNDS,
    LAWS,
    PEER_BOUNDS,
    bound_rows,
    bounds_of,
    clopper_pearson_upper,
    roc_hull,
)
from dpaudit.reports.bench.peers import PEER_TESTS, PeerBox, Peers, boxes, verdict_rows
from dpaudit.streams import stream

FEW = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=8)


@given(st.integers(1, 200), st.data())
def test_upper_limits_are_scipys(n, data):
    hits = data.draw(st.integers(0, n))
    exact = binomtest(hits, n, alternative="less").proportion_ci(0.97, "exact")
    assert clopper_pearson_upper(hits, n, 0.03) == pytest.approx(exact.high, rel=1e-9)


@given(FEW, FEW)
def test_the_hull_keeps_the_corners_that_no_chord_passes(one, two):
    one, two = np.array(one), np.array(two)
    every = np.append(np.union1d(one, two), np.inf)
    points = [((one < t).sum(), (two < t).sum()) for t in every]

    def is_corner(k):
        x, y = points[k]
        return not any(
            (y - points[i][1]) * (points[j][0] - x)
            <= (points[j][1] - y) * (x - points[i][0])
            for i in range(k)
            for j in range(k + 1, len(points))
        )

    corners = [k for k in range(len(points)) if is_corner(k)]
    assert roc_hull(one, two).tolist() == every[corners].tolist()


@pytest.mark.parametrize("case", LAWS)
def test_laws_of_scores_are_what_their_epsilon_says(case):
    """Sup over thresholds of P - e^epsilon Q is delta, by a fine grid."""
    law = LAWS[case]
    t = np.linspace(-12, 12, 200_001)
    tail = (laplace if law.noise == "laplace" else norm).sf
    excess = tail(t - law.shift) - np.exp(law.epsilon) * tail(t)
    assert max(excess.max(), 0) == pytest.approx(law.delta, rel=1e-3, abs=1e-12) or (
        law.shift == 0
    )
    sides = law.draw(stream(0))
    assert norm.sf(abs(sides[0].mean() - sides[1].mean() - law.shift) * 15) > 1e-6


def test_a_lost_sign_makes_a_bound_of_nothing():
    """A bound at 95 % exceeds the truth in 8 of 20 runs with probability 3e-6."""
    found = bounds_of(LAWS["the same law on both sides"], 0, 20)
    above = {name: sum(b > 0 for b in each["bounds"]) for name, each in found.items()}
    assert above.pop("jax_privacy, GDP") == 20
    assert max(above.values()) < 8
    assert set(above) >= set(PEER_BOUNDS)


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.3])
@pytest.mark.parametrize("case", ["none", "clear", "ties", "apart", "equal"])
def test_methods_are_those_of_the_library(monkeypatch, case, alpha):
    auditing = pytest.importorskip("jax_privacy.auditing")
    monkeypatch.setattr(peer_bounds, "ALPHA", alpha)
    for n, delta in ((2, 0.1), (5, 1e-5), (6, 1e-5), (7, 0.1), (1000, 1e-5)):
        monkeypatch.setattr(peer_bounds, "SCORES", n)
        one, two = rng(n).standard_normal((2, n))
        if case == "ties":
            one, two = rng(n).integers(0, [[4], [3]], (2, n)).astype(float)
        one, two = one + {"clear": 2.0, "apart": 90.0}.get(case, 0.0), two
        sides = (one, two) if case != "equal" else (0 * one, 0 * two)
        theirs = auditing.CanaryScoreAuditor(*sides)
        split = auditing.Split(seed=7)
        for method, bound in (
            (PEER_BOUNDS["jax_privacy, Bonferroni"], theirs.epsilon_clopper_pearson),
            (
                PEER_BOUNDS["jax_privacy, split"],
                partial(theirs.epsilon_clopper_pearson, threshold_strategy=split),
            ),
            (GAUSSIAN_BOUNDS["jax_privacy, GDP"], theirs.epsilon_from_gdp),
        ):
            found = min(method(sides, delta, rng(7)), 100.0)  # which theirs is at most
            assert found == pytest.approx(float(bound(alpha, delta)), abs=1e-4)


@pytest.mark.parametrize("name", PEER_BOUNDS | GAUSSIAN_BOUNDS)
def test_each_bound_sees_what_is_plain(name):
    method = (PEER_BOUNDS | GAUSSIAN_BOUNDS)[name]
    law = LAWS["gaussian, epsilon 4"]
    found = method(law.draw(stream(1)), law.delta, stream(2))
    assert 0.5 < found < 4.5


@pytest.mark.parametrize("name", PEER_TESTS)
@pytest.mark.parametrize("claim", [PureDP(0.1), GaussianDP(0.1)], ids=str)
def test_each_attack_refutes_what_is_plain_and_not_what_holds(name, claim):
    mechanism = Laplace(4.0)
    pair = mechanism.worst_case()
    broken = PeerBox(mechanism, pair, claim, right=False, window=3.0)
    test = PEER_TESTS[name]
    assert test(broken, broken.draw(4000, 0))
    for seed in range(3):  # the same law on both sides
        sides = broken.draw(1000, seed)[0], broken.draw(1000, seed + 100)[0]
        assert not test(broken, sides)


def test_attacks_take_the_better_order():
    """An event of 5 % on one side alone refutes in one order: 1/.95 < e^.1."""
    box, rare = boxes()["prefix-sum"], rng(0).random((2, 6000, 1))
    rare[1, ::20] += 5
    for sides in (rare, rare[::-1]):
        for name in ("DP-Sniper", "Delta-Siege"):
            assert PEER_TESTS[name](box, (sides[0], sides[1]))


@pytest.mark.parametrize(
    ("name", "parts"),
    [("DP-Sniper", 3), ("Delta-Siege", 3), ("DP-Auditorium, network", 2)],
)
def test_what_is_learned_is_tested_on_other_releases(name, parts):
    """The sides differ in all parts but the last, which is the test."""
    box, sides = boxes()["prefix-sum"], rng(1).standard_normal((2, 6000, 1))
    one, two = sides[0] + 3.0, sides[1]
    assert PEER_TESTS[name](box, (one, two))
    one[-(6000 // parts) :] -= 3.0
    assert not PEER_TESTS[name](box, (one, two))


def test_bounds_are_those_of_scipys_limits_at_every_corner():
    law = LAWS["laplace, epsilon 2"]
    one, two = law.draw(stream(3))
    thresholds, best = roc_hull(one, two), 0.0
    for t in thresholds:
        p, q = (
            binomtest(int((side >= t).sum()), 1000, alternative=way).proportion_ci(
                1 - 0.05 / len(thresholds) / 2, "exact"
            )
            for side, way in ((one, "greater"), (two, "less"))
        )
        best = max(best, np.log(max(p.low, 1e-300) / q.high))
    assert PEER_BOUNDS["jax_privacy, Bonferroni"]((one, two), 0.0, stream(0)) == (
        pytest.approx(best)
    )


def test_the_split_bound_counts_what_chose_no_threshold(monkeypatch):
    seen = []

    def limits(sides, thresholds, alpha, delta):
        seen.append(np.concatenate(sides))
        return np.ones(np.size(thresholds))

    monkeypatch.setattr(peer_bounds, "_epsilons", limits)
    sides = LAWS["laplace, epsilon 1"].draw(stream(4))
    PEER_BOUNDS["jax_privacy, split"](sides, 0.0, stream(0))
    chosen, tested = seen
    assert not set(chosen) & set(tested)
    assert sorted([*chosen, *tested]) == sorted(np.concatenate(sides))


def test_rows_say_whether_a_true_claim_fell_too_often_and_who_refutes_more():
    def rows(case, ours, theirs):
        made = {"dpaudit": ours, "DP-Sniper": theirs}
        found = {
            (case, method): [
                {"refuted": i < fell, "releases": 10, "seconds": 1.0} for i in range(20)
            ]
            for method, fell in made.items()
        }
        return [row.met for row in verdict_rows(found)]

    assert binom.sf(5, 20, 0.05) < 1e-3 < binom.sf(4, 20, 0.05)
    assert rows("laplace", 5, 0) == [True, None]
    assert rows("laplace", 6, 0) == [False, None]
    assert rows("svt-6", 7, 7) == [True, None]
    assert rows("svt-6", 7, 8) == [False, None]


def test_rows_say_which_bound_is_not_what_it_says_and_which_is_best():
    case = "laplace, epsilon 1"
    made = {
        "dpaudit": [0.8] * 100,
        "jax_privacy, Bonferroni": [0.7] * 100,
        "jax_privacy, split": [0.9] * 70 + [1.1] * 30,  # better, and not sound
    }
    assert binom.sf(29, 100, 0.05) < 1e-9
    found = {(case, m): [{"bounds": b, "seconds": 1.0}] for m, b in made.items()}
    rows = {row.data["method"]: row for row in bound_rows(found)}
    assert [row.data["sound"] for row in rows.values()] == [True, True, False]
    assert [row.met for row in rows.values()] == [True, None, None]
    assert rows["dpaudit"].cells["ms"] == "10.00"
    found[case, "jax_privacy, split"] = [{"bounds": [0.9] * 100, "seconds": 1.0}]
    assert [row.met for row in bound_rows(found)] == [False, None, None]


def test_the_study_measures_all_methods_on_the_same_releases(monkeypatch):
    study = Peers()
    units = study.units("quick")
    assert {unit.case for unit in units} == {*LAWS, *boxes()}
    seen = []
    monkeypatch.setitem(
        peers.PEER_TESTS,
        "DP-Sniper",
        lambda box, sides: bool(seen.append(sides)),
    )
    monkeypatch.setattr(peer_bounds, "SCORES", 100)
    chosen = [u for u in units if u.case in ("laplace, epsilon 2", "prefix-sum")]
    records = {
        replace(u, options=(("trials", 2), ("releases", 300))): study.measure(
            replace(u, options=(("trials", 2), ("releases", 300)))
        )
        for u in chosen
    }
    bounds, verdicts = study.tables("quick", records)
    assert {row.data["method"] for row in bounds.rows} >= set(PEER_BOUNDS)
    ours, *others = verdicts.rows
    assert ours.met is not None
    assert all(row.met is None for row in others)
    assert "DP-Auditorium, histogram" not in {row.data["method"] for row in others}
    ((one, two),) = seen
    assert one.shape == two.shape == (300, 10)
