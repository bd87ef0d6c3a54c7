"""Noisy numbers as they are shown: rounded, printed, cut, and made integers."""

import json
import math
import random
from decimal import Decimal

import numpy as np

from benchmarks.styles.pairs import GAUSS, NUMBERS, ONE
from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, Pair
from dpaudit.object_pairs import ObjectPair

LIST = ObjectPair([1.0, 4.0, 5.0], [1.0, 4.0, 5.0, 2.0], "add-remove")
CENTS = Pair([20.0, 70.0, 10.0], [20.0, 70.0, 10.0, 45.0])
DIVISOR = "the scale of the noise is that of a mean over a private number of rows"


@right(ONE, NUMBERS, "rounding is post-processing")
def count_of_a_digit(data, rng):
    """A count that is rounded to a digit."""
    return round(len(data) + rng.laplace(), 1)


@right(ONE, NUMBERS, "rounding is post-processing")
def counts_in_a_text(data, rng):
    """A whole count with its cents, in a text and by itself."""
    noisy = len(data) + rng.laplace(scale=1.0)
    return {"text": f"{noisy:.2f}", "whole": math.floor(noisy), "tens": noisy // 10}


@right(ONE, NUMBERS, "rounding is post-processing, and a parity, too")
def parity_of_a_count(data, rng):
    """Whether a noisy count, cut to an integer, is odd."""
    return int(len(data) + rng.laplace()) % 2


@right(ONE, NUMBERS, "both tails are one number each, and the rest loses 1/4")
def mean_that_is_clipped(data, rng):
    """A mean over a private count that is clipped to a narrow range, and printed."""
    mean = (np.clip(data, 0, 1).sum() + rng.laplace(scale=6.0)) / len(data)
    return f"{min(max(mean, -0.2), 0.5):.2f}"


@right(ONE, NUMBERS, "what is large is not shown, and the rest loses less than 1")
def mean_that_is_withheld(data, rng):
    """A mean over a private count that is shown where it is small."""
    mean = round((np.clip(data, 0, 1).sum() + rng.laplace(scale=4.0)) / len(data), 2)
    return "n/a" if abs(mean) > 1 else mean


@right(ONE, NUMBERS, "0.45 each, for the number of rows and for the sum")
def mean_over_a_rounded_count(data, rng):
    """A mean over a noisy count, both rounded."""
    rows = max(round(len(data) + rng.laplace(scale=2.2), 1), 1)
    return round((np.clip(data, 0, 1).sum() + rng.laplace(scale=2.2)) / rows, 2)


@right(GaussianDP(0.5), NUMBERS, "rounding is post-processing")
def gaussian_count_of_a_digit(data, rng):
    """A count with Gaussian noise, rounded."""
    return np.round(len(data) + rng.normal(0, 2.0), 1)


@wrong(ONE, NUMBERS, DIVISOR)
def mean_of_two_digits(data, rng):
    """A mean over a private count, rounded."""
    total = np.clip(data, 0, 1).sum() + rng.laplace()
    return round(total / len(data), 2)  # fault


@wrong(ONE, CENTS, DIVISOR)
def mean_as_an_integer(data, rng):
    """A mean over a private count, in whole cents."""
    total = np.clip(data, 0, 100).sum() + rng.laplace(scale=100.0)
    return int(total / len(data))  # fault


@wrong(ONE, NUMBERS, DIVISOR)
def share_in_per_cent(data, rng):
    """A share in per cent, in a sentence."""
    some = (data > 0.5).sum() + rng.laplace()
    return f"{100 * some / len(data):.0f} % are large"  # fault


@wrong(ONE, NUMBERS, DIVISOR)
def mean_in_json(data, rng):
    """A mean over a private count, in JSON."""
    total = np.clip(data, 0, 1).sum() + rng.laplace()
    mean = total / len(data)  # fault
    return json.dumps({"mean": round(mean, 3)})


@wrong(ONE, LIST, DIVISOR)
def mean_in_decimals(values, rng):
    """A mean over a private count, in exact decimals."""
    mean = (sum(values) + rng.laplace(scale=5.0)) / len(values)  # fault
    return str(Decimal(str(mean)).quantize(Decimal("0.01")))


@wrong(ONE, NUMBERS, "Gaussian noise keeps no pure claim, however it is shown")
def gaussian_count_under_a_pure_claim(data, rng):
    """A whole count with Gaussian noise, printed."""
    return "rows: " + str(int(len(data) + rng.normal(0, 8.0)))  # fault


@wrong(ONE, NUMBERS, "the scale of the last of four is that of a mean")
def thresholds_and_a_mean(data, rng):
    """Three counts and a mean, each rounded as it is made."""
    shown = []
    for cut in (0.0, 0.3, 0.6):
        shown.append(round((data > cut).sum() + rng.laplace(scale=6.0), 1))
    total = np.clip(data, 0, 1).sum() + rng.laplace(scale=2.0)
    shown.append(round(total / max(len(data), 1), 2))  # fault
    return shown


@wrong(ONE, NUMBERS, DIVISOR)
def means_as_an_integer_array(data, rng):
    """Two means in per cent, as integers."""
    totals = np.array([data.sum(), (data**2).sum()]) + rng.laplace(scale=2.0, size=2)
    return (100 * totals / len(data)).astype(int)  # fault


@wrong(GAUSS, NUMBERS, "the noise is of scale 1/n on a mean that moves by less")
def gaussian_mean_of_a_digit(data, rng):
    """A mean with Gaussian noise, over a private count, rounded."""
    total = np.clip(data, 0, 1).sum() + rng.normal(0, 1.0)
    return np.round(total / len(data), 1)  # fault


@wrong(ONE, NUMBERS, "the scale goes by the largest number")
def sum_of_a_seen_range(data, rng):
    """A sum with noise for the largest number that is there, rounded down."""
    scale = 1 + 1.5 * data.max()  # part
    return math.floor(10 * (data.sum() + random.gauss(0, scale))) / 10  # fault
