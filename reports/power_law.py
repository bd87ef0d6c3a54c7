r"""Power laws: an exponent, with an interval that comes from the repetitions.

Let the error at x be C x^a R with independent R, and log R of mean 0 and finite
variance. Least squares of log error on log x, over all data sets, is unbiased for a.
That of the means at each point, weighted by how many there are, is the same: it is b =
sum_i c_i Y_i in the mean logs Y_i of the k_i data sets at the i-th point, with c_i =
k_i (X_i - X)/sum_j k_j (X_j - X)^2, so its variance is sum_i c_i^2 sigma_i^2/k_i. The
spread s_i around each point's own mean estimates sigma_i, and the interval has
Student's quantile at the degrees of freedom of Welch and Satterthwaite.

Where the error is no power of x, that is an interval for the slope of the straight line
that fits best on this grid: bends do not widen it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student
from statsmodels.regression.linear_model import WLS
from statsmodels.tools import add_constant

from dpaudit.reports.words import signed

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class PowerLaw:
    """factor * x^exponent, as it was fitted."""

    # exponent, low, high: the exponent, and its 95 % interval
    exponent: float
    low: float
    high: float
    factor: float

    @property
    def interval(self) -> str:
        return f"{signed(self.low)} to {signed(self.high)}"

    def at(self, x: float) -> float:
        """Return what the law says for x."""
        return float(self.factor * x**self.exponent)


_UNKNOWN = PowerLaw(nan, nan, nan, nan)


def fit_power_law(errors: Mapping[float, ArrayLike]) -> PowerLaw:
    """Fit a power law by least squares on logs, with a 95 % interval.

    ``errors``: for every x > 0 the errors of independent data sets. What is not a
    number > 0 is left out, and so are points that keep fewer than two.

    All NaN if fewer than two points are left.
    """
    logs = {}
    for x, values in errors.items():
        usable = np.asarray(values, dtype=np.float64)
        usable = np.log(usable[np.isfinite(usable) & (usable > 0)])
        if len(usable) >= 2:
            logs[log(x)] = usable
    if len(logs) < 2:
        return _UNKNOWN
    places = np.array(list(logs))
    size = np.array([len(values) for values in logs.values()])
    mean = np.array([values.mean() for values in logs.values()])
    line = WLS(mean, add_constant(places), weights=size)
    level, slope = map(float, line.fit().params)
    weights = line.pinv_wexog[1] * np.sqrt(size)  # c
    parts = weights**2 * [values.var(ddof=1) for values in logs.values()] / size
    variance = float(parts.sum())
    reach = 0.0
    if variance > 0:
        freedom = variance**2 / (parts**2 / (size - 1)).sum()
        quantile = float(student.ppf((1 + _CONFIDENCE) / 2, freedom))
        reach = quantile * sqrt(variance)
    return PowerLaw(slope, slope - reach, slope + reach, exp(level))


def mean_limit(values: ArrayLike, level: float, side: int) -> float:
    """Return Student's upper (1) or lower (-1) limit of a mean; infinite for one value.

    A true mean is beyond it with probability `level` at most, so far as values are
    normal.
    """
    known = np.asarray(values, dtype=np.float64)
    if len(known) < 2:
        return side * inf
    reach = student.isf(level, len(known) - 1) / sqrt(len(known))
    return float(known.mean() + side * reach * known.std(ddof=1))
