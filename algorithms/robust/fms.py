r"""FMS, the fast median subspace: reweighted PCA for GLAD, a baseline without privacy.

Source: Lerman, Maunu, *Fast, robust and non-convex subspace recovery*, Information and
Inference 7, 2018, Algorithm 1, with p = 1 and spherised rows.

1. V_0: the PCA subspace, or a random one.
2. w_i = 1/max(||(I - V V^T) x_i||, floor); V: the top-r eigenvectors of
   sum_i w_i x_i x_i^T, which minimise sum_i w_i ||(I - V V^T) x_i||^2.
3. Repeat until V moves no more.

GLAD is not convex, so where it ends may depend on where it starts. The least squares
problem is solved by a singular value decomposition of the rows times sqrt(w_i), so rows
may be longer than they are many.
"""

from dataclasses import dataclass

import numpy as np

from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.reweighted import Reweighted

__all__ = ["FastMedianSubspace"]

_STILL = 1e-13  # sine of the largest angle between turns


@dataclass(frozen=True, kw_only=True)
class FastMedianSubspace(Reweighted):
    """FMS, not private; the release is a basis of shape (D, r).

    Parameters
    ----------
    n_components, claim, start, iterations, floor
        See `Reweighted`.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [-2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> median = FastMedianSubspace(n_components=1)
    >>> np.abs(median.release(rows, rng=np.random.default_rng(0))).round(9)
    array([[1.],
           [0.]])
    """

    def _solved(self, rows: Array, start: Array) -> Array:
        basis = start
        for _ in range(self.iterations):
            weights = self.weights(rows - (rows @ basis) @ basis.T)
            before, basis = basis, _principal(rows, weights, basis)
            moved = basis - before @ (before.T @ basis)
            if np.linalg.norm(moved, 2) < _STILL:
                break
        return basis


def _principal(rows: Array, weights: Array, basis: Array) -> Array:
    """Return the top-r right singular vectors of rows times sqrt(w)."""
    scaled = rows * np.sqrt(weights / weights.max())[:, np.newaxis]
    r = basis.shape[1]
    # The singular values are of very different sizes near the end: no Gram matrix.
    top = np.linalg.svd(scaled, full_matrices=False).Vh[:r].T
    if top.shape[1] < r:
        # Fewer rows than components: the old basis fills up.
        top = np.linalg.qr(np.hstack([top, basis])).Q[:, :r]
    return np.asarray(top)
