"""The section on privacy: what is audited, and how it is shown."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.algorithms import names_of
from dpaudit.reports.experiment import CONFIDENCE, DELTA, Experiment
from dpaudit.reports.measures import audited_privacy
from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.privacy.figures import privacy_wall
from dpaudit.reports.sections.privacy.findings import (
    headline,
    privacy_answer,
    wall_notes,
)
from dpaudit.reports.sections.privacy.measures import exact_privacy
from dpaudit.reports.tables import records, verdict_rows

__all__ = ["SECTION", "Size"]


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    epsilons : int
        Points of the grid of epsilon, from 0.1 to 10; odd, so that 1 is among them.
    max_samples : int
        Most releases that an audit draws on either side.
    """

    epsilons: int
    max_samples: int


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    covariance = names_of("covariance")
    return (
        Experiment(
            name="privacy-wall",
            title="Privacy wall",
            question="How much privacy is lost: as claimed, in truth, as audited?",
            source="dpaudit",
            measure=audited_privacy,
            mechanisms=(*covariance, *names_of("subspace")),
            grid={"epsilon": (1.0,)},
            seed=seed,
            options={
                "delta": DELTA,
                "confidence": CONFIDENCE,
                "max_samples": size.max_samples,
            },
            effort=40.0,
        ),
        Experiment(
            name="exact-privacy",
            title="Exact privacy",
            question="At which epsilon is each claim true?",
            source="dpaudit",
            measure=exact_privacy,
            mechanisms=covariance,
            grid={"epsilon": tuple(map(float, np.geomspace(0.1, 10.0, size.epsilons)))},
            seed=seed,
            options={"delta": DELTA},
            effort=0.2,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    wall = results["privacy-wall"]
    audited, rows = records(wall), verdict_rows(wall)
    return {
        "confidence": audited[0]["confidence"],
        "delta": results.options("privacy-wall")["delta"],
        "rarest_event": max(row["rarest_event"] for row in audited),
        "verdicts": rows,
        "wall_notes": wall_notes(wall),
    }


def _commands(results: Results) -> list[str]:
    """Return the commands that repeat what was refuted."""
    wall = results["privacy-wall"]
    options = f"--seed {results.seed} --confidence {wall['confidence'].iloc[0]:g}"
    rows = verdict_rows(wall)
    return [
        *(f"dpaudit audit {row.name} {options}" for row in rows if row.refuted),
        *(f"dpaudit verify {row.witness_file}" for row in rows if row.witness_file),
    ]


SECTION = Section(
    name="privacy",
    parts=(
        Part("verdicts", "Verdicts", 100),
        Part("privacy-wall", "The privacy wall", 110),
        Part("how-to-read", "How to read this", 900),
    ),
    context=_context,
    figures={
        "privacy-wall": lambda found, narrow: privacy_wall(
            found["privacy-wall"], narrow=narrow
        )
    },
    sizes={
        "quick": Size(epsilons=9, max_samples=100_000),
        "standard": Size(epsilons=17, max_samples=3_000_000),
        "paper": Size(epsilons=33, max_samples=30_000_000),
    },
    experiments=_experiments,
    headline=lambda found: headline(found["privacy-wall"]),
    answer=lambda found: privacy_answer(found["privacy-wall"], found["exact-privacy"]),
    commands=_commands,
)
