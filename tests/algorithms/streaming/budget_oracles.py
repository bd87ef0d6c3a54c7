"""The theorem at the head of `dpaudit.algorithms.streaming.mean_budget`, as it stands.

The calibration there is its inverse.
"""

from math import log, log1p, sqrt

from scipy.special import ndtri_exp

from dpaudit.gaussian import gaussian_delta


def laplace_mu(scale):
    """Return the mu_L of Lap(b) against its shift by 1."""
    return -2 * float(ndtri_exp(-0.5 / scale - log(2)))


def composed_delta(epsilon, *, noise, dimension, uses=1):
    """Return the delta of the theorem; the mu of the noise must be true."""
    histograms = uses * dimension
    escape = noise.counts.escape
    count_mu = laplace_mu(noise.counts.scale)
    total = sqrt(2 * histograms * count_mu**2 + uses * noise.mu**2)
    left = epsilon + histograms * log1p(-escape)
    return min(1.0, histograms * escape + float(gaussian_delta(left, total)))
