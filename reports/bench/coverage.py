r"""Study A: how often each bound accuses a mechanism that keeps its promise.

The nominal error probability alpha is 0.05, and every case meets its claim with
equality. For each statement of each case k errors in n trials are counted. Trials are
independent, so under the null hypothesis "the error probability is at most alpha" the
chance of k or more errors is at most P(Bin(n, alpha) >= k), an exact one-sided p-value.
A statement fails if its p-value is below 0.001 divided by the number of statements
(Bonferroni): a sound package fails the study with probability at most 0.001. Few trials
a case see little; so, where a group has several cases, one more line per group and
statement pools its cases: trials of different cases are independent too, and the sum of
the errors is stochastically at most Bin(n, alpha) (each is a coin with success
probability at most alpha).
"""

from typing import Any, ClassVar

import pandas as pd
from scipy.special import expit
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from dpaudit.algorithms import SymmetrisedWishart
from dpaudit.algorithms.textbook.counts import TruncatedGeometric
from dpaudit.algorithms.textbook.randomised_response import RandomisedResponse
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace, LaplaceParallel
from dpaudit.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reports.bench.coverage_cases import (
    CONFIDENCE,
    AuditCase,
    CountsCase,
    CoverageCase,
    LossConsistencyCase,
    OneRunCase,
    ScoresCase,
    WhiteBoxCase,
    WitnessCase,
)
from dpaudit.reports.bench.equal_reals import EqualReals
from dpaudit.reports.bench.study import (
    Figure,
    Records,
    Study,
    TargetRow,
    TargetTable,
    Unit,
)
from dpaudit.reports.bench.subjects import (
    LeakyResponse,
    MixedLayouts,
    RareAnswers,
    SpoiltCompany,
)
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import Size, sizes
from dpaudit.reports.words import count, percent

LEVEL = 1e-3
"""The probability that a sound package fails the study."""

_ALPHA = 1 - CONFIDENCE
_PURE = PureDP(1.0)

SIZES = sizes(
    # Trials of each case of the anytime engine and of witness replay.
    audits=(12, 300, 2000),
    releases=(100, 500, 300),  # a side of such an audit, at most
    data_sets=(40, 2000, 4000),  # trials of each bound for a fixed sample
    runs=(10, 300, 2000),  # trials of each white-box case
    core=(True, False, False),  # the anytime engine on the quickest cases only
)

_CORE = (
    "randomised response",
    "gaussian, GDP",
    "laplace, black box",
    "gaussian, black box",
    "leaky response, black box",
    "leaky response, pair search",
    "mixed layouts, black box",
    "spoilt company, black box",
)
_WHITE_ONLY = ("laplace, exact profile", "gaussian, small delta")
_BLACK_ONLY = ("mixed layouts", "spoilt company", "rare answers", "rare empties")
_EQUAL = ("reciprocal", "rotation", "noise cancelled")


def _audits() -> list[AuditCase]:
    """Return the cases of the anytime engine: as they are, then as black boxes."""
    geometric, laplace = TruncatedGeometric(0.5), Laplace(1.0)
    subjects = {
        "laplace": (laplace, laplace.claim),
        "laplace, exact profile": (laplace, laplace.exact_claim(laplace.worst_case())),
        "randomised response": (RandomisedResponse(1.0), _PURE),
        "gaussian": (Gaussian.calibrated(1.0, 0.1), ApproxDP(1.0, 0.1)),
        "gaussian, small delta": (Gaussian.calibrated(1.0, 1e-5), ApproxDP(1.0, 1e-5)),
        "gaussian, GDP": (Gaussian.from_mu(1.0), GaussianDP(1.0)),
        "laplace-parallel": (LaplaceParallel(1.0), _PURE),
        "truncated geometric": (geometric, PureDP(geometric.true_epsilon)),
        "symmetrised wishart": (SymmetrisedWishart.calibrated(1.0), _PURE),
        "leaky response": (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.05)),
        "mixed layouts": (MixedLayouts(), _PURE),
        "spoilt company": (SpoiltCompany(), _PURE),
        "rare answers": (RareAnswers(0.1), _PURE),
        "rare empties": (RareAnswers(0.9), _PURE),
    }
    searched = {
        "laplace": "scalar:0,1:rows=2",
        "gaussian, GDP": "scalar:0,1:rows=2",
        "leaky response": "scalar:0,1:rows=1",
    }
    cases = [
        AuditCase(name, *subject)
        for name, subject in subjects.items()
        if name not in _BLACK_ONLY
    ]
    for name, subject in subjects.items():
        if name not in _WHITE_ONLY:
            cases.append(AuditCase(f"{name}, black box", *subject, black_box=True))
    for form in _EQUAL:
        null = EqualReals(form)
        cases.append(AuditCase(f"equal reals, {form}", null, null.claim))
    for name, domain in searched.items():
        case = f"{name}, pair search"
        cases.append(AuditCase(case, *subjects[name], black_box=True, search=domain))
    return cases


CASES: tuple[CoverageCase, ...] = (
    *_audits(),
    WitnessCase("witness replay", Laplace.under_noised(1.0), Laplace(1.0)),
    CountsCase("clopper-pearson", "clopper_pearson", _PURE, 0.2),
    CountsCase("clopper-pearson, delta", "clopper_pearson", ApproxDP(1.0, 0.05), 0.1),
    CountsCase(
        "clopper-pearson, two-sided", "clopper_pearson", _PURE, 0.2, two_sided=True
    ),
    CountsCase("joint", "joint", _PURE, 0.2),
    CountsCase("joint, corner", "joint", _PURE, float(expit(-1.0))),
    CountsCase("joint, delta", "joint", ApproxDP(1.0, 0.05), 0.1),
    CountsCase("joint, two-sided", "joint", _PURE, 0.2, two_sided=True),
    CountsCase("joint, unequal sides", "joint", PureDP(2.0), 0.02, (60, 600)),
    CountsCase("joint, rare event", "joint", _PURE, 0.005),
    CountsCase("gaussian counts", "gaussian", GaussianDP(1.0), 0.3),
    CountsCase("gaussian counts, rare event", "gaussian", GaussianDP(1.0), 0.01),
    CountsCase(
        "gaussian counts, two-sided", "gaussian", GaussianDP(1.0), 0.3, two_sided=True
    ),
    ScoresCase("split scores, laplace", "split_scores", _PURE),
    ScoresCase("split scores, leaky response", "split_scores", ApproxDP(1.0, 0.05)),
    ScoresCase("fixed scores, laplace", "fixed_scores", _PURE),
    ScoresCase("fixed scores, leaky response", "fixed_scores", ApproxDP(1.0, 0.05)),
    ScoresCase("fixed scores, GDP", "fixed_scores", GaussianDP(1.0)),
    OneRunCase("one run", _PURE),
    OneRunCase("one run, delta", ApproxDP(1.0, 0.01)),
    OneRunCase("one run, abstaining", _PURE, canaries=200, guesses=50),
    OneRunCase("one run, GDP", GaussianDP(1.0), canaries=200, guesses=50),
    WhiteBoxCase("white box, laplace", Laplace(1.0)),
    WhiteBoxCase("white box, gaussian", Gaussian.from_mu(1.0)),
    WhiteBoxCase("white box, truncated geometric", TruncatedGeometric(0.5), (0.0, 0.1)),
    WhiteBoxCase("white box, translated", Gaussian.from_mu(1.0), (2.0,), "auto"),
    LossConsistencyCase("loss consistency", Laplace(1.0)),
)
"""Every bound of the package, each where its claim holds with equality."""


class Coverage(Study):
    """False refutations at a nominal error probability of 5 %."""

    name = "coverage"
    title = "False refutations"
    cases: ClassVar[tuple[CoverageCase, ...]] = CASES
    """What is on trial; of the class, so that a study travels to workers by name."""

    def units(self, profile: str) -> list[Unit]:
        size = SIZES[profile]
        units = []
        for case in self._chosen(size):
            trials = getattr(size, case.effort)
            for index in range(-(-trials // case.chunk)):
                some = min(case.chunk, trials - index * case.chunk)
                options: tuple[tuple[str, int], ...] = (("trials", some),)
                if case.effort != "data_sets":
                    options += (("releases", size.releases),)
                units.append(Unit(self.name, case.name, index, options))
        # The core cases come first, all of them step by step, so that a run that is
        # interrupted has something to say of each.
        return sorted(units, key=lambda unit: (unit.case not in _CORE, unit.index))

    def measure(self, unit: Unit) -> Record:
        case = next(case for case in self.cases if case.name == unit.case)
        trials, releases = unit.option("trials"), dict(unit.options).get("releases", 0)
        return {
            "trials": trials,
            "errors": case.errors(unit.seed, trials, int(releases)),
        }

    def tables(self, profile: str, records: Records) -> list[TargetTable]:
        group = {case.name: case.group for case in self.cases}
        counted = pd.DataFrame(
            [
                (group[unit.case], unit.case, statement, wrong, record["trials"])
                for unit, record in records.items()
                for statement, wrong in record["errors"].items()
            ],
            columns=["group", "case", "statement", "errors", "trials"],
        )
        several = {"sort": False, "as_index": False}
        each = counted.groupby(["group", "case", "statement"], **several).sum()
        pooled = each.groupby(["group", "statement"], **several).agg(
            {"case": "count", "errors": "sum", "trials": "sum"}
        )
        pooled = pooled[pooled["case"] > 1]
        pooled["case"] = [f"all {number} cases" for number in pooled["case"]]
        lines = pd.concat([each, pooled])
        engine = lines["group"] == "anytime engine"
        lines = pd.concat([lines[engine], lines[~engine]])
        level = LEVEL / max(len(lines), 1)
        rows = tuple(_row(line, level) for line in lines.itertuples())
        note = (
            f"Every case meets its claim with equality; the nominal rate is "
            f"{percent(_ALPHA)}. A line fails if so many errors have a probability "
            f"below {level:.2g} at the nominal rate. The interval holds the rate with "
            "probability 95 % (Clopper and Pearson)."
        )
        return [TargetTable(self.title, rows, note, binding=True)]

    def _chosen(self, size: Size) -> list[CoverageCase]:
        return [
            case
            for case in self.cases
            if not (size.core and isinstance(case, AuditCase)) or case.name in _CORE
        ]


def _row(line: Any, level: float) -> TargetRow:
    errors, trials = int(line.errors), int(line.trials)
    low, high = proportion_confint(errors, trials, alpha=0.05, method="beta")
    p_value = float(binom.sf(errors - 1, trials, _ALPHA))
    return TargetRow.of(
        p_value >= level,
        Figure("group", line.group, "on trial", line.group),
        Figure("case", line.case, "case", line.case),
        Figure("statement", line.statement, "statement", line.statement),
        Figure("errors", errors, "errors", count(errors)),
        Figure("trials", trials, "trials", count(trials)),
        Figure(heading="rate", text=percent(errors / trials)),
        Figure(heading="interval", text=f"{percent(low)} to {percent(high)}"),
        Figure("low", float(low)),
        Figure("high", float(high)),
        Figure("p_value", p_value, "p-value", f"{p_value:.2g}"),
        Figure("level", level),
    )
