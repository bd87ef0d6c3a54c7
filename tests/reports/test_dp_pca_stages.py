"""What goes beyond the paper, beside it: medians, bottoms and sentences."""

from itertools import product
from math import nan

import pandas as pd
from tiny_profile import install_tiny, tiny_plan

from dpaudit.reports.experiment import run
from dpaudit.reports.sections.dp_pca import section as stages
from dpaudit.reports.sections.dp_pca.measures import (
    DP_PCA,
    GOE,
    MINIBATCH_OJA,
    OWN_PARTS,
    TWO_STAGE,
)

NAMES = (TWO_STAGE, OWN_PARTS, DP_PCA, MINIBATCH_OJA, GOE)
BESIDE = dict(zip(NAMES, (0.02, 0.05, 0.1, 0.03, 0.01), strict=True))


def tables(lost=()):
    """Errors are the same at both points; of `lost` (name, x) all are bottom."""
    found = {}
    for name, (variable, _) in stages.STAGES.items():
        places = (0.001, 0.1) if variable == "noise" else (1000.0, 10_000.0)
        rows = [
            (each, x, nan if (each, x) in lost else BESIDE[each] * (1 + i))
            for each, x, i in product(NAMES, places, (-0.5, 0.0, 0.5))
        ]
        found[name] = pd.DataFrame(rows, columns=["mechanism", variable, "error"])
    return found


def test_how_far_they_are_from_noise_on_the_covariance_is_said():
    notes = stages.stage_notes(tables())
    assert notes[0] == (
        "At ε = 1 on Gaussian rows with d = 20 the median error is 2 (two-stage-pca) "
        "and 5 (dp-pca-tuned) times that of goe-gaussian."
    )
    assert notes[4:] == [
        "two-stage-pca was never bottom.",
        "dp-pca-tuned was never bottom.",
    ]


def test_bottom_is_said_and_is_no_median():
    lost = {(OWN_PARTS, 1000.0), (TWO_STAGE, 0.1)}
    notes = stages.stage_notes(tables(lost=lost))
    assert "two-stage-pca was never bottom." not in notes
    assert notes[-1] == "dp-pca-tuned was bottom in 6 of 24 releases."
    lines = stages.SECTION.notes[tuple(stages.STAGES)](*tables(lost=lost).values())
    assert lines[:3] == [
        "on Gaussian rows with d = 20, n = 1,000, 10,000:",
        "  two-stage-pca         0.02      0.02",
        "  dp-pca-tuned        bottom      0.05",
    ]
    everything = {(each, x) for each in NAMES for x in (1000.0, 10_000.0)}
    first = stages.stage_notes(tables(lost=everything))[0]
    assert first.startswith("At ε = 1 in Example 4.1")


def test_every_mechanism_is_run(monkeypatch):
    install_tiny(monkeypatch)
    found = run(tiny_plan()["two-stage-example"])
    assert set(found["mechanism"]) == set(NAMES)
    own = found[found["mechanism"] == TWO_STAGE]
    assert own["error"].between(0, 1).all()
