r"""Data on the boundary of a claim for the bounds of `dpaudit.audit.bounds`.

Counts are binomial with p = g(q), g the claim's curve: the event on which the claim
holds with equality. Scores are those of mechanisms whose curve touches the claim's:
Laplace noise at its epsilon, Gaussian noise at its mu, a leaky response at its
(epsilon, delta). Guesses of one run are right with the largest probability that the
claim leaves them, independently.
"""

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.reports.bench.coverage_cases import CONFIDENCE, SLACK, CoverageCase
from dpaudit.reports.bench.subjects import LeakyResponse
from dpaudit.streams import stream

__all__ = ["CountsCase", "OneRunCase", "ScoresCase"]

Array = NDArray[np.float64]

# A leaky response in the order of its likelihoods: told 0 or 1, plainly 0 or 1.
_PLACE = np.array([2.0, 1.0, 3.0, 0.0])


class _FixedSample(CoverageCase):
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
    @abstractmethod
    def truth(self) -> float:
        """The true parameter."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Any:
        """Return one data set, hashable."""

    @abstractmethod
    def bound(self, data: Any) -> float:
        """Return the lower bound."""


@dataclass(frozen=True)
class CountsCase(_FixedSample):
    """A bound from the counts of one event.

    Parameters
    ----------
    method : str
        A function of `dpaudit.audit.bounds`.
    claim : Claim
        Pure, approximate or Gaussian.
    q : float
        The event's probability on D'.
    releases : tuple of int
        On D and on D'.
    two_sided : bool
    """

    method: str
    claim: Claim
    q: float
    releases: tuple[int, int] = (200, 200)
    two_sided: bool = False

    @property
    def truth(self) -> float:
        return float(
            self.claim.parameters.get("mu", self.claim.parameters.get("epsilon"))
        )

    def sample(self, rng: np.random.Generator) -> tuple[int, int]:
        p = float(self.claim.tpr(self.q))
        hits = rng.binomial(self.releases, (p, self.q))
        return int(hits[0]), int(hits[1])

    def bound(self, data: tuple[int, int]) -> float:
        from dpaudit.audit import bounds

        counts = bounds.Counts(data[0], self.releases[0], data[1], self.releases[1])
        options = {}
        if not isinstance(self.claim, GaussianDP):
            options["delta"] = self.claim.parameters.get("delta", 0.0)
        method = getattr(bounds, self.method)
        return float(
            method(
                counts, confidence=CONFIDENCE, two_sided=self.two_sided, **options
            ).value
        )


@dataclass(frozen=True)
class ScoresCase(_FixedSample):
    """A bound from scores of releases.

    Parameters
    ----------
    method : str
        ``"split_scores"`` or ``"fixed_scores"``.
    claim : Claim
        Pure: Laplace scores; Gaussian: Gaussian ones; approximate: a leaky response.
    releases : int
        On either side.
    """

    method: str
    claim: Claim
    releases: int = 400

    @property
    def truth(self) -> float:
        return float(
            self.claim.parameters.get("mu", self.claim.parameters.get("epsilon"))
        )

    def sample(self, rng: np.random.Generator) -> tuple[int]:
        return (int(rng.integers(2**63)),)

    def bound(self, data: tuple[int]) -> float:
        from dpaudit.audit import bounds

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
            case ApproxDP():
                delta = options["delta"] = self.claim.parameters["delta"]
                response = LeakyResponse(self.truth, delta)
                pair = response.worst_case()
                drawn = [
                    response.draw(rows, self.releases, rng=rng)
                    for rows in (pair.data, pair.neighbour)
                ]
                scores = _PLACE[np.array(drawn, dtype=np.intp)]
            case _:
                raise AssertionError(self.claim)
        method = getattr(bounds, self.method)
        return float(method(*scores, confidence=CONFIDENCE, rng=rng, **options).value)


@dataclass(frozen=True)
class OneRunCase(_FixedSample):
    """The one-run bound: right guesses as likely as the claim allows.

    Each canary leaks its coin with probability delta, and otherwise answers by
    randomised response, a mechanism that is (epsilon, delta)-DP per canary.

    Parameters
    ----------
    claim : Claim
        Pure or approximate.
    canaries, guesses : int
        The attacker guesses the first canaries.
    """

    claim: Claim
    canaries: int = 100
    guesses: int = 100

    @property
    def truth(self) -> float:
        return float(self.claim.parameters["epsilon"])

    @property
    def delta(self) -> float:
        """The claim's delta."""
        return float(self.claim.parameters.get("delta", 0.0))

    def sample(self, rng: np.random.Generator) -> tuple[int]:
        right = self.delta + (1 - self.delta) * float(expit(self.truth))
        return (int(rng.binomial(self.guesses, right)),)

    def bound(self, data: tuple[int]) -> float:
        from dpaudit.audit import bounds

        return bounds.one_run(
            correct=data[0],
            guesses=self.guesses,
            canaries=self.canaries,
            delta=self.delta,
            confidence=CONFIDENCE,
        ).value
