r"""Laws of draws whose parameters may hold data, and of angles.

All of these are exponential families, f(y) = h(y) e^(<eta, T(y)> - A(eta)), so that the
loss is <eta - eta', T(y)> - A(eta) + A(eta').

- von Mises, mu and kappa: T(y) = (cos y, sin y), eta = kappa (cos mu, sin mu), and
  A = log(2 pi I_0(kappa)). T(y) is any unit vector; so the suprema of the loss are
  \|eta - eta'\| - A(eta) + A(eta') and \|eta - eta'\| + A(eta) - A(eta').
- Dirichlet, alpha: T(y) = log y, and A = sum_i log Gamma(alpha_i) - log Gamma(sum_i
  alpha_i). As log y has no bound, the loss has none where the parameters differ.
  (Independent gamma draws of these shapes, divided by their sum, have this law.)

As a number on the line an angle lies in [-pi, pi], or in [0, 2 pi) as Python has it,
and a shift of it has no finite loss. Modulo the circle, x + Z with a von Mises draw Z
of mean 0 is a draw of mean x. So code that looks at x + Z on the line, to take a cosine
of it, say, may see no more than that, and is not followed.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, i0e

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.coded import FIRST, law_of

__all__ = ["TURN", "Angle", "Dirichlet", "is_turned"]

TURN = 2 * math.pi
_LEAST = 1e-300  # of a number that is positive, and may be too small to be told from 0
_ROUNDED = 1e-12  # relative: what rounding may have added to a supremum
_OFF = 1e-9  # of a sum that is 1, of numbers that are 0


@dataclass(frozen=True)
class Angle:
    """A von Mises draw, as a number.

    Parameters
    ----------
    mu, kappa : float
    low : float
        It lies in [low, low + 2 pi].
    """

    mu: float
    kappa: float
    low: float = -math.pi

    @property
    def jumps(self) -> Array:
        """Where the density jumps: where it ends."""
        return np.array([self.low, self.low + TURN])

    def log_density(self, u: Array) -> Array:
        """Return the logarithm of its density."""
        log = self.kappa * (np.cos(u - self.mu) - 1) - math.log(TURN * i0e(self.kappa))
        inside = (u >= self.low) & (u <= self.low + TURN)
        return np.asarray(np.where(inside, log, -np.inf))

    def suprema(self, shift: float, other: Any = None) -> tuple[float, float]:
        """Return the suprema of the loss against another, shifted, and back."""
        other = self if other is None else other
        if shift or not isinstance(other, Angle) or other.low != self.low:
            return math.inf, math.inf
        gap = abs(
            self.kappa * np.exp(1j * self.mu) - other.kappa * np.exp(1j * other.mu)
        )
        level = math.log(i0e(other.kappa) / i0e(self.kappa)) + other.kappa - self.kappa
        size = self.kappa * (1 + abs(self.mu)) + other.kappa * (1 + abs(other.mu))
        gap -= _ROUNDED * size
        return max(0.0, gap + level), max(0.0, gap - level)

    def moves(self, other: Any) -> float | None:
        """Return how far its mean is moved, None if something else differs."""
        if not isinstance(other, Angle) or other.low != self.low:
            return None
        turned = abs(math.remainder(self.mu - other.mu, TURN))
        return turned if math.isclose(self.kappa, other.kappa, rel_tol=1e-9) else None

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent draws."""
        drawn = rng.vonmises(self.mu, self.kappa, size)
        return np.asarray(drawn if self.low else drawn % TURN)


@dataclass(frozen=True)
class Dirichlet:
    """A vector of positive numbers that add up to 1.

    Parameters
    ----------
    alpha : tuple of float
        Where it is 0, the number is.
    """

    alpha: tuple[float, ...]

    @property
    def entries(self) -> int:
        """How many numbers."""
        return len(self.alpha)

    def log_density(self, u: Array) -> Array:
        """Return what one entry adds to the logarithm of the density: nothing."""
        return np.zeros(np.shape(u))

    def log_joint(self, u: Array) -> Array:
        """Return logarithms of densities of vectors, shape (..., d) -> (...)."""
        alpha = np.array(self.alpha)
        some = alpha > 0
        log = (alpha - 1)[some] * np.log(np.maximum(u[..., some], _LEAST))
        level = gammaln(alpha.sum()) - gammaln(alpha[some]).sum()
        inside = (u >= -_OFF).all(axis=-1) & (u[..., ~some] <= _OFF).all(axis=-1)
        inside &= np.abs(u.sum(axis=-1) - 1) <= _OFF
        return np.asarray(np.where(inside, log.sum(axis=-1) + level, -np.inf))

    def supremum(self, shift: Array, other: Any) -> float:
        """Return the supremum of the loss against another, shifted by a vector."""
        return 0.0 if self == other and not np.any(shift) else math.inf

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return vectors one after the other, shape (..., m d)."""
        *several, count = np.atleast_1d(size).tolist()
        drawn = rng.dirichlet(self.alpha, (*several, count // self.entries))
        return np.asarray(drawn.reshape(*several, count))


def is_turned(law: AffineLaw) -> bool:
    """Say whether something is added to an angle in a law, on the line."""
    if law.family.max(initial=0) < FIRST:
        return False
    moved = np.unique(law.family[law.mean[law.first] != 0]).tolist()
    return any(isinstance(law_of(family), Angle) for family in moved)
