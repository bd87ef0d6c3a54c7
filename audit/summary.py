"""Putting the outcome of an audit into words and numbers.

What a run could have seen: the detectable violation, and the rarest event.

How bad would it have to be for a run of this length to notice nine times in ten?
Against a fixed event the log evidence of n releases is nearly normal with mean n g and
variance 2 n g, where g is its growth per release under the truth
(`dpaudit.audit.betting.projection`). It passes log(1/alpha) with probability 0.9 where

    n g - z sqrt(2 n g) >= log(1/alpha),   z = Phi^-1(0.9).

Learning the event costs releases too; `_LEARNING` allows for them. The tests compare
the result with audits of mechanisms that leak just so much.

A rare event that betrays one dataset (a raw value in place of a noisy one, an
exception) must first be noticed, and its probability on the other dataset bounded,
though it never occurs there. `_NOTICING` allows for both; it was measured with atoms of
probability 0.003 in Laplace noise: of 12 audits each against (1, 1e-5), epsilon 0.1 and
epsilon 3, within twice the releases that the formula gives for a known event 12, 10 and
11 refuted.
"""

import math
import platform
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import expit, ndtri

from dpaudit import __version__
from dpaudit.arrays import Array
from dpaudit.attacks import BITS, PORTFOLIO, Attack
from dpaudit.audit.betting.events import Events, reaching_tells
from dpaudit.audit.betting.families import NullFamily
from dpaudit.audit.betting.projection import HalfSpaces, project
from dpaudit.audit.betting.strategy import plan_bets
from dpaudit.audit.game.fitted import BITS_ONLY, FittedAttack
from dpaudit.audit.game.pair_audit import PairAudit
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.judged import Verdict
from dpaudit.audit.keeping.witness import Witness
from dpaudit.audit.layers.exact import ExactVerdict, exact_verdict
from dpaudit.audit.result import AuditResult
from dpaudit.audit.sampling.sampler import Signs
from dpaudit.audit.settings import Settings, name_of, stored_mechanism
from dpaudit.claims import Claim
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import HasExactClaim
from dpaudit.neighbours import Pair

__all__ = [
    "detectable_epsilon",
    "rarest_event",
    "summarise",
]

_VERSIONS = {
    "python": platform.python_version(),
    "dpaudit": __version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}
_POWER = 0.9
_LEARNING, _NOTICING = 1.25, 2.0
_NEVER = 1e-9  # times as likely as on the other dataset
_EVENTS = 24
_PLACES, _SECTIONS, _APART = 48, 4, 7
_PARTS, _FINER = 4, 10  # the latter: how often an interval is cut into so many
_OCCURRENCES = 4  # of a rare event in a portfolio's memory, before it is noticed


@dataclass(frozen=True)
class StrongestEvent:
    """An event: a fitted attack and a threshold, with what was seen of it.

    `roc` has the shares on D' and on D of all events of that attack.
    """

    fitted: FittedAttack
    threshold: float
    counts: tuple[int, int, int, int]
    roc: tuple[tuple[float, float], ...]


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
    log_evidence = verdict.log_evidence
    pair_audit, events = state.best()
    strongest = strongest_event(state, pair_audit, events)
    by_bits = (
        verdict.refutes_claim
        and strongest is not None
        and pair_audit.portfolio.rests_on_bits(
            strongest.fitted, strongest.threshold, verdict.family, claimed
        )
    )
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


def strongest_event(
    state: AuditState, pair_audit: PairAudit, events: Events
) -> StrongestEvent | None:
    """Return the event with the most evidence against the claim, or for the bound.

    Where the claim stands, an event that is against it is one that chance has favoured,
    mostly a rare one. So it is the one with the most evidence against the last null
    that fell, which the bound rests on.

    Chosen with hindsight: it serves witnesses, which are tested afresh, and the
    description of what the run could see.
    """
    family, portfolio = state.verdict.family, pair_audit.portfolio
    if not len(events):
        return None
    assert family.claimed is not None
    refuted, frontier = state.verdict.refutes_claim, state.verdict.frontier
    # The frontier is the smallest null that stands.
    for null in (family.claimed if refuted else max(frontier - 1, 0), 0):
        plan = plan_bets(family, np.array([null]), events, 1, 1, null)
        if plan.growth[0] > 0:
            chosen = plan.events[0]
            separation = np.abs(events.p[chosen] - events.q[chosen])
            index = int(chosen[np.argmax(separation)])
            return StrongestEvent(
                fitted=portfolio.fitted(int(events.attack[index])),
                threshold=float(events.threshold[index]),
                counts=portfolio.counts(events, index),
                roc=portfolio.roc(int(events.attack[index])),
            )
    return None


def _in_words(event: StrongestEvent, epsilon: float) -> str:
    """Say what an event is, and how often it was: see `reaching_tells`.

    Examples
    --------
    >>> from dpaudit.attacks import PORTFOLIO
    >>> from dpaudit.audit.game.fitted import BITS_ONLY, FittedAttack
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


def detectable_epsilon(
    null: NullFamily, q: Array, samples: int, alpha: float, delta: float
) -> float | None:
    """Return the smallest epsilon that nine runs in ten would have refuted.

    Parameters
    ----------
    null : NullFamily
        The claim, alone.
    q : ndarray, shape (T,)
        Probabilities on the less likely side of the events that the run ended with.
    samples : int
        Releases on either side.
    alpha : float
    delta : float
        Where epsilon is meant.

    Returns
    -------
    float or None
        As `NullFamily.shown_epsilon` measures it: larger than what the claim allows at
        `delta`, or as large where the claim is a curve other than a Gaussian one.
        None if no violation of these events is detectable in a run of this length.
    """
    if not len(q):
        return None
    q = np.unique(np.quantile(q, np.linspace(0, 1, _EVENTS), method="nearest"))
    needed = _LEARNING * _growth_needed(samples, alpha)
    # The largest p that a run of this length can estimate, one hit in two being added.
    most = 1 - 0.5 / (samples + 1)
    q = q[q < most]
    p, every = _from_to(q, np.full_like(q, most), _PLACES), np.arange(len(q))
    # Of an event, all that is further outside the null than what is seen is seen, too.
    coarse = np.append(np.arange(0, _PLACES - 1, _APART), _PLACES - 1)
    seen = _growth(null, p[:, coarse], q[:, np.newaxis]) >= needed
    found = np.flatnonzero(seen[:, -1])
    if not len(found):
        return None
    q, p, every = q[found], p[found], every[: len(found)]
    unseen = coarse[np.maximum(seen[found].argmax(axis=1) - 1, 0)]
    between = np.minimum(unseen[:, np.newaxis] + np.arange(1, _APART), _PLACES - 1)
    seen = _growth(null, p[every[:, np.newaxis], between], q[:, np.newaxis]) >= needed
    unseen += np.count_nonzero(~seen, axis=1)
    low, high = p[every, unseen], p[every, unseen + 1]
    for _ in range(_FINER):
        p = _from_to(low, high, _PARTS + 1)
        seen = _growth(null, p[:, 1:-1], q[:, np.newaxis]) >= needed
        first = np.where(seen.any(axis=1), seen.argmax(axis=1), _PARTS - 1)
        low, high = p[every, first], p[every, first + 1]
    shown = [
        null.shown_epsilon(float(p), float(q), delta)
        for p, q in zip(high, q, strict=True)
    ]
    return min((e for e in shown if math.isfinite(e)), default=None)


def rarest_event(null: NullFamily, samples: int, alpha: float) -> float:
    """Return how likely an event must be that only one dataset gives, to be found.

    Parameters
    ----------
    null : NullFamily
        The claim, alone.
    samples : int
        Releases on either side.
    alpha : float

    Returns
    -------
    float
        The least probability at which nine runs in ten would have refuted the claim by
        the event; 1 if there is none below.
    """
    needed = _NOTICING * _growth_needed(samples, alpha)
    low, high = math.log(1e-15), math.log1p(-1e-12)
    for _ in range(_SECTIONS):
        # Of so many probabilities at once, the first that is noticed.
        log_p = np.linspace(low, high, _PLACES)
        p = np.exp(log_p)
        noticed = _growth(null, p, _NEVER * p) >= needed
        if not noticed[-1]:
            return 1.0
        place = int(np.argmax(noticed))
        low, high = log_p[max(place - 1, 0)], log_p[place]
    return math.exp(high)


def _growth_needed(samples: int, alpha: float) -> float:
    """Return the growth per release with which a known event refutes in time."""
    z = float(ndtri(_POWER))
    root = (z * math.sqrt(2) + math.sqrt(2 * z**2 - 4 * math.log(alpha))) / 2
    return root**2 / (2 * samples)


def _growth(null: NullFamily, p: Array, q: Array) -> Array:
    """Return the growth per release of evidence from events of probabilities p, q."""
    p, q = np.broadcast_arrays(p, q)
    shape, p, q = p.shape, p.ravel(), q.ravel()
    log_ratio, limit = (
        x[0] for x in null.half_planes(np.zeros(1, dtype=np.intp), p, q)
    )
    spaces = HalfSpaces(
        np.ones(log_ratio.shape, dtype=np.intp),
        np.ones_like(limit),
        -np.exp(log_ratio),
        limit,
    )
    cells_p, cells_q = (np.stack([x, 1 - x], axis=1) for x in (p, q))
    growth = project(cells_p, cells_q, spaces, 0.5, tolerance=1e-3).growth
    return growth.reshape(shape)


def _from_to(low: Array, high: Array, places: int) -> Array:
    """Return probabilities from low ones to high ones, even in log-odds, (T, places).

    So they are fine near 0 and near 1.
    """
    start, stop = (np.log(x / (1 - x + 1e-15)) for x in (low, high))
    return np.asarray(expit(np.linspace(start, stop, places, axis=1)))
