r"""When descent finds the inliers' subspace: stability, permeance, alignment.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022: (3.1), section 3.2 and (3.3); for REAPER, (4.3)-(4.5), from Lerman, McCoy, Tropp,
Zhang, *Robust computation of linear models by convex relaxation*, FoCM 2015. With N
rows in all, inliers in the span L_* of V_*, and rho in (0, 1):

- S^PCA_rho = 2 sin(arccos(1 - rho)) lambda_r(X_in X_in^T) - ||X_out||^2 (sums, as
  printed). Theorem 1: where it is positive, PCA is within rho of L_*. That is false in
  general (reports/sections/robust/stability.py), and holds with (1 - rho) times the
  sine, up to 45 degrees; on haystacks the difference does not show.
- S_rho = (1 - rho) P - A, permeance P = lambda_r((1/N) sum_in x x^T/||x||), alignment
  A = max over V of sigma_1((1/N) sum_out Q x x^T V/||Q x||). Theorems 2-5 need it > 0.
- S_REAP = P_REAP/(4 sqrt r) - A_REAP, P_REAP = inf over unit u in L_* of
  (1/N) sum_in |u^T x|, A_REAP = (1/N) ||X_out|| ||normalised Q_* X_out||.

Two of these are optimisation problems without a closed form.

*Alignment.* By Cauchy-Schwarz over the outliers, for unit a, b: |sum (a^T Q x/||Q x||)
(x^T V b)| <= (sum (a^T u_x)^2)^(1/2) (sum (x^T V b)^2)^(1/2) <= sqrt(n_out) ||X_out||,
the paper's bound; `alignment_bounds` has that above, and below the best of a search.

*Permeance of REAPER.* u -> sum |u^T x| is, between the hyperplanes x^T u = 0, linear,
hence concave along arcs of the unit sphere where it is positive; so a minimum lies
where u is orthogonal to r - 1 independent rows. For r = 1 there is nothing to choose,
for r = 2 all candidates are tried and the value is exact. For r > 2 it is bracketed: at
least by the mean of (u^T x)^2/||x||, at most by the best candidate of a sample.
"""

from math import comb, sqrt

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.glad import spherise, term_sum
from dpaudit.algorithms.robust.grassmannian import polar
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.stacks import check_basis
from dpaudit.validation import check_count, check_fraction

__all__ = [
    "alignment_bounds",
    "expected_minibatch_stability",
    "pca_stability",
    "permeance",
    "reaper_alignment",
    "reaper_permeance_bounds",
    "reaper_stability_bounds",
    "stability_bounds",
]

_MOST_CANDIDATES = 200_000


def pca_stability(
    inliers: ArrayLike, outliers: ArrayLike, *, n_components: int, rho: float
) -> float:
    """Return S^PCA_rho of spherised rows.

    Parameters
    ----------
    inliers, outliers : array_like, shape (n, D)
        Either may have no rows.
    n_components : int
        r.
    rho : float
        In (0, 1).

    Examples
    --------
    >>> round(pca_stability([[1, 0], [2, 0]], [[0, 3]], n_components=1, rho=0.5), 3)
    2.464
    """
    inside, outside = _spherised(inliers, outliers)
    rho = check_fraction("rho", rho)
    # sin(arccos(1 - rho))
    slope = 2 * sqrt(rho * (2 - rho))
    spread = _eigenvalue(inside, n_components)
    return slope * spread - float(
        np.linalg.norm(outside, 2) ** 2 if outside.size else 0
    )


def permeance(
    inliers: ArrayLike, *, n_components: int, total: int | None = None
) -> float:
    """Return P = lambda_r((1/N) sum x x^T/||x||) of spherised inliers.

    Parameters
    ----------
    inliers : array_like, shape (n, D)
    n_components : int
        r.
    total : int, optional
        N. Default: n.

    Examples
    --------
    >>> permeance([[1.0, 0.0], [0.0, 2.0]], n_components=2)
    0.5
    """
    inside = spherise(inliers)
    count = check_count("total", len(inside) if total is None else total)
    return _eigenvalue(inside, n_components) / count


def alignment_bounds(
    outliers: ArrayLike,
    *,
    n_components: int,
    total: int | None = None,
    starts: int = 20,
    steps: int = 50,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return a lower and an upper bound of A, of spherised outliers.

    Parameters
    ----------
    outliers : array_like, shape (n, D)
        May have no rows.
    n_components : int
        r < D.
    total : int, optional
        N. Default: n.
    starts, steps : int
        The lower bound is the best of so many random walks of so many steps, ever
        shorter ones, each of which is taken only if it leads up.
    rng : numpy.random.Generator
    """
    outside = spherise(outliers, min_rows=0)
    d = outside.shape[1]
    r = check_count("n_components", n_components, maximum=d - 1)
    count = check_count("total", max(len(outside), 1) if total is None else total)
    if not len(outside):
        return 0.0, 0.0
    spectral = float(np.linalg.norm(outside, 2))
    upper = min(sqrt(len(outside)) * spectral, float(len(outside))) / count
    bases = polar(rng.standard_normal((check_count("starts", starts), d, r)))
    best = _spectral_norms(outside, bases)
    for step in range(check_count("steps", steps, minimum=0)):
        moves = rng.standard_normal(bases.shape) / (1 + step)
        tried = polar(bases + moves)
        reached = _spectral_norms(outside, tried)
        better = reached > best
        bases[better], best[better] = tried[better], reached[better]
    lower = float(best.max()) / count
    return min(lower, upper), upper


def stability_bounds(
    inliers: ArrayLike,
    outliers: ArrayLike,
    *,
    n_components: int,
    rho: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return a lower and an upper bound of S_rho of spherised rows.

    The lower one being positive is what the theorems need.

    Parameters
    ----------
    inliers, outliers : array_like, shape (n, D)
        The outliers may have no rows.
    n_components : int
        r.
    rho : float
        In (0, 1).
    rng : numpy.random.Generator
        For the search of `alignment_bounds`.
    """
    inside, outside = _spherised(inliers, outliers)
    total = len(inside) + len(outside)
    inlying = (1 - check_fraction("rho", rho)) * permeance(
        inside, n_components=n_components, total=total
    )
    low, high = alignment_bounds(
        outside, n_components=n_components, total=total, rng=rng
    )
    return inlying - high, inlying - low


def expected_minibatch_stability(
    inliers: ArrayLike,
    outliers: ArrayLike,
    *,
    n_components: int,
    rho: float,
    batch_size: int,
    batches: int = 200,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return an estimate of a lower bound of S_(rho,E), and its standard error.

    The mean over batches of B rows, drawn without replacement as in (3.2), of
    (1 - rho) P(batch) - sqrt(n_out) ||X_out||/B, the right-hand side of (3.3) with its
    missing 1/B.

    Parameters
    ----------
    inliers, outliers : array_like, shape (n, D)
    n_components : int
    rho : float
    batch_size : int
        B, at most the number of rows.
    batches : int
        At least 2.
    rng : numpy.random.Generator
    """
    inside, outside = _spherised(inliers, outliers)
    rows = np.vstack([inside, outside])
    size = check_count("batch_size", batch_size, maximum=len(rows))
    share = 1 - check_fraction("rho", rho)
    values = np.empty(check_count("batches", batches, minimum=2))
    for place in range(len(values)):
        chosen = rng.choice(len(rows), size, replace=False)
        good, bad = (
            rows[chosen[chosen < len(inside)]],
            rows[chosen[chosen >= len(inside)]],
        )
        spectral = np.linalg.norm(bad, 2) if bad.size else 0.0
        harm = min(sqrt(len(bad)) * spectral, float(len(bad)))
        values[place] = (share * _eigenvalue(good, n_components) - harm) / size
    return float(values.mean()), float(values.std(ddof=1) / sqrt(len(values)))


def reaper_permeance_bounds(
    inliers: ArrayLike,
    subspace: ArrayLike,
    *,
    total: int | None = None,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return a lower and an upper bound of P_REAP; equal for r = 1 and r = 2.

    Parameters
    ----------
    inliers : array_like, shape (n, D)
        As they are, not spherised.
    subspace : array_like, shape (D, r)
        V_*.
    total : int, optional
        N. Default: n.
    rng : numpy.random.Generator
        For r > 2.
    """
    basis = check_basis("subspace", subspace)
    rows = np.asarray(inliers, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(basis) or not len(rows):
        raise InputError(
            f"inliers must have shape (n, {len(basis)}) with n >= 1, "
            f"got shape {rows.shape}"
        )
    count = check_count("total", len(rows) if total is None else total)
    inner = rows @ basis
    r = inner.shape[1]
    if r == 1:
        exact = float(np.abs(inner).sum()) / count
        return exact, exact
    normals = _normals(inner, rng)
    width = max(1, 2**22 // len(inner))
    upper = min(
        float(np.abs(normals[i : i + width] @ inner.T).sum(axis=1).min())
        for i in range(0, len(normals), width)
    )
    if r == 2:
        return upper / count, upper / count
    lengths = np.linalg.norm(inner, axis=1, keepdims=True)
    scaled = np.divide(
        inner, np.sqrt(lengths), out=np.zeros_like(inner), where=lengths > 0
    )
    lower = max(float(np.linalg.eigvalsh(scaled.T @ scaled)[0]), 0.0)
    return min(lower, upper) / count, upper / count


def reaper_alignment(
    outliers: ArrayLike, subspace: ArrayLike, *, total: int | None = None
) -> float:
    """Return A_REAP = (1/N) ||X_out|| ||normalised Q_* X_out||.

    Parameters
    ----------
    outliers : array_like, shape (n, D)
        As they are. May have no rows; those in the subspace have no direction off it.
    subspace : array_like, shape (D, r)
    total : int, optional
        N. Default: n.
    """
    basis = check_basis("subspace", subspace)
    rows = np.asarray(outliers, dtype=np.float64).reshape(-1, len(basis))
    count = check_count("total", max(len(rows), 1) if total is None else total)
    if not len(rows):
        return 0.0
    off = rows - (rows @ basis) @ basis.T
    lengths = np.linalg.norm(off, axis=1, keepdims=True)
    unit = np.divide(off, lengths, out=np.zeros_like(off), where=lengths > 1e-12)
    return float(np.linalg.norm(rows, 2) * np.linalg.norm(unit, 2)) / count


def reaper_stability_bounds(
    inliers: ArrayLike,
    outliers: ArrayLike,
    subspace: ArrayLike,
    *,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return a lower and an upper bound of S_REAP; equal for r <= 2.

    Where the lower one is positive, REAPER finds the subspace exactly.

    Parameters
    ----------
    inliers, outliers, subspace, rng
        See `reaper_permeance_bounds` and `reaper_alignment`.
    """
    total = len(np.asarray(inliers)) + len(np.asarray(outliers))
    bounds = reaper_permeance_bounds(inliers, subspace, total=total, rng=rng)
    harm = reaper_alignment(outliers, subspace, total=total)
    share = 4 * sqrt(np.shape(subspace)[1])
    low, high = (bound / share - harm for bound in bounds)
    return low, high


def _spherised(inliers: ArrayLike, outliers: ArrayLike) -> tuple[Array, Array]:
    inside = spherise(inliers, min_rows=0)
    outside = spherise(outliers, min_rows=0)
    if outside.shape[1] != inside.shape[1]:
        raise InputError(
            f"outliers must have rows of length {inside.shape[1]}, like inliers, "
            f"got {outside.shape[1]}"
        )
    return inside, outside


def _spectral_norms(rows: Array, bases: Array) -> Array:
    """Return sigma_1 of the sum of the terms for each basis."""
    terms = term_sum(rows, bases)
    return np.asarray(np.linalg.svd(terms, compute_uv=False)[:, 0], dtype=np.float64)


def _eigenvalue(rows: Array, place: int) -> float:
    """Return the place-th largest eigenvalue of X^T X; 0 if there are not so many."""
    place = check_count("n_components", place, maximum=rows.shape[1])
    if len(rows) < place:
        return 0.0
    return float(np.linalg.svd(rows, compute_uv=False)[place - 1] ** 2)


def _normals(inner: Array, rng: np.random.Generator) -> Array:
    """Return unit vectors orthogonal to r - 1 of the rows, shape (candidates, r)."""
    r = inner.shape[1]
    if r == 2:
        normals = np.stack([-inner[:, 1], inner[:, 0]], axis=1)
    else:
        some = min(comb(len(inner), r - 1), _MOST_CANDIDATES // 100)
        normals = np.empty((some, r))
        for place in range(some):
            chosen = inner[rng.integers(len(inner), size=r - 1)]
            normals[place] = np.linalg.svd(chosen, full_matrices=True).Vh[-1]
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    kept = lengths[:, 0] > 0
    return np.asarray(normals[kept] / lengths[kept], dtype=np.float64)
