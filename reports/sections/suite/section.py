"""The section on the textbook suite: what is measured, and how it is shown."""

from dataclasses import dataclass
from typing import Any

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.suite.findings import suite_notes, suite_rows
from dpaudit.reports.sections.suite.measures import audited_suite

__all__ = ["SECTION", "Size"]


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    suite_samples : int
        Most releases a side for each mechanism, of which there are many.
    """

    suite_samples: int


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    return (
        Experiment(
            name="textbook-suite",
            title="Textbook suite",
            question="What does the audit find where the truth is known?",
            source="after Bichsel et al., S&P 2021, Table 1",
            measure=audited_suite,
            mechanisms=names_of("textbook"),
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": size.suite_samples,
            },
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
    sizes={"quick": Size(10_000), "standard": Size(1_000_000), "paper": Size(10**7)},
    experiments=_experiments,
)
