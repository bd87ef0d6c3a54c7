r"""What is measured for theorems on descent on GLAD and on REAPER.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022.

Every repetition is a haystack of its own (`dpaudit.datasets.haystack`), and noise
is that of the corrected mechanisms, for a replaced row. N is the number of rows, D
their length, r that of the components, theta the largest angle to the inliers' span
V_*, and d_r^2 = 1 - cos theta.

**Theorem 1** (`pca_start_error`) is false as printed; what holds, and why, is at the
head of `dpaudit.reports.sections.robust.conditions`, with all conditions.

**Theorem 7** (`pca_start_error`) is about the paper's start, PCA with Wishart noise W:
||P_start - P_PCA|| <= 2 sqrt D ||W|| in print, with ||W|| = O(D log D/(N epsilon)). The
sin-Theta theorem (Theorem 6 of *Analyze Gauss*) does without sqrt D:
||W||/(gap - ||W||) for the gap of X^T X/N behind its r-th eigenvalue, and ||W|| is of
order D/(N epsilon) for D + 1 degrees of freedom.

**Theorems 2-4** (`constant_step_error`). With all steps s = c_1 a/T^nu and T large
enough, d_r^2 <= a: for one T the bound is proportional to s, the power -1 of 1/s.

**Theorem 5** (`restart_error`). After R runs of so many steps, each half as long as in
the run before, d_r^2 <= a/2^R. As x = 2^R that is the power -1.

**Corollary 8, Theorems 9 and 10** (`limit_error`) are at the privacy limit, T = c
(epsilon N)^2, where the noise on a mean does not shrink with N.

- GGD has R restarts there, R of order (epsilon N)^(2 - alpha), and d_r^2 = O(2^-R).
  Here alpha = 1: R is proportional to N, and so are the steps of a run. In N the error
  is below any power; in x = 2^R it is the power -1.
- For descent on REAPER the excess G(P) - min G is O(log(N/delta)/(epsilon N)). With
  S_REAP > 0 the distance d = (sum of squared angles)^(1/2) is at most
  (pi/2) excess/S_REAP (Theorem 14): of order 1/N, where (4.6) has d^2. That follows, in
  every draw, from Lemma 13: excess >= S_REAP ||Delta||_* for Delta = P - P_*. For the
  top-r subspace L of P has tr(P P_L) >= tr(P P_*), so ||sin Theta||_F^2 =
  tr(P_* (P_* - P_L)) <= tr(Delta (P_L - P_*)) <= ||Delta||_F sqrt 2 ||sin Theta||_F;
  ||Delta||_F <= ||Delta||_*/sqrt 2, as tr Delta = 0; and theta <= (pi/2) sin theta.
"""

from dataclasses import replace
from itertools import islice
from math import inf, log, log2, pi
from typing import Any

import numpy as np

from dpaudit.algorithms.robust.descent import NoisyDescent
from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.ggd import MinibatchGeodesicDescent
from dpaudit.algorithms.robust.initialisation import PublishedStart
from dpaudit.algorithms.shared.batches import WithReplacement
from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HalvingSteps,
    RootSteps,
    StepSizes,
)
from dpaudit.arrays import Array
from dpaudit.datasets import Dataset, haystack
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.reports.sections.robust.conditions import pca_error_bound, reaper_stability
from dpaudit.reports.sections.robust.measures import build_descent
from dpaudit.reports.sections.theorems.measures import random_bases
from dpaudit.subspace import principal_angles, projector_distance, top_components

SGGD = "sggd"


def pca_start_error(cell: Cell) -> list[Record]:
    """Return how far PCA is from the inliers, and the paper's private start from PCA.

    The point and the options give ``n``, ``d``, ``n_components``, ``inlier_share`` and
    ``epsilon``.

    Columns: ``repetition``; ``pca_error``, d_r^2 of PCA, and ``pca_error_bound``,
    Theorem 1's; ``start_error``, the distance of the projectors of the start and of
    PCA, and ``start_error_bound`` by the norm of the noise of the same draw;
    ``..._null``, the errors of a random subspace.
    """
    setting, rng = {**cell.options, **cell.point}, cell.rng()
    r, start = int(setting["n_components"]), PublishedStart(setting["epsilon"])
    found, random = [], _random(cell, setting)
    for i, data in enumerate(_haystacks(setting, cell.size, rng)):
        second, truth = data.rows.T @ data.rows, np.asarray(data.subspace)
        noisy = start.draw(data.rows, r, 1, rng=rng)["start"][0]
        norm = float(np.linalg.norm(noisy - second, 2))
        values = np.linalg.eigvalsh(second)
        left = float(values[-r] - values[-r - 1]) - norm
        pca, private = top_components(second, r), top_components(noisy, r)
        found.append(
            {
                "repetition": cell.first + i,
                "pca_error": float(squared_distance(pca, truth)),
                "pca_error_null": float(squared_distance(random[i], truth)),
                "pca_error_bound": pca_error_bound(data, r),
                "start_error": float(projector_distance(private, pca)),
                "start_error_null": float(projector_distance(random[i], pca)),
                "start_error_bound": norm / left if left > 0 else inf,
            }
        )
    return found


def constant_step_error(cell: Cell) -> list[Record]:
    """Return d_r^2 after T steps of length 1/``shortness``; see `restart_error`."""
    setting = {**cell.options, **cell.point}
    steps = ConstantSteps(1 / setting["shortness"])
    return _final(cell, setting, steps, setting["iterations"])


def restart_error(cell: Cell) -> list[Record]:
    """Return d_r^2 after R runs of ``steps``, the first ones of length 1.

    The point and the options give ``shrunk``, 2^R, ``n``, ``d``, ``n_components``,
    ``inlier_share``, ``epsilon``, ``delta``, and ``iterations``, the T for which the
    noise is made, of which these steps are the first.

    Columns: ``repetition``, ``error``, ``error_null``, that of a random subspace.
    """
    setting = {**cell.options, **cell.point}
    steps = int(setting["steps"])
    stop = steps * round(log2(setting["shrunk"]))
    return _final(cell, setting, HalvingSteps(period=steps), stop)


def limit_error(cell: Cell) -> list[Record]:
    """Return errors at the privacy limit, of GGD or of descent on REAPER.

    The point and the options give ``n_components``, ``inlier_share``, ``d``,
    ``epsilon``, ``delta``. For GGD also ``shrunk``, 2^R, ``rows_each`` and
    ``steps_each``: N = R ``rows_each``, and there are R runs of R ``steps_each`` steps.
    For REAPER also ``n`` and ``pace``: T = ``pace`` (epsilon N)^2, and the steps are
    1/sqrt(k), as long as the width of what is searched, over the length of a gradient.

    Columns: ``repetition``, and of GGD ``error``, d_r^2; of REAPER ``excess``, G(P) -
    G(P_*), ``distance``, d, and ``distance_bound``, by the excess of the same draw;
    ``formula``, log(N/delta)/N. ``..._null``: of a random subspace; for the excess of
    (r/D) I, which is better.
    """
    setting = {**cell.options, **cell.point}
    if "shrunk" in setting:
        runs = round(log2(setting["shrunk"]))
        setting["n"] = runs * int(setting["rows_each"])
        steps = runs * int(setting["steps_each"])
        setting["iterations"] = runs * steps
        return _final(cell, setting, HalvingSteps(period=steps), runs * steps)
    n, r = int(setting["n"]), int(setting["n_components"])
    setting["iterations"] = round(setting["pace"] * (setting["epsilon"] * n) ** 2)
    rng = cell.rng()
    data = _haystacks(setting, cell.size, rng)
    descent = _built(cell.mechanism, setting, RootSteps(1.0))
    points = _after(descent, data, setting["iterations"], rng)
    bases = descent.objective.bases(points, r)
    found, random = [], _random(cell, setting)
    for i, (own, point, basis) in enumerate(zip(data, points, bases, strict=True)):
        truth = np.asarray(own.subspace)
        best = _mean_distance(own.rows, truth @ truth.T)
        excess = _mean_distance(own.rows, point) - best
        blind = _mean_distance(own.rows, r / len(truth) * np.eye(len(truth))) - best
        stability = reaper_stability(own)
        found.append(
            {
                "repetition": cell.first + i,
                "excess": excess,
                "excess_null": blind,
                "distance": float(np.linalg.norm(principal_angles(basis, truth))),
                "distance_null": float(
                    np.linalg.norm(principal_angles(random[i], truth))
                ),
                "distance_bound": pi / 2 * excess / stability if stability > 0 else inf,
                "formula": log(n / setting["delta"]) / n,
            }
        )
    return found


def _final(
    cell: Cell, setting: dict[str, Any], steps: StepSizes, stop: int
) -> list[Record]:
    """Return d_r^2 after `stop` steps of a descent on GLAD."""
    rng = cell.rng()
    data = _haystacks(setting, cell.size, rng)
    descent = _built(cell.mechanism, setting, steps)
    truths = np.stack([np.asarray(each.subspace) for each in data])
    return repeated(
        cell,
        error=squared_distance(_after(descent, data, stop, rng), truths),
        error_null=squared_distance(_random(cell, setting), truths),
    )


def _random(cell: Cell, setting: dict[str, Any]) -> Array:
    """Return a random subspace for each repetition."""
    size = int(setting["d"]), int(setting["n_components"])
    return random_bases(cell.size, *size, cell.rng(1))


def _built(name: str, setting: dict[str, Any], steps: StepSizes) -> NoisyDescent:
    if name == SGGD:
        return MinibatchGeodesicDescent(
            n_components=int(setting["n_components"]),
            batches=WithReplacement.as_published(
                setting["epsilon"], int(setting["iterations"])
            ),
            iterations=int(setting["iterations"]),
            step_sizes=steps,
        )
    return replace(
        build_descent(name, {**setting, "rows": setting["n"]}), step_sizes=steps
    )


def _after(
    descent: NoisyDescent, data: list[Dataset], stop: int, rng: np.random.Generator
) -> Array:
    """Return what runs on these data, side by side, have after `stop` steps."""
    path = descent.iterates([each.rows for each in data], rng=rng)
    return next(islice(path, int(stop), None))


def _haystacks(
    setting: dict[str, Any], size: int, rng: np.random.Generator
) -> list[Dataset]:
    return [
        haystack(
            int(setting["n"]),
            int(setting["d"]),
            int(setting["n_components"]),
            inlier_share=setting["inlier_share"],
            rng=rng,
        )
        for _ in range(size)
    ]


def _mean_distance(rows: Array, matrix: Array) -> float:
    """Return G(P)."""
    return float(np.linalg.norm(rows - rows @ matrix, axis=1).mean())
