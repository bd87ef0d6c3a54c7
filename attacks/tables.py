r"""Estimated log-likelihood ratios of outputs that are counted one by one.

An output seen k times in n releases on D and m times in n' on D' has the estimate
log((k + 1/2)/(n + 1)) - log((m + 1/2)/(n' + 1)) (Krichevsky and Trofimov, 1981, for
each probability), with a standard error of about
:math:`\sqrt{1/(k + 1/2) + 1/(m + 1/2)}` (Woolf, 1955; Haldane's correction).

An event is a set of scores above a threshold, so what is ranked on top matters most,
and among many rare outputs some have a large estimate by chance alone. The score is
therefore the estimate moved towards 0 by one standard error, and 0 if it would change
its sign: a bound that the truth exceeds in most cases, in both directions alike.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["log_ratio", "shrunk_log_ratio"]


def log_ratio(
    hits: ArrayLike, releases: int, other_hits: ArrayLike, other_releases: int
) -> NDArray[np.float64]:
    """Return the estimated log-likelihood ratio of each output.

    Parameters and shape as for `shrunk_log_ratio`. It serves where outputs that are
    counted at all are there for a reason, and are few.
    """
    k, m = np.asarray(hits) + 0.5, np.asarray(other_hits) + 0.5
    return np.asarray(np.log(k / (releases + 1)) - np.log(m / (other_releases + 1)))


def shrunk_log_ratio(
    hits: ArrayLike, releases: int, other_hits: ArrayLike, other_releases: int
) -> NDArray[np.float64]:
    """Return the cautious log-likelihood ratio of each output.

    Parameters
    ----------
    hits, other_hits : array_like of int, shape (...)
        How often it was seen on D and on D'.
    releases, other_releases : int
        Out of how many.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> from dpaudit.attacks.tables import shrunk_log_ratio
    >>> shrunk_log_ratio([1, 100, 0], 1000, [0, 100, 1000], 1000).round(2)
    array([ 0.  ,  0.  , -6.19])
    """
    k, m = np.asarray(hits) + 0.5, np.asarray(other_hits) + 0.5
    estimate = log_ratio(hits, releases, other_hits, other_releases)
    error = np.sqrt(1 / k + 1 / m)
    return np.sign(estimate) * np.maximum(np.abs(estimate) - error, 0.0) + 0.0
