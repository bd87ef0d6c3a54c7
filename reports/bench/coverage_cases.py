r"""Mechanisms that keep their promise with nothing to spare, audited as others are.

A bound is tested where it has least room: on the boundary of the claim. All that it
then says against the claim is an error. Each audit reports several statements (the
verdict, `epsilon_lower`, `delta_lower`, `mu_lower`), each with its own error
probability; they are counted apart. A statement counts as wrong if it was wrong at any
time: the engine looks after every round, and rejected nulls stay rejected. The length
of an audit is drawn at random besides, log-uniform over three octaves, because an
engine that plans for its deadline might err near it; and so is whether it stops at a
refutation or goes on for bounds, since it divides its wealth accordingly.

The bounds of `dpaudit.audit.bounds` have data on the boundary of a claim. Counts are
binomial with p = g(q), g the claim's curve: the event on which the claim holds with
equality. Scores are those of mechanisms whose curve touches the claim's: Laplace noise
at its epsilon, Gaussian noise at its mu, a leaky response at its (epsilon, delta).
Guesses of one run are right with the largest probability that the claim leaves them,
independently.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dpaudit.audit import Budget, Witness, audit, bounds, verify
from dpaudit.audit.layers.consistency import loss_consistency
from dpaudit.audit.layers.whitebox import white_box_steps
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.reports.bench.study import seed_of
from dpaudit.reports.bench.subjects import BlackBox, LeakyResponse
from dpaudit.streams import stream

CONFIDENCE = 0.95
SLACK = 1e-9
"""Differences below this, relative to the truth, count as rounding."""

_OCTAVES = 8.0  # from the shortest to the longest audit


@dataclass(frozen=True)
class CoverageCase(ABC):
    """A bound on data for which the truth is known."""

    name: str  # unique among the cases; it seeds the trials

    group: ClassVar[str]
    """Which part of the package is on trial."""
    effort: ClassVar[str]
    """Which of the profile's numbers of trials applies."""
    chunk: ClassVar[int] = 1
    """Trials to a unit of work."""

    @abstractmethod
    def errors(self, seed: int, trials: int, releases: int) -> dict[str, int]:
        """Return how many of the trials went wrong, for each statement.

        ``releases``: most releases a side of an audit; other cases have sizes of their
        own.
        """


class _Audited(CoverageCase):
    """Counts wrong statements of single trials."""

    effort = "runs"
    chunk = 10

    @abstractmethod
    def wrong(self, seed: int, releases: int) -> Mapping[str, bool]:
        """Carry out one trial, and say which statements were wrong."""

    def errors(self, seed: int, trials: int, releases: int) -> dict[str, int]:
        total: Counter[str] = Counter()
        for trial in range(trials):
            for name, was_wrong in self.wrong(seed_of(seed, trial), releases).items():
                total[name] += bool(was_wrong)
        return dict(total)


@dataclass(frozen=True)
class AuditCase(_Audited):
    """`dpaudit.audit.audit` of a mechanism whose claim is tight."""

    mechanism: Any
    claim: Claim  # exact for the mechanism, on all pairs that the audit may try
    black_box: bool = False  # whether to hide everything but the releases
    # a domain to search for a bad pair, instead of the mechanism's own pairs
    search: str | None = None

    group = "anytime engine"
    effort = "audits"
    chunk = 1

    def wrong(self, seed: int, releases: int) -> dict[str, bool]:
        length = releases * _OCTAVES ** -stream(seed, 0).random()
        options: dict[str, Any] = {}
        if self.search is not None:
            options = {"domain": self.search, "relation": self.mechanism.relation}
        elif self.black_box:
            options = {"pair": self.mechanism.worst_case()}
        result = audit(
            BlackBox(self.mechanism) if self.black_box else self.mechanism,
            claim=self.claim,
            confidence=CONFIDENCE,
            seed=seed,
            budget=Budget(int(length), stop=bool(stream(seed, 1).integers(2))),
            **options,
        )
        room, epsilon = 1 + SLACK, self.claim.epsilon_at(result.at_delta)
        delta = float(self.claim.delta_at(result.at_epsilon))
        wrong = {
            "verdict": result.refuted,
            "epsilon": result.epsilon_lower > epsilon * room,
            "delta": result.delta_lower > delta * room,
        }
        if result.mu_lower is not None:
            wrong["mu"] = result.mu_lower > self.claim.parameters["mu"] * room
        return wrong


def _settings(seed: int, releases: int) -> dict[str, Any]:
    return {"confidence": CONFIDENCE, "max_samples": releases, "seed": seed}


@cache
def _witness(convicted: Any) -> Witness:
    """Return a witness against a mechanism, always the same one."""
    witness = audit(convicted, confidence=CONFIDENCE, seed=0).witness
    assert witness is not None, "the convicted mechanism was not refuted"
    return witness


@dataclass(frozen=True)
class WitnessCase(_Audited):
    """`dpaudit.audit.verify`: a witness against one mechanism, on a correct one.

    The event stays the same, the claim is tight on it, so a confirmation is an error.
    """

    convicted: Any  # refuted by an audit, which makes the witness
    mechanism: Any  # keeps the same claim with equality

    group = "witness replay"
    effort = "audits"

    def wrong(self, seed: int, releases: int) -> dict[str, bool]:
        witness, settings = _witness(self.convicted), _settings(seed, releases)
        replay = verify(witness, mechanism=self.mechanism, **settings)
        return {"confirmed": replay.confirmed}


@dataclass(frozen=True)
class WhiteBoxCase(_Audited):
    """`dpaudit.audit.layers.whitebox`: all intervals of a run, at all times at once."""

    mechanism: Any  # with a privacy loss, and an exact claim for its worst case
    epsilons: tuple[float, ...] = (0.0, 0.5, 0.9)
    proposal: Any = None

    group = "white box"

    def wrong(self, seed: int, releases: int) -> dict[str, bool]:
        pair = self.mechanism.worst_case()
        exact = self.mechanism.exact_claim(pair).delta_at(np.array(self.epsilons))
        below = above = False
        settings = {"epsilon": self.epsilons, "proposal": self.proposal}
        settings |= _settings(seed, releases)
        for result in white_box_steps(self.mechanism, pair, **settings):
            below |= bool(np.any(result.delta_low > exact * (1 + SLACK)))
            above |= bool(np.any(result.delta_high < exact * (1 - SLACK)))
        return {"interval": below or above}


@dataclass(frozen=True)
class LossConsistencyCase(_Audited):
    """`dpaudit.audit.layers.consistency`: a loss that belongs to its sampler."""

    mechanism: Any  # with a privacy loss

    group = "loss consistency"

    def wrong(self, seed: int, releases: int) -> dict[str, bool]:
        pair, settings = self.mechanism.worst_case(), _settings(seed, releases)
        found = loss_consistency(self.mechanism, pair, **settings)
        return {"inconsistent": not found.consistent}


# A leaky response in the order of its likelihoods: told 0 or 1, plainly 0 or 1.
_PLACE = np.array([2.0, 1.0, 3.0, 0.0])


class _FixedSample(CoverageCase):
    claim: Claim
    group = "fixed sample"
    effort = "data_sets"
    chunk = 250

    def errors(self, seed: int, trials: int, releases: int) -> dict[str, int]:
        rng = stream(seed)
        # Equal data sets have equal bounds, and counts repeat often.
        data_sets = Counter(self.sample(rng) for _ in range(trials))
        wrong = sum(
            times
            for data, times in data_sets.items()
            if self.bound(data) > self.truth * (1 + SLACK)
        )
        return {"bound": wrong}

    @property
    def truth(self) -> float:
        """The true parameter."""
        known = self.claim.parameters
        return float(known["mu"] if "mu" in known else known["epsilon"])

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Any:
        """Return one data set, hashable."""

    @abstractmethod
    def bound(self, data: Any) -> float:
        """Return the lower bound."""


@dataclass(frozen=True)
class CountsCase(_FixedSample):
    """A bound from the counts of one event."""

    method: str  # a function of `dpaudit.audit.bounds`.
    claim: Claim  # Pure, approximate or Gaussian
    q: float  # the event's probability on D'
    releases: tuple[int, int] = (200, 200)  # on D and on D'
    two_sided: bool = False

    def sample(self, rng: np.random.Generator) -> tuple[int, int]:
        p = float(self.claim.tpr(self.q))
        hits = rng.binomial(self.releases, (p, self.q))
        return int(hits[0]), int(hits[1])

    def bound(self, data: tuple[int, int]) -> float:
        counts = bounds.Counts(data[0], self.releases[0], data[1], self.releases[1])
        options = {"confidence": CONFIDENCE, "two_sided": self.two_sided}
        if not isinstance(self.claim, GaussianDP):
            options["delta"] = self.claim.parameters.get("delta", 0.0)
        return float(getattr(bounds, self.method)(counts, **options).value)


@dataclass(frozen=True)
class ScoresCase(_FixedSample):
    """A bound from scores of releases."""

    method: str  # "split_scores" or "fixed_scores"
    # Pure: Laplace scores; Gaussian: Gaussian ones; approximate: a leaky response
    claim: Claim
    releases: int = 400  # on either side

    def sample(self, rng: np.random.Generator) -> tuple[int]:
        return (int(rng.integers(2**63)),)

    def bound(self, data: tuple[int]) -> float:
        rng = stream(data[0])
        options: dict[str, Any] = {}
        match self.claim:
            case PureDP():
                noise = rng.laplace(scale=1 / self.truth, size=(2, self.releases))
                scores = noise + np.array([[1.0], [0.0]])
            case GaussianDP():
                shift = np.array([[self.truth], [0.0]])
                scores = rng.standard_normal((2, self.releases)) + shift
                if self.method == "fixed_scores":
                    options["gaussian"] = True
            case _:  # approximate
                delta = options["delta"] = self.claim.parameters["delta"]
                response = LeakyResponse(self.truth, delta)
                pair = response.worst_case()
                drawn = [
                    response.draw(rows, self.releases, rng=rng)
                    for rows in (pair.data, pair.neighbour)
                ]
                scores = _PLACE[np.array(drawn, dtype=np.intp)]
        method = getattr(bounds, self.method)
        return float(method(*scores, confidence=CONFIDENCE, rng=rng, **options).value)


@dataclass(frozen=True)
class OneRunCase(_FixedSample):
    """The one-run bound: right guesses as likely as the claim allows.

    Each canary leaks its coin with probability delta, and otherwise answers by
    randomised response, a mechanism that is (epsilon, delta)-DP per canary. Or its
    coin, mu or 0, is told with Gaussian noise, which is mu-GDP, and guessed where the
    noisy one is farthest from mu/2.
    """

    claim: Claim  # Pure, approximate or Gaussian
    # canaries, guesses: the attacker guesses the first canaries
    canaries: int = 100
    guesses: int = 100

    @property
    def delta(self) -> float:
        return float(self.claim.parameters.get("delta", 0.0))

    @property
    def gaussian(self) -> bool:
        return isinstance(self.claim, GaussianDP)

    def sample(self, rng: np.random.Generator) -> tuple[int]:
        if self.gaussian:
            # By symmetry: how far each noisy coin is to the right side of mu/2.
            rightly = rng.normal(self.truth / 2, 1.0, self.canaries)
            farthest = np.argsort(-np.abs(rightly))[: self.guesses]
            return (int(np.count_nonzero(rightly[farthest] > 0)),)
        right = self.delta + (1 - self.delta) * float(expit(self.truth))
        return (int(rng.binomial(self.guesses, right)),)

    def bound(self, data: tuple[int]) -> float:
        return bounds.one_run(
            correct=data[0],
            guesses=self.guesses,
            canaries=self.canaries,
            delta=self.delta,
            confidence=CONFIDENCE,
            gaussian=self.gaussian,
        ).value
