"""The section that carries out what Liu, Kong, Jain and Oh, NeurIPS 2022, describe.

Mechanisms that go beyond the paper, beside its own and noise on the covariance.

`two-stage-pca` and `dp-pca-tuned` at (1, 1e-6) for a replaced row, with their defaults:
Gaussian rows against n, for d = 20 and 100, and rows near a line against sigma: those
of Example 4.1, and Gaussian ones.
"""

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.reports.experiment import CONFIDENCE, Experiment
from dpaudit.reports.sections import Part, Results, Section, Size, sizes
from dpaudit.reports.sections.dp_pca import findings, floors, gradients, measures
from dpaudit.reports.sections.dp_pca.findings import CLAIMS, EXAMPLE, RATES, SLOW
from dpaudit.reports.sections.dp_pca.measures import (
    DEFAULT,
    DP_PCA,
    GOE,
    MINIBATCH_OJA,
    OWN_PARTS,
    TWO_STAGE,
    component_errors,
)
from dpaudit.reports.tables import refuted_mechanisms
from dpaudit.reports.words import count, listed, setting

__all__ = ["SECTION"]

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


_PAPER = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_SLOW = (measures.OJA, measures.PRIVATE_OJA)
_FAST = tuple(name for name in measures.MECHANISMS if name not in _SLOW)
_EPSILON, _DELTA, _DIMENSION = 0.8, 1e-6, 20


def experiments(size: Size) -> tuple[Experiment, ...]:
    fixed = {"epsilon": _EPSILON, "delta": _DELTA, "d": _DIMENSION}
    base = {**fixed, "n": float(size.rate_base)}
    gaussian = "Section 2.3, Theorems 3.3, 5.1, Corollary 5.2"
    found = [
        Experiment(
            name=gradients.TABLE,
            title="Gradients in the plane",
            source=f"{_PAPER}, Figure 1",
            measure=gradients.minibatch_gradients,
            mechanisms=(gradients.GAUSSIAN, gradients.EXAMPLE),
            options={"gradients": 400},
            effort=0.1,
        ),
        Experiment(
            name=CLAIMS,
            title="Claims of streaming PCA",
            source=_PAPER,
            measure=measures.claims,
            mechanisms=measures.MECHANISMS,
            grid={"epsilon": (_EPSILON,)},
            options={
                "delta": _DELTA,
                "confidence": CONFIDENCE,
                "max_samples": size.rate_samples,
            },
            effort=4.0,
        ),
    ]
    default, tuned = measures.DEFAULT, measures.TUNED
    spreads = {"noise": size.rate_spreads}
    for name, steps, grid, others, place in (
        ("dp-pca-n", default, {"n": size.rate_rows}, fixed, gaussian),
        ("dp-pca-n-tuned", tuned, {"n": size.rate_rows}, fixed, gaussian),
        ("dp-pca-d", default, {"d": size.rate_lengths}, base, gaussian),
        ("dp-pca-epsilon", default, {"epsilon": size.rate_epsilons}, base, gaussian),
        ("dp-pca-example", default, spreads, base, "Example 4.1"),
        ("dp-pca-example-tuned", tuned, spreads, base, "Example 4.1"),
    ):
        found += _pair(name, steps, grid, others, size, place)
    for name in floors.FLOORS:
        found.append(
            Experiment(
                name=name,
                title="Errors on hard instances",
                source=f"{_PAPER}, Theorems 5.3, 5.4",
                measure=floors.floor_errors,
                mechanisms=_FAST,
                grid={"n": size.rate_floor_rows},
                repetitions=size.rate_floor_sets,
                options={**fixed, "instance": name.removeprefix("dp-pca-floor-")},
                effort=1.5,
            )
        )
    found += stage_experiments(size)
    return (*found[:2], *map(measures.checked, found[2:]))


def _pair(
    name: str,
    steps: str,
    grid: dict[str, tuple[float, ...]],
    fixed: dict[str, Any],
    size: Size,
    place: str,
) -> list[Experiment]:
    """Return two experiments: of what takes a step a batch, and a step a row."""
    options = {k: v for k, v in {**fixed, "steps": steps}.items() if k not in grid}
    made = partial(
        Experiment,
        title="Errors of streaming PCA",
        source=f"{_PAPER}, {place}",
        measure=measures.component_errors,
        options=options,
    )
    (variable,) = grid
    values = tuple(map(float, grid[variable]))
    # Of what a random order asks for, all rows are in memory.
    held = tuple(x for x in values if variable != "n" or x <= measures.ORDERED)
    return [
        made(
            name=name,
            mechanisms=_FAST,
            grid={variable: values},
            repetitions=size.rate_sets,
            effort=3.0,
        ),
        made(
            name=name + SLOW,
            mechanisms=_SLOW,
            grid={variable: held},
            repetitions=size.rate_single_sets,
            effort=6.0,
        ),
    ]


def context(results: Results) -> dict[str, Any]:
    rates, example = (findings.panels(results, each) for each in (RATES, EXAMPLE))
    refuted = refuted_mechanisms(results[CLAIMS])
    return {
        "head": findings.head(example),
        "gradient_notes": gradients.gradient_notes(results[gradients.TABLE]),
        "rate_notes": findings.rate_notes(rates, refuted),
        "example_notes": findings.example_notes(example, refuted),
        "floor_notes": floors.floor_notes(results, refuted),
        "stage_notes": stage_notes(results),
        "claim_notes": findings.claim_notes(results[CLAIMS]),
        "rate": results.options("dp-pca-n"),
        "ordered": measures.ORDERED,
        "base": results.options("dp-pca-d")["n"],
    }


SECTION = Section(
    name="dp_pca",
    title="DP-PCA, as in its paper",
    parts=(Part("dp-pca", "DP-PCA, as in its paper", 310),),
    sizes=sizes(
        rate_sets=(2, 8, 20),  # data sets behind every point
        rate_single_sets=(1, 2, 5),  # where a step is taken for every row
        rate_rows=(
            (1e4, 3e4, 1e5),
            (1e4, 3e4, 1e5, 3e5, 1e6),
            (1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7),
        ),
        rate_base=(100_000, 200_000, 1_000_000),  # n, where another variable changes
        rate_lengths=((10, 40), (5, 10, 20, 40, 80), (5, 10, 20, 40, 80, 160)),
        rate_epsilons=((0.4, 0.8), (0.1, 0.2, 0.4, 0.8), (0.1, 0.2, 0.4, 0.8)),
        rate_spreads=(
            (0.001, 0.03),
            (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
            (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
        ),
        stage_rows=((1e4, 1e5), (1e4, 3e4, 1e5, 1e6), (1e4, 3e4, 1e5, 3e5, 1e6)),
        stage_spreads=((1e-3, 0.1), (1e-4, 1e-3, 0.01, 0.1), (1e-4, 1e-3, 0.01, 0.1)),
        stage_near=((1e-3,), (1e-4, 1e-3, 0.01, 0.1), (1e-4, 1e-3, 0.01, 0.1)),
        stage_base=(100_000, 100_000, 100_000),
        rate_floor_rows=((1e4, 1e5), (1e4, 1e5, 1e6), (1e4, 1e5, 1e6, 1e7)),
        rate_floor_sets=(4, 8, 40),
        rate_samples=(400, 4_000, 20_000),  # releases a side of an audit
    ),
    notes={
        (gradients.TABLE,): gradients.gradient_notes,
        (CLAIMS,): findings.claim_notes,
        tuple(STAGES): stage_lines,
    },
)
