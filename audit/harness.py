"""One audit: attack a mechanism on a pair of neighbours until its claim falls, or time.

The audit plays rounds. Before each round everything is fixed from the rounds before:
the fits of the attacks, the candidate events, each null's bet. Then fresh releases are
drawn on both sides and the bets are settled (`dpaudit.audit.sequential`). The pilot
round only teaches. Rounds grow by 15 %, which costs 15 % of the releases at
most over stopping at the best moment, and keeps what was learned nearly fresh.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.attacks import PORTFOLIO, Attack, Target
from dpaudit.audit.arsenal import Arsenal, FittedAttack
from dpaudit.audit.events import Events
from dpaudit.audit.families import families_for
from dpaudit.audit.power import detectable_epsilon
from dpaudit.audit.result import AuditResult, Verdict
from dpaudit.audit.sampling import DATA, NEIGHBOUR, Sampler, concatenate
from dpaudit.audit.sequential import SequentialTest, best_bets
from dpaudit.audit.witness import Witness, current_versions
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.codec import encode
from dpaudit.errors import InputError
from dpaudit.mechanism import HasWorstCase, Mechanism
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count, check_fraction

__all__ = ["audit"]

_PILOT = 10
_SMALLEST_ROUND = 4
_GROWTH = 1.15
_REFERENCE_DELTA = 1e-5


def audit(
    mechanism: Mechanism | Callable[..., Any],
    *,
    pair: Pair | None = None,
    claim: Claim | None = None,
    confidence: float = 0.999,
    max_samples: int = 200_000,
    seed: int = 0,
    stop_when_refuted: bool = True,
    attacks: Sequence[Attack] = PORTFOLIO,
    name: str | None = None,
    reference: str | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> AuditResult:
    """Attack a mechanism on one pair of neighbours, and say what that shows.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A `~dpaudit.mechanism.Mechanism`, or any function ``(data, rng) -> array``.
    pair : Pair, optional
        The neighbouring datasets. By default the mechanism's own worst case.
    claim : Claim, optional
        What to hold it to. By default the mechanism's own claim.
    confidence : float
        In (0, 1). A true claim is refuted with probability at most 1 - confidence.
    max_samples : int
        Most releases to draw on either side, >= 2.
    seed : int
        >= 0. The same seed gives the same result.
    stop_when_refuted : bool
        Whether to stop as soon as the claim is refuted, or to go on to `max_samples`
        for tighter lower bounds.
    attacks : sequence of Attack
        The portfolio.
    name : str, optional
        For the result; by default that of the mechanism's class or function.
    reference : str, optional
        ``module:object`` under which a witness finds the mechanism, where it is not
        a dataclass or a function of a module.
    progress : callable, optional
        Called after every round with the releases so far and the lower bound.

    Returns
    -------
    AuditResult

    Raises
    ------
    InputError
        If an argument is not allowed, or pair or claim is missing and the mechanism
        has none, or the mechanism's relation is not the pair's.
    MechanismError
        If the mechanism raises or changes the shape of its output.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import Pair, PureDP
    >>> def half_the_noise(data, rng):
    ...     return data.sum() + rng.laplace(scale=0.5)
    >>> result = audit(half_the_noise, pair=Pair([0.0], [0.0, 1.0]), claim=PureDP(1.0))
    >>> str(result.verdict)
    'REFUTED'
    """
    started = time.perf_counter()
    pair, claim = _pair(mechanism, pair), _claim(mechanism, claim)
    alpha = 1 - check_fraction("confidence", confidence)
    max_samples = check_count("max_samples", max_samples, minimum=2)
    seed = check_count("seed", seed, minimum=0)

    run = _Run(Target(mechanism, pair), claim, alpha, seed, attacks)
    run.pilot(min(_PILOT, max_samples - 1))
    while run.samples < max_samples:
        if stop_when_refuted and run.verdict.refutes_claim:
            break
        size = max(_SMALLEST_ROUND, math.ceil((_GROWTH - 1) * run.samples))
        run.play(min(size, max_samples - run.samples))
        if progress is not None:
            progress(run.samples, run.verdict.lower_bound)
    return run.result(name or _name(mechanism), reference, started)


class _Run:
    """The state of one audit between rounds."""

    def __init__(
        self,
        target: Target,
        claim: Claim,
        alpha: float,
        seed: int,
        attacks: Sequence[Attack],
    ) -> None:
        self.target, self.claim, self.alpha, self.seed = target, claim, alpha, seed
        self.at_epsilon, self.at_delta = _reference_point(claim)
        families = families_for(claim, self.at_delta, self.at_epsilon)
        self.tests = {k: SequentialTest(f, alpha) for k, f in families.items()}
        self.verdict = next(iter(self.tests.values()))
        self.arsenal = Arsenal(target, attacks)
        self.sampler = Sampler(target.mechanism, target.pair, seed)
        self.sizes: list[int] = []

    @property
    def samples(self) -> int:
        return sum(self.sizes)

    def pilot(self, size: int) -> None:
        """Draw the round that only teaches."""
        sides = [
            concatenate(list(self.sampler.batches(side, 0, size)))
            for side in (DATA, NEIGHBOUR)
        ]
        self.sampler.settle_batch_size(sides[DATA])
        self.arsenal.begin(*sides)
        self.sizes.append(size)

    def play(self, size: int) -> None:
        """Fix all bets, draw fresh releases, settle."""
        events = self.arsenal.prepare()
        in_use = np.unique(
            np.concatenate([t.place_bets(events, size) for t in self.tests.values()])
        )
        hits = np.zeros((2, len(events)), dtype=np.intp)
        for side in (DATA, NEIGHBOUR):
            for releases in self.sampler.batches(side, len(self.sizes), size):
                hits[side] += self.arsenal.absorb(side, releases, events, in_use)
        for test in self.tests.values():
            test.update(hits[DATA], hits[NEIGHBOUR], size)
        self.sizes.append(size)

    def result(self, name: str, reference: str | None, started: float) -> AuditResult:
        refuted = self.verdict.refutes_claim
        claimed = self.verdict.family.claimed
        assert claimed is not None  # the first family is the one that decides
        log_evidence = float(self.verdict.log_wealth[claimed])
        events = self.arsenal.prepare()
        event = self._loudest(events)
        mu = self.tests.get("mu")
        return AuditResult(
            name=name,
            verdict=Verdict.REFUTED if refuted else Verdict.NOT_REFUTED,
            claim=self.claim,
            relation=self.target.pair.relation,
            confidence=1 - self.alpha,
            samples=self.samples,
            epsilon_lower=self.tests["epsilon"].lower_bound,
            at_delta=self.at_delta,
            delta_lower=self.tests["delta"].lower_bound,
            at_epsilon=self.at_epsilon,
            mu_lower=None if mu is None else mu.lower_bound,
            attack=None if event is None else event.fitted.attack.name,
            log_evidence=log_evidence,
            detectable_epsilon=None if refuted else self._detectable(events),
            rarest_event=min(1.0, -math.log(self.alpha) / self.samples),
            seed=self.seed,
            seconds=time.perf_counter() - started,
            witness=(
                self._witness(event, name, reference, log_evidence)
                if refuted and event is not None
                else None
            ),
        )

    def _loudest(self, events: Events) -> "_Loudest | None":
        """Return the event that speaks loudest against the claim, or nearest to it.

        Chosen with hindsight: it serves witnesses, which are tested afresh, and the
        description of what the run could see.
        """
        family, last = self.verdict.family, self.sizes[-1]
        # The frontier is the smallest null that stands; below it something is found.
        for null in (family.claimed, self.verdict.frontier, 0):
            _, event, _, _ = best_bets(family, np.array([null]), events, last)
            if len(event):
                index = int(event[0])
                return _Loudest(
                    fitted=self.arsenal.fitted(int(events.attack[index])),
                    threshold=float(events.threshold[index]),
                    counts=self.arsenal.hits(
                        int(events.attack[index]), float(events.threshold[index])
                    ),
                )
        return None

    def _detectable(self, events: Events) -> float | None:
        return detectable_epsilon(
            self.verdict.family.claim_only(),
            np.minimum(events.p, events.q),
            self.sizes,
            self.alpha,
            self.at_delta,
            seed=self.seed,
        )

    def _witness(
        self, event: "_Loudest", name: str, reference: str | None, log_evidence: float
    ) -> Witness:
        return Witness(
            name=name,
            mechanism=_stored(self.target.mechanism, reference),
            claim=self.claim,
            at_epsilon=self.at_epsilon,
            at_delta=self.at_delta,
            pair=self.target.pair,
            attack=event.fitted.attack.name,
            parameters=dict(event.fitted.parameters),
            resolution=event.fitted.resolution,
            threshold=event.threshold,
            counts=event.counts,
            confidence=1 - self.alpha,
            samples=self.samples,
            seed=self.seed,
            log_evidence=log_evidence,
            versions=current_versions(),
        )


@dataclass(frozen=True)
class _Loudest:
    """An event: a fitted attack and a threshold, with what was seen of it."""

    fitted: FittedAttack
    threshold: float
    counts: tuple[int, int, int, int]


def _pair(mechanism: Any, pair: Pair | None) -> Pair:
    if pair is None:
        if not isinstance(mechanism, HasWorstCase):
            raise InputError("pair is needed: the mechanism names no worst case")
        pair = mechanism.worst_case()
    if not isinstance(pair, Pair):
        raise InputError(f"pair must be a Pair, got {type(pair).__name__}")
    relation = getattr(mechanism, "relation", pair.relation)
    if relation != pair.relation:
        raise InputError(
            f"the mechanism's claim is under {relation}, but the pair is "
            f"{pair.relation}; a claim is audited under its own relation"
        )
    return pair


def _claim(mechanism: Any, claim: Claim | None) -> Claim:
    if claim is None:
        claim = getattr(mechanism, "claim", None)
        if claim is None:
            raise InputError("claim is needed: the mechanism makes none")
    if not isinstance(claim, Claim):
        raise InputError(f"claim must be a Claim, got {claim!r}")
    return claim


def _reference_point(claim: Claim) -> tuple[float, float]:
    """Return where epsilon and delta are bounded: at the claim's own point if any."""
    if isinstance(claim, PureDP | ApproxDP):
        return claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
    for delta in (_REFERENCE_DELTA, 1e-3, 0.1, 0.5, 0.9):
        epsilon = claim.epsilon(delta)
        if math.isfinite(epsilon):
            return max(epsilon, 0.1), delta
    raise InputError(f"the claim {claim} promises next to nothing")


def _name(mechanism: Any) -> str:
    kind = mechanism if hasattr(mechanism, "__qualname__") else type(mechanism)
    return str(kind.__qualname__)


def _stored(mechanism: Any, reference: str | None) -> Any:
    """Return the mechanism for a witness, None if it cannot be imported by name."""
    if reference is not None:
        return {"$reference": reference}
    try:
        return encode(mechanism)
    except InputError:
        return None
