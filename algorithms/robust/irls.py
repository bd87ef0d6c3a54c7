r"""IRLS-REAPER: REAPER by reweighted least squares, a baseline without privacy.

Source: Lerman, McCoy, Tropp, Zhang, *Robust computation of linear models by convex
relaxation*, FoCM 2015, Algorithms 4.1 and 4.2.

1. w_i = 1/max(||(I - P) x_i||, floor).
2. P: the minimiser over H of sum_i w_i ||(I - P) x_i||^2 = tr((I - P) C (I - P)),
   C = sum_i w_i x_i x_i^T. With C = U diag(l) U^T, l descending, it is
   U diag(p) U^T with

   .. math:: p_i = \max(1 - \theta/l_i, 0), \quad \textstyle\sum_i p_i = r

   (water-filling: the KKT conditions are l_i (1 - p_i) = theta where p_i > 0, and
   l_i <= theta where p_i = 0). If the k largest are not 0, theta = (k - r)/sum of
   their 1/l_i; the k for which that lies between l_(k + 1) and l_k is the one. If only
   r of the l_i are not 0, theta = 0 and P is their projector.
3. Repeat until the objective falls no more; output the top-r eigenvectors of P.

REAPER is convex, so the start hardly matters: it is the projector of the start's
subspace.
"""

from dataclasses import dataclass

import numpy as np

from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.reweighted import Reweighted
from dpaudit.subspace import top_components

__all__ = ["IterativeReaper", "least_squares_eigenvalues"]

_STILL = 1e-14  # relative fall of the objective
_ZERO = 1e-15  # relative to the largest eigenvalue


@dataclass(frozen=True, kw_only=True)
class IterativeReaper(Reweighted):
    """IRLS-REAPER, not private; the release is a basis of shape (D, r).

    Parameters
    ----------
    n_components, claim, start, iterations, floor
        See `Reweighted`.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [-2.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> iterative = IterativeReaper(n_components=1)
    >>> np.abs(iterative.release(rows, rng=np.random.default_rng(0))).round(6)
    array([[1.],
           [0.]])
    """

    def minimiser(self, rows: Array, start: Array) -> Array:
        """Return the minimiser P of REAPER, shape (D, D).

        Parameters
        ----------
        rows : ndarray, shape (N, D)
            Spherised.
        start : ndarray, shape (D, r)
            Orthonormal columns.
        """
        matrix = start @ start.T
        least = np.inf
        for _ in range(self.iterations):
            weights = self.weights(rows - rows @ matrix)
            moment = (rows.T * (weights / weights.max())) @ rows
            values, vectors = np.linalg.eigh((moment + moment.T) / 2)
            shares = least_squares_eigenvalues(values, self.n_components)
            matrix = (vectors * shares) @ vectors.T
            value = float(np.linalg.norm(rows - rows @ matrix, axis=1).sum())
            if value >= least * (1 - _STILL):
                break
            least = value
        return np.asarray((matrix + matrix.T) / 2)

    def _solved(self, rows: Array, start: Array) -> Array:
        return top_components(self.minimiser(rows, start), self.n_components)


def least_squares_eigenvalues(values: Array, n_components: int) -> Array:
    """Return p that minimises sum l_i (1 - p_i)^2 over 0 <= p <= 1, sum p = r.

    Parameters
    ----------
    values : ndarray, shape (D,)
        l >= 0, up to rounding, in any order.
    n_components : int
        r, from 1 to D.

    Returns
    -------
    ndarray, shape (D,)
        For l of rank less than r, the first places, by size, are 1.

    Examples
    --------
    >>> least_squares_eigenvalues(np.array([4.0, 1.0, 0.0]), 1)
    array([0.8, 0.2, 0. ])
    """
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    positive = int(np.sum(ordered > _ZERO * max(ordered[0], 0.0)))
    shares = np.zeros(len(values))
    if positive <= n_components:
        shares[order[:n_components]] = 1.0
        return shares
    ordered = ordered[:positive]
    numbers = np.arange(n_components + 1, positive + 1)
    inverse = np.cumsum(1 / ordered)[n_components:]
    levels = (numbers - n_components) / inverse
    # The last k whose level is below its own l.
    fits = np.flatnonzero(levels < ordered[n_components:])
    count = n_components if len(fits) == 0 else int(numbers[fits[-1]])
    level = 0.0 if len(fits) == 0 else levels[fits[-1]]
    shares[order[:count]] = 1 - level / ordered[:count]
    return shares
