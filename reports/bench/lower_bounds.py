"""Studies B and D: lower bounds, against the truth and against published ones.

**Tightness.** Laplace and Gaussian mechanisms that claim epsilon = 1, with the noise
that this needs and with half of it. The bound at confidence 95 % after n releases a
side: the median over seeds. What it has to beat is the best that sound tools reach on
the same releases, and for the anytime-valid engine the target accounts for what peeking
costs. Rows under GDP hold the mechanism to the mu-GDP claim that its noise was computed
for; their bound on mu is read as the epsilon of that Gaussian mechanism at delta 1e-5.

**The standard suite.** Every broken mechanism of the suite claims epsilon = 0.1 and
loses more. The bound at confidence 95 % has to reach the best published one within a
minute of wall-clock time. Where the truth is infinite no bound is final: it has to grow
with the number of releases, so a tenth of them is tried as well. The published bounds
are DP-Sniper's (Bichsel, Steffen, Bogunovic, Vechev, IEEE S&P 2021), found with 10.7
million samples to search and 200 million for the final bound.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.audit import Budget, audit
from dpaudit.audit.bounds import fixed_scores
from dpaudit.claims import GaussianDP
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.reports.bench.study import NOTES, Figure, Records, Study, TargetRow, Unit
from dpaudit.reports.bench.subjects import CLAIMED, best_pair, subject
from dpaudit.reports.experiment import Record, declarations
from dpaudit.reports.words import count, number
from dpaudit.streams import stream

__all__ = ["Tightness"]

_CONFIDENCE = 0.95
_EPSILON, _DELTA = 1.0, 1e-5
_GDP = ", GDP"  # behind the name of a mechanism whose claim is mu-GDP

_MECHANISMS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: Laplace(_EPSILON),
    "half laplace": lambda: Laplace.under_noised(_EPSILON),
    "gaussian": lambda: Gaussian.calibrated(_EPSILON, _DELTA),
    "half gaussian": lambda: Gaussian.under_noised(_EPSILON, _DELTA),
}


@dataclass(frozen=True)
class TightnessGoal:
    """One figure to reach."""

    mechanism: str
    gaussian: bool  # whether the claim is mu-GDP
    engine: str  # "anytime" or "fixed"
    releases: int  # on either side
    target: float
    # the best of the sound tools that were measured, at that n
    published: float | None = None

    @property
    def case(self) -> str:
        """What names the goal."""
        claim = _GDP if self.gaussian else ""
        return f"{self.engine}, {self.mechanism}{claim}, n = {self.releases:.0e}"

    @property
    def truth(self) -> float:
        """The true epsilon at the claim's delta."""
        return float(_MECHANISMS[self.mechanism]().true_epsilon)


_GOALS = declarations(Path(__file__).with_name("goals.toml"))
TIGHTNESS_GOALS = tuple(
    TightnessGoal(
        name.removesuffix(_GDP), _GDP in name, each["engine"], each["releases"], *goal
    )
    for each in _GOALS["tightness"]
    for name, goal in each["goals"].items()
)

_TIGHTNESS_SEEDS = {
    "quick": {10**3: 3, 10**4: 1},
    "standard": {10**3: 21, 10**4: 11, 10**6: 1},
    "full": {10**3: 21, 10**4: 21, 10**6: 11},
}


class Tightness(Study):
    """Lower bounds on epsilon against the truth."""

    name = "tightness"
    title = "Tightness of lower bounds"
    note = NOTES["tightness"]

    def units(self, profile: str) -> list[Unit]:
        seeds = _TIGHTNESS_SEEDS[profile]
        return [
            Unit(self.name, goal.case, index)
            for goal in TIGHTNESS_GOALS
            for index in range(seeds.get(goal.releases, 0))
        ]

    def measure(self, unit: Unit) -> Record:
        goal = next(goal for goal in TIGHTNESS_GOALS if goal.case == unit.case)
        bound = _anytime if goal.engine == "anytime" else _fixed
        return {"epsilon_lower": bound(goal, unit.seed)}

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        found = self.by_case(records, "epsilon_lower")
        return [
            _tightness_row(goal, found[goal.case])
            for goal in TIGHTNESS_GOALS
            if goal.case in found
        ]


def _anytime(goal: TightnessGoal, seed: int) -> float:
    result = audit(
        _MECHANISMS[goal.mechanism](),
        claim=GaussianDP(gaussian_mu(_EPSILON, _DELTA)) if goal.gaussian else None,
        confidence=_CONFIDENCE,
        budget=Budget(goal.releases, stop=False),
        seed=seed,
    )
    if not goal.gaussian:
        return result.epsilon_lower
    assert result.mu_lower is not None  # GDP is claimed
    return gaussian_epsilon(_DELTA, result.mu_lower)


def _fixed(goal: TightnessGoal, seed: int) -> float:
    mechanism = _MECHANISMS[goal.mechanism]()
    pair = mechanism.worst_case()
    scores = [
        mechanism.privacy_loss(
            mechanism.draw(rows, goal.releases, rng=stream(seed, side)),
            pair.data,
            pair.neighbour,
        )
        for side, rows in enumerate((pair.data, pair.neighbour))
    ]
    bound = fixed_scores(
        *scores,
        delta=mechanism.claim.parameters.get("delta", 0.0),
        confidence=_CONFIDENCE,
        gaussian=goal.gaussian,
        rng=stream(seed, 2),
    )
    assert bound.epsilon is not None  # delta > 0 wherever mu is bounded
    return bound.epsilon


def _tightness_row(goal: TightnessGoal, bounds: list[float]) -> TargetRow:
    measured = median(bounds)
    published = "" if goal.published is None else f"{goal.published:.3f}"
    return TargetRow.of(
        measured >= goal.target,
        Figure("case", goal.case),
        Figure(heading="mechanism", text=goal.mechanism),
        Figure(heading="claim", text="GDP" if goal.gaussian else "(ε, δ)"),
        Figure(heading="engine", text=goal.engine),
        Figure(heading="n a side", text=f"{goal.releases:,}"),
        Figure("truth", goal.truth, "truth", f"{goal.truth:.3f}"),
        Figure("seeds", len(bounds), "seeds", f"{len(bounds)}"),
        Figure("measured", measured, "measured", f"{measured:.4f}"),
        Figure("smallest", min(bounds)),
        Figure("largest", max(bounds)),
        Figure("published", goal.published, "published", published),
        Figure("target", goal.target, "target", f"{goal.target:.3f}"),
    )


_SECONDS = 60.0


@dataclass(frozen=True)
class SuiteGoal:
    """One mechanism."""

    name: str  # in the suite
    published: float  # the best published lower bound
    releases: int  # a side, for profile full

    @property
    def endless(self) -> bool:
        """Whether the true epsilon is infinite."""
        return bool(subject(self.name).true_epsilon == inf)

    def budgets(self, profile: str) -> list[int]:
        """Return the releases a side of its audits: all, and a tenth if endless."""
        most = int(_SHARES[profile] * self.releases)
        return [most, most // 10] if self.endless else [most]


SUITE_GOALS = tuple(SuiteGoal(name, **goal) for name, goal in _GOALS["suite"].items())

_SHARES = {"quick": 0.005, "standard": 0.1, "full": 1.0}
_SUITE_SEEDS = {"quick": 0, "standard": 1, "full": 3}


class SuiteBounds(Study):
    """Lower bounds on epsilon for the broken mechanisms of the suite."""

    name = "suite"
    title = "Lower bounds on the standard suite"
    parallel = False
    note = NOTES["suite"].format(CLAIMED)

    def units(self, profile: str) -> list[Unit]:
        return [
            Unit(self.name, goal.name, index, (("releases", releases),))
            for goal in SUITE_GOALS
            for index in range(_SUITE_SEEDS[profile])
            for releases in goal.budgets(profile)
        ]

    def measure(self, unit: Unit) -> Record:
        result = audit(
            subject(unit.case),
            pair=best_pair(unit.case),
            confidence=_CONFIDENCE,
            budget=Budget(unit.option("releases"), stop=False),
            seed=unit.seed,
        )
        return {"epsilon_lower": result.epsilon_lower, "seconds": result.seconds}

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        found: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        for unit, record in records.items():
            found[unit.case, unit.option("releases")].append(record)
        rows = []
        for goal in SUITE_GOALS:
            releases, *_ = goal.budgets(profile)
            runs, tenth = (found[goal.name, n] for n in (releases, releases // 10))
            if runs:
                rows.append(_suite_row(goal, releases, runs, tenth))
        return rows


def _suite_row(
    goal: SuiteGoal, releases: int, runs: list[Record], tenth: list[Record]
) -> TargetRow:
    def middle(records: list[Record], key: str) -> float:
        return float(median(record[key] for record in records))

    truth = subject(goal.name).true_epsilon
    measured, seconds = middle(runs, "epsilon_lower"), middle(runs, "seconds")
    smaller = middle(tenth, "epsilon_lower") if tenth else None
    grows = smaller is None or measured > smaller
    finite = None if goal.endless else truth
    before = "" if smaller is None else f"{smaller:.4g}"
    return TargetRow.of(
        measured >= goal.published and seconds <= _SECONDS and grows,
        Figure("case", goal.name, "mechanism", goal.name),
        Figure("truth", finite, "truth", number(truth)),
        Figure("releases", releases, "releases a side", count(releases)),
        Figure("seeds", len(runs), "seeds", f"{len(runs)}"),
        Figure("measured", measured, "measured", f"{measured:.4g}"),
        Figure("with_a_tenth", smaller, "with a tenth", before),
        Figure("published", goal.published, "published", f"{goal.published:.3g}"),
        Figure("seconds", seconds, "seconds", f"{seconds:.1f}"),
        Figure("limit", _SECONDS, "limit", f"{_SECONDS:.0f}"),
    )
