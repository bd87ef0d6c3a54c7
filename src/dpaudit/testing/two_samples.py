"""Whether two samples of releases are of one law, or of laws with a known loss."""

import numpy as np
from numpy.random import Generator

from dpaudit.arrays import Array

__all__ = ["broken_change_of_measure", "difference_of_laws"]

_COMPARED = 10_000  # beyond, the exact p-value takes long and the power hardly grows
_PROJECTIONS = 4
_DIRECTION_STEPS = 2**16  # whole numbers, so that sums of ranks are exact
_LOSS_BOUNDS = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)


def difference_of_laws(
    one: Array, other: Array, rng: Generator, level: float
) -> str | None:
    """Return in words how two samples differ; None if they do not.

    Ranks of the columns are projected on random directions; exact Kolmogorov-Smirnov
    tests compare the projections, and their distances from the median. Samples of one
    law differ with probability at most `level` (Boole's inequality).

    Parameters
    ----------
    one, other : ndarray, shapes (n, m) and (l, m)
        A release to a row.
    rng : numpy.random.Generator
        For the directions.
    level : float
    """
    from scipy.stats import ks_2samp  # slow to import

    other = other[:_COMPARED]
    ranks = _ranks(np.vstack([one, other]))
    directions = rng.standard_normal((ranks.shape[1], _PROJECTIONS))
    for projected in (ranks @ np.rint(_DIRECTION_STEPS * directions)).T:
        for values in (projected, abs(projected - np.median(projected))):
            first, second = values[: len(one)], values[len(one) :]
            distance, p_value = tuple(ks_2samp(first, second, method="exact"))
            if p_value < level / (2 * _PROJECTIONS):
                return (
                    f"{len(first)} and {len(second)} values of one projection have the "
                    f"Kolmogorov-Smirnov distance {distance:.3f} (p = {p_value:.1e})"
                )
    return None


def _ranks(rows: Array) -> Array:
    """Return the ranks of each column, and of what is not finite in it."""
    from scipy.stats import rankdata  # slow to import

    kinds = [where(rows) for where in (np.isnan, np.isposinf, np.isneginf)]
    finite = np.where(np.isfinite(rows), rows, 0.0)
    columns = np.hstack([finite, *(kind[:, kind.any(axis=0)] for kind in kinds)])
    return np.asarray(rankdata(columns, method="min", axis=0), dtype=np.float64)


def broken_change_of_measure(
    on_p: Array, on_q: Array, p: str, q: str, level: float
) -> str | None:
    """Compare E_Q[e^L 1{L <= t}] with P(L <= t), L being the loss of P against Q.

    Parameters
    ----------
    on_p, on_q : ndarray, shapes (n,) and (m,)
        The loss on releases from either law.
    p, q : str
        What to call the two.
    level : float
        The true loss is accused with probability at most that (Hoeffding's and Boole's
        inequalities).

    Returns
    -------
    str or None
        How they differ, None if they do not.
    """
    log_term = np.log(2 * len(_LOSS_BOUNDS) / level)
    for bound in _LOSS_BOUNDS:
        expected = np.mean(np.exp(np.minimum(on_q, bound)) * (on_q <= bound))
        observed = np.mean(on_p <= bound)
        variance = 1 / len(on_p) + np.exp(2 * bound) / len(on_q)
        allowed = np.sqrt(log_term / 2 * variance)
        if abs(observed - expected) > allowed:
            return (
                f"on the {p} it is <= {bound:g} in a share {observed:.4f} of them, but "
                f"those on the {q} imply {expected:.4f} (allowed difference "
                f"{allowed:.4f})"
            )
    return None
