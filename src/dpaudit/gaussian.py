r"""The privacy of a unit-variance Gaussian shifted by mu, in closed form.

P = N(mu, 1) and Q = N(0, 1) are the pair that dominates every Gaussian mechanism with
mu = (l2 sensitivity) / (standard deviation). Their hockey-stick divergence is

.. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu)
                             - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu),

increasing in mu and decreasing in epsilon, so that both inverses are found by
bisection and each is returned from the safe side.

With R = Phi/phi and a, b = +-mu/2 - epsilon/mu the second term is phi(a) R(b), of which
a large epsilon takes no digits. For small mu the two terms are nearly equal. There, as
R'(x) = 1 + x R(x),

.. math:: \delta(\epsilon) = \phi(a) \int_b^a (1 + x R(x)) \, dx ,

by Gauss and Legendre's rule, exact to the last digits for so smooth an integrand; and
delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon), by symmetry.

References
----------
Balle, Wang, *Improving the Gaussian mechanism for differential privacy: analytical
calibration and optimal denoising*, ICML 2018, Theorem 8.
Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, Corollary 2.13.
Dwork, Roth, *The algorithmic foundations of differential privacy*, 2014, Theorem A.1.
"""

from collections.abc import Callable
from functools import lru_cache
from math import exp, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr

from dpaudit.validation import check_fraction, check_nonnegative, check_positive

__all__ = ["classical_mu", "gaussian_delta", "gaussian_epsilon", "gaussian_mu"]

_SMALL = 1.0
_NODES, _WEIGHTS = (x[:, np.newaxis] for x in np.polynomial.legendre.leggauss(12))
_TOGETHER = 2**8  # epsilons
# More than the error of `gaussian_delta` and of the bisection: as a share of mu, of
# epsilon, and where epsilon is about 0 of delta. What `gaussian_mu` takes off is more
# than what `gaussian_epsilon` adds, so epsilons that are read back do not grow: with R
# of the module docstring, mu phi(a) 8e-13 > phi(a) R(b) (4e-13 epsilon + 1e-14 delta),
# as R(b) <= 1/|b| <= mu/epsilon, R(b) < 1.3 and delta < 0.4 mu.
_MU_MARGIN, _EPSILON_MARGIN, _DELTA_MARGIN = 1e-12, 2e-13, 1e-14


def gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest delta at which N(mu, 1) against N(0, 1) is (epsilon, delta).

    Parameters
    ----------
    epsilon : array_like
        Privacy losses; negative values are allowed (the divergence is symmetric).
    mu : array_like
        Shifts in standard deviations, >= 0. Broadcast against `epsilon`.

    Returns
    -------
    ndarray
        Values in [0, 1], with a relative error below 1e-11 down to 1e-300.

    Examples
    --------
    >>> float(gaussian_delta(1.0, 1.0).round(6))
    0.126937
    """
    epsilon, mu = np.broadcast_arrays(
        np.asarray(epsilon, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    )
    shifted = mu > 0
    size, safe = np.abs(epsilon), np.where(shifted, mu, 1.0)
    with np.errstate(under="ignore", over="ignore"):
        a, b = safe / 2 - size / safe, -safe / 2 - size / safe
        density, tail = np.exp(-a * a / 2) / 2, erfcx(-b / sqrt(2))
        near = density * (erfcx(-np.minimum(a, 0) / sqrt(2)) - tail)
        delta = np.where(a < 0, near, ndtr(a) - density * tail)
        small = shifted & (mu < _SMALL)
        if small.any():
            delta[small] = _small_delta(size[small], mu[small])
        delta = np.where(shifted, delta, 0.0)
        back = -np.expm1(-size) + np.exp(-size) * delta
    return np.asarray(np.where(epsilon >= 0, delta, back), dtype=np.float64)


def _small_delta(size: NDArray[np.float64], mu: NDArray[np.float64]) -> Any:
    """Return `gaussian_delta` for 0 < mu < 1, shape (n,); see the module docstring."""
    with np.errstate(over="ignore", under="ignore"):
        middle = -size / mu
        integral = np.empty_like(mu)
        for first in range(0, len(mu), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            x = np.maximum(middle[some] + _NODES * mu[some] / 2, -1e9)
            terms = _WEIGHTS * (1 + x * sqrt(pi / 2) * erfcx(-x / sqrt(2)))
            # One node after the other: the same digits for arrays of any shape.
            integral[some] = np.add.accumulate(terms)[-1]
        density = np.exp(-((middle + mu / 2) ** 2) / 2) / sqrt(2 * pi)
        return density * mu / 2 * np.maximum(integral, 0.0)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the smallest epsilon >= 0 at which the pair is (epsilon, delta).

    The returned value errs upwards, by some parts in 1e13 and 1e-14: the exact delta
    there is <= `delta`. It is <= e for the mu that `gaussian_mu` has for e.

    Examples
    --------
    >>> round(gaussian_epsilon(1e-5, 1.0), 6)
    4.377178
    """
    delta = check_fraction("delta", delta)
    mu = check_nonnegative("mu", mu)
    return _epsilon_of(delta, mu)


@lru_cache(maxsize=1024)
def _epsilon_of(delta: float, mu: float) -> float:
    if not _exceeds(0.0, mu, delta):
        return 0.0
    keeps = _bisect(lambda epsilon: not _exceeds(epsilon, mu, delta))
    return keeps * (1 + _EPSILON_MARGIN) + _DELTA_MARGIN * delta


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu whose pair is (epsilon, delta): analytic calibration.

    The returned value errs downwards, by some parts in 1e12: the exact delta there is
    <= `delta`. Noise of standard deviation sensitivity / mu is private.

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-5), 6)
    0.268051
    """
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta)
    return _mu_of(epsilon, delta)


@lru_cache(maxsize=1024)  # most mechanisms are built at a few privacy parameters
def _mu_of(epsilon: float, delta: float) -> float:
    return _bisect(lambda mu: _exceeds(epsilon, mu, delta)) * (1 - _MU_MARGIN)


def _exceeds(epsilon: float, mu: float, delta: float) -> bool:
    """Say whether the pair has more than delta, or seems to in the last digit."""
    if delta < 0.5 or mu == 0:
        return float(gaussian_delta(epsilon, mu)) >= delta
    # By what is left to 1, Phi(-a) + phi(a) R(b), of which a delta has no digits.
    below, beyond = epsilon / mu - mu / 2, (epsilon / mu + mu / 2) / sqrt(2)
    other = exp(-below * below / 2) * erfcx(beyond) / 2
    return float(ndtr(below) + other) <= 1 - delta


def classical_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the classical calibration, epsilon/sqrt(2 log(1.25/delta)).

    Its pair is (epsilon, delta) for epsilon < 1, with room to spare; it is not for
    large epsilon. `gaussian_mu` is exact.

    Examples
    --------
    >>> round(classical_mu(1.0, 1e-5), 6)
    0.206407
    """
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta)
    return epsilon / sqrt(2 * log(1.25 / delta))


def _bisect(reached: Callable[[float], bool]) -> float:
    """Return the point where a predicate, false at 0, turns (and stays) true."""
    high = 1.0
    while not reached(high):
        high *= 2
    low = 0.0 if high == 1.0 else high / 2
    while high - low > 2e-13 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
