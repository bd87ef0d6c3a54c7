r"""Whether haystacks meet the conditions of the theorems on robust PCA.

Source: Maunu, Yu, Lerman, MSML 2022: Theorem 1 (3.1), section 3.2 (S_rho) and (4.3) to
(4.5) (S_REAP), for rows on the sphere. N is the number of rows, r that of the
components, V_* the inliers' subspace, and d_r^2 = 1 - cos of the largest angle to it.

**Theorem 1, corrected** (`pca_error_bound`). With C the largest eigenvalue of
X_out^T X_out and lambda the r-th of X_in^T X_in, the print has: 2 sin(gamma) lambda > C
implies theta(PCA) < gamma. That is false: in the plane, for lambda e_1 e_1^T + C b b^T
with b at the angle phi from e_1 and cos(2 phi) = -C/lambda, the top eigenvector is off
by exactly theta = arcsin(C/lambda)/2, which for C = 0.99 lambda is 41 degrees, while
2 sin(gamma) lambda > C from gamma = 30 degrees on. What holds is
sin(2 gamma) lambda > C, gamma <= 45 degrees. For E = X_out^T X_out - (C/2) I has the
norm C/2 at most, and lambda is a gap of X_in^T X_in. So for 0 <= t <= 1 the top r
eigenvalues of X_in^T X_in + t E are apart from the others, theta goes up from 0
without a jump, and sin(2 theta) <= 2 t (C/2)/lambda < 1 (Davis, Kahan 1970, sin 2
Theta) keeps it below 45 degrees. Hence d_r^2 <= 1 - cos(arcsin(C/lambda)/2), with no O.
(sqrt 2 in place of the 2 would be right, too: sqrt 2 sin(gamma) <= sin(2 gamma) up to
45 degrees.)

**Theorems 2-5** (`stability_bound`) need S_rho = (1 - rho) P - A > 0 for a start within
rho/2, with P = lambda_r((1/N) sum_in x x^T/||x||) and A the largest
sigma_1((1/N) sum_out Q x x^T V/||Q x||) over V. By Cauchy-Schwarz A is at most
sqrt(n_out) ||X_out||/N, the paper's bound, so what is returned is a lower bound.

**Theorem 10** (`reaper_stability`) needs S_REAP = P_REAP/(4 sqrt r) - A_REAP > 0, where
P_REAP = inf over unit u in V_* of (1/N) sum_in |u^T x| and A_REAP =
(1/N) ||X_out|| ||normalised Q_* X_out||. u -> sum |u^T x| is linear between the
hyperplanes x^T u = 0, hence concave along arcs of the unit sphere, so for r = 2 a
minimum lies where u is orthogonal to an inlier; for r = 1 there is nothing to choose.
"""

from math import asin, cos, nan, sqrt

import numpy as np

from dpaudit.algorithms.robust.grassmannian import squared_distance
from dpaudit.arrays import Array
from dpaudit.datasets import Dataset
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.sections.robust.measures import cell_setting, haystacks
from dpaudit.subspace import top_components

__all__ = ["conditions", "pca_error_bound", "reaper_stability"]


def conditions(cell: Cell) -> list[Record]:
    """Return what the theorems ask of haystacks, and how far PCA is off there.

    Returns
    -------
    list of dict
        ``repetition``; ``pca_error``, d_r^2 of PCA, and ``pca_error_bound``, by Theorem
        1 corrected, NaN if it says nothing; ``stability``, a lower bound of S_rho for
        the rho that a start at that bound needs; ``reaper_stability``, S_REAP.
    """
    setting = cell_setting(cell)
    r, found = int(setting["n_components"]), []
    for first, several in haystacks(cell, setting):
        for i, data in enumerate(several, first):
            bound = pca_error_bound(data, r)
            pca = top_components(data.rows.T @ data.rows, r)
            found.append(
                {
                    "repetition": i,
                    "pca_error": float(
                        squared_distance(pca, np.asarray(data.subspace))
                    ),
                    "pca_error_bound": bound,
                    "stability": stability_bound(data, r, 2 * bound),
                    "reaper_stability": reaper_stability(data),
                }
            )
    return found


def pca_error_bound(data: Dataset, n_components: int) -> float:
    """Return what d_r^2 of PCA is at most; NaN if C >= lambda."""
    inliers, outliers = sides(data)
    share = float(np.linalg.norm(outliers, 2) ** 2 / _spread(inliers, n_components))
    return 1 - cos(asin(share) / 2) if share < 1 else nan


def stability_bound(data: Dataset, n_components: int, rho: float) -> float:
    """Return a number that S_rho is at least."""
    inliers, outliers = sides(data)
    harm = sqrt(len(outliers)) * float(np.linalg.norm(outliers, 2))
    return ((1 - rho) * _spread(inliers, n_components) - harm) / len(data.rows)


def reaper_stability(data: Dataset) -> float:
    """Return S_REAP, for r = 1 or 2."""
    inliers, outliers = sides(data)
    truth = np.asarray(data.subspace)
    r = truth.shape[1]
    if r > 2:
        raise InputError(f"the subspace must be of dimension 1 or 2, got {r}")
    off = outliers - outliers @ truth @ truth.T
    off /= np.linalg.norm(off, axis=1, keepdims=True)
    harm = float(np.linalg.norm(outliers, 2) * np.linalg.norm(off, 2))
    inner = inliers @ truth
    across = inner[:, ::-1] * [-1.0, 1.0] if r == 2 else np.ones((1, 1))
    across = across / np.linalg.norm(across, axis=1, keepdims=True)
    spread = float(np.abs(across @ inner.T).sum(axis=1).min())
    return (spread / (4 * sqrt(r)) - harm) / len(data.rows)


def sides(data: Dataset) -> tuple[Array, Array]:
    """Return inliers and outliers."""
    inlying = np.asarray(data.labels) == 1
    return data.rows[inlying], data.rows[~inlying]


def _spread(rows: Array, place: int) -> float:
    """Return the place-th largest eigenvalue of X^T X."""
    return float(np.linalg.svd(rows, compute_uv=False)[place - 1] ** 2)
