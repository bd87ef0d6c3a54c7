r"""Lower-triangular Toeplitz matrices, and two square roots of the one of ones.

A power series r(x) = r_0 + r_1 x + ... stands for the lower-triangular matrix whose
entry in row t and column s is r_(t-s): products of series are products of matrices, and
prefix sums are 1/(1 - x).

**The root** is (1 - x)^(-1/2) = sum f_k x^k, with f_0 = 1 and f_k = f_(k-1) (2k - 1)/
(2k); its inverse has the coefficients -f_k/(2k - 1). (Fichtenberger, Henzinger,
Upadhyay, *Constant matters: fine-grained error bound on differentially private
continual observation*, ICML 2023.)

**A root with few poles.** With theta = e^(-s^2) in the moments of the arcsine law,

.. math:: f_k = \frac{1}{\pi} \int_0^1 \frac{\theta^k \, d\theta}{\sqrt{\theta (1 -
          \theta)}} = \frac{1}{\pi} \int_{-\infty}^\infty e^{-k s^2} g(s) \, ds, \quad
          g(s) = \sqrt{\frac{s^2}{e^{s^2} - 1}} .

The trapezoidal rule in v, s = s_0 sinh v, at v = (j + 1/2) h for j = 0, ..., J - 1
(g is even) gives

.. math:: r_0 = 1, \quad r_k = \sum_j w_j \theta_j^k \; (k \ge 1), \quad
          w_j = \frac{2 h}{\pi} \, s_0 \cosh(v_j) \, g(s_j),

so that products with r need J numbers of memory instead of all the past (Dvijotham,
McMahan, Pillutla, Steinke, Thakurta, *Efficient and near-optimal noise generation for
streaming differential privacy*, FOCS 2024, who choose the poles otherwise). s_0^2 is
1/m, and h such that s_J = 4: there e^(-s^2) is 1e-7.

How good it is. The integrand is analytic for |Im v| < pi/4 but for a margin of the
order of 1/(8 pi m), beyond which s^2 may be 2 pi i, and decays there for all k <= m. So
the relative error eta = max |r_k - f_k|/f_k over 1 <= k < m falls like
exp(-pi^2/(2 h)), h being about log(8 sqrt m)/J, until the cut at s_J shows. Nothing
rests on that: eta is a finite computation for each m and J, and so is what it costs,
see `dpaudit.algorithms.online.factorised`.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import toeplitz

from dpaudit.arrays import Array

__all__ = ["Poles", "inverse", "multiply", "poles", "root", "root_inverse"]

_SMALL = 128  # rows below which a product is one of matrices
_LAST = 4.0  # s at the last pole


def root(length: int) -> Array:
    """Return the first coefficients of (1 - x)^(-1/2).

    Examples
    --------
    >>> root(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    k = np.arange(1, length)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def root_inverse(length: int) -> Array:
    """Return the first coefficients of (1 - x)^(1/2).

    Examples
    --------
    >>> root_inverse(4)
    array([ 1.    , -0.5   , -0.125 , -0.0625])
    """
    return -root(length) / (2 * np.arange(length) - 1)


class Poles(NamedTuple):
    """r_0 = 1 and r_k = sum of weight * ratio^k: a root with few poles."""

    ratios: Array
    weights: Array

    def coefficients(self, length: int) -> Array:
        """Return r_0, ..., r_(m-1)."""
        width = int(np.sqrt(length)) + 1  # k = width i + j
        powers = np.arange(width)[:, np.newaxis]
        coarse = self.weights * self.ratios ** (width * powers)
        found = (coarse @ (self.ratios**powers).T).ravel()[:length]
        found[:1] = 1.0
        return found


@lru_cache(maxsize=64)
def poles(length: int, count: int) -> Poles:
    """Return so many poles, for series of so many coefficients.

    Examples
    --------
    >>> found = poles(1000, 12)
    >>> float(np.abs(found.coefficients(1000) / root(1000) - 1).max()) < 2e-4
    True
    """
    start = 1 / np.sqrt(length)
    step = np.arcsinh(_LAST / start) / count
    v = (np.arange(count) + 0.5) * step
    s = start * np.sinh(v)
    weights = 2 * step / np.pi * start * np.cosh(v) * s / np.sqrt(np.expm1(s**2))
    return Poles(np.exp(-(s**2)), weights)


def inverse(series: Array) -> Array:
    """Return as many coefficients of 1/r, by Newton's method; r_0 = 1.

    Examples
    --------
    >>> inverse(np.ones(4)).round(12) + 0.0
    array([ 1., -1.,  0.,  0.])
    """
    length, found = len(series), np.ones(1)
    while len(found) < length:
        n = min(2 * len(found), length)
        found = np.concatenate([found, np.zeros(n - len(found))])
        error = _convolved(series[:n], found)
        error[0] -= 1
        found -= _convolved(error, found)
    return found


def _convolved(series: Array, vectors: Array) -> Array:
    """Return the first terms of a product of series, along the first axis."""
    n = len(series)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(series, size).reshape(-1, *(1,) * (vectors.ndim - 1))
    product = irfft(rfft(vectors, size, axis=0) * spectrum, size, axis=0)
    return np.asarray(product[:n])


def multiply(series: Array, vectors: Array) -> Array:
    """Return the product of the matrix with vectors, shape (..., n, q)."""
    n = vectors.shape[-2]
    others = tuple(range(vectors.ndim - 2))
    first = vectors.transpose(len(others), *others, vectors.ndim - 1)
    if n <= _SMALL:
        # One product of two matrices, whose noise a replay can follow.
        matrix: Array = toeplitz(series[:n], np.zeros(n))
        product = (matrix @ first.reshape(n, -1)).reshape(first.shape)
    else:
        product = _convolved(series[:n], first)
    return product.transpose(*(i + 1 for i in others), 0, vectors.ndim - 1)
