"""Whether numbers look like independent standard normal ones."""

import numpy as np
from scipy import stats

__all__ = ["TYPE_I_ERROR", "looks_standard_normal"]

TYPE_I_ERROR = 1e-9


def looks_standard_normal(values):
    """Test the shape by Kolmogorov and Smirnov, and the scale by the sum of squares.

    Numbers that are independent N(0, 1) fail with probability 1e-9, half for each.
    """
    flat = np.ravel(values)
    tail = stats.chi2(flat.size).cdf(np.sum(flat**2))
    shape = stats.kstest(flat, "norm").pvalue
    return shape > TYPE_I_ERROR / 2 and abs(tail - 0.5) < 0.5 - TYPE_I_ERROR / 4
