r"""The two laws of a count, as the certificate needs them.

A `Law` describes the count X of an event given one parameter theta (a probability, or
a rate). Written as an exponential family, P_theta(X = x) is proportional to
exp(b(x) + x eta(theta)), so one base measure b serves all parameters.

For complex theta the formula still defines weights w_theta(x), analytic in theta, and
`Law.log_growth` is the logarithm of sum_x |w_theta(x)|:

- binomial: sum_x C(n, x) |theta|^x |1 - theta|^(n-x) = (|theta| + |1 - theta|)^n;
- Poisson of mean s theta: exp(s (|theta| - Re theta)).
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, gammainccinv, gammaincinv, ndtri

from dpaudit.arrays import Array

__all__ = [
    "BinomialCount",
    "Law",
    "PoissonCount",
    "lower_proportion",
    "upper_proportion",
]

Integers: TypeAlias = NDArray[np.int64]

# The smallest probability or rate that is told from zero; at n <= 1e10 releases the
# difference is far below the rounding that the certificate allows for.
_LEAST = 1e-300

# Rates above one occur among Poisson counts. Cut off here, short of where probits and
# log-odds are infinite, they leave an ordering of the outcomes monotone.
_NEARLY_ONE = 1 - 1e-9

# Counts beyond which SciPy ends a series early, and the probability is thrice the tail.
_MANY = 100_000


def lower_proportion(count: int, total: int, alpha: float) -> float:
    """Return Clopper and Pearson's lower limit, exceeded with probability <= alpha."""
    return float(betaincinv(count, total - count + 1, alpha)) if count else 0.0


def upper_proportion(count: int, total: int, alpha: float) -> float:
    """Return Clopper and Pearson's upper limit, undercut with probability <= alpha."""
    # 1 minus the limit of the misses would lose the digits of a small limit.
    if count == total:
        return 1.0
    return float(betainccinv(count + 1, total - count, alpha))


class Law(Protocol):
    """The law of a count, indexed by a parameter theta in an interval."""

    def interval(self, count: int, tail: float) -> tuple[float, float]:
        """Return exact confidence limits for theta, each missed with prob. <= tail."""
        ...

    def window(self, low: float, high: float, tail: float) -> tuple[int, int]:
        """Return counts between which X lies, up to `tail` on each side."""
        ...

    def log_base(self, counts: Integers) -> Array:
        """Return b(x) up to a constant, for consecutive counts."""
        ...

    def natural(self, theta: Array) -> Array:
        """Return eta(theta)."""
        ...

    def mean(self, theta: Array) -> Array:
        """Return E X."""
        ...

    def log_growth(self, theta: NDArray[np.complex128]) -> Array:
        """Return log sum_x |w_theta(x)| for complex theta."""
        ...

    def wilson(self, counts: Integers | Array, z: float) -> tuple[Array, Array, Array]:
        """Return centre, lower and upper limit of the score interval for theta.

        All three are non-decreasing in the count.
        """
        ...


@dataclass(frozen=True)
class BinomialCount:
    """X ~ Binomial(n, theta)."""

    n: int

    def interval(self, count: int, tail: float) -> tuple[float, float]:
        return (
            lower_proportion(count, self.n, tail),
            upper_proportion(count, self.n, tail),
        )

    def window(self, low: float, high: float, tail: float) -> tuple[int, int]:
        middle = min(max(0.5, low), high)
        reach = _bernstein(self.n * middle * (1 - middle), tail)
        first = max(0, math.floor(self.n * low - reach))
        return first, min(self.n, math.ceil(self.n * high + reach))

    def log_base(self, counts: Integers) -> Array:
        steps = np.log((self.n - counts[:-1]) / counts[1:])
        return np.concatenate([[0.0], np.cumsum(steps)])

    def natural(self, theta: Array) -> Array:
        theta = np.clip(theta, _LEAST, 1 - 1e-16)
        return np.log(theta) - np.log1p(-theta)

    def mean(self, theta: Array) -> Array:
        return self.n * theta

    def log_growth(self, theta: NDArray[np.complex128]) -> Array:
        return self.n * np.log(np.maximum(np.abs(theta) + np.abs(1 - theta), 1.0))

    def wilson(self, counts: Integers | Array, z: float) -> tuple[Array, Array, Array]:
        k, n = np.asarray(counts, dtype=np.float64), self.n
        centre = (k + z * z / 2) / (n + z * z)
        half = z * np.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
        return centre, np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@dataclass(frozen=True)
class PoissonCount:
    """X ~ Poisson(scale theta), where theta is a probability."""

    scale: float

    def interval(self, count: int, tail: float) -> tuple[float, float]:
        low = _least_mean(count, tail) / self.scale
        high = float(gammainccinv(count + 1, tail)) / self.scale
        return min(low, 1.0), min(high, 1.0)

    def window(self, low: float, high: float, tail: float) -> tuple[int, int]:
        reach = _bernstein(self.scale * high, tail)
        first = max(0, math.floor(self.scale * low - reach))
        return first, math.ceil(self.scale * high + reach)

    def log_base(self, counts: Integers) -> Array:
        return np.concatenate([[0.0], np.cumsum(-np.log(counts[1:]))])

    def natural(self, theta: Array) -> Array:
        return np.log(self.scale * np.maximum(theta, _LEAST))

    def mean(self, theta: Array) -> Array:
        return self.scale * theta

    def log_growth(self, theta: NDArray[np.complex128]) -> Array:
        return self.scale * (np.abs(theta) - theta.real)

    def wilson(self, counts: Integers | Array, z: float) -> tuple[Array, Array, Array]:
        k = np.asarray(counts, dtype=np.float64)
        centre, half = k + z * z / 2, z * np.sqrt(k + z * z / 4)
        low, middle, high = (
            np.clip(limit / self.scale, 0.0, _NEARLY_ONE)
            for limit in (centre - half, centre, centre + half)
        )
        return middle, low, high


def _least_mean(count: int, tail: float) -> float:
    """Return a Poisson mean at which so large a count has probability <= tail.

    For large counts from a bound on it (Zubkov, Serov, *A complete proof of universal
    inequalities for the distribution function of the binomial law*, Theory Probab.
    Appl. 57, 2013), which is less by one count at most: with m = count - 1 and the mean
    m (1 + x), x < 0, it is Phi(-(2 m (x - log(1 + x)))^(1/2)).
    """
    if count <= _MANY:
        return float(gammaincinv(count, tail)) if count else 0.0
    m, square = count - 1, float(ndtri(min(tail, 0.5))) ** 2
    x = -math.sqrt(square / m) if square else 0.0
    for _ in range(8 if square else 0):
        x -= (x - math.log1p(x) - square / (2 * m)) * (1 + x) / x
    return m * (1 + x)


def _bernstein(variance: float, tail: float) -> float:
    """Return t with P(X - E X >= t) <= tail, and the same below (Bernstein)."""
    nats: Any = -math.log(tail)
    return float(nats / 3 + math.sqrt(nats * nats / 9 + 2 * nats * variance))
