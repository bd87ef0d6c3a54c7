"""Study C: how many releases it takes to refute a claim that is false.

First a plain function, half of the Laplace noise that its claim of epsilon = 1 needs,
of which the audit knows nothing but releases. Then every mechanism of the standard
suite whose claim of epsilon = 0.1 is false, against the information limit of its best
event (`dpaudit.reports.bench.best_events`): the factor covers finding the attack, the
pair and the event, betting without knowing probabilities, and looking all the time. And
against what DP-Sniper needs whatever the mechanism is: 10.7 million samples to search
and 200 million for the final bound.

A run that reaches its budget, twelve times the limit, counts as endless.
"""

from functools import partial
from math import ceil, inf, isfinite
from statistics import median

from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.audit import audit
from dpaudit.claims import PureDP
from dpaudit.reports.bench.best_events import (
    CLAIMED,
    best_events,
    best_pair,
    information_limit,
    subject,
)
from dpaudit.reports.bench.study import Figure, Record, Records, Row, Study, Table, Unit
from dpaudit.reports.bench.subjects import BlackBox
from dpaudit.reports.sections import sizes
from dpaudit.reports.words import count

__all__ = ["Refutation"]

_BLACK_BOX = "half laplace, black box"
_BLACK_BOX_CLAIM, _BLACK_BOX_CONFIDENCE = 1.0, 0.95
_BLACK_BOX_TARGET, _BLACK_BOX_BUDGET = 60, 5000

_CONFIDENCE = 0.999
_FACTOR = 3.0
_BUDGET_FACTOR, _SMALLEST_BUDGET = 12, 2000
_SNIPER = (10.7e6 + 200e6) / 10
"""Ten times fewer than DP-Sniper's releases."""


_SIZES = sizes(
    black_box=(11, 51, 51),  # seeds
    suite=(1, 3, 5),  # seeds
    # Mechanisms whose information limit is larger are left out.
    largest_limit=(7e3, 1e5, inf),
)


def limit(name: str) -> float:
    """Return the information limit of a mechanism of the suite, releases a side."""
    alpha = 1 - _CONFIDENCE
    return information_limit(best_events()[name], subject(name).claim, alpha)


class Refutation(Study):
    """Releases to refute a false claim."""

    name = "refutation"
    title = "Releases to refute"

    def units(self, profile: str) -> list[Unit]:
        size = _SIZES[profile]
        unit = partial(Unit, self.name)
        return [
            *(unit(_BLACK_BOX, index) for index in range(size.black_box)),
            *(
                unit(name, index)
                for name in best_events()
                if limit(name) <= size.largest_limit
                for index in range(size.suite)
            ),
        ]

    def measure(self, unit: Unit) -> Record:
        if unit.case == _BLACK_BOX:
            secret = Laplace.under_noised(_BLACK_BOX_CLAIM)
            result = audit(
                BlackBox(secret),
                pair=secret.worst_case(),
                claim=PureDP(_BLACK_BOX_CLAIM),
                confidence=_BLACK_BOX_CONFIDENCE,
                budget=_BLACK_BOX_BUDGET,
                seed=unit.seed,
            )
        else:
            budget = max(_SMALLEST_BUDGET, ceil(_BUDGET_FACTOR * limit(unit.case)))
            result = audit(
                subject(unit.case),
                pair=best_pair(unit.case),
                confidence=_CONFIDENCE,
                budget=budget,
                seed=unit.seed,
            )
        return {"refuted": result.refuted, "samples": result.samples}

    def tables(self, profile: str, records: Records) -> list[Table]:
        found = self.samples(records)
        tables = []
        if _BLACK_BOX in found:
            row = _row(_BLACK_BOX, found.pop(_BLACK_BOX), {"target": _BLACK_BOX_TARGET})
            note = (
                "Half the noise that epsilon = 1 needs, audited as a plain function at "
                "confidence 95 %."
            )
            tables.append(Table("A black box", (row,), note))
        rows = tuple(
            _row(
                name,
                found[name],
                {
                    "information limit": limit(name),
                    "3 x limit": _FACTOR * limit(name),
                    "a tenth of DP-Sniper's": _SNIPER,
                },
            )
            for name in best_events()
            if name in found
        )
        note = (
            f"Claim epsilon = {CLAIMED:g}, confidence {_CONFIDENCE:g}; releases a "
            "side, on average of the two. The information limit is that of the best "
            "event, were it known with its exact probabilities. Both targets have to "
            "be met."
        )
        return [*tables, Table("The standard suite", rows, note)]


def _row(name: str, samples: list[float], figures: dict[str, float]) -> Row:
    measured = median(samples)
    targets = [value for key, value in figures.items() if key != "information limit"]
    known = measured if isfinite(measured) else None
    shown = "not refuted" if known is None else count(known)
    return Row.of(
        measured <= min(targets),
        Figure("case", name, "mechanism", name),
        Figure("seeds", len(samples), "seeds", f"{len(samples)}"),
        Figure(
            "measured", measured if known else None, "median releases a side", shown
        ),
        Figure("refuted", sum(isfinite(value) for value in samples)),
        *(Figure(each, value, each, count(value)) for each, value in figures.items()),
    )
