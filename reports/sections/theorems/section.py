"""The section on the exponents of theorems: what is measured, and how it is shown."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from dpaudit.reports.sections import Part, Results, Section, TopicPage, sizes
from dpaudit.reports.sections.theorems import findings, judgement
from dpaudit.reports.sections.theorems.judgement import Judged
from dpaudit.reports.sections.theorems.rows import Chance, Row
from dpaudit.reports.sections.theorems.scoreboard import GRIDS, experiments
from dpaudit.reports.words import listed

__all__ = ["SECTION", "experiments"]


def _judged(results: Results) -> tuple[list[judgement.Score], list[judgement.Share]]:
    return findings.scores(results), findings.chances(results)


def context(results: Results) -> dict[str, Any]:
    found, seen = results.once(_judged)
    return {
        "head": findings.statements(found),
        "summary": findings.summary(found),
        "print_notes": findings.print_notes(found),
        "bounds": findings.bound_rows(results),
        "chances": findings.chance_summary(seen),
        "rows": findings.score_rows(found) + findings.chance_rows(seen),
        "tolerance": judgement.TOLERANCE,
        "resolved": judgement.RESOLVED,
    }


def tables(results: Results) -> dict[str, pd.DataFrame]:
    return {"theorems": findings.scoreboard(*results.once(_judged))}


def pages(results: Results) -> list[TopicPage]:
    """Return a page for each theorem, in the order of the scoreboard."""
    found, seen = results.once(_judged)
    bounds = findings.bound_rows(results)
    rows: list[Row | Chance] = [each.row for each in found]
    rows += [each.row for each in seen]
    theorems = dict.fromkeys(row.theorem for row in rows)

    def owner(named: str) -> str:
        """Return the theorem that a bound belongs to: what its name begins with."""
        return max((each for each in theorems if named.startswith(each)), key=len)

    topics = []
    for theorem in theorems:
        own = [each for each in found if each.row.theorem == theorem]
        events = [each for each in seen if each.row.theorem == theorem]
        some = [row for row in rows if row.theorem == theorem]
        verdicts = [each.verdict for each in own] + [each.verdict for each in events]
        told = {
            "rows": findings.score_rows(own) + findings.chance_rows(events),
            "bounds": [row for row in bounds if owner(row.named) == theorem],
            "mechanisms": dict.fromkeys(row.mechanism for row in some),
            "experiments": dict.fromkeys(row.experiment for row in some),
            "why": dict.fromkeys(each.row.why for each in own if each.row.why),
            "printed": [
                each.row for each in own if each.row.printed != each.row.predicted
            ],
        }
        topics.append(
            TopicPage(
                folder="theorems",
                name=theorem,
                template="theorems/theorem.html.j2",
                context=partial(dict, told),
                group=some[0].source,
                line=listed(_measured(some)),
                verdict=_VERDICTS[judgement.stated(own)] if own else verdicts[0],
                refuted=Judged.CONTRADICTED in verdicts,
                mechanisms=tuple(row.mechanism for row in some),
                file=re.sub(r"[^a-z0-9]+", "-", theorem.lower()).strip("-"),
            )
        )
    return topics


_VERDICTS = {
    "supports": "supported",
    "supports in some variables only": "supported in some variables",
    "does not decide on": "not decided",
    "contradicts": "CONTRADICTED",
}


def _measured(rows: Sequence[Row | Chance]) -> list[str]:
    """Return what was measured of a theorem, each error once."""
    errors: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, Chance):
            errors[f"the probability of this event: {row.event}"] = []
        else:
            errors.setdefault(row.error, []).append(row.variable)
    return [
        f"{error}, in {listed(dict.fromkeys(variables))}" if variables else error
        for error, variables in errors.items()
    ]


SECTION = Section(
    name="theorems",
    title="Theorems",
    parts=(Part("theorems", "Theorems", 550),),
    sizes=sizes(
        theorem_draws=(96, 400, 800),  # releases behind every point
        theorem_points=(4, 5, 6),  # values of each variable, two or more
        theorem_stream=(400_000, 400_000, 400_000),  # rows for dp-pca
    ),
    uses=("streaming", "online"),
    notes={(grid.name,): partial(findings.exponent_lines, grid.name) for grid in GRIDS},
)
