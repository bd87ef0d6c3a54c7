r"""Laws of draws whose parameters may hold data, of angles, and of vectors.

**Draws whose parameters may hold data.** All of these are exponential families,
f(y) = h(y) e^(<eta, T(y)> - A(eta)), so that the loss is
<eta - eta', T(y)> - A(eta) + A(eta').

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

**Noise of a vector whose entries hang together: a radius times a direction.** Let u
be uniform on the sphere of R^d, and r > 0 an independent radius with the density
h. Then r u has the density h(|x|)/(S |x|^(d-1)), where |x| is the Euclidean norm, and S
the area of the sphere. If r is a gamma draw of shape d, that is proportional to
e^(-|x|). Let u be uniform in the cube [-1, 1]^d instead, and r a gamma draw of shape
d + 1. Then the density of r u is the integral of h(r) (2r)^(-d) over all r > |x| for
the largest size |x| of an entry; with h(r) = r^d e^(-r)/d! it is e^(-|x|)/(2^d d!), so
proportional to e^(-|x|) as well. (This is the K-norm mechanism: Hardt, Talwar, *On the
geometry of differential privacy*, 2010.)

**The loss** of a shift s, |x - s| - |x|, is at most |s| by the triangle inequality, and
it is |s| where x = -t s for any t >= 0. So its supremum is |s|, both ways round. Where
the scales differ it has none, as |x| grows.

A vector is d draws of one family, whose numbers follow on each other; between those of
two vectors there is a gap. Its law is known only as a whole: of some of its entries, or
of entries with other scales, none is known here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, i0e

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.coded import FIRST, law_of

__all__ = ["TURN", "Angle", "Dirichlet", "JointNoise", "is_turned"]

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


class _Vector:
    """The law of a vector, known as a whole."""

    def log_density(self, u: Array) -> Array:
        """Return what one entry adds to the logarithm of the density: nothing."""
        return np.zeros(np.shape(u))


@dataclass(frozen=True)
class Dirichlet(_Vector):
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


@dataclass(frozen=True)
class JointNoise(_Vector):
    """A vector with a density proportional to e^(-|x|).

    Parameters
    ----------
    entries : int
        d.
    order : float
        2 for the Euclidean norm, infinite for the largest size of an entry.
    """

    entries: int
    order: float

    def norm(self, x: Array) -> Array:
        """Return norms of vectors, shape (..., d) -> (...)."""
        return np.asarray(np.linalg.norm(x, self.order, axis=-1))

    def log_joint(self, u: Array) -> Array:
        """Return logarithms of densities, but for a constant, as `norm` does norms."""
        return -self.norm(u)

    def supremum(self, shift: Array, other: Any) -> float:
        """Return the supremum of the loss against another, shifted by a vector."""
        return float(self.norm(shift)) if self == other else math.inf

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return vectors one after the other, shape (..., m d)."""
        *several, count = np.atleast_1d(size).tolist()
        shape = (*several, count // self.entries, self.entries)
        if self.order == 2:
            u = rng.standard_normal(shape)
            u /= self.norm(u)[..., np.newaxis]
        else:
            u = rng.uniform(-1.0, 1.0, shape)
        radius = rng.gamma(self.entries + (self.order != 2), size=(*shape[:-1], 1))
        return (radius * u).reshape(*several, count)


def is_turned(law: AffineLaw) -> bool:
    """Say whether something is added to an angle in a law, on the line."""
    if law.family.max(initial=0) < FIRST:
        return False
    moved = np.unique(law.family[law.mean[law.first] != 0]).tolist()
    return any(isinstance(law_of(family), Angle) for family in moved)
