r"""Preprocessing that touches each row by itself.

A map that is applied to every row separately takes neighbouring datasets to
neighbouring datasets, under add/remove and under replace-one alike, so it costs no
privacy and needs no noise. It is how mechanisms enforce the bound on the row norm that
their sensitivity proofs assume. Centring by the sample mean or dividing by the largest
norm is *not* of this kind: there one row moves all the others.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.validation import check_matrix, check_norm

__all__ = ["clip_into", "clip_rows", "normalise_rows"]


def clip_rows(rows: ArrayLike, norm: float) -> Array:
    """Scale every row that is longer than `norm` down to that length.

    Private preprocessing: each row of the result depends on the same row of the input
    and on the public bound only.

    Parameters
    ----------
    rows : array_like, shape (n, d)
        Finite numbers.
    norm : float
        The largest Euclidean length that a row may keep, from 1e-50 to 1e50.

    Returns
    -------
    ndarray, shape (n, d)
        A new array. Rows of length at most `norm` are bit-identical to the input;
        the others keep their direction, and their length, as floating-point
        arithmetic computes it, is never above `norm`. Clipping twice therefore
        equals clipping once.

    Raises
    ------
    InputError
        If `rows` is not a finite matrix or `norm` is no such number.

    Examples
    --------
    >>> from dpaudit.rows import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    rows = check_matrix("rows", rows)
    norm = check_norm("norm", norm)
    clipped = clip_into(rows, norm, np.empty(rows.shape))
    return rows.copy() if clipped is rows else clipped


def clip_into(rows: Array, norm: float, out: Array) -> Array:
    """Do what `clip_rows` does, without its checks, and without a copy if possible.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    norm : float
        From 1e-50, so that squares that underflow are of shorter rows, to 1e50.
    out : ndarray, shape (n, d)
        Where clipped rows are written; may be `rows` itself.

    Returns
    -------
    ndarray, shape (n, d)
        `rows` if none is too long, else `out`. A row with a NaN or an infinity has
        one there too; the other rows are what they would be without it.
    """
    # A length that overflows is inf, which is longer than `norm`, as it should be.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        longest = lengths.max(initial=0.0)
        if longest <= norm:
            return rows
        # The lengths computed before and after, and the scaling between them, err by
        # at most d + 7 rounding units together; aiming that much lower keeps the bound
        # of the sensitivity proof.
        rounding = (rows.shape[1] + 8) * np.finfo(np.float64).epsneg
        target = norm * (1 - rounding)
        factors = target / lengths
        factors[lengths <= norm] = 1.0
        if longest < np.inf:
            return np.multiply(rows, factors[:, np.newaxis], out=out)
        # Squares that overflow give no length to divide by.
        far = np.isposinf(lengths)
        exact = directions(rows[far])  # before `out`, which may be `rows`
        np.multiply(rows, factors[:, np.newaxis], out=out)
        out[far] = exact * target
        out[np.isnan(lengths)] = np.nan
    return out


def normalise_rows(rows: ArrayLike) -> Array:
    """Scale every row to unit length; rows of zeros stay as they are.

    Private preprocessing, for the reason given at `clip_rows`. It is what the
    robust-PCA literature calls spherising.

    Parameters
    ----------
    rows : array_like, shape (n, d)
        Finite numbers.

    Returns
    -------
    ndarray, shape (n, d)
        A new array whose rows have length 1 up to rounding, or 0.

    Raises
    ------
    InputError
        If `rows` is not a finite matrix.

    Examples
    --------
    >>> from dpaudit.rows import normalise_rows
    >>> normalise_rows([[0.0, 5.0], [0.0, 0.0]])
    array([[0., 1.],
           [0., 0.]])
    """
    return directions(check_matrix("rows", rows))


def directions(rows: Array) -> Array:
    """Do what `normalise_rows` does, without its checks: (n, d) -> a new (n, d)."""
    # Dividing by the largest entry first keeps the squares from over- and underflowing.
    peak = np.abs(rows).max(axis=1, keepdims=True)
    scaled = np.divide(rows, peak, out=np.zeros_like(rows), where=peak > 0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Array = np.divide(scaled, length, out=scaled, where=length > 0)
    return unit
