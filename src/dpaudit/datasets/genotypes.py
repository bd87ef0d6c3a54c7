r"""Stylised genotypes: people on a map, alleles that follow it, and outliers.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 5.2, which imitates Novembre et al., *Genes mirror geography within
Europe*, Nature 456, 2008:

1. Scores of the inliers, shape (n, k): in the paper 20 principal components of 1387
   people. With a k x D matrix G of independent N(0, 1): X = scores G.
2. Outliers: an m x 30 matrix of independent uniform numbers in [-0.5, 0.5], times
   another such 30 x D matrix.
3. Both are thresholded to -1, 0, 1, and recoded as 0, 1, 2.

The paper leaves the thresholds open. Here X and the outliers are first scaled, by one
number each, to a mean square of 1 per entry, and the thresholds are -0.43 and 0.43:
for normal numbers that makes the three alleles about equally common.

The paper's scores are not shipped. They can be given, as an array or a file; otherwise
a map is drawn: ``synthetic_map``.

Thresholding bends the subspace of X, so inliers lie close to it and not on it. Coded as
0, 1, 2, all rows share the direction of (1, ..., 1); `centred` subtracts 1, which is
public, and with it the subspace is where `Dataset.subspace` says.
"""

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.datasets.dataset import Dataset
from dpaudit.errors import InputError
from dpaudit.validation import check_count, check_generator, check_matrix

__all__ = ["stylised_genotypes"]

_THRESHOLD = 0.43
_OUTLIER_FACTORS = 30
_MINOR_SCORES = 18
_PLACES = 20
_HEIGHT = 500  # rows that are thresholded at a time


def stylised_genotypes(
    n_inliers: int | None = None,
    n_outliers: int = 1000,
    dimension: int = 10_000,
    *,
    scores: ArrayLike | str | os.PathLike[str] | None = None,
    centred: bool = False,
    rng: np.random.Generator,
) -> Dataset:
    """Draw alleles that mirror a map, among alleles that do not.

    Parameters
    ----------
    n_inliers : int, optional
        How many people are on the map. Default: as many as there are `scores`, or
        1387.
    n_outliers : int, default 1000
        How many are not, >= 0.
    dimension : int, default 10000
        D, the number of loci; at least 2.
    scores : array_like of shape (n, k) or path, optional
        k >= 2 coordinates of each inlier, the map's first, centred at 0; or a text file
        with them, one person a line, separated by spaces or commas. Default:
        `synthetic_map`.
    centred : bool
        Whether alleles are coded as -1, 0, 1 instead of 0, 1, 2.
    rng : numpy.random.Generator
        Advanced by the call.

    Returns
    -------
    Dataset
        Rows in random order; `labels` is 1 for inliers and 0 for outliers; `subspace`
        is the top-2 principal subspace of the inliers before they are thresholded.

    Raises
    ------
    InputError
        If an argument is out of range, or the file or the scores are unusable.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = stylised_genotypes(6, 4, 50, rng=rng)
    >>> sorted(set(data.rows.ravel().tolist())), int(data.labels.sum())
    ([0.0, 1.0, 2.0], 6)
    """
    check_generator(rng)
    d = check_count("dimension", dimension, minimum=2)
    m = check_count("n_outliers", n_outliers, minimum=0)
    if n_inliers is not None:
        n_inliers = check_count("n_inliers", n_inliers, minimum=2)
    if scores is None:
        where = "a synthetic map"
        people = synthetic_map(1387 if n_inliers is None else n_inliers, rng=rng)
    else:
        where = "the user's scores"
        people = _read(scores)
        if n_inliers is not None and len(people) != n_inliers:
            raise InputError(
                f"n_inliers must be the number of scores, {len(people)}, "
                f"got {n_inliers}"
            )
    n = len(people)
    others = rng.uniform(-0.5, 0.5, size=(m, _OUTLIER_FACTORS))
    rows = np.empty((n + m, d))
    order = rng.permutation(n + m)
    places = np.argsort(order)
    loadings = rng.standard_normal((people.shape[1], d))
    people = people / np.sqrt(np.sum(people**2) / n)
    _fill(rows, places[:n], people, loadings)
    subspace = _principal(people, loadings)
    loadings = rng.standard_normal((_OUTLIER_FACTORS, d))
    _fill(rows, places[n:], others / np.sqrt(_OUTLIER_FACTORS / 12), loadings)
    if not centred:
        rows += 1
    return Dataset(
        "stylised_genotypes",
        rows,
        source=f"drawn: stylised genotypes, {n} inliers from {where}, {m} outliers",
        labels=(order < n).astype(np.int64),
        subspace=subspace,
    )


def synthetic_map(count: int, *, rng: np.random.Generator) -> Array:
    """Draw people around 20 places on a map, with 18 minor scores each.

    Parameters
    ----------
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (count, 20)
        East-west and north-south first: places are uniform in [-1.5, 1.5] x [-1, 1],
        people normal around them with standard deviation 0.1. The minor scores are
        normal with standard deviations from 0.2 downwards to 0.05.

    Examples
    --------
    >>> synthetic_map(3, rng=np.random.default_rng(0)).shape
    (3, 20)
    """
    count = check_count("count", count)
    places = rng.uniform(-1, 1, size=(_PLACES, 2)) * [1.5, 1.0]
    homes = places[rng.integers(_PLACES, size=count)]
    plane = homes + 0.1 * rng.standard_normal((count, 2))
    spread = np.linspace(0.2, 0.05, _MINOR_SCORES)
    return np.hstack([plane, spread * rng.standard_normal((count, _MINOR_SCORES))])


def _fill(
    rows: Array, places: NDArray[np.intp], scores: Array, loadings: Array
) -> None:
    """Write the thresholded products into rows, some at a time."""
    for first in range(0, len(places), _HEIGHT):
        some = slice(first, first + _HEIGHT)
        values = scores[some] @ loadings
        rows[places[some]] = (values > _THRESHOLD).astype(float) - (
            values < -_THRESHOLD
        )


def _principal(scores: Array, loadings: Array) -> Array:
    """Return the top-2 right singular vectors of scores times loadings."""
    factor = np.linalg.qr(loadings.T)
    inner = np.linalg.svd(scores @ factor.R.T, full_matrices=False).Vh
    return np.asarray(factor.Q @ inner[:2].T)


def _read(scores: ArrayLike | str | os.PathLike[str]) -> Array:
    if isinstance(scores, str | os.PathLike):
        try:
            with open(scores, encoding="utf-8") as stream:
                lines = [line.replace(",", " ").split() for line in stream]
            table: ArrayLike = [
                [float(cell) for cell in line] for line in lines if line
            ]
        except (OSError, ValueError) as error:
            raise InputError(f"scores cannot be read from {scores}: {error}") from error
        if len({len(line) for line in lines if line}) > 1:
            raise InputError(f"scores in {scores} must have as many on every line")
    else:
        table = scores
    people = check_matrix("scores", table, min_rows=2)
    if people.shape[1] < 2 or not people.any():
        raise InputError(
            "scores must have 2 columns or more, and not all be 0, "
            f"got shape {people.shape}"
        )
    return people
