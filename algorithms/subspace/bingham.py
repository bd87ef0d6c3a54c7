r"""The vector Bingham distribution: its normalising constant, and exact draws.

A unit vector u in R^d has the density exp(u^T S u)/c(S) with respect to the uniform
distribution on the sphere, c(S) = E[exp(u^T S u)] for u uniform there. S is symmetric
with eigenvalues s_1 >= ... >= s_d; adding t I to it multiplies c(S) by e^t and changes
nothing else, so only the gaps a_i = s_1 - s_i >= 0 matter.

**The constant**, exact for every d (Kume, Wood, *Saddlepoint approximations for the
Bingham and Fisher-Bingham normalising constants*, Biometrika 92, 2005, for step 1):

1. Write the integral of exp(x^T S x - z |x|^2) over R^d, which is the product of
   (pi/(z - s_i))^(1/2), in polar coordinates: with rho = |x|^2 it is the Laplace
   transform at z of rho^(d/2 - 1) c(rho S), times pi^(d/2)/Gamma(d/2). Invert at
   rho = 1 (as in Kume, Wood 2005), shift z by s_1 and put z = (b + y)/2:

   .. math:: c(S) = e^{s_1} \frac{\Gamma(d/2)}{2 \pi i} \int e^z
             \prod_i (z + a_i)^{-1/2} \, dz
           = e^{s_1 + b/2} \, \Gamma(d/2) \prod_i (2 w_i)^{1/2} \,
             \frac{1}{4 \pi i} \int e^{H(y)/2} \, dy ,

   H(y) = y - sum log(1 + w_i y), w_i = 1/(b + 2 a_i), along a line to the right of all
   singularities.
2. Choose b such that H'(0) = 1 - sum w_i = 0. The sum falls in b; at b = 1 it is >= 1,
   because a_1 = 0, and at b = d it is <= 1, so 1 <= b <= d. This is the equation of the
   best envelope for rejection, too.
3. Deform the line to the path of steepest descent through y = 0, where H(y) = -2 s^2
   with s real. It is symmetric about the real axis, and partial integration leaves

   .. math:: \frac{1}{4 \pi i} \int e^{H(y)/2} \, dy
             = \frac{1}{2\pi} \int_{-\infty}^\infty s \, e^{-s^2} \,
               \mathrm{Im}\, y(s) \, ds

   (the density at 1 of sum w_i chi^2_1), whose integrand is positive and even: nothing
   cancels. Sum it by the trapezoidal rule, following y(s) from node to node by
   Newton's method.

Error. In the upper half-plane Im H' > 0, so H is one-to-one there, and -H/2 maps the
half-plane onto {Im < pi d/2}, slit along half-lines to the left at heights 0, pi/2, pi,
... that end at the values at the saddles. Hence y is analytic in s wherever
|Re s Im s| < pi/4, whatever S and d are, and the rule with step h errs by about
exp(-x^2 - pi^2/(2 h x)) at the worst x: 1e-14 for h = 0.07.

**Small gaps**, up to 1/2, of whose logarithm terms of order 1 would leave no digits.
Comparing powers of rho in step 1 gives the series

.. math:: c(S) = e^{s_1} \sum_n \frac{\Gamma(d/2)}{\Gamma(d/2 + n)} h_n, \qquad
          n h_n = \frac{1}{2} \sum_{j=1}^n h_{n-j} \sum_i (-a_i)^j ,

h_n the coefficients of prod (1 + a_i x)^(-1/2). Terms are at most 2^-n/n!.

**Draws** (Kent, Ganeiber, Mardia, *A new unified approach for the simulation of a wide
class of directional distributions*, Journal of Computational and Graphical Statistics
27, 2018): rejection from the angular central Gaussian distribution.

1. b and w as in step 2 of the constant: sum_i w_i = 1, where w_i = 1/(b + 2 a_i).
2. g ~ N(0, I), and v = z/|z| with z_i = sqrt(w_i) g_i, in the basis of eigenvectors.
3. Accept v with probability exp(d/2 (1 + log r - r)), r = mean(g_i^2) / sum w_i g_i^2.

Proof. Let Omega = diag(1 + 2 a_i/b), t = sum a_i v_i^2, and q = v^T Omega v = 1 + 2t/b.
Step 2 proposes v with density |Omega|^(1/2) q^(-d/2), wanted is one proportional to
e^-t, and their ratio is proportional to e^-t q^(d/2): the exponent of q is **plus**
d/2. (With a minus sign one draws from a density proportional to e^-t q^-d, which
breaks the epsilon of the exponential mechanism.) In t >= 0 the ratio is largest where
-1 + d/(b q) = 0, at q = d/b >= 1, and there equals C = e^(-(d-b)/2) (d/b)^(d/2). So
v is accepted with log-probability

.. math:: -t + \frac{d}{2} \log q - \log C
          = \frac{d - bq}{2} + \frac{d}{2} \log\frac{bq}{d} ,

which is step 3: q = sum g_i^2 / sum b w_i g_i^2, so that r = b q/d. It is never
positive, whatever b <= d; the b of step 1 only makes acceptance likeliest, because
C |Omega|^(-1/2) is least where sum w_i = 1.

**Acceptance.** A proposal is accepted with probability |Omega|^(1/2) E[e^-t] / C, t at
a uniform point, which is the density at 1 of sum w_i chi^2_1 over that of chi^2_d / d:
about (d sum w_i^2)^(-1/2). It is 1 for equal eigenvalues; the least value that we found
is the limit for one dominant direction, about 0.86/sqrt(d): 0.06 at d = 200.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dpaudit.algorithms.shared.bases import Rng, slices
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.stacks import check_symmetric
from dpaudit.validation import check_count

__all__ = ["VectorBingham", "log_bingham_normaliser"]

_BUDGET = 2**18  # numbers in a temporary array
_STEP, _REACH = 0.07, 6.2  # exp(-6.2^2) is 2e-17
_SMALL = 0.5


def log_bingham_normaliser(eigenvalues: ArrayLike) -> Array:
    """Return log E[exp(u^T S u)] for u uniform on the unit sphere of R^d.

    The eigenvalues of S, shape (..., d), are finite, and have any order. What is
    returned is between their mean and the largest; its absolute error is a few rounding
    units of the largest |s_i|, and where they differ by 1/2 also of d log d, and 1e-14.

    Examples
    --------
    In three dimensions, u_1 is uniform on [-1, 1].

    >>> float(log_bingham_normaliser([1.0, 0.0, 0.0]).round(12))
    0.380251052627
    >>> from scipy.integrate import quad
    >>> round(float(np.log(quad(lambda x: np.exp(x**2), 0, 1)[0])), 12)
    0.380251052627
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] == 0 or not np.isfinite(values).all():
        raise InputError(
            "eigenvalues must be finite and of shape (..., d) with d >= 1, "
            f"got {eigenvalues!r}"
        )
    rows = values.reshape(-1, values.shape[-1])
    half = rows.shape[-1] / 2
    b, weights = envelope(rows)
    with np.errstate(under="ignore"):
        log_normaliser = gammaln(half) + half * np.log(2) + b / 2
        log_normaliser += np.log(weights).sum(axis=-1) / 2 + log_mean_density(weights)
        log_normaliser += rows.max(axis=-1)
        small = np.ptp(rows, axis=-1) <= _SMALL
        log_normaliser[small] = _of_small_gaps(rows[small])
    return np.asarray(log_normaliser.reshape(values.shape[:-1]))


def _of_small_gaps(rows: Array) -> Array:
    """Return the same by the series, (m, d) -> (m,); it ends at 2^-15/15!."""
    half, largest = rows.shape[-1] / 2, rows.max(axis=-1)
    gaps = rows - largest[:, np.newaxis]
    sums = (gaps[:, np.newaxis] ** np.arange(15)[:, np.newaxis]).sum(axis=-1) / 2
    terms = np.zeros_like(sums)  # h_n
    terms[:, 0] = 1
    for n in range(1, 15):
        terms[:, n] = (sums[:, n:0:-1] * terms[:, :n]).sum(axis=-1) / n
    weights = np.cumprod(1 / (half + np.arange(14)))
    return np.asarray(largest + np.log1p((terms[:, 1:] * weights).sum(axis=-1)))


def envelope(values: Array) -> tuple[Array, Array]:
    """Return b and w of step 2, shapes (m,) and (m, d), for eigenvalues of (m, d).

    The harmonic mean 1/sum(w_i) grows with b and is concave, so Newton's method for
    the root of 1/sum(w_i) = 1 from b = 1 rises towards it and never passes it.
    """
    gaps = values.max(axis=-1, keepdims=True) - values
    dimension = values.shape[-1]
    b = np.ones((len(values), 1))
    for _ in range(100):
        weights = 1 / (b + 2 * gaps)
        total = weights.sum(axis=-1, keepdims=True)
        step = total * (total - 1) / (weights**2).sum(axis=-1, keepdims=True)
        b = np.clip(b + step, 1, dimension)
        if (np.abs(step) <= 1e-14 * b).all():
            break
    return b[:, 0], 1 / (b + 2 * gaps)


def log_mean_density(weights: Array) -> Array:
    """Return the log-density at 1 of sum w_i chi^2_1, shape (m, d) -> (m,).

    Rows of w are positive and have the sum 1, which is then the mean.
    """
    densities = np.empty(len(weights))
    for rows in slices(len(weights), _BUDGET // weights.shape[-1]):
        densities[rows] = _mean_density(weights[rows])
    return np.log(densities)


def _mean_density(weights: Array) -> Array:
    """Follow the path of steepest descent from node to node."""
    point = np.zeros((len(weights), 1), dtype=np.complex128)
    # At the saddle, H(y) = y^2 sum w_i^2 / 2 + O(y^3) = -2 s^2.
    slope = 2j / np.linalg.norm(weights, axis=-1, keepdims=True)
    before = slope
    integral = np.zeros(len(weights))
    for s in np.arange(_STEP, _REACH, _STEP):
        point = point + _STEP * (1.5 * slope - 0.5 * before)
        for _ in range(50):
            factors = 1 + weights * point
            excess = point - np.log(factors).sum(axis=-1, keepdims=True) + 2 * s**2
            derivative = 1 - (weights / factors).sum(axis=-1, keepdims=True)
            change = excess / derivative
            point = point - change
            # The error that is left is of the order of the square.
            if (np.abs(change) <= 1e-8 * np.abs(point)).all():
                break
        before, slope = slope, -4 * s / derivative
        integral += s * np.exp(-(s**2)) * point[:, 0].imag
    return integral * (_STEP / np.pi)


_TRIES = 3.0  # proposals for a single draw, in units of those expected to be needed


class VectorBingham:
    """The distribution on the unit sphere with density proportional to exp(u^T S u).

    Or one such distribution for each matrix of a stack.

    Parameters
    ----------
    matrix : array_like, shape (d, d) or (m, d, d)
        S: finite and symmetric, of any sign, d >= 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> law = VectorBingham(np.diag([40.0, 1.0, 0.0]))
    >>> np.abs(law.draw(1000, rng=rng)).mean(axis=0).round(1)
    array([1. , 0.1, 0.1])
    >>> round(float(law.acceptance), 2)
    0.54
    """

    def __init__(self, matrix: ArrayLike) -> None:
        matrix = check_symmetric("matrix", matrix)
        if matrix.ndim > 3:
            raise InputError(
                f"matrix must have shape (d, d) or (m, d, d), got {matrix.shape}"
            )
        self.matrix: Array = (matrix + np.swapaxes(matrix, -1, -2)) / 2
        values, vectors = np.linalg.eigh(self.matrix)
        self._vectors = vectors.reshape(-1, *matrix.shape[-2:])
        self._weights = envelope(values.reshape(-1, values.shape[-1]))[1]

    @property
    def acceptance(self) -> Array:
        """The exact probability that a proposal is accepted, shape () or (m,)."""
        half = self.matrix.shape[-1] / 2
        log_ratio = log_mean_density(self._weights)
        log_ratio += gammaln(half) + half - half * np.log(half)
        return np.exp(log_ratio.reshape(self.matrix.shape[:-2]))

    def draw(self, size: int, *, rng: Rng) -> Array:
        """Return independent draws, shape (size, d), or (size, m, d) of a stack."""
        size = check_count("size", size, minimum=0)
        count, dimension = self._weights.shape
        points = np.empty((size * count, dimension))
        for some in slices(len(points), _BUDGET // dimension):
            cells = np.arange(some.start, some.stop)
            points[some] = self._coordinates(cells % count, rng=rng)
        # One product per matrix: (m, size, d) @ (m, d, d).
        points = points.reshape(size, count, dimension).swapaxes(0, 1)
        points = points @ self._vectors.swapaxes(-1, -2)
        return points[0] if self.matrix.ndim == 2 else points.swapaxes(0, 1)

    def _coordinates(self, which: NDArray[np.int_], *, rng: Rng) -> Array:
        """Return a draw for each of the given matrices, in its basis of eigenvectors.

        Each gets several proposals a round, of which the first accepted one counts.
        """
        count, dimension = self._weights.shape
        squared = (self._weights**2).sum(axis=-1).max()
        most = int(np.ceil(_TRIES * np.sqrt(dimension * squared)))
        accepted = np.empty((len(which), dimension))
        pending = np.arange(len(which))
        while len(pending):
            tries = int(np.clip(_BUDGET // (len(pending) * dimension), 1, most))
            weights = self._weights if count == 1 else self._weights[which[pending]]
            normals = rng.standard_normal((len(pending), tries, dimension))
            squares = normals**2
            ratio = squares.mean(axis=-1)
            ratio /= (squares @ weights[..., np.newaxis])[..., 0]
            # Minus the logarithm of a uniform variable is exponential.
            patience = rng.standard_exponential(ratio.shape)
            good = patience >= (dimension / 2) * (ratio - 1 - np.log(ratio))
            done, first = good.any(axis=1), good.argmax(axis=1)
            points = normals[done, first[done]]
            points *= np.sqrt(weights if count == 1 else weights[done])
            points /= np.linalg.norm(points, axis=-1, keepdims=True)
            accepted[pending[done]] = points
            pending = pending[~done]
        return accepted
