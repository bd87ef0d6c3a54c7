"""Study B: how near the lower bounds come to the truth.

Laplace and Gaussian mechanisms that claim epsilon = 1, with the noise that this needs
and with half of it. The bound at confidence 95 % after n releases a side: the median
over seeds. What it has to beat is the best that sound tools reach on the same releases,
and for the anytime-valid engine the target accounts for what peeking costs. Rows under
GDP hold the mechanism to the mu-GDP claim that its noise was computed for; their bound
on mu is read as the epsilon of that Gaussian mechanism at delta 1e-5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.audit import Budget, audit
from dpaudit.audit.bounds import fixed_scores
from dpaudit.claims import GaussianDP
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.streams import stream

__all__ = ["Tightness"]

_CONFIDENCE = 0.95
_EPSILON, _DELTA = 1.0, 1e-5

_MECHANISMS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: Laplace(_EPSILON),
    "half laplace": lambda: Laplace.under_noised(_EPSILON),
    "gaussian": lambda: Gaussian.calibrated(_EPSILON, _DELTA),
    "half gaussian": lambda: Gaussian.under_noised(_EPSILON, _DELTA),
}


@dataclass(frozen=True)
class Goal:
    """One figure to reach.

    Parameters
    ----------
    mechanism : str
    gaussian : bool
        Whether the claim is mu-GDP.
    engine : str
        ``"anytime"`` or ``"fixed"``.
    releases : int
        On either side.
    target : float
    published : float or None
        The best of the sound tools that were measured, at that n.
    """

    mechanism: str
    gaussian: bool
    engine: str
    releases: int
    target: float
    published: float | None = None

    @property
    def case(self) -> str:
        """What names the goal."""
        claim = ", GDP" if self.gaussian else ""
        return f"{self.engine}, {self.mechanism}{claim}, n = {self.releases:.0e}"

    @property
    def truth(self) -> float:
        """The true epsilon at the claim's delta."""
        return float(_MECHANISMS[self.mechanism]().true_epsilon)


GOALS = (
    # What Clopper-Pearson bounds reach with ten thresholds in either tail (Bonferroni).
    Goal("laplace", False, "anytime", 10**3, 0.74),
    Goal("half laplace", False, "anytime", 10**3, 1.64),
    Goal("gaussian", False, "anytime", 10**3, 0.21),
    Goal("half gaussian", False, "anytime", 10**3, 0.47),
    Goal("gaussian", True, "anytime", 10**3, 0.21),
    Goal("half gaussian", True, "anytime", 10**3, 0.47),
    Goal("laplace", False, "anytime", 10**4, 0.93, 0.912),
    Goal("half laplace", False, "anytime", 10**4, 1.88, 1.866),
    Goal("gaussian", False, "anytime", 10**4, 0.353, 0.353),
    Goal("half gaussian", False, "anytime", 10**4, 1.001, 1.001),
    Goal("gaussian", True, "anytime", 10**4, 0.83),
    Goal("half gaussian", True, "anytime", 10**4, 1.93),
    Goal("laplace", False, "anytime", 10**6, 0.992, 0.990),
    Goal("half laplace", False, "anytime", 10**6, 1.988, 1.984),
    Goal("gaussian", False, "anytime", 10**6, 0.80, 0.825),
    Goal("half gaussian", False, "anytime", 10**6, 1.62, 1.658),
    Goal("gaussian", True, "anytime", 10**6, 0.98, 0.974),
    Goal("half gaussian", True, "anytime", 10**6, 2.13, 2.127),
    Goal("laplace", False, "fixed", 10**6, 0.992, 0.990),
    Goal("half laplace", False, "fixed", 10**6, 1.988, 1.984),
    Goal("gaussian", False, "fixed", 10**6, 0.85, 0.825),
    Goal("half gaussian", False, "fixed", 10**6, 1.70, 1.658),
    Goal("gaussian", True, "fixed", 10**6, 0.985, 0.974),
    Goal("half gaussian", True, "fixed", 10**6, 2.13, 2.127),
)

_SEEDS = {
    "quick": {10**3: 9, 10**4: 3},
    "standard": {10**3: 21, 10**4: 11, 10**6: 1},
    "full": {10**3: 21, 10**4: 21, 10**6: 11},
}


class Tightness(Study):
    """Lower bounds on epsilon against the truth."""

    name = "tightness"
    title = "Tightness of lower bounds"

    def units(self, profile: str) -> list[Unit]:
        seeds = _SEEDS[profile]
        return [
            Unit(self.name, goal.case, index)
            for goal in GOALS
            for index in range(seeds.get(goal.releases, 0))
        ]

    def measure(self, unit: Unit) -> Record:
        goal = next(goal for goal in GOALS if goal.case == unit.case)
        bound = _anytime if goal.engine == "anytime" else _fixed
        return {"epsilon_lower": bound(goal, unit.seed)}

    def tables(self, profile: str, records: Records) -> list[Table]:
        found = self.by_case(records, "epsilon_lower")
        rows = tuple(_row(g, found[g.case]) for g in GOALS if g.case in found)
        note = (
            "Lower bounds on epsilon at confidence 95 % where epsilon = 1 is claimed; "
            "medians over seeds. Gaussians at delta = 1e-5; published: the best sound "
            "tool that was measured."
        )
        return [Table(self.title, rows, note)]


def _anytime(goal: Goal, seed: int) -> float:
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


def _fixed(goal: Goal, seed: int) -> float:
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


def _row(goal: Goal, bounds: list[float]) -> Row:
    measured = median(bounds)
    published = "" if goal.published is None else f"{goal.published:.3f}"
    return Row.of(
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
