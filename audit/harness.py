"""`audit`: attack a mechanism until its claim falls, or the releases are spent.

The work is done by a `dpaudit.audit.campaign.Campaign`; here its arguments are checked
and its outcome is put into words.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from dpaudit.attacks import BITS, PORTFOLIO, Attack
from dpaudit.audit.betting.power import detectable_epsilon
from dpaudit.audit.campaign import Campaign
from dpaudit.audit.layers.exact import ExactVerdict, exact_verdict
from dpaudit.audit.layers.layer import Layer, view_transcript
from dpaudit.audit.purity import impurities
from dpaudit.audit.result import AuditResult, Verdict
from dpaudit.audit.search.pair_search import PairSearch
from dpaudit.audit.search.sources import pair_source
from dpaudit.audit.witness import Witness, current_versions
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.codec import encode
from dpaudit.domains import Domain
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_fraction

__all__ = ["audit"]

_REFERENCE_DELTA = 1e-5


def audit(
    mechanism: Mechanism | Callable[..., Any],
    *,
    pair: Pair | None = None,
    domain: Domain | str | None = None,
    relation: Relation | str | None = None,
    claim: Claim | None = None,
    confidence: float = 0.999,
    max_samples: int = 200_000,
    seed: int = 0,
    stop_when_refuted: bool = True,
    layer: Layer | str = Layer.BLACK_BOX,
    bits: bool = False,
    attacks: Sequence[Attack] | None = None,
    name: str | None = None,
    reference: str | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> AuditResult:
    """Attack a mechanism on neighbouring datasets, and say what that shows.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A `~dpaudit.mechanism.Mechanism`, or any function ``(data, rng) -> array``.
        What it raises, and what it returns instead of numbers, are outputs too.
    pair : Pair, optional
        The neighbouring datasets. By default the mechanism's own worst case.
    domain : Domain or str, optional
        Which datasets are legal, instead of a pair: the audit then searches for a bad
        pair itself. A string is parsed, as in ``"box:0,1:5"``.
    relation : Relation or str, optional
        For a search, where the mechanism states none.
    claim : Claim, optional
        What to hold it to. By default the mechanism's own claim.
    confidence : float
        In (0, 1). A true claim is refuted with probability at most 1 - confidence.
    max_samples : int
        Most releases to draw on either side, >= 2; on average of the two sides, where
        one of them needs more.
    seed : int
        >= 0. The same seed gives the same result.
    stop_when_refuted : bool
        Whether to stop as soon as the claim is refuted, or to go on to `max_samples`
        for tighter lower bounds.
    layer : {"black-box", "transcript"}
        What the attacker sees: final releases, or every noisy value on the way.
    bits : bool
        Whether to audit the doubles that are returned, with attacks on their bits,
        rather than the mechanism over the real numbers.
    attacks : sequence of Attack, optional
        By default `dpaudit.attacks.PORTFOLIO`, or `dpaudit.attacks.BITS`.
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
        If the mechanism does nothing but raise, or breaks the protocol.

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
    claim = _claim(mechanism, claim)
    alpha = 1 - check_fraction("confidence", confidence)
    max_samples = check_count("max_samples", max_samples, minimum=2)
    seed = check_count("seed", seed, minimum=0)
    layer = _layer(layer)
    subject = view_transcript(mechanism) if layer is Layer.TRANSCRIPT else mechanism
    search = PairSearch(pair_source(mechanism, pair, domain, relation, seed), seed)
    campaign = Campaign(
        subject,
        search,
        claim,
        _reference_point(claim),
        alpha=alpha,
        seed=seed,
        max_samples=max_samples,
        attacks=(BITS if bits else PORTFOLIO) if attacks is None else attacks,
        stop_when_refuted=stop_when_refuted,
    )
    for samples, lower in campaign.rounds():
        if progress is not None:
            progress(samples, lower)
    return _result(
        campaign,
        mechanism=mechanism,
        name=name or _name(mechanism),
        reference=reference,
        layer=layer,
        bits=bits,
        started=started,
    )


def _result(
    campaign: Campaign,
    *,
    mechanism: Any,
    name: str,
    reference: str | None,
    layer: Layer,
    bits: bool,
    started: float,
) -> AuditResult:
    tests, verdict = campaign.tests, campaign.verdict
    refuted, samples = verdict.refutes_claim, campaign.samples
    claimed = verdict.family.claimed
    assert claimed is not None  # the first family is the one that decides
    log_evidence = float(verdict.log_wealth[claimed])
    arena, events = campaign.best()
    loudest = campaign.loudest(arena, events)
    mu, pair = tests.get("mu"), arena.target.pair
    witness = None
    if refuted and loudest is not None and _is_known(loudest.fitted.attack):
        witness = Witness(
            name=name,
            mechanism=_stored(mechanism, reference),
            claim=campaign.claim,
            at_epsilon=campaign.at_epsilon,
            at_delta=campaign.at_delta,
            pair=pair,
            layer=layer.value,
            layout=arena.layout,
            attack=loudest.fitted.attack.name,
            parameters=dict(loudest.fitted.parameters),
            resolution=loudest.fitted.resolution,
            threshold=loudest.threshold,
            counts=loudest.counts,
            confidence=1 - campaign.alpha,
            samples=samples,
            seed=campaign.seed,
            log_evidence=log_evidence,
            versions=current_versions(),
        )
    return AuditResult(
        name=name,
        verdict=Verdict.REFUTED if refuted else Verdict.NOT_REFUTED,
        claim=campaign.claim,
        relation=pair.relation,
        layer=layer,
        bits=bits,
        confidence=1 - campaign.alpha,
        samples=samples,
        drawn=(int(campaign.drawn[0]), int(campaign.drawn[1])),
        pairs=campaign.pairs,
        epsilon_lower=tests["epsilon"].lower_bound,
        at_delta=campaign.at_delta,
        delta_lower=tests["delta"].lower_bound,
        at_epsilon=campaign.at_epsilon,
        mu_lower=None if mu is None else mu.lower_bound,
        attack=None if loudest is None else loudest.fitted.attack.name,
        log_evidence=log_evidence,
        detectable_epsilon=None
        if refuted
        else detectable_epsilon(
            verdict.family.claim_only(),
            events.less_likely,
            samples,
            campaign.alpha,
            campaign.at_delta,
        ),
        rarest_event=min(1.0, -math.log(campaign.alpha) / samples),
        exact=_exact(mechanism, pair, campaign.claim),
        warnings=impurities(arena),
        seed=campaign.seed,
        seconds=time.perf_counter() - started,
        witness=witness,
    )


def _is_known(attack: Attack) -> bool:
    """Say whether `verify` would find the attack by its name."""
    return type(attack) in {type(known) for known in PORTFOLIO + BITS}


def _exact(mechanism: Any, pair: Pair, claim: Claim) -> ExactVerdict | None:
    """Return what the exact layer says on the pair, where there is one."""
    try:
        return exact_verdict(mechanism, pair, claim)
    except UnsupportedError:
        return None


def _layer(layer: Layer | str) -> Layer:
    sampled = (Layer.BLACK_BOX, Layer.TRANSCRIPT)
    if layer not in sampled:
        raise InputError(
            f"layer must be one of {[x.value for x in sampled]}, got {layer!r}"
        )
    return Layer(layer)


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
