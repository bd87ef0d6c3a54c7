"""Study D: lower bounds on the standard suite, against the best published ones.

Every broken mechanism of the suite claims epsilon = 0.1 and loses more. The bound at
confidence 95 % has to reach the best published one within a minute of wall-clock time.
Where the truth is infinite no bound is final: it has to grow with the number of
releases, so a tenth of them is tried as well.

The published bounds are DP-Sniper's (Bichsel, Steffen, Bogunovic, Vechev, IEEE S&P
2021), found with 10.7 million samples to search and 200 million for the final bound.
"""

from dataclasses import dataclass
from statistics import median

from dpaudit.audit import Budget, audit
from dpaudit.reports.bench.best_events import CLAIMED, best_pair, subject
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.reports.words import count, number

__all__ = ["SuiteBounds"]

_CONFIDENCE = 0.95
_SECONDS = 60.0


@dataclass(frozen=True)
class Goal:
    """One mechanism.

    Parameters
    ----------
    name : str
        In the suite.
    published : float
        The best published lower bound.
    releases : int
        A side, for profile full.
    """

    name: str
    published: float
    releases: int


GOALS = (
    Goal("truncated-geometric", 0.117, 120_000_000),
    Goal("noisy-hist-2", 10.0, 120_000_000),
    Goal("noisy-max-3", 0.249, 60_000_000),
    Goal("noisy-max-4", 0.353, 6_000_000),
    Goal("svt-3", 0.182, 15_000_000),
    Goal("svt-4", 0.172, 50_000_000),
    Goal("svt-5", 14.3, 30_000_000),
    Goal("svt-6", 0.322, 8_000_000),
    Goal("rappor", 0.301, 5_000_000),
    Goal("one-time-rappor", 0.600, 2_000_000),
    Goal("svt-3-4-parallel", 0.262, 6_000_000),
    Goal("prefix-sum", 0.577, 2_000_000),
)

_SHARES = {"quick": 0.005, "standard": 0.1, "full": 1.0}
_SEEDS = {"quick": 0, "standard": 1, "full": 3}


class SuiteBounds(Study):
    """Lower bounds on epsilon for the broken mechanisms of the suite."""

    name = "suite"
    title = "Lower bounds on the standard suite"
    parallel = False

    def units(self, profile: str) -> list[Unit]:
        units = []
        for goal in GOALS:
            releases = int(_SHARES[profile] * goal.releases)
            budgets = [releases]
            if _endless(goal):
                budgets.append(releases // 10)
            units += [
                Unit(self.name, goal.name, index, (("releases", budget),))
                for index in range(_SEEDS[profile])
                for budget in budgets
            ]
        return units

    def measure(self, unit: Unit) -> Record:
        result = audit(
            subject(unit.case),
            pair=best_pair(unit.case),
            confidence=_CONFIDENCE,
            budget=Budget(unit.option("releases"), stop=False),
            seed=unit.seed,
        )
        return {"epsilon_lower": result.epsilon_lower, "seconds": result.seconds}

    def tables(self, profile: str, records: Records) -> list[Table]:
        found: dict[tuple[str, int], list[Record]] = {}
        for unit, record in records.items():
            key = unit.case, unit.option("releases")
            found.setdefault(key, []).append(record)
        rows = []
        for goal in GOALS:
            releases = int(_SHARES[profile] * goal.releases)
            if (goal.name, releases) in found:
                tenth = found.get((goal.name, releases // 10), [])
                rows.append(_row(goal, releases, found[goal.name, releases], tenth))
        note = (
            f"Lower bounds on epsilon at confidence 95 % where epsilon = {CLAIMED:g} "
            "is claimed; medians over seeds; seconds of one core, sampling included. "
            "The bound must reach the published one, within the time, and where the "
            "truth is infinite exceed the bound from a tenth of the releases."
        )
        return [Table(self.title, tuple(rows), note)]


def _endless(goal: Goal) -> bool:
    return bool(subject(goal.name).true_epsilon == float("inf"))


def _row(goal: Goal, releases: int, runs: list[Record], tenth: list[Record]) -> Row:
    def middle(records: list[Record], key: str) -> float:
        return float(median(record[key] for record in records))

    truth = subject(goal.name).true_epsilon
    measured, seconds = middle(runs, "epsilon_lower"), middle(runs, "seconds")
    smaller = middle(tenth, "epsilon_lower") if tenth else None
    grows = smaller is None or measured > smaller
    finite = None if _endless(goal) else truth
    before = "" if smaller is None else f"{smaller:.4g}"
    return Row.of(
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
