r"""Noise of a vector whose entries hang together: a radius times a direction.

Let u be uniform on the sphere of R^d, and r > 0 an independent radius with the density
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

from dpaudit.arrays import Array

__all__ = ["JointNoise"]


@dataclass(frozen=True)
class JointNoise:
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

    def log_density(self, u: Array) -> Array:
        """Return what one entry adds to the logarithm of the density: nothing."""
        return np.zeros(np.shape(u))

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
