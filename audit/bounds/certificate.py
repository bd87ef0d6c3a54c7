r"""A certified maximum of the rejection probability over a nuisance parameter.

Two independent counts K (on D) and M (on D') have parameters p and q. A rejection
region is an up-set: with (k, m) it contains every (k', m') with k' >= k and m' <= m, so

    f(p, q) = P(region) = sum_m P_q(M = m) P_p(K >= k*(m)),   k* non-decreasing,

increases in p and decreases in q (stochastic monotonicity). Over a null set {p <= g(q)}
the supremum is therefore attained on the curve p = g(q), and what remains is one
dimension. On a straight piece of that curve, t in [-1, 1] -> (p(t), q(t)) affine, f is
the restriction of an entire function, and for complex t

    |f(t)| <= sum_k |w_p(t)(k)| sum_m |w_q(t)(m)| =: G(t),

in closed form (`dpaudit.audit.bounds.laws`). So f has a certified interpolant:

1. *Interpolation.* If |f| <= G on the ellipse with foci -1, 1 and semi-axis sum rho,
   the Chebyshev coefficients of f are at most 2 G rho^-j, and the interpolant of degree
   d in the d + 1 roots of T_(d+1) errs by at most 4 G rho^-d / (rho - 1) on [-1, 1]
   (Bernstein; aliasing at most doubles the truncation error). G is maximised over the
   ellipse by covering it with a circumscribed polygon and using that |theta|,
   |1 - theta| and |theta| - Re theta are convex: their maxima are at vertices.
2. *Maximum of the interpolant.* For a polynomial r of degree d,
   max |r| <= max_j |r(x_j)| / cos(pi d / (2 N)) over the N roots of T_N, N > d (Ehlich,
   Zeller 1964). It is applied to r minus a constant, as f is often nearly flat.

Twenty or so evaluations of f give the maximum with three or more digits; no grid is
trusted. f is evaluated from above: sums run over windows outside of which a Bernstein
bound caps the mass, and weights are normalised within the window, which can only
increase them. Rounding is relative 1e-11 or so; an allowance of 1e-9 covers it. What
the values err by, at most 3 times the mass allowed outside, moves the interpolant by at
most the Lebesgue constant of its nodes times that, which is below 1 + log(d + 1).

References
----------
Trefethen, *Approximation theory and approximation practice*, 2013, Theorems 8.1, 8.2.
Ehlich, Zeller, *Schwankung von Polynomen zwischen Gitterpunkten*, Math. Z. 1964.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.polynomial import chebyshev

from dpaudit.arrays import Array
from dpaudit.audit.bounds.laws import Integers, Law

__all__ = ["Piece", "Region", "supremum"]

# ((q, p) at the start, (q, p) at the end)
Piece: TypeAlias = tuple[tuple[float, float], tuple[float, float]]

_ROUNDING = 1e-9
_CORNERS = 32  # of the polygon around the ellipse
_FINENESS = 16  # points per degree when the interpolant is maximised
_KEPT_DEGREE = 256
_CELLS = 4_000_000  # largest array of weights held at once
_LOG_RHO = np.geomspace(0.02, 8.0, 60)


@dataclass(frozen=True)
class Region:
    """An up-set of outcomes (k, m), described inside a window.

    Parameters
    ----------
    data, neighbour : Law
        The laws of K and M.
    k, m : ndarray of int
        Consecutive counts: the window.
    least : ndarray of int, shape (len(m),)
        For each m, the index in `k` of the smallest count in the region; 0 also where
        smaller ones are, ``len(k)`` where none is. Non-decreasing.
    outside : float
        A bound on the probability that (K, M) is in the region but not covered by
        `k` and `m`, for all parameters to which the region will be applied.
    """

    data: Law
    neighbour: Law
    k: Integers
    m: Integers
    least: Integers
    outside: float

    def probability(self, p: Array, q: Array) -> Array:
        """Return upper bounds, tight up to `outside`, on P(region) at each (p, q)."""
        base_k, base_m = self.data.log_base(self.k), self.neighbour.log_base(self.m)
        eta_p, eta_q = self.data.natural(p), self.neighbour.natural(q)
        together = max(1, _CELLS // (len(self.k) + len(self.m)))
        result = np.empty(len(p))
        for start in range(0, len(p), together):
            part = slice(start, start + together)
            hits = _weights(self.k, base_k, eta_p[part])
            tails = np.zeros((hits.shape[0], hits.shape[1] + 1))
            tails[:, :-1] = np.cumsum(hits[:, ::-1], axis=1)[:, ::-1]
            weights = _weights(self.m, base_m, eta_q[part])
            result[part] = np.einsum("im,im->i", weights, tails[:, self.least])
        return result * (1 + _ROUNDING) + self.outside


def _weights(counts: Integers, base: Array, eta: Array) -> Array:
    """Return the law on a window, normalised there; shape (len(eta), len(counts))."""
    exponents = base + eta[:, np.newaxis] * (counts - counts[0])
    exponents -= exponents.max(axis=1, keepdims=True)
    weights = np.exp(exponents, out=exponents)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def supremum(region: Region, pieces: list[Piece], tolerance: float) -> float:
    """Return an upper bound on the largest P(region) over straight pieces.

    Parameters
    ----------
    region : Region
    pieces : list
        Segments in the (q, p) plane.
    tolerance : float
        The interpolation error that is spent; the result includes it.
    """
    return min(1.0, max(_over_piece(region, piece, tolerance) for piece in pieces))


def _over_piece(region: Region, piece: Piece, tolerance: float) -> float:
    (q_start, p_start), (q_end, p_end) = piece
    centre_q, half_q = (q_start + q_end) / 2, (q_end - q_start) / 2
    centre_p, half_p = (p_start + p_end) / 2, (p_end - p_start) / 2

    def along(t: Array) -> tuple[Array, Array]:
        return centre_p + half_p * t, centre_q + half_q * t

    degree = _degree(region, (centre_p, half_p), (centre_q, half_q), tolerance)
    if degree == 0:
        return float(region.probability(*along(np.zeros(1)))[0]) + tolerance
    # What is large is not kept.
    made = _chebyshev if degree <= _KEPT_DEGREE else _chebyshev.__wrapped__
    nodes, basis, finer = made(degree)
    values = region.probability(*along(nodes))
    # Discrete orthogonality of the polynomials at these nodes.
    coefficients = 2 / (degree + 1) * basis.T @ values
    coefficients[0] /= 2
    dense = chebyshev.chebval(finer, coefficients)
    low, high = float(dense.min()), float(dense.max())
    swing = (high - low) / 2 / math.cos(math.pi / (2 * _FINENESS))
    error = 3 * region.outside + 2 * _ROUNDING * max(high, 0.0)
    lebesgue = 1 + math.log(degree + 1)
    return (low + high) / 2 + swing + lebesgue * error + tolerance


@lru_cache(maxsize=16)
def _chebyshev(degree: int) -> tuple[Array, Array, Array]:
    """Return the nodes of a degree, the polynomials there, and many more nodes."""
    nodes = chebyshev.chebpts1(degree + 1)
    basis = np.asarray(chebyshev.chebvander(nodes, degree), dtype=np.float64)
    return nodes, basis, chebyshev.chebpts1(_FINENESS * degree)


def _degree(
    region: Region,
    line_p: tuple[float, float],
    line_q: tuple[float, float],
    tolerance: float,
) -> int:
    """Return the smallest degree whose interpolation error is within tolerance."""
    if line_p[1] == 0 and line_q[1] == 0:
        return 0
    angles = np.arange(_CORNERS) * (2 * np.pi / _CORNERS)
    s = _LOG_RHO[:, np.newaxis]
    around = np.cosh(s) * np.cos(angles) + 1j * np.sinh(s) * np.sin(angles)
    around /= np.cos(np.pi / _CORNERS)
    growth = sum(
        law.log_growth(line[0] + line[1] * around).max(axis=1)
        for law, line in ((region.data, line_p), (region.neighbour, line_q))
    )
    needed = math.log(4 / tolerance) + growth - np.log(np.expm1(_LOG_RHO))
    return max(1, math.ceil(float((needed / _LOG_RHO).min())))
