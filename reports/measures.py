"""What several sections measure: the privacy of mechanisms, exact and audited.

See `dpaudit.reports.experiment.Measure`.
"""

import json
import math

from dpaudit.algorithms import entry
from dpaudit.audit import AuditResult, Budget, Run, Witness, audit, verify
from dpaudit.audit.betting.events import reaching_tells
from dpaudit.audit.bounds import Counts, clopper_pearson
from dpaudit.audit.bounds.laws import lower_proportion, upper_proportion
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasTrueEpsilon, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair
from dpaudit.reports.experiment import REFINE, Cell, Record, exact

BASELINE = "non-private-pca"


def exact_privacy(cell: Cell) -> list[Record]:
    """Hold the claim against the exact privacy on the mechanism's worst pair.

    One record: ``claimed_epsilon``, ``claimed_delta``; ``exact_epsilon`` at the claimed
    delta and ``exact_delta`` at the claimed epsilon (NaN where not known); ``claim``:
    ``"kept"``, ``"false"`` or ``"not known"``.
    """
    mechanism = cell.build()
    epsilon = cell.point["epsilon"]
    delta = float(mechanism.claim.delta_at(epsilon))
    return [
        {
            "claimed_epsilon": epsilon,
            "claimed_delta": delta,
            **exact(mechanism, worst_case(mechanism), epsilon, delta),
        }
    ]


def audited_privacy(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair.

    The exact privacy is that of the same pair. Where the claim is refuted, the bounds
    are those that `counted` proves, else those of the audit.
    """
    mechanism = cell.build()
    pair = worst_case(mechanism)
    result = audited(cell, mechanism, pair)
    witness, bounds = result.witness, {}
    if witness is not None:
        bounds = counted(cell, mechanism, result, witness)
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
            "max_samples": cell.options["max_samples"],
            "samples_to_refute": _number(result.refuted_at),
            "attack": result.attack,
            "event": None,
            "log_evidence": result.log_evidence,
            "detectable_epsilon": _number(result.detectable_epsilon),
            "rarest_event": result.rarest_event,
            "confidence": result.confidence,
            "seed": result.seed,
            "witness": None if witness is None else json.dumps(witness.to_dict()),
            **bounds,
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


def audited(cell: Cell, mechanism: Mechanism, pair: Pair) -> AuditResult:
    """Audit, and refine the events of what is refuted.

    It gets the user's seed itself, so that ``dpaudit audit`` with that seed repeats it.
    """
    return audit(
        mechanism,
        pair=pair,
        confidence=cell.options["confidence"],
        budget=Budget(cell.options["max_samples"], refine=REFINE),
        seed=cell.seed,
        run=Run(name=cell.mechanism),
    )


def counted(
    cell: Cell, mechanism: Mechanism, result: AuditResult, witness: Witness
) -> Record:
    """Count a witness's event in fresh releases, and return what the counts prove.

    The event was fixed by the audit and the number of releases beforehand. So each of
    Clopper and Pearson's limits, p >= p_L on D and q <= q_U on D', fails with
    probability at most (1 - confidence) / 2, and where both hold

        epsilon >= ln((p_L - delta) / q_U),   delta >= p_L - e^epsilon q_U,

    and the same of the complement, likelier on D'. ``dpaudit verify --to-the-end`` with
    the next seed repeats the counts, ``dpaudit bound`` the bound on epsilon.
    """
    n, claimed = cell.options["max_samples"], result.at_epsilon
    again = verify(
        witness,
        mechanism=mechanism,
        confidence=result.confidence,
        max_samples=n,
        seed=cell.seed + 1,
        stop_when_confirmed=False,
    )
    seen = Counts(again.hits, n, again.hits_neighbour, n)
    # On which side it is likelier was fixed by the audit, too.
    hits, drawn, hits_neighbour, drawn_neighbour = witness.counts
    reached = reaching_tells(witness.counts, witness.at_epsilon)
    if (hits * drawn_neighbour >= hits_neighbour * drawn) != reached:
        seen = seen.swapped
    alpha = (1 - result.confidence) / 2
    p = lower_proportion(seen.hits, n, alpha)
    q = upper_proportion(seen.hits_neighbour, n, alpha)
    sides = (p, q), (1 - q, 1 - p)
    bound = clopper_pearson(seen, delta=result.at_delta, confidence=result.confidence)
    return {
        "epsilon_lower": bound.value,
        "delta_lower": max(0.0, *(x - math.exp(claimed) * y for x, y in sides)),
        "event": again.event,
        "hits": again.hits,
        "hits_neighbour": again.hits_neighbour,
    }


def worst_case(mechanism: Mechanism) -> Pair:
    """Return the pair of datasets on which a mechanism is at its worst."""
    if not isinstance(mechanism, HasWorstCase):
        raise UnsupportedError(f"{type(mechanism).__name__} names no worst case")
    return mechanism.worst_case()


def _number(value: float | None) -> float:
    return math.nan if value is None else value
