"""Random datasets whose true subspace is known.

References
----------
Johnstone, *On the distribution of the largest eigenvalue in principal components
analysis*, Annals of Statistics 29, 2001 (the spiked covariance model).
Lerman, McCoy, Tropp and Zhang, *Robust computation of linear models by convex
relaxation*, Foundations of Computational Mathematics 15, 2015 (the haystack model).
Maunu, Yu and Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML 2022.
Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for privacy-preserving
principal component analysis*, STOC 2014, section 5 (fingerprints).
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.datasets.dataset import Dataset
from dpaudit.errors import InputError
from dpaudit.fingerprinting.instances import PAD_RATIO, HardInstance
from dpaudit.rows import normalise_rows
from dpaudit.stacks import check_basis
from dpaudit.subspace import top_components
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_generator,
    check_nonnegative,
    check_positive,
)

__all__ = ["fingerprints", "haystack", "spiked_gaussian"]


def spiked_gaussian(
    n_rows: int,
    dimension: int,
    *,
    spikes: ArrayLike,
    noise: float = 1.0,
    basis: ArrayLike | None = None,
    rng: np.random.Generator,
) -> Dataset:
    r"""Draw rows from N(0, noise^2 I + V diag(spikes) V^T).

    Parameters
    ----------
    n_rows : int
        n, the number of rows.
    dimension : int
        d, the length of a row.
    spikes : array_like, shape (k,)
        By how much the variance along each column of V exceeds the noise's; > 0.
    noise : float, default 1.0
        Standard deviation of the noise in every direction, >= 0.
    basis : array_like, shape (d, k), optional
        V, orthonormal. Drawn from the uniform distribution if omitted.
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        Rows of unbounded length; `subspace` is V.

    Raises
    ------
    InputError
        If an argument is out of range or the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.datasets import spiked_gaussian
    >>> rng = np.random.default_rng(0)
    >>> data = spiked_gaussian(4, 3, spikes=[100.0], noise=0.0, rng=rng)
    >>> int(np.linalg.matrix_rank(data.rows))
    1
    """
    check_generator(rng)
    n = check_count("n_rows", n_rows)
    d = check_count("dimension", dimension)
    excess = _check_spikes(spikes, d)
    noise = check_nonnegative("noise", noise)
    k = excess.size
    v = _random_basis(d, k, rng) if basis is None else check_basis("basis", basis)
    if v.shape != (d, k):
        raise InputError(
            f"basis must have one row per dimension and one column per spike, "
            f"shape {(d, k)}, got shape {v.shape}"
        )
    signal = rng.standard_normal((n, k)) * np.sqrt(excess)
    rows = rng.standard_normal((n, d))
    rows *= noise
    rows += signal @ v.T
    return Dataset(
        "spiked_gaussian",
        rows,
        source=f"drawn: spiked Gaussian, spikes {excess.tolist()}, noise {noise}",
        subspace=v,
    )


def haystack(
    n_rows: int,
    dimension: int,
    n_components: int,
    *,
    inlier_share: float,
    spherise: bool = True,
    rng: np.random.Generator,
) -> Dataset:
    r"""Draw inliers on a random subspace among outliers in every direction.

    With P the projector on a uniformly random subspace of dimension r in R^D, inliers
    are N(0, P/r) and outliers N(0, I/D), so that both have mean squared length 1.

    Parameters
    ----------
    n_rows : int
        The number of rows, inliers and outliers together.
    dimension : int
        D, at least 2.
    n_components : int
        r, from 1 to D - 1.
    inlier_share : float
        In (0, 1). The number of inliers is this share of `n_rows`, rounded, and not
        random.
    spherise : bool, default True
        Scale every row to length 1 (row by row, hence private preprocessing).
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        Rows in random order, since streaming mechanisms see the order; `labels` is 1
        for inliers and 0 for outliers; `subspace` is the inliers'.

    Raises
    ------
    InputError
        If an argument is out of range, or the share leaves no inlier or no outlier.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.datasets import haystack
    >>> data = haystack(10, 5, 2, inlier_share=0.3, rng=np.random.default_rng(0))
    >>> int(data.labels.sum())
    3
    """
    check_generator(rng)
    n = check_count("n_rows", n_rows, minimum=2)
    d = check_count("dimension", dimension, minimum=2)
    r = check_count("n_components", n_components, maximum=d - 1)
    share = check_fraction("inlier_share", inlier_share)
    n_inliers = round(share * n)
    if not 0 < n_inliers < n:
        raise InputError(
            f"inlier_share must leave at least one inlier and one outlier among "
            f"{n} rows, got {inlier_share!r}"
        )
    basis = _random_basis(d, r, rng)
    inliers = rng.standard_normal((n_inliers, r)) @ basis.T / np.sqrt(r)
    outliers = rng.standard_normal((n - n_inliers, d)) / np.sqrt(d)
    rows = np.concatenate([inliers, outliers])
    if spherise:
        rows = normalise_rows(rows)
    order = rng.permutation(n)
    return Dataset(
        "haystack",
        rows[order],
        source=f"drawn: haystack, {n_inliers} inliers of dimension {r}"
        + (", spherised" if spherise else ""),
        labels=(order < n_inliers).astype(np.int64),
        subspace=basis,
    )


def _random_basis(dimension: int, n_components: int, rng: np.random.Generator) -> Array:
    # The span of Gaussian columns is uniform on the Grassmannian. The signs that
    # Householder QR gives to the columns are not uniform, and do not matter here.
    basis: Array = np.linalg.qr(rng.standard_normal((dimension, n_components))).Q
    return basis


def _check_spikes(spikes: ArrayLike, dimension: int) -> Array:
    values = np.atleast_1d(np.asarray(spikes)).tolist()
    if not 1 <= len(values) <= dimension:
        raise InputError(
            f"spikes must hold 1 to {dimension} numbers, got {len(values)}"
        )
    return np.array([check_positive(f"spikes[{i}]", x) for i, x in enumerate(values)])


def fingerprints(
    n_rows: int,
    length: int,
    *,
    n_clusters: int = 1,
    cutoff: float | None = None,
    pad_ratio: int = PAD_RATIO,
    rng: np.random.Generator,
) -> Dataset:
    """Draw clusters of padded codewords of a Tardos code, disguised.

    Who wants to trace as well keeps the secrets:
    `dpaudit.fingerprinting.HardInstance`.

    Parameters
    ----------
    n_rows : int
        m, the rows of one cluster.
    length : int
        n, the symbols of a codeword.
    n_clusters : int
        k, the dimension of the subspace wanted; at most the length of a row.
    cutoff : float, optional
        t of the code, in (0, 1/2). By default Tardos's 1/(300 m).
    pad_ratio : int
        Ones per symbol; 15 in the paper.
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        k m rows of length (1 + pad_ratio) n and norm 1; `labels` are the clusters,
        `subspace` is that of the k first principal components.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprints(5, 8, pad_ratio=3, rng=np.random.default_rng(0)).rows.shape
    (5, 32)
    """
    m = check_count("n_rows", n_rows)
    instance = HardInstance.generate(
        m,
        length,
        n_clusters=n_clusters,
        cutoff=1 / (300 * m) if cutoff is None else cutoff,
        pad_ratio=pad_ratio,
        rng=rng,
    )
    rows = instance.rows
    return Dataset(
        "fingerprints",
        rows,
        source=f"drawn: Tardos code, {n_clusters} times {m} words of {length} symbols",
        labels=instance.labels,
        subspace=_first_components(rows, instance.n_clusters),
    )


def _first_components(rows: np.ndarray, k: int) -> np.ndarray:
    """Return the k first right singular vectors; there are more columns than rows."""
    if len(rows) >= rows.shape[1]:
        return top_components(rows.T @ rows, k)
    components: np.ndarray = np.linalg.svd(rows, full_matrices=False)[2][:k].T
    return components
