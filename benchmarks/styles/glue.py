"""Glue: how noise meets data, and what is done with what comes out."""

import collections
import contextlib
import dataclasses
import decimal
import fractions
import json
import logging
import math

import numpy as np

from benchmarks.styles.pairs import (
    BALL,
    BITS,
    CODES,
    FAR,
    GAUSS,
    GROUPS,
    NUMBERS,
    ONE,
    SPHERE,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair

LOG = logging.getLogger("benchmarks.styles")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
ALIKE = Pair([[1.0, 0.0, 0.0]] * 3, [[1.0, 0.0, 0.0]] * 3 + [[30.0, 0.0, 40.0]])
Answer = collections.namedtuple("Answer", ["total", "count"])


@dataclasses.dataclass
class Report:
    """A release as an object."""

    total: float
    epsilon: float

    def text(self):
        """Return a sentence."""
        return f"{self.total:.3f} at {self.epsilon}"


@right(ONE, NUMBERS, domain=UNIT)
def added_in_place(data, rng):
    """Noise that is added in place."""
    total = np.clip(data, 0, 1).sum(keepdims=True)
    total += rng.laplace(0, 1.0, 1)
    return total


@right(ONE, CODES, domain=GROUPS)
def added_with_out(data, rng):
    """Noise that is added by np.add with out=."""
    counts = np.bincount(data.astype(int), minlength=4).astype(float)
    np.add(counts, rng.laplace(0, 1.0, 4), out=counts)
    return counts


@right(ONE, CODES, domain=GROUPS)
def filled_entry_by_entry(data, rng):
    """Noisy counts that fill an empty array one by one."""
    out = np.empty(4)
    for k in range(4):
        out[k] = np.count_nonzero(data == k) + rng.laplace(0, 1.0)
    return out


@right(ONE, CODES, domain=GROUPS)
def noise_first(data, rng):
    """An array of noise to which rows are added one by one."""
    out = rng.laplace(0, 1.0, 4)
    for code in data.astype(int):
        out[code] += 1
    return out


@right(ONE, CODES, domain=GROUPS)
def noise_first_add_at(data, rng):
    """An array of noise to which rows are added by np.add.at."""
    out = rng.laplace(0, 1.0, 4)
    np.add.at(out, data.astype(int), 1)
    return out


@right(ONE, CODES, domain=GROUPS)
def vectorised(data, rng):
    """Noise that np.vectorize adds."""
    noisy = np.vectorize(lambda count: count + rng.laplace(0, 1.0), otypes=[float])
    return noisy(np.bincount(data.astype(int), minlength=4))


@right(GAUSS, BALL, domain=SPHERE)
def along_an_axis(data, rng):
    """Noise that apply_along_axis adds to sums of columns."""
    sums = np.vstack([data, np.zeros(3)])
    return np.apply_along_axis(lambda x: x.sum() + rng.normal(0, 1.0), 0, sums)


@right(GAUSS, BALL, domain=SPHERE)
def by_einsum(data, rng):
    """A sum by einsum, with noise by matrix multiplication."""
    return np.einsum("ij->j", data) + np.eye(3) @ rng.standard_normal(3)


@right(GAUSS, BALL, "a concatenation of noisy pieces", domain=SPHERE)
def piece_by_piece(data, rng):
    """A vector that is put together from noisy pieces."""
    first = data[:, :1].sum(axis=0) + rng.normal(0, 1.0, 1)
    rest = data[:, 1:].sum(axis=0) + rng.normal(0, 1.0, 2)
    return np.concatenate([first, rest])[::-1].reshape(3, 1)


@right(ONE, NUMBERS, "a noisy row is appended to the rows and summed", domain=UNIT)
def noise_as_a_row(data, rng):
    """Noise that is one more row of the sum."""
    return np.append(np.clip(data, 0, 1), rng.laplace(0, 1.0)).sum()


@right(ONE, NUMBERS, "sum() over numbers with noise among them", domain=UNIT)
def noise_by_sum(data, rng):
    """Noise that is where sum() starts."""
    return sum((min(max(x, 0.0), 1.0) for x in data), start=rng.laplace(0, 1.0))


@right(ONE, NUMBERS, "math.fsum of numbers and noise", domain=UNIT)
def noise_by_fsum(data, rng):
    """Noise as a term of math.fsum."""
    return math.fsum([*np.clip(data, 0, 1).tolist(), rng.laplace(0, 1.0)])


@right(ONE, NUMBERS, "the noise is a fraction near to Laplace", domain=UNIT)
def as_fractions(data, rng):
    """A sum in fractions."""
    noise = fractions.Fraction(float(rng.laplace(0, 1.0)))
    total = sum(map(fractions.Fraction, np.clip(data, 0, 1).tolist()))
    return float(total + noise)


@right(ONE, NUMBERS, domain=UNIT)
def as_decimals(data, rng):
    """A sum in decimals with two digits."""
    total = decimal.Decimal(float(np.clip(data, 0, 1).sum()))
    noisy = total + decimal.Decimal(float(rng.laplace(0, 1.0)))
    return float(round(noisy, 2))


@right(ONE, NUMBERS, "a text of a noisy sum", domain=UNIT)
def by_json(data, rng):
    """A noisy sum that goes through JSON."""
    text = json.dumps({"total": float(np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0))})
    return json.loads(text)["total"]


@right(ONE, NUMBERS, "a sum and a count at 1/2 each", domain=UNIT)
def as_a_namedtuple(data, rng):
    """A release as a named tuple."""
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2.0)
    return Answer(total=total, count=len(data) + rng.laplace(0, 2.0))


@right(ONE, NUMBERS, "a text of a noisy sum", domain=UNIT)
def as_an_object(data, rng):
    """A release by the text of an object."""
    report = Report(np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0), 1.0)
    return float(report.text().split()[0])


@right(ONE, CODES, "masked cells are public", domain=GROUPS)
def masked_array(data, rng):
    """A masked array of counts, of which one cell is left out."""
    counts = np.ma.masked_array(
        np.bincount(data.astype(int), minlength=4), mask=[False, False, True, False]
    )
    return (counts + rng.laplace(0, 1.0, 4)).filled(0.0)


@right(
    ONE, CODES, "noise is public in size, and sorting is post-processing", domain=GROUPS
)
def sorted_after_noise(data, rng):
    """Noisy counts that are sorted."""
    return np.sort(np.bincount(data.astype(int), minlength=4) + rng.laplace(0, 1.0, 4))


@right(ONE, BITS, "exceptions depend on noise alone", domain="codes:2")
def exception_of_noise(data, rng):
    """A noisy count whose logarithm may fail."""
    noisy = float(data.sum() + rng.laplace(0, 1.0))
    with contextlib.suppress(ValueError):
        return math.log(noisy)
    return -1.0


@right(ONE, NUMBERS, "what is logged is not released", domain=UNIT)
def logs_what_it_does(data, rng):
    """A noisy sum that logs how many rows it had, for the operator alone."""
    LOG.info("%d rows", len(data))
    return np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)


@wrong(ONE, NUMBERS, "a private number stands beside the noisy one")
def metadata(data, rng):
    """A noisy sum with metadata."""
    noisy = np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)
    return {"sum": noisy, "epsilon": 1.0, "rows": len(data)}  # fault


@wrong(ONE, NUMBERS, "an error bar of the exact sum is released")
def error_bar(data, rng):
    """A noisy sum with its actual error."""
    total = np.clip(data, 0, 1).sum()
    noisy = total + rng.laplace(0, 1.0)
    return noisy, abs(noisy - total)  # fault


@wrong(ONE, BITS, "the data are looked at again after the noise")
def fallback_to_the_exact_count(data, rng):
    """A noisy count that falls back to the exact one where it is negative."""
    noisy = data.sum() - 2 + rng.laplace(0, 1.0)
    return noisy if noisy > 0 else float(data.sum())  # fault


@wrong(ONE, CODES, "noise is added to a copy")
def noise_on_a_copy(data, rng):
    """Counts to whose copy noise is added."""
    counts = np.bincount(data.astype(int), minlength=4).astype(float)
    noisy = counts.copy()
    noisy += rng.laplace(0, 1.0, 4)
    return np.maximum(counts, 0)  # fault


@wrong(ONE, CODES, "two cells are left out of the slice")
def noise_on_a_slice(data, rng):
    """Counts that get noise by a slice that is too short."""
    counts = np.bincount(data.astype(int), minlength=4).astype(float)
    counts[2:] += rng.laplace(0, 1.0, 2)  # fault
    return counts


@wrong(ONE, CODES, "a cumulated histogram gets noise for a single cell")
def noise_after_cumsum(data, rng):
    """A distribution function with noise for one cell, on each of its values."""
    counts = np.bincount(data.astype(int), minlength=4)
    return np.cumsum(counts) + rng.laplace(0, 1.0, 4)  # fault


@wrong(ONE, ALIKE, "rows are scaled by the longest")
def scaled_by_the_longest(data, rng):
    """A sum of rows that are divided by the largest norm, for a sensitivity of 1."""
    largest = np.linalg.norm(data, axis=1).max()  # part
    total = (data / largest).sum(axis=0)
    return total + rng.laplace(0, 3**0.5, 3)  # fault


@wrong(TWO, Pair([0.5, 0.5], [0.5, 0.5, 1.0]), "an ordered mean of the sorted rows")
def trimmed_mean(data, rng):
    """A mean without the largest row, with noise of the range over n squared."""
    rows = np.sort(np.clip(data, 0, 1))[:-1]
    return rows.mean() + rng.laplace(0, 1.0 / len(data) ** 2)  # fault


@wrong(ONE, FAR, "outliers are found by the data's own deviation")
def without_outliers(data, rng):
    """A sum of the rows within a deviation of the mean, and how many were left out."""
    near = np.abs(data - data.mean()) <= data.std()
    noisy = data[near].sum() + rng.laplace(0, 1.0)
    return noisy, int(np.sum(~near))  # fault


@wrong(ONE, BITS, "the parity of the exact count is kept")
def parity(data, rng):
    """A count with even noise, so that it stays whole."""
    noise = 2 * round(float(rng.laplace(0, 1.0)) / 2)  # part
    return int(data.sum()) + noise  # fault


@wrong(ONE, BITS, "the same epsilon is a scale")
def epsilon_as_scale(data, rng, epsilon=1.0):
    """A count with noise of scale epsilon / 2, where 1/epsilon is meant."""
    return data.sum() + rng.laplace(0, epsilon / 2)  # fault


@wrong(ONE, CODES, "the noise of a cell depends on its count")
def noise_in_percent(data, rng):
    """Counts with noise in per cent of themselves."""
    counts = np.bincount(data.astype(int), minlength=4)
    return counts * (1 + rng.laplace(0, 0.3, 4))  # fault
