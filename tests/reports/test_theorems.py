import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from math import inf, isfinite, nan

import numpy as np
import pandas as pd
import pytest
from lower_bounds_tables import lower_bounds_tables
from refusals import refused, refuses
from scipy import stats
from streaming_tables import streaming_tables
from theorems_tables import theorems_tables
from tiny_profile import install_tiny, mostly_wide, tiny_plan

from benchmarks.scaling import ErrorExponent, EventShare, tables
from dpaudit.algorithms import entry, names_of
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.reports import writer
from dpaudit.reports.experiment import Cell, cells, run
from dpaudit.reports.power_law import mean_limit
from dpaudit.reports.sections import Results, Size, all_sections, plan
from dpaudit.reports.sections.theorems import findings, measures
from dpaudit.reports.sections.theorems import section as theorems
from dpaudit.reports.sections.theorems.findings import CHANCES, GRIDS, ROWS, programmed
from dpaudit.reports.sections.theorems.judgement import (
    ALARM,
    MEANS,
    TOLERANCE,
    Ruling,
    Share,
    score,
    shares,
    stated,
)
from dpaudit.reports.sections.theorems.rows import Chance, ExponentRow
from dpaudit.reports.writer import write_results
from dpaudit.subspace import captured_variance, projector_distance, top_components

NAMES = {row.name: row for row in ROWS}
COLUMNS = [
    *("theorem", "source", "mechanism", "error", "variable"),
    *("predicted", "measured", "low", "high", "verdict"),
]
X = (1.0, 2.0, 4.0, 8.0)


def row(**changes):
    """A row of a made-up theorem, error <= 1 x^(1/2)."""
    made = dict.fromkeys(("name", "experiment"), "made-up") | {"mechanism": "m"}
    made |= {"theorem": "Theorem 0", "source": "nobody", "regime": "anywhere"}
    made |= {"error": "error", "column": "error", "variable": "x", "against": "x"}
    return ExponentRow(**{**made, "predicted": 0.5, "printed": 0.5, **changes})


def table(exponent, spread=0.02, count=20, rng=0, factor=1.0, bound=0.5):
    rng = np.random.default_rng(rng)
    x = np.repeat(X, count)
    error = factor * x**exponent * np.exp(spread * rng.standard_normal(len(x)))
    columns = {"mechanism": "m", "x": x, "error": error, "bound": x**bound}
    return pd.DataFrame({**columns, "error_null": 1e6})


def rival_tables():
    """Tables of other sections that rows read, with errors by formula."""
    online = lower_bounds_tables(exponent=0.5)
    lengths = online["regret-dimensions"]
    lengths["regret"] /= lengths["dimension"] ** 0.25
    return {**online, **streaming_tables()}


OFF = {"ag-13-d": 0.4, "sn-2-gap": -0.4}
CASES = {"as proven": {}, "some are off": {"off": OFF}, "above": {"share": 2.0}}
CASES["wide"] = {"spread": 9.0, "share": 1e-99}


@cache
def scores(case="as proven"):
    return findings.scores({**rival_tables(), **theorems_tables(**CASES[case])})


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        *((0.5, Ruling.CONSISTENT), (0.57, Ruling.WITHIN), (0.43, Ruling.WITHIN)),
        *((0.7, Ruling.STEEPER), (0.3, Ruling.FASTER)),
    ],
)
def test_the_verdict_on_a_known_exponent(exponent, expected):
    """Deviation of the slope: 0.02/sqrt 20/sqrt(sum of squares of log x) < 0.003, so
    the nearest limit is ten deviations away."""
    found = score(row(), table(exponent))
    assert found.verdict == expected
    assert found.fit.exponent == pytest.approx(exponent, abs=0.03)


def test_an_interval_that_reaches_from_a_quarter_to_the_next_decides_nothing():
    found = score(row(), table(0.5, spread=1.25))
    assert 0.25 < (found.fit.high - found.fit.low) / 2 < 0.5
    assert found.verdict == Ruling.UNDECIDED


def test_a_mean_above_what_is_proven_contradicts_if_chance_does_not_explain_it():
    """Null hypothesis: the mean is at the bound. At each of 4 points Student's limit is
    above it with probability 1e-4, so of 60 tables 0.024 on average, and more than 3
    with probability 2e-8. (Errors are normal, and the bound is the mean.)"""
    rng, wrong = np.random.default_rng(3), 0
    held = row(proven="proven")
    for _ in range(60):
        made = table(0.5).assign(proven=lambda t: t["x"] ** 0.5)
        made["error"] = made["proven"] * (1 + 0.1 * rng.standard_normal(len(made)))
        found = score(held, made)
        wrong += found.verdict == Ruling.CONTRADICTED
        assert found.share == pytest.approx(1, abs=0.15)
    assert wrong <= 3
    above = made.assign(error=1.2 * made["error"])  # by nine deviations of a mean
    assert score(held, above).verdict == Ruling.CONTRADICTED
    (printed,) = findings.score_rows([score(held, above)])
    assert printed.details.startswith("means ≤ 12")
    # One error is no mean, and a bound with a constant of its own is no bound.
    assert score(held, above.drop_duplicates("x")).verdict == Ruling.UNDECIDED
    assert score(row(bound="proven"), above).verdict == Ruling.CONSISTENT


def test_what_the_tolerance_lets_pass_is_said_and_why():
    why = row(why="the grid ends")
    assert "the grid ends" in findings.score_rows([score(why, table(0.55))])[0].details
    assert findings.score_rows([score(why, table(0.5))])[0].details == ""
    for exponent in (0.45, 0.55):  # 0.05 is fifteen deviations
        bent = score(row(), table(exponent))
        told = "one is off by less than the tolerance of 0.1 (Theorem 0 in x)"
        assert told in findings.summary([bent])
        (printed,) = findings.score_rows([bent])
        assert (printed.verdict, printed.details) == (Ruling.WITHIN, "by 0.05")
        assert stated([bent]) == "supports"


def test_what_is_as_steep_as_the_print_has_it_supports_the_print():
    """And nothing that is steeper, nor what is steep where the print has less."""
    for printed, word in ((0.9, "supports"), (0.6, "does not decide on"), (0.0, "d")):
        steep = score(row(printed=printed), table(0.7))
        assert steep.verdict == Ruling.STEEPER
        assert stated([steep]).startswith(word)
        assert theorems._dissent("Theorem 0", [steep]).startswith(
            "steeper than what is provable, and not than the print, in x"
            if printed == 0.9
            else "steeper than the bound on this grid in x"
        )


def test_slopes_of_errors_that_are_hardly_below_a_guess_are_vacuous():
    """At one point of four is enough; medians of 20 are within 1 % of their law's."""
    held = row(bound="bound", sure=True)
    for guess, expected in ((2.1, Ruling.CONSISTENT), (1.9, Ruling.VACUOUS)):
        made = table(0.5, factor=0.1)
        made.loc[made["x"] == X[2], "error_null"] = guess * 0.1 * X[2] ** 0.5
        found = score(held, made)
        assert found.verdict == expected
        assert found.beside == pytest.approx(1 / guess, rel=0.02)
    (printed,) = findings.score_rows([found])
    assert printed.details.startswith("errors up to 53.0 % of those of what looks at")
    assert stated([found]) == "does not decide on"
    assert "one is vacuous, as a release that looks at no row" in findings.summary(
        [found]
    )
    above = made.assign(error=made["error"] * 30)
    assert score(held, above).verdict == Ruling.CONTRADICTED
    seen = [Share(chance(), 0.1, 0, 400, ALARM, missed) for missed in (400, 50)]
    assert [each.verdict for each in seen] == [Ruling.RARER, Ruling.VACUOUS]
    refuses("no column 'error_null'", score, held, made.drop(columns="error_null"))


def test_hypotheses_that_are_not_met_and_exponents_alone_say_nothing():
    met, unmet = score(row(), table(0.5)), score(row(unmet="x < 0.9"), table(0.5))
    assert unmet.told == "consistent; hypothesis not met: x < 0.9"
    assert findings.scoreboard([unmet])["verdict"].item() == unmet.told
    assert [stated(each) for each in ([met], [met, unmet], [unmet])] == [
        *("supports", "supports", "does not decide on")
    ]
    assert findings.summary([unmet]).endswith(
        "In one a hypothesis of the theorem is not met."
    )
    assert score(row(), table(0.5).assign(error=np.nan)).verdict == Ruling.NOTHING
    # A twentieth of the errors may have no logarithm, and not a fifteenth.
    for each, verdict in ((20, Ruling.CONSISTENT), (15, Ruling.UNDECIDED)):
        few = table(0.5)
        few.loc[np.arange(len(few)) % each == 0, "error"] = -1.0
        assert score(row(), few).verdict == verdict
    sure = row(bound="bound", sure=True)
    steep = table(2.0, factor=1e-3)
    assert score(sure, steep).verdict == Ruling.STEEPER
    assert score(sure, steep).share == pytest.approx(8**1.5 * 1e-3, rel=0.1)
    above = table(0.5, factor=0.5)
    assert score(sure, above).verdict == Ruling.CONSISTENT
    above.loc[33, "error"] = 1.001 * above.loc[33, "bound"]
    assert score(sure, above).verdict == Ruling.CONTRADICTED
    assert score(row(bound="bound"), above).verdict != Ruling.CONTRADICTED


@pytest.mark.parametrize(
    "made",
    [
        *(table(0.5, spread=3.0), table(0.5)[lambda t: t["x"] == 1]),
        table(0.5, count=1),
        table(0.5).assign(error=lambda t: t["error"].where(t.index % 10 > 0)),
    ],
)
def test_what_is_not_known_is_undecided(made):
    assert score(row(), made).verdict == Ruling.UNDECIDED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"column": "nothing"}, "no column 'nothing'"),
        ({"where": {"nothing": (1.0,)}}, "no column 'nothing'"),
        ({"where": {"x": (77.0,)}}, "nothing of 'm'"),
    ],
)
def test_a_table_that_has_not_what_a_row_reads_is_one_sentence(changes, words):
    refuses(f"^row 'made-up': .*{words}", score, row(**changes), table(0.5))


def test_rows_are_declared_whole_and_read_experiments():
    for each in (*ROWS, *CHANCES):
        lacking = {name for name, value in vars(each).items() if value == ""}
        assert lacking <= {"bound", "proven", "unmet", "why"}, each.name
    for each in ROWS:
        assert isfinite(each.predicted)
        assert isfinite(each.printed)
        assert each.bound or not each.sure
    found = plan("quick", 0)
    assert len(NAMES) == len(ROWS)
    for each in ROWS:
        assert each.mechanism in found[each.experiment].mechanisms, each.name
        assert entry(each.mechanism).name == each.mechanism
        for column, values in each.where.items():
            assert set(values) <= set(found[each.experiment].grid[column]), each.name


def chance(**changes):
    """A made-up theorem on an event, whose zeta is proven."""
    made = dict.fromkeys(("name", "experiment"), "rare") | {"mechanism": "m"}
    made |= {"theorem": "Lemma 0", "source": "nobody", "regime": "anywhere"}
    made |= {"event": "it fails", "column": "failed", "sure": True}
    return Chance(**{**made, **changes})


def events(**counts):
    """Return 400 draws at each zeta, in thousandths, with so many events."""
    return pd.DataFrame(
        {
            **{"mechanism": "m", "zeta": int(zeta[1:]) / 1000},
            **{"failed": float(i < seen), "failed_null": 1.0},
        }
        for zeta, seen in counts.items()
        for i in range(400)
    )


@pytest.mark.parametrize(
    ("seen", "sure", "expected"),
    [
        *((0, True, Ruling.RARER), (9, True, Ruling.RARER)),
        *((n, True, Ruling.CONSISTENT) for n in (12, 52)),
        (54, True, Ruling.OFTEN),
        *((80, True, Ruling.CONTRADICTED), (80, False, Ruling.OFTEN)),
    ],
)
def test_the_verdict_on_a_known_share(seen, sure, expected):
    """Of zeta = 0.1, 40 of 400 are expected."""
    (found,) = shares([chance(sure=sure)], {"rare": events(z100=seen)})
    assert found.verdict == expected
    assert found.low <= found.measured <= found.high
    exact = stats.binomtest(seen, 400).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_events_as_frequent_as_allowed_and_other_mechanisms():
    """If the probability is zeta, 2.5 % are called more frequent at most, and one in
    1000 contradicted, all rows together; likewise, at half of zeta, for rarer. All
    counts are judged, and their exact probabilities summed."""
    judged = [Share(chance(), 0.1, k, 400, ALARM, 400).verdict for k in range(401)]

    def called(probability, *verdicts):
        law = stats.binom(400, probability)
        return sum(law.pmf(k) for k, each in enumerate(judged) if each in verdicts)

    assert called(0.1, Ruling.CONTRADICTED) <= ALARM == 1e-3
    # The rule is not deaf.
    assert 0.005 < called(0.1, Ruling.OFTEN, Ruling.CONTRADICTED) <= 0.025
    assert 0.005 < called(0.0501, Ruling.RARER) <= 0.025
    assert called(0.2, Ruling.CONTRADICTED) > 0.9  # what is twice as frequent
    for kind, name, words in (
        (measures.GAP, "laplace-covariance", "no theorem here says"),
        (measures.FLAT, "symmetric-noise", "spectrum must be"),
        ("steep", "analyze-gauss", "got 'steep'"),
    ):
        setting = {"spectrum": kind, "d": 9, "k": 1, "epsilon": 1.0, "delta": 1e-6}
        refuses(words, measures.check_point, name, {**setting, "gap": 1e5})
    # Of a Wishart matrix of ten degrees, 4 d times the scale 1/2.
    setting |= {"spectrum": measures.GAP, "gap": 143.0}
    refuses(
        "gap must be at least 144", measures.check_point, "symmetric-noise", setting
    )
    assert "laplace-covariance" in names_of("covariance")


def test_more_rows_share_one_false_alarm_and_slopes_of_bounds_count():
    one = shares([chance()], {"rare": events(z100=0)})
    three = {"rare": events(z100=0, z300=0, z10=0)}
    several = shares([chance(), chance(name="other")], three)
    assert [each.zeta for each in several] == [0.3, 0.1, 0.01] * 2
    assert one[0].level == ALARM
    assert {each.level for each in several} == {ALARM / 6}
    bent = row(bound="bound")
    assert score(row(), table(0.8)).verdict == Ruling.STEEPER
    assert score(bent, table(0.8, bound=0.9)).verdict == Ruling.CONSISTENT
    assert score(bent, table(0.8, bound=0.5)).verdict == Ruling.STEEPER
    assert score(bent, table(0.2, bound=0.3)).verdict == Ruling.WITHIN
    assert score(bent, table(0.2, bound=0.9)).verdict == Ruling.FASTER


@pytest.mark.parametrize(
    ("changes", "made", "words"),
    [
        ({"column": "lost"}, events(z100=1), "no column 'lost'"),
        ({"mechanism": "n"}, events(z100=1), "0 or 1 in 'failed' for 'n'"),
        ({}, events(z100=1).assign(failed=0.5), "must have 0 or 1"),
    ],
)
def test_a_table_without_events_is_one_sentence(changes, made, words):
    refuses(f"^row 'rare': .*{words}", shares, [chance(**changes)], {"rare": made})


def test_events_are_in_words_and_in_the_table():
    three = {"rare": events(z300=0, z100=40, z10=80)}
    seen = shares([chance(), chance(name="b", sure=False)], three)
    assert findings.chance_summary(seen) == (
        "Of six probabilities two are at most half as frequent as the theorem allows, "
        "two are consistent with it, one is more frequent than it says (Lemma 0 at ζ = "
        "0.01) and one is contradicted (Lemma 0 at ζ = 0.01)."
    )
    first, second, *_ = findings.score_rows(seen)
    assert (first.about, second.about) == ("nobody; m", "")
    told = (first.predicted, first.measured, first.details)
    assert told == ("0.3", "0", "0 of 400 draws")
    table = findings.scoreboard([], seen)
    assert list(table) == COLUMNS
    assert list(table["predicted"]) == [0.3, 0.1, 0.01] * 2
    assert list(table["measured"])[:3] == [0, 0.1, 0.2]


def test_the_exponents_are_those_of_the_papers():
    assert {name: each.predicted for name, each in NAMES.items()} == {
        **{"ag-4-k": 1, "ag-4-d": 0.5, "ag-4-epsilon": -1, "ag-4-n": 0},
        **{"ag-5-k": 1, "ag-5-d": 1, "ag-5-epsilon": -2, "ag-5-gap": -1},
        **{"ag-5-more-kept": 0, "ag-5-more-k": 1, "ag-5-more-d": 1},
        **{"ag-5-more-epsilon": -2, "ag-5-more-gap": -1},
        **{"ag-17-rows": 0.5, "ag-18-rows": 0.5},
        **{"ag-18-epsilon-1-optimum": 0.5, "ag-18-epsilon-10-optimum": 0.5},
        **{"ag-7-k": 0, "ag-7-d": 0.5, "ag-7-epsilon": -1, "ag-7-gap": -1},
        **{"ag-13-k": 0, "ag-13-d": 0.5, "ag-13-epsilon": -1, "ag-13-gap": -1},
        **{"ag-9-spectral-k": 0, "ag-9-spectral-d": 0.5, "ag-9-spectral-epsilon": -1},
        **{"ag-9-frobenius-k": 0.5, "ag-9-frobenius-d": 0.5},
        "ag-9-frobenius-epsilon": -1,
        **{"sn-2-d": 1, "sn-2-epsilon": -1, "sn-2-gap": -1},
        **{"ag-3.2-k": 0.5, "ag-3.2-d": 0.5, "ag-3.2-epsilon": -1, "ag-3.2-gap": -1},
        **{"ag-2.5-d": 1, "ag-2.5-epsilon": -1, "ag-2.5-gap": 0},
        **{"rag-projectors-k": 0.5, "rag-projectors-d": 0.5},
        **{"rag-projectors-epsilon": -1, "rag-projectors-gap": -1},
        **{"rag-rank-k": 0.5, "rag-rank-d": 0.5},
        **{"rag-rank-epsilon": -1, "rag-rank-gap": 0},
        **{"sn-2-variance-k": 1, "sn-2-variance-d": 2},
        **{"sn-2-variance-epsilon": -2, "sn-2-variance-gap": -1},
        **{"sn-2-rank-k": 0, "sn-2-rank-d": 1, "sn-2-rank-epsilon": -1},
        **{"covariance-noise-n": -1, "covariance-noise-d": 1.5},
        "covariance-noise-epsilon": -1,
        **{"ag-4.2-optimum": 0.5, "ag-4.2-dimension": 0.25},
        **{"ag-4.2-n-components": 0.5, "ag-4.2-rows": 0.5},
        **{"ag-17-optimum": 0.5, "ag-17-dimension": 0.25, "ag-17-n-components": 0.5},
        **{"ag-18-optimum": 0.5, "ag-18-dimension": 0.25, "ag-18-n-components": 0.5},
        **{"oja-n": -0.5, "oja-d": 0.5, "dp-pca-sampling-n": -0.5},
        **{"private-oja-noise-n": -1, "private-oja-noise-d": 1},
        "private-oja-noise-epsilon": -1,
        **{"dp-pca-noise-n": -1, "dp-pca-noise-d": 1, "dp-pca-noise-epsilon": -1},
        "dp-pca-published-noise-epsilon": -1,
        **{"dp-pca-noise": 1, "minibatch-oja-noise": 0},
        **{"rp-1-n": 0, "rp-2-step": -1, "rp-3-step": -1, "rp-4-step": -1},
        **{f"rp-5-{name}": -1 for name in ("dp-ggd", "sggd", "dp-sggd")},
        **{"rp-7-n": -1, "rp-7-d": 1, "rp-7-epsilon": -1},
        **{"rp-8-dp-ggd": -1, "rp-8-dp-sggd": -1},
        **{f"rp-9-{name}-reap": -1 for name in ("dp-gd", "dp-md", "dp-sgd", "dp-smd")},
        **{f"rp-10-{name}-reap": -1 for name in ("dp-gd", "dp-md", "dp-sgd", "dp-smd")},
    }
    other = {r.name: r.printed for r in ROWS if r.printed != r.predicted}
    distances = [name for name in NAMES if name.startswith("rp-10")]
    assert other == {
        **{"ag-5-more-kept": 1, "ag-5-more-k": 0, "ag-9-frobenius-k": 1},
        **{"sn-2-variance-gap": 0, "sn-2-rank-k": 1},
        **{"rp-7-d": 1.5, **dict.fromkeys(distances, -0.5)},  # of d, from d^2
    }


def test_every_grid_is_read_and_within_the_range_of_its_mechanisms():
    for size in all_sections()["theorems"].sizes.values():
        for each in programmed(size):
            (values,), told = each.grid.values(), GRIDS[each.name]
            assert len(values) == min(size.theorem_points, len(told["values"]))
            assert each.mechanisms
            share = each.repetitions / size.theorem_draws
            assert each.repetitions >= 2
            assert share == pytest.approx(told.get("share", 1), rel=0.5)
            for cell in cells(each):
                if each.measure is measures.second_moment_errors:
                    measures.check_point(cell.mechanism, {**cell.options, **cell.point})
    assert max(GRIDS["theorems-dp-pca-epsilon"]["values"]) < 0.9
    for grid in GRIDS.values():
        values = grid["values"]
        assert len(set(values)) == len(values) >= 2
        assert all(0 < value < inf for value in values)
        assert grid["variable"] != "zeta" or max(values) <= 0.5


test_points_outside_the_range_are_refused = refused(
    ("theorems-gap-k", {"k": 100.0}, "k must be from 1 to"),
    ("theorems-gap-k", {"k": 1.5}, "k must be a whole number"),
    ("theorems-gap-d", {"d": 1e150}, "d must be from 1 to"),
    ("theorems-gap-d", {"d": "many"}, "d must be a real number"),
    ("theorems-gap-epsilon", {"epsilon": 2.0}, r"must be in \(0, 1\]"),
    ("theorems-gap-epsilon", {"epsilon": nan}, "must be a finite"),
    ("theorems-gap-epsilon", {"epsilon": 1e-9}, "gap must be at least"),
    ("theorems-gap-gap", {"gap": 500.0}, "gap must be at least 599"),
    ("theorems-flat-n", {"n": 80.0}, "n must be at least 21"),
    by=lambda name, changes: measures.check_point(
        "analyze-gauss-published", {**GRIDS[name]["options"], **changes}
    ),
)


def last(name, mechanism, points=3):
    """Return the last cell's records, setting, eigenvalues and releases."""
    size = Size(theorem_draws=3, theorem_points=points, theorem_stream=1)
    (tiny,) = (each for each in programmed(size) if each.name == name)
    cell = [each for each in cells(tiny) if each.mechanism == mechanism][-1]
    setting = {**cell.options, **cell.point}
    built, values = measures.check_point(mechanism, setting)
    releases = built.draw_from(np.diag(values), cell.size, rng=cell.rng())
    return tiny.measure(cell), setting, values, releases


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("theorems-flat-k", "analyze-gauss-published"),
        ("theorems-flat-n", "analyze-gauss-published"),
        ("theorems-gap-k", "analyze-gauss-published"),
        ("theorems-gap-gap", "symmetric-noise"),
        ("theorems-gap-gap", "private-subspace-published"),
        ("theorems-one-gap", "exponential-pca"),
    ],
)
def test_errors_are_what_their_names_say(name, mechanism):
    """Against the measures of subspaces, and singular values, of the same draws."""
    records, setting, values, releases = last(name, mechanism, points=2)
    k, a = int(setting["k"]), np.diag(values)
    best = np.eye(len(a))[:, :k]
    blind = np.mean([each["variance_lost_null"] for each in records])
    expected = k * (1 - k / len(a)) * (values[0] - values[-1])  # of a random subspace
    assert blind == pytest.approx(expected, rel=0.1)
    for i, found in enumerate(records):
        assert found["repetition"] == i
        assert 0.9 < found["projector_distance_null"] <= 1 + 1e-12
        if releases.shape[-1] == k:
            v = releases[i]
            assert np.isnan(found["low_rank_spectral"])
            if mechanism == "private-subspace-published":
                # Of noise N(0, s^2) on the projector, twice the norm, 2 s sqrt d.
                scale = entry(mechanism).build(
                    epsilon=setting["epsilon"], delta=setting["delta"], n_components=k
                )
                scale = float(scale.projector_scale(values[k - 1]))
                bound = pytest.approx(4 * scale * np.sqrt(len(a)))
                assert found["projector_distance_bound"] == bound
        else:
            v = top_components(releases[i], k)
            left = a - v @ np.diag(np.diag(v.T @ releases[i] @ v)) @ v.T
            singular = np.linalg.svd(left, compute_uv=False)
            rest = values[k:]
            expected = singular[0] - rest[0]
            assert found["low_rank_spectral"] == pytest.approx(expected, rel=1e-6)
            expected = np.sqrt((singular**2).sum()) - np.sqrt((rest**2).sum())
            assert found["low_rank_frobenius"] == pytest.approx(expected, rel=1e-6)
            blind = np.linalg.norm(a) - np.sqrt((rest**2).sum())
            assert found["low_rank_frobenius_null"] == pytest.approx(blind)
            assert found["low_rank_spectral_null"] == pytest.approx(values[0] - rest[0])
            norm = np.linalg.norm(releases[i] - a, 2)
            assert found["variance_lost_bound"] == pytest.approx(2 * k * norm)
            assert found["low_rank_spectral_bound"] == pytest.approx(2 * norm)
            # 1 + sqrt 2 + sqrt 3 = 4.1463
            bound = pytest.approx(4.1463 * k**0.5 * norm, rel=1e-4)
            assert found["low_rank_frobenius_bound"] == bound
            if name.startswith("theorems-gap"):
                turned = norm / (values[0] - norm)
                assert found["projector_distance_bound"] == pytest.approx(turned)
                gap_bound = pytest.approx(2 * k * norm * turned)
                assert found["variance_lost_gap_bound"] == gap_bound
        lost = values[:k].sum() - captured_variance(v, a)
        assert found["variance_lost"] == pytest.approx(lost, rel=1e-5, abs=1e-9)
        distance = projector_distance(v, best)
        assert found["projector_distance"] == pytest.approx(distance, rel=1e-6)
        apart = pytest.approx(np.linalg.norm(v @ v.T - best @ best.T), rel=1e-6)
        assert found["projector_frobenius"] == apart
        # Of a random subspace the mean square is 2 k (1 - k/d).
        blind = found["projector_frobenius_null"] ** 2 / (2 * k * (1 - k / len(a)))
        assert 0.8 < blind < 1.2


def test_errors_with_all_gaps_wide_are_what_their_names_say():
    records, setting, values, releases = last("theorems-steps-k", "goe-gaussian")
    k, gap = int(setting["k"]), setting["gap"]
    np.testing.assert_allclose(values[: k + 1], gap * np.arange(k, -1, -1))
    best = np.eye(len(values))[:, :k]
    for release, found in zip(releases, records, strict=True):
        v = top_components(release, k)
        kept = v @ v.T @ release @ v @ v.T
        left = np.linalg.norm(kept - np.diag(values))  # all that there is has rank k
        assert found["rank_k_frobenius"] == pytest.approx(left, rel=1e-6)
        norm = np.linalg.norm(release - np.diag(values), 2)
        root = np.sqrt(2 * k)
        assert found["rank_k_frobenius_bound"] == pytest.approx(2 * root * norm)
        assert found["rank_k_frobenius_null"] == np.linalg.norm(values)
        apart = np.linalg.norm(v @ v.T - best @ best.T)
        assert found["projector_frobenius"] == pytest.approx(apart, rel=1e-6)
        bound = pytest.approx(root * norm / (gap - norm))
        assert found["projector_frobenius_bound"] == bound


def test_the_exponential_mechanism_loses_half_a_dimension_over_epsilon():
    """Of 24 draws: the mean loss is (d - 1)/(2 epsilon), about; each deviates by
    sqrt(2/(d - 1)), so that six deviations of a mean are 0.25 at d = 50."""
    size = Size(theorem_draws=24, theorem_points=2, theorem_stream=1)
    (each,) = (e for e in programmed(size) if e.name == "theorems-one-epsilon")
    table = run(each)
    for epsilon, some in table.groupby("epsilon"):
        expected = 49 / (2 * epsilon)
        assert some["variance_lost"].mean() == pytest.approx(expected, rel=0.25)
        assert some["low_rank_spectral"].isna().all()
        assert some["projector_distance_bound"].isna().all()


def test_a_mean_is_below_its_lower_limit_with_the_probability_that_is_told():
    values = stats.norm.ppf((np.arange(12) + 0.5) / 12) + 3
    limit = mean_limit(values, MEANS, -1)
    assert stats.ttest_1samp(values, limit, alternative="greater").pvalue == (
        pytest.approx(1e-4, rel=1e-6)
    )


def test_ojas_steps_and_the_formula_of_its_error(monkeypatch):
    """Steps 2/(gap (2 d + t)), and the length of d - 1 normals, by quadrature."""
    given = []

    def steps(*arguments):
        given.append(arguments)
        return HarmonicSteps(*arguments)

    monkeypatch.setattr(measures, "HarmonicSteps", steps)
    cell = Cell("oja", {"n": 200.0, "d": 4.0}, {}, 0, 2, 0, (0,))
    records = measures.oja_error(cell)
    assert given == [(pytest.approx(2 / 0.75), 8.0)]
    length = np.exp(stats.chi(3).expect(np.log))
    assert records[0]["formula"] == pytest.approx(length / np.sqrt(200))
    assert all(0 < each["error"] < 1 for each in records)


@pytest.mark.parametrize("name", ["theorems-kept-kept", "theorems-kept-k"])
def test_errors_with_more_kept_are_what_their_names_say(name):
    records, setting, values, releases = last(name, "analyze-gauss-published")
    k, kept, a = int(setting["k"]), int(setting["kept"]), np.diag(values)
    for release, found in zip(releases, records, strict=True):
        lost = values[:k].sum() - captured_variance(top_components(release, kept), a)
        assert found["variance_lost"] == pytest.approx(lost, rel=1e-4)
        norm = np.linalg.norm(release - a, 2)
        unit = norm**2 / (values[0] - norm)
        assert found["variance_lost_gap_bound"] == pytest.approx(2 * k * unit)
        assert found["variance_lost_gap_printed"] == pytest.approx(2 * kept * unit)


test_small_gaps_of_the_exponential_mechanism_are_refused = refused(
    ("theorems-one-gap", "exponential-pca", {"gap": 199.0}, "at least 200, which is 8"),
    by=lambda name, mechanism, changes: measures.check_point(
        mechanism, {**GRIDS[name]["options"], **changes}
    ),
)


test_what_cannot_be_kept_is_refused = refused(
    ("theorems-kept-kept", "analyze-gauss", {"kept": 0.5}, "kept must be from 1"),
    ("theorems-kept-k", "analyze-gauss", {"kept": 100.0}, "kept must be from 1 to"),
    ("theorems-kept-k", "private-subspace-published", {"k": 1.0}, "kept is for"),
    ("theorems-kept-k", "analyze-gauss", {"spectrum": measures.FLAT}, "kept is for"),
    by=lambda name, mechanism, changes: measures.check_point(
        mechanism, {**GRIDS[name]["options"], "k": 1.0, "kept": 2.0, **changes}
    ),
)


@pytest.fixture(scope="module")
def measured():
    """Everything on second moments, in 24 draws: what the prototype had, and more."""
    size = Size(theorem_draws=24, theorem_points=4, theorem_stream=1)
    names = {name for name, each in GRIDS.items() if "spectrum" in each["options"]}
    return {each.name: run(each) for each in programmed(size) if each.name in names}


def test_no_error_is_above_what_is_proven_and_each_is_told(measured):
    for each in ROWS:
        if each.experiment in measured:
            found = score(each, measured[each.experiment])
            assert found.verdict in list(Ruling)[:4], each.name
            assert found.lost == 0
            if each.sure:
                assert 0.05 < found.share < 1, each.name
    lines = findings.exponent_lines("theorems-gap-gap", measured["theorems-gap-gap"])
    assert len(lines) == 6
    start = "Analyze Gauss, Theorem 5, variance lost in gap: predicted .* consistent.$"
    assert re.match(start, lines[0])


def test_a_planted_exponent_is_seen(measured):
    """A theorem that says 1/2 in place of 1, or the other way, as Theorem 9 prints."""
    for name, wrong, expected in (
        *(("ag-5-k", 0.5, Ruling.STEEPER), ("ag-9-frobenius-k", 1.0, Ruling.FASTER)),
        *(("sn-2-d", 0.5, Ruling.STEEPER), ("ag-7-epsilon", -0.5, Ruling.FASTER)),
        ("ag-5-epsilon", -2.5, Ruling.STEEPER),
    ):
        planted = replace(NAMES[name], predicted=wrong, bound="", sure=False)
        assert score(planted, measured[planted.experiment]).verdict == expected
    made = {**rival_tables(), **theorems_tables(off={"ag-7-d": 0.4, "sn-2-gap": -0.4})}
    found = {s.row.name: s for s in findings.scores(made)}
    assert found.pop("ag-7-d").verdict == Ruling.CONTRADICTED  # 0.5 * 8^0.4 > 1
    assert found.pop("sn-2-gap").verdict == Ruling.FASTER
    assert {each.verdict for each in found.values()} == {Ruling.CONSISTENT}


def test_the_sentence_counts_and_names():
    text = findings.summary(scores("some are off"))
    assert text == (
        f"Of {len(ROWS)} exponents {len(ROWS) - 2} are consistent with the theorem, "
        "one is faster than the bound (Symmetric noise Theorem 2 in gap), one is "
        "steeper than it on this grid (Analyze Gauss Theorem 13 in d) and none is "
        "contradicted. In 13 a hypothesis of the theorem is not met."
    )
    text = findings.summary(scores("above"))
    assert "are contradicted (Analyze Gauss Theorem 4 in k, " in text
    wide = findings.summary(scores("wide"))
    own = sum(each.experiment in GRIDS for each in ROWS)
    assert f"none is contradicted and {own} are undecided" in wide


def test_the_rows_are_ready_to_print():
    printed = findings.score_rows(scores("some are off"))
    by_name = dict(zip(NAMES, printed, strict=True))
    frobenius = by_name["ag-9-frobenius-k"]
    assert (frobenius.printed, frobenius.predicted) == ("1", "1/2")
    distance = by_name["rp-10-dp-gd-reap"]
    assert (distance.printed, distance.predicted) == ("−1/2", "−1")
    assert by_name["ag-4-k"].about.endswith("; analyze-gauss-published")
    assert by_name["ag-4-d"].about == by_name["ag-4-d"].regime == ""
    assert by_name["ag-5-k"].regime
    assert by_name["sn-2-gap"].verdict == Ruling.FASTER
    found = findings.scoreboard(scores())
    predicted = dict(zip(NAMES, found["predicted"], strict=True))
    assert predicted["ag-9-frobenius-k"] == 0.5
    assert found["measured"].between(found["low"], found["high"]).all()
    assert by_name["sn-2-gap"].details.startswith("by 0.4")
    assert "of the bound" in by_name["ag-5-k"].details
    assert by_name["dp-pca-sampling-n"].formula == "–"


def test_the_head_names_what_is_supported_and_what_is_contradicted():
    text = findings.statements(scores("some are off"))
    assert text.startswith("What is measured supports Analyze Gauss (Theorem 4; Theor")
    assert "; supports in some variables only Analyze Gauss (Theorem 13); " in text
    assert "Symmetric noise (Theorem 2; Theorem 2, " in text.split("some variables")[0]
    assert text.endswith("; contradicts none of them.")
    text = findings.statements(scores("wide"))
    assert "; does not decide on Analyze Gauss (Theorem 4; " in text
    text = findings.statements(scores("above"))
    assert "; contradicts Analyze Gauss (Theorem 4; " in text


def test_print_and_proof_are_shown_beside_the_errors():
    notes = findings.print_notes(scores())
    assert len(notes) == sum(each.printed != each.predicted for each in ROWS)
    assert "in k′: 1 in print, 0 provable, " in notes[0]
    assert all(note.endswith("nearer to the provable one.") for note in notes)
    printed = replace(NAMES["ag-9-frobenius-k"], predicted=0.5, printed=1.0)
    steep = theorems_tables(off={"ag-9-frobenius-k": 0.5})[printed.experiment]
    text = " ".join(findings.print_notes([score(printed, steep)]))
    assert "measured, which is nearer to the printed one." in text
    rows = findings.bound_rows(theorems_tables())
    assert [row.variable for row in rows[::4]] == ["k′ = 1", "k = 1"]
    assert [bool(row.theorem) for row in rows] == [True, *[False] * 3] * 2
    assert (rows[3].printed, rows[3].provable) == ("16", "1")
    assert rows[7].provable == "2.83"
    assert 0.5 < float(rows[3].error) < 0.6


def test_the_section_on_a_tiny_profile(tmp_path, monkeypatch):
    def some_panels(found, across, narrow):
        """Draw those of a narrow picture, but for the first, of one theorem alone."""
        first = narrow and not found[0].row.theorem.endswith("Theorem 9")
        return all_panels(found[:1] if first else found, across, narrow)

    all_panels = theorems._panels
    monkeypatch.setattr(theorems, "_panels", some_panels)
    install_tiny(monkeypatch)
    monkeypatch.setattr(writer, "draw_figures", mostly_wide)
    section, everything = all_sections()["theorems"], tiny_plan()
    (folder := tmp_path / "page").mkdir()
    tables, lost = {**rival_tables(), **theorems_tables(off=OFF)}, NAMES["ag-4-n"]
    unknown = tables[lost.experiment].assign(**{lost.column: nan})
    results = Results("tiny", 0, everything, {**tables, lost.experiment: unknown})
    assert write_results(results, folder, [section]) == {}
    files = {path.name for path in folder.iterdir()}
    assert {"theorems.csv", "theorems.svg", "theorems-gap-d.csv"} < files
    assert list(pd.read_csv(folder / "theorems.csv")) == COLUMNS
    ledger = pd.read_csv(folder / "ledger.csv").set_index("theorem")["details"]
    assert ledger["Analyze Gauss, Theorem 13"] == f"{Ruling.STEEPER} in d"
    page = (folder / "sections" / "theorems.html").read_text(encoding="utf-8")
    assert '<section id="theorems">' in page
    assert f"Of {len(ROWS)} exponents" in page
    assert f"within {TOLERANCE} of one" in page
    # Where another exponent is printed than can be proven, the theorem's page says so.
    leaves = (folder / "theorems").glob("*.html")
    both = sum("prints the exponent" in leaf.read_text("utf-8") for leaf in leaves)
    assert both == len({row.theorem for row in ROWS if row.printed != row.predicted})
    # The figure has a row for each, and the page of each theorem a panel.
    svg = (folder / "theorems.svg").read_text(encoding="utf-8")
    words = " ".join(ElementTree.fromstring(svg).itertext())
    for each in ROWS:
        assert f"{each.theorem}, {each.error} in" in words
    assert words.count("AG 9, k") == 2
    assert "AG 4, k" in words
    assert "Oja (7), ex. 4.1, σ" in words
    assert "faster" in words.split()
    assert "not known" in words
    leaf = next((folder / "theorems").glob("*theorem-9.html")).read_text("utf-8")
    panels = [e for e in ROWS if leaf.count(f"<h1>{e.theorem}</h1>")]
    assert len(panels) > 1
    assert leaf.count(") for ") == 2 * len(panels)
    for each in panels:
        assert f"Grid of {each.variable}" in leaf


def test_the_benchmark_tracks_every_row(monkeypatch):
    benchmark = ErrorExponent()
    assert benchmark.params == (list(NAMES),)
    made = {**rival_tables(), **theorems_tables()}
    monkeypatch.setattr("dpaudit.reports.experiment.run", lambda each: made[each.name])
    tracked = benchmark.setup_cache()
    assert list(tracked) == list(NAMES)
    for name in ("ag-5-epsilon", "sn-2-d"):
        value = benchmark.track_error_exponent(tracked, name)
        assert value == pytest.approx(NAMES[name].predicted, abs=0.1)
    events = EventShare()
    made["theorems-dp-pca-window"].loc[lambda t: t["zeta"] == 0.1, "failed"] = 1.0
    tracked = events.setup_cache()
    assert events.params == (list(tracked),)
    assert len(tracked) == 4 * len(CHANCES)
    for zeta, share in (("0.3", 0.0), ("0.1", 1.0)):
        name = f"dp-pca-window, zeta = {zeta}"
        assert events.track_event_share(tracked, name) == share


def test_benchmarks_take_fewer_draws_than_a_quick_report(monkeypatch):
    monkeypatch.setattr("dpaudit.reports.experiment.run", lambda each: each)
    taken, planned = tables(ROWS), plan("quick", 0)
    assert {*taken} == {row.experiment for row in ROWS}
    for name, each in taken.items():
        assert 2 <= each.repetitions <= max(2, planned[name].repetitions / 4)
