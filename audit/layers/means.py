r"""Confidence intervals for the mean of bounded variables, valid in finite samples.

Betting
-------
Let X_1, X_2, ... lie in [0, 1] and have conditional mean mu given the past. For a
number g >= 0 that is fixed before X_i is seen,

.. math:: \frac{1 + g X_i}{1 + g m}

is non-negative and has conditional mean (1 + g mu)/(1 + g m), which is <= 1 for every
m >= mu. So for m >= mu the product of such factors is a non-negative supermartingale,
and so is a weighted average of several such products, one per strategy of choosing g.
By Ville's inequality it ever reaches 1/alpha with probability at most alpha. The
average is decreasing in m; hence the largest m at which it has ever reached 1/alpha is,
at all times at once, a lower bound of mu with error probability alpha. An upper bound
is 1 minus the lower bound for 1 - X.

A factor is the bet 1 + l (X - m) with l = g/(1 + g m): written with g, the data enter
through the sums of log(1 + g X_i) alone, so nothing is kept of them and every m is
tested at once. g is chosen from the past, constant within one batch; validity does not
depend on how well. The strategies are multiples of the stake that is best for a sum of
n variables of variance v, l = sqrt(2 log(1/alpha)/(n v)).

References
----------
Waudby-Smith, Ramdas, *Estimating means of bounded random variables by betting*,
JRSS B 2024, sections 4 and 5.
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.validation import check_count, check_fraction

__all__ = ["BettingInterval", "BettingLowerBound"]


# Small multiples are for the end of the run, large ones for stopping early.
_MULTIPLES = np.array([0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0])
_LOG_SHARES = np.log([0.10, 0.15, 0.30, 0.20, 0.15, 0.05, 0.05])
# At most this share of the wealth is lost if the next value is 0: those who stake
# much when nothing has been seen yet must not be all.
_MOST_AT_STAKE = np.array([0.3, 0.4, 0.6, 0.75, 0.9, 0.95, 0.99])
_ROUNDING = 1e-9  # allowed for in every log-wealth
_ZOOMS, _ZOOM_POINTS = 11, 65  # together a relative 2^-66 of the unit interval
_PRECISION = 1e-10
_TINY = 1e-15


class BettingLowerBound:
    """An anytime-valid lower confidence bound for a mean of values in [0, 1].

    Parameters
    ----------
    alpha : float
        In (0, 1). The bound ever exceeds the mean with probability at most alpha.
    horizon : int
        About how many values will come; bears on the width, not on the validity.
    """

    def __init__(self, alpha: float, *, horizon: int) -> None:
        self._log_threshold = -np.log(check_fraction("alpha", alpha))
        self._horizon = check_count("horizon", horizon)
        self._count, self._mean, self._squares = 0, 0.5, 0.25
        # One row per batch: its size, its stakes g, its sums of log(1 + g X).
        self._sizes: list[int] = []
        self._stakes: list[Array] = []
        self._sums: list[Array] = []
        self._best = 0.0

    def update(self, values: Array) -> None:
        """Settle the bets on a batch of values in [0, 1], shape (size,)."""
        if not len(values):
            return
        stakes = self._place()
        self._sizes.append(len(values))
        self._stakes.append(stakes)
        self._sums.append(np.array([np.log1p(g * values).sum() for g in stakes]))
        self._learn(values)

    @property
    def value(self) -> float:
        """The bound; it never falls."""
        low, high = self._best, 1.0
        for _ in range(_ZOOMS if self._sizes else 0):
            means = np.linspace(low, high, _ZOOM_POINTS)
            enough = self._log_wealth(means) >= self._log_threshold
            reached = len(means) if enough.all() else int(enough.argmin())
            if reached == 0:
                break
            low, high = means[reached - 1], means[min(reached, len(means) - 1)]
            if high - low <= _PRECISION * low:
                break
        self._best = float(low)
        return self._best

    def _place(self) -> Array:
        mean = max(self._mean, _TINY)
        variance = self._squares / max(self._count, 1) + 1 / max(self._count, 2) ** 2
        stake = np.sqrt(2 * self._log_threshold / (self._horizon * variance))
        at_stake = np.minimum(stake * _MULTIPLES * mean, _MOST_AT_STAKE)
        return at_stake / (1 - at_stake) / mean

    def _learn(self, values: Array) -> None:
        """Merge the batch into the running mean and sum of squared deviations."""
        size, mean = len(values), float(values.mean())
        squares = float(np.square(values - mean).sum())
        if self._count == 0:
            self._count, self._mean, self._squares = size, mean, squares
            return
        total = self._count + size
        shift = mean - self._mean
        self._squares += squares + shift**2 * self._count * size / total
        self._mean += shift * size / total
        self._count = total

    def _log_wealth(self, means: Array) -> Array:
        """Return the log-wealth against "the mean is at most m", for each m."""
        stakes, sizes = np.array(self._stakes), np.array(self._sizes)
        costs = np.log1p(stakes * means[:, np.newaxis, np.newaxis])
        wealth = np.sum(self._sums, axis=0) - np.einsum("b,mbs->ms", sizes, costs)
        return np.logaddexp.reduce(wealth + _LOG_SHARES, axis=1) - _ROUNDING


class BettingInterval:
    """An anytime-valid two-sided confidence interval for a mean of values in [0, 1].

    Parameters
    ----------
    alpha : float
        In (0, 1). The mean is ever outside with probability at most alpha.
    horizon : int
        As for `BettingLowerBound`.

    Examples
    --------
    >>> import numpy as np
    >>> interval = BettingInterval(0.001, horizon=10_000)
    >>> for batch in np.random.default_rng(0).random((10, 1000)):
    ...     interval.update(batch)
    >>> interval.low < 0.5 < interval.high
    True
    >>> round(interval.high - interval.low, 2)
    0.02
    """

    def __init__(self, alpha: float, *, horizon: int) -> None:
        alpha = check_fraction("alpha", alpha)
        self._below = BettingLowerBound(alpha / 2, horizon=horizon)
        self._above = BettingLowerBound(alpha / 2, horizon=horizon)

    def update(self, values: Array, upper: Array | None = None) -> None:
        """Take a batch of values in [0, 1], shape (size,).

        Parameters
        ----------
        values : ndarray
        upper : ndarray, optional
            At least `values`, entry by entry: the upper bound is for their mean. This
            is how values that are known up to a rounding error stay covered.
        """
        self._below.update(values)
        self._above.update(1 - (values if upper is None else upper))

    @property
    def low(self) -> float:
        """The lower bound."""
        return self._below.value

    @property
    def high(self) -> float:
        """The upper bound."""
        return 1 - self._above.value
