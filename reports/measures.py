"""What several sections measure: the privacy of mechanisms, exact and audited.

See `dpaudit.reports.experiment.Measure`.
"""

import json
import math
from typing import Any

from dpaudit.algorithms import entry
from dpaudit.audit import AuditResult, audit
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasExactClaim, HasTrueEpsilon, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Cell, Experiment, Record

__all__ = [
    "BASELINE",
    "audit_experiment",
    "audited_privacy",
    "audited_suite",
    "audits",
    "exact",
    "exact_privacy",
    "worst_case",
]

BASELINE = "non-private-pca"

_ROUNDING = 1 + 1e-9


def exact_privacy(cell: Cell) -> list[Record]:
    """Hold the claim against the exact privacy on the mechanism's worst pair.

    Returns
    -------
    list of dict
        One record: ``claimed_epsilon``, ``claimed_delta``; ``exact_epsilon`` at the
        claimed delta and ``exact_delta`` at the claimed epsilon (NaN where not known);
        ``claim``: ``"kept"``, ``"false"`` or ``"not known"``.
    """
    mechanism = cell.build()
    epsilon = cell.point["epsilon"]
    delta = float(mechanism.claim.delta(epsilon))
    return [
        {
            "claimed_epsilon": epsilon,
            "claimed_delta": delta,
            **exact(mechanism, worst_case(mechanism), epsilon, delta),
        }
    ]


def audited_privacy(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair.

    See `audits`; the exact privacy is that of the same pair.
    """
    mechanism = cell.build()
    pair = worst_case(mechanism)
    result, first = audits(cell, mechanism, pair)
    witness = None if first is None else first.witness
    return [
        {
            "source": entry(cell.mechanism).source,
            "relation": str(result.relation),
            "claim_text": str(result.claim),
            "claimed_epsilon": result.at_epsilon,
            "claimed_delta": result.at_delta,
            **exact(mechanism, pair, result.at_epsilon, result.at_delta),
            "verdict": result.verdict.value,
            "epsilon_lower": result.epsilon_lower,
            "delta_lower": result.delta_lower,
            "samples": result.samples,
            "samples_to_refute": math.nan if first is None else first.samples,
            "attack": (first or result).attack,
            "event": (first or result).event,
            "log_evidence": result.log_evidence,
            "detectable_epsilon": _number(result.detectable_epsilon),
            "rarest_event": result.rarest_event,
            "confidence": result.confidence,
            "seed": result.seed,
            "witness": None if witness is None else json.dumps(witness.to_dict()),
        }
    ]


def audited_suite(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair, beside its true epsilon.

    See `audited_privacy`. The true epsilon is that over all neighbours (NaN where not
    known).
    """
    mechanism = cell.build()
    truth = math.nan
    if isinstance(mechanism, HasTrueEpsilon):
        truth = mechanism.true_epsilon
    (audited,) = audited_privacy(cell)
    summary = entry(cell.mechanism).summary
    return [{**audited, "summary": summary, "true_epsilon": truth}]


def audit_experiment(
    mechanisms: tuple[str, ...], max_samples: int, **options: Any
) -> Experiment:
    """Return an experiment that audits claims of epsilon = 1, unless told otherwise."""
    usual: dict[str, Any] = {
        "source": "dpaudit",
        "measure": audited_privacy,
        "grid": {"epsilon": (1.0,)},
    }
    settings = {"delta": DELTA, "confidence": CONFIDENCE, "max_samples": max_samples}
    return Experiment(mechanisms=mechanisms, options=settings, **(usual | options))


def audits(
    cell: Cell, mechanism: Mechanism, pair: Pair
) -> tuple[AuditResult, AuditResult | None]:
    """Audit to the end, for the tightest bounds, and up to a refutation, if there is.

    The second audit says how many releases a refutation takes. Both get the user's
    seed itself, so that ``dpaudit audit`` with that seed repeats them.
    """
    settings: dict[str, Any] = {
        "pair": pair,
        "confidence": cell.options["confidence"],
        "max_samples": cell.options["max_samples"],
        "seed": cell.seed,
        "name": cell.mechanism,
    }
    result = audit(mechanism, stop_when_refuted=False, **settings)
    if not result.refuted:
        return result, None
    first = audit(mechanism, **settings)
    # It looks at other moments, and may just miss what all releases together show.
    return result, first if first.refuted else result


def worst_case(mechanism: Mechanism) -> Pair:
    """Return the pair of datasets on which a mechanism is at its worst."""
    if not isinstance(mechanism, HasWorstCase):
        raise UnsupportedError(f"{type(mechanism).__name__} names no worst case")
    return mechanism.worst_case()


def exact(
    mechanism: Mechanism, pair: Pair, epsilon: float, delta: float
) -> dict[str, Any]:
    """Return the exact epsilon at `delta`, the exact delta at `epsilon`, and which."""
    unknown = {"exact_epsilon": math.nan, "exact_delta": math.nan, "claim": "not known"}
    if not isinstance(mechanism, HasExactClaim):
        return unknown
    try:
        known: Claim = mechanism.exact_claim(pair)
    except UnsupportedError:
        return unknown
    # Calibrations solve for equality: a rounding error beyond it is no violation.
    kept = known.delta(epsilon * _ROUNDING) <= delta * _ROUNDING
    return {
        "exact_epsilon": known.epsilon(delta),
        "exact_delta": float(known.delta(epsilon)),
        "claim": "kept" if kept else "false",
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value
