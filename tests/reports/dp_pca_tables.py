"""Tables of the experiments on DP-PCA as the runner makes them, errors by formula."""

from math import nan

import pandas as pd
from tiny_profile import tiny_plan

from dpaudit.reports.experiment import run
from dpaudit.reports.sections.dp_pca import measures
from dpaudit.reports.sections.dp_pca.findings import CLAIMS
from dpaudit.reports.sections.dp_pca.floors import FLOORS
from dpaudit.reports.sections.dp_pca.section import GRADIENTS

BESIDE = dict(
    zip(measures.MECHANISMS, range(1, len(measures.MECHANISMS) + 1), strict=True)
) | {measures.GOE: 0.5}


def claims_table(
    refuted=(measures.OJA, measures.AG_PUBLISHED),
    known=(measures.AG_PUBLISHED, measures.AG, measures.GOE),
):
    """Return verdicts; those that are known are held to an exact loss."""
    return pd.DataFrame(
        {
            **{"mechanism": name, "epsilon": 0.8},
            "claim": ("false" if name in refuted else "kept")
            if name in known
            else "not known",
            "exact_epsilon": 0.9 if name in known else nan,
            "verdict": "REFUTED" if name in refuted else "NOT_REFUTED",
            "samples": 0 if name in known else 400,
        }
        for name in measures.MECHANISMS
    )


def errors_table(experiment, beside=BESIDE, bottoms=((measures.DP_PCA, 0),)):
    """Return errors in proportion to 1/100 and what is beside the name.

    Of whom and at which place of the grid all releases are bottom may be given.
    """
    (variable,) = experiment.grid
    return pd.DataFrame(
        {
            **{"mechanism": name, variable: x, "repetition": i},
            "error": nan if (name, place) in bottoms else 0.01 * beside[name],
        }
        for name in experiment.mechanisms
        for place, x in enumerate(experiment.grid[variable])
        for i in range(experiment.repetitions)
    )


def dp_pca_tables(**options):
    """Return a table for each experiment of the tiny profile."""
    found = {}
    for name, each in tiny_plan().items():
        if each.measure is measures.component_errors:
            found[name] = errors_table(each, **options)
    plan = tiny_plan()
    for name in FLOORS:
        made = errors_table(plan[name], **options)
        found[name] = made.assign(floor=0.001 / made["n"] ** 0.5, blind=0.004)
    return {**found, GRADIENTS: run(plan[GRADIENTS]), CLAIMS: claims_table()}
