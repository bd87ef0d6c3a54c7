"""Maps from genotypes: what robust PCA sees of where people are from.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 5.2 and Figures 3, 10. The data are `stylised_genotypes`, with alleles
coded as -1, 0, 1: 1387 people on a map and 1000 who are not. What is drawn are the
people on the map in the two coordinates that a mechanism finds.

A subspace has no axes, so the coordinates are taken through the linear map that brings
them nearest to the truth, in least squares; `fit` is the share of the truth's squares
that they explain (R^2). That looks at the truth, and is for the reader's eye only. The
truth are coordinates in the subspace from which the alleles were rounded.
"""

import time
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms import FastMedianSubspace, PowerMethod
from dpaudit.algorithms.robust.glad import spherise
from dpaudit.algorithms.robust.initialisation import PowerStart
from dpaudit.algorithms.robust.stability import squared_distance
from dpaudit.datasets import Dataset, stylised_genotypes
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.recovery import build_descent

__all__ = ["INLIERS_ONLY", "MAPS", "genotype_map"]

Array = NDArray[np.float64]

INLIERS_ONLY, FMS, POWER = "inliers-only-pca", "fms", "power-method"
MAPS = (
    INLIERS_ONLY,
    BASELINE,
    FMS,
    POWER,
    "dp-sggd-published",
    "dp-sggd",
    "dp-ggd",
)
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
    start = time.process_time()
    basis = _basis(cell, data, setting["epsilon"])
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


def _basis(cell: Cell, data: Dataset, epsilon: float) -> Array:
    """Return what the mechanism finds, shape (D, 2)."""
    rows = spherise(data.rows)
    if cell.mechanism in (BASELINE, INLIERS_ONLY):
        inlying = np.asarray(data.labels) == 1
        seen = rows if cell.mechanism == BASELINE else rows[inlying]
        return np.asarray(np.linalg.svd(seen, full_matrices=False).Vh[:_COMPONENTS].T)
    delta = 1 / sqrt(len(rows))
    if cell.mechanism == FMS:
        made: Any = FastMedianSubspace(n_components=_COMPONENTS, iterations=20)
    elif cell.mechanism == POWER:
        made = PowerMethod.calibrated(
            epsilon, delta, n_components=_COMPONENTS, relation=_RELATION
        )
    else:
        mu = sqrt(_START_SHARE) * gaussian_mu(epsilon, delta)
        setting = {
            "epsilon": epsilon,
            "delta": delta,
            "rows": len(rows),
            "n_components": _COMPONENTS,
            "iterations": len(rows),
            "start": PowerStart(mu, _RELATION),
        }
        made = build_descent(cell.mechanism, setting)
    return np.asarray(made.release(rows, rng=cell.rng()))
