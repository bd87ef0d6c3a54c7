"""What the section on the textbook suite measures."""

import math

from dpaudit.algorithms import entry
from dpaudit.mechanism import (
    HasTrueEpsilon,
)
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.measures import audits, worst_case

__all__ = ["audited_suite"]


def audited_suite(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair, beside its true epsilon.

    See `dpaudit.reports.measures.audits`. The true epsilon is that over all neighbours
    (NaN where not known).
    """
    mechanism = cell.build()
    result, first = audits(cell, mechanism, worst_case(mechanism))
    truth = math.nan
    if isinstance(mechanism, HasTrueEpsilon):
        truth = mechanism.true_epsilon
    return [
        {
            "source": entry(cell.mechanism).source,
            "summary": entry(cell.mechanism).summary,
            "relation": str(result.relation),
            "claimed_epsilon": result.at_epsilon,
            "claimed_delta": result.at_delta,
            "true_epsilon": truth,
            "verdict": result.verdict.value,
            "epsilon_lower": result.epsilon_lower,
            "samples": result.samples,
            "samples_to_refute": math.nan if first is None else first.samples,
            "attack": (first or result).attack,
            "confidence": result.confidence,
            "seed": result.seed,
        }
    ]
