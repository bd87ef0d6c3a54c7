r"""Whether haystacks meet the conditions of the theorems on robust PCA, and Theorem 6.

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
sqrt(n_out) ||X_out||/N, the paper's bound, so what is returned is a lower bound. Of
batches (`batch_stability`) the mean must be positive, (3.2), and (3.3) bounds it by the
means of the two terms, with sqrt(n_out) ||X_out|| in print: without the 1/B of a mean.

**Theorem 10** (`reaper_stability`) needs S_REAP = P_REAP/(4 sqrt r) - A_REAP > 0, where
P_REAP = inf over unit u in V_* of (1/N) sum_in |u^T x| and A_REAP =
(1/N) ||X_out|| ||normalised Q_* X_out||. u -> sum |u^T x| is linear between the
hyperplanes x^T u = 0, hence concave along arcs of the unit sphere, so for r = 2 a
minimum lies where u is orthogonal to an inlier; for r = 1 there is nothing to choose.

Theorem 6: there are c_1 and c_2 such that for epsilon < c_1 (B/N)^2 T noise of
variance sigma^2 = c_2 (B/N)^2 T log(1/delta)/(epsilon^2 N^2) on the mean of a batch is
(epsilon, delta)-DP.

**No constant does.** Fix B and let T = t (N/B)^2 with t > epsilon/c_1, so that the
condition on epsilon is met for all N. Then sigma is sqrt(c_2 t log(1/delta)) over
epsilon N, while the mean of a batch moves by 2/B in each step that the row is in. Their
ratio,

.. math:: \frac{\sigma B}{2} = \frac{\sqrt{c_2 t \log(1/\delta)}}{2 \epsilon}
   \cdot \frac{B}{N},

falls to 0 as N/B grows, whatever c_2 is, and a row is in some of N/B steps with
probability 1 - (1 - 1/N)^N > 0.63 (B draws a step with replacement). So the loss of
these steps alone is above any epsilon with a probability near 0.63 in the end.

Measured with t = 1 are the first N/B of the T steps, which are part of what whoever
watches the run sees. The start is a random subspace, which tells nothing of the rows,
so that the steps alone are held to the claim.
"""

from dataclasses import replace
from math import asin, cos, nan, sqrt

import numpy as np

from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.initialisation import PublicStart
from dpaudit.algorithms.robust.pairs import odd_pair
from dpaudit.algorithms.robust.parts import PublishedNoise
from dpaudit.algorithms.robust.private_mechanisms import PrivateSGGD
from dpaudit.arrays import Array
from dpaudit.audit import audit
from dpaudit.datasets import Dataset
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.sections.robust.measures import cell_setting, haystacks
from dpaudit.subspace import top_components


def conditions(cell: Cell) -> list[Record]:
    """Return what the theorems ask of haystacks, and how far PCA is off there.

    Columns: ``repetition``; ``pca_error``, d_r^2 of PCA, and ``pca_error_bound``, by
    Theorem 1 corrected, NaN if it says nothing; ``stability``, a lower bound of S_rho
    for the rho that a start at that bound needs; ``reaper_stability``, S_REAP;
    ``batch_stability`` and ``batch_stability_printed``, see `batch_stability`.
    """
    setting = cell_setting(cell)
    r, found, rng = int(setting["n_components"]), [], cell.rng(1)
    for first, several in haystacks(cell, setting):
        for i, data in enumerate(several, first):
            bound = pca_error_bound(data, r)
            own, printed = batch_stability(data, r, 2 * bound, rng)
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
                    "batch_stability": own,
                    "batch_stability_printed": printed,
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
    good, harm = _terms(sides(data), n_components, rho)
    return (good - harm) / len(data.rows)


def batch_stability(
    data: Dataset, n_components: int, rho: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return what S_rho of a batch is at least, on average; and by (3.3) as printed.

    Of `BATCHES` batches of `BATCH_ROWS` rows, drawn with replacement.
    """
    inlying, found = np.asarray(data.labels) == 1, []
    for _ in range(BATCHES):
        chosen = rng.integers(len(data.rows), size=BATCH_ROWS)
        rows, inner = data.rows[chosen], inlying[chosen]
        good, harm = _terms((rows[inner], rows[~inner]), n_components, rho)
        found.append(((good - harm) / BATCH_ROWS, good / BATCH_ROWS - harm))
    own, printed = np.mean(found, axis=0)
    return float(own), float(printed)


def _terms(
    sides: tuple[Array, Array], n_components: int, rho: float
) -> tuple[float, float]:
    """Return N (1 - rho) P, and what N A is at most."""
    inliers, outliers = sides
    harm = sqrt(len(outliers)) * float(np.linalg.norm(outliers, 2))
    return (1 - rho) * _spread(inliers, n_components), harm


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


_BATCH = 5
BATCH_ROWS, BATCHES = 64, 50


def audited_constants(cell: Cell) -> list[Record]:
    """Audit the transcripts of dp-sggd with noise for another constant.

    The point and the options give ``constant`` (c_2), ``ratio`` (N/B), ``epsilon``,
    ``delta``, ``confidence`` and ``max_samples``.

    One record: ``noise``, the deviation in units of what a row moves; ``verdict``,
    ``samples`` and ``samples_to_refute`` (NaN where the claim stands).
    """
    setting = {**cell.options, **cell.point}
    ratio = int(setting["ratio"])
    rows = _BATCH * ratio
    printed = PrivateSGGD.as_published(
        setting["epsilon"],
        setting["delta"],
        iterations=ratio**2,
        batch_size=_BATCH,
        start=PublicStart(),
    )
    assert isinstance(printed.noise, PublishedNoise)
    unit = sqrt(setting["constant"]) * printed.noise.unit
    mechanism = replace(printed, noise=PublishedNoise(unit), iterations=ratio)
    result = audit(
        mechanism,
        pair=odd_pair(1, None, count=rows - 1),
        layer="transcript",
        confidence=setting["confidence"],
        budget=setting["max_samples"],
        seed=cell.seed,
    )
    refuted_at = result.refuted_at
    return [
        {
            "noise": mechanism.noise_scale(rows) / 2,
            "verdict": result.verdict.value,
            "samples": result.samples,
            "samples_to_refute": nan if refuted_at is None else refuted_at,
        }
    ]
