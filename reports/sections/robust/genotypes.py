"""Maps from genotypes: where mechanisms put people, and how long that takes.

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

import time
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from dpaudit.algorithms import FastMedianSubspace, PowerMethod
from dpaudit.algorithms.robust.glad import spherise
from dpaudit.algorithms.robust.grassmannian import squared_distance
from dpaudit.algorithms.robust.initialisation import PowerStart
from dpaudit.arrays import Array
from dpaudit.datasets import stylised_genotypes
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections.robust.measures import PAIRED, build_descent

__all__ = ["MAPS", "PRINTED_SECONDS", "REAPER_MAPS", "REAPER_STEPS", "genotype_map"]

INLIERS_ONLY, FMS, POWER = "inliers-only-pca", "fms", "power-method"
ON_GLAD = tuple(name for name in PAIRED if "ggd" in name)
MAPS = (INLIERS_ONLY, BASELINE, FMS, POWER, *ON_GLAD)
REAPER_MAPS = tuple(name for name in PAIRED if name not in ON_GLAD)
PRINTED_SECONDS = {
    "dp-sggd": 124,
    "dp-ggd": 679,
    "dp-sgd-reap": 35_125,
    "dp-smd-reap": 5_471,
    "dp-gd-reap": 36_027,
    "dp-md-reap": 5_684,
}
"""Of the paper, D = 10,000; dp-(S)GGD on a PC, the others on 24 processors."""

REAPER_STEPS = 100

_COMPONENTS = 2
_START_SHARE = 0.2
_RELATION = Relation.REPLACE_ONE  # of the paper's claims


def genotype_map(cell: Cell) -> list[Record]:
    """Return where a mechanism puts the people of the map.

    The point and the options give ``epsilon``, ``inliers``, ``outliers`` and
    ``dimension``; delta is 1/sqrt N, and descent takes N steps, as in the paper. Its
    start is the noisy power method, which holds no D x D matrix.

    Returns
    -------
    list of dict
        For each of them ``east`` and ``north`` in truth, ``x`` and ``y`` as found, and,
        the same for all, ``fit``, ``error`` (d^2 from the true subspace) and
        ``seconds``, of one core.
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
        return _principal
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
            "iterations": REAPER_STEPS if name in REAPER_MAPS else count,
            "start": PowerStart(mu, _RELATION),
        }
        made = build_descent(name, setting)
    return lambda rows: np.asarray(made.release(rows, rng=cell.rng()))


def _principal(rows: Array) -> Array:
    return np.asarray(np.linalg.svd(rows, full_matrices=False).Vh[:_COMPONENTS].T)
