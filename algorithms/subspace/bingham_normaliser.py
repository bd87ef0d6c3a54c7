r"""The normalising constant of the vector Bingham distribution, exact for every d.

c(S) = E[exp(u^T S u)] for u uniform on the unit sphere of R^d. S is symmetric with
eigenvalues s_1 >= ... >= s_d and gaps a_i = s_1 - s_i >= 0.

1. Write the integral of exp(x^T S x - z |x|^2) over R^d, which is the product of
   (pi/(z - s_i))^(1/2), in polar coordinates: with rho = |x|^2 it is the Laplace
   transform at z of rho^(d/2 - 1) c(rho S), times pi^(d/2)/Gamma(d/2). Invert at
   rho = 1 (as in Kume, Wood 2005), shift z by s_1 and put z = (b + y)/2:

   .. math:: c(S) = e^{s_1} \frac{\Gamma(d/2)}{2 \pi i} \int e^z
             \prod_i (z + a_i)^{-1/2} \, dz
           = e^{s_1 + b/2} \, \Gamma(d/2) \prod_i (2 w_i)^{1/2} \,
             \frac1{4 \pi i} \int e^{H(y)/2} \, dy ,

   H(y) = y - sum log(1 + w_i y), w_i = 1/(b + 2 a_i), along a line to the right of all
   singularities.
2. Choose b such that H'(0) = 1 - sum w_i = 0. The sum falls in b; at b = 1 it is >= 1,
   because a_1 = 0, and at b = d it is <= 1, so 1 <= b <= d. This is the equation of the
   best envelope for rejection, too: `dpaudit.algorithms.subspace.bingham`.
3. Deform the line to the path of steepest descent through y = 0, where H(y) = -2 s^2
   with s real. It is symmetric about the real axis, and partial integration leaves

   .. math:: \frac1{4 \pi i} \int e^{H(y)/2} \, dy
             = \frac1{2\pi} \int_{-\infty}^\infty s \, e^{-s^2} \,
               \mathrm{Im}\, y(s) \, ds

   (the density at 1 of sum w_i chi^2_1), whose integrand is positive and even: nothing
   cancels. Sum it by the trapezoidal rule, following y(s) from node to node by
   Newton's method.

Error. In the upper half-plane Im H' > 0, so H is one-to-one there, and -H/2 maps the
half-plane onto {Im < pi d/2}, slit along half-lines to the left at heights 0, pi/2, pi,
... that end at the values at the saddles. Hence y is analytic in s wherever
|Re s Im s| < pi/4, whatever S and d are, and the rule with step h errs by about
exp(-x^2 - pi^2/(2 h x)) at the worst x: 1e-14 for h = 0.07.

References
----------
Kume, Wood, *Saddlepoint approximations for the Bingham and Fisher-Bingham normalising
constants*, Biometrika 92, 2005.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dpaudit.errors import InputError

__all__ = ["envelope", "log_bingham_normaliser", "log_mean_density"]

Array = NDArray[np.float64]

_BUDGET = 2**18  # numbers in a temporary array
_STEP, _REACH = 0.07, 6.2  # exp(-6.2^2) is 2e-17


def log_bingham_normaliser(eigenvalues: ArrayLike) -> Array:
    """Return log E[exp(u^T S u)] for u uniform on the unit sphere of R^d.

    Parameters
    ----------
    eigenvalues : array_like, shape (..., d)
        Those of S, in any order.

    Returns
    -------
    ndarray, shape (...)
        Between the mean and the largest of the eigenvalues. The absolute error is
        about 1e-14, and a few rounding units of d log d and of the largest |s_i|.

    Raises
    ------
    InputError
        If `eigenvalues` is not finite or d is 0.

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
    return np.asarray(log_normaliser.reshape(values.shape[:-1]))


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
    chunk = max(1, _BUDGET // weights.shape[-1])
    densities = np.empty(len(weights))
    for start in range(0, len(weights), chunk):
        rows = slice(start, start + chunk)
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
