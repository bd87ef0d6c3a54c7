"""The section on utility: what is measured, and how it is shown."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpaudit.algorithms import names_of
from dpaudit.datasets import load
from dpaudit.reports.experiment import DELTA, Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.problems import SYNTHETIC
from dpaudit.reports.sections import Part, Results, Section
from dpaudit.reports.sections.utility.figures import captured_variance as curves
from dpaudit.reports.sections.utility.figures import run_time as bars
from dpaudit.reports.sections.utility.findings import (
    component_rows,
    time_rows,
    utility_answer,
    variance_notes,
)
from dpaudit.reports.sections.utility.measures import (
    FIRST_COMPONENT,
    RANDOM_SUBSPACE,
    captured_variance,
    reference_variance,
    run_time,
)
from dpaudit.reports.tables import refuted_mechanisms

__all__ = ["SECTION", "Size"]

# Digits are 64 pixels of 0 to 16, so no row is longer than 8 * 16 = 128. Half of that,
# the length at a root-mean-square ink of half the scale, follows from the format too.
_DATA = {"dataset": "digits", "row_norm": 64.0, "n_components": 10, "delta": DELTA}
_SYNTHETIC = {**_DATA, "dataset": SYNTHETIC, "row_norm": 1.0}
# What draws one component only, or takes for ever to draw ten.
_FEW_COMPONENTS = frozenset({"exponential-pca", "exponential-pca-acg"})


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Parameters
    ----------
    repetitions : int
        Releases behind every median of a utility curve.
    epsilons : int
        Points of the grid of epsilon, as in the section on privacy.
    timings : int
        Repetitions of every time measurement.
    """

    repetitions: int
    epsilons: int
    timings: int


def _experiments(size: Size, seed: int) -> tuple[Experiment, ...]:
    covariance = names_of("covariance")
    private_pca = (*covariance, *names_of("subspace"))
    several = tuple(name for name in private_pca if name not in _FEW_COMPONENTS)
    epsilons = tuple(map(float, np.geomspace(0.1, 10.0, size.epsilons)))
    experiment = partial(Experiment, seed=seed)
    return (
        experiment(
            name="captured-variance",
            title="Captured variance",
            question="How much variance do ten private components capture?",
            source="after Imtiaz, Sarwate, ICASSP 2016, Fig. 1",
            measure=captured_variance,
            mechanisms=covariance,
            grid={"epsilon": epsilons},
            repetitions=size.repetitions,
            options=_DATA,
            effort=2.0,
        ),
        experiment(
            name="variance-references",
            title="Captured variance without noise",
            question="How much do components capture that owe nothing to privacy?",
            source="dpaudit",
            measure=reference_variance,
            mechanisms=(BASELINE, FIRST_COMPONENT, RANDOM_SUBSPACE),
            options=_DATA,
            effort=0.1,
        ),
        experiment(
            name="components",
            title="Ten components of a known spectrum",
            question="Which mechanism keeps most of the variance at epsilon 1?",
            source="after Imtiaz, Sarwate, ICASSP 2016, section 5",
            measure=captured_variance,
            mechanisms=several,
            grid={"epsilon": (1.0,)},
            repetitions=size.repetitions,
            options=_SYNTHETIC,
            effort=4.0,
        ),
        experiment(
            name="run-time",
            title="Run time",
            question="How long does a fit take, compared with PCA without privacy?",
            source="dpaudit",
            measure=run_time,
            mechanisms=(BASELINE, *several),
            grid={"epsilon": (1.0,)},
            repetitions=size.timings,
            options={**_DATA, "batch": 64},
            effort=2.0,
            parallel=False,
        ),
    )


def _context(results: Results) -> dict[str, Any]:
    options = results.options("captured-variance")
    data = load(options["dataset"])
    n, d = data.rows.shape
    wall = results["privacy-wall"]
    return {
        "claimed_epsilon": wall["claimed_epsilon"].iloc[0],
        "components": component_rows(results["components"], wall),
        "data": {"source": data.source, "n": n, "d": d, **options},
        "times": time_rows(results["run-time"]),
        "variance_notes": variance_notes(
            results["captured-variance"],
            results["exact-privacy"],
            results["variance-references"],
        ),
    }


def _curves(found: Results, narrow: bool) -> str:
    return curves(
        found["captured-variance"],
        found["exact-privacy"],
        found["variance-references"],
        refuted=refuted_mechanisms(found["privacy-wall"]),
        narrow=narrow,
    )


SECTION = Section(
    name="utility",
    parts=(
        Part("captured-variance", "What privacy costs", 200),
        Part("components", "Ten components at a glance", 210),
        Part("run-time", "Run time", 220),
    ),
    context=_context,
    figures={
        "captured-variance": _curves,
        "run-time": lambda found, narrow: bars(found["run-time"], narrow=narrow),
    },
    sizes={
        "quick": Size(repetitions=50, epsilons=9, timings=20),
        "standard": Size(repetitions=400, epsilons=17, timings=200),
        "paper": Size(repetitions=1000, epsilons=33, timings=400),
    },
    experiments=_experiments,
    uses=("privacy",),
    answer=lambda found: utility_answer(
        found["privacy-wall"], found["exact-privacy"], found["captured-variance"]
    ),
)
