"""The section on the textbook suite: what is measured, and how it is shown."""

from typing import Any

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.measures import audit_experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.suite.findings import suite_notes, suite_rows
from dpaudit.reports.sections.suite.measures import audited_suite

__all__ = ["SECTION"]


def _experiments(size: Size) -> tuple[Experiment, ...]:
    return (
        audit_experiment(
            names_of("textbook"),
            size.suite_samples,
            name="textbook-suite",
            title="Textbook suite",
            question="What does the audit find where the truth is known?",
            source="after Bichsel et al., S&P 2021, Table 1",
            measure=audited_suite,
            grid={},
            effort=40.0,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    suite = results["textbook-suite"]
    return {"suite": suite_rows(suite), "suite_notes": suite_notes(suite)}


SECTION = Section(
    name="suite",
    parts=(Part("textbook-suite", "Textbook suite", 800),),
    context=_context,
    sizes=sizes(suite_samples=(10_000, 1_000_000, 10_000_000)),  # releases a side
    experiments=_experiments,
)
