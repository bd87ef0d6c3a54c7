"""The section on utility: what is measured, and how it is shown."""

from functools import partial
from typing import Any

import numpy as np

from dpaudit.algorithms import names_of
from dpaudit.datasets import load
from dpaudit.reports.experiment import DELTA, Experiment
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.utility import figures, findings, measures
from dpaudit.reports.sections.utility.measures import SYNTHETIC
from dpaudit.reports.tables import refuted_mechanisms

__all__ = ["SECTION"]

# Digits are 64 pixels of 0 to 16, so no row is longer than 8 * 16 = 128. Half of that,
# the length at a root-mean-square ink of half the scale, follows from the format too.
_DATA = {"dataset": "digits", "row_norm": 64.0, "n_components": 10, "delta": DELTA}
_SYNTHETIC = {**_DATA, "dataset": SYNTHETIC, "row_norm": 1.0}
# What draws one component only, or takes for ever to draw ten.
_FEW_COMPONENTS = frozenset({"exponential-pca", "exponential-pca-acg"})


def _experiments(size: Size) -> tuple[Experiment, ...]:
    covariance = names_of("covariance")
    private_pca = (*covariance, *names_of("subspace"))
    several = tuple(name for name in private_pca if name not in _FEW_COMPONENTS)
    epsilons = tuple(map(float, np.geomspace(0.1, 10.0, size.epsilons)))
    experiment = partial(Experiment)
    return (
        experiment(
            name="captured-variance",
            title="Captured variance",
            question="How much variance do ten private components capture?",
            source="after Imtiaz, Sarwate, ICASSP 2016, Fig. 1",
            measure=measures.captured_variance,
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
            measure=measures.reference_variance,
            mechanisms=(BASELINE, measures.FIRST_COMPONENT, measures.RANDOM_SUBSPACE),
            options=_DATA,
            effort=0.1,
        ),
        experiment(
            name="components",
            title="Ten components of a known spectrum",
            question="Which mechanism keeps most of the variance at epsilon 1?",
            source="after Imtiaz, Sarwate, ICASSP 2016, section 5",
            measure=measures.captured_variance,
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
            measure=measures.run_time,
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
        "components": findings.component_rows(results["components"], wall),
        "data": {"source": data.source, "n": n, "d": d, **options},
        "times": findings.time_rows(results["run-time"]),
        "variance_notes": findings.variance_notes(
            results["captured-variance"],
            results["exact-privacy"],
            results["variance-references"],
        ),
    }


def _curves(found: Results, narrow: bool) -> str:
    return figures.captured_variance(
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
        "run-time": lambda found, narrow: figures.run_time(
            found["run-time"], narrow=narrow
        ),
    },
    sizes=sizes(
        repetitions=(50, 400, 1000),  # releases behind every median of a curve
        epsilons=(9, 17, 33),  # as in the section on privacy
        timings=(20, 200, 400),  # of every fit
    ),
    experiments=_experiments,
    uses=("privacy",),
    answer=lambda found: findings.utility_answer(
        found["privacy-wall"], found["exact-privacy"], found["captured-variance"]
    ),
)
