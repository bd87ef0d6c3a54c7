"""Noise of whole numbers: floors, geometric draws, and rejection."""

import math
import random

import numpy as np

from benchmarks.styles.pairs import (
    APPROX,
    BITS,
    CODES,
    GROUPS,
    HALF,
    NUMBERS,
    ONE,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, PureDP

P = 1 - math.exp(-1.0)
BINARY = "codes:2"


@right(ONE, BITS, "the floor of a noisy count, since counts are whole", domain=BINARY)
def floor_of_noise(data, rng):
    """A count with the floor of Laplace noise."""
    return int(data.sum()) + math.floor(rng.laplace(0, 1.0))


@right(ONE, BITS, "a noisy count, rounded", domain=BINARY)
def rint_of_noise(data, rng):
    """A count with Laplace noise that is rounded first."""
    return data.sum() + np.rint(rng.laplace(0, 1.0, 3))[0]


@wrong(ONE, BITS, "int() rounds to 0 from both sides, which is too probable")
def int_of_noise(data, rng):
    """A count with Laplace noise that is cut to an integer first."""
    return int(data.sum()) + int(rng.laplace(0, 1.0))  # fault


@right(ONE, BITS, "a noisy count, cut", domain=BINARY)
def int_of_the_noisy_count(data, rng):
    """A count with Laplace noise that is cut to an integer at the end."""
    return max(0, int(data.sum() + rng.laplace(0, 1.0)))


@wrong(ONE, HALF, "whole noise on a sum of fractions shows their fraction")
def whole_noise_on_fractions(data, rng):
    """A sum of fractions with rounded noise."""
    noise = np.round(rng.laplace(0, 1.0))  # part
    return np.clip(data, 0, 1).sum() + noise  # fault


@right(ONE, BITS, "a difference of geometric draws is discrete Laplace", domain=BINARY)
def difference_of_geometrics(data, rng):
    """Two-sided geometric noise as a difference of draws."""
    return int(data.sum()) + rng.geometric(P) - rng.geometric(P)


@wrong(ONE, BITS, "p is that of twice the epsilon")
def geometrics_of_two(data, rng):
    """Two-sided geometric noise whose epsilon is doubled on the way."""
    p = 1 - math.exp(-2.0)
    return data.sum() + rng.geometric(p) - rng.geometric(p)  # fault


@wrong(PureDP(0.2), BITS, "p is exp(-epsilon) in place of 1 - exp(-epsilon)")
def geometrics_of_the_other(data, rng):
    """Two-sided geometric noise with the wrong one of two probabilities."""
    p = math.exp(-0.2)
    noise = rng.geometric(p) - rng.geometric(p)  # part
    return data.sum() + noise  # fault


@right(ONE, BITS, "the floor of an exponential draw is geometric", domain=BINARY)
def geometric_by_inverse(data, rng):
    """Geometric noise by the inverse CDF, of the random module."""

    def draw():
        return math.floor(-math.log(1 - random.random()))

    return int(data.sum()) + draw() - draw()


@right(ONE, BITS, "P(0) and the tails of the discrete Laplace law", domain=BINARY)
def geometric_with_an_if(data, rng):
    """Discrete Laplace noise: zero or not, a sign, and a geometric size."""
    alpha = math.exp(-1.0)
    if rng.random() < (1 - alpha) / (1 + alpha):
        noise = 0
    elif rng.random() < 0.5:
        noise = rng.geometric(1 - alpha)
    else:
        noise = -rng.geometric(1 - alpha)
    return int(data.sum()) + noise


def _flip(gamma):
    """Return True with probability exp(-gamma), gamma >= 0, by uniform numbers."""
    while gamma > 1:
        if not _flip(1.0):
            return False
        gamma -= 1
    k = 1
    while random.random() < gamma / k:
        k += 1
    return k % 2 == 1


def _discrete_laplace(scale):
    """Return discrete Laplace noise of a whole scale, by rejection."""
    while True:
        u = random.randrange(scale)
        if not _flip(u / scale):
            continue
        v = 0
        while _flip(1.0):
            v += 1
        sign = random.randrange(2)
        if sign and u + scale * v == 0:
            continue
        return -(u + scale * v) if sign else u + scale * v


@right(
    ONE,
    BITS,
    "the exact sampler",
    source="Canonne, Kamath, Steinke 2020",
    domain=BINARY,
)
def discrete_laplace_by_rejection(data, rng):
    """Discrete Laplace noise by rejection, from coins of the random module."""
    return int(data.sum()) + _discrete_laplace(1)


@right(
    GaussianDP(1.0),
    BITS,
    "variance 4 for a count, half of what is needed",
    source="Canonne, Kamath, Steinke 2020",
    domain=BINARY,
)
def discrete_gaussian_by_rejection(data, rng):
    """Discrete Gaussian noise by rejection from discrete Laplace noise."""
    sigma = 2.0
    scale = 3
    while True:
        noise = _discrete_laplace(scale)
        if _flip((abs(noise) - sigma**2 / scale) ** 2 / (2 * sigma**2)):
            return int(data.sum()) + noise


@wrong(ONE, BITS, "rejection looks at the data: only a count of 0 or more is kept")
def rejection_until_positive(data, rng):
    """Noise that is drawn again until the noisy count is not negative."""
    while True:
        noisy = data.sum() - 2 + rng.laplace(0, 1.0)  # part
        if noisy >= 0:  # fault
            return noisy


@right(
    ONE,
    NUMBERS,
    "four draws of the mixture of steps",
    domain=UNIT,
    source="Geng, Viswanath 2014",
)
def staircase(data, rng):
    """Staircase noise: a sign, a geometric step, and a place on it."""
    b = math.exp(-1.0)
    gamma = 1 / (1 + math.exp(0.5))
    sign = 1 if rng.random() < 0.5 else -1
    step = rng.geometric(1 - b) - 1
    u = rng.random()
    if rng.random() < gamma / (gamma + (1 - gamma) * b):
        noise = step + gamma * u
    else:
        noise = step + gamma + (1 - gamma) * u
    return np.clip(data, 0, 1).sum() + sign * noise


@wrong(ONE, NUMBERS, "the lower half of a step is taken with the wrong probability")
def staircase_of_halves(data, rng):
    """Staircase noise whose two halves of a step are equally probable."""
    gamma = 1 / (1 + math.exp(0.5))
    sign = 1 if rng.random() < 0.5 else -1
    step = rng.geometric(P) - 1
    low = rng.random() < 0.9  # part
    u = rng.random()
    noise = step + gamma * u if low else step + gamma + (1 - gamma) * u
    return np.clip(data, 0, 1).sum() + sign * noise  # fault


@right(
    APPROX,
    BITS,
    "the loss is above 1 only beyond fourteen deviations",
    source="Dwork, Kenthapadi, McSherry, Mironov, Naor 2006",
)
def binomial_noise(data, rng):
    """A count with centred binomial noise."""
    return int(data.sum()) + rng.binomial(1000, 0.5) - 500


@right(ONE, CODES, "one cell moves by 1", domain=GROUPS)
def geometric_histogram(data, rng):
    """A histogram of integers with vectors of geometric draws."""
    counts = np.bincount(data.astype(int), minlength=4)
    noise = rng.geometric(P, size=4) - rng.geometric(P, size=4)
    return np.maximum(counts + noise, 0)


@right(
    ONE, NUMBERS, "the grid is public, and the noise is that of the grid", domain=UNIT
)
def noise_on_a_grid(data, rng):
    """A sum that is rounded to a grid and gets geometric noise on it."""
    grid = 1 / 8
    rounded = round(float(sum(np.round(np.clip(data, 0, 1) / grid))))
    p = 1 - math.exp(-1 / 8)
    return grid * (rounded + rng.geometric(p) - rng.geometric(p))


@wrong(ONE, BITS, "Poisson noise has one side: counts below the sum are impossible")
def poisson_noise(data, rng):
    """A count with Poisson noise."""
    return data.sum() + rng.poisson(4.0) - 4  # fault


@right(APPROX, BITS, "the table ends where delta is exp(-40)", domain=BINARY)
def table_of_probabilities(data, rng):
    """Discrete Laplace noise looked up in a table by searchsorted."""
    support = np.arange(-40, 41)
    p = np.exp(-np.abs(support) / 1.0)
    cdf = np.cumsum(p / p.sum())
    noise = support[min(np.searchsorted(cdf, rng.random()), 80)]
    return int(data.sum()) + noise
