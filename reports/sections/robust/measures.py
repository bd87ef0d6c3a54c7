"""How well robust PCA finds a subspace among outliers: what is measured.

Source of the experiments: Maunu, Yu, Lerman, *Stochastic and private nonconvex
outlier-robust PCA*, MSML 2022, section 5 and appendix C. Every repetition is a haystack
of its own (inliers on a random subspace of dimension r, normal outliers everywhere, all
spherised), and the runs of a cell go side by side. The error of a subspace is that of
the paper, d^2 = 1 - cos(largest principal angle).

Descent on REAPER releases the average of its iterates, so what is measured after k
steps is the top-r subspace of the average so far.

Source: Maunu, Yu, Lerman, MSML 2022, section 5.2, appendix C.2 and Figures 3, 10. The
data are `stylised_genotypes`, with alleles coded as -1, 0, 1: people on a map and
people who are not. What is drawn are the people on the map in the two coordinates that
a mechanism finds. Descents on GLAD take N steps, those on REAPER 100, as in the paper.
Those on GLAD start from a private power method, which needs no D x D matrix, in place
of the paper's Wishart mechanism.

A subspace has no axes, so the coordinates are taken through the linear map that brings
them nearest to the truth, in least squares; `fit` is the share of the truth's squares
that they explain (R^2). That looks at the truth, and is for the reader's eye only. The
truth are coordinates in the subspace from which the alleles were rounded.
"""

import inspect
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import isnan, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.algorithms import FastMedianSubspace, GeodesicDescent, PowerMethod, entry
from dpaudit.algorithms.robust.descent import NoisyDescent
from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.initialisation import PowerStart
from dpaudit.algorithms.robust.objectives import spherise
from dpaudit.arrays import Array
from dpaudit.datasets import Dataset, haystack, stylised_genotypes
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record, declarations
from dpaudit.reports.measures import BASELINE

__all__ = ["build_descent"]

_REAPERS = ("dp-sgd-reap", "dp-smd-reap", "dp-gd-reap", "dp-md-reap")
CORRECTED = ("dp-sggd", "dp-ggd", *_REAPERS)
PUBLISHED = tuple(f"{name}-published" for name in CORRECTED)
NOISELESS = "ggd"
TOLERANCE = 1e-2
"""The paper's: an error up to here is a success."""

_POINTS = 60  # of a curve
_WORK = 2**23  # entries of the rows of the runs that go side by side, if all do
_NEAR = 2**19  # or else: of rows that a processor keeps at hand


def recovery_paths(cell: Cell) -> list[Record]:
    """Return the error after some of the steps of every run.

    The point and the options give ``epsilon``, ``delta`` (1/sqrt N by default),
    ``rows`` (N), ``dimension``, ``n_components``, ``inlier_share`` and
    ``steps_per_row`` (T/N, 1 by default).

    Columns: ``repetition``, ``iteration``, ``error``, and ``seconds``: of one core,
    until there, for one run of those that go side by side.
    """
    setting = cell_setting(cell)
    kept = np.geomspace(1, setting["iterations"], _POINTS)
    return [
        {"repetition": i, "iteration": step, "error": float(error), "seconds": seconds}
        for first, step, errors, clock in _errors(cell, setting, kept)
        for seconds in (clock(),)
        for i, error in enumerate(errors, first)
    ]


def recovery(cell: Cell) -> list[Record]:
    """Return the error of the last iterate, and when `TOLERANCE` was reached.

    The point and the options are those of `recovery_paths`, and ``batch_size``.

    Columns: ``repetition``, ``error``; ``reached``: the first of some 60 steps with an
    error up to the tolerance, NaN if there was none; ``seconds`` of the run, of one
    core, and ``seconds_reached`` until that step.
    """
    setting = cell_setting(cell)
    kept = np.linspace(1, setting["iterations"], _POINTS)
    found: dict[int, Record] = {}
    for first, step, errors, clock in _errors(cell, setting, kept):
        last = step == setting["iterations"]
        for i, error in enumerate(errors.tolist(), first):
            new = {"repetition": i, "reached": nan, "error": nan, "seconds": nan}
            one = found.setdefault(i, {**new, "seconds_reached": nan})
            one["error"] = error
            if isnan(one["reached"]) and error <= TOLERANCE:
                one |= {"reached": float(step), "seconds_reached": clock()}
            if last:
                one["seconds"] = clock()
    return list(found.values())


def build_descent(name: str, setting: dict[str, Any]) -> NoisyDescent:
    """Return a mechanism of the robust family with the paper's parameters.

    ``setting``: see `recovery_paths`; also a ``start``, if another one is wanted.
    """
    options: dict[str, Any] = {
        "n_components": int(setting["n_components"]),
        "iterations": int(setting["iterations"]),
    }
    if name == NOISELESS:
        return GeodesicDescent(**options)
    constructor = entry(name).constructor
    accepted = inspect.signature(constructor).parameters
    for optional, kind in (("rows", int), ("batch_size", int), ("start", None)):
        if optional in accepted and optional in setting:
            value = setting[optional]
            options[optional] = value if kind is None else kind(value)
    made = constructor(setting["epsilon"], setting["delta"], **options)
    assert isinstance(made, NoisyDescent)
    return made


def cell_setting(cell: Cell) -> dict[str, Any]:
    """Return the point and the options, with delta and T, ``iterations``."""
    setting = {**cell.options, **cell.point}
    rows = int(setting["rows"])
    setting.setdefault("delta", 1 / sqrt(rows))
    setting["iterations"] = round(rows * setting.get("steps_per_row", 1.0))
    return setting


def haystacks(
    cell: Cell, setting: dict[str, Any], work: int = _WORK
) -> Iterator[tuple[int, list[Dataset]]]:
    """Yield the number of the first run, and the data of some that go side by side.

    All of them if they have `work` entries at most, and else few.
    """
    n, d = int(setting["rows"]), int(setting["dimension"])
    fit = n * d * cell.size <= work
    width = cell.size if fit else max(1, min(work, _NEAR) // (n * d))
    for offset in range(0, cell.size, width):
        drawn = [
            haystack(
                n,
                d,
                int(setting["n_components"]),
                inlier_share=setting["inlier_share"],
                rng=np.random.default_rng([*cell.key, cell.seed, cell.first + i]),
            )
            for i in range(offset, min(offset + width, cell.size))
        ]
        yield cell.first + offset, drawn


def _errors(
    cell: Cell, setting: dict[str, Any], kept: Array
) -> Iterator[tuple[int, int, Array, Callable[[], float]]]:
    """Yield the errors of runs that go side by side after the steps that are kept.

    Before them the number of the first run, and the step; after them what says the
    seconds until there, for one run. It is asked only where they are wanted: on some
    machines a look at the processor's clock takes as long as a step.
    """
    steps, rng = {round(step) for step in kept}, cell.rng()
    for first, several in haystacks(cell, setting):
        truth = np.stack([np.asarray(each.subspace) for each in several])
        data = [each.rows for each in several]
        descent = build_descent(cell.mechanism, setting)
        clock = partial(_seconds_since, time.process_time(), len(data))
        for step, latest in enumerate(descent.iterates(data, rng=rng)):
            if step in steps:
                bases = descent.objective.bases(latest, descent.n_components)
                yield first, step, squared_distance(bases, truth), clock


def _seconds_since(start: float, runs: int) -> float:
    """Return the seconds of one core since then, for one of so many runs."""
    return (time.process_time() - start) / runs


INLIERS_ONLY, FMS, POWER = "inliers-only-pca", "fms", "power-method"
_DECLARED = declarations(Path(__file__).with_name("experiments.toml"))
PRINTED_SECONDS = _DECLARED["printed_seconds"]
REAPER_STEPS = 100

_COMPONENTS = 2
_START_SHARE = 0.2
_RELATION = Relation.REPLACE_ONE  # of the paper's claims


def genotype_map(cell: Cell) -> list[Record]:
    """Return where a mechanism puts the people of the map.

    The point and the options give ``epsilon``, ``inliers``, ``outliers`` and
    ``dimension``; delta is 1/sqrt N, and descent takes N steps, as in the paper. Its
    start is the noisy power method, which holds no D x D matrix.

    For each of them ``east`` and ``north`` in truth, ``x`` and ``y`` as found, and, the
    same for all, ``fit``, ``error`` (d^2 from the true subspace) and ``seconds``, of
    one core.
    """
    setting = {**cell.options, **cell.point}
    data = stylised_genotypes(
        int(setting["inliers"]),
        int(setting["outliers"]),
        int(setting["dimension"]),
        centred=True,
        rng=np.random.default_rng([cell.seed, 1]),
    )
    find = _finding(cell, len(data.rows), setting["epsilon"])
    seen = data.rows
    if cell.mechanism == INLIERS_ONLY:
        seen = seen[np.asarray(data.labels) == 1]
    start = time.process_time()
    basis = find(spherise(seen))
    seconds = time.process_time() - start
    people = spherise(data.rows[np.asarray(data.labels) == 1])
    subspace = np.asarray(data.subspace)
    truth, found = people @ subspace, people @ basis
    fitted = found @ np.linalg.lstsq(found, truth, rcond=None)[0]
    shared = {
        "fit": 1 - float(np.sum((truth - fitted) ** 2) / np.sum(truth**2)),
        "error": float(squared_distance(basis, subspace)),
        "seconds": seconds,
    }
    return [
        {"east": east, "north": north, "x": x, "y": y, **shared}
        for (east, north), (x, y) in zip(truth.tolist(), fitted.tolist(), strict=True)
    ]


def _finding(cell: Cell, count: int, epsilon: float) -> Callable[[Array], Array]:
    """Return what finds a basis, shape (D, 2), in so many spherised rows."""
    name, delta = cell.mechanism, 1 / sqrt(count)
    if name in (BASELINE, INLIERS_ONLY):
        return lambda rows: np.asarray(
            np.linalg.svd(rows, full_matrices=False).Vh[:_COMPONENTS].T
        )
    if name == FMS:
        made: Any = FastMedianSubspace(n_components=_COMPONENTS, iterations=20)
    elif name == POWER:
        made = PowerMethod.calibrated(
            epsilon, delta, n_components=_COMPONENTS, relation=_RELATION
        )
    else:
        mu = sqrt(_START_SHARE) * gaussian_mu(epsilon, delta)
        setting = {
            "epsilon": epsilon,
            "delta": delta,
            "rows": count,
            "n_components": _COMPONENTS,
            "iterations": REAPER_STEPS if "reap" in name else count,
            "start": PowerStart(mu, _RELATION),
        }
        made = build_descent(name, setting)
    return lambda rows: np.asarray(made.release(rows, rng=cell.rng()))
