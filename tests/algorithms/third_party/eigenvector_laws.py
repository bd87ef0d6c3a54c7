"""The law of an eigenvector sampler in two dimensions, by quadrature.

Shared by the tests of two libraries whose samplers compute the same. With eigenvalues
l and l - gap, sensitivity 1 and u = (cos a, sin a), t = (epsilon/4) gap sin(a)^2 is the
exponent of the law wanted, and b the constant of the envelope: 1/b + 1/(b + 2 c) = 1
for c = (epsilon/4) gap.
"""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

DIMENSION = 2
EPSILON = 1.0
WANTED, DIVIDED = 0, -DIMENSION
"""Powers of 1 + 2 t/b beside e^-t in a density.

The second is that of a sampler that divides by the envelope's (1 + 2 t/b)^(d/2) where
it must multiply.
"""

_DIAGONAL = 20, 8
_STEEPNESS = EPSILON / 4 * (_DIAGONAL[0] - _DIAGONAL[1])
_FALSE_ALARM = 1e-10


def rows() -> np.ndarray:
    """Return unit rows with the second-moment matrix diag(20, 8)."""
    return np.repeat(np.eye(DIMENSION), _DIAGONAL, axis=0)


def mean_power(exponent: int, power: int) -> float:
    """Return E[u_2^exponent] under the density e^-t (1 + 2 t/b)^power."""
    b = brentq(lambda b: 1 / b + 1 / (b + 2 * _STEEPNESS) - 1, 1, 2)

    def density(angle: float) -> float:
        t = _STEEPNESS * np.sin(angle) ** 2
        return float(np.exp(-t) * (1 + 2 * t / b) ** power)

    total, _ = quad(density, 0, np.pi)
    moment, _ = quad(lambda a: np.sin(a) ** exponent * density(a), 0, np.pi)
    return moment / total


def have_the_law(vectors: np.ndarray, power: int) -> bool:
    """Say whether the mean of u_2^2 is near its expectation under that law.

    False with probability at most 1e-10 if it is the law, by Bernstein's inequality:
    the mean of n independent variables in [0, 1] of variance v is off by x or more with
    probability at most 2 exp(-n x^2/(2 v + 2 x/3)).
    """
    expected = mean_power(2, power)
    variance = mean_power(4, power) - expected**2
    rate = np.log(2 / _FALSE_ALARM) / len(vectors)
    allowed = rate / 3 + np.sqrt((rate / 3) ** 2 + 2 * rate * variance)
    return bool(abs(np.mean(vectors[:, 1] ** 2) - expected) < allowed)
