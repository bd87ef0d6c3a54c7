r"""The leading eigenvectors of one noisy prefix after the other, with warm starts.

Exact: LAPACK's `dsyevr`, for the k + 1 largest eigenvalues; this is the oracle, and it
is what a tolerance of 0 gives.

Warm: consecutive prefixes have leading subspaces close to each other where the k-th
eigenvalue stands out, so the last basis is passed through a Chebyshev polynomial of the
matrix that is small on the other eigenvalues (as last seen), followed by a
Rayleigh-Ritz step. The result V, with Ritz values theta_1 >= ... >= theta_k and the
residual R = C V - V diag(theta), is taken only with a proof that it will do:

With D the matrix C restricted to the complement of span V, C is diag(theta) and D but
for an off-diagonal block of norm ||R||. If a Cholesky decomposition shows that
D <= theta_k - g with g = ||R||_F (1 + 1/tol), then by Weyl the eigenvalues of C beyond
the k-th are at most theta_k - g + ||R||_F = theta_k - ||R||_F/tol, and by the
Davis-Kahan sin theta theorem the sines of the angles between span V and the exact
leading subspace have a sum of squares of at most tol^2. So

    | ||V^T x||^2 - ||U^T x||^2 | <= tol ||x||^2    for every x,

U exact: the reward of no step changes by more than tol, nor the regret of m steps by
more than tol m. If there is no proof, which is so where the noise outweighs the gap,
the exact subspace is computed; and after a failure the warm start is left out for a
while, twice as long after each.

What is computed is a function of noisy prefixes: that costs accuracy, not privacy.

References: Davis, Kahan, SIAM J. Numer. Anal. 7, 1970; Zhou, Saad, Tiago, Chelikowsky,
J. Comput. Phys. 219, 2006 (Chebyshev-filtered subspace iteration).
"""

from typing import cast

import numpy as np
from scipy.linalg import get_lapack_funcs

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_fraction

__all__ = ["DEFAULT_TOLERANCE", "LeadingSubspace"]

DEFAULT_TOLERANCE = 1e-4
# Called as they are: around matrices as small as these, the wrappers of NumPy and SciPy
# cost more than the work.
_SYEVR, _SYEV, _GEQRF, _ORGQR, _POTRF = get_lapack_funcs(
    ("syevr", "syev", "geqrf", "orgqr", "potrf"), dtype=np.float64
)
_DEGREE = 5  # of the polynomial
_LONGEST_PAUSE = 63  # steps without a warm start after failures


class LeadingSubspace:
    """Follows the leading k-dimensional subspace of a sequence of matrices.

    The tolerance, in [0, 1), bounds the sine of the largest angle to the exact one;
    with 0 there are no warm starts. How often it was computed is counted.
    """

    def __init__(self, dimension: int, n_components: int, *, tolerance: float) -> None:
        self.dimension = dimension
        self.n_components = n_components
        self.tolerance = check_fraction("tolerance", tolerance, allow_zero=True)
        self.exact_steps = 0
        self._basis = np.eye(dimension, n_components)
        # Lower and upper end of the other eigenvalues; steps left without a warm
        # start, and how many there will be after the next failure.
        self._ends = np.zeros(2)
        self._pause = np.array([1, 1])

    def of(self, matrix: Array) -> Array:
        """Return the basis for a symmetric matrix, (d, d) -> (d, k)."""
        if not self.tolerance or self.n_components == self.dimension:
            return self._exact(matrix)
        if self._pause[0] > 0:
            self._pause[0] -= 1
            return self._exact(matrix)
        found = self._warm(matrix)
        if found is None:
            self._pause[:] = self._pause[1], min(2 * self._pause[1] + 1, _LONGEST_PAUSE)
            return self._exact(matrix)
        self._pause[1] = 1
        self._basis = found
        return found

    def state(self) -> dict[str, Array]:
        """Return all that the next result depends on."""
        return {
            "basis": self._basis.copy(),
            "ends": self._ends.copy(),
            "pause": self._pause.astype(np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go back to a state of the same dimensions."""
        self._basis = _aligned(state["basis"])
        self._ends = np.array(state["ends"], dtype=np.float64)
        self._pause = np.array(state["pause"], dtype=np.int64)

    def _exact(self, matrix: Array) -> Array:
        d, k = matrix.shape[0], self.n_components
        self.exact_steps += 1
        least = max(1, d - k)
        values, vectors, _, _, info = _SYEVR(matrix.T, range="I", il=least, iu=d)
        if info:
            raise InputError(f"matrix has no eigenvalues (LAPACK info {info})")
        found = d - least + 1
        self._basis = _aligned(vectors[:, found - k : found][:, ::-1])
        if k < d:
            # The others are taken to lie symmetrically about their mean.
            mean = (np.trace(matrix) - values[1:found].sum()) / (d - k)
            self._ends[:] = 2 * mean - values[0], values[0]
        return self._basis

    def _warm(self, matrix: Array) -> Array | None:
        """Return a basis with a proof that it will do, or None."""
        low, high = self._ends
        centre, radius = (low + high) / 2, (high - low) / 2
        if not radius > 0:
            return None
        # Chebyshev's recursion, y_(j+1) = 2 x y_j - y_(j-1).
        doubled = matrix * (2 / radius)
        doubled.flat[:: self.dimension + 1] -= 2 * centre / radius
        before, now = self._basis, doubled @ self._basis / 2
        for _ in range(_DEGREE - 1):
            before, now = now, doubled @ now - before
        factor, tau, _, _ = _GEQRF(now)
        frame = _ORGQR(factor, tau)[0]
        image = matrix @ frame
        values, turn, _ = _SYEV(frame.T @ image)
        basis, image = frame @ turn[:, ::-1], image @ turn[:, ::-1]
        values = values[::-1]
        scaled = basis * values
        residual = image - scaled
        defect = float(np.sqrt(np.vdot(residual, residual)))
        floor = values[-1] - defect * (1 + 1 / self.tolerance)
        if not floor > 0:
            return None
        # floor I - (the matrix on the complement): C - V theta V^T - V R^T - R V^T.
        rest = (scaled + residual) @ basis.T
        rest += basis @ residual.T
        rest -= matrix
        rest.flat[:: self.dimension + 1] += floor
        _, failed = _POTRF(rest.T, lower=1, clean=0, overwrite_a=1)
        return None if failed else _aligned(basis)


def _aligned(basis: Array) -> Array:
    """Return a fixed copy, the largest entry of each column positive.

    One order in memory, because BLAS may round by it: a restored basis must give what
    the saved one would have given.
    """
    peaks = np.abs(basis).argmax(axis=0)
    signs = np.sign(basis[peaks, np.arange(basis.shape[1])])
    aligned = cast(Array, np.multiply(basis, signs, order="C"))
    aligned.flags.writeable = False
    return aligned
