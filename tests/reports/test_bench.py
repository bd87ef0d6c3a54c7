"""The studies that audit the auditor, on tiny profiles, and the information limit.

Type-I error of the sampler test: 1e-9. A planted unsound bound is caught with a
probability that is 1 up to 1e-12; a bound at exactly the nominal rate is accused with
probability 0.001.
"""

import io
import json
import math
import re
import runpy
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import refuses
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest

from dpaudit import ApproxDP, InputError, PureDP
from dpaudit.algorithms import build, names_of
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.audit import StoreWarning, bounds
from dpaudit.audit.keeping.identity import code_version
from dpaudit.cli import main
from dpaudit.mechanism import HasPrivacyLoss, HasStatistic, HasWorstCase, Mechanism
from dpaudit.profiles import PROFILES
from dpaudit.reports.bench import (
    STUDIES,
    Study,
    TargetTable,
    Unit,
    bench_audit,
    cost,
    limits,
)
from dpaudit.reports.bench import coverage as coverage_module
from dpaudit.reports.bench.coverage import CASES, Coverage
from dpaudit.reports.bench.coverage_cases import (
    AuditCase,
    CountsCase,
    CoverageCase,
    OneRunCase,
    ScoresCase,
    WhiteBoxCase,
)
from dpaudit.reports.bench.equal_reals import EqualRealsStudy
from dpaudit.reports.bench.limits import SUBJECTS, Limits, growth
from dpaudit.reports.bench.lower_bounds import (
    SUITE_GOALS,
    TIGHTNESS_GOALS,
    SuiteBounds,
    Tightness,
)
from dpaudit.reports.bench.peer_bounds import LAWS
from dpaudit.reports.bench.peers import Peers
from dpaudit.reports.bench.refutation import (
    CLAIMED,
    BestEvent,
    RefutationStudy,
    best_events,
    information_limit,
)
from dpaudit.reports.bench.refutation import limit as refutation_limit
from dpaudit.reports.bench.study import (
    StudyFindings,
    Summary,
    TargetRow,
    load_summary,
    render_html,
    render_markdown,
    seed_of,
)
from dpaudit.reports.bench.subjects import BlackBox, LeakyResponse
from dpaudit.reports.sections import Size
from dpaudit.reports.store import STORE, WorkStore

ORACLES = runpy.run_path(
    str(Path(__file__).parents[1] / "algorithms" / "textbook_oracles.py")
)
TINY = Size(audits=2, releases=60, data_sets=300, runs=1, core=False)


class Dice(Study):
    """Records a number per unit, and how often each was asked for."""

    name = "dice"
    title = "Dice"
    asked: ClassVar[Counter[int]] = Counter()

    def units(self, profile):
        size = {"quick": 4, "standard": 6, "full": 9}[profile]
        return [Unit(self.name, "die", k, (("sides", 6),)) for k in range(size)]

    def measure(self, unit):
        self.asked[unit.index] += 1
        return {"thrown": int(np.random.default_rng(unit.seed).integers(6))}

    def tables(self, profile, records):
        rows = [
            TargetRow({"die": str(u.index), "thrown": str(r["thrown"])}, True, dict(r))
            for u, r in records.items()
        ]
        return [TargetTable("Dice", tuple(rows), "Any number is fine.")]


LATEST = [case.name for case in CASES if case.name.startswith(("rare", "equal"))]


@pytest.fixture
def dice(monkeypatch):
    monkeypatch.setattr(Dice, "asked", Counter())
    return Dice()


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(coverage_module.SIZES, "quick", TINY)


def carried_out(study, folder, profile="quick", **options):
    """Return the study's records, kept in a folder, by the unit."""
    bench_audit(folder, profile=profile, studies=[study], **options)
    kept = WorkStore(folder / STORE).load([unit.key for unit in study.units("full")])
    units = {unit.key: unit for unit in study.units("full")}
    return {units[name]: record for name, record in kept.items()}


# Units, stores, resuming
def test_a_seed_is_a_function_of_study_case_and_index():
    unit = Unit("coverage", "laplace", 3)
    assert unit.seed == replace(unit, options=(("releases", 9),)).seed
    others = [replace(unit, index=4), replace(unit, case="x"), replace(unit, study="x")]
    assert len({unit.seed, *(other.seed for other in others)}) == 4
    assert seed_of("coverage", "laplace", 3) == unit.seed == 6102334852374243089


def test_a_larger_profile_goes_on_from_a_smaller_one(tmp_path, dice):
    carried_out(dice, tmp_path, "quick")
    told = []
    carried_out(dice, tmp_path, "standard", progress=told.append)
    assert set(dice.asked.values()) == {1}
    assert [(step.done, step.total) for step in told] == [(4, 6), (5, 6), (6, 6)]


def test_units_go_where_there_are_workers_and_older_records_are_left_alone(
    tmp_path, dice
):
    (closed := ThreadPoolExecutor()).shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        carried_out(dice, tmp_path, executor=closed)
    (tmp_path / "dice.jsonl").write_text("{}")
    with pytest.warns(StoreWarning, match=r"dice\.jsonl.*older dpaudit"):
        carried_out(dice, tmp_path)
    assert sum(dice.asked.values()) == 4
    assert (tmp_path / "dice.jsonl").read_text() == "{}"


# The write-up
def test_write_ups_run_one_study_at_a_time(tmp_path, dice):
    (found,) = bench_audit(tmp_path, profile="quick", studies=[dice])
    assert (found.done, found.units, found.met, found.missed) == (4, 4, 4, 0)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["code"] == code_version()
    assert summary["studies"]["dice"]["tables"][0]["rows"][0]["met"] is True
    assert "| die | thrown | verdict |" in (tmp_path / "bench.md").read_text()
    html = (tmp_path / "bench.html").read_text()
    assert html.count("<tr>") == 5
    assert html.count("<td>met</td>") == 4

    class Coins(Dice):
        name = "coins"

    studies = [dice, Coins()]
    bench_audit(tmp_path, profile="quick", studies=studies, only=["coins"])
    found = bench_audit(tmp_path, profile="quick", studies=studies, only=["dice"])
    assert [each.name for each in found] == ["dice", "coins"]
    with pytest.raises(InputError, match="did you mean 'coins'"):
        bench_audit(tmp_path / "new", studies=studies, only=["coin"])
    assert not (tmp_path / "new").exists()


def test_cells_that_need_escapes():
    nasty = "<c>\n`*\x1b[31m"
    cells = ({"x": "a|b", "<y>": nasty}, {"x": "d", "<y>": "e"})
    table = TargetTable(
        nasty, (TargetRow(cells[0], False, {}), TargetRow(cells[1], None, {})), nasty
    )
    found = Summary("quick", nasty, (StudyFindings("t", nasty, 1, 2, (table,)),))

    text = render_markdown(found)
    assert "\n| a\\|b | \\<c\\> \\`\\*\ufffd\\[31m | NOT MET |\n" in text
    assert "\n| x | \\<y\\> | verdict |\n|---|---|---|\n" in text
    assert not re.search(r"(?<!\\)[<`*]|\x1b", text)
    html = render_html(found)
    assert "<td>a|b</td><td>&lt;c&gt; `*\ufffd[31m</td><td>NOT MET</td>" in html
    assert html.count('<tr class="not-met">') == 1
    assert "1 of 2 units" in html
    assert not re.search("<[cy]>|\x1b", html)


def test_summaries_are_read_as_written_and_folders_that_cannot_be_named(tmp_path):
    assert load_summary(tmp_path) is None
    rows = (
        TargetRow(
            {"x": "a", "y": "b"}, False, {"case": "x", "measured": np.float64(0.5)}
        ),
        TargetRow({"x": "c", "y": "d"}, None, {"case": "y"}),
        TargetRow({"x": "e", "y": "f"}, True, {}),
    )
    tables = (
        TargetTable("T", rows, "Note.", binding=True),
        TargetTable("U", (), "None."),
    )
    found = Summary("quick", "1+2", (StudyFindings("t", "Title", 3, 4, tables),))
    found.save(tmp_path)
    assert load_summary(tmp_path) == found
    (tmp_path / "file").touch()
    refuses("cannot write", bench_audit, tmp_path / "file")


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"profile": "quick"}', '{"profile": 1, "code": 2, "studies": []}'],
)
def test_a_summary_that_cannot_be_read_is_named(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    refuses(r"summary.json.*dpaudit bench-audit", load_summary, tmp_path)


def invented(study, unit):
    """Return a record as the study would make it."""
    match study:
        case Coverage():
            return {"trials": unit.option("trials"), "errors": {"bound": 0}}
        case Tightness():
            return {"epsilon_lower": 0.9}
        case RefutationStudy() | Limits():
            return {"refuted": unit.index != 1, "samples": 50 + unit.index}
        case SuiteBounds():
            return {"epsilon_lower": unit.option("releases") / 1e6, "seconds": 3.0}
        case cost.Cost() | cost.Replaying():
            return {"measured": 0.15}
        case EqualRealsStudy():
            return {"refuted": False}
        case Peers() if unit.case in LAWS:
            return {"dpaudit": {"bounds": [0.5] * 3, "seconds": 0.1}}
        case Peers():
            found = {"refuted": False, "releases": 50, "seconds": 0.1}
            return {"dpaudit": found, "DP-Sniper": found}
    raise AssertionError(study)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_tables_are_well_formed(study, profile, monkeypatch):
    monkeypatch.setattr(limits, "_limit", lambda name, confidence: 1000.0)
    units = study.units(profile)
    assert len({unit.key for unit in units}) == len(units)
    assert {unit.study for unit in units} <= {study.name}
    records = {unit: invented(study, unit) for unit in units}
    for table in study.tables(profile, records):
        for row in table.rows:
            assert tuple(row.cells) == table.columns
            json.dumps(row.data, allow_nan=False)
        if table.rows:
            assert len(table.lines) == len(table.rows) + 1
    assert sum(len(t.rows) for t in study.tables(profile, {})) == 0


def rows_of(study, profile, measured):
    """Return the rows of a study by case, of records that `measured` gives its units.

    Their order is not that of their figures.
    """
    units = study.units(profile)
    records = {unit: measured(unit) for unit in sorted(units, key=lambda u: u.seed)}
    tables = study.tables(profile, records)
    return {row.data["case"]: row for table in tables for row in table.rows}


@pytest.mark.parametrize(("above", "met"), [(0.0, True), (-1e-9, False)])
def test_the_median_bound_meets_the_target_or_not(above, met):
    """Of 21 bounds, the eleventh is at the target, just below it, or above."""
    by_case = {goal.case: goal for goal in TIGHTNESS_GOALS}

    def bound(unit):
        target = by_case[unit.case].target
        seeds = 11 if by_case[unit.case].releases == 10**6 else 21
        rank = unit.index - seeds // 2
        return {"epsilon_lower": target + (100 * rank if rank > 0 else rank) + above}

    rows = rows_of(Tightness(), "full", bound)
    assert set(rows) == set(by_case)
    for case, row in rows.items():
        target = by_case[case].target
        assert row.met is met
        assert row.data["smallest"] < target - 4 < target + 400 < row.data["largest"]
        assert row.cells["truth"] == f"{by_case[case].truth:.3f}"
        assert row.cells["measured"] == f"{row.data['measured']:.4f}"
        assert row.data["measured"] == pytest.approx(target + above)
        assert row.cells["seeds"] == str(row.data["seeds"])


@pytest.mark.parametrize("met", [True, False])
def test_the_median_refutation_meets_the_target_or_not(met):
    def refutation(unit):
        seeds = 51 if "black box" in unit.case else 5
        rank = unit.index - seeds // 2
        most = 60 if seeds == 51 else min(3 * refutation_limit(unit.case), 21.07e6)
        samples = 1 if rank > 0 else most + rank + (0 if met else 0.5)
        return {"refuted": rank <= 0, "samples": samples}

    rows = rows_of(RefutationStudy(), "full", refutation)
    assert len(rows) == 1 + len(best_events())
    for row in rows.values():
        assert row.met is met
        assert row.data["refuted"] == row.data["seeds"] // 2 + 1
    never = {"refuted": False, "samples": 9}
    endless = rows_of(RefutationStudy(), "quick", lambda unit: never)
    for row in endless.values():
        assert row.met is False
        assert "not refuted" in row.cells.values()


@pytest.mark.parametrize(
    ("change", "met"), [({}, True), ({"bound": -1e-9}, False), ({"seconds": 1}, False)]
)
def test_the_median_bound_of_the_suite_meets_the_target_or_not(change, met):
    goals = {goal.name: goal for goal in SUITE_GOALS}

    def bound(unit):
        goal, rank = goals[unit.case], unit.index - 1
        found = goal.published + change.get("bound", 0)
        if unit.option("releases") != goal.releases:
            found = goal.published / 2
        seconds = 60 + 7 * max(rank, 0) + rank + change.get("seconds", 0)
        return {"epsilon_lower": found + 10 * rank, "seconds": seconds}

    rows = rows_of(SuiteBounds(), "full", bound)
    assert set(rows) == set(goals)
    assert {row.met for row in rows.values()} == {met}
    endless = [
        name for name in goals if math.isinf(build(name, epsilon=CLAIMED).true_epsilon)
    ]

    def flat(unit):
        return {"epsilon_lower": 99.0, "seconds": 1.0}

    stuck = rows_of(SuiteBounds(), "full", flat)
    assert [name for name, row in stuck.items() if not row.met] == endless


def test_median_shares_and_costs_meet_their_targets_or_not():
    for share, met in ((0.15, True), (0.15 + 1e-9, False)):
        f = (share, 0.9, 0.1, 0.45, 0.45)
        rows = rows_of(cost.Cost(), "full", lambda u, f=f: {"measured": f[u.index]})
        row, first, many, memory = rows.values()
        assert row.met is met
        assert list(row.cells.values())[3:] == ["15.0 %", "15 %"]
        assert (first.met, many.met) == (True, False)
        assert list(many.cells.values())[3:] == ["0.45 s", "0.4 s"]
        assert memory.met is True
        assert list(memory.cells.values())[4] == "500 MB"
    for ratio, met in ((3.0, True), (3.0 + 1e-9, False)):
        f = (ratio, 9.0, 1.0, 1.0, 9.0)
        rows = rows_of(
            cost.Replaying(), "full", lambda u, f=f: {"measured": f[u.index]}
        )
        assert [row.met for row in rows.values()] == [met, met, *[True] * 5]
    quick = rows_of(cost.Replaying(), "quick", lambda unit: {"measured": 600.0})
    assert [row.met for row in quick.values()] == [False, False, *[None] * 4]


# Null coverage
class FastBounds(Coverage):
    cases = tuple(
        case
        for case in CASES
        if isinstance(case, CountsCase | ScoresCase | OneRunCase)
        and case.name in ("clopper-pearson", "one run", "split scores, laplace")
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder whose finished units are not repeated, by whichever test or study."""
    return tmp_path_factory.mktemp("kept")


def test_sound_bounds_pass_and_an_unsound_one_is_caught(tiny, kept):
    (found,) = bench_audit(kept, profile="quick", studies=[FastBounds()])
    assert found.sound
    assert [row.data["trials"] for row in found.tables[0].rows] == [300] * 3 + [900]
    (found,) = bench_audit(kept, profile="quick", studies=[Planted()])
    assert not found.sound
    by_case = {row.data["case"]: row for row in found.tables[0].rows}
    assert by_case["best of many"].met is False
    assert by_case["best of many"].data["errors"] > 40
    assert by_case["all 4 cases"].data["errors"] > 40
    others = [by_case[case.name] for case in FastBounds.cases]
    assert all(row.met for row in others)


@dataclass(frozen=True)
class BestOfManyThresholds(ScoresCase):
    """The largest of many thresholds' bounds, each at the full alpha: not a bound."""

    def bound(self, data):
        rng = np.random.default_rng(data[0])
        noise = rng.laplace(scale=1 / self.truth, size=(2, self.releases, 1))
        scores = noise + np.array([[[1.0]], [[0.0]]])
        p, q = (scores >= np.linspace(0.0, 3.0, 40)).mean(axis=1)
        deviation = np.sqrt(((1 - p) / p + (1 - q) / q) / self.releases)
        return float(np.max(np.log(p / q) - stats.norm.isf(0.05) * deviation))


class Planted(FastBounds):
    cases = (
        BestOfManyThresholds("best of many", "", PureDP(1.0), releases=4000),
        *FastBounds.cases,
    )


@pytest.mark.parametrize(
    ("errors", "rate", "met"),
    [(100, "5.0 %", True), (126, "6.3 %", True), (160, "8.0 %", False)],
)
def test_the_binomial_test(errors, rate, met):
    class OneCase(Coverage):
        cases = (CountsCase("joint", "joint", PureDP(1.0), 0.2),)

    study = OneCase()
    unit = Unit("coverage", "joint", 0, (("trials", 2000),))
    records = {unit: {"trials": 2000, "errors": {"bound": errors}}}
    (row,) = study.tables("full", records)[0].rows
    expected = stats.binomtest(errors, 2000, 0.05, alternative="greater").pvalue
    assert row.data["p_value"] == pytest.approx(expected, rel=1e-9)
    exact = stats.binomtest(errors, 2000).proportion_ci(0.95, method="exact")
    assert (row.data["low"], row.data["high"]) == pytest.approx(tuple(exact), rel=1e-9)
    assert row.met is met
    assert row.cells["rate"] == rate


def test_false_claims_and_wrong_exact_ones_count_as_errors():
    case = AuditCase("half laplace", Laplace.under_noised(1.0), PureDP(1.0))
    # Half of them stop at the refutation, where other bounds may not be wrong yet.
    errors = case.errors(0, 4, 1500)
    assert errors["verdict"] == 4
    assert min(errors["epsilon"], errors["delta"]) > 0
    hidden = replace(case, black_box=True)
    assert hidden.errors(0, 1, 600)["verdict"] == 1

    @dataclass(frozen=True)
    class Boastful(Laplace):
        def exact_claim(self, pair):
            return PureDP(self.epsilon / 2)

    assert WhiteBoxCase("x", Boastful(1.0)).errors(0, 1, 5000) == {"interval": 1}
    assert WhiteBoxCase("x", Laplace(1.0)).errors(0, 1, 500) == {"interval": 0}


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.group == "fixed sample"],
    ids=lambda case: case.name,
)
def test_cases_of_bounds_are_on_the_boundary(case):
    # A bound of hardly any confidence is near the truth: the data are neither safe nor
    # unsafe by far.
    assert set(case.errors(1, 2, 0)) == {"bound"}
    if isinstance(case, CountsCase):
        p = float(case.claim.tpr(case.q))
        assert case.q < p < 1
        weaker = type(case.claim)(
            **{**case.claim.parameters, **{_main(case.claim): case.truth * 0.999}}
        )
        assert p > float(weaker.tpr(case.q))


def _main(claim):
    return "mu" if "mu" in claim.parameters else "epsilon"


@pytest.mark.parametrize(
    "name", ["laplace, pair search", "witness replay", "loss consistency"]
)
def test_cases_run(name):
    case = next(case for case in CASES if case.name == name)
    assert set(case.errors(0, 1, 60).values()) == {0}


# Subjects
@pytest.mark.hard
@pytest.mark.parametrize("block", range(16))
@pytest.mark.parametrize("name", LATEST)
def test_the_latest_cases_over_many_audits(name, block):
    """2,000 audits a case, of 60 releases a side at most; `-rP` tells the counts.

    A block of a sound package fails with probability at most 1e-6 for each of its
    three statements, so one of the 80 blocks does with probability 2.4e-4.
    """
    case = next(case for case in CASES if case.name == name)
    errors = case.errors(seed=5_000_000 + block, trials=125, releases=60)
    print(name, errors)
    assert max(errors.values()) <= stats.binom.isf(1e-6, 125, 0.05)


def test_black_boxes_show_releases_alone_and_every_bound_is_on_trial():
    box = BlackBox(Laplace(1.0))
    for capability in (HasPrivacyLoss, HasStatistic, HasWorstCase, Mechanism):
        assert not isinstance(box, capability)
    drawn = box.draw(np.zeros(1), 5, rng=np.random.default_rng(0))
    expected = Laplace(1.0).draw(np.zeros(1), 5, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, expected)
    tried = {case.method for case in CASES if hasattr(case, "method")}
    tried |= {"one_run"} if any(isinstance(c, OneRunCase) for c in CASES) else set()
    types = {"Bound", "Counts"}
    shipped = set(bounds.__all__) - types - {"one_run_p_value"}
    assert tried == shipped
    groups = {case.group for case in CASES}
    assert {"anytime engine", "witness replay", "white box"} <= groups
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(isinstance(case, CoverageCase) for case in CASES)


def test_a_leaky_response_meets_its_claim_with_equality():
    epsilon, delta = 1.3, 0.05
    mechanism = LeakyResponse(epsilon, delta)
    truth = expit(epsilon)
    p = np.array([(1 - delta) * truth, (1 - delta) * (1 - truth), delta, 0.0])
    q = p[[1, 0, 3, 2]]
    for bit, law in ((0.0, p), (1.0, q)):
        drawn = mechanism.draw([bit], 100_000, rng=np.random.default_rng(7))
        counts = np.bincount(drawn.astype(int), minlength=4)
        assert not counts[law == 0].any()
        seen = law > 0
        assert stats.chisquare(counts[seen], 100_000 * law[seen]).pvalue > 1e-9
    excess = np.maximum(p - np.exp(epsilon) * q, 0).sum()
    assert excess == pytest.approx(delta, rel=1e-12)
    assert np.maximum(p - np.exp(0.99 * epsilon) * q, 0).sum() > delta
    assert mechanism.claim == ApproxDP(epsilon, delta)


# Best events
def both(name):
    mechanism = build(name, epsilon=CLAIMED)
    pair = mechanism.worst_case()
    return mechanism, [mechanism.answers(x) for x in (pair.data, pair.neighbour)]


def closed_form_cells(name):
    """Return the cells' probabilities on D and D', from laws of single numbers."""
    mechanism, answers = both(name)
    match name:
        case "laplace-under-noised" | "noisy-hist-2":
            low = 0.13 if name.startswith("laplace") else 0.39
            laws = [
                stats.laplace(loc=float(np.ravel(a)[0]), scale=mechanism.scale)
                for a in answers
            ]
            return [(law.cdf(low), law.sf(1 - low)) for law in laws]
        case "gaussian-under-noised":
            laws = [stats.norm(loc=float(a), scale=mechanism.sigma) for a in answers]
            reach = 1.88 * mechanism.sigma
            return [(law.cdf(-reach), law.sf(1 + reach)) for law in laws]
        case "truncated-geometric":
            return [(mechanism.distribution(int(a))[0],) for a in answers]
        case "noisy-max-3":
            scale = mechanism.scale
            return [
                (np.prod(stats.laplace.cdf(0.75, loc=a, scale=scale)),) for a in answers
            ]
        case "noisy-max-4":
            below = max(answers[1])
            return [
                (np.prod(stats.expon.cdf(below, loc=a, scale=mechanism.scale)),)
                for a in answers
            ]
        case "svt-5":
            law = stats.laplace(loc=1, scale=mechanism.scales[0])
            return [(law.cdf(10) - law.cdf(0),), (0.0,)]
        case "prefix-sum":
            single = [stats.laplace.cdf(0.5, loc=a[0], scale=10) for a in answers]
            return [
                (stats.binom.sf(6, 10, f), stats.binom.cdf(3, 10, f)) for f in single
            ]
    one, zero = mechanism.told_as_one
    return [
        (stats.binom.sf(5, 8, f), stats.binom.cdf(2, 8, f))
        for f in ((one + 1 - zero) / 2, (zero + 1 - one) / 2)
    ]


CLOSED = (
    *("laplace-under-noised", "gaussian-under-noised", "truncated-geometric"),
    *("noisy-hist-2", "noisy-max-3", "noisy-max-4", "svt-5", "prefix-sum", "rappor"),
    "one-time-rappor",
)
STREAMS = ("svt-3", "svt-4", "svt-6", "svt-3-4-parallel")


@pytest.mark.parametrize("name", CLOSED)
def test_best_events_in_closed_form(name):
    event = best_events()[name]
    for cells, expected in zip(
        (event.p, event.q), closed_form_cells(name), strict=True
    ):
        outer = (cells[0], *cells[2:])[: len(expected)]
        assert outer == pytest.approx(expected, rel=1e-9, abs=1e-300)


def ends(*places, length=10):
    """Return a stream that is above at these places, counted from 1, only."""
    return ["above" if k in places else "below" for k in range(1, length + 1)][
        : max(places)
    ]


def value_at(place, low, high):
    return ["below"] * (place - 1) + [(low, high)]


def mixed(above_first, above_last):
    first = ["above"] * above_first + ["below"] * (5 - above_first)
    last = ["above"] * above_last + ["below"] * (5 - above_last)
    ways = math.comb(5, above_first) * math.comb(5, above_last)
    return ways, first + last


def stream_cells(name):
    """Return the streams of the first two cells, each with how many are like it."""
    match name:
        case "svt-3":
            limits = {3: 0.0, 4: 0.6, 5: 3.0, 6: 29.0, 7: 19.0}
            cells = [value_at(k, -np.inf, v) for k, v in limits.items()]
            cells += [value_at(8, 0.4, 11.5), value_at(9, 0.9, 3.8)]
            return [[(1, cell) for cell in cells]]
        case "svt-4":
            return [[(1, ends(6))], [(1, ends(7)), (1, ends(8))]]
        case "svt-6":
            chosen = [(i, j) for i in range(6) for j in range(i + 3, 6)]
            chosen += [(2, 4), (1, 3)]
            return [[mixed(i, j) for i, j in chosen]]
    inside = (6, 7, 8, 9)
    top = [(1, ends(i, j)) for i in inside for j in inside if i < j]
    second = [(1, ends(i, 10)) for i in inside]
    return [top, second + [(1, ends(i, 6)) for i in range(1, 6)]]


@pytest.mark.parametrize("name", STREAMS)
def test_best_events_of_streams_by_quadrature(name):
    mechanism = build(name, epsilon=CLAIMED)
    part = getattr(mechanism, "parts", (mechanism,))[-1]
    halves = np.repeat([0.0, 1.0], 5)
    event = best_events()[name]
    for cells, answers in ((event.p, halves), (event.q, 1 - halves)):
        for cell, streams in zip(cells, stream_cells(name), strict=False):
            exact = sum(
                ways * ORACLES["stream_probability"](part, answers, stream)
                for ways, stream in streams
            )
            assert cell == pytest.approx(exact, rel=1e-8)


def test_every_broken_mechanism_has_a_best_event_and_a_third_cell_helps():
    broken = {
        name
        for name in names_of("textbook")
        if build(name, epsilon=CLAIMED).true_epsilon > CLAIMED * (1 + 1e-9)
    }
    assert set(best_events()) == broken == {*CLOSED, *STREAMS}
    for name, event in best_events().items():
        assert sum(event.p) == pytest.approx(1, rel=1e-12)
        assert sum(event.q) == pytest.approx(1, rel=1e-12)
        assert min(*event.p, *event.q) >= 0
        delta = build(name, epsilon=CLAIMED).claim.parameters.get("delta", 0.0)
        assert event.p[0] > np.exp(CLAIMED) * event.q[0] + delta
    event = best_events()["rappor"]
    merged = BestEvent(
        (event.p[0], event.p[1] + event.p[2]), (event.q[0], event.q[1] + event.q[2])
    )
    claim = PureDP(CLAIMED)
    apart, together = (information_limit(e, claim, 1e-3) for e in (event, merged))
    assert apart == pytest.approx(5945, abs=1)
    assert together > 1.5 * apart


# The other studies, on a unit each
def test_units_of_bounds_are_measured():
    study = Tightness()
    small = next(g for g in TIGHTNESS_GOALS if g.engine == "anytime" and g.gaussian)
    unit = next(u for u in study.units("full") if u.case == small.case)
    assert 0 < study.measure(unit)["epsilon_lower"] < small.truth * 1.05
    unit = Unit("suite", "noisy-hist-2", 0, (("releases", 500),))
    record = SuiteBounds().measure(unit)
    assert 1 < record["epsilon_lower"] < 10.01
    unit = next(u for u in Limits().units("quick") if u.case == "half laplace, 0.999")
    record = Limits().measure(unit)
    assert record["refuted"]
    assert 20 < record["samples"] < 500


def test_goals_are_below_the_truth_and_profiles_grow():
    for goal in TIGHTNESS_GOALS:
        assert goal.target < goal.truth
    for goal in SUITE_GOALS:
        assert goal.published <= build(goal.name, epsilon=CLAIMED).true_epsilon
    for study in STUDIES:
        small, middle, large = (len(study.units(profile)) for profile in PROFILES)
        assert small <= middle <= large


def test_the_cost_of_an_audit_and_of_a_recorded_execution_is_measured():
    assert 0 < cost.engine_share(40, 0) < 1
    assert cost.overhead(build("analyze-gauss"), 20, 0) > 0
    assert cost.replay_time("noisy_sum", 40, 0) > 0


def test_descent_comes_to_the_mean_and_kept_claims_have_no_growth():
    """Its entries deviate by less than 0.01 in the end."""
    row = np.array([0.6, 0.0, -0.3])
    found = cost.dp_sgd(np.tile(row, (1000, 1)), np.random.default_rng(0))
    assert found == pytest.approx(row, abs=0.1)
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    assert growth(p, q, [(0.5, 0.0)]) == pytest.approx(0.0, abs=1e-9)
    assert growth(p, q, [(0.3, 0.0)]) > 1e-3


def test_memory_is_that_of_a_process_of_its_own(monkeypatch):
    """In this one, for the time that another takes to start: it runs the same code."""

    def here(command, **options):
        with monkeypatch.context() as patch, redirect_stdout(io.StringIO()) as told:
            patch.setattr(sys, "argv", ["-c", *command[3:]])
            exec(command[2], {})
        return SimpleNamespace(stdout=told.getvalue())

    monkeypatch.setattr(subprocess, "run", here)
    for work in (cost.audited, cost.recorded):
        assert 50 < cost.memory_alone(work, 100, 0) <= cost.peak_resident() < 20_000
    replayed = cost.memory_alone(cost.replayed, "noisy_sum", 100, 0)
    assert 50 < replayed <= cost.peak_resident()


# The command
def test_the_command_tells_what_it_found(kept, tiny, monkeypatch):
    def run(*studies):
        given = {**defaults, "studies": studies}
        monkeypatch.setattr(bench_audit, "__kwdefaults__", given)
        arguments = ["bench-audit", "--profile", "quick", "--workers", "1"]
        arguments += ["--output", str(kept)]
        return CliRunner().invoke(main, arguments)

    defaults = dict(bench_audit.__kwdefaults__)
    sound, unsound = run(FastBounds()), run(Planted())
    assert run(FastBounds(), Planted()).exit_code == 1
    assert sound.exit_code == 0, sound.output
    assert "4 targets met, 0 NOT MET" in sound.output
    assert unsound.exit_code == 1
    assert "NOT MET" in unsound.output


def by_brute_force(p, q, points):
    """Minimise the divergence over laws on cells themselves."""

    def divergence(x):
        first, second = np.split(x, 2)
        return -(p @ first + q @ second) / 2

    def room(x):
        first, second = np.split(np.exp(x), 2)
        unions = [
            np.array(list(np.binary_repr(i, len(p))), dtype=float)
            for i in range(1, 2 ** len(p) - 1)
        ]
        gaps = [
            delta - union @ (one - math.exp(epsilon) * other)
            for epsilon, delta in points
            for one, other in ((first, second), (second, first))
            for union in unions
        ]
        return np.array([*gaps, 1 - first.sum(), 1 - second.sum()])

    found = minimize(
        divergence,
        np.tile(np.log((p + q) / 2), 2),
        constraints={"type": "ineq", "fun": room},
        options={"maxiter": 500, "ftol": 1e-13},
        method="SLSQP",
    )
    assert found.success
    return found.fun + (p @ np.log(p) + q @ np.log(q)) / 2


@pytest.mark.parametrize(
    "points",
    [
        [(0.5, 0.02)],
        [(0.2, 0.05), (1.0, 0.01)],
        [(0.0, 0.1), (0.4, 0.03), (1.2, 0.005)],
    ],
)
def test_the_growth_at_the_limit_is_that_of_brute_force(points):
    rng = np.random.default_rng(3)
    for _ in range(3):
        p, q = rng.dirichlet(np.full(3, 2.0), size=2)
        expected = by_brute_force(p, q, points)
        assert growth(p, q, points) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "delta"), [("laplace-under-noised", 0.0), ("gaussian-under-noised", 1e-5)]
)
def test_the_growth_at_the_limit_is_that_of_the_best_event(name, delta):
    event = best_events()[name]
    found = growth(np.array(event.p), np.array(event.q), [(0.1, delta)])
    assert math.log(1000) / (2 * found) == pytest.approx(
        refutation_limit(name), rel=1e-6
    )


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_laws_of_a_subject_are_those_of_its_mechanism(name):
    # Null: the shares of losses are right. False alarms: 1e-4 for each of 6; seeded.
    subject = SUBJECTS[name]
    mechanism, rng = subject.mechanism(), np.random.default_rng(11)
    pair = mechanism.worst_case()
    p, q = subject.laws()
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    for data, law in ((pair.data, p), (pair.neighbour, q)):
        drawn = mechanism.draw(data, 20_000, rng=rng)
        found = mechanism.privacy_loss(drawn, pair.data, pair.neighbour)
        for threshold in (-0.5, 0.013, 0.77):
            hits, chance = int((found >= threshold).sum()), law[losses >= threshold]
            assert binomtest(hits, 20_000, min(1.0, chance.sum())).pvalue > 1e-4


@pytest.mark.parametrize(("factor", "met"), [(2.0, True), (2.01, False)])
def test_the_median_over_the_limit_meets_the_target_or_not(monkeypatch, factor, met):
    monkeypatch.setattr(limits, "_limit", lambda name, confidence: 1000.0)
    study, profile = Limits(), "standard"
    late = {"refuted": False, "samples": 1}
    records = {
        unit: {"refuted": True, "samples": round(factor * 1000)}
        if unit.index <= 10
        else late
        for unit in study.units(profile)
    }
    (table,) = study.tables(profile, records)
    assert len(table.rows) == 2 * len(SUBJECTS)
    for row in table.rows:
        assert row.data["seeds"] == 21
        assert row.met is (met or row.data["confidence"] == 0.95)


@pytest.mark.parametrize("confidence", [0.95, 0.999])
def test_the_limit_of_two_cells_is_that_of_their_event(confidence):
    p, q = (tuple(law.tolist()) for law in SUBJECTS["symmetric-noise"].laws())
    expected = information_limit(BestEvent(p, q), PureDP(1.0), 1 - confidence)
    found = limits._limit("symmetric-noise", confidence)
    assert found == pytest.approx(expected, rel=1e-6)
