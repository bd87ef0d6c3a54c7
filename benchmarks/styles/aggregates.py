"""Counts, sums, means, variances and ratios, and how they go wrong."""

import math
import statistics

import numpy as np

from benchmarks.styles.pairs import (
    APPROX,
    BITS,
    FAR,
    GAUSS,
    MISSING,
    NUMBERS,
    ONE,
    RECORDS,
    SWAPPED,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, Pair, PureDP, ZeroConcentratedDP

WIDE = Pair([-2.0, 3.0, 1.0], [-2.0, 3.0, 1.0, 5.0])
OPPOSITE = Pair([-1.0, 0.5, 1.0], [-1.0, 0.5, -1.0])


@right(ONE, NUMBERS, domain="scalar:-5,5")
def clipped_sum(data, rng):
    """A clipped sum, as everybody writes it."""
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0)


@right(
    PureDP(0.5),
    WIDE,
    "a row moves it by 5 at most, and the scale is 5/0.5",
    domain="scalar:-9,9",
)
def sum_of_a_range(data, rng, low=-5.0, high=5.0, epsilon=0.5):
    """A sum between bounds, with a scale from max(|low|, |high|)."""
    sensitivity = max(abs(low), abs(high))
    return np.minimum(np.maximum(data, low), high).sum() + rng.laplace(
        0, sensitivity / epsilon
    )


@wrong(ONE, OPPOSITE, "the sensitivity is that of a row that is added: 1, and not 2")
def added_for_replaced(data, rng):
    """A sum of numbers in [-1, 1] with noise for 1, where rows are replaced."""
    return np.clip(data, -1, 1).sum() + rng.laplace(scale=1.0)  # fault


@wrong(ONE, WIDE, "a row that is added moves the sum by 5, and the scale is 2.5")
def half_of_the_width(data, rng):
    """A sum of numbers in [-5, 5] with a scale of a quarter of the width."""
    return np.clip(data, -5, 5).sum() + rng.laplace(scale=(5 - -5) / 4)  # fault


@right(ONE, NUMBERS, "a sum and a count at 1/2 each", domain=UNIT)
def mean_of_two_queries(data, rng):
    """A mean as a ratio of a noisy sum and a noisy count."""
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2.0)
    count = len(data) + rng.laplace(0, 2.0)
    return float(total / max(1.0, count))


@wrong(ONE, NUMBERS, "the exact number of rows is in the divisor")
def mean_by_n(data, rng):
    """A noisy sum that is divided by the number of rows."""
    noisy = np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)
    return noisy / len(data)  # fault


@wrong(ONE, NUMBERS, "sum and count have epsilon each")
def mean_of_two_epsilons(data, rng):
    """A mean as a ratio of two queries that both spend epsilon."""
    epsilon = 1.0
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 1 / epsilon)  # fault
    count = len(data) + rng.laplace(0, 1 / epsilon)  # part
    return total, count


@wrong(ONE, SWAPPED, "the mean moves by 1/n, and the scale is half of that")
def mean_with_half_the_scale(data, rng):
    """A mean with noise of scale 1/(2 epsilon n)."""
    return np.clip(data, 0, 1).mean() + rng.laplace(0, 1 / (2 * len(data)))  # fault


@right(ONE, SWAPPED, "n is public where rows are replaced")
def mean_of_public_size(data, rng):
    """A mean with noise of scale 1/(epsilon n)."""
    return np.mean([min(1.0, max(0.0, x)) for x in data]) + rng.laplace(
        0, 1 / len(data)
    )


@right(ONE, SWAPPED, "the mean of squares and the mean, at 1/2 each")
def variance_of_moments(data, rng):
    """A variance from a noisy mean and a noisy mean of squares."""
    n, x = len(data), np.clip(data, 0, 1)
    mean = x.mean() + rng.laplace(0, 2 / n)
    square = (x**2).mean() + rng.laplace(0, 2 / n)
    return mean, max(0.0, square - mean**2)


@right(
    ONE,
    SWAPPED,
    "a row in [0, 1] moves the variance by at most (n - 1)/n^2",
    source="D'Orazio, Honaker, King 2015",
)
def variance_of_public_size(data, rng):
    """A variance of numbers in [0, 1] with its own sensitivity."""
    n = len(data)
    return np.clip(data, 0, 1).var() + rng.laplace(0, (n - 1) / n**2)


@wrong(ONE, Pair([0.5, 0.5, 0.5], [0.5, 0.5, 9.0]), "rows are not clipped")
def variance_by_statistics(data, rng):
    """A variance by the statistics module with noise of scale 1/n."""
    variance = statistics.pvariance([float(x) for x in data])
    return variance + rng.laplace(0, 1 / len(data))  # fault


@right(
    APPROX,
    NUMBERS,
    "the least sigma for (1, 1e-5)",
    source="Balle, Wang 2018",
    domain=UNIT,
)
def analytic_sigma(data, rng):
    """Gaussian noise of the analytic calibration."""
    return np.clip(data, 0, 1).sum() + rng.normal(0, 3.7307)


@wrong(ApproxDP(0.1, 1e-5), NUMBERS, "sigma is linear in 1/epsilon, not in its root")
def sigma_by_a_root(data, rng):
    """Gaussian noise whose sigma has the root of epsilon."""
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5) / 0.1)  # part
    return np.clip(data, 0, 1).sum() + rng.normal(0, sigma)  # fault


@right(ZeroConcentratedDP(0.5), NUMBERS, "1/(2 sigma^2)", domain=UNIT)
def concentrated(data, rng):
    """Gaussian noise for concentrated privacy."""
    rho = 0.5
    return np.clip(data, 0, 1).sum() + math.sqrt(1 / (2 * rho)) * rng.standard_normal()


@wrong(ZeroConcentratedDP(0.5), NUMBERS, "sigma^2 is 1/(4 rho), half of what it needs")
def concentrated_without_two(data, rng):
    """Gaussian noise for concentrated privacy, with sigma^2 = 1/(4 rho)."""
    sigma2 = 1 / (4 * 0.5)
    return np.clip(data, 0, 1).sum() + math.sqrt(sigma2) * rng.normal()  # fault


@wrong(ONE, FAR, "the maximum of the data is the bound")
def scale_of_the_maximum(data, rng):
    """A sum with a scale of the largest row."""
    bound = np.abs(data).max()  # part
    return data.sum() + rng.laplace(scale=bound)  # fault


@wrong(ONE, FAR, "bounds are taken from the data, and released")
def bounds_of_the_data(data, rng):
    """A range, and a sum clipped to it."""
    low, high = data.min(), data.max()
    noisy = np.clip(data, low, high).sum() + rng.laplace(scale=50.0)
    return {"low": low, "high": high, "sum": noisy}  # fault


@wrong(ONE, MISSING, "NaN passes through clip, and shows")
def nan_in_a_sum(data, rng):
    """A clipped sum of rows that may be NaN."""
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0)  # fault


@right(ONE, MISSING, "NaN is 0, and all else is clipped")
def nan_to_num(data, rng):
    """A clipped sum of rows that may be NaN, by nan_to_num."""
    return np.clip(np.nan_to_num(data), 0, 1).sum() + rng.laplace(scale=1.0)


@wrong(ONE, MISSING, "a mean over what is present, where NaN is counted in n")
def nanmean(data, rng):
    """A mean by nanmean, with noise of scale 1/n for all n."""
    mean = np.nanmean(np.clip(data, 0, 1)) + rng.laplace(0, 1 / len(data))  # fault
    return mean


@wrong(ONE, NUMBERS, "the noisy sum is drawn back to the exact one")
def halfway_back(data, rng):
    """A noisy sum that is averaged with the exact one, for accuracy."""
    total = np.clip(data, 0, 1).sum()
    noisy = total + rng.laplace(0, 1.0)
    return (noisy + total) / 2  # fault


@wrong(ONE, NUMBERS, "the exact sum is the upper end")
def never_above_the_sum(data, rng):
    """A noisy sum that is cut at the exact number of rows."""
    noisy = np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)
    return min(float(noisy), float(len(data)))  # fault


@right(ONE, NUMBERS, "cut at public ends", domain=UNIT)
def cut_at_public_ends(data, rng):
    """A noisy sum that is cut at public ends."""
    noisy = np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)
    return float(np.clip(noisy, 0, 1000))


@wrong(ONE, NUMBERS, "the grid of the rounding is that of the data")
def rounded_to_a_grid_of_n(data, rng):
    """A noisy sum that is rounded to multiples of 1/n."""
    noisy = np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)
    return np.round(noisy * len(data)) / len(data)  # fault


@right(TWO, RECORDS, "two columns of bound 1", domain="box:0,1:2")
def list_of_records(data, rng):
    """Sums over a list of dictionaries."""
    records = [{"a": float(a), "b": float(b)} for a, b in data]
    sums = {"a": 0.0, "b": 0.0}
    for record in records:
        for key in sums:
            sums[key] += min(max(record[key], 0.0), 1.0)
    return {key: total + rng.laplace(0, 1.0) for key, total in sums.items()}


@right(
    ONE,
    NUMBERS,
    "a geometric mean of numbers in [1/e, 1]: logs in [-1, 0]",
    domain=UNIT,
)
def geometric_mean(data, rng):
    """A product by a noisy sum of logarithms."""
    logs = np.log(np.clip(data, math.exp(-1), 1))
    return math.exp(min(5.0, logs.sum() + rng.laplace(0, 1.0)))


@right(ONE, BITS, "a share from a noisy count, with public n in mind", domain="codes:2")
def percentage(data, rng):
    """A noisy count as a percentage of a public number, rounded."""
    ones = np.count_nonzero(data == 1)
    return round(100 * float(ones + rng.laplace(0, 1.0)) / 250, 1)


@right(GAUSS, SWAPPED, "moments of x and x^2 move by at most sqrt 2")
def vector_of_moments(data, rng):
    """A vector of two moments with one draw of a vector of noise."""
    x = np.clip(data, 0, 1)
    return np.array([x.sum(), (x**2).sum()]) + 2**0.5 * rng.standard_normal(2)
