r"""Quadrature of products of exponentials on a line, in logarithms.

A line is cut into pieces. On each, a rule of Gauss, with weights that are positive; or
the closed form where the integrand is one exponential. At its two ends, Gauss's rule
for a power times polynomials.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy.special import exprel

from dpaudit.arrays import Array

__all__ = [
    "Pieces",
    "end_rule",
    "integral_coefficients",
    "log_sum",
    "unit_rule",
]


def unit_rule(count: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre on [0, 1], shape (count,)."""
    nodes, weights = legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def integral_coefficients(count: int) -> Array:
    """Return what takes values at the nodes of a `unit_rule` to an integral from 0.

    Of the polynomial through the values, as a polynomial in 2t - 1, t in [0, 1]; shape
    (count, count + 1).

    Examples
    --------
    >>> integral_coefficients(2).sum(axis=0).round(12)  # of 1: t = 1/2 + (2t - 1)/2
    array([0.5, 0.5, 0. ])
    """
    nodes, weights = unit_rule(count)
    degrees = np.arange(count)
    to_series = legendre.legvander(2 * nodes - 1, count - 1)
    to_series *= weights[:, np.newaxis] * (2 * degrees + 1)
    integrals = np.zeros((count, count + 1))
    for row, series in zip(integrals, np.eye(count), strict=True):
        integral = legendre.leg2poly(legendre.legint(series, lbnd=-1)) / 2
        row[: len(integral)] = integral
    return np.asarray(to_series @ integrals)


@lru_cache(maxsize=64)
def end_rule(count: int, ratio: float) -> tuple[Array, Array]:
    """Return nodes u and log(weight u^-ratio) of the rule for u^(ratio - 1) on [0, 1].

    Gauss's, shape (count,): exact for u^(ratio - 1) times polynomials of degree
    2 count - 1. By the eigenvalues of the Jacobi matrix (Golub, Welsch, *Calculation of
    Gauss quadrature rules*, 1969).
    """
    power, place = ratio - 1, np.arange(1.0, count)
    twice = 2 * place + power
    middle = [power / (power + 2), *(power**2 / (twice * (twice + 2)))]
    off = place * (place + power) / (twice * np.sqrt(twice**2 - 1))
    nodes, vectors = np.linalg.eigh(np.diag(np.add(middle, 1) / 2) + np.diag(off, -1))
    with np.errstate(divide="ignore"):  # of weights that are too small for a float
        log_weights = np.log(vectors[0] ** 2 / ratio)
    return nodes, log_weights - ratio * np.log(nodes)


def log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1)))


class Pieces(NamedTuple):
    """Intervals, by their ends, shape (m,) each."""

    left: Array
    right: Array

    def cut(self, fineness: Array) -> "Pieces":
        """Return the pieces cut into equal ones, at most 1/fineness long."""
        lengths = self.right - self.left
        counts = np.ceil(lengths * fineness).astype(np.intp)
        edges = np.repeat(self.left, counts)
        steps = np.repeat(lengths / np.maximum(counts, 1), counts)
        places = np.arange(len(edges)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pieces(edges + places * steps, edges + (places + 1) * steps)

    def nodes(self, on_unit: Array) -> Array:
        """Return the nodes of a rule on each piece, one piece after the other."""
        lengths = (self.right - self.left)[:, np.newaxis]
        return (self.left[:, np.newaxis] + lengths * on_unit).ravel()

    def log_weights(self, weights: Array) -> Array:
        """Return the log-weights of the rule."""
        return np.log(np.outer(self.right - self.left, weights)).ravel()

    def log_of_exponential(self, at_left: Array, at_right: Array) -> Array:
        """Return the log-integral over each piece of an exponential, by its ends."""
        mean = exprel(-np.abs(at_right - at_left)) * (self.right - self.left)
        return np.asarray(np.maximum(at_left, at_right) + np.log(mean))
