"""Putting the outcome of an audit into words and numbers."""

import platform
from typing import Any

import numpy as np
import scipy

from dpaudit import __version__
from dpaudit.attacks import BITS, PORTFOLIO, Attack
from dpaudit.audit.betting.power import detectable_epsilon, rarest_event
from dpaudit.audit.canonical import BITS_ONLY
from dpaudit.audit.game.state import AuditState, StrongestEvent
from dpaudit.audit.judged import Verdict
from dpaudit.audit.keeping.witness import Witness, reaching_tells
from dpaudit.audit.layers.exact import ExactVerdict, exact_verdict
from dpaudit.audit.result import AuditResult
from dpaudit.audit.sampling.sampler import Signs
from dpaudit.audit.settings import Settings, name_of, stored_mechanism
from dpaudit.claims import Claim
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import HasExactClaim
from dpaudit.neighbours import Pair

__all__ = ["summarise"]

_VERSIONS = {
    "python": platform.python_version(),
    "dpaudit": __version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}
_OCCURRENCES = 4  # of a rare event in a portfolio's memory, before it is noticed


def summarise(
    state: AuditState, mechanism: Any, settings: Settings, *, interrupted: bool
) -> AuditResult:
    """Return what an audit has shown; its `seconds` are left to the caller.

    Parameters
    ----------
    state : AuditState
        With one round at least.
    mechanism : Mechanism or callable
        Not its view at the audit's layer.
    settings : Settings
        Of the state.
    interrupted : bool
    """
    name = settings.name or name_of(mechanism)
    tests, verdict = state.tests, state.verdict
    samples = state.samples
    claimed = verdict.family.claimed
    assert claimed is not None  # the first family is the one that decides
    log_evidence = float(verdict.log_wealth[claimed])
    pair_audit, events = state.best()
    strongest = state.strongest(pair_audit, events)
    by_bits = verdict.refutes_claim and state.rests_on_bits(pair_audit, strongest)
    refuted = verdict.refutes_claim and not by_bits
    mu, pair = tests.get("mu"), pair_audit.target.pair
    witness = None
    keeps = pair.rows is not None  # else no file holds it
    if refuted and keeps and strongest and _is_known(strongest.fitted.attack):
        witness = Witness(
            name=name,
            mechanism=stored_mechanism(mechanism, settings.reference),
            claim=state.claim,
            at_epsilon=state.at_epsilon,
            at_delta=state.at_delta,
            pair=pair,
            layer=settings.layer.value,
            layout=strongest.fitted.layout,
            attack=strongest.fitted.attack.name,
            parameters=dict(strongest.fitted.parameters),
            resolution=strongest.fitted.resolution,
            offset=strongest.fitted.offset,
            canon=pair_audit.portfolio.canon_of(strongest.fitted.layout),
            threshold=strongest.threshold,
            counts=strongest.counts,
            confidence=1 - state.alpha,
            samples=samples,
            seed=state.seed,
            log_evidence=log_evidence,
            versions=dict(_VERSIONS),
        )
    signs = Signs.seen(pair_audit.sampler, mechanism, pair_audit.repeats)
    result = AuditResult(
        name=name,
        verdict=Verdict.REFUTED if refuted else Verdict.NOT_REFUTED,
        claim=state.claim,
        relation=pair.relation,
        layer=settings.layer,
        bits=settings.bits,
        confidence=1 - state.alpha,
        samples=samples,
        refuted_at=state.refuted_at if refuted else None,
        drawn=(int(state.drawn[0]), int(state.drawn[1])),
        pairs=state.pairs,
        epsilon_lower=0.0 if by_bits else tests["epsilon"].lower_bound,
        at_delta=state.at_delta,
        delta_lower=0.0 if by_bits else tests["delta"].lower_bound,
        at_epsilon=state.at_epsilon,
        mu_lower=None if mu is None else 0.0 if by_bits else mu.lower_bound,
        attack=None if strongest is None else strongest.fitted.attack.name,
        event=None if strongest is None else _in_words(strongest, state.at_epsilon),
        log_evidence=0.0 if by_bits else log_evidence,
        detectable_epsilon=None
        if verdict.refutes_claim
        else detectable_epsilon(
            verdict.family.claim_only(),
            events.less_likely,
            samples,
            state.alpha,
            state.at_delta,
        ),
        rarest_event=max(
            rarest_event(verdict.family.claim_only(), samples, state.alpha),
            min(1.0, _OCCURRENCES / pair_audit.portfolio.memory),
        ),
        exact=_exact(mechanism, pair, state.claim),
        trajectory=() if by_bits else tuple(state.trajectory),
        roc=() if by_bits or strongest is None else strongest.roc,
        warnings=(
            *signs.warnings,
            *pair_audit.portfolio.unreadable(),
            *((BITS_ONLY,) if by_bits else ()),
            *pair_audit.portfolio.doubts(refuted=refuted),
        ),
        seed=state.seed,
        seconds=0.0,
        witness=witness,
        interrupted=interrupted,
    )
    return result.withdrawn() if signs.refute_it else result


def _in_words(event: StrongestEvent, epsilon: float) -> str:
    """Say what an event is, and how often it was: see `reaching_tells`.

    Examples
    --------
    >>> from dpaudit.attacks import PORTFOLIO
    >>> from dpaudit.audit.game.fitted import FittedAttack
    >>> identity = next(each for each in PORTFOLIO if each.name == "identity")
    >>> fitted = FittedAttack(identity, {}, 1e-9, "")
    >>> _in_words(StrongestEvent(fitted, 0.31234, (17, 100, 69, 100), ()), 1.0)
    "the release >= 0.3123 in 17 of 100 on D, 69 of 100 on D'"
    >>> _in_words(StrongestEvent(fitted, 0.31234, (60, 100, 99, 100), ()), 1.0)
    "the release < 0.3123 in 40 of 100 on D, 1 of 100 on D'"
    """
    hits, n, hits_neighbour, m = event.counts
    reached = reaching_tells(event.counts, epsilon)
    if not reached:
        hits, hits_neighbour = n - hits, m - hits_neighbour
    words = event.fitted.attack.event(event.threshold, reached=reached)
    return f"{words} in {hits:,} of {n:,} on D, {hits_neighbour:,} of {m:,} on D'"


def _is_known(attack: Attack) -> bool:
    """Say whether `verify` would find the attack by its name."""
    return type(attack) in {type(known) for known in PORTFOLIO + BITS}


def _exact(mechanism: Any, pair: Pair, claim: Claim) -> ExactVerdict | None:
    """Return what the exact layer says on the pair, where there is one."""
    if not isinstance(mechanism, HasExactClaim):
        return None
    try:
        return exact_verdict(mechanism, pair, claim)
    except (InputError, UnsupportedError):  # or a loss that is beyond arithmetic
        return None
