"""Mechanisms that go beyond the paper, beside its own and noise on the covariance.

`two-stage-pca` and `dp-pca-tuned` at (1, 1e-6) for a replaced row, with their defaults:
Gaussian rows against n, for d = 20 and 100, and rows near a line against sigma: those
of Example 4.1, and Gaussian ones.
"""

from collections.abc import Mapping
from functools import partial
from math import isfinite

import numpy as np
import pandas as pd

from dpaudit.reports.experiment import Experiment
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.dp_pca.measures import (
    DEFAULT,
    DP_PCA,
    GOE,
    MINIBATCH_OJA,
    OWN_PARTS,
    TWO_STAGE,
    component_errors,
)
from dpaudit.reports.words import count, listed, setting

__all__ = ["STAGES", "stage_experiments", "stage_lines", "stage_notes"]

STAGES = {
    "two-stage-n": ("n", "on Gaussian rows with d = 20"),
    "two-stage-n-100": ("n", "on Gaussian rows with d = 100"),
    "two-stage-example": ("noise", "in Example 4.1"),
    "two-stage-line": ("noise", "on Gaussian rows near a line"),
}
_ORDER = (TWO_STAGE, OWN_PARTS, DP_PCA, MINIBATCH_OJA, GOE)


def stage_experiments(size: Size) -> list[Experiment]:
    """Return the experiments, in the order of `STAGES`."""
    fixed = {"epsilon": 1.0, "delta": 1e-6, "steps": DEFAULT}
    made = partial(
        Experiment,
        title="Two stages, and other parts",
        source="dpaudit; Liu, Kong, Jain, Oh, NeurIPS 2022, Sections 2.3 and 4",
        measure=component_errors,
        mechanisms=_ORDER,
        repetitions=size.rate_sets,
        effort=2.0,
    )
    rows = {"n": tuple(map(float, size.stage_rows))}
    spreads = {"noise": tuple(map(float, size.stage_spreads))}
    near = {"noise": tuple(map(float, size.stage_near))}
    example = {**fixed, "d": 20, "n": size.stage_base}
    return [
        made(name="two-stage-n", grid=rows, options={**fixed, "d": 20}),
        made(name="two-stage-n-100", grid=rows, options={**fixed, "d": 100}),
        made(name="two-stage-example", grid=spreads, options=example),
        made(name="two-stage-line", grid=near, options={**example, "normal": True}),
    ]


def stage_notes(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return how far the two are from noise on the covariance, and their bottoms."""
    notes = []
    for name, (variable, where) in STAGES.items():
        found = _medians(tables[name], variable)
        parts = []
        for own in (TWO_STAGE, OWN_PARTS):
            ratios = [
                middle / found[GOE][x]
                for x, middle in found[own].items()
                if isfinite(middle) and found[GOE][x] > 0
            ]
            if ratios:
                low, high = (setting(float(f"{f(ratios):.2g}")) for f in (min, max))
                span = low if low == high else f"{low} to {high}"
                parts.append(f"{span} ({own})")
        if parts:
            notes.append(
                f"At ε = 1 {where} the median error is {listed(parts)} times that of "
                f"{GOE}."
            )
    for own in (TWO_STAGE, OWN_PARTS):
        errors = [
            t["error"][t["mechanism"] == own] for t in (tables[name] for name in STAGES)
        ]
        found = pd.concat(errors).isna()
        lost = f"bottom in {count(found.sum())} of {count(len(found))} releases"
        notes.append(f"{own} was {lost if found.any() else 'never bottom'}.")
    return notes


def stage_lines(*tables: pd.DataFrame) -> list[str]:
    """Return the medians as lines of text, bottom as such, and the sentences."""
    lines = []
    for (variable, where), table in zip(STAGES.values(), tables, strict=True):
        found = _medians(table, variable)
        places = sorted(next(iter(found.values())))
        told = [count(x) if x >= 1000 else setting(x) for x in places]
        lines.append(f"{where}, {variable} = {', '.join(told)}:")
        for name in _ORDER:
            middles = [found[name][x] for x in places]
            shown = [f"{m:.2g}" if isfinite(m) else "bottom" for m in middles]
            lines.append(f"  {name:16}" + "".join(f"{text:>10}" for text in shown))
    return [*lines, *stage_notes(dict(zip(STAGES, tables, strict=True)))]


def _medians(table: pd.DataFrame, variable: str) -> dict[str, dict[float, float]]:
    """Return medians of errors, bottom above all others; infinite if that is bottom."""
    found: dict[str, dict[float, float]] = {}
    for name in _ORDER:
        own = table[table["mechanism"] == name]
        found[name] = {}
        for x, group in own.groupby(variable, sort=True):
            errors = np.nan_to_num(group["error"].to_numpy(dtype=float), nan=np.inf)
            found[name][float(x)] = float(np.median(errors))
    return found
