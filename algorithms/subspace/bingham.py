r"""The vector Bingham distribution: exact draws.

A unit vector u in R^d has the density exp(u^T S u) / c(S) with respect to the uniform
distribution on the sphere; S is symmetric with eigenvalues s_1 >= ... >= s_d. Adding
t I to S multiplies c(S) by e^t and changes nothing else, so only the gaps
a_i = s_1 - s_i >= 0 matter. c(S): `dpaudit.algorithms.subspace.bingham_normaliser`.

**Draws** (Kent, Ganeiber, Mardia 2018): rejection from the angular central Gaussian
distribution.

1. b in [1, d] solves sum_i w_i = 1, where w_i = 1/(b + 2 a_i). (The sum falls in b; at
   b = 1 it is >= 1, because a_1 = 0, and at b = d it is <= 1.)
2. g ~ N(0, I), and v = z/|z| with z_i = sqrt(w_i) g_i, in the basis of eigenvectors.
3. Accept v with probability exp(d/2 (1 + log r - r)), r = mean(g_i^2) / sum w_i g_i^2.

Proof. Let Omega = diag(1 + 2 a_i/b), t = sum a_i v_i^2, and q = v^T Omega v = 1 + 2t/b.
Step 2 proposes v with density |Omega|^(1/2) q^(-d/2), wanted is one proportional to
e^-t, and their ratio is proportional to e^-t q^(d/2): the exponent of q is **plus**
d/2. (With a minus sign one draws from a density proportional to e^-t q^-d, which
breaks the epsilon of the exponential mechanism.) In t >= 0 the ratio is largest where
-1 + d/(b q) = 0, at q = d/b >= 1, and there equals C = e^(-(d-b)/2) (d/b)^(d/2). So
v is accepted with log-probability

.. math:: -t + \frac d2 \log q - \log C = \frac{d - bq}2 + \frac d2 \log\frac{bq}d ,

which is step 3: q = sum g_i^2 / sum b w_i g_i^2, so that r = b q/d. It is never
positive, whatever b <= d; the b of step 1 only makes acceptance likeliest, because
C |Omega|^(-1/2) is least where sum w_i = 1.

**Acceptance.** A proposal is accepted with probability |Omega|^(1/2) E[e^-t] / C, t at
a uniform point, which is the density at 1 of sum w_i chi^2_1 over that of chi^2_d / d:
about (d sum w_i^2)^(-1/2). It is 1 for equal eigenvalues; the least value that we found
is the limit for one dominant direction, about 0.86/sqrt(d): 0.06 at d = 200.

References
----------
Kent, Ganeiber, Mardia, *A new unified approach for the simulation of a wide class of
directional distributions*, Journal of Computational and Graphical Statistics 27, 2018.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dpaudit.algorithms.subspace.bingham_normaliser import (
    envelope,
    log_bingham_normaliser,
    log_mean_density,
)
from dpaudit.errors import InputError
from dpaudit.stacks import check_symmetric
from dpaudit.validation import check_count

__all__ = ["VectorBingham", "draw_vector_bingham"]

Array = NDArray[np.float64]

_BUDGET = 2**18  # numbers in a temporary array
_TRIES = 3.0  # proposals for a single draw, in units of those expected to be needed


@dataclass(frozen=True, eq=False)
class VectorBingham:
    """The distribution on the unit sphere with density proportional to exp(u^T S u).

    Or one such distribution for each matrix of a stack.

    Parameters
    ----------
    matrix : array_like, shape (d, d) or (m, d, d)
        S: finite and symmetric, of any sign, d >= 1.

    Raises
    ------
    InputError
        If `matrix` is something else.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> law = VectorBingham(np.diag([40.0, 1.0, 0.0]))
    >>> np.abs(law.draw(1000, rng=rng)).mean(axis=0).round(1)
    array([1. , 0.1, 0.1])
    >>> round(float(law.acceptance), 2)
    0.54
    """

    matrix: Array
    _values: Array = field(init=False, repr=False)
    _vectors: Array = field(init=False, repr=False)
    _weights: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = check_symmetric("matrix", self.matrix)
        if matrix.ndim > 3:
            raise InputError(
                f"matrix must have shape (d, d) or (m, d, d), got {matrix.shape}"
            )
        matrix = (matrix + np.swapaxes(matrix, -1, -2)) / 2
        values, vectors = np.linalg.eigh(matrix)
        _, weights = envelope(values.reshape(-1, values.shape[-1]))
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_vectors", vectors.reshape(-1, *matrix.shape[-2:]))
        object.__setattr__(self, "_weights", weights)

    @property
    def acceptance(self) -> Array:
        """The exact probability that a proposal is accepted, shape () or (m,)."""
        return np.exp(self.log_acceptance)

    @cached_property
    def log_acceptance(self) -> Array:
        """The logarithm of `acceptance`, shape () or (m,)."""
        half = self.matrix.shape[-1] / 2
        log_ratio = log_mean_density(self._weights)
        log_ratio += gammaln(half) + half - half * np.log(half)
        return log_ratio.reshape(self.matrix.shape[:-2])

    @cached_property
    def log_normaliser(self) -> Array:
        """The logarithm of c(S), shape () or (m,); see `log_bingham_normaliser`."""
        return log_bingham_normaliser(self._values)

    def log_density(self, points: ArrayLike) -> Array:
        """Return u^T S u: the log-density without its constant `log_normaliser`.

        Parameters
        ----------
        points : array_like, shape (..., d) or (..., m, d)
            Unit vectors u.

        Returns
        -------
        ndarray, shape (...) or (..., m)
        """
        u = np.asarray(points, dtype=np.float64)
        image = (self.matrix @ u[..., np.newaxis])[..., 0]
        return np.asarray((u * image).sum(axis=-1))

    def draw(self, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent draws, shape (size, d), or (size, m, d) of a stack."""
        size = check_count("size", size, minimum=0)
        count, dimension = self._weights.shape
        points = np.empty((size * count, dimension))
        chunk = max(1, _BUDGET // dimension)
        for start in range(0, len(points), chunk):
            cells = np.arange(start, min(start + chunk, len(points)))
            points[cells] = self._coordinates(cells % count, rng=rng)
        # One product per matrix: (m, size, d) @ (m, d, d).
        points = points.reshape(size, count, dimension).swapaxes(0, 1)
        points = points @ self._vectors.swapaxes(-1, -2)
        return points[0] if self.matrix.ndim == 2 else points.swapaxes(0, 1)

    def _coordinates(
        self, which: NDArray[np.int_], *, rng: np.random.Generator
    ) -> Array:
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


def draw_vector_bingham(matrices: ArrayLike, *, rng: np.random.Generator) -> Array:
    """Return one exact draw for each matrix, shape (m, d, d) -> (m, d).

    Raises
    ------
    InputError
        If `matrices` is not a stack of finite symmetric matrices.

    Examples
    --------
    >>> matrices = np.array([np.diag([1e6, 0.0]), np.diag([0.0, 1e6])])
    >>> np.abs(draw_vector_bingham(matrices, rng=np.random.default_rng(0))).round(1)
    array([[1., 0.],
           [0., 1.]])
    """
    law = VectorBingham(np.asarray(matrices))
    if law.matrix.ndim != 3:
        raise InputError(
            f"matrices must have shape (m, d, d), got shape {law.matrix.shape}"
        )
    return law.draw(1, rng=rng)[0]
