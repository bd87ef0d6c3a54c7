r"""FactorisedSums: every prefix of a stream of x x^T, with the noise of a matrix root.

1. z_1, ..., z_m are independent, N(0, s^2) per coordinate; z_t is drawn when row t has
   come.
2. After row t, output A_t + sum_(u <= t) r_(t-u) z_u.

The matrix of prefix sums, 1/(1 - x) as a series (see the end), is written as r c: what
is released is r (c X + z), X the rows x_t x_t^T, which is a bijection of c X + z.

**Privacy.** Row i is in the values i, ..., m of c X, with the weights c_0, c_1, ...,
c_(m-i). If it is replaced they move by sqrt 2 R^2 times these at most, together by

    sqrt 2 R^2 ||(c_0, ..., c_(m-1))||

at most, which is attained when e_1 replaces e_2 in row 1. So the sequence is mu-GDP
with mu = sqrt 2 R^2 ||c||/s, tightly, *whatever r is*; `calibrated` takes the least s.

*A stream may be adaptive*: its rows chosen by somebody who has seen all releases
before, and who at some place i offers two, of which one is taken. (Denisov, McMahan,
Rush, Smith, Thakurta, *Improved differential privacy for SGD via optimal private linear
operators on adaptive streams*, NeurIPS 2022, Theorem 2.1.) Proof. r, c and their
inverses are lower triangular, so to have seen the releases before t is to have seen
y_u = (c X)_u + z_u for u < t, and (c X)_t depends on rows up to t. Given the same past
all rows but the i-th are the same on either side, and y_t is normal with deviation s
and a mean that differs by c_(t-i) D, D the difference of what is offered at i, which is
known from i on. Let v = (c_0 D, ..., c_(m-i) D), so that ||v|| <= sqrt 2 R^2 ||c||.
Given the past up to i, whoever receives z + v or z, Gaussian vectors that do not depend
on what is chosen later, can make all y_t in turn: he adds the (c X)_t of the other
side, since the rows after i are functions of what he has made. So the pair is a
function of a Gaussian shift by ||v||/s, which is what mu-GDP says, for every past; and
the past up to i has one law on both sides.

**Exact**, `poles=None`: r = c = (1 - x)^(-1/2), so s^2 = (2 R^4/mu^2) sum_(k < m) f_k^2
and prefix t has the variance s^2 sum_(k < t) f_k^2. Off the diagonal of A that is a
deviation of (1/mu) sum_(k < t) f_k^2 at t = m, of the order of log(m)/pi, where a tree
has the root of h times the number of ones of t (docs/online.md has numbers). A stream
remembers all z, and row t costs t additions of matrices.

**With few poles**, `poles=J`: r with J poles, and c = 1/((1 - x) r), computed. It is
exactly as private, since s follows from the c that belongs to r. What it costs is
accuracy: `overhead` is the largest ratio, over all prefixes, of the deviation to that
with the exact root, computed from the coefficients of both, which proves it for the m
that is asked for. A stream remembers J matrices.

For every m and J there is this bound, too. Let e = r - f with |e_k| <= eta f_k, and
b = (1 - x)^(1/2), the sum of whose coefficients' absolute values is 2. From 1/(1 - x) =
f^2, c = f/(1 + e b), and modulo x^m the coefficients of e b have absolute values of sum
at most rho = 2 eta sum_(1 <= k < m) f_k <= 4 eta sqrt(m/pi). So if rho < 1 then
||c|| <= ||f||/(1 - rho) (Young), ||r|| <= (1 + eta) ||f||, and the overhead is at most
(1 + eta)/(1 - rho), where eta is computed too, and falls exponentially in J.

**Any length.** A stream of unknown length needs a declared one, m, as for the tree: it
may be much too long, since ||c||^2 grows like log(m)/pi only. With 1e7 declared instead
of 1e5 all deviations are 1.14 times as large.

`FactorisedOnlinePCA` follows the leader of these prefixes, as
`dpaudit.algorithms.online.tree_aggregation` does of the tree's.

**Lower-triangular Toeplitz matrices**, and two square roots of the one of ones. A power
series r(x) = r_0 + r_1 x + ... stands for the lower-triangular matrix whose
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
see above.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import toeplitz

from dpaudit.algorithms.online.noise import NoiseMemory, PastMemory, PolesMemory
from dpaudit.algorithms.online.streams import StreamableSums
from dpaudit.algorithms.online.subspace_sequence import SubspaceSequence
from dpaudit.arrays import Array
from dpaudit.validation import Count

__all__ = ["FactorisedOnlinePCA", "FactorisedSums"]


@dataclass(frozen=True, kw_only=True)
class FactorisedSums(StreamableSums):
    """Noisy prefixes from a root of prefix sums; releases have shape (n, d, d).

    Parameters
    ----------
    poles : int, optional
        How many the root has. By default it is the exact one, which has no poles, and
        whose streams remember all of their noise.

    Examples
    --------
    >>> mechanism = FactorisedSums.calibrated(1.0, 1e-5, length=1000, poles=10)
    >>> mechanism.overhead() < 1.0001
    True
    >>> round(mechanism.deviation() / 2**0.5, 3)  # above the diagonal of z
    6.741
    """

    poles: Count | None = None

    def uses(self, length: int) -> float:
        """Return ||c||^2."""
        return float(np.sum(_factors(length, self.poles)[1] ** 2))

    def mixed(self, sums: Array) -> Array:
        return multiply(self._series(sums.shape[-2])[0], sums)

    def unmixed(self, prefixes: Array) -> Array:
        return multiply(self._series(prefixes.shape[-2])[2], prefixes)

    def deviations(self, n_rows: int | None = None) -> Array:
        """Return the deviation of a coordinate of every prefix, shape (m,)."""
        length = self.length_for(n_rows)
        grown = np.sqrt(np.cumsum(_factors(length, self.poles)[0] ** 2))
        return np.asarray(self.deviation(length) * grown)

    def overhead(self, n_rows: int | None = None) -> float:
        """Return the largest ratio of `deviations` to those with the exact root."""
        length = self.length_for(n_rows)
        best = root(length)
        exact = np.sqrt(np.cumsum(best**2)) * np.linalg.norm(best)
        ours = np.sqrt(np.cumsum(_factors(length, self.poles)[0] ** 2))
        return float(np.max(ours * sqrt(self.uses(length)) / exact))

    def memory(self, width: int) -> NoiseMemory:
        length = self.length_for(None)
        if self.poles is None:
            return PastMemory(root(length), width)
        return PolesMemory(*few_poles(length, self.poles), width)

    def _series(self, rows: int) -> tuple[Array, Array, Array]:
        return _factors(rows if self.length is None else self.length, self.poles)


@dataclass(frozen=True, kw_only=True)
class FactorisedOnlinePCA(SubspaceSequence):
    """Private online PCA by `FactorisedSums`; releases have shape (n, d, k)."""

    sums: FactorisedSums

    kind = FactorisedSums


@lru_cache(maxsize=16)
def _factors(length: int, poles: int | None) -> tuple[Array, Array, Array]:
    """Return the coefficients of r, of c, and of 1/r."""
    if poles is None:
        exact = root(length)
        found = exact, exact, root_inverse(length)
    else:
        series = few_poles(length, poles).coefficients(length)
        inverted = inverse(series)
        found = series, np.cumsum(inverted), inverted
    for each in found:
        each.flags.writeable = False
    return found


_SMALL = 128  # rows below which a product is one of matrices
_LAST = 4.0  # s at the last pole


def root(length: int) -> Array:
    """Return the first coefficients of (1 - x)^(-1/2)."""
    k = np.arange(1, length)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def root_inverse(length: int) -> Array:
    """Return the first coefficients of (1 - x)^(1/2)."""
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
def few_poles(length: int, count: int) -> Poles:
    """Return so many poles, for series of so many coefficients."""
    start = 1 / np.sqrt(length)
    step = np.arcsinh(_LAST / start) / count
    v = (np.arange(count) + 0.5) * step
    s = start * np.sinh(v)
    weights = 2 * step / np.pi * start * np.cosh(v) * s / np.sqrt(np.expm1(s**2))
    return Poles(np.exp(-(s**2)), weights)


def inverse(series: Array) -> Array:
    """Return as many coefficients of 1/r, by Newton's method; r_0 = 1."""
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
