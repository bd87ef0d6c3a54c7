"""The section on the exponents of theorems: what is measured, and how it is shown."""

from functools import partial
from typing import Any

from dpaudit.reports.sections import Part, Results, Section, sizes
from dpaudit.reports.sections.theorems import figures, findings
from dpaudit.reports.sections.theorems.judgement import RESOLVED, TOLERANCE
from dpaudit.reports.sections.theorems.scoreboard import GRIDS, experiments

__all__ = ["SECTION"]


def _context(results: Results) -> dict[str, Any]:
    found, seen = findings.scores(results), findings.chances(results)
    return {
        "head": findings.statements(found),
        "summary": findings.summary(found),
        "print_notes": findings.print_notes(found),
        "bounds": findings.bound_rows(results),
        "chances": findings.chance_summary(seen),
        "rows": findings.score_rows(found) + findings.chance_rows(seen),
        "tolerance": TOLERANCE,
        "resolved": RESOLVED,
    }


SECTION = Section(
    name="theorems",
    parts=(Part("theorems", "Theorems", 550),),
    context=_context,
    figures={"theorems": figures.exponents},
    tables={
        "theorems": lambda found: findings.scoreboard(
            findings.scores(found), findings.chances(found)
        )
    },
    sizes=sizes(
        theorem_draws=(96, 400, 800),  # releases behind every point
        theorem_points=(4, 5, 6),  # values of each variable, two or more
        theorem_stream=(400_000, 400_000, 400_000),  # rows for dp-pca
    ),
    experiments=experiments,
    uses=("streaming", "online"),
    notes={(grid.name,): partial(findings.exponent_lines, grid.name) for grid in GRIDS},
)
