r"""Convergence diagnostics for Markov chains: R-hat and the effective sample size.

Source: Vehtari, Gelman, Simpson, Carpenter, Bürkner, *Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC*, Bayesian Analysis
16, 2021, sections 3 and 4.

1. Each chain is split in two halves, so that a drift looks like two chains that differ.
2. Values are replaced by normal scores of their ranks among all S values,
   Phi^-1((rank - 3/8)/(S + 1/4)), so that nothing is asked of moments.
3. R-hat = sqrt((N - 1)/N + B/(N W)), where N is the length of a half, W the mean of the
   variances within halves, and B/N the variance of their means. It is near 1 if all
   halves have one distribution. Differences in spread show in the same of the
   distances from the median, and the larger of the two is returned.
4. The effective sample size is S/tau, tau = 1 + 2 sum rho_t, where the autocorrelation
   rho_t at lag t comes from all halves together: 1 - (W - mean autocovariance)/(W (N -
   1)/N + B/N). The sum ends where the sum of two neighbours, at even and odd lag, which
   is positive for reversible chains, ceases to be so, and these sums are made monotone
   (Geyer 1992).

They can show that chains have not converged, and never that they have.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.validation import check_matrix

__all__ = ["effective_sample_size", "split_r_hat"]


_FEWEST_DRAWS = 8


def split_r_hat(traces: ArrayLike) -> float:
    """Return the rank-normalised split R-hat of chains.

    Parameters
    ----------
    traces : array_like, shape (chains, draws)
        Finite; at least 1 chain of at least 8 draws.

    Returns
    -------
    float
        About 1 for chains that have converged, where 1.01 is usually asked for;
        infinite for chains that stand still at different values, and NaN where all
        values are equal, which says nothing.

    Raises
    ------
    InputError
        If `traces` is something else.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chains = rng.standard_normal((4, 1000))
    >>> round(split_r_hat(chains), 2)
    1.0
    >>> round(split_r_hat(chains + np.arange(4)[:, np.newaxis]), 1)
    1.6
    """
    halves = _halves(traces)
    folded = np.abs(halves - np.median(halves))
    # A NaN wins: where all are equally far from the median, the ranks must speak.
    bulk, spread = (_r_hat(_normal_scores(values)) for values in (halves, folded))
    return float(np.fmax(bulk, spread))


def effective_sample_size(traces: ArrayLike) -> float:
    """Return how many independent draws say as much about the bulk of the values.

    Parameters
    ----------
    traces : array_like, shape (chains, draws)
        As for `split_r_hat`.

    Returns
    -------
    float
        At most S log10(S) for S values in all (chains that alternate say more than
        independent draws); NaN where all values are equal.

    Raises
    ------
    InputError
        If `traces` is something else.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((4, 2000))
    >>> 0.9 < effective_sample_size(noise) / noise.size < 1.1
    True
    """
    scores = _normal_scores(_halves(traces))
    count, length = scores.shape
    within, between = _variances(scores)
    total = within * (length - 1) / length + between
    if total == 0:
        return float("nan")
    rho = 1 - (within - _autocovariances(scores).mean(axis=0)) / total
    rho[0] = 1.0
    pairs = rho[: length - length % 2].reshape(-1, 2).sum(axis=1)
    positive = pairs > 0
    end = len(pairs) if positive.all() else int(np.argmin(positive))
    tau = 2 * np.minimum.accumulate(pairs[:end]).sum() - 1
    size = count * length
    return float(size / max(tau, 1 / np.log10(size)))


def _halves(traces: ArrayLike) -> Array:
    """Return the halves of the chains as rows; the middle of an odd number is left."""
    traces = check_matrix("traces", traces, min_rows=1)
    draws = traces.shape[1]
    if draws < _FEWEST_DRAWS:
        raise InputError(
            f"traces must have at least {_FEWEST_DRAWS} draws in each chain, "
            f"got {draws}"
        )
    half = draws // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]])


def _normal_scores(values: Array) -> Array:
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(values).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)))


def _variances(scores: Array) -> tuple[float, float]:
    """Return W and B/N."""
    within = scores.var(axis=1, ddof=1).mean()
    return float(within), float(scores.mean(axis=1).var(ddof=1))


def _r_hat(scores: Array) -> float:
    length = scores.shape[1]
    within, between = _variances(scores)
    if within == 0:
        return float("inf") if between > 0 else float("nan")
    return float(np.sqrt((length - 1) / length + between / within))


def _autocovariances(scores: Array) -> Array:
    """Return those of each row at all lags, divided by the length less one."""
    length = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    # Padding with zeros keeps the ends apart.
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=1)) ** 2
    return np.asarray(np.fft.irfft(spectrum, axis=1)[:, :length] / (length - 1))
